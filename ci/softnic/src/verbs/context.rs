//! Contexts: the private part behind an opened device, and the world for calls that have a context.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::abi::sys::{ibv_context, verbs_context};
use crate::events::Pipe;
use crate::object::{Handle, Outcome};
use crate::sync::lock;
use crate::world::{World, world};

/// The private part of a context.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) card: u32,
    pub(crate) device: usize,
    pub(crate) events: Arc<Pipe>,
    pub(crate) clock: Arc<AtomicU64>,
}

/// A context with all that is in front of it and behind it.
pub(crate) type Whole = Handle<verbs_context, Opened>;

/// The distance of the public context from the beginning.
pub(crate) const FRONT: usize = std::mem::offset_of!(verbs_context, context);

/// The private part of a context.
///
/// # Safety
///
/// The context is open.
pub(crate) unsafe fn opened<'a>(context: *mut ibv_context) -> &'a Opened {
    // SAFETY: contexts are made by `ibv_open_device` below alone, at this distance.
    unsafe { &Whole::of(context.byte_sub(FRONT).cast()).inner }
}

/// The world. Calls that have a context find it in order.
pub(crate) fn locked() -> Outcome<std::sync::MutexGuard<'static, World>> {
    world().map(lock).map_err(|_| libc::ENODEV)
}
