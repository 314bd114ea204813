//! The state of a domain: its endpoint, peers, lanes and regions, all under one lock.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Job, Local, Pe, Result};

use crate::fabric::endpoint::{BARE, Endpoint, Event, PeerAddress, RECEIVES, SENDS};
use crate::fabric::memory::MemoryRegion;
use crate::fabric::slots::SlotId;
use crate::lane_state::LaneState;
use crate::limits::NAME;
use crate::mailbox::Mailbox;
use crate::peer::{Failure, PeerState};
use crate::plan::PutPath;
use crate::region::OwnRegions;
use crate::stream::Stream;

/// Slots that only acknowledgements and replies take.
const RESERVE: usize = 16;
/// Slots that operations to one PE take at most, with a buffer and without.
const SHARE: u32 = 16;
const BARE_SHARE: u32 = 16;
/// Slots of both kinds that only operations to PEs with none in flight take.
const KEPT: usize = 32;
const BARE_KEPT: usize = 64;

/// Whether an operation to a PE that has so many in flight may take one of the free slots. The last are kept for PEs that
/// have none, and the fewer others are free, the fewer a PE may have: so PEs that do not answer starve no other, up to
/// more than as many of them as slots are kept.
fn may_take(in_flight: u32, free: usize, kept: usize, share: u32) -> bool {
    let fair = free.saturating_sub(kept).min(share as usize);
    (in_flight as usize) < fair || (in_flight == 0 && free > 0)
}

/// The operation that a slot is in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flight {
    /// None.
    Idle,
    /// Waits for a message.
    Receive,
    /// A message to a PE.
    Send { pe: u32 },
    /// A message of an entry, with data in place.
    SendInPlace { of: EntryId },
    /// A write of an entry, from the slot's buffer.
    Write { of: EntryId },
    /// A read of an entry, into the slot's buffer, with the memory where the data goes.
    Read { of: EntryId, into: Local },
    /// An atomic of an entry, with the memory where the old value goes.
    Atomic { of: EntryId, into: Option<Local> },
    /// A read or write of an entry, in place.
    InPlace { of: EntryId },
}

/// The name of an entry of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryId {
    pub lane: u64,
    pub pe: u32,
    pub serial: u64,
}

/// Memory that is registered for the local side alone.
#[derive(Debug)]
pub(crate) struct LocalMemory {
    pub registration: MemoryRegion,
    pub on_gpu: bool,
}

/// The parts of a domain's work that depend on its provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    pub puts: PutPath,
    /// Local memory in place needs a descriptor.
    pub local_keys: bool,
    /// Some memory may be a GPU's.
    pub gpu: bool,
    /// The longest operation of the provider.
    pub longest: u64,
    /// The longest message, with its head: the provider ends it in any case.
    pub message: usize,
    /// The time for a first connection.
    pub connect_timeout: Duration,
}

/// A domain's state.
#[derive(Debug)]
pub(crate) struct State {
    pub job: Job,
    pub nonce: u64,
    pub ways: Ways,
    pub closed: bool,
    /// The reason why the endpoint has ended, if it failed.
    pub failed: Option<String>,
    pub peers: Vec<PeerState>,
    pub lanes: BTreeMap<u64, LaneState>,
    pub next_lane: u64,
    /// Streams that have something to send: a lane, and a PE.
    pub listed: VecDeque<(u64, u32)>,
    /// Whether the lanes that sleep were woken since one of them began to.
    pub woke_lanes: bool,
    /// The number of this round of sending: a PE that is full in a round is not tried again in it.
    pub round: u64,
    /// PEs to which acknowledgements or replies are owed.
    pub due: VecDeque<u32>,
    /// Rounds in which they were not paid.
    pub unpaid: u32,
    /// Rounds of driving, and the time of the next look for PEs that do not serve their messages.
    pub drives: u32,
    pub next_look: Option<Instant>,
    pub mailbox: Mailbox,
    pub flights: Vec<Flight>,
    /// Room for the ends of operations, used again and again.
    pub events: Vec<Event>,
    /// Room for the puts of a batch, used again and again.
    pub batch: Vec<u8>,
    pub free: Vec<SlotId>,
    pub free_bare: Vec<SlotId>,
    /// Slots that should receive, and that the provider had no room for.
    pub unlent: Vec<SlotId>,
    /// Messages that made no sense.
    pub strange: u64,
    // Registrations end before the endpoint.
    pub regions: OwnRegions,
    pub locals: BTreeMap<u64, LocalMemory>,
    pub next_local: u64,
    pub endpoint: Option<Endpoint>,
}

