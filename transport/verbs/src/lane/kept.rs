//! The parts of an interrupted connection that its next queue pair takes over.

use super::bounce_pool::BouncePool;
use super::send_queue::Sent;

/// These parts.
#[derive(Debug)]
pub(super) struct Kept {
    /// The requests that it is to carry out, in order. Their completions have room in the completion queue.
    pub(super) requests: Vec<Sent>,
    /// The nonce of the endpoint that was interrupted.
    pub(super) nonce: u64,
    /// Those of its bulk queue pairs' endpoints, by their places; none of lost ones.
    pub(super) bulk_nonces: Vec<Option<u64>>,
    /// New queue pairs since the peer last answered, with the next one.
    pub(super) attempt: u32,
    /// Whether GPU memory was written since the last flush.
    pub(super) gpu_written: bool,
}

impl Kept {
    /// Releases the blocks. Gives the number of requests, none of which is carried out.
    pub(super) fn discard(self, pool: &mut BouncePool) -> u32 {
        let blocks = self.requests.iter().filter_map(|sent| sent.request.block);
        blocks.for_each(|block| pool.release(block));
        self.requests.len() as u32
    }
}
