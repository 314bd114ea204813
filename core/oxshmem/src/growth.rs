//! The heap's growth where transports pin what they register: pieces are registered inside the
//! collective call that first reaches into them, their keys exchanged there, or all is as it was (M13).

use oxshmem_transport::{MemoryKind, RegionId};

use crate::join::{Bytes, exchange};
use crate::sync::Digest;
use crate::wire::Opened;
use crate::{Error, Result, World};

/// A registered piece, as its owner tells the others.
pub(crate) type Piece = (u32, Bytes);

/// The pieces of this PE's heap from the number `first` on, by the names of transports.
fn pieces_from(transports: &[Opened], first: usize) -> Vec<(String, Vec<Piece>)> {
    let pinned = transports.iter().filter(|via| via.pins());
    let told = |via: &Opened| {
        let heap = via.heap();
        let new = heap.iter().skip(first);
        let pieces = new.map(|region| (region.id().0, Bytes(region.key().to_vec())));
        (via.name.to_owned(), pieces.collect())
    };
    pinned.map(told).collect()
}

impl World {
    /// How many pieces are registered, by transport.
    pub(crate) fn pieces(&self) -> Vec<usize> {
        let all = self.inner.wire.transports.iter();
        all.map(|via| via.heap().len()).collect()
    }

    /// Registers what the heap has grown into; who fails takes it back with the others.
    pub(crate) fn register_growth(&self) -> Result<()> {
        let transports = &self.inner.wire.transports;
        let own = self.own_mapping();
        self.heap(MemoryKind::Host).register(transports, own)
    }

    /// Exchanges the keys of what every PE has registered. Collective, and nothing where the heap has
    /// not grown into a new piece, or no PE's transport pins; all PEs find the same.
    pub(crate) fn publish_growth(
        &self,
        call: &'static str,
        digest: Digest,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        let Some(cut) = self.inner.grows else {
            return Ok(());
        };
        let high = self.heap(MemoryKind::Host).high_water();
        let (published, now) = (self.inner.published.get(), cut.count(high));
        if now <= published {
            return Ok(());
        }
        let imported = self.exchange_pieces(published as usize);
        self.together(call, digest.and(GROWN), imported, words)?;
        self.inner.published.set(now);
        Ok(())
    }

    fn exchange_pieces(&self, first: usize) -> Result<()> {
        let transports = &self.inner.wire.transports;
        let mine = pieces_from(transports, first);
        let all: Vec<Vec<(String, Vec<Piece>)>> = exchange(&*self.inner.bootstrap, &mine)?;
        for via in transports.iter().filter(|via| via.pins()) {
            for peer in via.imported.borrow().iter() {
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
                for (piece, key) in pieces {
                    via.domain.import(peer, RegionId(*piece), &key.0, None)?;
                }
            }
        }
        Ok(())
    }
}

/// In the digest of the agreement on growth.
const GROWN: u64 = 0x6772_6f77;
