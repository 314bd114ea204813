//! The posts of operations that go over the bulk queue pairs: long transfers, in parts, and the flushes behind them.

use oxshmem_transport::{Lane, Local, LocalKey, Op, Pe, Posted, RegionId, Remote, SignalOp};

use super::VerbsLane;
use super::batch::LocalBuffer;
use super::buffers::moved_keys;
use super::connection::{Connection, ConnectionState, Queues, regions_of};
use super::long_operations::{LongNumber, LongOperations};
use super::lost_queue::Loss;
use super::nics::credits_at;
use super::requester::Requester;
use super::stripes::{BulkQueue, Stripes, cut};
use super::wqe_builder::{
    Blocked, MAX_REQUESTS, WqeBuilder, key, length, unsupported, with_signals,
};
use super::write_order::{FlushPlan, flush_plan, signal_hold};
use crate::completion_error::CompletionError;
use crate::ibv::Refusal;
use crate::limits::UNREGISTERED;
use crate::local_keys::{LocalRailKeys, lkey_at};
use crate::region::MrKey;
use crate::remote_region::{BoxedError, find, find_word};

/// A long transfer, once all about it is known to be right.
struct Transfer {
    local: Local,
    /// The keys of the local memory at each NIC, if it has several.
    lkeys: Option<LocalRailKeys>,
    remote: Remote,
    /// The address in the target's memory.
    addr: u64,
    /// The queue pairs that it may take, as a set of bits.
    usable: u64,
    is_put: bool,
    /// The update of a signal that follows it.
    signal: Option<Op>,
}

/// One part of a transfer.
struct Part {
    local: Local,
    remote: Remote,
    is_put: bool,
    /// Whether it is all of the transfer.
    is_whole: bool,
}

impl Requester {
    /// Whether a flush cannot be posted before the requests in flight have completed.
    pub(super) fn must_wait(&self, has_fences: bool) -> bool {
        let in_flight = self.send_queue.outstanding() > 0;
        flush_plan(self.order, in_flight, self.gpu_written, has_fences) == FlushPlan::Wait
    }

    /// Whether there is room for the requests of any operation, with so many credits of the completion queue.
    pub(super) fn has_room(&self, credits: usize) -> bool {
        (self.send_queue.free() as usize).min(credits) >= MAX_REQUESTS
    }
}

impl Queues {
    /// The bulk queue pairs that were written by since their last flush, with their numbers.
    fn dirty(&self) -> impl Iterator<Item = (u8, &Requester)> + Clone {
        let stripes = self.stripes.iter();
        let queues = stripes.flat_map(|stripes| (1..).zip(&stripes.queues));
        let dirty = queues.filter(|(_, bulk)| bulk.is_dirty);
        dirty.filter_map(|(queue, bulk)| Some((queue, bulk.requester.as_ref()?)))
    }
}

impl WqeBuilder<'_> {
    /// Builds the requests of a part. Of one that is not the whole transfer this does not fail: its local memory has a
    /// key.
    ///
    /// # Safety
    ///
    /// The part's local memory is valid, as [`oxshmem_transport::Lane::post`] says.
    unsafe fn part(&mut self, part: &Part) -> Result<(), Blocked> {
        let len = part.local.len as u64;
        // The regions are those that the peer's NIC of this queue pair knows.
        let remote = find(self.regions, self.pe, part.remote, len)?;
        if !part.is_put {
            return self.get(&part.local, remote);
        }
        let keyed = key(&part.local).filter(|_| !part.is_whole);
        let (local, block) = match keyed {
            Some(key) => {
                let len = part.local.len as u32;
                let local = LocalBuffer::Registered(part.local.addr, len, key.lkey);
                (local, None)
            }
            // SAFETY: as this function's caller promises.
            None => unsafe { self.source(&part.local) }?,
        };
        self.write_words(remote, local, block, true);
        Ok(())
    }
}

