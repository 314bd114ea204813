//! Connections that were interrupted, and are made again with what they had outstanding.
//!
//! A link that was down for longer than the retries last ends a queue pair for good. Where only reads are outstanding, and
//! requests that change nothing, a new queue pair carries them out as well: a get has its data from the time of its
//! completion. So do the parts of long transfers, which no order binds, and which write what they wrote.
//! Another write or an atomic may have been performed or not, so a connection with one of these outstanding has failed.
//!
//! So does a queue pair that this side's device has given up: its event is heard of while the queue pair is idle, or the next
//! requests are flushed. One whose failure is known has nothing posted to it any more, so nothing is in doubt then.
//!
//! Writes that were acknowledged are not in doubt. They were at the target for as long as the retries lasted, or until its queue pair
//! was destroyed, which the target does before it makes the new one. So whatever comes by that comes after them.
//! Where it comes by another NIC although the old one was not silent for so long, the connection is held back until nothing comes
//! by that any more.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Pe, Result};

use super::VerbsLane;
use super::batch::LONGEST;
use super::connection::{Connection, ConnectionState, Queues};
use super::kept::Kept;
use super::nics::Flushed;
use super::repeats::{repeated, repeats, split_primary};
use super::request_id::RequestId;
use super::requester::Requester;
use super::send_queue::{RequestKind, Sent};
use super::stripes::{BulkQueue, Repeat};
use super::wqe_builder::Blocked;
use crate::completion_error::CompletionError;
use crate::limits::NAME;
use crate::port_state::PortState;

/// New queue pairs in a row, of a connection whose peer has not answered any of them.
const ATTEMPTS: u32 = 2;

/// The reason for an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The peer does not answer.
    Silence,
    /// This side's device has given up the queue pair.
    OwnFailure,
    /// The NIC here has failed, or its port is down.
    LostNic,
}

impl Interruption {
    /// The reason in words.
    fn explain(self) -> &'static str {
        match self {
            Interruption::Silence => {
                "a PE was silent for as long as the retries last (was a link down?)"
            }
            Interruption::OwnFailure => "this side's device has given up a queue pair",
            Interruption::LostNic => "a NIC of this PE is lost",
        }
    }
}

/// The longest wait for room in the completion queue that other connections share.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

impl Queues {
    /// The parts of a connection that is interrupted, if it can be made again.
    fn keep(&self, reason: Interruption, packets_until: Option<Instant>) -> Option<Kept> {
        let primary = &self.primary;
        let attempt = match primary.ever_acked {
            true => 1,
            false => primary.attempt + 1,
        };
        // A peer that has never answered is no peer.
        let is_nobody = reason == Interruption::Silence && !primary.was_ever_acked();
        if is_nobody || attempt > ATTEMPTS || primary.in_doubt() > 0 {
            return None;
        }
        let stripes = self.stripes.iter().flat_map(|stripes| &stripes.queues);
        let dirty = (0..).zip(stripes);
        let dirty = dirty.fold(0, |set, (at, bulk)| set | u64::from(bulk.is_dirty) << at);
        Some(Kept {
            requests: Vec::new(),
            repeats: VecDeque::new(),
            repeats_after: None,
            nics: primary.nics(),
            leaves_nic: attempt > 1 || reason == Interruption::LostNic,
            not_before: packets_until,
            nonce: primary.nonce(),
            dirty,
            bulk_nonces: self
                .stripes
                .iter()
                .flat_map(|stripes| &stripes.queues)
                .map(BulkQueue::nonce)
                .collect(),
            attempt,
            gpu_written: primary.gpu_written,
        })
    }
}

