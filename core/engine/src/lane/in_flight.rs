//! The operations of one context in flight on one endpoint, by target PE.

use crate::order::op_set::OpSet;
use crate::peer::pe_set::PeSet;

/// How far a posted operation must have come before the call returns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// Accepted by the lane.
    Posted,
    /// Done with its local memory: a source was read, a destination has its data.
    Reusable,
    /// Completed, as the transport counts it.
    Completed,
}

/// The work that an operation leaves for a later fence or quiet.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// None: it reads, and has read when it returns.
    Read,
    /// Updates that a fence orders.
    Write(OpSet),
    /// Nonblocking updates.
    WriteNbi(OpSet),
    /// Data that a nonblocking operation brings here, and its updates; a get has none.
    FetchNbi(OpSet),
}

impl Effect {
    #[inline]
    pub(crate) fn updates(self) -> OpSet {
        match self {
            Effect::Read => OpSet::NONE,
            Effect::Write(updates) | Effect::WriteNbi(updates) | Effect::FetchNbi(updates) => {
                updates
            }
        }
    }
}

/// The operations of one context in flight on its endpoint.
#[derive(Default)]
pub(crate) struct InFlight {
    /// By PE, since the context's last quiet towards it; empty before the first operation.
    by_pe: Vec<PeerInFlight>,
    /// The PEs with operations in flight.
    peers: PeSet,
    /// The PEs whose fetches were cancelled and not yet reported by a quiet.
    cancelled_fetches: Vec<usize>,
}

/// One operation as it is issued.
#[derive(Clone, Copy)]
pub(crate) struct Issued {
    /// None if it only reads.
    pub updates: OpSet,
    /// Those that a fence orders.
    pub ordered: OpSet,
    /// Whether it brings data here.
    pub fetches: bool,
}

/// The operations in flight to one PE.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerInFlight {
    /// Whether there are any.
    listed: bool,
    /// Updates that the next fence orders.
    pub ordered: OpSet,
    /// Updates that quiet completes: these, and nonblocking ones. None for reads alone.
    pub updates: OpSet,
    /// A fence has ordered these before later operations on other endpoints.
    pub fenced: bool,
    /// Some of them bring data here.
    pub fetches: bool,
    /// All of them are words of collective calls, whose arrival the words of their receivers will tell.
    pub only_sync_words: bool,
    /// Messages among them were cancelled: no reply can arrive any more.
    pub messages_cancelled: bool,
}

impl InFlight {
    /// The operations in flight to a PE, if there are any.
    pub(crate) fn to_peer(&self, pe: usize) -> Option<&PeerInFlight> {
        self.by_pe.get(pe).filter(|peer| peer.listed)
    }

    fn to_peer_mut(&mut self, pe: usize) -> Option<&mut PeerInFlight> {
        self.by_pe.get_mut(pe).filter(|peer| peer.listed)
    }

    #[cold]
    fn make_room(&mut self, pes: usize) {
        self.by_pe.resize(pes, PeerInFlight::default());
        self.peers.reserve(pes);
    }

    /// Adds an operation. There are `pes` PEs.
    #[inline]
    pub(crate) fn add(&mut self, pes: usize, pe: usize, issued: Issued) {
        let Issued {
            updates,
            ordered,
            fetches,
        } = issued;
        if self.by_pe.is_empty() {
            self.make_room(pes);
        }
        if let Some(peer) = self.by_pe.get_mut(pe) {
            if !peer.listed {
                peer.listed = true;
                self.peers.insert(pe);
            }
            peer.fetches |= fetches;
            peer.only_sync_words = false;
            peer.updates.add(updates);
            peer.ordered.add(ordered);
        }
    }

    /// Whether nothing but words of collective calls is in flight to a PE.
    pub(crate) fn has_only_sync_words(&self, pe: usize) -> bool {
        self.to_peer(pe).is_none_or(|peer| peer.only_sync_words)
    }

    /// The operations in flight to a PE are such words.
    pub(crate) fn mark_sync_words(&mut self, pe: usize) {
        if let Some(peer) = self.to_peer_mut(pe) {
            peer.only_sync_words = true;
        }
    }

    /// A fence orders the operations in flight to a PE before later ones on other endpoints.
    pub(crate) fn mark_fenced(&mut self, pe: usize) {
        if let Some(peer) = self.to_peer_mut(pe) {
            peer.fenced = true;
        }
    }

    /// Messages to a PE were cancelled. They stay in flight until the PE's loss is acknowledged.
    pub(crate) fn cancel_messages(&mut self, pe: usize) {
        if let Some(peer) = self.to_peer_mut(pe) {
            peer.messages_cancelled = true;
        }
    }

    /// A quiet has reported that the data fetched from a PE do not arrive.
    pub(crate) fn failure_was_reported(&mut self, pe: usize) {
        if let Some(peer) = self.by_pe.get_mut(pe) {
            peer.fetches = false;
        }
        self.cancelled_fetches.retain(|cancelled| *cancelled != pe);
    }

    /// The PEs whose fetches were cancelled and not yet reported by a quiet.
    pub(crate) fn cancelled_fetches(&self) -> &[usize] {
        &self.cancelled_fetches
    }

    /// The operations in flight to a PE are cancelled.
    pub(crate) fn cancel(&mut self, pe: usize) {
        let fetches = self.to_peer(pe).is_some_and(|peer| peer.fetches);
        if fetches && !self.cancelled_fetches.contains(&pe) {
            self.cancelled_fetches.push(pe);
        }
        self.complete(pe);
    }

    /// The operations in flight to a PE have completed.
    pub(crate) fn complete(&mut self, pe: usize) {
        if let Some(peer) = self.to_peer_mut(pe) {
            *peer = PeerInFlight::default();
            self.peers.remove(pe);
        }
    }

    /// Whether nothing is in flight, nor to be reported.
    pub(crate) fn is_empty(&self) -> bool {
        self.peers.is_empty() && self.cancelled_fetches.is_empty()
    }

    /// The first PE from `from` on with operations in flight. By PE, so completions in between do no harm.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        self.peers.next(from)
    }
}
