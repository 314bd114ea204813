//! The way of operations to the provider: each stream sends its entries in order, as far as there is room.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{Local, Op, Reply};

use crate::fabric::endpoint::{LocalPlace, RemotePlace};
use crate::fabric::slots::{BUFFER, SlotId};
use crate::limits::{INLINE, WINDOW};
use crate::message::{Body, HEAD, Head};
use crate::peer::Failure;
use crate::plan::PutPath;
use crate::state::{EntryId, Flight, State};

/// Bytes of data in a message.
const DATA: usize = BUFFER - HEAD;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was sent; there may be more.
    Done,
    /// There is nothing to send.
    Empty,
    /// There is no room now.
    Blocked,
}

/// The source of a message's data: its address, and how many bytes.
type Source = (*const u8, usize);

const NOTHING: Source = (std::ptr::null(), 0);

impl State {
    /// Sends a message, and gives its number; none if there is no room for it now, or its PE is gone.
    ///
    /// # Safety
    ///
    /// The source is readable.
    unsafe fn send_message(
        &mut self,
        pe: u32,
        lane: u64,
        body: Body,
        source: Source,
    ) -> Option<u64> {
        let address = self.address_of(pe)?;
        let numbered = body.is_numbered();
        let me = self.job.me.0;
        let peer = self.peers.get(pe as usize)?;
        let (_, nonce) = peer.known.as_ref()?;
        if numbered && peer.sent - peer.served >= WINDOW {
            return None;
        }
        let head = Head {
            pe: me,
            nonce: *nonce,
            number: if numbered { peer.sent + 1 } else { 0 },
            lane,
            body,
        };
        let slot = self.take_slot(pe, !numbered)?;
        let endpoint = self.endpoint.as_mut()?;
        let (at, len) = source;
        let (place, data) = endpoint.bytes(slot).split_first_chunk_mut::<HEAD>()?;
        head.write(place);
        let data = data.get_mut(..len)?;
        if len > 0 {
            // SAFETY: the source is readable, by the caller's promise; the buffer is this process's.
            unsafe { oxshmem_heap::copy::copy(data.as_mut_ptr(), at, len) };
        }
        match endpoint.send(slot, HEAD + len, address) {
            Ok(true) => {
                self.set_flight(slot, Flight::Send { pe });
                self.took(pe, true);
                let peer = self.peer(pe)?;
                if numbered {
                    peer.sent += 1;
                }
                Some(head.number)
            }
            Ok(false) => {
                self.free_slot(pe, slot);
                self.took(pe, false);
                None
            }
            Err(error) => {
                self.free_slot(pe, slot);
                self.fail_peer(pe, Failure::of(&error));
                None
            }
        }
    }

    /// Sends the acknowledgements and replies that are owed, as far as there is room.
    pub(crate) fn pay(&mut self) {
        for _ in 0..self.due.len() {
            let Some(pe) = self.due.pop_front() else {
                return;
            };
            if let Some(peer) = self.peer(pe) {
                peer.is_due = false;
            }
            if !self.pay_one(pe) {
                self.owe(pe);
            }
        }
    }

    /// Gives whether nothing more is owed to a PE.
    fn pay_one(&mut self, pe: u32) -> bool {
        if self.peer(pe).is_some_and(|peer| peer.owes_end) {
            return self.pay_end(pe);
        }
        let refused = self.peer(pe).filter(|peer| peer.owes_refusal);
        if let Some(region) = refused.and_then(|peer| peer.refused) {
            // SAFETY: there is no data.
            if unsafe { self.send_message(pe, 0, Body::Refused { region }, NOTHING) }.is_none() {
                return self.has_no_debt(pe);
            }
            if let Some(peer) = self.peer(pe) {
                peer.owes_refusal = false;
            }
        }
        while let Some((lane, reply)) = self.peer(pe).and_then(|peer| peer.replies.front().copied())
        {
            let Reply { to, value, number } = reply;
            let body = Body::Reply {
                region: to.region.0,
                offset: to.offset,
                value,
                number,
            };
            // SAFETY: there is no data.
            if unsafe { self.send_message(pe, lane, body, NOTHING) }.is_none() {
                return self.has_no_debt(pe);
            }
            if let Some(peer) = self.peer(pe) {
                peer.replies.pop_front();
            }
        }
        let Some(peer) = self.peer(pe).filter(|peer| peer.owes_acknowledgement) else {
            return true;
        };
        let served = peer.received;
        let body = Body::Acknowledge { served };
        // SAFETY: there is no data.
        if unsafe { self.send_message(pe, 0, body, NOTHING) }.is_none() {
            return self.has_no_debt(pe);
        }
        if let Some(peer) = self.peer(pe) {
            peer.owes_acknowledgement = false;
        }
        true
    }

