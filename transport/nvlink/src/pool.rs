//! Page-locked blocks that a lane lends to operations whose near side is ordinary host memory.

use oxshmem_cuda::{Context, DevicePtr, Pinned, PinnedOptions};

use crate::UNREGISTERED;

/// For words, and for copies.
const SMALL: usize = 64;
const SMALLS: usize = 512;
const LARGES: usize = 16;

/// A block, lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    offset: usize,
    large: bool,
}

#[derive(Debug)]
pub(crate) struct Pool {
    memory: Pinned,
    small: Vec<usize>,
    large: Vec<usize>,
}

impl Pool {
    pub(crate) fn new(context: &Context) -> oxshmem_cuda::Result<Pool> {
        let end = SMALL * SMALLS;
        let len = end + UNREGISTERED * LARGES;
        Ok(Pool {
            memory: Pinned::new(context, len, &PinnedOptions::default())?,
            small: (0..SMALLS).map(|block| block * SMALL).collect(),
            large: (0..LARGES)
                .map(|block| end + block * UNREGISTERED)
                .collect(),
        })
    }

    /// A block for `len` bytes, at most [`UNREGISTERED`], aligned to 64; none if all are lent.
    pub(crate) fn take(&mut self, len: usize) -> Option<Block> {
        let large = len > SMALL;
        let free = if large {
            &mut self.large
        } else {
            &mut self.small
        };
        let offset = free.pop()?;
        Some(Block { offset, large })
    }

    /// Takes back what no work uses any more.
    pub(crate) fn give(&mut self, block: Block) {
        match block.large {
            true => self.large.push(block.offset),
            false => self.small.push(block.offset),
        }
    }

    pub(crate) fn host(&self, block: Block) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(block.offset)
    }

    pub(crate) fn device(&self, block: Block) -> DevicePtr {
        self.memory.device_ptr().add(block.offset)
    }
}