impl Transfer {
    /// The key of its local memory for requests of a NIC.
    fn local_key(&self, rail: u8) -> Option<LocalKey> {
        let known = key(&self.local)?;
        let lkey = match rail {
            0 => known.lkey,
            rail => lkey_at(&self.lkeys?, rail)?,
        };
        let key = MrKey {
            lkey,
            further: None,
            ..known
        };
        Some(key.to_local_key())
    }
}

impl VerbsLane {
    /// The number of operations before the first that goes over the bulk queue pairs.
    #[inline]
    pub(super) fn before_parts(&self, pe: Pe, ops: &[Op]) -> usize {
        if self.stripe == u64::MAX {
            return ops.len();
        }
        let mut all = ops.iter();
        all.position(|op| self.goes_in_parts(pe, op))
            .unwrap_or(ops.len())
    }

    /// Whether an operation goes over the bulk queue pairs.
    fn goes_in_parts(&self, pe: Pe, op: &Op) -> bool {
        let Some(connection) = self.connections.get(pe.index()) else {
            return false;
        };
        let ConnectionState::Connected(queues) = &connection.state else {
            return false;
        };
        let Some(stripes) = &queues.stripes else {
            return false;
        };
        let is_long = |local: &Local, remote: Remote, signals| {
            local.len as u64 >= self.stripe
                && self.usable(connection, stripes, local, remote.region, signals) != 0
        };
        match op {
            Op::Put { from, to } => is_long(from, *to, false),
            Op::Get { into, from } => is_long(into, *from, false),
            // The caller of a shorter one need not come back, and its signal waits for nobody here.
            Op::PutSignal { from, to, .. } => from.len > UNREGISTERED && is_long(from, *to, true),
            Op::Flush => {
                let operations = connection.operations.as_ref();
                stripes.queues.iter().any(|bulk| bulk.is_dirty)
                    || !stripes.repeats.is_empty()
                    || operations.is_some_and(|operations| operations.has_signals())
            }
            _ => false,
        }
    }

    /// The keys of local memory at each NIC, if it has several.
    fn lkeys(&self, local: &Local) -> Option<LocalRailKeys> {
        let place = key(local)?.further?;
        Some(self.rails.local_keys.get(place))
    }

    /// The queue pairs that may carry parts of a transfer, as a set of bits: both NICs have keys of its memory, and nothing
    /// keeps a signal of it from waiting for the part.
    fn usable(
        &self,
        connection: &Connection,
        stripes: &Stripes,
        local: &Local,
        region: RegionId,
        signals: bool,
    ) -> u64 {
        let at = region.0 as usize;
        let (is_keyed, lkeys) = (local.key.is_some(), self.lkeys(local));
        let has_lkey = |rail: u8| {
            let further = || lkeys.is_some_and(|keys| lkey_at(&keys, rail).is_some());
            rail == 0 || !is_keyed || further()
        };
        stripes.usable(|one| {
            let regions = connection.regions_at(one.peer_rail);
            let Some(Some(imported)) = regions.get(at) else {
                return false;
            };
            let on_gpu = imported.first().is_some_and(|first| first.on_gpu);
            let plan = flush_plan(one.order, true, on_gpu, !self.software);
            has_lkey(one.rail) && (!signals || plan != FlushPlan::Wait)
        })
    }

