//! The only access to the CUDA driver: devices, GPU heap segments, streams, kernels.
//!
//! Nothing else of oxshmem calls the driver. It is looked for when it is first needed, by
//! [`Driver::get`]: `OXSHMEM_CUDA_LIBRARY` names a library to load (the software driver of the
//! tests, say), else it is the machine's `libcuda.so.1`. Every call is looked up by name once; a
//! missing library, a missing call or a driver that is too old is an [`Error`] in words, and a result
//! code that this crate does not know is an error as well, never undefined behaviour.
//!
//! * [`Driver`], [`Device`], [`Context`]: what there is, and the primary context of a device, which
//!   every other type here keeps and makes current for itself.
//! * [`Segment`] and [`Imported`]: a GPU's symmetric memory, this process's and a peer's.
//! * [`Stream`], [`Event`], [`Graph`]: work in order. [`Module`], [`Function`], [`Args`]: kernels.
//! * [`Pinned`] and [`Registered`]: host memory that the GPU reaches. [`mod@pointer`] tells what an
//!   address is, [`mod@dma_buf`] gives a NIC a range of GPU memory.
//! * [`interop`] takes what users have from cudarc. A program that sets `OXSHMEM_CUDA_LIBRARY` calls
//!   [`Driver::get`] before it first uses cudarc, so that both have the same library.
//! * [`testing`]: for tests that need a driver.
//!
//! # Threads and failure
//!
//! Every type may go to any thread. No call panics on a condition of the machine. Dropping never
//! fails: what the driver refuses then (its context may be dead) is told to `tracing` and leaked.
//! Lengths and offsets are bytes throughout.
//!
//! Without the feature `cuda` there is nothing here.
#![cfg(feature = "cuda")]

mod context;
mod device;
pub mod dma_buf;
mod driver;
mod error;
mod event;
mod graph;
mod imported;
pub mod interop;
mod module;
mod names;
mod pinned;
pub mod pointer;
mod poll;
mod probe;
pub mod raw_global;
mod segment;
mod stream;
mod table;
pub mod testing;
mod vmm;

/// The version of cudarc whose types [`interop`] takes.
pub use cudarc;
pub use probe::{Probe, probe};
pub use {
    context::{Context, Current, FlushScope, MemoryInfo},
    device::{Device, FlushOptions, PciAddress, Uuid, WritesOrdering, devices},
    driver::{Driver, Feature, Version},
    error::{Error, Result},
    event::Event,
    graph::Graph,
    imported::{Import, Imported},
    module::{Args, Function, KernelArg, Launch, Module},
    names::Names,
    pinned::{Pinned, PinnedOptions, Registered},
    pointer::DevicePtr,
    segment::{Extent, Handles, Segment, SegmentKind, SegmentOptions},
    stream::{Capture, Compare, Copy2d, Stream, StreamOptions},
    vmm::HANDLE_BYTES,
};

/// Every type may go to any thread, and be used from several where it takes `&self`.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<(Driver, Device, Context, Segment, Imported)>();
    any_thread::<(
        Stream,
        Event,
        Graph,
        Module,
        Function,
        Pinned,
        Registered,
        Error,
    )>();
};
