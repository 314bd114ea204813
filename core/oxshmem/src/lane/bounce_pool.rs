//! Registered memory for sources and destinations that a NIC cannot take as they are: a few buffers in this
//! PE's heap, which contexts borrow for one piece of a transfer at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::hang::WaitedFor;
use crate::wait::{WaitReason, WaitsOn};
use crate::{Context, Result, Sym};

/// Bytes of a buffer.
pub(crate) const BYTES: usize = 64 << 10;
/// The most buffers, and the part of the heap that they may take in a small one.
const MAX_BUFFERS: usize = 4;
const SHARE: usize = 16;

/// The buffers that nobody has.
pub(crate) struct BouncePool {
    free: Mutex<Vec<Sym<u8>>>,
}

impl BouncePool {
    /// Bytes that the buffers take in a heap of this limit.
    pub(crate) fn size(limit: usize) -> usize {
        (limit / SHARE / BYTES).clamp(1, MAX_BUFFERS) * BYTES
    }

    /// Cut from this part of the heap.
    pub(crate) fn new(area: Sym<u8>) -> Result<Self> {
        let buffers = (0..area.len() / BYTES).map(|i| area.range(i * BYTES..(i + 1) * BYTES));
        Ok(BouncePool {
            free: Mutex::new(buffers.collect::<Result<_>>()?),
        })
    }

    fn free(&self) -> MutexGuard<'_, Vec<Sym<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer, until this is dropped.
pub(super) struct Bounce<'w> {
    all: &'w BouncePool,
    pub buffer: Sym<u8>,
}

impl Drop for Bounce<'_> {
    fn drop(&mut self) {
        self.all.free().push(self.buffer);
    }
}

impl Context<'_> {
    /// Borrows a buffer for a piece of a transfer with a PE. Waits where the transfers of other threads have all.
    pub(super) fn acquire_bounce(&self, call: &'static str, pe: usize) -> Result<Bounce<'_>> {
        let all = &self.shared.bounce_pool;
        let tell = || {
            let what = "a bounce buffer, which transfers of other threads have";
            (WaitedFor::Me, what.into())
        };
        let reason = WaitReason {
            call,
            needs: WaitsOn::Pe(pe),
            describe: &tell,
        };
        // A transfer that has one ends by itself: with its lane, or with the PE that it needs.
        let buffer = self.wait(&reason, None, || all.free().pop())?;
        Ok(Bounce { all, buffer })
    }
}
