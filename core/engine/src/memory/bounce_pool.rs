//! Registered memory for sources and destinations that a NIC cannot take as they are: a few buffers in this
//! PE's heap, each borrowed for one chunk of a transfer at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::target::Target;

/// Bytes of a buffer.
pub(crate) const BYTES: usize = 64 << 10;
/// The most buffers, and the part of the heap that they may take in a small one.
const MAX_BUFFERS: usize = 4;
const SHARE: usize = 16;

/// The buffers that are not borrowed.
#[derive(Debug)]
pub struct BouncePool {
    free: Mutex<Vec<Target>>,
}

impl BouncePool {
    /// Bytes of the buffers in a heap of this limit.
    pub fn size(limit: usize) -> usize {
        (limit / SHARE / BYTES).clamp(1, MAX_BUFFERS) * BYTES
    }

    /// Buffers cut from this part of the heap.
    pub fn new(area: Target) -> Self {
        let buffers = (0..area.len() / BYTES).filter_map(|i| area.part(i * BYTES, BYTES));
        BouncePool {
            free: Mutex::new(buffers.collect()),
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Target>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Borrows a buffer, if one is free.
    pub(crate) fn try_acquire(&self) -> Option<Bounce<'_>> {
        let buffer = self.free().pop()?;
        Some(Bounce { pool: self, buffer })
    }
}

/// A borrowed buffer, until this is dropped.
#[derive(Debug)]
pub struct Bounce<'w> {
    pool: &'w BouncePool,
    /// The memory, in this PE's own heap.
    pub buffer: Target,
}

impl Drop for Bounce<'_> {
    fn drop(&mut self) {
        self.pool.free().push(self.buffer);
    }
}
