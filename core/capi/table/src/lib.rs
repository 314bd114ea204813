//! The OpenSHMEM C API as one table, and all code and pages that are generated from it.
//!
//! [`rows`] has a line for each family of functions: how its names are made, of which types there are
//! functions, their parameters in C, and the Rust function that implements them all. [`functions`] expands
//! that to all 1788 functions of OpenSHMEM, and to those beyond it (`shmemx_`, and functions of types that
//! other libraries have). From these come
//!
//! - [`exports`], the Rust source of the symbols (`core/capi/build.rs` writes it where the library includes it);
//! - [`headers`], which are checked in at `core/capi/include/` so that they can be read, and which
//!   `cargo run -p oxshmem-capi-table` writes anew; a test tells when they are not current;
//! - [`manual`], the reference pages, likewise in `core/capi/man/`;
//! - [`wrong_calls`], calls that make no sense, which a conformance program makes;
//! - the lists of types over which the conformance programs expand (`core/capi/tests/c/types.h`, one of [`headers`]).
//!
//! To add a function, add a row, and the function that it names to `core/capi/src`.

mod c;
mod exports;
mod files;
mod function;
mod generics;
mod headers;
mod inlined;
mod man;
mod pages;
pub mod rows;
mod table;
#[cfg(test)]
mod tests;
pub mod types;
mod wrong;

pub use exports::{exports, version_script};
pub use files::files;
pub use function::{Function, Param};
pub use headers::headers;
pub use man::manual;
pub use table::functions;
pub use wrong::wrong_calls;
