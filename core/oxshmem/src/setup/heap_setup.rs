//! Set-up of a PE's host heap: the limit that all PEs agree on, its memory, its layout and its registration.

use std::cell::Cell;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oxshmem_engine::gpu::staging_server::Slots;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::memory::extents::Extents;
use oxshmem_heap::{Mapping, Segment, SegmentOptions};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::heap::{Growth, Heap, HeapSize};
use crate::options::{NicAtomics, ProgramMemory};
use crate::setup::announce::{Announced, HeapAdditions};
use crate::setup::card::BusinessCard;
use crate::setup::hosts::Hosts;
use crate::setup::layout::{HeapLayout, HeapParts, PAGE};
use crate::setup::route_summary::RouteAgreement;
use crate::setup::unregistered::Unregistered;
use crate::sym::Sym;
use crate::visibility::Visibility;
use oxshmem_collectives::sync_area::SyncAreaPlan;

/// Bytes of the smallest heap for which the library lays out its own memory. A smaller heap gets as much of it.
const MIN_PLANNED: u64 = 1 << 20;

/// This PE's host heap. The library's own memory in it is placed.
pub(crate) struct HostHeap {
    pub parts: HeapParts,
    pub growth: Growth,
    pub heap: Heap,
    /// The whole heap, mapped here.
    pub own: Arc<Mapping>,
    /// The program's memory that begins the heap.
    pub program: Option<Arc<ProgramMemory>>,
    /// The tag of handles that name objects in it.
    pub tag: u32,
    /// Bytes for the program's blocks.
    pub limit: usize,
    /// Bytes of the heap, the library's own memory included.
    pub len: u64,
    /// The transports with which it could not be registered.
    pub(super) unregistered: Vec<Unregistered>,
}

impl HostHeap {
    /// Creates the heap. It is not shared yet.
    pub(super) fn create(
        config: &Config,
        announced: &Announced,
        me: usize,
        additions: HeapAdditions,
    ) -> Result<Self> {
        let offered = announced.hosts.agree_on_limit(&announced.cards);
        let tag = next_tag()?;
        let oversubscribed = announced.oversubscribed.contains(&true);
        let layout = HeapLayout {
            tag,
            program: additions.program_len(),
            plan: SyncAreaPlan {
                // The same on every PE: the offsets of the sync words follow from it.
                shape: announced.hosts.job_shape(oversubscribed),
                me,
                teams: config.teams,
                among: additions.active_sets,
                limit: offered.max(MIN_PLANNED) as usize,
                choices: config.collectives,
            },
            check: config.check,
        };
        let staging = if announced.gpu.exists {
            Slots::all(offered as usize) as u64
        } else {
            0
        };
        let capacity = offered + layout.bytes()? + staging;
        let len = capacity.next_multiple_of(PAGE);
        let segment = create_segment(config, additions.program.as_deref(), len as usize)?;
        let own = Arc::clone(segment.mapping());
        let mut heap = Heap::new(
            segment,
            HeapSize {
                limit: offered as usize,
                capacity: capacity as usize,
            },
            config.heap_limit_by,
        );
        let parts = layout.place(&mut heap)?;
        parts.fill(&own);
        Ok(HostHeap {
            parts,
            growth: Growth::default(),
            heap,
            own,
            program: additions.program,
            tag,
            limit: offered as usize,
            len,
            unregistered: Vec::new(),
        })
    }

    /// Registers the heap with every rail. A rail that pins memory, and cannot register it, is retired: its limits are the
    /// machine's, and another transport may reach all PEs.
    pub(super) fn register(&mut self, rails: &[Arc<Rail>]) -> Result<()> {
        for rail in rails {
            let Err(error) = self.heap.register(slice::from_ref(rail)) else {
                continue;
            };
            if !rail.pins() {
                return Err(error);
            }
            let is_it = |other: &Rail| ptr::eq(other, Arc::as_ptr(rail));
            self.heap.retire(rails, is_it);
            self.unregistered.push(Unregistered {
                transport: rail.name.to_owned(),
                why: error.to_string(),
            });
        }
        Ok(())
    }

    /// Has the heap grow by extents if some PE's transport pins what it registers.
    pub(super) fn plan_growth(&mut self, cards: &[BusinessCard]) {
        let pins = |card: &BusinessCard| card.transports.iter().any(|rail| rail.pins);
        let grows = cards.iter().any(pins);
        let extents = grows.then(|| Extents::doubling(self.len));
        let published = extents.map_or(0, |extents| extents.count(self.heap.high_water()));
        self.growth = Growth {
            extents,
            published: Cell::new(published),
        };
    }

    /// Adapts the heap to the routes of all PEs. `hosts` are numbered from 0, and `host_pes` are the PEs of this one.
    pub(super) fn set_routes(
        mut self,
        agreed: &RouteAgreement,
        config: &Config,
        (hosts, me): (&Hosts, usize),
        rails: &[Arc<Rail>],
    ) -> Self {
        let host_pes = hosts.with(me);
        let maps_its_host = |pe: &usize| agreed.maps_its_host.get(*pe) == Some(&true);
        let shared = if host_pes.iter().all(maps_its_host) {
            host_pes.to_vec()
        } else {
            vec![me]
        };
        let all_mapped = agreed.visibility == Visibility::Global && !config.check;
        let by_host = !config.collectives.flat && agreed.maps_its_host.iter().all(|maps| *maps);
        let numbers = by_host.then(|| hosts.numbers());
        self.parts.sync_area = self
            .parts
            .sync_area
            .set_routes(all_mapped, &shared, numbers);
        // Memory that no PE of the job uses by a pinning transport need not be pinned: one host's PEs on a machine with a NIC.
        if !agreed.pinned {
            self.growth.extents = None;
        }
        if self.growth.extents.is_none() {
            self.heap.deregister_pinned(rails);
        }
        self
    }

    /// Puts the program's statics into the NICs' atomic domain, if all words are.
    pub(super) fn set_nic_atomics(&mut self, nic_atomics: NicAtomics) {
        if nic_atomics == NicAtomics::Always {
            let statics = std::mem::take(&mut self.parts.statics);
            self.parts.statics = statics.into_iter().map(Sym::on_nic).collect();
        }
    }
}

/// Creates the heap's memory, near this process's CPUs. The program's memory is its beginning.
fn create_segment(config: &Config, program: Option<&ProgramMemory>, len: usize) -> Result<Segment> {
    let node = oxshmem_topo::nearest_node().ok().flatten();
    let options = SegmentOptions {
        huge_pages: config.huge_pages,
        numa_node: node.and_then(|node| u32::try_from(node).ok()),
    };
    let begins = program.and_then(|program| Some((program.take_file()?, program.len)));
    Ok(match begins {
        Some((file, program_len)) => Segment::beginning_with(file, program_len, len, &options)?,
        None => Segment::create(len, &options)?,
    })
}

/// A number for a world of this process, so that handles of one world are foreign to another: even, and never 0. The next odd
/// number is for the world's GPU memory.
fn next_tag() -> Result<u32> {
    static NEXT: AtomicU32 = AtomicU32::new(2);
    // A number is never used again: old handles may still exist.
    NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tag| {
        tag.checked_add(2)
    })
    .map_err(|_| Error::Argument {
        call: "World::init",
        what: "this process has made 2^31 worlds; start a new process".into(),
    })
}