// SAFETY: the raw pointers in entries and flights are the posters', who promised their validity until the operation has
// ended or its lane was dropped, on whatever thread.
unsafe impl Send for State {}

impl State {
    /// The state around an endpoint, whose slots that receive are lent.
    pub(crate) fn new(job: Job, nonce: u64, ways: Ways, endpoint: Endpoint) -> State {
        let all = SENDS + RECEIVES + BARE;
        let numbered = |from: u32, count: u32| (from..from + count).map(SlotId).collect();
        let mut state = State {
            peers: (0..job.size).map(|_| PeerState::default()).collect(),
            job,
            nonce,
            ways,
            closed: false,
            failed: None,
            lanes: BTreeMap::new(),
            next_lane: 1,
            listed: VecDeque::new(),
            woke_lanes: false,
            round: 1,
            due: VecDeque::new(),
            unpaid: 0,
            drives: 0,
            next_look: None,
            mailbox: Mailbox::default(),
            flights: vec![Flight::Idle; all as usize],
            events: Vec::new(),
            batch: Vec::new(),
            free: numbered(0, SENDS),
            unlent: numbered(SENDS, RECEIVES),
            free_bare: numbered(SENDS + RECEIVES, BARE),
            strange: 0,
            regions: OwnRegions::default(),
            locals: BTreeMap::new(),
            next_local: 1,
            endpoint: Some(endpoint),
        };
        state.lend();
        state
    }

    /// Lends slots to messages that arrive.
    pub(crate) fn lend(&mut self) {
        while let Some(slot) = self.unlent.pop() {
            let Some(endpoint) = &mut self.endpoint else {
                return;
            };
            match endpoint.receive(slot) {
                Ok(true) => self.set_flight(slot, Flight::Receive),
                Ok(false) => {
                    self.unlent.push(slot);
                    return;
                }
                Err(error) => {
                    self.collapse(error.to_string());
                    return;
                }
            }
        }
    }

    pub(crate) fn set_flight(&mut self, slot: SlotId, flight: Flight) {
        if let Some(place) = self.flights.get_mut(slot.0 as usize) {
            *place = flight;
        }
    }

    pub(crate) fn take_flight(&mut self, slot: SlotId) -> Flight {
        let flight = self.flights.get_mut(slot.0 as usize);
        flight.map_or(Flight::Idle, |flight| {
            std::mem::replace(flight, Flight::Idle)
        })
    }

    pub(crate) fn peer(&mut self, pe: u32) -> Option<&mut PeerState> {
        self.peers.get_mut(pe as usize)
    }

    /// The stream of a lane to a PE; none if nothing was ever posted to it, or the lane was dropped.
    pub(crate) fn stream(&mut self, lane: u64, pe: u32) -> Option<&mut Stream> {
        self.lanes.get_mut(&lane)?.streams.get_mut(&pe)
    }

    /// Whether there is a slot for an operation to a PE; `owed` if it is an acknowledgement or a reply.
    fn has_slot(&self, pe: u32, owed: bool) -> bool {
        let free = self.free.len();
        let peer = self.peers.get(pe as usize);
        peer.is_some_and(|peer| match owed {
            true => free > 0,
            false => may_take(peer.in_flight, free.saturating_sub(RESERVE), KEPT, SHARE),
        })
    }

    /// Such a slot.
    pub(crate) fn take_slot(&mut self, pe: u32, owed: bool) -> Option<SlotId> {
        if !self.has_slot(pe, owed) {
            return None;
        }
        let peer = self.peers.get_mut(pe as usize)?;
        let slot = self.free.pop()?;
        peer.in_flight += 1;
        Some(slot)
    }

    /// Whether a numbered message to a PE can be sent now, unless the provider has no room for it.
    pub(crate) fn has_room(&self, pe: u32) -> bool {
        let peer = self.peers.get(pe as usize);
        peer.is_some_and(PeerState::has_window) && !self.is_full(pe) && self.has_slot(pe, false)
    }

