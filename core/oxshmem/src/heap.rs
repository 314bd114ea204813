//! A symmetric heap of a PE: its memory, its allocator and its live blocks.
//!
//! The allocator goes through the same states on every PE, so a block has the same offset everywhere. An operation that cannot
//! be done leaves the heap unchanged.

pub(crate) mod backing;

use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use oxshmem_engine::gpu::memory::GpuMemory;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::memory::extents::Extents;
use oxshmem_heap::{Allocator, Segment};

use crate::blocks::{Block, BlockTable};
use crate::error::{Error, Result};
use crate::heap::backing::Backing;
use crate::sym::Sym;

/// The alignment of every block: a cache line, and enough for any type (M12).
pub(crate) const ALIGN: u64 = 64;
/// The largest alignment that can be asked for. Every heap's start has less.
pub(crate) const MAX_ALIGN: usize = 1 << 40;

/// A symmetric heap of this PE.
pub(crate) struct Heap {
    backing: Backing,
    /// Bytes that the program can have of it at most.
    limit: usize,
    /// The variable or call that sets the limit.
    setting: &'static str,
    allocator: Allocator,
    pub blocks: BlockTable,
    /// Bytes from the start that transports have pinned: they stay committed.
    pinned: usize,
    /// Bytes from the start that are permanent.
    permanent: usize,
    /// The highest high-water mark so far.
    most: usize,
}

/// Growth of one heap, the same on every PE.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    /// Its extents, if it grows by extents.
    pub extents: Option<Extents>,
    /// The number of them that all PEs know.
    pub published: Cell<u32>,
}

/// The size of a heap, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapSize {
    /// The bytes that the program can have.
    pub limit: usize,
    /// The bytes that there are, with the library's own.
    pub capacity: usize,
}

/// A block's memory, as one call has placed it. It can be rolled back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Placement {
    /// New memory at this offset.
    New(u64),
    /// The memory that the block has, resized from `before` bytes.
    Resized { offset: u64, before: u64 },
}

impl Placement {
    pub(crate) fn offset(self) -> u64 {
        match self {
            Placement::New(offset) | Placement::Resized { offset, .. } => offset,
        }
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap")
            .field("blocks", &self.blocks.total().0)
            .finish_non_exhaustive()
    }
}

impl Heap {
    /// A heap at the start of host memory. `setting` names the variable that says its limit.
    pub(crate) fn new(segment: Segment, size: HeapSize, setting: &'static str) -> Self {
        Self::with(Backing::Host(segment), size, setting)
    }

    /// A heap without memory, to find out how much a layout needs.
    pub(crate) fn dry_run() -> Self {
        Self::with(
            Backing::Nothing,
            HeapSize {
                limit: 0,
                capacity: MAX_ALIGN << 8,
            },
            "OXSHMEM_SYMMETRIC_SIZE",
        )
    }

    /// A heap of `limit` bytes in GPU memory, if there is any.
    pub(crate) fn on_gpu(memory: Option<Box<dyn GpuMemory>>, limit: usize) -> Self {
        let backing = match memory {
            None => Backing::Nothing,
            Some(memory) => Backing::Gpu {
                extents: if memory.is_whole() {
                    Extents::whole(limit as u64)
                } else {
                    Extents::capped(limit as u64)
                },
                memory,
                committed: Vec::new(),
            },
        };
        let size = HeapSize {
            limit,
            capacity: limit,
        };
        Self::with(backing, size, "OXSHMEM_CUDA_SYMMETRIC_SIZE")
    }

    /// Bytes that the program can have of it at most.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The extents of a GPU heap, the same for all transports.
    pub(crate) fn extents(&self) -> Option<Extents> {
        match &self.backing {
            Backing::Gpu { extents, .. } => Some(*extents),
            _ => None,
        }
    }

    /// The address of the first byte and the limit, if it is a GPU heap and memory is committed.
    pub(crate) fn on_gpu_at(&self) -> Option<(NonNull<u8>, usize)> {
        match &self.backing {
            Backing::Gpu { committed, .. } => {
                committed.first().map(|memory| (memory.base(), self.limit))
            }
            _ => None,
        }
    }

    fn with(backing: Backing, size: HeapSize, setting: &'static str) -> Self {
        Heap {
            backing,
            limit: size.limit,
            setting,
            allocator: Allocator::new(size.capacity),
            blocks: BlockTable::new(),
            pinned: 0,
            permanent: 0,
            most: 0,
        }
    }

    /// Uncommits the memory that is neither in use nor pinned.
    fn uncommit(&mut self) {
        let high = self.allocator.high_water().max(self.pinned);
        self.backing.uncommit(high);
    }

