//! A software CUDA driver: the driver calls that oxshmem makes, over shared host memory.
//!
//! Built as a shared library whose name inside is `libcuda.so.1`. Device memory is memory files
//! mapped twice: once at the device addresses that the program sees, unreadable to the host, and
//! once for the copies of the driver itself. Streams are threads. Kernels run as host code, built from the
//! same source (`SOFTCUDA_KERNELS`). README.md lists what is emulated and what is not, and
//! shows its use.
//!
//! # Threads and failure
//!
//! Every exported function may be called from any thread, and returns a result code; none
//! panics towards its caller. A process that ends leaves nothing behind: memory is in unnamed
//! files, passed as descriptors.
//!
//! Nothing here is for Rust callers: the exported C functions are the interface.

#![allow(non_snake_case)] // the driver's own names

#[macro_use]
mod call;
mod code;
mod config;
mod context;
mod copy;
mod device;
mod driver;
mod event;
mod fill;
mod graph;
mod host_calls;
mod host_function;
mod kernel;
mod memop;
mod memory;
mod nic;
mod node;
mod own_file;
mod proc_address;
mod race;
mod stream;
mod sync;
