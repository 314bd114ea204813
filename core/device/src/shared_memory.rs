//! Page-locked memory that host and kernels share word by word.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Words that the host shares with kernels: page-locked memory, or a simulation of it.
pub trait SharedWords {
    /// Loads the word of 64 bits at an offset.
    fn load(&self, offset: usize, order: Ordering) -> u64;
    /// Stores it.
    fn store(&self, offset: usize, value: u64, order: Ordering);
    /// Stores a word of 32 bits.
    fn store_half(&self, offset: usize, value: u32, order: Ordering);
}

/// Page-locked memory that the GPU accesses, too: all accesses are atomics.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// How often a word was asked for.
    #[cfg(test)]
    pub(crate) accesses: std::sync::atomic::AtomicUsize,
}

// SAFETY: the memory is accessed by atomics alone, from any thread.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// # Safety
    ///
    /// `bytes` bytes at `start`, aligned to 64, stay allocated while this lives, and nobody accesses them but by atomics.
    pub(crate) unsafe fn new(start: NonNull<u8>, bytes: usize) -> SharedMemory {
        SharedMemory {
            start,
            bytes,
            #[cfg(test)]
            accesses: Default::default(),
        }
    }

    /// The word of 64 bits at an offset.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.bytes && offset.is_multiple_of(8));
        #[cfg(test)]
        self.accesses
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // SAFETY: the offset lies within the memory, at a multiple of 8, by the invariant of `new`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// The word of 32 bits at an offset.
    pub(crate) fn half(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= self.bytes && offset.is_multiple_of(4));
        // SAFETY: as above, at a multiple of 4.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }
}

impl SharedWords for SharedMemory {
    fn load(&self, offset: usize, order: Ordering) -> u64 {
        self.word(offset).load(order)
    }

    fn store(&self, offset: usize, value: u64, order: Ordering) {
        self.word(offset).store(value, order);
    }

    fn store_half(&self, offset: usize, value: u32, order: Ordering) {
        self.half(offset).store(value, order);
    }
}