impl Connection {
    /// Ends the queue pairs, and keeps what they have outstanding for the next. `sink`: where reads go whose data nobody wants.
    /// Gives the number of completions that may still come; none if it cannot be. If one cannot be destroyed, the connection has
    /// failed.
    fn interrupt(
        &mut self,
        reason: Interruption,
        port_state: &PortState,
        sink: *mut u8,
    ) -> Option<Flushed> {
        let ConnectionState::Connected(queues) = &self.state else {
            return None;
        };
        let packets_until = port_state.packets_until(reason == Interruption::Silence);
        let mut kept = queues.keep(reason, packets_until)?;
        let unused = std::mem::replace(&mut self.state, ConnectionState::Unused);
        let ConnectionState::Connected(queues) = unused else {
            return None;
        };
        let Queues {
            primary, stripes, ..
        } = *queues;
        let (mut forgotten, mut all_ended) = (Flushed::default(), true);
        let mut end = |requester: Requester| {
            let rail = requester.rail;
            let sent = requester.take_requests(sink);
            all_ended &= sent.is_some();
            forgotten.add(rail, sent.as_ref().map_or(0, |sent| sent.len() as u32));
            sent
        };
        let (first, nics) = (primary.send_queue.oldest(), primary.nics());
        let sent = end(primary).unwrap_or_default();
        let parts = match &mut self.operations {
            Some(operations) => operations.take_primary_parts(),
            None => VecDeque::new(),
        };
        let (requests, parts) = split_primary(sent, first, &parts, nics, sink);
        kept.requests = requests;
        kept.repeats.extend(parts);
        if let Some(stripes) = stripes {
            let queues = stripes.queues.into_iter();
            let queues = queues.filter_map(|bulk| Some((bulk.requester?, bulk.parts)));
            for (requester, parts) in queues {
                let nics = requester.nics();
                if let Some(sent) = end(requester) {
                    kept.repeats.extend(repeats(sent, parts, nics, sink));
                }
            }
            kept.repeats.extend(stripes.repeats);
            // Their queue pairs were not silent, and one whose NIC is lost ends at the target later.
            kept.repeats_after = port_state.packets_until(false).max(stripes.repeats_after);
        }
        self.state = match all_ended {
            true => ConnectionState::Unused,
            false => ConnectionState::Failed(CompletionError::Lost),
        };
        // The blocks of a connection that has failed are leaked with the queue pair.
        self.kept = all_ended.then(|| Box::new(kept));
        Some(forgotten)
    }
}