    /// Tells a PE that the connection with it has failed here. Gives whether that is done, or given up.
    fn pay_end(&mut self, pe: u32) -> bool {
        // SAFETY: there is no data.
        let told = unsafe { self.send_message(pe, 0, Body::Ended, NOTHING) }.is_some();
        let done = told || !self.is_full(pe);
        if let Some(peer) = self.peer(pe).filter(|_| done) {
            peer.owes_end = false;
        }
        done
    }

    /// Whether a PE is gone, which ends all that is owed to it.
    fn has_no_debt(&self, pe: u32) -> bool {
        self.peers
            .get(pe as usize)
            .is_none_or(|peer| peer.is_gone())
    }

    /// Sends what streams have, as far as there is room.
    pub(crate) fn pump(&mut self) {
        for _ in 0..self.listed.len() {
            let Some((lane, pe)) = self.listed.pop_front() else {
                return;
            };
            if let Some(stream) = self
                .lanes
                .get_mut(&lane)
                .and_then(|l| l.streams.get_mut(&pe))
            {
                stream.is_listed = false;
            }
            while self.advance(lane, pe) == Step::Done {}
            let has_more = self.lanes.get_mut(&lane).is_some_and(|lane| {
                let stream = lane.streams.get_mut(&pe);
                stream.is_some_and(|stream| stream.current().is_some())
            });
            if has_more {
                self.list(lane, pe);
            }
        }
    }

    /// Sends the next part of a stream's current entry.
    fn advance(&mut self, lane: u64, pe: u32) -> Step {
        let stream = self
            .lanes
            .get_mut(&lane)
            .and_then(|l| l.streams.get_mut(&pe));
        let Some((serial, entry)) = stream.and_then(|stream| stream.current()) else {
            return Step::Empty;
        };
        let of = EntryId { lane, pe, serial };
        let (op, target, signal) = (entry.op, entry.target, entry.signal);
        let (copied, started) = (entry.copied.as_ptr(), entry.started);
        let has_copy = !entry.copied.is_empty();
        let source = |from: Local| match has_copy {
            true => copied,
            false => from.addr.cast_const(),
        };
        match (op, target) {
            (Op::Put { from, .. } | Op::PutSignal { from, .. }, Some((key, offset))) => {
                let rest = from.len as u64 - started;
                let at = source(from).wrapping_add(started as usize);
                let offset = offset + started;
                if self.ways.puts == PutPath::Rma && signal.is_none() {
                    let place = RemotePlace {
                        addr: key.base.wrapping_add(offset),
                        key: key.key,
                    };
                    return self.advance_write(of, from, (at, rest), place);
                }
                // No word of 8 bytes is in two messages.
                let phase = (u64::from(key.phase) + offset) % 8;
                let len = rest.min(DATA as u64 - phase);
                let last = len == rest;
                if last && len == 0 && signal.is_none() {
                    return self.begin(of, 0);
                }
                let body = Body::Put {
                    region: key.region,
                    offset,
                    signal: signal.filter(|_| last),
                };
                // Stores that other threads of this PE have made are sent.
                fence(Ordering::Acquire);
                // SAFETY: the poster keeps the source readable, or it was copied.
                let sent = unsafe { self.send_message(pe, lane, body, (at, len as usize)) };
                self.sent(of, sent, len, last)
            }
            (Op::Get { into, .. }, Some((key, offset))) => {
                let place = RemotePlace {
                    addr: key.base.wrapping_add(offset + started),
                    key: key.key,
                };
                self.advance_read(of, into, started, place)
            }
            (Op::Message { from }, _) => {
                // SAFETY: the bytes were copied, or `post` has not returned yet.
                let sent =
                    unsafe { self.send_message(pe, lane, Body::Message, (source(from), from.len)) };
                self.sent(of, sent, 0, true)
            }
            _ => {
                // SAFETY: there is no data.
                let sent = unsafe { self.send_message(pe, lane, Body::Ping, NOTHING) };
                self.sent(of, sent, 0, true)
            }
        }
    }