    /// Posts an operation that [goes in parts](Self::goes_in_parts), `posted` of whose batch were posted before; none if it
    /// was accepted.
    ///
    /// # Safety
    ///
    /// As for [`post`](oxshmem_transport::Lane::post).
    pub(super) unsafe fn post_in_parts(
        &mut self,
        pe: Pe,
        op: &Op,
        posted: usize,
    ) -> Option<Posted> {
        let counters = self.connections.get(pe.index())?.counters;
        let done = if counters.posted - counters.completed >= u64::from(self.depth) {
            Err(Blocked::Full)
        } else if matches!(op, Op::Flush) {
            self.flush_all_queues(pe)
        } else {
            // SAFETY: the caller's promise.
            let posted = unsafe { self.transfer(pe, op) };
            // It counts as completed after those before it, and its own completion says nothing of theirs.
            self.request_completion(pe);
            posted
        };
        match done {
            Ok(()) => {
                self.count_posted(pe, 1);
                None
            }
            Err(Blocked::Refused(error)) => Some(Posted::refused(posted, *error)),
            Err(Blocked::NoBlock | Blocked::Unfenced) => {
                self.is_blocked = true;
                Some(Posted::full(posted))
            }
            Err(Blocked::Full) => {
                // Unsignaled requests may hold the missing credits.
                let needed = |rail| self.rails.queues_at(rail) * MAX_REQUESTS as u32;
                let is_short = |rail| self.credits(rail) < needed(rail);
                let rails = self.further.iter().map(|nic| nic.port_state.rail);
                self.is_blocked |= is_short(0) || rails.into_iter().any(is_short);
                Some(Posted::full(posted))
            }
        }
    }

    /// Checks a long operation towards a connected PE.
    fn checked_transfer(&self, pe: Pe, op: &Op) -> Result<Transfer, Blocked> {
        let Some((connection, queues)) = self.connected(pe) else {
            return Err(Blocked::Full);
        };
        let regions = connection.regions_at(queues.primary.peer_rail);
        let (local, is_put, remote) = match *op {
            Op::Put { from, to } | Op::PutSignal { from, to, .. } => (from, true, to),
            Op::Get { into, from } => (into, false, from),
            ref other => return Err(unsupported(format!("{other:?} in parts"))),
        };
        let found = find(regions, pe, remote, length(&local, self.max_transfer)?)?;
        let signals = matches!(op, Op::PutSignal { .. });
        let stripes = queues.stripes.as_ref();
        let mut transfer = Transfer {
            local,
            lkeys: self.lkeys(&local),
            remote,
            addr: found.addr,
            usable: stripes.map_or(0, |stripes| {
                self.usable(connection, stripes, &local, remote.region, signals)
            }),
            is_put,
            signal: None,
        };
        let Op::PutSignal {
            to,
            signal,
            op,
            value,
            ..
        } = *op
        else {
            return Ok(transfer);
        };
        with_signals(queues.primary.has_atomics, queues.primary.order)?;
        find_word(regions, pe, signal, "a signal")?;
        let (order, has_fences) = (queues.primary.order, !self.software);
        let is_write = op == SignalOp::Set;
        if signal_hold(order, is_write, false, has_fences).is_none() {
            return Err(unsupported(
                "a put-with-signal towards a NIC that does not keep writes in order".into(),
            ));
        }
        // Of no data: that is placed by then.
        let from = Local { len: 0, ..local };
        transfer.signal = Some(Op::PutSignal {
            from,
            to,
            signal,
            op,
            value,
        });
        Ok(transfer)
    }

    pub(super) fn connected(&self, pe: Pe) -> Option<(&Connection, &Queues)> {
        let connection = self.connections.get(pe.index())?;
        match &connection.state {
            ConnectionState::Connected(queues) => Some((connection, queues)),
            _ => None,
        }
    }

    /// Posts a long transfer.
    ///
    /// # Safety
    ///
    /// As for [`post`](oxshmem_transport::Lane::post).
    unsafe fn transfer(&mut self, pe: Pe, op: &Op) -> Result<(), Blocked> {
        let transfer = self.checked_transfer(pe, op)?;
        let picked = self.pick(pe, &transfer)?;
        let mut number = None;
        for ((offset, bytes), queue) in picked {
            let rail = self.rail_of(pe, queue);
            let part = Part {
                local: Local {
                    addr: transfer.local.addr.wrapping_add(offset as usize),
                    len: bytes as usize,
                    key: transfer.local_key(rail),
                },
                remote: Remote {
                    offset: transfer.remote.offset + offset,
                    ..transfer.remote
                },
                is_put: transfer.is_put,
                is_whole: bytes == transfer.local.len as u64,
            };
            let signals = transfer.signal.is_some();
            self.build(pe, queue, |builder| {
                // SAFETY: the caller's promise; the part is within the transfer.
                unsafe { builder.part(&part) }?;
                if signals { builder.flush() } else { Ok(()) }
            })?;
            // All that can fail has not.
            let number = *number.get_or_insert_with(|| self.enter(pe, transfer.signal));
            self.enter_parts(pe, queue, number, 1 + u32::from(signals));
            if let Some(bulk) = self.bulk_mut(pe, queue) {
                bulk.is_dirty = !signals && (bulk.is_dirty || transfer.is_put);
            }
            // SAFETY: the caller's promise.
            unsafe { self.submit_bulk(pe, queue) }?;
        }
        Ok(())
    }

