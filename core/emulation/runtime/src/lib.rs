//! The CUDA runtime API over the software CUDA driver.
//!
//! Programs that `oxshmem cuda cc` builds are linked with this library in place of NVIDIA's. Each
//! function is a call or two of the driver, which is loaded from the same folder. Functions without a
//! meaning here exist, too: they answer `cudaErrorNotSupported` and name themselves on standard error.

#![allow(non_snake_case)] // the runtime's own names

#[macro_use]
mod error;
mod copy;
mod device;
mod driver;
mod event;
mod graph;
mod host_accesses;
mod launch;
mod memory;
mod names;
mod primary;
mod register;
mod stream;
mod unsupported;
