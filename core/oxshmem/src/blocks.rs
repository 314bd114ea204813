//! The table of a heap's live blocks.
//!
//! Each block has a generation, which its handles carry: a handle of a block that was freed is not in the table, though another
//! block lies at the same offset.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::live_block_cache::Live;
use crate::sym::Sym;
use oxshmem_engine::memory::target::NIC;

/// The generation of permanent memory that is the library's own.
pub(crate) const OWN: u32 = 0;
/// The generation of the program's statics and of its memory that begins the heap.
pub(crate) const STATIC: u32 = NIC - 1;

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub bytes: u64,
    pub align: u64,
    pub generation: u32,
}

/// The live blocks of a heap.
#[derive(Debug)]
pub(crate) struct BlockTable {
    by_offset: BTreeMap<u64, Block>,
    /// The number of times that a block has ended.
    changes: Arc<AtomicU64>,
    generation: u32,
}

impl BlockTable {
    pub(crate) fn new() -> Self {
        BlockTable {
            by_offset: BTreeMap::new(),
            changes: Arc::default(),
            generation: OWN,
        }
    }

    /// The number of live blocks, and their bytes.
    pub(crate) fn total(&self) -> (usize, u64) {
        let bytes = self.by_offset.values().map(|block| block.bytes).sum();
        (self.by_offset.len(), bytes)
    }

    /// The number of times that a block has ended. A block that was found live is live while this stays the same.
    pub(crate) fn changes(&self) -> &Arc<AtomicU64> {
        &self.changes
    }

    pub(crate) fn next_generation(&mut self) -> u32 {
        self.generation = match self.generation + 1 {
            STATIC => OWN + 1,
            next => next,
        };
        self.generation
    }

    pub(crate) fn insert(&mut self, offset: u64, block: Block) {
        self.by_offset.insert(offset, block);
    }

    /// Ends a block: its handles are stale.
    pub(crate) fn end(&mut self, offset: u64) {
        self.by_offset.remove(&offset);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends every block. Gives their offsets.
    pub(crate) fn end_all(&mut self) -> impl Iterator<Item = u64> + use<> {
        self.changes.fetch_add(1, Ordering::Relaxed);
        std::mem::take(&mut self.by_offset).into_keys()
    }

    /// The live block that `sym` names whole.
    pub(crate) fn get<T: Pod>(&self, call: &'static str, sym: Sym<T>) -> Result<Block> {
        match self.by_offset.get(&sym.offset()) {
            Some(block) if block.generation == sym.generation() => {
                if block.bytes == sym.bytes() as u64 {
                    Ok(*block)
                } else {
                    Err(Error::NotABlock { call })
                }
            }
            _ if self.holds(sym) => Err(Error::NotABlock { call }),
            _ => Err(Error::Stale {
                call,
                offset: sym.offset(),
            }),
        }
    }

    /// Whether `sym` lies in a live block of its own generation, or in permanent memory.
    #[inline]
    pub(crate) fn holds<T: Pod>(&self, sym: Sym<T>) -> bool {
        let around = self.around(sym.offset());
        is_permanent(sym) || around.is_some_and(|live| is_in(sym, &live))
    }

    /// The live block around an offset.
    pub(crate) fn around(&self, offset: u64) -> Option<Live> {
        let (start, block) = self.by_offset.range(..=offset).next_back()?;
        let live = Live {
            start: *start,
            bytes: block.bytes,
            generation: block.generation,
        };
        live.has(offset, 0).then_some(live)
    }
}

/// Whether an object lies in permanent memory: the library's own, or the program's statics.
pub(crate) fn is_permanent<T: Pod>(sym: Sym<T>) -> bool {
    matches!(sym.generation() & !NIC, OWN | STATIC)
}

/// Whether an object lies in this block, and is of its generation.
#[inline]
pub(crate) fn is_in<T: Pod>(sym: Sym<T>, live: &Live) -> bool {
    live.generation == sym.generation() && live.has(sym.offset(), sym.bytes() as u64)
}
