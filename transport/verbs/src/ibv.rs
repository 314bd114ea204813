//! Safe objects over the verbs library: each holds its parents, so that they end in the right
//! order, and ends itself when dropped.
//!
//! Verbs objects may be used from any thread: the library locks where its providers need it.

mod calls;
mod completion;
mod context;
mod ece;
mod events;
mod gid;
mod library;
mod memory;
mod queue_pair;
mod queue_sizes;
mod receive;
pub(crate) mod result;
// Generated: `ci/bindings`. Whoever calls a function upholds what its manual page demands.
#[rustfmt::skip]
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals
)]
pub(crate) mod sys;

pub(crate) use completion::{Channel, Completion, CompletionQueue};
pub(crate) use context::{Context, DeviceLimits, PortAttributes, ProtectionDomain, device_names};
pub(crate) use ece::Ece;
pub(crate) use events::Event;
pub(crate) use gid::Gid;
pub(crate) use memory::{Access, MemoryRegion};
pub(crate) use queue_pair::{ConnectAttributes, QueuePair, ReceiveSource, Refusal};
pub(crate) use queue_sizes::QueueSizes;
pub(crate) use receive::{Posted, ReceiveBuffers, SharedReceiveQueue};
/// The remote side of an [`sys::ibv_send_wr`]; verbs.h leaves these types without names.
pub(crate) use sys::{
    ibv_send_wr__bindgen_ty_2 as wr_t, ibv_send_wr__bindgen_ty_2__bindgen_ty_1 as rdma_t,
    ibv_send_wr__bindgen_ty_2__bindgen_ty_2 as atomic_t,
};
