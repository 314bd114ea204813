//! Typed targets: elements at the same place of every PE's symmetric memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use bytemuck::Pod;
use oxshmem_engine::memory::target::Target;

use crate::error::{Error, Result};

/// `len` elements of `T` at the same place of every PE's symmetric memory. They lie within the heap's limit, as a
/// [`Target`] does, and are aligned for `T`.
pub struct Elements<T> {
    target: Target,
    /// Their number: elements without a size have one, too.
    len: usize,
    marker: PhantomData<fn() -> T>,
}

impl<T> Clone for Elements<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Elements<T> {}

impl<T> fmt::Debug for Elements<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

impl<T> From<Elements<T>> for Target {
    #[inline(always)]
    fn from(elements: Elements<T>) -> Target {
        elements.target
    }
}

#[cfg(test)]
impl Elements<u8> {
    /// Bytes for tests that access none of them.
    pub(crate) fn unaccessed(offset: u64, len: usize) -> Self {
        // SAFETY: nothing accesses them.
        Elements::new(unsafe { Target::new(2, offset, len) })
    }
}

impl<T: Pod> Elements<T> {
    /// The whole elements of a target. Debug builds check that it is aligned for `T`.
    #[inline(always)]
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self::of_len(target, target.len() / size_of::<T>().max(1))
    }

    /// `len` elements, which have as many bytes as the target. Debug builds check both.
    #[inline(always)]
    #[must_use]
    pub fn of_len(target: Target, len: usize) -> Self {
        debug_assert!(target.offset().is_multiple_of(align_of::<T>() as u64));
        debug_assert!(len.wrapping_mul(size_of::<T>()) <= target.len());
        Elements {
            target,
            len,
            marker: PhantomData,
        }
    }

    /// Number of elements.
    #[inline(always)]
    #[must_use]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Number of bytes.
    #[inline(always)]
    #[must_use]
    pub fn bytes(self) -> usize {
        self.target.len()
    }

    /// Bytes from the start of the heap.
    #[inline(always)]
    #[must_use]
    pub fn offset(self) -> u64 {
        self.target.offset()
    }

    /// The tag of its world's heap.
    #[inline]
    #[must_use]
    pub fn tag(self) -> u32 {
        self.target.tag()
    }

    /// The generation of its allocation.
    #[inline]
    #[must_use]
    pub fn generation(self) -> u32 {
        self.target.generation()
    }

    /// Whether it lies in GPU memory: worlds' own tags are even, those of their GPU memory odd.
    #[inline]
    #[must_use]
    pub fn is_on_gpu(self) -> bool {
        self.target.tag() & 1 == 1
    }

    /// Whether it begins where another does.
    #[inline]
    #[must_use]
    pub fn is_where<U: Pod>(self, other: Elements<U>) -> bool {
        self.tag() == other.tag() && self.offset() == other.offset()
    }

    /// The element at `index`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if there is none.
    #[inline(always)]
    pub fn at(self, index: usize) -> Result<Self> {
        self.part("at", index, 1)
    }

    /// The elements of `range`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if there are not as many.
    #[inline]
    pub fn range(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len(),
        };
        match end.checked_sub(start) {
            Some(len) => self.part("range", start, len),
            None => Err(self.outside("range", start, end)),
        }
    }

    #[inline(always)]
    fn part(self, call: &'static str, start: usize, len: usize) -> Result<Self> {
        let fits = start <= self.len && len <= self.len - start;
        let size = size_of::<T>();
        // No overflow: all elements have no more bytes than the target.
        match fits
            .then(|| self.target.part(start * size, len * size))
            .flatten()
        {
            Some(target) => Ok(Elements {
                target,
                len,
                ..self
            }),
            None => Err(self.outside(call, start, start.saturating_add(len))),
        }
    }

    #[cold]
    fn outside(self, call: &'static str, start: usize, end: usize) -> Error {
        Error::OutOfRange {
            call,
            start,
            end,
            len: self.len(),
        }
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] where the place is misaligned for `U`, or the bytes are no whole number of `U`s.
    #[inline]
    pub fn cast<U: Pod>(self) -> Result<Elements<U>> {
        let size = size_of::<U>();
        let is_aligned = self.offset().is_multiple_of(align_of::<U>() as u64);
        if !is_aligned || size == 0 || !self.bytes().is_multiple_of(size) {
            return Err(Error::Argument {
                call: "cast",
                what: format!(
                    "the {} bytes at offset {} are no whole number of aligned elements of {size} bytes",
                    self.bytes(),
                    self.offset()
                ),
            });
        }
        Ok(Elements::new(self.target))
    }
}