    /// Records a message of an entry, the last of it or not.
    fn sent(&mut self, of: EntryId, sent: Option<u64>, len: u64, last: bool) -> Step {
        let Some(number) = sent else {
            return Step::Blocked;
        };
        if last {
            return self.begin(of, number);
        }
        if let Some(entry) = self.entry(of) {
            entry.started += len;
            entry.number = number;
        }
        Step::Done
    }

    /// An entry is under way as a whole.
    fn begin(&mut self, of: EntryId, number: u64) -> Step {
        let served = self.peers.get(of.pe as usize).map_or(0, |peer| peer.served);
        let lane = self.lanes.get_mut(&of.lane);
        if let Some(stream) = lane.and_then(|lane| lane.streams.get_mut(&of.pe)) {
            if let Some(entry) = stream.entry(of.serial) {
                entry.number = entry.number.max(number);
            }
            stream.begin();
            stream.settle(served);
        }
        Step::Done
    }

    pub(crate) fn entry(&mut self, of: EntryId) -> Option<&mut crate::stream::Entry> {
        let lane = self.lanes.get_mut(&of.lane)?;
        lane.streams.get_mut(&of.pe)?.entry(of.serial)
    }

    /// A write of the rest of an entry, or of a part as long as the provider takes.
    fn advance_write(
        &mut self,
        of: EntryId,
        from: Local,
        (at, rest): (*const u8, u64),
        place: RemotePlace,
    ) -> Step {
        if rest == 0 {
            return self.begin(of, 0);
        }
        let Some(address) = self.address_of(of.pe) else {
            return Step::Blocked;
        };
        let len = rest.min(self.ways.longest);
        if len <= BUFFER as u64 {
            let Some(slot) = self.take_slot(of.pe, false) else {
                return Step::Blocked;
            };
            let Some(endpoint) = self.endpoint.as_mut() else {
                return Step::Blocked;
            };
            let buffer = endpoint.bytes(slot);
            if buffer.len() >= len as usize {
                // SAFETY: the poster keeps the source readable, or it was copied; the buffer is this process's.
                unsafe { oxshmem_heap::copy::copy(buffer.as_mut_ptr(), at, len as usize) };
            }
            let taken = endpoint.write(slot, len as usize, address, place);
            return self.posted(of, slot, Flight::Write { of }, taken, (len, len == rest));
        }
        let Some(slot) = self.take_bare(of.pe) else {
            return Step::Blocked;
        };
        let local = LocalPlace {
            addr: at.cast_mut(),
            len: len as usize,
            descriptor: self.descriptor(from),
        };
        let Some(endpoint) = self.endpoint.as_mut() else {
            return Step::Blocked;
        };
        // SAFETY: the poster keeps the source until the operation has completed, or its lane or PE is gone, for which
        // it then waits.
        let taken = unsafe { endpoint.write_from(slot, local, address, place) };
        self.posted(of, slot, Flight::InPlace { of }, taken, (len, len == rest))
    }

