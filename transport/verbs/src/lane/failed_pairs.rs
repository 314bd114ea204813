//! Queue pairs that this side's device has reported as failed, by an event.

use oxshmem_transport::Pe;

use super::VerbsLane;
use super::connection::{Connection, ConnectionState};
use super::interruption::Interruption;
use crate::completion_error::CompletionError;

impl VerbsLane {
    /// Interrupts the connections whose queue pairs the device has reported as failed, and loses those of long transfers. One
    /// with puts or atomics outstanding goes on until these are flushed, which ends it.
    #[cold]
    pub(super) fn replace_failed_pairs(&mut self) {
        let failed = |connection: &Connection| -> Vec<(u8, u32)> {
            let ConnectionState::Connected(queues) = &connection.state else {
                return Vec::new();
            };
            let failed = |queue: u8| {
                let requester = queues.get(queue)?;
                let number = requester.send_queue.oldest();
                requester.watch.has_failed().then_some((queue, number))
            };
            // The primary one last: it keeps what the others had outstanding.
            queues.numbers().rev().filter_map(failed).collect()
        };
        if self.connections.iter().all(|one| failed(one).is_empty()) {
            return;
        }
        // Those that have completed were performed.
        if let Err(error) = self.poll() {
            self.errors.push_back(error);
        }
        for at in 0..self.connections.len() {
            let pe = Pe(at as u32);
            for (queue, oldest) in failed(&self.connections[at]) {
                let why = "the device has reported its queue pair as failed";
                if queue > 0 {
                    self.lose_or_fail(pe, queue, why);
                    continue;
                }
                let why = CompletionError::Failed(why.into());
                self.interrupt(pe, oldest, Interruption::OwnFailure, &why);
            }
        }
    }
}
