//! The ends of operations, and everything that follows from them.

use std::time::{Duration, Instant};

use crate::fabric::endpoint::{BATCH, Event};
use crate::fabric::fault::{Fault, is_loss};
use crate::peer::Failure;
use crate::receive::{News, Receiver};
use crate::state::{EntryId, Flight, State};

/// Rounds of driving after which the time is looked at even if each had something to do.
const LOOKS: u32 = 64;
/// The time between two looks for PEs that do not serve their messages.
const LOOK: Duration = Duration::from_millis(500);
/// Polls of the completion queue in one call.
const POLLS: usize = 8;
/// Calls in which acknowledgements wait for other messages to go with, although more happens.
const PATIENCE: u32 = 4;

impl State {
    /// Does a bounded amount of work: takes ends of operations and messages, and sends what waits. Gives whether there
    /// was any.
    pub(crate) fn drive(&mut self) -> bool {
        let mut events = std::mem::take(&mut self.events);
        let worked = self.take_events(&mut events);
        self.events = events;
        self.lend();
        // Acknowledgements go with other messages to their PEs, if there soon are such.
        self.unpaid = if self.due.is_empty() {
            0
        } else {
            self.unpaid + 1
        };
        if !worked || self.unpaid > PATIENCE || self.owes_much() {
            self.pay();
        }
        self.pump();
        self.drives = self.drives.wrapping_add(1);
        if !worked || self.drives.is_multiple_of(LOOKS) {
            self.look_after(Instant::now());
        }
        worked
    }

    /// Looks, once in a while, for PEs that do not serve their messages, and asks them.
    fn look_after(&mut self, now: Instant) {
        if self.next_look.is_some_and(|next| now < next) {
            return;
        }
        self.next_look = Some(now + LOOK);
        for pe in 0..self.job.size {
            let Some(peer) = self.peer(pe).filter(|peer| !peer.is_gone()) else {
                continue;
            };
            if peer.watch.look(now, peer.sent, peer.served) {
                peer.owes_question = true;
                self.owe(pe);
            }
        }
    }

    /// A PE has answered a question: messages that it did not receive are lost, and with them the connection.
    fn answered(&mut self, pe: u32, number: u64, served: u64) {
        let lost = self
            .peer(pe)
            .and_then(|peer| peer.watch.answered(number, served));
        let Some(lost) = lost else {
            return;
        };
        self.fail_peer(
            pe,
            Failure::other(format!(
                "it has not received {lost} messages that were sent, so the connection with it was reset on its way: see \
                 whether a firewall or NAT between the hosts forgets connections that are idle, and whether the network \
                 was cut for minutes"
            )),
        );
        if let Some(peer) = self.peer(pe) {
            peer.owes_end = true;
        }
        self.owe(pe);
    }

    /// Takes ends of operations and messages. Gives whether there were any.
    fn take_events(&mut self, events: &mut Vec<Event>) -> bool {
        let mut worked = false;
        self.round += 1;
        for _ in 0..POLLS {
            let Some(endpoint) = &mut self.endpoint else {
                return false;
            };
            if let Err(error) = endpoint.poll(events) {
                self.collapse(error.to_string());
                return true;
            }
            worked |= !events.is_empty();
            let all = events.len() < BATCH;
            for event in events.drain(..) {
                self.end(event);
            }
            self.lend();
            if all {
                break;
            }
        }
        worked
    }

    /// The end of a slot's operation.
    fn end(&mut self, event: Event) {
        let slot = event.slot;
        let why = event.fault.map(|fault| self.explain(fault));
        match self.take_flight(slot) {
            Flight::Idle => {}
            Flight::Receive => {
                match why {
                    None => self.receive(event),
                    Some(why) => tracing::debug!("a receive ended: {}", why.why),
                }
                self.unlent.push(slot);
            }
            Flight::Send { pe } => {
                self.free_slot(pe, slot);
                self.ended_with(pe, why);
            }
            Flight::SendInPlace { of } => {
                self.free_slot(of.pe, slot);
                self.ended_in_place(of);
                self.part_ended(of, why);
            }
            Flight::Write { of } => {
                self.free_slot(of.pe, slot);
                self.part_ended(of, why);
            }
            Flight::Read { of, into } => {
                let alive = why.is_none() && self.entry(of).is_some();
                if let Some(endpoint) = self.endpoint.as_mut().filter(|_| alive) {
                    let bytes = endpoint.bytes(slot);
                    let len = into.len.min(bytes.len());
                    // SAFETY: the entry lives, so its poster keeps the destination writable; the buffer is this
                    // process's.
                    unsafe { oxshmem_heap::copy::copy(into.addr, bytes.as_ptr(), len) };
                }
                self.free_slot(of.pe, slot);
                self.part_ended(of, why);
            }
            Flight::Atomic { of, into } => {
                let alive = why.is_none() && self.entry(of).is_some();
                let endpoint = self.endpoint.as_mut().filter(|_| alive);
                if let (Some(endpoint), Some(into)) = (endpoint, into) {
                    let old = endpoint.old_value(slot);
                    let len = into.len.min(old.len());
                    // SAFETY: the entry lives, so its poster keeps the destination writable.
                    unsafe { oxshmem_heap::copy::copy(into.addr, old.as_ptr(), len) };
                }
                self.free_slot(of.pe, slot);
                self.part_ended(of, why);
            }
            Flight::InPlace { of } => {
                self.free_bare(of.pe, slot);
                self.ended_in_place(of);
                self.part_ended(of, why);
            }
        }
    }

