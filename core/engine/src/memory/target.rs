//! Targets: ranges of symmetric memory, without a type.

use oxshmem_transport::MemoryKind;

/// Bytes at the same place of every PE's symmetric memory, of one world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The world's tag, never 0, in the low half; the allocation's generation in the high half.
    identity: u64,
    /// Bytes from the start of the heap. Invariant: `offset + len` is at most the heap's limit.
    offset: u64,
    len: usize,
}

/// The bit of the generation for words whose atomics the NIC performs (M29).
pub const NIC: u32 = 1 << 31;
/// The generation of memory that is never freed: the library's own words.
pub const OWN: u32 = 0;

impl Target {
    /// A range of the heap of the world with the tag in `identity`: its low half. The high half is the generation.
    ///
    /// # Safety
    ///
    /// `offset + len` is at most the limit of that heap on every PE: the engine accesses these bytes unchecked.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn new(identity: u64, offset: u64, len: usize) -> Self {
        Target {
            identity,
            offset,
            len,
        }
    }

    /// Bytes from the start of the heap.
    #[inline(always)]
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// Number of bytes.
    #[inline(always)]
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The tag of its world's heap.
    #[inline(always)]
    #[must_use]
    pub const fn tag(self) -> u32 {
        self.identity as u32
    }

    /// The generation of its allocation.
    #[inline(always)]
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.identity >> 32) as u32
    }

    /// Whether NICs perform the atomics on it (M29).
    #[inline(always)]
    #[must_use]
    pub const fn is_nic(self) -> bool {
        self.generation() & NIC != 0
    }

    /// The kind of its memory in the world with that tag, if it is that world's. Worlds' tags are even; the next odd
    /// one is for their GPU memory.
    #[inline]
    #[must_use]
    pub const fn kind_in(self, world: u32) -> Option<MemoryKind> {
        let tag = self.tag();
        if tag == world {
            Some(MemoryKind::Host)
        } else if tag == world | 1 {
            Some(MemoryKind::Cuda)
        } else {
            None
        }
    }

    /// The `len` bytes from `at` on, if it has as many.
    #[inline]
    #[must_use]
    pub const fn part(self, at: usize, len: usize) -> Option<Target> {
        if at > self.len || len > self.len - at {
            return None;
        }
        Some(Target {
            offset: self.offset + at as u64,
            len,
            ..self
        })
    }
}
