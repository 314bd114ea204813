//! Handles of symmetric objects.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use bytemuck::Pod;
use oxshmem_collectives::elements::Elements;
use oxshmem_engine::memory::target::{NIC, Target};
use oxshmem_transport::MemoryKind;

use crate::error::{Error, Result};

/// A symmetric object: `len` elements of `T` at the same place of every PE's symmetric heap (M2).
///
/// It names a place, and is no pointer. It is valid only in the [`World`](crate::World) that
/// made it (M6), which is one PE's: every other world refuses it as foreign. Each call checks that,
/// and that its range fits. Memory stays mapped until the world ends, so a handle kept after `free`
/// reads and writes other objects' bytes at worst, never outside the heap. Calls for which its age matters
/// (free, collectives, checked mode) detect that.
pub struct Sym<T> {
    /// The world's tag, never 0, in the low half, and the allocation's generation in the high half, which
    /// distinguishes a live block from a freed one at the same offset. One word, since CPUs are slow to load in one
    /// access a value stored in parts.
    identity: u64,
    /// Bytes from the start of the heap. Invariant: a multiple of `T`'s alignment, and
    /// `offset + len * size_of::<T>()` is at most the heap's limit.
    offset: u64,
    len: usize,
    marker: PhantomData<fn() -> T>,
}

/// The start of a symmetric object, which fits two registers; with the length it is the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectStart {
    identity: u64,
    offset: u64,
}

impl<T> Clone for Sym<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Sym<T> {}
impl<T> PartialEq for Sym<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.identity, self.offset, self.len) == (other.identity, other.offset, other.len)
    }
}
impl<T> Eq for Sym<T> {}

impl<T> fmt::Debug for Sym<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sym")
            .field("type", &std::any::type_name::<T>())
            .field("world", &(self.identity as u32))
            .field("generation", &((self.identity >> 32) as u32))
            .field("offset", &self.offset)
            .field("len", &self.len)
            .finish()
    }
}

impl<T: Pod> Sym<T> {
    /// The caller upholds the invariant stated at `offset`.
    pub(crate) fn new(tag: u32, generation: u32, offset: u64, len: usize) -> Self {
        debug_assert_eq!(offset % align_of::<T>() as u64, 0);
        Sym {
            identity: (generation as u64) << 32 | tag as u64,
            offset,
            len,
            marker: PhantomData,
        }
    }

    /// The object's start, without its length.
    #[inline(always)]
    pub(crate) const fn start(self) -> ObjectStart {
        ObjectStart {
            identity: self.identity,
            offset: self.offset,
        }
    }

    /// The object that begins at this [`start`](Self::start) and has this length.
    #[inline(always)]
    pub(crate) const fn starting_at(start: ObjectStart, len: usize) -> Self {
        Sym {
            identity: start.identity,
            offset: start.offset,
            len,
            marker: PhantomData,
        }
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes from the start of the symmetric heap, the same on every PE.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) const fn tag(&self) -> u32 {
        self.identity as u32
    }

    /// The kind of this object's memory in the world with that tag, if it is that world's. Worlds' tags are even;
    /// the next odd one is for their GPU memory.
    #[inline]
    pub(crate) fn kind_in(&self, world: u32) -> Option<MemoryKind> {
        match self.tag() {
            tag if tag == world => Some(MemoryKind::Host),
            tag if tag == world | 1 => Some(MemoryKind::Cuda),
            _ => None,
        }
    }

    pub(crate) const fn generation(&self) -> u32 {
        (self.identity >> 32) as u32
    }

    /// Whether it lies in GPU memory: worlds' own tags are even, those of their GPU memory odd.
    pub(crate) const fn is_on_gpu(&self) -> bool {
        self.tag() & 1 == 1
    }

    /// Whether it begins where another does.
    pub(crate) const fn is_where<U: Pod>(&self, other: Sym<U>) -> bool {
        self.tag() == other.tag() && self.offset == other.offset
    }

