//! The CUDA device library: one header, `include/oxshmem.cuh`, and its shared structures as the host sees them.
//!
//! The header is made by `ci/device-header` of the parts in `header/`. README.md describes the calls of kernels.
//! `World::device_library` of the package `oxshmem` fills the state of a loaded module.

pub mod fault;
pub mod inbox;
pub mod layout;
pub mod ring;
pub mod shared_memory;

/// The text of `oxshmem.cuh`, for a compiler at run time (NVRTC): it has no includes.
pub const HEADER: &str = include_str!("../include/oxshmem.cuh");

/// The PTX of `kernels/serve.cu`: the kernel [`SERVE`], which performs what is in an inbox.
pub const SERVE_PTX: &str = include_str!("../kernels/serve.ptx");

/// The kernel of [`SERVE_PTX`]. It takes the address of an [`Inbox`](inbox::Inbox) and runs as one thread.
pub const SERVE: &std::ffi::CStr = c"oxshmem_serve";

/// The PTX of `kernels/stream.cu`: the kernels of calls on streams. They are described in that file.
pub const STREAM_PTX: &str = include_str!("../kernels/stream.ptx");

/// The name of the variable of [`STREAM_PTX`] that holds its [`State`](layout::State).
pub const STREAM_STATE: &std::ffi::CStr = c"oxshmem_stream_state";

/// The name of the variable of each image that holds its [`State`](layout::State).
pub const STATE: &std::ffi::CStr = c"oxshmem_state";
