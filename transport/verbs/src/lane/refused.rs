//! Requests that a device does not take.
//!
//! By the lane's own count a queue has room for each request that it posts. A device may find otherwise: where a post
//! needs the kernel's memory, or where slots are free later than the completions say. So requests that it has no room for are posted
//! again while completions are taken, for a while. Whatever else is refused ends the queue pair.

use std::time::{Duration, Instant};

use oxshmem_transport::Pe;

use super::VerbsLane;
use super::nics::room_at;
use crate::completion_error::CompletionError;
use crate::ibv::Refusal;
use crate::remote_region::BoxedError;

/// The time for which a device may have no room.
const PATIENCE: Duration = Duration::from_secs(1);

impl VerbsLane {
    /// Posts the requests of the last batch that a device had no room for, if that is the reason. Completions that are taken
    /// meanwhile wait for the next [`poll`](Self::poll): the operation that is being posted is not counted yet.
    ///
    /// # Safety
    ///
    /// As for [`Batch::post_rest`](super::batch::Batch::post_rest).
    #[cold]
    pub(super) unsafe fn post_rest(
        &mut self,
        pe: Pe,
        queue: u8,
        mut refusal: Refusal,
    ) -> Result<(), Refusal> {
        let since = Instant::now();
        while let Some(rest) = refusal.for_want_of_room() {
            if since.elapsed() > PATIENCE {
                break;
            }
            self.hold_completions(self.rail_of(pe, queue));
            std::thread::yield_now();
            let Some((_, queues)) = self.connected(pe) else {
                break;
            };
            let Some(requester) = queues.get(queue) else {
                break;
            };
            // SAFETY: the caller's promise.
            match unsafe { self.batch.post_rest(&requester.pair, rest) } {
                Ok(()) => return Ok(()),
                Err(again) => refusal = again,
            }
        }
        Err(refusal)
    }

    /// Takes completions of a NIC's requests without a look at them.
    fn hold_completions(&mut self, rail: u8) {
        let Some(room) = room_at(&self.room, &self.further, rail) else {
            return;
        };
        // A queue that cannot be polled is told by the next look.
        let count = room.queue.poll(&mut self.completions).unwrap_or(0);
        self.counts.polled(count as u64);
        let taken = self.completions.iter().take(count);
        self.held.extend(taken.map(|one| (rail, *one)));
    }

    /// Ends a connection whose requests the device has refused.
    #[cold]
    pub(super) fn refused_by_device(&mut self, pe: Pe, refusal: Refusal) -> BoxedError {
        let source = std::io::Error::from_raw_os_error(refusal.code);
        let port_state = self.rails.get(self.rail_of(pe, 0));
        let port = port_state.unwrap_or(&self.port_state).port.name();
        let lasting = match refusal.for_want_of_room() {
            Some(_) => {
                ", for a second, though by its completions it has room; OXSHMEM_VERBS_DEPTH asks for less"
            }
            None => "",
        };
        let cause = CompletionError::Failed(format!("ibv_post_send on {port}: {source}{lasting}"));
        let error = cause.error(pe);
        if let Some(connection) = self.connections.get_mut(pe.index()) {
            let flushed = connection.fail(cause, &mut self.pool);
            self.note_flushed(flushed);
        }
        self.reclaim_flushed_cqes();
        Box::new(error)
    }
}
