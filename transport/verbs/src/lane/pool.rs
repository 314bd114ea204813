//! Registered blocks that a lane lends to requests whose near side has no key.

use std::sync::Arc;

use oxshmem_transport::Result;

use crate::UNREGISTERED;
use crate::ibv::ProtectionDomain;
use crate::region::Arena;

/// Block sizes: for words and messages, for small copies, for the largest.
const SIZES: [usize; 3] = [64, 1024, UNREGISTERED];

/// A block, lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    offset: u32,
    class: u8,
}

/// Which blocks are free, and where each lies. The first block of the arena is nobody's: results
/// that nobody wants go there.
#[derive(Debug)]
struct Free {
    stacks: [Vec<u32>; SIZES.len()],
}

impl Free {
    /// Blocks of `bytes` in all: a sixteenth in the smallest, a quarter in the middle size.
    fn new(bytes: usize) -> (Free, usize) {
        let counts = [
            bytes / 16 / SIZES[0],
            bytes / 4 / SIZES[1],
            bytes * 11 / 16 / SIZES[2],
        ];
        let mut next = SIZES[0];
        let mut stacks = [const { Vec::new() }; SIZES.len()];
        for ((stack, size), count) in stacks.iter_mut().zip(SIZES).zip(counts) {
            for _ in 0..count.max(1) {
                stack.push(next as u32);
                next += size;
            }
        }
        (Free { stacks }, next)
    }

    /// The smallest free block for `len` bytes, at most [`UNREGISTERED`]; of that size alone, so
    /// that words do not use up what copies need.
    #[inline]
    fn take(&mut self, len: usize) -> Option<Block> {
        let class = match len {
            0..=64 => 0u8,
            65..=1024 => 1,
            _ => 2,
        };
        let offset = self.stacks[usize::from(class)].pop()?;
        Some(Block { offset, class })
    }

    #[inline]
    fn give(&mut self, block: Block) {
        if let Some(stack) = self.stacks.get_mut(usize::from(block.class)) {
            stack.push(block.offset);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    free: Free,
    arena: Arena,
}

impl Pool {
    pub(crate) fn new(domain: &Arc<ProtectionDomain>, bytes: usize) -> Result<Pool> {
        let (free, bytes) = Free::new(bytes);
        let arena = Arena::new(domain, bytes)?;
        Ok(Pool { free, arena })
    }

    /// A block of at least `len` bytes, aligned for words; none if all are lent.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Option<Block> {
        self.free.take(len)
    }

    /// Takes a block back that no request uses any more.
    #[inline]
    pub(crate) fn give(&mut self, block: Block) {
        self.free.give(block);
    }

    #[inline]
    pub(crate) fn at(&self, block: Block) -> *mut u8 {
        self.arena.at(block.offset as usize)
    }

    /// Eight bytes that anything may be written to, and nobody reads.
    #[inline]
    pub(crate) fn sink(&self) -> *mut u8 {
        self.arena.at(0)
    }

    #[inline]
    pub(crate) fn lkey(&self) -> u32 {
        self.arena.lkey()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_apart_and_inside_and_come_back() {
        for bytes in [256 << 10, 1 << 20, 3_000_000] {
            let (mut free, end) = Free::new(bytes);
            assert!(end <= bytes + SIZES[0] + SIZES[2]);
            let mut ranges = Vec::from([(0, SIZES[0])]);
            let mut taken = Vec::new();
            for len in [1, 64, 65, 1024, 1025, UNREGISTERED] {
                while let Some(block) = free.take(len) {
                    let size = SIZES[usize::from(block.class)];
                    assert!(size >= len && block.offset % 64 == 0);
                    let start = block.offset as usize;
                    ranges.push((start, start + size));
                    taken.push(block);
                }
            }
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
            assert_eq!(ranges.last().map(|last| last.1), Some(end));
            let last = taken[taken.len() - 1];
            free.give(last);
            assert_eq!(free.take(UNREGISTERED), Some(last));
        }
    }

    #[test]
    fn words_do_not_use_up_what_copies_need() {
        let (mut free, _) = Free::new(256 << 10);
        while free.take(8).is_some() {}
        assert!(free.take(100).is_some() && free.take(UNREGISTERED).is_some());
    }
}
