//! Kernels: PTX declares them, the host build of the same source executes them.

mod barrier;
mod launch;
pub(crate) mod library;
pub(crate) mod module;
mod ptx;
