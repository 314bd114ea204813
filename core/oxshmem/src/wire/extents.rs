//! A heap in pieces of doubling size, for transports that pin what they register: each piece is
//! registered when the heap first reaches into it.

/// The most pieces of a heap.
pub(crate) const MOST: u32 = 16;
/// The least size of the first piece, in bytes: larger than any page.
const FIRST: u64 = 4 << 20;

/// How a heap is cut: piece 0 has [`first`](Self::first) bytes, every other one as many as all those
/// before it together, and the last is cut off at the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extents {
    first: u64,
    limit: u64,
}

impl Extents {
    /// One piece, for what costs nothing to register whole.
    pub(crate) fn whole(limit: u64) -> Self {
        Extents {
            first: limit.max(1),
            limit,
        }
    }

    /// At most [`MOST`] pieces, of whole pages.
    pub(crate) fn doubling(limit: u64) -> Self {
        let least = limit.div_ceil(1 << (MOST - 1));
        let first = least.next_multiple_of(FIRST).max(FIRST);
        Extents { first, limit }
    }

    /// The piece in which a byte lies.
    #[inline]
    pub(crate) fn index(self, offset: u64) -> u32 {
        if offset < self.first {
            return 0;
        }
        (offset / self.first).ilog2() + 1
    }

    /// Where a piece begins.
    #[inline]
    pub(crate) fn start(self, index: u32) -> u64 {
        match index {
            0 => 0,
            index => self.first << (index - 1),
        }
    }

    /// Where a piece ends.
    #[inline]
    pub(crate) fn end(self, index: u32) -> u64 {
        (self.first << index).min(self.limit)
    }

    /// How many pieces hold the first `bytes`.
    pub(crate) fn count(self, bytes: u64) -> u32 {
        bytes.checked_sub(1).map_or(0, |last| self.index(last) + 1)
    }

    /// The piece in which a byte lies, the byte's place in it, and how many bytes it has from there.
    #[inline]
    pub(crate) fn locate(self, offset: u64) -> (u32, u64, u64) {
        let index = self.index(offset);
        (index, offset - self.start(index), self.end(index) - offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_double_and_the_last_is_cut_off() {
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

    proptest! {
        #[test]
        fn pieces_cover_the_heap_without_gap_and_are_few(
            limit in prop_oneof![1_u64..1 << 26, 1_u64..1 << 46], at: u64
        ) {
            let cut = Extents::doubling(limit);
            let count = cut.count(limit);
            prop_assert!((1..=MOST).contains(&count));
            prop_assert_eq!(cut.start(0), 0);
            for k in 1..count {
                prop_assert_eq!(cut.start(k), cut.end(k - 1));
                prop_assert!(cut.start(k).is_multiple_of(4096));
            }
            prop_assert_eq!(cut.end(count - 1), limit);
            let at = at % limit;
            let (piece, within, rest) = cut.locate(at);
            prop_assert_eq!(cut.start(piece) + within, at);
            prop_assert_eq!(at + rest, cut.end(piece));
            prop_assert!(rest > 0);
        }
    }
}
