//! The ring of requests that kernels make of the host, for PEs whose memory is not mapped for their GPU.
//!
//! Kernels take tickets from a counter in the GPU's memory, wait until their slot is free, fill it, and store its sequence last. Lanes of
//! a warp that do so at once take their tickets together; their requests for neighbouring values become one. The host reads slots in the
//! order of tickets. It tells by three counters what it has read, whose sources may be changed, and what is complete at its target; all
//! three only grow. `header/ring.cuh` is the kernels' side.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use bytemuck::{Pod, Zeroable};

use crate::shared_memory::{SharedMemory, SharedWords};

/// The slots of a ring: a power of two.
pub const SLOTS: u64 = 1024;
/// The lanes of a warp: at most so many take their tickets together.
pub const LANES: usize = 32;

// Lanes that take their tickets together wait for room for the last of them. It must not depend on a request of their own.
const _: () = assert!(LANES as u64 <= SLOTS);

/// The ring as kernels see it, in the GPU's memory. The fields are addresses there.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Ring {
    /// [`SLOTS`] slots of 8 words.
    pub slots: u64,
    /// As many answers of 2 words.
    pub answers: u64,
    /// The counter of tickets.
    pub head: u64,
    /// [`HostRing::TAKEN`].
    pub taken: u64,
    /// [`HostRing::SOURCES_READ`].
    pub sources_read: u64,
    /// [`HostRing::DONE`].
    pub done: u64,
    /// The count of requests that are known to be read, in the GPU's memory.
    pub credit: u64,
    /// `SLOTS - 1`.
    pub mask: u64,
}

/// The operation of a request, in the order of `Operation` in `header/ring.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the calls")]
pub enum Operation {
    Put,
    PutValue,
    Get,
    GetValue,
    PutSignal,
    Signal,
    Fetch,
    Set,
    Swap,
    CompareSwap,
    Add,
    FetchAdd,
    And,
    FetchAnd,
    Or,
    FetchOr,
    Xor,
    FetchXor,
    Fence,
    Quiet,
    Flush,
}

impl Operation {
    /// All, by their numbers.
    pub const ALL: [Operation; 21] = {
        use Operation::*;
        [
            Put,
            PutValue,
            Get,
            GetValue,
            PutSignal,
            Signal,
            Fetch,
            Set,
            Swap,
            CompareSwap,
            Add,
            FetchAdd,
            And,
            FetchAnd,
            Or,
            FetchOr,
            Xor,
            FetchXor,
            Fence,
            Quiet,
            Flush,
        ]
    };
}

/// A request of a kernel, as it stands in its slot. Nothing in it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation; none if there is no such number.
    pub operation: Option<Operation>,
    /// The bytes of a word; or the operation of a signal (0 sets, 1 adds); or, of a put or get, 1 if the caller waits for it.
    pub width: u8,
    /// Requests for neighbouring values that other lanes have joined to this one. Their tickets follow.
    pub more: u8,
    /// The PE.
    pub pe: u32,
    /// The offset in that PE's GPU heap.
    pub remote: u64,
    /// The address here of a put's source, or of a get's destination.
    pub local: u64,
    /// The bytes.
    pub bytes: u64,
    /// The operand.
    pub value: u64,
    /// The value to compare with, or the offset of the signal.
    pub compare: u64,
}

/// The host's side of a ring's page-locked memory. One thread uses it.
#[derive(Debug)]
pub struct HostRing<M = SharedMemory> {
    memory: M,
    slots: u64,
    next: u64,
    /// The operands of the request that was taken last, and of those that are joined to it.
    values: [u64; LANES],
}

impl HostRing {
    /// The offset of the count of requests that were read.
    pub const TAKEN: usize = 0;
    /// The offset of the count of requests whose sources may be changed.
    pub const SOURCES_READ: usize = 64;
    /// The offset of the count of requests that are complete.
    pub const DONE: usize = 128;
    /// The offset of the slots.
    pub const SLOTS: usize = 192;

    /// The offset of the answers in a ring of so many slots.
    #[must_use]
    pub const fn answers(slots: u64) -> usize {
        Self::SLOTS + slots as usize * 64
    }

    /// The bytes of a ring of so many slots.
    #[must_use]
    pub const fn bytes(slots: u64) -> usize {
        Self::answers(slots) + slots as usize * 16
    }

    /// The bytes of all.
    pub const BYTES: usize = Self::bytes(SLOTS);

    /// The ring in zeroed memory.
    ///
    /// # Safety
    ///
    /// [`BYTES`](Self::BYTES) bytes at `memory`, aligned to 64, stay allocated while this lives, and nobody but kernels by the
    /// header's protocol uses them.
    #[must_use]
    pub unsafe fn new(memory: NonNull<u8>) -> HostRing {
        // SAFETY: the caller's promise.
        HostRing::with(unsafe { SharedMemory::new(memory, Self::BYTES) }, SLOTS)
    }
}

