//! NVSHMEM's names as one table, and all code and pages that are generated from it.
//!
//! [`rows`] has a line for each family of functions: its name, the types that there are functions of, its forms (on the host, on a
//! stream, in kernels by a thread, a warp or a block), its parameters in C, the Rust function that implements it on the host, and its
//! body in kernels, by the calls of `oxshmem.cuh`. [`functions`] expands that to all functions of NVSHMEM; [`tiles`] has the calls on
//! tiles, which are templates. From these come
//!
//! - [`exports`], the Rust source of the host library's symbols (`core/nvshmem/build.rs` writes it where the library includes it);
//! - [`headers`], which are checked in at `core/nvshmem/include/` beside those that are written by hand, and which
//!   `cargo run -p oxshmem-nvshmem-table` writes anew; a test tells when they are not current;
//! - `docs/nvshmem-names.md`, of what is refused or differs, by [`limits`];
//! - [`uses_on_host`] and [`uses_in_kernels`], sources that make every call, for compilers (`ci/device-compilers`).
//!
//! To add a function, add a row, and the function that it names to `core/nvshmem/src`. `data/names.txt` has NVSHMEM's names.

mod c;
mod exports;
mod files;
mod function;
mod headers;
pub mod limits;
pub mod rows;
mod table;
#[cfg(test)]
mod tests;
pub mod tiles;
pub mod types;
mod uses;

pub use exports::{exports, version_script};
pub use files::files;
pub use function::{Function, Param};
pub use headers::headers;
pub use table::functions;
pub use uses::{uses_in_kernels, uses_on_host};
