//! The completions of a lane's requests: those that succeeded, and those that end a queue pair, a connection or all.

use oxshmem_transport::{Pe, Result};

use super::VerbsLane;
use super::connection::{Connection, ConnectionState};
use super::interruption::Interruption;
use super::lost_queue::Loss;
use super::nics::{Flushed, credits_at, room_at_mut};
use super::request_id::RequestId;
use super::requester::Requester;
use crate::completion_error::{CompletionError, LocalPort};
use crate::domain_state::has_bit;
use crate::ibv::Completion;
use crate::ibv::sys::ibv_wc_status;

/// Whether a completion says that its peer did not answer.
fn is_silence(completion: &Completion) -> bool {
    matches!(
        completion.status(),
        ibv_wc_status::IBV_WC_RETRY_EXC_ERR | ibv_wc_status::IBV_WC_RESP_TIMEOUT_ERR
    )
}

/// Whether a completion says that this side's device has given the queue pair up, for no fault of the request.
fn is_own_failure(completion: &Completion) -> bool {
    matches!(
        completion.status(),
        ibv_wc_status::IBV_WC_WR_FLUSH_ERR
            | ibv_wc_status::IBV_WC_FATAL_ERR
            | ibv_wc_status::IBV_WC_GENERAL_ERR
    )
}

/// Whether a completion says that its queue pair had failed before, without a reason of its own. The request was performed or
/// not: of one that was on its way the device may be unable to tell the end.
fn is_flush(completion: &Completion) -> bool {
    completion.status() == ibv_wc_status::IBV_WC_WR_FLUSH_ERR
}

impl VerbsLane {
    /// Takes up to [`POLL`] completions; gives their number.
    #[inline(always)]
    pub(super) fn poll(&mut self) -> Result<usize> {
        let held = match self.held.is_empty() {
            true => 0,
            false => self.take_held(),
        };
        let count = self.poll_first()?;
        self.counts.polled(count as u64);
        self.take(0, count);
        let mut all = held + count;
        for at in 0..self.further.len() {
            all += self.poll_further(at);
        }
        Ok(all)
    }

    /// Completions at the first NIC. If its queue cannot be polled it is lost, and so is the lane if there is no other.
    #[inline(always)]
    fn poll_first(&mut self) -> Result<usize> {
        let polled = self.room.queue.poll(&mut self.completions);
        match polled {
            Err(error) if !self.further.is_empty() => {
                let port = self.port_state.port.name();
                self.port_state.fail(&format!("{port}: {error}"));
                Ok(0)
            }
            polled => polled,
        }
    }

    /// The same for one of the further NICs. One whose queue cannot be polled is lost.
    fn poll_further(&mut self, at: usize) -> usize {
        let Some(nic) = self.further.get(at) else {
            return 0;
        };
        let rail = nic.port_state.rail;
        let count = nic.room.queue.poll(&mut self.completions);
        let count = count.unwrap_or_else(|error| {
            let port = nic.port_state.port.name();
            nic.port_state.fail(&format!("{port}: {error}"));
            0
        });
        self.counts.polled(count as u64);
        self.take(rail, count);
        count
    }

    /// Takes the completions that were held back; gives their number.
    #[cold]
    fn take_held(&mut self) -> usize {
        let held = std::mem::take(&mut self.held);
        for (rail, completion) in &held {
            self.take_one(*rail, completion);
        }
        held.len()
    }

    /// Takes so many completions of a NIC's requests.
    #[inline]
    fn take(&mut self, rail: u8, count: usize) {
        for at in 0..count {
            let completion = &self.completions[at];
            if completion.succeeded() {
                let id = RequestId::from_u64(completion.id());
                self.completed(rail, id);
            } else {
                let completion = *completion;
                self.take_one(rail, &completion);
            }
        }
    }

    #[cold]
    fn take_one(&mut self, rail: u8, completion: &Completion) {
        let id = RequestId::from_u64(completion.id());
        match completion.succeeded() {
            true => self.completed(rail, id),
            false => self.failed_completion(id, completion),
        }
    }

    /// A request has succeeded, and with it those before it on its queue pair.
    #[inline(always)]
    fn completed(&mut self, rail: u8, id: RequestId) {
        let Some(connection) = self.connections.get_mut(id.pe.index()) else {
            return;
        };
        let credits = match id.queue {
            0 => connection.retire(id.number, &mut self.pool),
            queue => connection.retire_bulk(queue, id.number, &mut self.pool),
        };
        let is_due = connection.has_due_signals();
        self.give_credits(rail, credits);
        if is_due {
            self.note_due(id.pe);
        }
    }

