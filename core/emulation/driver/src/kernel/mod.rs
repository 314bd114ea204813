//! Kernels: modules declare them, a host build of the same source or an image executes them.

mod culibrary;
mod fiber;
mod image;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod module;
mod ptx;
pub(crate) mod shape;
mod shared_object;