impl<M: SharedWords> HostRing<M> {
    /// The ring in zeroed words, [`bytes`](HostRing::bytes) of them. The count of slots is a power of two.
    #[must_use]
    pub fn with(memory: M, slots: u64) -> HostRing<M> {
        HostRing {
            memory,
            slots,
            next: 0,
            values: [0; LANES],
        }
    }

    fn place(&self, ticket: u64) -> usize {
        (ticket & (self.slots - 1)) as usize
    }

    /// The offset of a word of a ticket's slot.
    fn word(&self, ticket: u64, number: usize) -> usize {
        HostRing::SLOTS + self.place(ticket) * 64 + number * 8
    }

    /// The offset of a ticket's answer.
    fn answer_place(&self, ticket: u64) -> usize {
        HostRing::answers(self.slots) + self.place(ticket) * 16
    }

    fn load(&self, ticket: u64, number: usize, order: Ordering) -> u64 {
        self.memory.load(self.word(ticket, number), order)
    }

    /// The next request, if a kernel has stored it whole. Its slot, and those of the requests that are joined to it, are free from then on.
    pub fn take(&mut self) -> Option<(u64, Request)> {
        let ticket = self.next;
        if self.load(ticket, 7, Ordering::Acquire) != ticket + 1 {
            return None;
        }
        let word = |number: usize| self.load(ticket, number, Ordering::Relaxed);
        let head = word(0);
        let request = Request {
            operation: Operation::ALL.get((head & 0xff) as usize).copied(),
            width: (head >> 8) as u8,
            more: ((head >> 16) as u8).min(LANES as u8 - 1),
            pe: (head >> 32) as u32,
            remote: word(1),
            local: word(2),
            bytes: word(3),
            value: word(4),
            compare: word(5),
        };
        self.values[0] = request.value;
        if request.operation == Some(Operation::PutValue) {
            for number in 1..=usize::from(request.more) {
                self.values[number] = self.load(ticket + number as u64, 4, Ordering::Relaxed);
            }
        }
        self.next += 1 + u64::from(request.more);
        self.memory
            .store(HostRing::TAKEN, self.next, Ordering::Release);
        Some((ticket, request))
    }

    /// Goes on with ticket `next`: kernels whose waits were ended have left tickets without a request, and answers that nobody
    /// reads. No kernel uses the ring meanwhile.
    pub fn restart(&mut self, next: u64) {
        // Slots stay: no number of a request in them is that of a later one.
        for place in 0..self.slots {
            self.memory
                .store(self.answer_place(place) + 8, 0, Ordering::Relaxed);
        }
        self.next = next;
        self.memory.store(HostRing::TAKEN, next, Ordering::Release);
        self.free_sources(next);
        self.complete(next);
    }

    /// The operands of the request that was taken last: its own, and those of puts of values that are joined to it.
    #[must_use]
    pub fn values(&self) -> &[u64; LANES] {
        &self.values
    }