    /// The parts of a transfer, each with its bulk queue pair, if there is room.
    fn pick(
        &mut self,
        pe: Pe,
        transfer: &Transfer,
    ) -> Result<impl Iterator<Item = ((u64, u64), u8)> + use<>, Blocked> {
        let queues = transfer.usable.count_ones() as usize;
        let cuts = cut(transfer.local.len as u64, transfer.addr, queues);
        let count = cuts.clone().count();
        let needed = (count + 1) * MAX_REQUESTS;
        let stripes = self.connected(pe);
        let stripes = stripes.and_then(|(_, queues)| queues.stripes.as_ref());
        let has_room = stripes.is_some_and(|stripes| {
            let mut alive = stripes.alive();
            stripes.bytes() < self.window
                && alive.all(|one| {
                    let credits = self.credits(one.rail) as usize;
                    credits >= needed && one.has_room(credits)
                })
        });
        let Some(stripes) = self.stripes_mut(pe).filter(|_| has_room) else {
            return Err(Blocked::Full);
        };
        Ok(cuts.zip(stripes.pick(count, transfer.usable)))
    }

    /// The bulk queue pairs that need a flush, as a set of bits, if they and the primary one can be flushed now.
    fn flushable(&self, pe: Pe) -> Result<u64, Blocked> {
        let Some((connection, queues)) = self.connected(pe) else {
            return Err(Blocked::Full);
        };
        let operations = connection.operations.as_ref();
        // Their signals are to be posted before a flush.
        let has_signals = operations.is_some_and(|operations| operations.has_signals());
        // So are the requests of lost queue pairs.
        let repeats = queues.stripes.as_ref();
        let repeats = repeats.is_some_and(|stripes| !stripes.repeats.is_empty());
        let dirty = queues.dirty();
        let all = std::iter::once(&queues.primary).chain(dirty.clone().map(|(_, one)| one));
        let needed = all.clone().count() * MAX_REQUESTS;
        let has_room = all.clone().all(|one| {
            let credits = self.credits(one.rail) as usize;
            one.has_room(credits) && credits >= needed
        });
        if has_signals || repeats || !has_room {
            return Err(Blocked::Full);
        }
        if all.clone().any(|one| one.must_wait(!self.software)) {
            return Err(Blocked::Unfenced);
        }
        Ok(dirty.fold(0, |set, (queue, _)| set | 1 << (queue - 1)))
    }

    /// Posts a flush of all queue pairs that need one. They take one round trip together.
    fn flush_all_queues(&mut self, pe: Pe) -> Result<(), Blocked> {
        let queues = self.flushable(pe)?;
        let number = self.enter(pe, None);
        self.build(pe, 0, |builder| builder.flush())?;
        self.note_primary_part(pe, number);
        // SAFETY: a flush has no local memory of the caller's.
        unsafe { self.submit(pe, true) }?;
        for queue in (1..=64u8).filter(|queue| queues >> (queue - 1) & 1 == 1) {
            self.build(pe, queue, |builder| builder.flush())?;
            self.enter_parts(pe, queue, number, 1);
            if let Some(bulk) = self.bulk_mut(pe, queue) {
                bulk.is_dirty = false;
            }
            // SAFETY: as above.
            unsafe { self.submit_bulk(pe, queue) }?;
        }
        Ok(())
    }

