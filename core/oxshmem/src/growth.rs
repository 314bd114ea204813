//! Heaps' growth where transports pin what they register, and GPU heaps': pieces are registered inside
//! the collective call that first reaches into them, their keys and descriptors exchanged there, or all
//! is as it was (M13).

use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use oxshmem_bootstrap::{HexBytes, exchange};
use oxshmem_transport::{MemoryKind, RegionId};

use crate::collectives::signature::CallSignature;
use crate::lane::{Extents, Rail};
use crate::setup::DESCRIPTOR_DEADLINE;
use crate::{Error, Result, World};

/// How a heap grows on every PE alike.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    /// Its pieces, if it grows by pieces.
    pub cut: Option<Extents>,
    /// How many of them all PEs know.
    pub published: Cell<u32>,
}

/// A registered piece, as its owner tells the others.
type Piece = (u32, HexBytes);

/// Whether a transport learns of a heap's new pieces.
fn grows(via: &Rail, kind: MemoryKind) -> bool {
    match kind {
        MemoryKind::Host => via.pins(),
        _ => true,
    }
}

/// The pieces of this PE's heap from the number `first` on, by the names of transports.
fn pieces_from(
    transports: &[Arc<Rail>],
    kind: MemoryKind,
    first: usize,
) -> Vec<(String, Vec<Piece>)> {
    let told = |via: &Arc<Rail>| {
        let heap = via.registered_heap(kind).regions();
        let new = heap.iter().skip(first);
        let pieces = new.map(|region| (region.id().0, HexBytes(region.key().to_vec())));
        (via.name.to_owned(), pieces.collect())
    };
    let all = transports.iter().filter(|via| grows(via, kind));
    all.map(told).collect()
}

impl World {
    /// How many pieces of a heap are registered, by transport.
    pub(crate) fn pieces(&self, kind: MemoryKind) -> Vec<usize> {
        let all = self.shared.rails.iter();
        all.map(|via| via.registered_heap(kind).regions().len())
            .collect()
    }

    /// Registers what a heap has grown into; who fails takes it back with the others.
    pub(crate) fn register_growth(&self, kind: MemoryKind) -> Result<()> {
        self.heap(kind).register(&self.shared.rails)
    }

    /// Exchanges the keys of what every PE has registered. Collective, and nothing where the heap has
    /// not grown into a new piece, or does not grow by pieces; all PEs find the same.
    pub(crate) fn publish_growth(
        &self,
        call: &'static str,
        kind: MemoryKind,
        digest: CallSignature,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        let growth = self.inner.growth(kind);
        let Some(cut) = growth.cut else {
            return Ok(());
        };
        let high = self.heap(kind).high_water();
        let (published, now) = (growth.published.get(), cut.count(high));
        if now <= published {
            return Ok(());
        }
        let imported = self.exchange_pieces(kind, published as usize);
        self.arrive(call, digest.and(GROWN), imported, words)?;
        growth.published.set(now);
        Ok(())
    }

    fn exchange_pieces(&self, kind: MemoryKind, first: usize) -> Result<()> {
        let transports = &self.shared.rails;
        let mine = pieces_from(transports, kind, first);
        let all: Vec<Vec<(String, Vec<Piece>)>> = exchange(&*self.shared.bootstrap, &mine)?;
        for via in transports.iter().filter(|via| grows(via, kind)) {
            let mut descriptors = self.share_pieces(via, kind, first)?;
            for peer in via.registered_heap(kind).imported().iter() {
                let told = all.get(peer.pe.index()).map_or(&[][..], Vec::as_slice);
                let named = told.iter().find(|(name, _)| *name == via.name);
                let pieces = named
                    .map(|(_, pieces)| pieces.as_slice())
                    .unwrap_or_default();
                if pieces.is_empty() {
                    return Err(Error::Disagreement {
                        a: peer.pe.index(),
                        b: self.my_pe(),
                        what: format!("whether its heap has grown, registered with {}", via.name),
                    });
                }
                let passed = descriptors.iter_mut().find(|(pe, _)| *pe == peer.pe.0);
                let passed = passed.map(|(_, fds)| std::mem::take(fds));
                let mut passed = passed.unwrap_or_default().into_iter();
                for (piece, key) in pieces {
                    let id = RegionId(*piece);
                    via.domain.import(peer, id, &key.0, passed.next())?;
                }
            }
        }
        Ok(())
    }

    /// Passes the descriptors of a transport's new pieces between the PEs of a host that need them;
    /// gives each one's.
    fn share_pieces(
        &self,
        via: &Rail,
        kind: MemoryKind,
        first: usize,
    ) -> Result<Vec<(u32, Vec<OwnedFd>)>> {
        let pieces = via.registered_heap(kind);
        let among = pieces.shared_with();
        if among.len() < 2 {
            return Ok(Vec::new());
        }
        let regions = pieces.regions();
        let new = regions.iter().skip(first);
        let mine: Vec<BorrowedFd<'_>> = new.filter_map(|region| region.descriptor()).collect();
        let bootstrap = &self.shared.bootstrap;
        let shared = bootstrap.share_descriptors(&among, &mine, DESCRIPTOR_DEADLINE)?;
        Ok(among.iter().copied().zip(shared).collect())
    }
}

/// In the digest of the agreement on growth.
const GROWN: u64 = 0x6772_6f77;
