//! Kernels: PTX says what there is, the host build of the same source does it.

mod barrier;
mod launch;
pub(crate) mod library;
pub(crate) mod module;
mod ptx;
