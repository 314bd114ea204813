//! The queue pairs for long transfers: each such transfer goes in parts over several of them.
//!
//! A connection's *primary* queue pair has all short operations, atomics, messages and signals, in their order. The *bulk*
//! queue pairs beside it have the parts of long puts and gets, which keep no order with anything. So a flush flushes each
//! bulk queue pair that was written by, too, and a signal behind long data is posted when that data is placed.

use std::collections::VecDeque;
use std::time::Instant;

use super::bounce_pool::Block;
use super::long_operations::LongNumber;
use super::requester::{NicPair, Requester};
use super::send_queue::Sent;

/// The shortest part that a transfer is cut into, in bytes.
const LEAST_PART: u64 = 16 << 10;

/// Parts begin at multiples of this in the target's memory, so that no packet ends inside a word.
const PART_ALIGN: u64 = 4096;

/// One bulk queue pair.
#[derive(Debug)]
pub(crate) struct BulkQueue {
    /// None once it is lost.
    pub(crate) requester: Option<Requester>,
    /// The operations whose parts are outstanding there, one entry for each part, in order.
    pub(crate) parts: VecDeque<LongNumber>,
    /// Whether anything was written by it since the last flush.
    pub(crate) is_dirty: bool,
    /// The nonce of the last one here that was lost. The target ends its side when it accepts the next.
    pub(crate) lost_nonce: Option<u64>,
}

impl BulkQueue {
    /// The nonce of the queue pair here, or of the last one that was lost.
    pub(crate) fn nonce(&self) -> Option<u64> {
        let alive = self.requester.as_ref().map(Requester::nonce);
        alive.or(self.lost_nonce)
    }
}

/// A request of a lost queue pair as another one is to carry it out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Repeat {
    /// An empty write by the primary queue pair, which finds out whether the peer answers there. Before it does, no signal is posted:
    /// nothing would tell whether it was performed.
    Probe,
    /// Data that moves, the operation of which it is the last request of a part, and the NICs whose keys it has.
    Request(Sent, Option<LongNumber>, NicPair),
    /// A flush of the parts before it, itself a part.
    Flush(LongNumber),
}

impl Repeat {
    /// The block of the lane that it uses.
    pub(crate) fn block(&self) -> Option<Block> {
        match self {
            Repeat::Request(sent, ..) => sent.request.block,
            Repeat::Probe | Repeat::Flush(_) => None,
        }
    }
}

/// The bulk queue pairs of one connection.
#[derive(Debug)]
pub(crate) struct Stripes {
    // Ended with their owner, before the blocks that they use.
    pub(crate) queues: Vec<BulkQueue>,
    /// The queue pair that the next transfer begins with.
    next: usize,
    /// The requests of lost queue pairs, in the order in which they are to be posted again.
    pub(crate) repeats: VecDeque<Repeat>,
    /// The time before which they are not: packets of a lost queue pair may still come.
    pub(crate) repeats_after: Option<Instant>,
    /// The last probe's request at the primary queue pair.
    pub(crate) probe: Option<u32>,
    /// The numbers of the queue pairs that have written again for lost ones since the last flush among those requests.
    pub(crate) carriers: Vec<u8>,
}

impl Stripes {
    /// Of these queue pairs, some of which were never made.
    pub(crate) fn new(requesters: Vec<Option<Requester>>) -> Stripes {
        let queues = requesters.into_iter().map(|requester| BulkQueue {
            requester,
            parts: VecDeque::new(),
            is_dirty: false,
            lost_nonce: None,
        });
        Stripes {
            queues: queues.collect(),
            next: 0,
            repeats: VecDeque::new(),
            repeats_after: None,
            probe: None,
            carriers: Vec::new(),
        }
    }

    /// The bulk queue pair of this number, as completions name it.
    #[inline]
    pub(crate) fn bulk_mut(&mut self, queue: u8) -> Option<&mut BulkQueue> {
        self.queues.get_mut(usize::from(queue).wrapping_sub(1))
    }

    /// The numbers of the queue pairs for a transfer of this many parts, each another one of the `usable`, which are a set of
    /// bits by their places.
    pub(crate) fn pick(&mut self, parts: usize, usable: u64) -> impl Iterator<Item = u8> + use<> {
        let (first, count) = (self.next, self.queues.len());
        self.next = (first + parts) % count.max(1);
        let turns = (0..count).map(move |at| (first + at) % count);
        let turns = turns.filter(move |at| usable >> at & 1 == 1);
        turns.take(parts).map(|at| (at + 1) as u8)
    }

    /// The queue pairs that are not lost and of which something holds, as a set of bits by their places.
    pub(crate) fn usable(&self, holds: impl Fn(&Requester) -> bool) -> u64 {
        let usable = |bulk: &BulkQueue| bulk.requester.as_ref().is_some_and(&holds);
        let all = (0..).zip(&self.queues);
        all.fold(0, |set, (at, bulk)| set | u64::from(usable(bulk)) << at)
    }

    /// The queue pairs that are not lost.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &Requester> {
        let queues = self.queues.iter();
        queues.filter_map(|bulk| bulk.requester.as_ref())
    }

    /// Bytes in flight.
    pub(crate) fn bytes(&self) -> u64 {
        self.alive().map(|one| one.send_queue.bytes()).sum()
    }
}

/// The parts of a transfer of `len` bytes to or from address `addr` over so many queue pairs: their offsets and lengths.
pub(crate) fn cut(len: u64, addr: u64, queues: usize) -> impl Iterator<Item = (u64, u64)> + Clone {
    let parts = (len / LEAST_PART).clamp(1, queues.max(1) as u64);
    let before = addr % PART_ALIGN;
    // The end of a part, but of the last one.
    let end = move |part: u64| {
        let end = (before + len / parts * part).next_multiple_of(PART_ALIGN) - before;
        if part == parts { len } else { end.min(len) }
    };
    let ends = (1..=parts).map(move |part| {
        let start = if part == 1 { 0 } else { end(part - 1) };
        (start, end(part) - start)
    });
    ends.filter(move |(_, bytes)| *bytes > 0 || len == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_transfer_and_begin_between_words() {
        for addr in [0x1000, 0x1001, 0x1ff9, 0x1fff] {
            for len in [
                0,
                64,
                16_383,
                16_384,
                40_000,
                65_536,
                65_537,
                1 << 20,
                (1 << 30) - 1,
            ] {
                for queues in [1, 2, 3, 8, 64] {
                    let parts: Vec<_> = cut(len, addr, queues).collect();
                    assert!(!parts.is_empty() && parts.len() <= queues);
                    let mut next = 0;
                    for (start, bytes) in &parts {
                        assert_eq!(*start, next);
                        assert!(*start == 0 || (addr + start) % PART_ALIGN == 0);
                        next += bytes;
                    }
                    assert_eq!(next, len, "{addr:#x} {queues}");
                }
            }
        }
    }

    #[test]
    fn long_transfers_use_all_queue_pairs_and_short_ones_one() {
        let count = |len, queues| cut(len, 0x1000, queues).count();
        assert_eq!(
            (count(64, 4), count(32_767, 4), count(32_768, 4)),
            (1, 1, 2)
        );
        assert_eq!(
            (count(65_536, 4), count(1 << 20, 4), count(1 << 20, 8)),
            (4, 4, 8)
        );
        let longest = cut(1 << 20, 0x1003, 4).map(|(_, bytes)| bytes).max();
        assert!(longest.is_some_and(|bytes| bytes < (1 << 18) + PART_ALIGN));
    }
}
