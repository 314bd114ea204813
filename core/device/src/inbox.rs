//! The inbox of a GPU: atomics on its words that other PEs' hosts ask for.
//!
//! The host posts an errand in page-locked memory. A thread of the GPU claims it by a counter in the GPU's memory, performs it and
//! answers. Any wait of the device library is such a thread, and so is a kernel that the host launches for it. `header/inbox.cuh` is
//! the kernels' side.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use bytemuck::{Pod, Zeroable};

use crate::shared_memory::{SharedMemory, SharedWords};

/// The places of an inbox: a power of two.
const PLACES: u64 = 64;

/// The inbox as kernels see it, in the GPU's memory. The fields are addresses there.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Inbox {
    /// The [`Errand`]s.
    pub errands: u64,
    /// The counter of errands that a thread has begun.
    pub claimed: u64,
    /// The counter of errands that are there.
    pub posted: u64,
    /// The number of places, less one.
    pub mask: u64,
}

/// An atomic that a host asks of the GPU.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Errand {
    /// The address of the word.
    pub word: u64,
    /// The operation, in the order of `AtomicOp::ALL`.
    pub operation: u32,
    /// The bytes of the word: 4 or 8.
    pub width: u32,
    /// The operand.
    pub operand: u64,
    /// The value to compare with.
    pub compare: u64,
    /// The old value, once `done` says so.
    pub old: u64,
    /// The errand's number plus one, when it is done.
    pub done: u64,
    /// Zero.
    pub padding: [u64; 2],
}

/// The host's side of an inbox's page-locked memory. One thread at a time posts.
#[derive(Debug)]
pub struct HostInbox<M = SharedMemory> {
    memory: M,
    next: u64,
}

impl HostInbox {
    /// The offset of the counter of errands that are there.
    pub const POSTED: usize = 0;
    /// The offset of the errands.
    pub const ERRANDS: usize = 64;
    /// The bytes of all.
    pub const BYTES: usize = Self::ERRANDS + PLACES as usize * size_of::<Errand>();

    /// The inbox as kernels see it, where the memory is at `memory` for the GPU and the counter of claims at `claimed`.
    #[must_use]
    pub fn for_kernels(memory: u64, claimed: u64) -> Inbox {
        Inbox {
            errands: memory + Self::ERRANDS as u64,
            claimed,
            posted: memory + Self::POSTED as u64,
            mask: PLACES - 1,
        }
    }

    /// The inbox in zeroed memory.
    ///
    /// # Safety
    ///
    /// [`BYTES`](Self::BYTES) bytes at `memory`, aligned to 64, stay allocated while this lives, and nobody but kernels by the
    /// header's protocol uses them.
    #[must_use]
    pub unsafe fn new(memory: NonNull<u8>) -> HostInbox {
        // SAFETY: the caller's promise.
        HostInbox::with(unsafe { SharedMemory::new(memory, Self::BYTES) })
    }
}

impl<M: SharedWords> HostInbox<M> {
    /// The inbox in zeroed words, [`BYTES`](Self::BYTES) of them.
    #[must_use]
    pub fn with(memory: M) -> HostInbox<M> {
        HostInbox { memory, next: 0 }
    }

    fn place(number: u64) -> usize {
        HostInbox::ERRANDS + (number & (PLACES - 1)) as usize * size_of::<Errand>()
    }

    /// Posts an errand, whose fields for answers are ignored; gives its number. The one before it is done: the caller
    /// waits for each.
    pub fn post(&mut self, errand: &Errand) -> u64 {
        let (number, place) = (self.next, Self::place(self.next));
        self.memory.store(place, errand.word, Ordering::Relaxed);
        self.memory
            .store_half(place + 8, errand.operation, Ordering::Relaxed);
        self.memory
            .store_half(place + 12, errand.width, Ordering::Relaxed);
        self.memory
            .store(place + 16, errand.operand, Ordering::Relaxed);
        self.memory
            .store(place + 24, errand.compare, Ordering::Relaxed);
        self.next += 1;
        self.memory
            .store(HostInbox::POSTED, self.next, Ordering::Release);
        number
    }

    /// The old value of an errand's word, once it is done.
    #[must_use]
    pub fn answer(&self, number: u64) -> Option<u64> {
        let place = Self::place(number);
        let is_done = self.memory.load(place + 40, Ordering::Acquire) == number + 1;
        is_done.then(|| self.memory.load(place + 32, Ordering::Relaxed))
    }
}