    /// The number of requests that were taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.next
    }

    /// Tells that the sources of the first `count` requests may be changed.
    pub fn free_sources(&self, count: u64) {
        self.memory
            .store(HostRing::SOURCES_READ, count, Ordering::Release);
    }

    /// Tells that the first `count` requests are complete.
    pub fn complete(&self, count: u64) {
        self.memory.store(HostRing::DONE, count, Ordering::Release);
    }

    /// Answers a request. False while its place has an answer that its kernel has not read yet.
    #[must_use]
    pub fn answer(&self, ticket: u64, value: u64) -> bool {
        let answer = self.answer_place(ticket);
        if self.memory.load(answer + 8, Ordering::Acquire) != 0 {
            return false;
        }
        self.memory.store(answer, value, Ordering::Relaxed);
        self.memory.store(answer + 8, ticket + 1, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeroed memory of a ring.
    #[repr(align(64))]
    struct Memory([u64; HostRing::BYTES / 8]);

    impl Memory {
        fn start(&mut self) -> NonNull<u8> {
            NonNull::from(&mut self.0).cast()
        }
    }

    #[test]
    fn requests_are_taken_once_in_order_over_several_laps() {
        let mut memory = Box::new(Memory([0; HostRing::BYTES / 8]));
        // SAFETY: the memory lives until the end, and this test is its kernel.
        let mut ring = unsafe { HostRing::new(memory.start()) };
        assert_eq!(ring.take(), None);
        for ticket in 0..3 * SLOTS {
            let slot = HostRing::SLOTS + (ticket % SLOTS) as usize * 64;
            let words = [11 | 8 << 8 | 3 << 32, 16, 0x1000, 8, ticket, 7];
            for (number, word) in words.into_iter().enumerate() {
                ring.memory
                    .word(slot + 8 * number)
                    .store(word, Ordering::Relaxed);
            }
            assert_eq!(ring.take(), None);
            ring.memory
                .word(slot + 56)
                .store(ticket + 1, Ordering::Release);
            let (taken, request) = ring.take().unwrap();
            assert_eq!(taken, ticket);
            assert_eq!(
                request,
                Request {
                    operation: Some(Operation::FetchAdd),
                    width: 8,
                    more: 0,
                    pe: 3,
                    remote: 16,
                    local: 0x1000,
                    bytes: 8,
                    value: ticket,
                    compare: 7
                }
            );
            assert_eq!(
                ring.memory.word(HostRing::TAKEN).load(Ordering::Relaxed),
                ticket + 1
            );
        }
    }

    #[test]
    fn joined_requests_are_one_with_the_values_of_all() {
        let mut memory = Box::new(Memory([0; HostRing::BYTES / 8]));
        // SAFETY: as above.
        let mut ring = unsafe { HostRing::new(memory.start()) };
        // The group's slots go over the end of the ring.
        ring.next = SLOTS - 2;
        let store = |ring: &HostRing, ticket, number, value| {
            let offset = ring.word(ticket, number);
            ring.memory.store(offset, value, Ordering::Release);
        };
        let ticket = ring.next;
        for lane in 0..5_u64 {
            store(&ring, ticket + lane, 4, 100 + lane);
        }
        for (operation, more) in [(1_u64, 4_u64), (3, 31)] {
            let ticket = ring.next;
            store(&ring, ticket, 0, operation | 8 << 8 | more << 16);
            assert_eq!(ring.take(), None);
            store(&ring, ticket, 7, ticket + 1);
            let (taken, request) = ring.take().unwrap();
            assert_eq!((taken, u64::from(request.more)), (ticket, more));
            assert_eq!(ring.taken(), ticket + 1 + more);
            if operation == 1 {
                assert_eq!(ring.values()[..5], [100, 101, 102, 103, 104]);
            }
        }
        // A kernel's number is not believed.
        let ticket = ring.next;
        store(&ring, ticket, 0, 1 | 255 << 16);
        store(&ring, ticket, 7, ticket + 1);
        assert_eq!(usize::from(ring.take().unwrap().1.more), LANES - 1);
    }

    #[test]
    fn an_answer_waits_until_the_one_before_it_was_read() {
        let mut memory = Box::new(Memory([0; HostRing::BYTES / 8]));
        // SAFETY: as above.
        let ring = unsafe { HostRing::new(memory.start()) };
        assert!(ring.answer(5, 77));
        assert!(!ring.answer(5 + SLOTS, 78));
        let place = HostRing::answers(SLOTS) + 5 * 16;
        assert_eq!(ring.memory.word(place).load(Ordering::Relaxed), 77);
        assert_eq!(ring.memory.word(place + 8).load(Ordering::Relaxed), 6);
        ring.memory.word(place + 8).store(0, Ordering::Relaxed);
        assert!(ring.answer(5 + SLOTS, 78));
    }

    #[test]
    fn the_host_accesses_as_many_words_as_the_page_says() {
        let mut memory = Box::new(Memory([0; HostRing::BYTES / 8]));
        // SAFETY: as above.
        let mut ring = unsafe { HostRing::new(memory.start()) };
        let accesses = |ring: &HostRing| ring.memory.accesses.swap(0, Ordering::Relaxed);
        assert_eq!((ring.take(), accesses(&ring)), (None, 1));
        let last = HostRing::SLOTS + 56;
        ring.memory.word(last).store(1, Ordering::Release);
        accesses(&ring);
        assert!(ring.take().is_some());
        let taken = accesses(&ring);
        assert!(ring.answer(0, 5));
        let answered = accesses(&ring);
        ring.free_sources(1);
        let freed = accesses(&ring);
        ring.complete(1);
        let words = format!(
            "takes a request with {taken} accesses, answers it with {answered}, frees the sources of all so far with {freed}, and \
             completes them with {}",
            accesses(&ring)
        );
        let page = include_str!("../../../docs/measurements.md");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(&words), "docs/measurements.md lacks: {words}");
    }

    /// The numbers of the header's enumeration.
    #[test]
    fn operations_are_the_headers() {
        let names = crate::HEADER
            .lines()
            .filter_map(|line| line.trim().strip_prefix("OP_")?.strip_suffix(','))
            .map(|name| name.replace('_', "").to_lowercase());
        let ours = Operation::ALL.map(|operation| format!("{operation:?}").to_lowercase());
        assert!(names.eq(ours));
    }
}
