//! The bounce pool of a lane: page-locked blocks for operations whose local buffer is ordinary host memory.

use std::sync::{Arc, Mutex, PoisonError};

use oxshmem_cuda::{Context, DevicePtr, Pinned, PinnedOptions};

use crate::limits::UNREGISTERED;

/// Bytes of a small block, for words; a large one has [`UNREGISTERED`].
const SMALL: usize = 64;
/// Small blocks of a pool.
const SMALLS: usize = 512;
/// Large blocks of a pool.
const LARGES: usize = 16;

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    offset: usize,
    large: bool,
}

/// The page-locked memory of a domain's bounce pools. It lasts as long as the domain: to free page-locked memory
/// waits for all work of the context, such as a program's kernels that wait for this PE's next put. A new lane
/// reuses the memory of a dropped one.
#[derive(Debug, Default)]
pub(crate) struct PinnedPool(Mutex<Vec<Arc<Pinned>>>);

impl PinnedPool {
    fn acquire(&self, context: &Context, len: usize) -> oxshmem_cuda::Result<Arc<Pinned>> {
        // It is whole whenever it is unlocked, so poison means nothing.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Memory that no pool uses any more, and that none has leaked.
        for one in all.iter_mut() {
            if Arc::get_mut(one).is_some() {
                return Ok(Arc::clone(one));
            }
        }
        let new = Arc::new(Pinned::new(context, len, &PinnedOptions::default())?);
        all.push(Arc::clone(&new));
        Ok(new)
    }
}

/// The free blocks of a lane.
#[derive(Debug)]
pub(crate) struct BouncePool {
    memory: Arc<Pinned>,
    small: Vec<usize>,
    large: Vec<usize>,
}

impl BouncePool {
    pub(crate) fn new(context: &Context, pinned: &PinnedPool) -> oxshmem_cuda::Result<BouncePool> {
        let end = SMALL * SMALLS;
        let len = end + UNREGISTERED * LARGES;
        Ok(BouncePool {
            memory: pinned.acquire(context, len)?,
            small: (0..SMALLS).map(|block| block * SMALL).collect(),
            large: (0..LARGES)
                .map(|block| end + block * UNREGISTERED)
                .collect(),
        })
    }

    /// A block for `len` bytes, at most [`UNREGISTERED`], aligned to 64; none if all are in use.
    pub(crate) fn acquire(&mut self, len: usize) -> Option<Block> {
        let large = len > SMALL;
        let free = if large {
            &mut self.large
        } else {
            &mut self.small
        };
        let offset = free.pop()?;
        Some(Block { offset, large })
    }

    /// Returns a block that no work uses any more.
    pub(crate) fn release(&mut self, block: Block) {
        if block.large {
            self.large.push(block.offset);
        } else {
            self.small.push(block.offset);
        }
    }

    /// Leaks the memory, which work that does not end may still use: it is never reused or freed.
    #[cold]
    pub(crate) fn leak(&self) {
        std::mem::forget(Arc::clone(&self.memory));
    }

    pub(crate) fn host(&self, block: Block) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(block.offset)
    }

    pub(crate) fn device(&self, block: Block) -> DevicePtr {
        self.memory.device_ptr().add(block.offset)
    }
}

#[cfg(test)]
mod tests {
    use oxshmem_cuda::devices;

    use super::*;

    #[test]
    fn a_pool_s_memory_serves_the_next_one_unless_it_was_leaked() {
        let Some(gpu) = devices().ok().and_then(|all| all.into_iter().next()) else {
            println!("no CUDA driver: not run");
            return;
        };
        let context = Context::new(&gpu).unwrap();
        let pinned = PinnedPool::default();
        let pool = || BouncePool::new(&context, &pinned).unwrap();
        let (first, second) = (pool(), pool());
        let at = |pool: &BouncePool| pool.memory.as_ptr().addr();
        assert_ne!(at(&first), at(&second));
        let kept = at(&first);
        drop(first);
        let third = pool();
        assert_eq!(at(&third), kept);
        third.leak();
        drop(third);
        assert_ne!(at(&pool()), kept);
    }
}