    /// A read of the rest of an entry, or of a part as long as the provider takes.
    fn advance_read(&mut self, of: EntryId, into: Local, started: u64, place: RemotePlace) -> Step {
        let rest = into.len as u64 - started;
        if rest == 0 {
            return self.begin(of, 0);
        }
        let Some(address) = self.address_of(of.pe) else {
            return Step::Blocked;
        };
        let len = rest.min(self.ways.longest);
        let part = Local {
            addr: into.addr.wrapping_add(started as usize),
            len: len as usize,
            key: into.key,
        };
        if len <= BUFFER as u64 {
            let Some(slot) = self.take_slot(of.pe, false) else {
                return Step::Blocked;
            };
            let Some(endpoint) = self.endpoint.as_mut() else {
                return Step::Blocked;
            };
            let taken = endpoint.read(slot, part.len, address, place);
            let flight = Flight::Read { of, into: part };
            return self.posted(of, slot, flight, taken, (len, len == rest));
        }
        let Some(slot) = self.take_bare(of.pe) else {
            return Step::Blocked;
        };
        let local = LocalPlace {
            addr: part.addr,
            len: part.len,
            descriptor: self.descriptor(into),
        };
        let Some(endpoint) = self.endpoint.as_mut() else {
            return Step::Blocked;
        };
        // SAFETY: the poster keeps the memory until the operation has completed, or its lane or PE is gone, for which
        // it then waits.
        let taken = unsafe { endpoint.read_into(slot, local, address, place) };
        self.posted(of, slot, Flight::InPlace { of }, taken, (len, len == rest))
    }

    /// The descriptor of registered memory of this side.
    fn descriptor(&self, local: Local) -> *mut std::ffi::c_void {
        let none = std::ptr::null_mut();
        let Some(key) = local.key.filter(|_| self.ways.local_keys) else {
            return none;
        };
        if let Some(region) = self.locals.get(&key.0) {
            return region.descriptor();
        }
        let number = u32::try_from(key.0 ^ OWN).ok();
        let region = number.and_then(|number| self.regions.0.get(&number));
        let registration = region.and_then(|region| region.registration.as_ref());
        registration.map_or(none, |registration| registration.descriptor())
    }

    /// Records a read or write of an entry that the provider was given.
    fn posted(
        &mut self,
        of: EntryId,
        slot: SlotId,
        flight: Flight,
        taken: oxshmem_transport::Result<bool>,
        (len, last): (u64, bool),
    ) -> Step {
        let in_place = matches!(flight, Flight::InPlace { .. });
        if !matches!(taken, Ok(true)) {
            match in_place {
                true => self.free_bare(of.pe, slot),
                false => self.free_slot(of.pe, slot),
            }
            match taken {
                Err(error) => self.fail_peer(of.pe, Failure::of(&error)),
                Ok(_) => self.took(of.pe, false),
            }
            return Step::Blocked;
        }
        self.took(of.pe, true);
        self.set_flight(slot, flight);
        let lane = self.lanes.get_mut(&of.lane);
        if let Some(stream) = lane.and_then(|lane| lane.streams.get_mut(&of.pe)) {
            stream.in_place += u32::from(in_place);
            if let Some(entry) = stream.entry(of.serial) {
                entry.parts += 1;
                entry.started += len;
            }
            if last {
                stream.begin();
            }
        }
        Step::Done
    }

    /// Copies the sources of a stream's entries that have not started, where their poster may reuse them at once.
    ///
    /// # Safety
    ///
    /// These sources are readable.
    pub(crate) unsafe fn keep_short_sources(&mut self, lane: u64, pe: u32) {
        let stream = self
            .lanes
            .get_mut(&lane)
            .and_then(|l| l.streams.get_mut(&pe));
        let Some(stream) = stream else {
            return;
        };
        for entry in stream.entries.iter_mut().skip(stream.next) {
            let from = match entry.op {
                Op::Put { from, .. } | Op::PutSignal { from, .. } if from.len <= INLINE => from,
                Op::Message { from } => from,
                _ => continue,
            };
            if entry.copied.is_empty() && from.len > 0 && entry.started == 0 {
                entry.copied.resize(from.len, 0);
                // SAFETY: the source is readable, by the caller's promise.
                unsafe { oxshmem_heap::copy::copy(entry.copied.as_mut_ptr(), from.addr, from.len) };
            }
        }
    }
}

/// The bit of local keys that name a region of this PE.
pub(crate) const OWN: u64 = 1 << 63;
