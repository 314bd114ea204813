//! Passes over LLVM's text of the two halves of a file.

pub(crate) mod device;
pub(crate) mod host;
pub(crate) mod stub;
mod text;
mod types;