    /// Ends a connection by the completion of a request that failed.
    #[cold]
    fn failed_completion(&mut self, id: RequestId, completion: &Completion) {
        let pe = id.pe;
        let connection = self.connections.get_mut(pe.index());
        let Some(ConnectionState::Connected(queues)) = connection.map(|known| &mut known.state)
        else {
            return;
        };
        let was_ever_acked = queues.primary.was_ever_acked();
        let Some(queue) = queues.get_mut(id.queue) else {
            return;
        };
        let rail = queue.rail;
        let port_state = self.rails.get(rail).unwrap_or(&self.port_state);
        // The device's events first: they may say that the port is down.
        port_state.events();
        let local = LocalPort {
            name: &port_state.port.name(),
            route: &queue.description,
            ever_acked: was_ever_acked || queue.ever_acked,
            is_down: port_state.is_down(),
        };
        let cause = CompletionError::of(completion, &local);
        let is_silent = is_silence(completion);
        let goes_on = match id.queue {
            0 if is_silent => self.interrupt(pe, id.number, Interruption::Silence, &cause),
            0 if is_flush(completion) => {
                self.interrupt(pe, id.number, Interruption::OwnFailure, &cause)
            }
            0 => {
                is_own_failure(completion)
                    && self.has_stand_in(rail)
                    && self.interrupt(pe, id.number, Interruption::LostNic, &cause)
            }
            _ if is_silent => self.lose_bulk(id, &cause, Loss::Silence),
            // The first NIC works perhaps.
            _ if rail > 0 && is_own_failure(completion) || is_flush(completion) => {
                self.lose_bulk(id, &cause, Loss::OwnFailure)
            }
            _ => false,
        };
        if !goes_on {
            self.fail(pe, cause);
        }
    }

    /// Ends a connection that has failed. `progress` gives the error.
    #[cold]
    pub(super) fn fail(&mut self, pe: Pe, cause: CompletionError) {
        let error = cause.error(pe);
        let connection = self.connections.get(pe.index());
        match connection.map_or(0, Connection::in_doubt) {
            0 => tracing::warn!(%pe, status = %error, "a connection failed"),
            in_doubt => {
                tracing::warn!(%pe, status = %error, in_doubt, "a connection failed: puts, atomics or messages \
                 may have been performed or not, so that it is not made again")
            }
        }
        self.errors.push_back(error);
        if let Some(connection) = self.connections.get_mut(pe.index()) {
            let flushed = connection.fail(cause, &mut self.pool);
            self.note_flushed(flushed);
        }
    }

    /// Ends all connections, when the device has failed.
    #[cold]
    pub(super) fn fail_all(&mut self, why: &str) {
        for at in 0..self.connections.len() {
            let cause = CompletionError::Failed(why.to_owned());
            match self.connections[at].state {
                ConnectionState::Created(_) | ConnectionState::Connected(_) => {
                    self.fail(Pe(at as u32), cause);
                }
                ConnectionState::Unused => {
                    let flushed = self.connections[at].fail(cause, &mut self.pool);
                    self.note_flushed(flushed);
                }
                ConnectionState::Failed(_) => {}
            }
        }
    }

    /// Loses the queue pairs at NICs that have failed, as a set of bits. A primary one is made again at another NIC, if it can
    /// be.
    #[cold]
    pub(super) fn lose_nics(&mut self, failed: u8) {
        for at in 0..self.connections.len() {
            let ConnectionState::Connected(queues) = &self.connections[at].state else {
                continue;
            };
            let is_lost = |one: &Requester| has_bit(failed, one.rail);
            let lost = queues.numbers();
            let lost: Vec<u8> = lost
                .filter(|queue| queues.get(*queue).is_some_and(is_lost))
                .collect();
            let pe = Pe(at as u32);
            // The bulk ones first: if the primary one goes too, it keeps what they had outstanding.
            for queue in lost.into_iter().rev() {
                match queue {
                    0 => self.leave_failed_nic(pe),
                    bulk => self.lose_or_fail(pe, bulk, "its NIC has failed"),
                }
            }
        }
    }

    /// Empties the completion queues. They hold nothing of a destroyed queue pair then, and the credits of
    /// those completions are free again.
    #[cold]
    pub(super) fn reclaim_flushed_cqes(&mut self) {
        loop {
            match self.poll() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    self.errors.push_back(error);
                    return;
                }
            }
        }
        self.room.reclaim();
        self.further.iter_mut().for_each(|nic| nic.room.reclaim());
        self.has_flushed = false;
    }

    /// The credits for requests to a NIC's completion queue.
    #[inline]
    pub(super) fn credits(&self, rail: u8) -> u32 {
        credits_at(&self.room, &self.further, rail)
    }

    #[inline]
    pub(super) fn give_credits(&mut self, rail: u8, count: u32) {
        if let Some(room) = room_at_mut(&mut self.room, &mut self.further, rail) {
            room.credits += count;
        }
    }

    #[inline]
    pub(super) fn take_credits(&mut self, rail: u8, count: u32) {
        if let Some(room) = room_at_mut(&mut self.room, &mut self.further, rail) {
            room.credits = room.credits.saturating_sub(count);
        }
    }

    /// Notes completions that may come of queue pairs that are destroyed.
    pub(super) fn note_flushed(&mut self, flushed: Flushed) {
        self.room.flushed += flushed.of(0);
        for nic in &mut self.further {
            nic.room.flushed += flushed.of(nic.port_state.rail);
        }
        self.has_flushed |= flushed != Flushed::default();
    }
}
