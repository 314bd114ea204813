//! The way of operations to the provider: each stream sends its entries in order, as far as there is room.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{AtomicRequest, Local, Op, Reply};

use crate::fabric::endpoint::{LocalPlace, RemotePlace};
use crate::fabric::slots::BUFFER;
use crate::limits::{BATCH, INLINE, SMALL, WINDOW};
use crate::message::{Body, HEAD, Head, Record};
use crate::own::{OwnOp, goes_through_provider};
use crate::peer::{Failure, PeerState};
use crate::plan::PutPath;
use crate::rma::Way;
use crate::state::{EntryId, Flight, State};
use crate::stream::{Entry, Step};

/// The source of a message's data.
#[derive(Clone, Copy, Debug)]
enum Source {
    Nothing,
    /// So many bytes at an address, which are copied.
    Copied(*const u8, usize),
    /// Data of an entry, which the provider sends in place.
    InPlace(EntryId, LocalPlace),
}

/// The memory of an operation behind the bytes that have started.
fn rest_of(local: Local, started: u64) -> Local {
    Local {
        addr: local.addr.wrapping_add(started as usize),
        len: local.len - started as usize,
        ..local
    }
}

impl State {
    /// Sends a message, and gives its number; none if there is no room for it now, or its PE is gone.
    ///
    /// # Safety
    ///
    /// The source is readable: in place, as [`Endpoint::send_from`](crate::fabric::endpoint::Endpoint::send_from) wants it.
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
        if numbered && !peer.has_window() {
            return None;
        }
        let head = Head {
            pe: me,
            nonce: *nonce,
            number: if numbered { peer.sent + 1 } else { 0 },
            lane,
            served: peer.received,
            body,
        };
        let slot = self.take_slot(pe, body.is_owed())?;
        let endpoint = self.endpoint.as_mut()?;
        let (place, data) = endpoint.bytes(slot).split_first_chunk_mut::<HEAD>()?;
        head.write(place);
        let taken = match source {
            Source::Nothing => endpoint.send(slot, HEAD, address),
            Source::Copied(at, len) => {
                let data = data.get_mut(..len)?;
                if len > 0 {
                    // SAFETY: the source is readable, by the caller's promise; the buffer is this process's.
                    unsafe { oxshmem_heap::copy::copy(data.as_mut_ptr(), at, len) };
                }
                endpoint.send(slot, HEAD + len, address)
            }
            // SAFETY: the caller's promise.
            Source::InPlace(_, local) => unsafe { endpoint.send_from(slot, HEAD, local, address) },
        };
        match taken {
            Ok(true) => {
                self.set_flight(slot, Flight::Send { pe });
                if let Source::InPlace(of, _) = source {
                    self.set_flight(slot, Flight::SendInPlace { of });
                    self.part_begun(of, true);
                }
                self.took(pe, true);
                let peer = self.peer(pe)?;
                peer.acknowledged = head.served;
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

    /// Sends a message without data, as [`send_message`](Self::send_message).
    fn tell(&mut self, pe: u32, lane: u64, body: Body) -> Option<u64> {
        // SAFETY: there is no data.
        unsafe { self.send_message(pe, lane, body, Source::Nothing) }
    }

    /// Sends the acknowledgements and replies that are owed, as far as there is room.
    pub(crate) fn pay(&mut self) {
        self.unpaid = 0;
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

    /// Whether a PE waits for a reply, or for the acknowledgement of so many messages that it should not wait longer.
    pub(crate) fn owes_much(&self) -> bool {
        let much = |pe: &u32| {
            let peer = self.peers.get(*pe as usize);
            peer.is_some_and(|peer| {
                let waits = peer.received - peer.acknowledged >= WINDOW / 16;
                let tells = peer.owes_end || peer.owes_refusal || peer.asks.is_some();
                waits || tells || !peer.replies.is_empty()
            })
        };
        self.due.iter().any(much)
    }

    /// Gives whether nothing more is owed to a PE.
    fn pay_one(&mut self, pe: u32) -> bool {
        if self.peer(pe).is_some_and(|peer| peer.owes_end) {
            return self.pay_end(pe);
        }
        let refused = self.peer(pe).filter(|peer| peer.owes_refusal);
        if let Some(region) = refused.and_then(|peer| peer.refused) {
            if self.tell(pe, 0, Body::Refused { region }).is_none() {
                return self.has_no_debt(pe);
            }
            if let Some(peer) = self.peer(pe) {
                peer.owes_refusal = false;
            }
        }
        if let Some(number) = self.peer(pe).and_then(|peer| peer.asks) {
            if self.tell(pe, 0, Body::Answer { number }).is_none() {
                return self.has_no_debt(pe);
            }
            if let Some(peer) = self.peer(pe) {
                peer.asks = None;
            }
        }
        self.ask(pe);
        while let Some((lane, reply)) = self.peer(pe).and_then(|peer| peer.replies.front().copied())
        {
            let Reply { to, value, number } = reply;
            let body = Body::Reply {
                region: to.region.0,
                offset: to.offset,
                value,
                number,
            };
            if self.tell(pe, lane, body).is_none() {
                return self.has_no_debt(pe);
            }
            if let Some(peer) = self.peer(pe) {
                peer.replies.pop_front();
            }
        }
        let owes = |peer: &PeerState| peer.acknowledged < peer.received;
        if !self.peers.get(pe as usize).is_some_and(owes) {
            return true;
        }
        self.tell(pe, 0, Body::Acknowledge).is_some() || self.has_no_debt(pe)
    }

    /// Asks a PE what it has served, if it is time. A question that the provider does not take is asked at the next time.
    fn ask(&mut self, pe: u32) {
        let Some(peer) = self.peer(pe).filter(|peer| peer.owes_question) else {
            return;
        };
        peer.owes_question = false;
        let (sent, done) = (peer.sent, !peer.is_under_way());
        let number = peer.watch.next();
        if self.tell(pe, 0, Body::Question { number }).is_some()
            && let Some(peer) = self.peer(pe)
        {
            peer.watch.asked(sent, done);
        }
    }

    /// Tells a PE that the connection with it has failed here. Gives whether that is done, or given up.
    fn pay_end(&mut self, pe: u32) -> bool {
        let told = self.tell(pe, 0, Body::Ended).is_some();
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
            if let Some(stream) = self.stream(lane, pe) {
                stream.is_listed = false;
            }
            while self.advance(lane, pe) == Step::Done {}
            let stream = self.stream(lane, pe);
            if stream.is_some_and(|stream| stream.current().is_some()) {
                self.list(lane, pe);
            }
        }
    }

    /// Sends the next part of a stream's current entry.
    fn advance(&mut self, lane: u64, pe: u32) -> Step {
        let own = pe == self.job.me.0;
        let stream = self.stream(lane, pe);
        let Some((serial, entry)) = stream.and_then(|stream| stream.current()) else {
            return Step::Empty;
        };
        let of = EntryId { lane, pe, serial };
        let (op, target, signal) = (entry.op, entry.target, entry.signal);
        let (source, started) = (entry.source(), entry.started);
        let has_copy = !entry.copied.is_empty();
        let on_gpu = entry.on_gpu;
        if own && !goes_through_provider(&op, on_gpu) {
            let own = OwnOp::of(entry);
            // SAFETY: sources were copied, or the poster keeps them, and the destinations, until the operation has completed.
            unsafe { self.perform_here(lane, own) };
            return self.begin(of, 0);
        }
        match (op, target) {
            (Op::Put { from, .. } | Op::PutSignal { from, .. }, Some((key, offset))) => {
                let addr = source.cast_mut();
                let data = rest_of(Local { addr, ..from }, started);
                let rest = data.len as u64;
                let offset = offset + started;
                if self.ways.puts == PutPath::Rma && signal.is_none() {
                    let place = RemotePlace {
                        addr: key.base.wrapping_add(offset),
                        key: key.key,
                    };
                    return self.advance_rma(of, (Way::Write, on_gpu), data, place);
                }
                let small = self.small_puts(lane, pe);
                if small > 1 {
                    return self.advance_batch(of, small);
                }
                let copied = self.copied_room();
                let in_place = rest > copied as u64 && self.sends_in_place(from, has_copy);
                let room = match in_place {
                    true => self.ways.message - HEAD,
                    false => copied,
                };
                // No word of 8 bytes is in two messages.
                let phase = (u64::from(key.phase) + offset) % 8;
                let len = rest.min(room as u64 - phase);
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
                let source = match in_place {
                    true => Source::InPlace(of, self.local_place(data, len)),
                    false => Source::Copied(data.addr, len as usize),
                };
                // SAFETY: the poster keeps the source readable, or it was copied; one in place until the operation has
                // completed, or its lane or PE is gone, for which it then waits.
                let sent = unsafe { self.send_message(pe, lane, body, source) };
                self.sent(of, sent, len, last)
            }
            (Op::Get { into, .. }, Some((key, offset))) => {
                let place = RemotePlace {
                    addr: key.base.wrapping_add(offset + started),
                    key: key.key,
                };
                self.advance_rma(of, (Way::Read, on_gpu), rest_of(into, started), place)
            }
            (
                Op::Atomic {
                    op,
                    width,
                    operand,
                    compare,
                    fetch,
                    ..
                },
                Some((key, offset)),
            ) => {
                let request = AtomicRequest {
                    op,
                    width,
                    operand,
                    compare,
                };
                let place = RemotePlace {
                    addr: key.base.wrapping_add(offset),
                    key: key.key,
                };
                self.advance_atomic(of, request, fetch, place)
            }
            (Op::Message { from }, _) => {
                let source = Source::Copied(source, from.len);
                // SAFETY: the bytes were copied, or `post` has not returned yet.
                let sent = unsafe { self.send_message(pe, lane, Body::Message, source) };
                self.sent(of, sent, 0, true)
            }
            _ => {
                let sent = self.tell(pe, lane, Body::Ping);
                self.sent(of, sent, 0, true)
            }
        }
    }

    /// The number of the next entries of a stream that are small puts, and fit in one message.
    fn small_puts(&self, lane: u64, pe: u32) -> usize {
        let stream = self.lanes.get(&lane).and_then(|lane| lane.streams.get(&pe));
        let Some(stream) = stream else {
            return 0;
        };
        let mut room = self.copied_room();
        let fits = |entry: &&Entry| {
            let Op::Put { from, .. } = entry.op else {
                return false;
            };
            let len = Record::len(from.len);
            let fits = from.len <= SMALL && entry.started == 0 && len <= room;
            room -= if fits { len } else { 0 };
            fits
        };
        let waiting = stream.entries.range(stream.next..);
        waiting.take(BATCH as usize).take_while(fits).count()
    }

    /// Sends the next entries of a stream, which are so many small puts, in one message.
    fn advance_batch(&mut self, first: EntryId, count: usize) -> Step {
        let EntryId { lane, pe, .. } = first;
        // Before anything is copied.
        if !self.has_room(pe) {
            return Step::Blocked;
        }
        let stream = self.lanes.get(&lane).and_then(|lane| lane.streams.get(&pe));
        let Some(stream) = stream else {
            return Step::Empty;
        };
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        // Stores that other threads of this PE have made are sent.
        fence(Ordering::Acquire);
        for entry in stream.entries.range(stream.next..).take(count) {
            let (Op::Put { from, .. }, Some((key, offset))) = (entry.op, entry.target) else {
                continue;
            };
            let data = Record::push(&mut batch, key.region, offset, from.len as u32);
            if from.len > 0 {
                // SAFETY: the poster keeps the source readable, or it was copied; the room is as long.
                unsafe { oxshmem_heap::copy::copy(data.as_mut_ptr(), entry.source(), from.len) };
            }
        }
        let source = Source::Copied(batch.as_ptr(), batch.len());
        // SAFETY: the batch lives during the call.
        let sent = unsafe { self.send_message(pe, lane, Body::Batch, source) };
        self.batch = batch;
        let Some(number) = sent else {
            return Step::Blocked;
        };
        for serial in first.serial..first.serial + count as u64 {
            self.begin(EntryId { serial, ..first }, number);
        }
        Step::Done
    }

    /// Bytes of data in a message that is copied.
    fn copied_room(&self) -> usize {
        self.ways.message.min(BUFFER) - HEAD
    }

    /// Whether the provider can send a source in place: none that its poster may reuse at once.
    fn sends_in_place(&self, from: Local, has_copy: bool) -> bool {
        let known = !self.ways.local_keys || from.key.is_some();
        known
            && !has_copy
            && from.len > INLINE
            && self.endpoint.as_ref().is_some_and(|ep| ep.joins())
    }

    /// The provider has begun an operation of an entry, on its memory in place or not.
    pub(crate) fn part_begun(&mut self, of: EntryId, in_place: bool) {
        if let Some(stream) = self.stream(of.lane, of.pe) {
            stream.in_place += u32::from(in_place);
            if let Some(entry) = stream.entry(of.serial) {
                entry.parts += 1;
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
    pub(crate) fn begin(&mut self, of: EntryId, number: u64) -> Step {
        let served = self.peers.get(of.pe as usize).map_or(0, |peer| peer.served);
        if let Some(stream) = self.stream(of.lane, of.pe) {
            if let Some(entry) = stream.entry(of.serial) {
                entry.number = entry.number.max(number);
            }
            stream.begin();
            stream.settle(served);
        }
        Step::Done
    }

    pub(crate) fn entry(&mut self, of: EntryId) -> Option<&mut Entry> {
        self.stream(of.lane, of.pe)?.entry(of.serial)
    }

    /// Copies the sources of a stream's entries of which not all has been sent, where their poster may reuse them at once.
    ///
    /// # Safety
    ///
    /// These sources are readable.
    pub(crate) unsafe fn keep_short_sources(&mut self, lane: u64, pe: u32) {
        let Some(stream) = self.stream(lane, pe) else {
            return;
        };
        for entry in stream.entries.iter_mut().skip(stream.next) {
            let from = match entry.op {
                _ if entry.on_gpu => continue,
                Op::Put { from, .. } | Op::PutSignal { from, .. } if from.len <= INLINE => from,
                Op::Message { from } => from,
                _ => continue,
            };
            if entry.copied.is_empty() && from.len > 0 {
                entry.copied.resize(from.len, 0);
                // SAFETY: the source is readable, by the caller's promise.
                unsafe { oxshmem_heap::copy::copy(entry.copied.as_mut_ptr(), from.addr, from.len) };
            }
        }
    }
}
