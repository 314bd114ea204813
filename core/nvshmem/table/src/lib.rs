//! NVSHMEM's names as one table, and all code and pages that are generated from it.
//!
//! [`rows`] has a line for each family of functions: its name, the types that there are functions of, its forms (on the host, on a
//! stream, in kernels by a thread, a warp or a block), its parameters in C, the Rust function that implements it on the host, and its
//! body in kernels, by the calls of `oxshmem.cuh`. [`functions`] expands that to all functions of NVSHMEM.

mod c;
mod exports;
mod files;
mod function;
mod headers;
pub mod rows;
mod table;
pub mod types;

pub use exports::{exports, interface, version_script};
pub use files::files;
pub use function::{Function, Param};
pub use headers::headers;
pub use table::functions;
