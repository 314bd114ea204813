//! Bulk queue pairs that are lost: what they had outstanding is posted again by the others.
//!
//! A path through the network may fail while others work. A part of a put writes what it wrote, a get reads again, so both
//! may be repeated; the signal behind a put is not posted before all of them are done.
//!
//! Packets of a lost queue pair may be on their way for as long as a network keeps a packet. So its requests wait until that time is over.
//! Where the peer was silent while the retries lasted, it mostly is over by then. After it the writes that
//! the peer acknowledged are in memory, too.

use std::time::Instant;

use oxshmem_transport::Pe;

use super::VerbsLane;
use super::connection::{Connection, ConnectionState};
use super::long_operations::LongNumber;
use super::nics::Flushed;
use super::repeats::{repeated, repeats};
use super::request_id::RequestId;
use super::requester::{NicPair, Requester};
use super::send_queue::{RequestKind, Sent};
use super::stripes::Repeat;
use super::wqe_builder::{Blocked, MAX_REQUESTS, unsupported};
use crate::completion_error::CompletionError;
use crate::remote_region::Imported;

/// The reason for the loss of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The peer did not answer while the retries lasted.
    Silence,
    /// This side's device, or its NIC, has failed.
    OwnFailure,
}

impl Connection {
    /// Ends a bulk queue pair, and keeps its requests for the others. Gives its NIC and their number, which is none if it could
    /// not be destroyed; none at all if it has ended before.
    fn lose(
        &mut self,
        queue: u8,
        sink: *mut u8,
        repeats_after: Option<Instant>,
    ) -> Option<(u8, Option<u32>)> {
        let ConnectionState::Connected(queues) = &mut self.state else {
            return None;
        };
        let stripes = queues.stripes.as_mut()?;
        let bulk = stripes.bulk_mut(queue)?;
        let requester = bulk.requester.take()?;
        bulk.is_dirty = false;
        bulk.lost_nonce = Some(requester.nonce());
        let nics = requester.nics();
        let parts = std::mem::take(&mut bulk.parts);
        stripes.carriers.retain(|carrier| *carrier != queue);
        let Some(sent) = requester.take_requests(sink) else {
            return Some((nics.here, None));
        };
        let outstanding = sent.len() as u32;
        let repeats = repeats(sent, parts, nics, sink);
        // A peer that is lost altogether is found by the primary queue pair.
        let all = std::iter::once(Repeat::Probe).chain(repeats);
        // Those that wait already come after these, in their order.
        let waiting = std::mem::take(&mut stripes.repeats);
        stripes.repeats = all.chain(waiting).collect();
        stripes.repeats_after = repeats_after.max(stripes.repeats_after);
        Some((nics.here, Some(outstanding)))
    }

    /// The rkey at one of the peer's NICs of the region that another of them knows by this rkey.
    fn moved_rkey(&self, rkey: u32, from: u8, to: u8) -> Option<u32> {
        if from == to {
            return Some(rkey);
        }
        let mut known = self.regions_at(from).iter().zip(self.regions_at(to));
        known.find_map(|known| match known {
            (Some(from), Some(to)) if from.has_rkey(rkey) => Some(to.rkey_like(from, rkey)),
            _ => None,
        })
    }
}

