//! The allocator of symmetric blocks. Its metadata lies outside the heap, and all PEs' allocators evolve alike.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};

/// Blocks start at multiples of this, and their sizes are multiples of it.
const GRAIN: usize = 16;

/// A block of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// First byte, from the heap's start.
    pub offset: usize,
    /// Bytes: what was asked for, rounded up to a multiple of 16.
    pub size: usize,
}

/// Decides which bytes of a heap belong to whom. It never touches them: they may be a GPU's.
///
/// Best fit, the lowest such block of equal ones, and free neighbours always joined. The state is a
/// function of the blocks in use alone, so equal sequences of calls give equal answers on every PE
/// (M9), and freeing a block restores the state before it was allocated, exactly (M13):
///
/// ```
/// # use oxshmem_heap::Allocator;
/// let mut heap = Allocator::new(1 << 20);
/// let before = heap.clone();
/// let block = heap.allocate(100, 64).unwrap();
/// heap.free(block.offset).unwrap();
/// assert_eq!(heap, before);
/// ```
///
/// Each call takes time logarithmic in the number of blocks; an alignment above 16 adds a look at
/// each free block that is large enough but badly placed, up to the first that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    capacity: usize,
    /// Blocks in use: offset to size.
    used: BTreeMap<usize, usize>,
    /// Free blocks: offset to size. No two touch.
    free: BTreeMap<usize, usize>,
    /// The same free blocks, by (size, offset).
    by_size: BTreeSet<(usize, usize)>,
}