    /// The provider accesses the local memory of one operation less.
    fn ended_in_place(&mut self, of: EntryId) {
        if let Some(stream) = self.stream(of.lane, of.pe) {
            stream.in_place = stream.in_place.saturating_sub(1);
        }
    }

    fn explain(&self, fault: Fault) -> Failure {
        let endpoint = self.endpoint.as_ref();
        let why = endpoint.map_or_else(
            || format!("error {}", fault.code),
            |endpoint| endpoint.explain(fault),
        );
        Failure {
            is_loss: is_loss(fault.code),
            why,
        }
    }

    fn ended_with(&mut self, pe: u32, why: Option<Failure>) {
        if let Some(why) = why {
            self.fail_peer(pe, why);
        }
    }

    fn part_ended(&mut self, of: EntryId, why: Option<Failure>) {
        if why.is_some() {
            return self.ended_with(of.pe, why);
        }
        if let Some(entry) = self.entry(of) {
            entry.parts = entry.parts.saturating_sub(1);
        }
        self.settle(of.pe);
    }

    /// Serves a message.
    fn receive(&mut self, event: Event) {
        let Some(endpoint) = &mut self.endpoint else {
            return;
        };
        let bytes = endpoint.bytes(event.slot);
        let len = event.len.min(bytes.len());
        let mut receiver = Receiver {
            nonce: self.nonce,
            peers: &mut self.peers,
            lanes: &self.lanes,
            regions: &self.regions,
            mailbox: &mut self.mailbox,
            acknowledges: None,
        };
        let news = receiver.receive(&bytes[..len]);
        if let Some(pe) = receiver.acknowledges {
            self.settle(pe);
        }
        match news {
            News::Owed(pe) => self.owe(pe),
            News::Refused(pe) => {
                if let Some(peer) = self.peer(pe) {
                    peer.owes_end = true;
                }
                self.owe(pe);
            }
            News::Ended(pe) => {
                let why = "it has said that the connection failed on its side";
                self.fail_peer(pe, Failure::other(why));
            }
            News::Asked { pe, number } => {
                if let Some(peer) = self.peer(pe) {
                    peer.asks = Some(number);
                }
                self.owe(pe);
            }
            News::Answered { pe, number, served } => self.answered(pe, number, served),
            News::Misplaced { pe, region } => {
                if let Some(peer) = self.peer(pe) {
                    peer.owes_refusal = true;
                }
                self.owe(pe);
                tracing::debug!("ofi: PE {pe} put outside of region {region}");
            }
            News::PutRefused { pe, region } => {
                let why = format!(
                    "it has refused a put, as its region {region} has no such bytes registered (M35: an object that was freed?)"
                );
                self.fail_peer(pe, Failure::other(why));
            }
            News::Nothing => {}
            News::Strange => self.count_strange(len),
        }
    }

    /// Counts a message that makes no sense. Strangers can send any number of these, so that a part of them is logged: the
    /// first, and each after as many again.
    fn count_strange(&mut self, len: usize) {
        self.strange += 1;
        let count = self.strange;
        if count.is_power_of_two() {
            tracing::warn!(
                "ofi: a message of {len} bytes was ignored: it makes no sense here ({count} such so far)"
            );
        }
    }

    /// Whether nothing of this side is under way to PEs that live.
    pub(crate) fn is_quiet(&self) -> bool {
        let of_peer = |pe: u32| {
            self.peers
                .get(pe as usize)
                .is_some_and(|peer| !peer.is_gone())
        };
        let under_way = self.flights.iter().any(|flight| match flight {
            Flight::Idle | Flight::Receive => false,
            Flight::Send { pe } => of_peer(*pe),
            Flight::SendInPlace { of }
            | Flight::Write { of }
            | Flight::Read { of, .. }
            | Flight::Atomic { of, .. }
            | Flight::InPlace { of } => of_peer(of.pe),
        });
        !under_way && !self.has_more()
    }
}