    /// Places new bytes: allocates them and commits their memory, or does neither.
    fn place(&mut self, bytes: u64, align: u64) -> Result<u64, String> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let Some(block) = self.allocator.allocate(size, align as usize) else {
            return Err(format!(
                "{} bytes are free, at most {} of them in one piece; free blocks or raise {}",
                self.allocator.unused(),
                self.allocator.largest_free(),
                self.setting
            ));
        };
        if let Err(why) = self.backing.commit(block.offset + block.size) {
            self.take_back(block.offset as u64);
            return Err(why);
        }
        self.most = self.most.max(self.allocator.high_water());
        Ok(block.offset as u64)
    }

    /// Undoes `place` of bytes that nobody uses yet.
    fn take_back(&mut self, offset: u64) {
        if self.allocator.free(offset as usize).is_ok() {
            self.uncommit();
        }
    }

    /// Places bytes that are never freed, zeroed, before the heap is shared.
    pub(crate) fn place_permanent(
        &mut self,
        tag: u32,
        generation: u32,
        bytes: usize,
        align: usize,
    ) -> Result<Sym<u8>> {
        let limit = self.limit as u64;
        let offset = self
            .place(bytes as u64, (align as u64).max(ALIGN))
            .map_err(|why| Error::OutOfMemory {
                call: "init",
                bytes: bytes as u64,
                limit,
                why,
            })?;
        self.permanent = self.allocator.high_water();
        Ok(Sym::new(tag, generation, offset, bytes))
    }

    /// The highest high-water mark so far, without the permanent memory.
    pub(crate) fn most_used(&self) -> u64 {
        self.most.saturating_sub(self.permanent) as u64
    }

    /// Registers with every rail the extents that the heap reaches into and that are not registered yet. If that fails, the
    /// caller undoes it by [`deregister`](Self::deregister).
    pub(crate) fn register(&mut self, rails: &[Arc<Rail>]) -> Result<()> {
        let kind = self.backing.kind();
        if self.limit == 0 {
            return Ok(());
        }
        let high = self.allocator.high_water() as u64;
        for rail in rails {
            if rail.is_retired() || !rail.caps.memory.contains(&kind) {
                continue;
            }
            let pieces = rail.registered_heap(kind);
            let registered = pieces.regions().len() as u32;
            for extent in registered..pieces.extents.count(high.max(1)) {
                let (start, end) = (pieces.extents.start(extent), pieces.extents.end(extent));
                // Pinning takes the pages: a lack of them is found here, by the commit, and not by the transport.
                let memory = self.backing.extent(start, end, rail);
                let memory = memory.map_err(|why| Error::OutOfMemory {
                    call: "registration",
                    bytes: end - start,
                    limit: self.limit as u64,
                    why,
                })?;
                pieces.grow(rail.domain.register(pieces.id(extent), &memory)?);
                if self.backing.stays_committed(rail) {
                    self.pinned = self.pinned.max(end as usize);
                }
            }
        }
        Ok(())
    }

    /// Retires the rails that pin registered memory, and ends their registrations for good.
    pub(crate) fn deregister_pinned(&mut self, rails: &[Arc<Rail>]) {
        self.retire(rails, Rail::pins);
    }

    /// Retires some of the rails, and ends their registrations for good.
    pub(crate) fn retire(&mut self, rails: &[Arc<Rail>], retires: impl Fn(&Rail) -> bool) {
        for rail in rails.iter().filter(|rail| retires(rail)) {
            rail.retire();
        }
        let kind = self.backing.kind();
        let registered = |rail: &Arc<Rail>| rail.registered_heap(kind).regions().len();
        let keep: Vec<usize> = rails.iter().map(registered).collect();
        self.deregister(rails, &keep);
    }

    /// Ends the registrations of all extents but the first `keep`, by rail.
    pub(crate) fn deregister(&mut self, rails: &[Arc<Rail>], keep: &[usize]) {
        self.pinned = 0;
        let kind = self.backing.kind();
        for (rail, &keep) in rails.iter().zip(keep) {
            let pieces = rail.registered_heap(kind);
            pieces.shrink(keep);
            if self.backing.stays_committed(rail)
                && let Some(last) = (keep as u32).checked_sub(1)
            {
                self.pinned = self.pinned.max(pieces.extents.end(last) as usize);
            }
        }
        self.uncommit();
    }

    /// The end of the last byte in use, the same on every PE.
    pub(crate) fn high_water(&self) -> u64 {
        self.allocator.high_water() as u64
    }

    /// Places a new block.
    pub(crate) fn place_block(&mut self, bytes: u64, align: u64) -> Result<Placement, String> {
        self.place(bytes, align).map(Placement::New)
    }

    /// Places a block again: where it is, if it can be resized there, else as a new one beside it.
    pub(crate) fn place_again(
        &mut self,
        offset: u64,
        block: Block,
        bytes: u64,
        align: u64,
    ) -> Result<Placement, String> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        if offset.is_multiple_of(align) && self.allocator.resize_in_place(offset as usize, size) {
            if let Err(why) = self.backing.commit((offset + bytes) as usize) {
                self.shrink_back(offset, block.bytes);
                return Err(why);
            }
            self.most = self.most.max(self.allocator.high_water());
            return Ok(Placement::Resized {
                offset,
                before: block.bytes,
            });
        }
        self.place_block(bytes, block.align.max(align))
    }

    /// Undoes a placement that some PE could not make (M13).
    pub(crate) fn roll_back(&mut self, placement: Placement) {
        match placement {
            Placement::New(offset) => self.take_back(offset),
            Placement::Resized { offset, before } => {
                self.shrink_back(offset, before);
                self.uncommit();
            }
        }
    }

    /// Undoes a resize in place.
    fn shrink_back(&mut self, offset: u64, before: u64) {
        // Shrinking back always fits.
        let _ = self
            .allocator
            .resize_in_place(offset as usize, before as usize);
    }

    /// Frees the memory of a block that was found live. Its commit stays.
    pub(crate) fn free(&mut self, offset: u64) {
        // The allocator knows every live block.
        let _ = self.allocator.free(offset as usize);
    }

    /// Ends and frees every live block.
    pub(crate) fn free_all(&mut self) {
        for offset in self.blocks.end_all() {
            self.free(offset);
        }
        self.uncommit();
    }
}
