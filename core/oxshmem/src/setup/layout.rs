//! Layout of a heap's permanent part: memory of the program's that begins it, the library's own words and the statics.
//!
//! It is placed first, before the heap is shared, in the same order on every PE. It adds to the bytes that the program has
//! asked for.

use oxshmem_engine::am::pending_replies::PendingReplies;
use oxshmem_engine::memory::bounce_pool::BouncePool;
use oxshmem_engine::order::conflict::SLOTS;
use oxshmem_heap::Mapping;

use crate::blocks::{OWN, STATIC};
use crate::error::Result;
use crate::heap::{ALIGN, Heap};
use crate::statics;
use crate::sym::Sym;
use oxshmem_collectives::slots::mailbox::Mailbox;
use oxshmem_collectives::sync_area::{SyncArea, SyncAreaPlan};

/// Unit of a heap's length: its mapping has whole pages.
pub(super) const PAGE: u64 = 4096;

/// The permanent part, in the order of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapLayout {
    pub tag: u32,
    /// Bytes of the program's memory.
    pub program: usize,
    pub plan: SyncAreaPlan,
    /// Whether checked mode has its table.
    pub check: bool,
}

/// The parts, placed.
pub(crate) struct HeapParts {
    pub sync_area: SyncArea,
    pub bounce_pool: BouncePool,
    pub pending_replies: PendingReplies,
    /// Checked mode's table.
    pub shadow: Option<Sym<u64>>,
    pub mailbox: Option<Mailbox>,
    pub statics: Vec<Sym<u8>>,
}

impl HeapLayout {
    /// Bytes of the permanent part, up to the first offset at which a block of the program's can begin.
    pub(super) fn bytes(self) -> Result<u64> {
        let mut heap = Heap::dry_run();
        self.place(&mut heap)?;
        Ok(heap.high_water().next_multiple_of(ALIGN))
    }

    /// Places the parts in an empty heap.
    pub(super) fn place(self, heap: &mut Heap) -> Result<HeapParts> {
        let HeapLayout { tag, plan, .. } = self;
        if self.program > 0 {
            // Offset 0: the file's beginning.
            heap.place_permanent(tag, STATIC, self.program, 1)?;
        }
        let sync_area = SyncArea::new(plan, |bytes| {
            Ok(heap.place_permanent(tag, OWN, bytes, 1)?.into())
        })?;
        let bounce_pool = heap.place_permanent(tag, OWN, BouncePool::size(plan.limit), 1)?;
        let pending_replies = heap.place_permanent(tag, OWN, PendingReplies::BYTES, 1)?;
        let shadow = if self.check {
            let bytes = SLOTS * size_of::<u64>();
            Some(heap.place_permanent(tag, OWN, bytes, 1)?.cast()?)
        } else {
            None
        };
        let mailbox = if plan.among {
            let message_words = sync_area.pool.proposal_words();
            let bytes = Mailbox::len(plan.shape.pes, message_words) * size_of::<u64>();
            let memory = heap.place_permanent(tag, OWN, bytes, 1)?;
            Some(Mailbox::new(memory.cast()?.into(), message_words))
        } else {
            None
        };
        Ok(HeapParts {
            sync_area,
            bounce_pool: BouncePool::new(bounce_pool.into()),
            pending_replies: PendingReplies::new(pending_replies.into()),
            shadow,
            mailbox,
            statics: place_statics(tag, heap)?,
        })
    }
}

fn place_statics(tag: u32, heap: &mut Heap) -> Result<Vec<Sym<u8>>> {
    let (bytes, align, offsets) = statics::layout();
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let area = heap.place_permanent(tag, STATIC, bytes, align)?;
    let statics = offsets.into_iter().zip(statics::initial());
    statics
        .map(|(at, initial)| area.range(at..at + initial.len()))
        .collect()
}

impl HeapParts {
    /// Gives the statics their initial values.
    pub(super) fn fill(&self, own: &Mapping) {
        for (object, initial) in self.statics.iter().zip(statics::initial()) {
            // SAFETY: the allocator placed these bytes within the mapping, which is not shared yet.
            unsafe {
                let to = own.base().add(object.offset() as usize).as_ptr();
                oxshmem_heap::copy::copy(to, initial.as_ptr(), initial.len());
            }
        }
    }
}