    /// Signals towards a PE are due, or requests of lost queue pairs.
    pub(super) fn note_due(&mut self, pe: Pe) {
        if !self.due.contains(&pe) {
            self.due.push(pe);
        }
    }

    /// Resumes connections that were held back, posts the requests of lost queue pairs again, and the signals that are due.
    /// Those for which there is no room, or it is not time, stay so.
    #[cold]
    pub(super) fn post_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        due.retain(|pe| match self.post_due_towards(*pe) {
            Ok(()) => false,
            Err(Blocked::Full | Blocked::NoBlock | Blocked::Unfenced) => {
                self.is_blocked = true;
                true
            }
            Err(Blocked::Refused(error)) => {
                self.fail(*pe, CompletionError::Failed(error.to_string()));
                false
            }
        });
        due.append(&mut self.due);
        self.due = due;
    }

    fn post_due_towards(&mut self, pe: Pe) -> Result<(), Blocked> {
        self.resume_held_back(pe)?;
        self.repeat_requests(pe)?;
        loop {
            let Some(connection) = self.connections.get_mut(pe.index()) else {
                return Ok(());
            };
            let ConnectionState::Connected(queues) = &connection.state else {
                return Ok(());
            };
            let operations = connection.operations.as_mut();
            let Some((number, signal)) = operations.and_then(|operations| operations.due()) else {
                return Ok(());
            };
            let probe = queues.stripes.as_ref().and_then(|stripes| stripes.probe);
            if probe.is_some_and(|probe| queues.primary.send_queue.contains(probe)) {
                return Err(Blocked::Full);
            }
            let credits = credits_at(&self.room, &self.further, queues.primary.rail);
            if !queues.primary.has_room(credits as usize) {
                return Err(Blocked::Full);
            }
            self.build(pe, 0, |builder| {
                // SAFETY: it has no local memory.
                unsafe { builder.build(&signal) }
            })?;
            if let Some(operations) = self.operations_mut(pe) {
                operations.signal_posted();
            }
            self.note_primary_part(pe, number);
            // SAFETY: as above.
            unsafe { self.submit(pe, true) }?;
        }
    }

    /// The NIC of a queue pair; the first one of one that is lost.
    pub(super) fn rail_of(&self, pe: Pe, queue: u8) -> u8 {
        let connected = self.connected(pe);
        let one = connected.and_then(|(_, queues)| queues.get(queue));
        one.map_or(0, |one| one.rail)
    }

    /// Builds requests for a queue pair in the batch, which is empty. There must be room.
    pub(super) fn build(
        &mut self,
        pe: Pe,
        queue: u8,
        build: impl FnOnce(&mut WqeBuilder<'_>) -> Result<(), Blocked>,
    ) -> Result<(), Blocked> {
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return Err(Blocked::Full);
        };
        let ConnectionState::Connected(queues) = &mut connection.state else {
            return Err(Blocked::Full);
        };
        let Some(requester) = queues.get_mut(queue) else {
            return Err(Blocked::Full);
        };
        let (rail, before) = (requester.rail, requester.send_queue.outstanding());
        let mut builder = WqeBuilder {
            pe,
            queue,
            regions: regions_of(
                &connection.regions,
                &connection.further,
                requester.peer_rail,
            ),
            requester,
            batch: &mut self.batch,
            pool: &mut self.pool,
            max_transfer: self.max_transfer,
            moved_keys: moved_keys(&self.rails, queue, rail),
            has_fences: !self.software,
            wants_completion: true,
        };
        let built = build(&mut builder);
        let more = requester.send_queue.outstanding() - before;
        self.take_credits(rail, more);
        built
    }

    /// Enters an operation in parts.
    fn enter(&mut self, pe: Pe, signal: Option<Op>) -> LongNumber {
        let connection = self.connections.get_mut(pe.index());
        let number = connection.and_then(|connection| {
            let posted = connection.counters.posted;
            let operations = connection.operations.as_mut()?;
            Some(operations.enter(posted, signal))
        });
        number.unwrap_or_default()
    }

    /// The requests built for a bulk queue pair complete so many parts of an operation.
    fn enter_parts(&mut self, pe: Pe, queue: u8, number: LongNumber, parts: u32) {
        if let Some(operations) = self.operations_mut(pe) {
            operations.add_parts(number, parts);
        }
        if let Some(bulk) = self.bulk_mut(pe, queue) {
            bulk.parts.extend((0..parts).map(|_| number));
        }
    }

    /// The last request built for the primary queue pair is a part of an operation.
    fn note_primary_part(&mut self, pe: Pe, number: LongNumber) {
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return;
        };
        if let ConnectionState::Connected(queues) = &connection.state
            && let Some(operations) = &mut connection.operations
        {
            operations.enter_primary_part(queues.primary.send_queue.newest(), number);
        }
        self.make_last_a_part(pe);
    }

    /// The last request built for the primary queue pair counts as no operation by itself.
    pub(super) fn make_last_a_part(&mut self, pe: Pe) {
        if let Some(connection) = self.connections.get_mut(pe.index())
            && let ConnectionState::Connected(queues) = &mut connection.state
        {
            queues.primary.send_queue.make_last_a_part();
        }
    }

    pub(super) fn operations_mut(&mut self, pe: Pe) -> Option<&mut LongOperations> {
        self.connections
            .get_mut(pe.index())?
            .operations
            .as_deref_mut()
    }

    pub(super) fn requester_mut(&mut self, pe: Pe, queue: u8) -> Option<&mut Requester> {
        match &mut self.connections.get_mut(pe.index())?.state {
            ConnectionState::Connected(queues) => queues.get_mut(queue),
            _ => None,
        }
    }

    pub(super) fn stripes_mut(&mut self, pe: Pe) -> Option<&mut Stripes> {
        match &mut self.connections.get_mut(pe.index())?.state {
            ConnectionState::Connected(queues) => queues.stripes.as_mut(),
            _ => None,
        }
    }

    pub(super) fn bulk_mut(&mut self, pe: Pe, queue: u8) -> Option<&mut BulkQueue> {
        self.stripes_mut(pe)?.bulk_mut(queue)
    }

    /// Posts the batch on a bulk queue pair. If that fails, so does the connection.
    ///
    /// # Safety
    ///
    /// As for [`Batch::post`](super::batch::Batch::post).
    pub(super) unsafe fn submit_bulk(&mut self, pe: Pe, queue: u8) -> Result<(), BoxedError> {
        let count = self.batch.len();
        if count == 0 {
            return Ok(());
        }
        self.batch.signal_last();
        self.counts.posted(count as u64);
        let connection = self.connections.get_mut(pe.index());
        let queues = connection.and_then(|known| match &mut known.state {
            ConnectionState::Connected(queues) => Some(queues),
            _ => None,
        });
        let Some(requester) = queues.and_then(|queues| queues.get_mut(queue)) else {
            self.batch.clear();
            return Ok(());
        };
        requester.send_queue.mark_signaled();
        // SAFETY: the batch's requests are valid, as this function's caller promises.
        match unsafe { self.batch.post(&requester.pair) } {
            Ok(()) => Ok(()),
            // SAFETY: as above.
            Err(refusal) => match unsafe { self.post_rest(pe, queue, refusal) } {
                Ok(()) => Ok(()),
                Err(refusal) => self.refused_in_bulk(pe, queue, refusal),
            },
        }
    }

    /// Ends a bulk queue pair whose device has refused requests.
    #[cold]
    fn refused_in_bulk(&mut self, pe: Pe, queue: u8, refusal: Refusal) -> Result<(), BoxedError> {
        // Requests that were entered there go by the others.
        let error = std::io::Error::from_raw_os_error(refusal.code);
        let why = format!("ibv_post_send: {error}");
        if self.rail_of(pe, queue) > 0 && self.lose_queue(pe, queue, &why, Loss::OwnFailure) {
            return Ok(());
        }
        Err(self.refused_by_device(pe, refusal))
    }
}