impl VerbsLane {
    /// Interrupts a connection, of which request `number` is the first that has failed. Gives whether it can be made again.
    /// `progress` asks for that.
    #[cold]
    pub(super) fn interrupt(
        &mut self,
        pe: Pe,
        number: u32,
        reason: Interruption,
        why: &CompletionError,
    ) -> bool {
        let (rail, sink) = (self.rail_of(pe, 0), self.pool.sink());
        let port_state = self.rails.get(rail).unwrap_or(&self.port_state);
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return false;
        };
        // Requests complete in order: those before it have succeeded, though no completion of theirs was asked for.
        let retired = connection.retire(number.wrapping_sub(1), &mut self.pool);
        let interrupted = connection.interrupt(reason, port_state, sink);
        self.give_credits(rail, retired);
        let Some(forgotten) = interrupted else {
            return false;
        };
        let connection = &self.connections[pe.index()];
        if let ConnectionState::Failed(cause) = &connection.state {
            self.errors.push_back(cause.error(pe));
            self.note_flushed(forgotten);
            return true;
        }
        self.note_flushed(forgotten);
        let port_state = self.rails.get(rail).unwrap_or(&self.port_state);
        port_state.report_interruption(pe, reason.explain());
        self.errors.push_back(Error::Interrupted {
            transport: NAME,
            pe,
            why: why.error(pe).to_string(),
        });
        true
    }

    /// Resumes a connection that was held back, once no packet of the one before can come.
    pub(super) fn resume_held_back(&mut self, pe: Pe) -> Result<(), Blocked> {
        let connection = self.connections.get(pe.index());
        let Some(connection) = connection.filter(|connection| connection.is_held_back()) else {
            return Ok(());
        };
        if connection.awaits_late_packets() {
            return Err(Blocked::Full);
        }
        match self.resume(pe) {
            // NICs that have failed meanwhile are not noticed yet.
            Ok(()) => self.refresh(),
            Err(error) => self.errors.push_back(error),
        }
        Ok(())
    }

    /// Opens a connection that is connected, and posts the requests that it has kept. If they cannot be, it fails.
    #[cold]
    pub(super) fn resume(&mut self, pe: Pe) -> Result<()> {
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return Ok(());
        };
        connection.open();
        let Some(kept) = connection.kept.take() else {
            return Ok(());
        };
        let taken_over = self.take_over(pe, &kept);
        let entered = match taken_over {
            Ok(requests) => self.enter_kept(pe, &kept, requests),
            Err(why) => Err(why),
        };
        let requests = match entered {
            Ok(requests) => requests,
            Err(why) => {
                kept.discard(&mut self.pool);
                let cause = CompletionError::Failed(why);
                let error = cause.error(pe);
                if let Some(connection) = self.connections.get_mut(pe.index()) {
                    let flushed = connection.fail(cause, &mut self.pool);
                    self.note_flushed(flushed);
                }
                return Err(error);
            }
        };
        self.enter_repeats(pe, *kept);
        let Some((connection, queues)) = self.connected(pe) else {
            return Ok(());
        };
        let nothing = connection.write_of_nothing(queues.primary.peer_rail);
        let mut requests = requests.iter();
        loop {
            for (number, sent) in requests.by_ref().take(LONGEST) {
                let id = RequestId::primary(pe, *number);
                self.batch.push(id, repeated(sent, nothing));
            }
            if self.batch.len() == 0 {
                return Ok(());
            }
            // SAFETY: the poster of each get promised its memory until it has completed. Blocks are the lane's.
            unsafe { self.submit(pe, true) }.map_err(|error| *error)?;
        }
    }

    /// Has the new queue pairs carry out what those of long transfers have not, and post the signals that are due.
    fn enter_repeats(&mut self, pe: Pe, mut kept: Kept) {
        if let Some(connection) = self.connections.get_mut(pe.index())
            && let ConnectionState::Connected(queues) = &mut connection.state
            && let Some(stripes) = &mut queues.stripes
        {
            let operations = connection.operations.as_ref();
            if operations.is_some_and(|operations| operations.has_signals()) {
                // No signal is posted before the peer answers.
                kept.repeats.push_front(Repeat::Probe);
            }
            stripes.repeats = kept.repeats;
            stripes.repeats_after = kept.repeats_after;
        }
        self.note_due(pe);
    }

    /// The kept requests as the new primary queue pair carries them out, or the reason why it cannot.
    fn take_over(&self, pe: Pe, kept: &Kept) -> Result<Vec<Sent>, String> {
        let Some((connection, queues)) = self.connected(pe) else {
            return Err("it is not connected".into());
        };
        let to = queues.primary.nics();
        let moved = kept.requests.iter().map(|sent| match sent.request.kind {
            RequestKind::Read | RequestKind::Part => {
                self.moved_request(connection, *sent, kept.nics, to)
            }
            _ => Some(*sent),
        });
        let moved: Option<Vec<Sent>> = moved.collect();
        moved.ok_or_else(|| {
            "a transfer that was outstanding is of memory that the NIC which takes over has no key of"
                .into()
        })
    }

    /// Enters requests in the new primary queue pair's queue, all before the first is posted: if one is refused, all of them
    /// are cancelled. Gives them with their numbers, or the reason why there is no room.
    fn enter_kept(
        &mut self,
        pe: Pe,
        kept: &Kept,
        requests: Vec<Sent>,
    ) -> Result<Vec<(u32, Sent)>, String> {
        let (rail, count) = (self.rail_of(pe, 0), requests.len() as u32);
        let since = Instant::now();
        while self.credits(rail) < count {
            let polled = self.poll().map_err(|error| error.to_string())?;
            if polled == 0 && since.elapsed() > ROOM_TIMEOUT {
                return Err("its completion queue has no room for what was outstanding".into());
            }
            std::thread::yield_now();
        }
        let Some(requester) = self.requester_mut(pe, 0) else {
            return Err("it is not connected".into());
        };
        requester.gpu_written |= kept.gpu_written;
        if requester.send_queue.free() < count {
            return Err("its queue pair has no room for what was outstanding".into());
        }
        let queue = &mut requester.send_queue;
        let entered = requests.into_iter().map(|sent| (queue.enter(sent), sent));
        let entered: Vec<(u32, Sent)> = entered.collect();
        let mut reads = entered
            .iter()
            .filter(|(_, sent)| sent.request.kind == RequestKind::Read);
        requester.last_read = reads.next_back().map(|(number, _)| *number);
        self.take_credits(rail, count);
        Ok(entered)
    }
}
