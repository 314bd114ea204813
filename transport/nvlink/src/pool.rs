//! Page-locked blocks that a lane lends to operations whose near side is ordinary host memory.

use std::sync::{Arc, Mutex, PoisonError};

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

/// A domain's memory for pools, which lasts as long as it: giving page-locked memory back waits for all
/// work of the context, such as a program's kernels that wait for this PE's next put. A lane that comes
/// after another one takes that one's.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<Vec<Arc<Pinned>>>);

impl Memories {
    fn lend(&self, context: &Context, len: usize) -> oxshmem_cuda::Result<Arc<Pinned>> {
        // It is whole whenever it is unlocked, so poison means nothing.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What no pool has any more, nor ever lost.
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

#[derive(Debug)]
pub(crate) struct Pool {
    memory: Arc<Pinned>,
    small: Vec<usize>,
    large: Vec<usize>,
}

impl Pool {
    pub(crate) fn new(context: &Context, memories: &Memories) -> oxshmem_cuda::Result<Pool> {
        let end = SMALL * SMALLS;
        let len = end + UNREGISTERED * LARGES;
        Ok(Pool {
            memory: memories.lend(context, len)?,
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

    /// Work that does not end may still use it: it is never lent or freed again.
    #[cold]
    pub(crate) fn lose(&self) {
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
    fn a_pool_s_memory_serves_the_next_one_unless_it_was_lost() {
        let Some(gpu) = devices().ok().and_then(|all| all.into_iter().next()) else {
            println!("no CUDA driver: not run");
            return;
        };
        let context = Context::new(&gpu).unwrap();
        let memories = Memories::default();
        let pool = || Pool::new(&context, &memories).unwrap();
        let (first, second) = (pool(), pool());
        let at = |pool: &Pool| pool.memory.as_ptr().addr();
        assert_ne!(at(&first), at(&second));
        let kept = at(&first);
        drop(first);
        let third = pool();
        assert_eq!(at(&third), kept);
        third.lose();
        drop(third);
        assert_ne!(at(&pool()), kept);
    }
}
