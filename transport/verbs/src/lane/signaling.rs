//! Requests that stand alone: empty writes that complete what is unsignaled or wake a software device, and announcements.

use std::time::Instant;

use oxshmem_transport::Pe;

use super::VerbsLane;
use super::batch::{LocalBuffer, Operation, SendRequest};
use super::connection::ConnectionState;
use super::nics::credits_at;
use super::request_id::RequestId;
use super::send_queue::{RequestKind, WorkRequest};

impl VerbsLane {
    /// Wakes a software device that has left due completions undone for a while.
    #[cold]
    pub(super) fn wake_stalled(&mut self) {
        let now = Instant::now();
        for at in 0..self.connections.len() {
            let queues = match self.connections.get(at).map(|connection| &connection.state) {
                Some(ConnectionState::Connected(queues)) => queues.numbers(),
                _ => continue,
            };
            let pe = Pe(at as u32);
            for queue in queues {
                if self.stalls(pe, queue, now) {
                    tracing::debug!(%pe, queue, "nothing was done for a while: another request may wake the device");
                    self.push_noop(pe, queue);
                }
            }
        }
    }

    fn stalls(&mut self, pe: Pe, queue: u8, now: Instant) -> bool {
        let requester = self.requester_mut(pe, queue);
        requester.is_some_and(|requester| requester.stalls(now))
    }

    /// Sends an empty signaled write, which completes all requests before it, if there is room.
    pub(super) fn push_noop(&mut self, pe: Pe, queue: u8) {
        let Some((connection, queues)) = self.connected(pe) else {
            return;
        };
        let peer_rail = queues.get(queue).map_or(0, |one| one.peer_rail);
        let nothing = connection.write_of_nothing(peer_rail);
        self.push_alone(pe, queue, nothing);
    }

    /// Sends one signaled request without a local buffer, if there is room. Gives whether it was posted.
    pub(super) fn push_alone(&mut self, pe: Pe, queue: u8, operation: Operation) -> bool {
        let credits = self.credits(self.rail_of(pe, queue));
        let Some(requester) = self.requester_mut(pe, queue) else {
            return false;
        };
        if credits == 0 || requester.send_queue.free() == 0 {
            return false;
        }
        let rail = requester.rail;
        let number = requester.send_queue.push(WorkRequest {
            is_last: false,
            kind: match operation {
                Operation::Disconnect => RequestKind::Message,
                _ => RequestKind::Update,
            },
            ..WorkRequest::PLAIN
        });
        self.take_credits(rail, 1);
        let request = SendRequest {
            operation,
            local: LocalBuffer::Empty,
            is_fenced: false,
        };
        self.batch.push(RequestId { pe, queue, number }, request);
        // SAFETY: the request has no local buffer.
        let posted = unsafe {
            match queue {
                0 => self.submit(pe, true),
                bulk => self.submit_bulk(pe, bulk),
            }
        };
        match posted {
            Ok(()) => true,
            Err(error) => {
                self.errors.push_back(*error);
                false
            }
        }
    }

    /// Has unsignaled requests completed by an empty write, where no completion is due that does it, or
    /// their completion was requested.
    #[cold]
    pub(super) fn signal_pending(&mut self) {
        // Those that stay listed move to the front; nothing here adds to the list.
        let mut left = 0;
        for at in 0..self.unsignaled.len() {
            let pe = self.unsignaled[at];
            let Some(connection) = self.connections.get_mut(pe.index()) else {
                continue;
            };
            connection.is_listed = false;
            let wants_signal = std::mem::take(&mut connection.wants_signal);
            let ConnectionState::Connected(queues) = &mut connection.state else {
                continue;
            };
            let queue = &queues.primary.send_queue;
            if queue.unsignaled() == 0 {
                continue;
            }
            let later = queue.expects_completion() && !wants_signal;
            let credits = credits_at(&self.room, &self.further, queues.primary.rail);
            if later || credits == 0 || queue.free() == 0 {
                connection.is_listed = true;
                connection.wants_signal = wants_signal;
                self.wants_signal |= wants_signal;
                self.unsignaled[left] = pe;
                left += 1;
                continue;
            }
            self.push_noop(pe, 0);
        }
        self.unsignaled.truncate(left);
    }
}
