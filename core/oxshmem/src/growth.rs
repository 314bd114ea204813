//! Growth of heaps by extents: of host heaps, where transports pin registered memory, and of GPU heaps.
//!
//! An extent is registered inside the collective call that first reaches into it. Its keys and descriptors are exchanged
//! there, or all is as it was (M13).

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use oxshmem_bootstrap::{HexBytes, exchange};
use oxshmem_engine::lane::rail::Rail;
use oxshmem_transport::{MemoryKind, RegionId};

use crate::error::{Error, Result};
use crate::setup::wireup::DESCRIPTOR_DEADLINE;
use crate::world::World;
use oxshmem_collectives::signature::CallSignature;

/// The region number and key of a registered extent, for other PEs.
type ExtentKey = (u32, HexBytes);

/// Whether a rail registers a heap extent by extent.
fn grows(rail: &Rail, kind: MemoryKind) -> bool {
    match kind {
        MemoryKind::Host => rail.pins(),
        _ => true,
    }
}

/// The keys of this PE's extents from the number `first` on, by the transports' names.
fn keys_from(rails: &[Arc<Rail>], kind: MemoryKind, first: usize) -> Vec<(String, Vec<ExtentKey>)> {
    let named = |rail: &Arc<Rail>| {
        let regions = rail.registered_heap(kind).regions();
        let new = regions.iter().skip(first);
        let keys = new.map(|region| (region.id().0, HexBytes(region.key().to_vec())));
        (rail.name.to_owned(), keys.collect())
    };
    let growing = rails.iter().filter(|rail| grows(rail, kind));
    growing.map(named).collect()
}

impl World {
    /// The number of a heap's extents that are registered, by rail.
    pub(crate) fn registered_extents(&self, kind: MemoryKind) -> Vec<usize> {
        let rails = self.worker.engine.rails.iter();
        rails
            .map(|rail| rail.registered_heap(kind).regions().len())
            .collect()
    }

    /// Registers the memory that a heap has grown into. If that fails, the caller takes it back with all other PEs.
    pub(crate) fn register_growth(&self, kind: MemoryKind) -> Result<()> {
        self.heap(kind).register(&self.worker.engine.rails)
    }

    /// Exchanges the keys of the extents that every PE has registered. Collective. Does nothing if the heap has not grown into
    /// a new extent, or does not grow by extents, which is the same on all PEs.
    pub(crate) fn publish_growth(
        &self,
        call: &'static str,
        kind: MemoryKind,
        signature: CallSignature,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        let growth = self.inner.growth(kind);
        let Some(extents) = growth.extents else {
            return Ok(());
        };
        let high = self.heap(kind).high_water();
        let (published, now) = (growth.published.get(), extents.count(high));
        if now <= published {
            return Ok(());
        }
        let imported = self.exchange_extents(kind, published as usize);
        self.arrive(call, signature.and(GROWN), imported, words)?;
        growth.published.set(now);
        Ok(())
    }

    /// Imports all PEs' extents from the number `first` on. Collective.
    fn exchange_extents(&self, kind: MemoryKind, first: usize) -> Result<()> {
        let rails = &self.worker.engine.rails;
        let mine = keys_from(rails, kind, first);
        let all: Vec<Vec<(String, Vec<ExtentKey>)>> =
            exchange(&*self.worker.engine.bootstrap, &mine)?;
        for rail in rails.iter().filter(|rail| grows(rail, kind)) {
            let mut descriptors = self.share_descriptors(rail, kind, first)?;
            for peer in rail.registered_heap(kind).imported().iter() {
                let theirs = all.get(peer.pe.index()).map_or(&[][..], Vec::as_slice);
                let named = theirs.iter().find(|(name, _)| *name == rail.name);
                let keys = named.map(|(_, keys)| keys.as_slice()).unwrap_or_default();
                if keys.is_empty() {
                    return Err(Error::Disagreement {
                        a: peer.pe.index(),
                        b: self.my_pe(),
                        what: format!("whether its heap has grown, registered with {}", rail.name),
                    });
                }
                let passed = descriptors.iter_mut().find(|(pe, _)| *pe == peer.pe.0);
                let passed = passed.map(|(_, fds)| std::mem::take(fds));
                let mut passed = passed.unwrap_or_default().into_iter();
                for (region, key) in keys {
                    let id = RegionId(*region);
                    rail.domain.import(peer, id, &key.0, passed.next())?;
                }
            }
        }
        Ok(())
    }

    /// Passes the descriptors of a rail's new extents between the PEs of a host that need them. Gives each PE's.
    fn share_descriptors(
        &self,
        rail: &Rail,
        kind: MemoryKind,
        first: usize,
    ) -> Result<Vec<(u32, Vec<OwnedFd>)>> {
        let pieces = rail.registered_heap(kind);
        let among = pieces.shared_with();
        if among.len() < 2 {
            return Ok(Vec::new());
        }
        let regions = pieces.regions();
        let new = regions.iter().skip(first);
        let mine: Vec<BorrowedFd<'_>> = new.filter_map(|region| region.descriptor()).collect();
        let bootstrap = &self.worker.engine.bootstrap;
        let shared = bootstrap.share_descriptors(&among, &mine, DESCRIPTOR_DEADLINE)?;
        Ok(among.iter().copied().zip(shared).collect())
    }
}

/// Part of the signature of the agreement on growth.
const GROWN: u64 = 0x6772_6f77;
