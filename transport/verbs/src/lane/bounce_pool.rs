//! The bounce pool of a lane: registered blocks for requests whose local buffer has no key.

use std::sync::Arc;

use oxshmem_transport::{Error, Result};

use crate::arena::Arena;
use crate::ibv::ProtectionDomain;
use crate::limits::{MOST_RAILS, NAME, UNREGISTERED};

/// Block sizes: for words and messages, for small copies, for the largest.
const SIZES: [usize; 3] = [64, 1024, UNREGISTERED];

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    offset: u32,
    class: u8,
}

/// The offsets of the free blocks, by size class. The arena's first block is never handed out: results
/// that no caller wants go there.
#[derive(Debug)]
struct FreeLists {
    stacks: [Vec<u32>; SIZES.len()],
}

impl FreeLists {
    /// Splits about `bytes` into blocks: a sixteenth of them in the smallest size, a quarter in the middle
    /// size. Gives the arena's length, too.
    fn new(bytes: usize) -> (FreeLists, usize) {
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
        (FreeLists { stacks }, next)
    }

    /// A free block of the smallest size that holds `len` bytes, at most [`UNREGISTERED`]; never of a
    /// larger size, so that words do not use up the blocks that copies need.
    #[inline]
    fn acquire(&mut self, len: usize) -> Option<Block> {
        let class = match len {
            0..=64 => 0u8,
            65..=1024 => 1,
            _ => 2,
        };
        let offset = self.stacks[usize::from(class)].pop()?;
        Some(Block { offset, class })
    }

    #[inline]
    fn release(&mut self, block: Block) {
        if let Some(stack) = self.stacks.get_mut(usize::from(block.class)) {
            stack.push(block.offset);
        }
    }
}

/// The registered memory of a lane, in blocks of three sizes.
#[derive(Debug)]
pub(crate) struct BouncePool {
    free: FreeLists,
    /// By NIC.
    lkeys: [u32; MOST_RAILS],
    arena: Arc<Arena>,
}

impl BouncePool {
    pub(crate) fn new(domain: &Arc<ProtectionDomain>, bytes: usize) -> Result<BouncePool> {
        let (free, bytes) = FreeLists::new(bytes);
        let arena = Arc::new(Arena::new(domain, bytes)?);
        let mut lkeys = [0; MOST_RAILS];
        lkeys[0] = arena.lkey();
        Ok(BouncePool { free, lkeys, arena })
    }

    /// Registers it at a further NIC, before any request uses it.
    pub(crate) fn register(&mut self, rail: u8, domain: &Arc<ProtectionDomain>) -> Result<()> {
        let shared = || Error::Unsupported {
            transport: NAME,
            what: "registering blocks that are in use".into(),
        };
        let arena = Arc::get_mut(&mut self.arena).ok_or_else(shared)?;
        let lkey = arena.register(domain)?;
        if let Some(at) = self.lkeys.get_mut(usize::from(rail)) {
            *at = lkey;
        }
        Ok(())
    }

    /// The memory of all blocks.
    pub(crate) fn memory(&self) -> Arc<Arena> {
        Arc::clone(&self.arena)
    }

    /// A block of at least `len` bytes, aligned for words; none if all are in use.
    #[inline]
    pub(crate) fn acquire(&mut self, len: usize) -> Option<Block> {
        self.free.acquire(len)
    }

    /// Returns a block that no request uses any more.
    #[inline]
    pub(crate) fn release(&mut self, block: Block) {
        self.free.release(block);
    }

    /// The first byte of a block.
    #[inline]
    pub(crate) fn address(&self, block: Block) -> *mut u8 {
        self.arena.at(block.offset as usize)
    }

    /// Eight bytes for results that no caller wants: any request may write there, nothing reads them.
    #[inline]
    pub(crate) fn sink(&self) -> *mut u8 {
        self.arena.at(0)
    }

    /// The key of its blocks at a NIC.
    #[inline]
    pub(crate) fn lkey(&self, rail: u8) -> u32 {
        self.lkeys.get(usize::from(rail)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_apart_and_inside_and_come_back() {
        for bytes in [256 << 10, 1 << 20, 3_000_000] {
            let (mut free, end) = FreeLists::new(bytes);
            assert!(end <= bytes + SIZES[0] + SIZES[2]);
            let mut ranges = Vec::from([(0, SIZES[0])]);
            let mut taken = Vec::new();
            for len in [1, 64, 65, 1024, 1025, UNREGISTERED] {
                while let Some(block) = free.acquire(len) {
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
            free.release(last);
            assert_eq!(free.acquire(UNREGISTERED), Some(last));
        }
    }

    #[test]
    fn words_do_not_use_up_what_copies_need() {
        let (mut free, _) = FreeLists::new(256 << 10);
        while free.acquire(8).is_some() {}
        assert!(free.acquire(100).is_some() && free.acquire(UNREGISTERED).is_some());
    }
}
