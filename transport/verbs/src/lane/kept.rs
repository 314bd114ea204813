//! The parts of an interrupted connection that its next queue pair takes over.

use std::collections::VecDeque;
use std::time::Instant;

use super::bounce_pool::BouncePool;
use super::requester::NicPair;
use super::send_queue::Sent;
use super::stripes::Repeat;

/// These parts.
#[derive(Debug)]
pub(super) struct Kept {
    /// The requests that it is to carry out, in order.
    pub(super) requests: Vec<Sent>,
    /// The requests of long transfers that are to be posted again.
    pub(super) repeats: VecDeque<Repeat>,
    /// The time before which they are not: packets of the old queue pairs may still come.
    pub(super) repeats_after: Option<Instant>,
    /// The NICs whose keys they have.
    pub(super) nics: NicPair,
    /// Whether the NIC of this side comes last among those for the next queue pair.
    pub(super) leaves_nic: bool,
    /// The time before which nothing is posted at other NICs: packets of the old queue pairs may still come.
    pub(super) not_before: Option<Instant>,
    /// The nonce of the endpoint that was interrupted.
    pub(super) nonce: u64,
    /// Those of its bulk queue pairs' endpoints, by their places, lost ones among them.
    pub(super) bulk_nonces: Vec<Option<u64>>,
    /// Those of them that were written by since their last flush, as a set of bits by their places.
    pub(super) dirty: u64,
    /// New queue pairs since the peer last answered, with the next one.
    pub(super) attempt: u32,
    /// Whether GPU memory was written since the last flush.
    pub(super) gpu_written: bool,
}

impl Kept {
    /// Releases the blocks. None of the requests is carried out.
    pub(super) fn discard(self, pool: &mut BouncePool) {
        let blocks = self.requests.iter().filter_map(|sent| sent.request.block);
        let blocks = blocks.chain(self.repeats.iter().filter_map(Repeat::block));
        blocks.for_each(|block| pool.release(block));
    }
}