impl VerbsLane {
    /// Loses a bulk queue pair whose request has failed. Gives whether the connection goes on without it.
    #[cold]
    pub(super) fn lose_bulk(&mut self, id: RequestId, why: &CompletionError, loss: Loss) -> bool {
        let RequestId { pe, queue, number } = id;
        let rail = self.rail_of(pe, queue);
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return false;
        };
        // Requests complete in order: those before it have succeeded, though no completion of theirs was taken.
        let before = number.wrapping_sub(1);
        let retired = connection.retire_bulk(queue, before, &mut self.pool);
        self.give_credits(rail, retired);
        self.lose_queue(pe, queue, &why.error(pe).to_string(), loss)
    }

    /// Loses a bulk queue pair. Gives whether the connection goes on without it.
    #[cold]
    pub(super) fn lose_queue(&mut self, pe: Pe, queue: u8, why: &str, loss: Loss) -> bool {
        let sink = self.pool.sink();
        let rail = self.rail_of(pe, queue);
        let port_state = self.rails.get(rail).unwrap_or(&self.port_state);
        let repeats_after = port_state.packets_until(loss == Loss::Silence);
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return false;
        };
        let Some((rail, outstanding)) = connection.lose(queue, sink, repeats_after) else {
            return true;
        };
        let Some(outstanding) = outstanding else {
            return false;
        };
        self.note_flushed(Flushed::at(rail, outstanding));
        tracing::warn!(%pe, queue, rail, outstanding, %why, "one of the queue pairs for long transfers \
             to a PE is lost: what it had outstanding, and later transfers, go by the others");
        self.note_due(pe);
        true
    }

    /// Loses a bulk queue pair that this side has lost. If it cannot be destroyed, the connection fails.
    pub(super) fn lose_or_fail(&mut self, pe: Pe, queue: u8, why: &str) {
        if !self.lose_queue(pe, queue, why, Loss::OwnFailure) {
            self.fail(pe, CompletionError::Failed(why.into()));
        }
    }

    /// Posts the requests of lost queue pairs again, as far as there is room.
    pub(super) fn repeat_requests(&mut self, pe: Pe) -> Result<(), Blocked> {
        while let Some((repeat, queue)) = self.next_repeat(pe)? {
            // First: if the queue pair is lost by this, its requests come before those that wait.
            if let Some(stripes) = self.stripes_mut(pe) {
                stripes.repeats.pop_front();
            }
            match repeat {
                Repeat::Probe => self.probe(pe),
                Repeat::Request(sent, part_of, _) => {
                    self.repeat_request(pe, queue, sent, part_of)?
                }
                Repeat::Flush(number) => self.repeat_flush(pe, queue, number)?,
            }
        }
        Ok(())
    }

    fn probe(&mut self, pe: Pe) {
        self.push_noop(pe, 0);
        let connected = self.connected(pe);
        let probe = connected.map(|(_, queues)| queues.primary.send_queue.newest());
        if let Some(stripes) = self.stripes_mut(pe) {
            stripes.probe = probe;
        }
    }

    /// Flushes the queue pairs that have written what a lost one had to flush, or another one if it had nothing.
    fn repeat_flush(&mut self, pe: Pe, queue: u8, number: LongNumber) -> Result<(), Blocked> {
        let Some(stripes) = self.stripes_mut(pe) else {
            return Ok(());
        };
        let mut carriers = std::mem::take(&mut stripes.carriers);
        if carriers.is_empty() {
            carriers.push(queue);
        }
        let more = carriers.len() as u32 - 1;
        if let Some(operations) = self.operations_mut(pe) {
            operations.add_parts(number, more);
        }
        for queue in carriers {
            self.build(pe, queue, |builder| builder.flush())?;
            self.move_part(pe, queue, number);
            self.submit_to(pe, queue)?;
        }
        Ok(())
    }

    /// The next of these, and the queue pair that it goes to: a bulk one if one is left.
    fn next_repeat(&mut self, pe: Pe) -> Result<Option<(Repeat, u8)>, Blocked> {
        let has_fences = !self.software;
        let Some((connection, queues)) = self.connected(pe) else {
            return Ok(None);
        };
        let Some(stripes) = &queues.stripes else {
            return Ok(None);
        };
        let Some(repeat) = stripes.repeats.front().copied() else {
            return Ok(None);
        };
        if stripes
            .repeats_after
            .is_some_and(|after| Instant::now() < after)
        {
            return Err(Blocked::Full);
        }
        let bulk = (1..).zip(&stripes.queues);
        let bulk = bulk.filter_map(|(queue, bulk)| Some((queue, bulk.requester.as_ref()?)));
        let mut all = bulk.chain([(0, &queues.primary)]);
        let found = all.find_map(|(queue, one)| {
            Some((self.moved(connection, repeat, one.nics())?, queue, one))
        });
        let Some((repeat, queue, requester)) = found else {
            return Err(unsupported(
                "the transfer of memory that no NIC left has a key of".into(),
            ));
        };
        let carriers = stripes.carriers.iter();
        let carriers = carriers.filter_map(|carrier| queues.get(*carrier));
        let flushed: Vec<&Requester> = match repeat {
            Repeat::Flush(_) if stripes.carriers.is_empty() => vec![requester],
            Repeat::Flush(_) => carriers.collect(),
            Repeat::Probe | Repeat::Request(..) => Vec::new(),
        };
        let others = [requester, &queues.primary];
        let needed = (flushed.len() + others.len()) * MAX_REQUESTS;
        let mut all = flushed.iter().copied().chain(others);
        let has_room = all.all(|one| {
            let credits = self.credits(one.rail) as usize;
            one.has_room(credits) && credits >= needed
        });
        if !has_room {
            return Err(Blocked::Full);
        }
        if flushed.iter().any(|one| one.must_wait(has_fences)) {
            return Err(Blocked::Unfenced);
        }
        Ok(Some((repeat, queue)))
    }

    /// A request as queue pairs of these NICs carry it out, if they have keys of its memory.
    fn moved(&self, connection: &Connection, repeat: Repeat, to: NicPair) -> Option<Repeat> {
        let Repeat::Request(sent, part_of, from) = repeat else {
            return Some(repeat);
        };
        let sent = self.moved_request(connection, sent, from, to)?;
        Some(Repeat::Request(sent, part_of, to))
    }

    /// A read, or a part of a put, as queue pairs of other NICs carry it out, if they have keys of its memory.
    pub(super) fn moved_request(
        &self,
        connection: &Connection,
        mut sent: Sent,
        from: NicPair,
        to: NicPair,
    ) -> Option<Sent> {
        let sides = &mut sent.read;
        sides.rkey = connection.moved_rkey(sides.rkey, from.there, to.there)?;
        if from.here != to.here {
            sides.lkey = if sides.lkey == self.pool.lkey(from.here) {
                self.pool.lkey(to.here)
            } else {
                let keys = &self.rails.local_keys;
                keys.moved(sides.lkey, from.here, to.here)?
            };
        }
        Some(sent)
    }

    fn repeat_request(
        &mut self,
        pe: Pe,
        queue: u8,
        sent: Sent,
        part_of: Option<LongNumber>,
    ) -> Result<(), Blocked> {
        let Some((connection, queues)) = self.connected(pe) else {
            return Ok(());
        };
        let peer_rail = queues.get(queue).map_or(0, |one| one.peer_rail);
        let nothing = connection.write_of_nothing(peer_rail);
        let is_part = sent.request.kind == RequestKind::Part;
        // Whether it writes to a GPU is not known any more.
        let mut regions = connection.regions_at(peer_rail).iter().flatten();
        let may_be_gpu = is_part && regions.any(Imported::is_on_gpu);
        let Some(requester) = self.requester_mut(pe, queue) else {
            return Ok(());
        };
        requester.gpu_written |= may_be_gpu;
        let number = requester.send_queue.enter(sent);
        let rail = requester.rail;
        self.take_credits(rail, 1);
        let id = RequestId { pe, queue, number };
        self.batch.push(id, repeated(&sent, nothing));
        match part_of {
            Some(part_of) => self.move_part(pe, queue, part_of),
            None if queue == 0 => self.make_last_a_part(pe),
            None => {}
        }
        if let Some(bulk) = self.bulk_mut(pe, queue) {
            bulk.is_dirty |= is_part;
        }
        if let Some(stripes) = self.stripes_mut(pe)
            && is_part
            && !stripes.carriers.contains(&queue)
        {
            stripes.carriers.push(queue);
        }
        self.submit_to(pe, queue)
    }

    /// The last request of a queue pair is a part of an operation that has counted it already.
    fn move_part(&mut self, pe: Pe, queue: u8, number: LongNumber) {
        if queue > 0 {
            if let Some(bulk) = self.bulk_mut(pe, queue) {
                bulk.parts.push_back(number);
            }
            return;
        }
        self.make_last_a_part(pe);
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return;
        };
        if let ConnectionState::Connected(queues) = &connection.state
            && let Some(operations) = &mut connection.operations
        {
            operations.move_to_primary(queues.primary.send_queue.newest(), number);
        }
    }

    /// Posts the batch, whose local memory is that of operations that have not completed, or the lane's.
    fn submit_to(&mut self, pe: Pe, queue: u8) -> Result<(), Blocked> {
        // SAFETY: the posters of these operations promised their memory until they have completed.
        let posted = unsafe {
            match queue {
                0 => self.submit(pe, true),
                bulk => self.submit_bulk(pe, bulk),
            }
        };
        Ok(posted?)
    }
}
