//! The cut of a heap into extents, which are committed and registered one at a time, when the heap first reaches
//! into them: for transports that pin memory, and for memory that cannot be reserved twice. Each extent doubles the heap,
//! but a GPU's only up to a size that is small beside its memory.

/// The most extents of a heap.
pub(crate) const MAX_EXTENTS: u32 = 16;
/// The least size of the first extent, in bytes: larger than any page.
const FIRST_EXTENT: u64 = 4 << 20;

/// The size to which a GPU's extents grow, in bytes: not more than this is committed in vain.
const MAX_CAPPED_EXTENT: u64 = 512 << 20;
/// About the most extents of that size of a GPU's heap; those of a larger heap are larger.
const MAX_CAPPED_EXTENTS: u64 = 256;

/// The cut of a heap: extent 0 has `first` bytes, every other one as many as all those
/// before it together, up to `steps` of them; the extents behind those are all as large as the last of
/// them, and the last is cut off at the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    first: u64,
    /// How many extents, behind the first, have doubled.
    steps: u32,
    limit: u64,
}

impl Extents {
    /// One extent, for memory that costs nothing to register whole.
    pub fn whole(limit: u64) -> Self {
        Extents {
            first: limit.max(1),
            steps: 0,
            limit,
        }
    }

    /// At most [`MAX_EXTENTS`], of whole pages.
    pub fn doubling(limit: u64) -> Self {
        let least = limit.div_ceil(1 << (MAX_EXTENTS - 1));
        let first = least.next_multiple_of(FIRST_EXTENT).max(FIRST_EXTENT);
        Extents {
            first,
            steps: MAX_EXTENTS,
            limit,
        }
    }

    /// Extents of which none is larger than a GPU can spare.
    pub fn capped(limit: u64) -> Self {
        let largest = (limit / MAX_CAPPED_EXTENTS)
            .next_power_of_two()
            .max(MAX_CAPPED_EXTENT);
        // Extent `steps` has `first << (steps - 1)` bytes.
        Extents {
            first: FIRST_EXTENT,
            steps: (largest / FIRST_EXTENT).ilog2() + 1,
            limit,
        }
    }

    /// The end of the extents that double.
    #[inline]
    fn doubled(self) -> u64 {
        self.first.checked_shl(self.steps).unwrap_or(u64::MAX)
    }

    /// Bytes of each extent behind those.
    #[inline]
    fn largest(self) -> u64 {
        self.first << self.steps.saturating_sub(1)
    }

    /// The extent in which a byte lies.
    #[inline]
    pub fn index(self, offset: u64) -> u32 {
        if offset < self.first {
            return 0;
        }
        if offset < self.doubled() {
            return (offset / self.first).ilog2() + 1;
        }
        self.steps + 1 + ((offset - self.doubled()) / self.largest()) as u32
    }

    /// Bytes of all extents.
    pub(crate) fn limit(self) -> u64 {
        self.limit
    }

    /// The start of an extent.
    #[inline]
    pub fn start(self, index: u32) -> u64 {
        match index {
            0 => 0,
            index if index <= self.steps + 1 => self.first << (index - 1),
            index => self.doubled() + u64::from(index - self.steps - 1) * self.largest(),
        }
    }

    /// The end of an extent.
    #[inline]
    pub fn end(self, index: u32) -> u64 {
        self.start(index + 1).min(self.limit)
    }

    /// The number of extents that hold the first `bytes`.
    pub fn count(self, bytes: u64) -> u32 {
        bytes.checked_sub(1).map_or(0, |last| self.index(last) + 1)
    }

    /// The extent in which a byte lies, the byte's offset in it, and how many bytes it has from there.
    #[inline(always)]
    pub(crate) fn locate(&self, offset: u64) -> (u32, u64, u64) {
        if offset < self.first {
            (0, offset, self.first.min(self.limit) - offset)
        } else {
            self.locate_further(offset)
        }
    }

    fn locate_further(&self, offset: u64) -> (u32, u64, u64) {
        let index = self.index(offset);
        (index, offset - self.start(index), self.end(index) - offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn extents_double_and_the_last_is_cut_off() {
        let cut = Extents::doubling((20 << 20) + 4096);
        let ends: Vec<u64> = (0..cut.count(u64::MAX >> 8 & ((20 << 20) + 4096)))
            .map(|k| cut.end(k))
            .collect();
        assert_eq!(ends, [4 << 20, 8 << 20, 16 << 20, (20 << 20) + 4096]);
        assert_eq!(cut.locate(0), ((0), 0, 4 << 20));
        assert_eq!(cut.locate(4 << 20), ((1), 0, 4 << 20));
        assert_eq!(cut.locate((16 << 20) + 5), ((3), 5, (4 << 20) + 4096 - 5));
        assert_eq!(
            Extents::whole(1 << 30).locate(77),
            ((0), 77, (1 << 30) - 77)
        );
        assert_eq!(cut.count(0), 0);
    }

    #[test]
    fn a_gpus_extents_stay_capped() {
        let cut = Extents::capped(80 << 30);
        let size = |k: u32| (cut.end(k) - cut.start(k)) >> 20;
        let sizes: Vec<u64> = (0..12).map(size).collect();
        assert_eq!(sizes, [4, 4, 8, 16, 32, 64, 128, 256, 512, 512, 512, 512]);
        assert_eq!(cut.count(80 << 30), 8 + 159);
        // A small one has the same extents as one that only doubles.
        let (small, doubling) = (Extents::capped(64 << 20), Extents::doubling(64 << 20));
        for k in 0..small.count(64 << 20) {
            assert_eq!(small.end(k), doubling.end(k));
        }
    }

    proptest! {
        #[test]
        fn extents_cover_the_heap_without_gap_and_are_few(
            limit in prop_oneof![1_u64..1 << 26, 1_u64..1 << 46], capped: bool, at: u64
        ) {
            let (cut, most) = if capped {
                (Extents::capped(limit), 2 * MAX_CAPPED_EXTENTS as u32 + MAX_EXTENTS)
            } else {
                (Extents::doubling(limit), MAX_EXTENTS)
            };
            let count = cut.count(limit);
            prop_assert!((1..=most).contains(&count));
            prop_assert_eq!(cut.start(0), 0);
            for k in 1..count {
                prop_assert_eq!(cut.start(k), cut.end(k - 1));
                prop_assert!(cut.start(k).is_multiple_of(4096));
            }
            prop_assert_eq!(cut.end(count - 1), limit);
            let at = at % limit;
            let (extent, within, rest) = cut.locate(at);
            prop_assert_eq!(cut.start(extent) + within, at);
            prop_assert_eq!(at + rest, cut.end(extent));
            prop_assert!(rest > 0);
            prop_assert!(cut.start(extent) <= at && at < cut.end(extent));
        }
    }
}