    /// A slot for an operation to a PE on memory in place.
    pub(crate) fn take_bare(&mut self, pe: u32) -> Option<SlotId> {
        let peer = self.peers.get_mut(pe as usize)?;
        if !may_take(peer.in_place, self.free_bare.len(), BARE_KEPT, BARE_SHARE) {
            return None;
        }
        let slot = self.free_bare.pop()?;
        peer.in_place += 1;
        Some(slot)
    }

    /// Gives such a slot back.
    pub(crate) fn free_bare(&mut self, pe: u32, slot: SlotId) {
        self.free_bare.push(slot);
        if let Some(peer) = self.peer(pe) {
            peer.in_place = peer.in_place.saturating_sub(1);
        }
    }

    /// The provider has taken an operation to a PE, or has no room for it now.
    pub(crate) fn took(&mut self, pe: u32, taken: bool) {
        let (round, timeout) = (self.round, self.ways.connect_timeout);
        let Some(peer) = self.peer(pe) else {
            return;
        };
        if taken {
            return peer.reached();
        }
        if let Some(why) = peer.refused(round, Instant::now(), timeout) {
            self.fail_peer(pe, Failure::other(why));
        }
    }

    /// Whether the provider has said in this round that it takes no more to a PE.
    pub(crate) fn is_full(&self, pe: u32) -> bool {
        let peer = self.peers.get(pe as usize);
        peer.is_some_and(|peer| peer.full_in == self.round)
    }

    /// Gives a slot back whose operation to a PE has ended or was not taken.
    pub(crate) fn free_slot(&mut self, pe: u32, slot: SlotId) {
        self.free.push(slot);
        if let Some(peer) = self.peer(pe) {
            peer.in_flight = peer.in_flight.saturating_sub(1);
        }
    }

    /// A PE's place in the address vector. None if the provider takes no more to it in this round, or it cannot be used,
    /// which its failure then says.
    pub(crate) fn address_of(&mut self, pe: u32) -> Option<PeerAddress> {
        if self.is_full(pe) {
            return None;
        }
        let peer = self.peers.get_mut(pe as usize)?;
        if let Some(address) = peer.address {
            return Some(address);
        }
        let (name, _) = peer.known.as_ref()?;
        match self.endpoint.as_mut()?.insert(name) {
            Ok(address) => {
                peer.address = Some(address);
                Some(address)
            }
            Err(error) => {
                self.fail_peer(pe, Failure::of(&error));
                None
            }
        }
    }

