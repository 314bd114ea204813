//! Calls for bindings to other languages, which programs in Rust do not need.
//!
//! They follow the memory model as the calls of [`Context`](crate::Context) and [`World`](crate::World) do. A binding names
//! objects by address ([`Addresses`], [`object_at`]), has a fast path apart from all the rest (`try_*`: the operation where
//! it is this CPU's own, else nothing is done), waits for words that it reads itself ([`wait_for`]), and ends a world in
//! steps, since C programs may initialize again ([`quiesce`], [`detach`]).
//!
//! `core/capi` uses them. They may change in any version.

pub(crate) mod address;
pub(crate) mod fast_path;
pub(crate) mod lifecycle;
pub(crate) mod strided;
pub(crate) mod wait;

pub use crate::strided::Blocks;
pub use oxshmem_engine::peer::entry::{Peer, PeerWords};
