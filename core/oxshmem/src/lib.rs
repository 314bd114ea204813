//! Symmetric shared memory (SHMEM) for CPU and GPU clusters.
//!
//! The processing elements (PEs) of a job each have a *symmetric heap*: a collective allocation
//! gives an object that exists on every PE, and any PE may read, write and atomically update any
//! other's copy, one-sided. [`World`] is a PE's membership of a job; [`Sym`] names a symmetric
//! object.
//!
//! ```
//! use oxshmem::{Result, testing::spmd}; // PEs as threads; a program uses World::init()
//!
//! fn main() -> Result<()> {
//!     spmd(4, |world| {
//!         let (me, n) = (world.my_pe(), world.n_pes());
//!         let from_left = world.alloc::<u64>(1)?;
//!         world.p(from_left, me as u64, (me + 1) % n)?;
//!         world.barrier_all()?;
//!         assert_eq!(world.g(from_left, me)?, ((me + n - 1) % n) as u64);
//!         Ok(())
//!     })?;
//!     Ok(())
//! }
//! ```
//!
//! # Memory model
//!
//! The promises are numbered M1 to M38 in `docs/memory-model.md`; the documentation of each call
//! names those it keeps. In short: puts are unordered until a [`fence`](Context::fence), incomplete
//! until a [`quiet`](Context::quiet) or [barrier](World::barrier_all), and a
//! [put-with-signal](Context::put_signal)'s data is there when its signal is.
//!
//! # Errors
//!
//! Every call returns a [`Result`]. A collective call that fails on one PE fails on all; one that a
//! PE aborts midway (at a deadline) ends collective calls for all. A lost PE turns the calls that need
//! it into [`Error::PeerLost`].

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("oxshmem needs a 64-bit target: its words of 64 bits are aligned atomics there");

mod agreement;
mod alloc;
mod atomics;
#[doc(hidden)]
pub mod bindings;
mod blocks;
mod builder;
mod call_waiter;
mod config;
mod context;
mod copies;
mod counter;
#[cfg(feature = "cuda")]
mod device;
mod error;
mod explain;
mod fence_quiet;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod goodbye;
mod gpu;
mod growth;
mod handle;
mod heap;
pub mod launch;
mod live_block_cache;
mod lock;
mod log;
mod nbi;
mod nic_filter;
mod options;
mod pe_state;
mod place;
mod ptr;
mod raw;
mod register;
pub mod registry;
mod rma;
mod setup;
mod signal;
mod statics;
mod stats;
#[cfg(feature = "cuda")]
mod stream;
mod strided;
mod strided_get;
mod sym;
mod team;
pub mod testing;
#[cfg(test)]
mod tests;
mod topology;
mod trace;
mod visibility;
mod wait_until;
mod world;

pub use alloc::Hints;
pub use atomics::{AtomicBits, AtomicInt, AtomicValue};
pub use builder::Builder;
pub use config::{Atomics, MemoryModel, variables};
pub use context::{
    Context,
    options::ContextOptions,
    session::Session,
    threads::{LockedContext, SharedContext},
};
pub use copies::local_operand::{CopySource, CopyTarget};
#[cfg(feature = "cuda")]
pub use device::{DEVICE_HEADER, DeviceLibrary};
pub use error::{Error, Result};
pub use nbi::Scope;
#[cfg(target_arch = "x86_64")]
pub use oxshmem_collectives::long_double::LongDouble;
pub use oxshmem_collectives::{
    fold::Reducible,
    select::{CollectiveAlgorithm, CollectiveChoice},
};
pub use oxshmem_engine::gpu::memory::{GpuAccess, GpuMemory};
pub use oxshmem_engine::order::fence_site::FenceSite;
pub use oxshmem_engine::route::reasons::RouteCandidate;
pub use oxshmem_engine::route::table::{Route, RouteExplanation};
pub use oxshmem_transport::{AtomicOp, AtomicRequest, Fold, Memory, MemoryKind};
pub use ptr::PeerPtr;
pub use register::Registered;
#[cfg(feature = "cuda")]
pub use register::gpu::RegisteredGpu;
pub use signal::SignalOp;
pub use statics::Static;
#[cfg(feature = "cuda")]
pub use stream::{collectives::GpuNumber, slice::GpuView};
pub use sym::Sym;
pub use team::{
    Team, TeamConfig,
    detached::{AttachedTeam, DetachedTeam},
};
pub use topology::{OpenDevice, described_topology, planned_devices, usable_nics};
pub use visibility::Visibility;
pub use wait_until::{Cmp, Waitable};
pub use world::World;

pub use bytemuck;
/// Types that may lie in symmetric memory: any bytes are a value, and a value has no padding.
///
/// Numbers and arrays of them are such types. A structure of them becomes one by this derive, which checks it, together
/// with that of [`Zeroable`]; the line `bytemuck(crate = …)` says where both find their crate.
///
/// ```
/// use oxshmem::{Pod, Result, World, Zeroable};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// #[bytemuck(crate = "oxshmem::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     mass: f32,
///     kind: u32,
/// }
///
/// fn main() -> Result<()> {
///     let world = World::init()?;
///     let (me, n) = (world.my_pe(), world.n_pes());
///     let inbox = world.alloc_zeroed::<Particle>(1)?;
///     let mine = Particle { place: [me as f64; 3], mass: 1.5, kind: 7 };
///     world.p(inbox, mine, (me + 1) % n)?;
///     world.barrier_all()?;
///     let left = (me + n - 1) % n;
///     assert_eq!(world.g(inbox, me)?, Particle { place: [left as f64; 3], ..mine });
///     world.free(inbox)?;
///     world.finalize()
/// }
/// ```
#[doc(inline)]
pub use bytemuck::Pod;
/// Types for which all bytes zero is a value. [`Pod`] needs it, and shows how to derive both.
#[doc(inline)]
pub use bytemuck::Zeroable;
pub use half::{bf16, f16};
pub use num_complex::Complex;
/// The CUDA driver: contexts, streams, graphs, kernels.
#[cfg(feature = "cuda")]
pub use oxshmem_cuda as cuda;

#[doc(hidden)]
pub mod __private {
    pub use crate::statics::{Initial, TEMPLATES, Template};
    pub use linkme;
}

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So do those of the pages on teams and of the book.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/teams.md")]
    struct Teams;
    #[doc = include_str!("../../../docs/guide/first-steps-rust.md")]
    struct FirstSteps;
    #[doc = include_str!("../../../docs/guide/collectives.md")]
    struct Collectives;
    #[doc = include_str!("../../../docs/guide/from-mpi.md")]
    struct FromMpi;
    #[cfg(feature = "cuda")]
    #[doc = include_str!("../../../docs/gpu.md")]
    struct Gpu;
}
