//! Registered memory for sources and destinations that a NIC cannot take as they are: a few buffers in this
//! PE's heap, each borrowed for one chunk of a transfer at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::sym::Sym;

/// Bytes of a buffer.
pub(crate) const BYTES: usize = 64 << 10;
/// The most buffers, and the part of the heap that they may take in a small one.
const MAX_BUFFERS: usize = 4;
const SHARE: usize = 16;

/// The buffers that are not borrowed.
pub(crate) struct BouncePool {
    free: Mutex<Vec<Sym<u8>>>,
}

impl BouncePool {
    /// Bytes of the buffers in a heap of this limit.
    pub(crate) fn size(limit: usize) -> usize {
        (limit / SHARE / BYTES).clamp(1, MAX_BUFFERS) * BYTES
    }

    /// Buffers cut from this part of the heap.
    pub(crate) fn new(area: Sym<u8>) -> Result<Self> {
        let buffers = (0..area.len() / BYTES).map(|i| area.range(i * BYTES..(i + 1) * BYTES));
        Ok(BouncePool {
            free: Mutex::new(buffers.collect::<Result<_>>()?),
        })
    }

    fn free(&self) -> MutexGuard<'_, Vec<Sym<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Borrows a buffer, if one is free.
    pub(super) fn try_acquire(&self) -> Option<Bounce<'_>> {
        let buffer = self.free().pop()?;
        Some(Bounce { pool: self, buffer })
    }
}

/// A borrowed buffer, until this is dropped.
pub(super) struct Bounce<'w> {
    pool: &'w BouncePool,
    pub buffer: Sym<u8>,
}

impl Drop for Bounce<'_> {
    fn drop(&mut self) {
        self.pool.free().push(self.buffer);
    }
}