impl Allocator {
    /// An empty heap of `capacity` bytes (rounded down to a multiple of 16).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity - capacity % GRAIN;
        let mut heap = Allocator {
            capacity,
            used: BTreeMap::new(),
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
        };
        heap.insert_free(0, capacity);
        heap
    }

    /// Takes a block of at least `size` bytes at a multiple of `align` (and of 16). None, and
    /// nothing changed, if there is no room, if `size` is 0, or if `align` is not a power of two.
    #[must_use]
    pub fn allocate(&mut self, size: usize, align: usize) -> Option<Block> {
        if size == 0 || !align.is_power_of_two() {
            return None;
        }
        let size = size.checked_next_multiple_of(GRAIN)?;
        let align = align.max(GRAIN);
        let (start, length, offset) =
            self.by_size
                .range((size, 0)..)
                .find_map(|&(length, start)| {
                    let offset = start.checked_next_multiple_of(align)?;
                    let fits = offset.checked_add(size)? <= start + length;
                    fits.then_some((start, length, offset))
                })?;
        self.remove_free(start, length);
        self.insert_free(start, offset - start);
        self.insert_free(offset + size, start + length - (offset + size));
        self.used.insert(offset, size);
        Some(Block { offset, size })
    }

    /// Gives a block back. Fails, and changes nothing, if no block in use starts there.
    pub fn free(&mut self, offset: usize) -> Result<()> {
        let size = self
            .used
            .remove(&offset)
            .ok_or(Error::NotAllocated { offset })?;
        self.give(offset, size);
        Ok(())
    }

    /// Makes a block larger or smaller where it is; its size becomes `new_size` rounded up to a
    /// multiple of 16. False, and nothing changed, if the bytes after it are not free, if no block
    /// starts there, or if `new_size` is 0.
    #[must_use]
    pub fn resize_in_place(&mut self, offset: usize, new_size: usize) -> bool {
        let Some(&size) = self.used.get(&offset) else {
            return false;
        };
        let Some(new_size) = new_size.checked_next_multiple_of(GRAIN) else {
            return false;
        };
        if new_size == 0 {
            return false;
        }
        if new_size > size {
            let next = offset + size;
            let Some(&room) = self.free.get(&next) else {
                return false;
            };
            let more = new_size - size;
            if more > room {
                return false;
            }
            self.remove_free(next, room);
            self.insert_free(next + more, room - more);
        } else if new_size < size {
            self.give(offset + new_size, size - new_size);
        }
        self.used.insert(offset, new_size);
        true
    }

    /// The block in use that starts at `offset`.
    #[must_use]
    pub fn block_at(&self, offset: usize) -> Option<Block> {
        self.used.get(&offset).map(|&size| Block { offset, size })
    }

    /// The block in use that the byte at `offset` belongs to.
    #[must_use]
    pub fn block_around(&self, offset: usize) -> Option<Block> {
        let (&start, &size) = self.used.range(..=offset).next_back()?;
        (offset - start < size).then_some(Block {
            offset: start,
            size,
        })
    }

    /// The blocks in use, from the lowest.
    pub fn blocks(&self) -> impl Iterator<Item = Block> {
        self.used
            .iter()
            .map(|(&offset, &size)| Block { offset, size })
    }

    /// Where the last block in use ends: the bytes that must be committed.
    #[must_use]
    pub fn high_water(&self) -> usize {
        self.used
            .last_key_value()
            .map_or(0, |(&offset, &size)| offset + size)
    }

    /// The heap's size in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The largest block that could be had now, in bytes.
    #[must_use]
    pub fn largest_free(&self) -> usize {
        self.by_size.last().map_or(0, |&(size, _)| size)
    }

    /// Bytes in no block.
    #[must_use]
    pub fn unused(&self) -> usize {
        self.free.values().sum()
    }

    /// Adds a range to the free blocks, joined with its free neighbours.
    fn give(&mut self, mut offset: usize, mut size: usize) {
        if let Some((&before, &length)) = self.free.range(..offset).next_back()
            && before + length == offset
        {
            self.remove_free(before, length);
            offset = before;
            size += length;
        }
        if let Some(&after) = self.free.get(&(offset + size)) {
            self.remove_free(offset + size, after);
            size += after;
        }
        self.insert_free(offset, size);
    }

    fn insert_free(&mut self, offset: usize, size: usize) {
        if size > 0 {
            self.free.insert(offset, size);
            self.by_size.insert((size, offset));
        }
    }

    fn remove_free(&mut self, offset: usize, size: usize) {
        self.free.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Call {
        Allocate(usize, u32),
        /// Frees the nth block in use.
        Free(usize),
        Resize(usize, usize),
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let size = prop_oneof![1usize..200, 1usize..5000, Just(0), Just(usize::MAX)];
        let call = prop_oneof![
            4 => (size.clone(), 0u32..13).prop_map(|(size, align)| Call::Allocate(size, align)),
            3 => (0usize..1000).prop_map(Call::Free),
            1 => ((0usize..1000), size).prop_map(|(nth, size)| Call::Resize(nth, size)),
        ];
        prop::collection::vec(call, 0..150)
    }

    fn nth(heap: &Allocator, nth: usize) -> Option<Block> {
        heap.blocks().nth(nth % heap.used.len().max(1))
    }

    /// Carries out one call and checks what it alone promises.
    fn carry_out(heap: &mut Allocator, call: &Call) {
        let before = heap.clone();
        match *call {
            Call::Allocate(size, align) => match heap.allocate(size, 1 << align) {
                Some(block) => {
                    assert!(block.size >= size && block.size - size < GRAIN);
                    assert_eq!(block.offset % (1usize << align).max(GRAIN), 0);
                    let mut back = heap.clone();
                    back.free(block.offset).unwrap();
                    assert_eq!(back, before, "m13: a roll-back must restore the heap");
                }
                None => {
                    assert_eq!(*heap, before, "m13: a failed call must change nothing");
                    let room = heap.largest_free();
                    assert!(
                        size == 0 || size > room || align > 4,
                        "{size} bytes refused: {room}"
                    );
                }
            },
            Call::Free(n) => match nth(heap, n) {
                Some(block) => heap.free(block.offset).unwrap(),
                None => assert!(heap.free(0).is_err()),
            },
            Call::Resize(n, size) => {
                let Some(block) = nth(heap, n) else { return };
                if heap.resize_in_place(block.offset, size) {
                    assert!(heap.block_at(block.offset).unwrap().size >= size);
                    assert!(heap.resize_in_place(block.offset, block.size));
                    assert_eq!(*heap, before, "m13: a roll-back must restore the heap");
                    assert!(heap.resize_in_place(block.offset, size));
                } else {
                    assert_eq!(*heap, before);
                }
            }
        }
    }

    /// Every byte is in exactly one block or free range, free ranges don't touch, indices agree.
    fn check(heap: &Allocator) {
        let mut ranges: Vec<(usize, usize, bool)> = heap
            .used
            .iter()
            .map(|(&offset, &size)| (offset, size, true))
            .collect();
        ranges.extend(
            heap.free
                .iter()
                .map(|(&offset, &size)| (offset, size, false)),
        );
        ranges.sort_unstable();
        let mut end = 0;
        for pair in ranges.windows(2) {
            assert!(
                pair[0].2 || pair[1].2,
                "free neighbours are not joined: {pair:?}"
            );
        }
        for (offset, size, _) in ranges {
            assert_eq!(offset, end, "a gap or an overlap");
            assert!(size > 0);
            end = offset + size;
        }
        assert_eq!(end, heap.capacity());
        let by_size: BTreeSet<_> = heap
            .free
            .iter()
            .map(|(&offset, &size)| (size, offset))
            .collect();
        assert_eq!(by_size, heap.by_size);
        let used: usize = heap.used.values().sum();
        assert_eq!(used + heap.unused(), heap.capacity());
        assert!(heap.high_water() >= used);
    }

    proptest! {
        #[test]
        fn m9_m13_any_calls_keep_the_heap_whole_and_repeatable(
            calls in calls(),
            capacity in 0usize..40_000,
        ) {
            let (mut heap, mut twin) = (Allocator::new(capacity), Allocator::new(capacity));
            for call in &calls {
                carry_out(&mut heap, call);
                check(&heap);
                carry_out(&mut twin, call);
                prop_assert_eq!(&heap, &twin);
            }
            while let Some(block) = nth(&heap, 0) {
                heap.free(block.offset).unwrap();
            }
            prop_assert_eq!(heap, Allocator::new(capacity));
        }
    }

    #[test]
    fn a_full_heap_refuses_and_takes_again_after_a_free() {
        let mut heap = Allocator::new(1024);
        let blocks: Vec<Block> = (0..64).map(|_| heap.allocate(1, 1).unwrap()).collect();
        assert_eq!(heap.allocate(1, 1), None);
        assert_eq!(
            (heap.unused(), heap.largest_free(), heap.high_water()),
            (0, 0, 1024)
        );
        heap.free(blocks[10].offset).unwrap();
        assert_eq!(heap.allocate(16, 1), Some(blocks[10]));
    }

    #[test]
    fn a_fragmented_heap_refuses_what_has_no_single_place() {
        let mut heap = Allocator::new(1024);
        let blocks: Vec<Block> = (0..64).map(|_| heap.allocate(16, 16).unwrap()).collect();
        for block in blocks.iter().step_by(2) {
            heap.free(block.offset).unwrap();
        }
        assert_eq!((heap.unused(), heap.largest_free()), (512, 16));
        assert_eq!(heap.allocate(32, 16), None);
        heap.free(blocks[1].offset).unwrap();
        assert_eq!(
            heap.allocate(48, 16),
            Some(Block {
                offset: 0,
                size: 48
            })
        );
    }

    #[test]
    fn an_aligned_block_is_found_behind_badly_placed_ones() {
        let mut heap = Allocator::new(3 * 4096);
        let first = heap.allocate(16, 16).unwrap();
        assert_eq!(
            heap.allocate(4096, 4096),
            Some(Block {
                offset: 4096,
                size: 4096
            })
        );
        // Of the two free ranges the first is smaller, large enough without its alignment only.
        heap.free(first.offset).unwrap();
        assert_eq!(heap.allocate(16, 16).unwrap().offset, 0);
        assert_eq!(
            heap.allocate(4080, 4096),
            Some(Block {
                offset: 8192,
                size: 4080
            })
        );
        assert_eq!(heap.allocate(1, 3), None, "not a power of two");
    }

    #[test]
    fn a_block_is_freed_once_and_by_its_start() {
        let mut heap = Allocator::new(4096);
        let block = heap.allocate(64, 16).unwrap();
        let before = heap.clone();
        assert!(matches!(
            heap.free(16),
            Err(Error::NotAllocated { offset: 16 })
        ));
        assert_eq!(heap, before);
        heap.free(block.offset).unwrap();
        assert!(matches!(
            heap.free(block.offset),
            Err(Error::NotAllocated { offset: 0 })
        ));
        assert_eq!(heap, Allocator::new(4096));
    }

    #[test]
    fn a_byte_is_found_in_its_block() {
        let mut heap = Allocator::new(4096);
        let (a, b) = (
            heap.allocate(32, 16).unwrap(),
            heap.allocate(32, 256).unwrap(),
        );
        assert_eq!(heap.block_around(a.offset + 31), Some(a));
        assert_eq!(heap.block_around(a.offset + 32), None);
        assert_eq!(heap.block_around(b.offset), Some(b));
        assert_eq!(heap.block_around(b.offset + 32), None);
    }
}
