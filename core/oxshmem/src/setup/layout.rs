//! What a heap has beside the program's blocks: memory of the program's that begins it, the library's own words and the
//! statics. It is placed first, before the heap is shared, and comes on top of what the program has asked for.

use oxshmem_heap::Mapping;

use crate::alloc::{ALIGN, Heap, OWN, STATIC};
use crate::collectives::slots::mailbox::Mailbox;
use crate::collectives::sync_area::{SyncArea, SyncAreaPlan};
use crate::lane::{BouncePool, PendingReplies};
use crate::order::conflict::SLOTS;
use crate::{Result, Sym, statics};

/// What is placed, in this order on every PE.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapLayout {
    pub tag: u32,
    /// Bytes of the program's memory.
    pub program: usize,
    pub plan: SyncAreaPlan,
    /// Whether checked mode has its table.
    pub check: bool,
}

/// Where it is.
pub(super) struct HeapParts {
    pub internal: SyncArea,
    pub bounces: BouncePool,
    pub active: PendingReplies,
    pub shadow: Option<Sym<u64>>,
    pub mailbox: Option<Mailbox>,
    pub statics: Vec<Sym<u8>>,
}

impl HeapLayout {
    /// How many bytes of a heap all of it takes, up to where the program's first block can begin.
    pub(super) fn bytes(self) -> Result<u64> {
        let mut heap = Heap::of_nothing();
        self.place(&mut heap)?;
        Ok(heap.high_water().next_multiple_of(ALIGN))
    }

    /// Places it where nothing was placed before.
    pub(super) fn place(self, heap: &mut Heap) -> Result<HeapParts> {
        let HeapLayout { tag, plan, .. } = self;
        if self.program > 0 {
            // Where the file begins.
            heap.place_permanent(tag, STATIC, self.program, 1)?;
        }
        let internal = SyncArea::new(plan, |bytes| heap.place_permanent(tag, OWN, bytes, 1))?;
        let bounces = heap.place_permanent(tag, OWN, BouncePool::size(plan.limit), 1)?;
        let active = heap.place_permanent(tag, OWN, PendingReplies::BYTES, 1)?;
        let shadow = match self.check {
            true => {
                let bytes = SLOTS * size_of::<u64>();
                Some(heap.place_permanent(tag, OWN, bytes, 1)?.cast()?)
            }
            false => None,
        };
        let mailbox = match plan.among {
            true => {
                let letter = internal.pool.proposal_words();
                let bytes = Mailbox::len(plan.crowd.pes, letter) * size_of::<u64>();
                let memory = heap.place_permanent(tag, OWN, bytes, 1)?;
                Some(Mailbox::new(memory.cast()?, letter))
            }
            false => None,
        };
        Ok(HeapParts {
            internal,
            bounces: BouncePool::new(bounces)?,
            active: PendingReplies::new(active.cast()?),
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
    let places = offsets.into_iter().zip(statics::initial());
    places
        .map(|(at, initial)| area.range(at..at + initial.len()))
        .collect()
}

impl HeapParts {
    /// Gives the statics their initial values.
    pub(super) fn fill(&self, own: &Mapping) {
        for (place, initial) in self.statics.iter().zip(statics::initial()) {
            // SAFETY: the allocator placed these bytes within the mapping, which is not shared yet.
            unsafe {
                let to = own.base().add(place.offset() as usize).as_ptr();
                oxshmem_heap::copy::copy(to, initial.as_ptr(), initial.len());
            }
        }
    }
}