    /// The same object, with the mark that NICs perform its atomics of 64 bits (M29).
    pub(crate) fn on_nic(self) -> Self {
        Sym {
            identity: self.identity | (NIC as u64) << 32,
            ..self
        }
    }

    /// Whether NICs perform atomics of 64 bits on it (M29).
    #[inline(always)]
    pub(crate) const fn is_nic(&self) -> bool {
        self.generation() & NIC != 0
    }

    pub(crate) const fn bytes(&self) -> usize {
        // No overflow: the invariant bounds it by the heap's limit.
        self.len * size_of::<T>()
    }

    /// The same object as bytes.
    #[inline(always)]
    #[must_use]
    pub const fn to_bytes(self) -> Sym<u8> {
        Sym {
            identity: self.identity,
            offset: self.offset,
            len: self.bytes(),
            marker: PhantomData,
        }
    }

    /// The element at `index`, as an object of one element (M5).
    #[inline(always)]
    #[track_caller]
    pub fn at(&self, index: usize) -> Result<Self> {
        if index >= self.len {
            return Err(outside("at", index, index.saturating_add(1), self.len));
        }
        Ok(Sym {
            offset: self.offset + (index * size_of::<T>()) as u64,
            len: 1,
            ..*self
        })
    }

    /// The elements of `range`, as an object of their own (M5).
    #[inline]
    #[track_caller]
    pub fn range(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let start = match range.start_bound() {
            Bound::Included(&s) => s,
            Bound::Excluded(&s) => s.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&e) => e.saturating_add(1),
            Bound::Excluded(&e) => e,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            return Err(outside("range", start, end, self.len));
        }
        let offset = self.offset + (start * size_of::<T>()) as u64;
        Ok(Sym {
            offset,
            len: end - start,
            ..*self
        })
    }

    /// The same bytes as elements of another type. Refused where the place is misaligned for `U`
    /// (M38) or the bytes are no whole number of `U`s.
    #[track_caller]
    pub fn cast<U: Pod>(&self) -> Result<Sym<U>> {
        if !self.offset.is_multiple_of(align_of::<U>() as u64) {
            return Err(Error::Misaligned {
                call: "cast",
                offset: self.offset,
                align: align_of::<U>(),
            }
            .here());
        }
        let (bytes, size) = (self.bytes(), size_of::<U>());
        if size == 0 || bytes % size != 0 {
            return Err(Error::Argument {
                call: "cast",
                what: format!("{bytes} bytes are no whole number of elements of {size} bytes"),
            }
            .here());
        }
        Ok(Sym {
            identity: self.identity,
            offset: self.offset,
            len: bytes / size,
            marker: PhantomData,
        })
    }
}

/// The bytes of an object. The engine's target has the mark for NICs' atomics only if the object's words have 64 bits:
/// narrower ones stay with the CPU (M29).
impl<T: Pod> From<Sym<T>> for Target {
    #[inline(always)]
    fn from(sym: Sym<T>) -> Target {
        let identity = if size_of::<T>() == size_of::<u64>() {
            sym.identity
        } else {
            sym.identity & !((NIC as u64) << 32)
        };
        // SAFETY: the invariant of `offset`.
        unsafe { Target::new(identity, sym.offset, sym.bytes()) }
    }
}

/// The elements as collective calls name them.
impl<T: Pod> From<Sym<T>> for Elements<T> {
    #[inline(always)]
    fn from(sym: Sym<T>) -> Elements<T> {
        // SAFETY: the invariant of `offset`.
        let target = unsafe { Target::new(sym.identity, sym.offset, sym.bytes()) };
        Elements::of_len(target, sym.len)
    }
}

#[cold]
#[track_caller]
fn outside(call: &'static str, start: usize, end: usize, len: usize) -> Error {
    let outside = Error::OutOfRange {
        call,
        start,
        end,
        len,
    };
    outside.here()
}