    /// Owes a PE an acknowledgement or replies.
    pub(crate) fn owe(&mut self, pe: u32) {
        if let Some(peer) = self.peers.get_mut(pe as usize)
            && !peer.is_due
        {
            peer.is_due = true;
            self.due.push_back(pe);
        }
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_more(&self) -> bool {
        !self.listed.is_empty() || !self.due.is_empty()
    }

    /// Lists a stream among those that have something to send.
    pub(crate) fn list(&mut self, lane: u64, pe: u32) {
        let stream = self.stream(lane, pe);
        if let Some(stream) = stream.filter(|stream| !stream.is_listed) {
            stream.is_listed = true;
            self.listed.push_back((lane, pe));
        }
    }

    /// Counts the operations to a PE that are done, on every lane.
    pub(crate) fn settle(&mut self, pe: u32) {
        let served = self.peers.get(pe as usize).map_or(0, |peer| peer.served);
        for lane in self.lanes.values_mut() {
            if let Some(stream) = lane.streams.get_mut(&pe) {
                stream.settle(served);
            }
        }
    }

    /// Ends the operations to a PE, on every lane.
    pub(crate) fn cancel(&mut self, pe: u32) {
        for lane in self.lanes.values_mut() {
            if let Some(stream) = lane.streams.get_mut(&pe) {
                stream.cancel();
            }
        }
        if let Some(peer) = self.peer(pe) {
            peer.replies.clear();
            peer.early.clear();
            peer.acknowledged = peer.received;
        }
        self.mailbox.forget(pe);
    }

    /// The connection with a PE has failed. Lanes with operations to it report that.
    pub(crate) fn fail_peer(&mut self, pe: u32, failure: Failure) {
        let Some(peer) = self
            .peers
            .get_mut(pe as usize)
            .filter(|peer| !peer.is_gone())
        else {
            return;
        };
        tracing::info!("ofi: the connection with PE {pe} failed: {}", failure.why);
        peer.failure = Some(Failure {
            is_loss: failure.is_loss && peer.was_heard,
            ..failure
        });
        // A lane without operations to it is not told: a PE that has left in order may fail, too.
        for lane in self.lanes.values_mut() {
            let has_some = |stream: &Stream| !stream.entries.is_empty();
            if lane.streams.get(&pe).is_some_and(has_some) {
                lane.reports.extend(peer.refusal(Pe(pe)));
            }
        }
        self.cancel(pe);
        self.disconnect(pe);
    }

    /// Takes a PE out of the address vector: the provider ends its operations to it, and gives their slots back.
    pub(crate) fn disconnect(&mut self, pe: u32) {
        let address = self.peer(pe).and_then(|peer| peer.address.take());
        if let (Some(address), Some(endpoint)) = (address, self.endpoint.as_mut())
            && let Err(error) = endpoint.remove(address)
        {
            tracing::debug!("the connection with PE {pe} is not closed: {error}");
        }
    }

    /// Gives up the PEs for whose operations in place of a lane was waited in vain: their connections are closed.
    pub(crate) fn give_up_in_place(&mut self, lane: u64) {
        let Some(lane) = self.lanes.get(&lane) else {
            return;
        };
        let streams = lane.streams.iter();
        let stuck = streams.filter_map(|(pe, stream)| (stream.in_place > 0).then_some(*pe));
        for pe in stuck.collect::<Vec<_>>() {
            let why = "a transfer that was given up did not end, so that the connection was closed";
            self.fail_peer(pe, Failure::other(why));
            // Of a PE that was gone before, an answer may have made a new connection.
            self.disconnect(pe);
        }
    }

    /// Ends the endpoint, after which the provider accesses no memory: it has failed, or does not end an operation.
    pub(crate) fn collapse(&mut self, why: String) {
        if self.failed.is_some() {
            return;
        }
        tracing::warn!("ofi: the endpoint is closed: {why}");
        for region in self.regions.0.values_mut() {
            region.registration = None;
        }
        self.locals.clear();
        self.endpoint = None;
        self.flights.fill(Flight::Idle);
        for lane in self.lanes.values_mut() {
            for stream in lane.streams.values_mut() {
                stream.cancel();
                stream.in_place = 0;
            }
        }
        self.failed = Some(why);
    }

    /// The error of a lane, if the whole endpoint has ended.
    pub(crate) fn check(&self) -> Result<()> {
        if self.closed {
            return Err(Error::Closed { transport: NAME });
        }
        match &self.failed {
            None => Ok(()),
            Some(why) => Err(Error::Os {
                transport: NAME,
                call: "the endpoint".into(),
                source: std::io::Error::other(why.clone()),
            }),
        }
    }

    /// Whether the provider has operations of a lane on memory in place: to any PE, or to those that are gone.
    pub(crate) fn has_in_place(&self, lane: u64, to_any: bool) -> bool {
        let Some(lane) = self.lanes.get(&lane) else {
            return false;
        };
        let gone = |pe: u32| self.peers.get(pe as usize).is_some_and(PeerState::is_gone);
        let mut streams = lane.streams.iter();
        streams.any(|(pe, stream)| stream.in_place > 0 && (to_any || gone(*pe)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots that are free once each of so many PEs has taken all that it may, one after the other.
    fn left(stuck: usize, all: usize, kept: usize, share: u32) -> usize {
        let mut free = all;
        for _ in 0..stuck {
            let mut held = 0;
            while may_take(held, free, kept, share) {
                held += 1;
                free -= 1;
            }
            assert!((1..=share).contains(&held), "{stuck} stuck PEs: {held}");
        }
        free
    }

    #[test]
    fn pes_that_do_not_answer_leave_slots_for_the_others() {
        for stuck in 0..KEPT {
            let sends = left(stuck, SENDS as usize - RESERVE, KEPT, SHARE);
            assert!(may_take(0, sends, KEPT, SHARE), "{stuck} stuck PEs");
            let bare = left(stuck, BARE as usize, BARE_KEPT, BARE_SHARE);
            assert!(
                may_take(0, bare, BARE_KEPT, BARE_SHARE),
                "{stuck} stuck PEs"
            );
        }
        // One alone has its share.
        let free = SENDS as usize - RESERVE - left(1, SENDS as usize - RESERVE, KEPT, SHARE);
        assert_eq!(free, SHARE as usize);
        assert!(!may_take(0, 0, KEPT, SHARE));
    }
}
