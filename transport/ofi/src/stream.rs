//! The operations of one lane to one PE.

use std::collections::VecDeque;

use oxshmem_transport::{Counters, Op};

use crate::message::Signal;
use crate::wire::Key;

/// An accepted operation.
#[derive(Debug)]
pub(crate) struct Entry {
    pub op: Op,
    /// The peer's region, and the offset in it; of a flush or a message, none.
    pub target: Option<(Key, u64)>,
    pub signal: Option<Signal>,
    /// Whether its local side is GPU memory, which the CPU does not access.
    pub on_gpu: bool,
    /// A copy of a short source, if the operation could not start at once.
    pub copied: Vec<u8>,
    /// Bytes under way or done.
    pub started: u64,
    /// Whether all of it is under way or done.
    pub is_begun: bool,
    /// The provider's operations that have not ended.
    pub parts: u32,
    /// The number of its last message, which the peer has to serve; 0 for none.
    pub number: u64,
}

impl Entry {
    /// The first byte of its source, or of the copy of it; null without a source.
    pub(crate) fn source(&self) -> *const u8 {
        match self.op {
            _ if !self.copied.is_empty() => self.copied.as_ptr(),
            Op::Put { from, .. } | Op::PutSignal { from, .. } | Op::Message { from } => {
                from.addr.cast_const()
            }
            _ => std::ptr::null(),
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was sent; there may be more.
    Done,
    /// There is nothing to send.
    Empty,
    /// There is no room now.
    Blocked,
}

/// The operations of one lane to one PE, in order.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub counters: Counters,
    /// Those that have not completed, or that follow one that has not.
    pub entries: VecDeque<Entry>,
    /// The serial number of the first entry.
    pub first: u64,
    /// The index of the first entry that is not begun.
    pub next: usize,
    /// The entries at the front, which the provider has read or written all of.
    ended: usize,
    /// Whether it is listed among those that have something to send.
    pub is_listed: bool,
    /// The provider's operations on memory in place that have not ended. They count even if their entry was cancelled.
    pub in_place: u32,
}

impl Stream {
    /// The entry with a serial number, if it was not cancelled.
    pub(crate) fn entry(&mut self, serial: u64) -> Option<&mut Entry> {
        let index = serial.checked_sub(self.first)?;
        self.entries.get_mut(usize::try_from(index).ok()?)
    }

    /// The next entry to send, with its serial number.
    pub(crate) fn current(&mut self) -> Option<(u64, &mut Entry)> {
        let serial = self.first + self.next as u64;
        Some((serial, self.entries.get_mut(self.next)?))
    }

    /// Marks the current entry as begun.
    pub(crate) fn begin(&mut self) {
        if let Some(entry) = self.entries.get_mut(self.next) {
            entry.is_begun = true;
            self.next += 1;
        }
    }

    /// Counts the entries at the front that are done, where the peer has served its messages up to this number.
    pub(crate) fn settle(&mut self, served: u64) {
        let ended = |entry: &Entry| entry.is_begun && entry.parts == 0;
        while self.entries.get(self.ended).is_some_and(ended) {
            self.ended += 1;
        }
        let served = |entry: &Entry| entry.number <= served;
        while self.ended > 0 && self.entries.front().is_some_and(served) {
            self.entries.pop_front();
            self.first += 1;
            self.ended -= 1;
            self.next = self.next.saturating_sub(1);
            self.counters.completed += 1;
        }
    }

    /// The operations whose local memory is accessed no more, of all that were posted, in order.
    pub(crate) fn reusable(&self) -> u64 {
        self.counters.completed + self.ended as u64
    }

    /// Forgets all operations. Those on memory in place go on at the provider until they end.
    pub(crate) fn cancel(&mut self) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        self.next = 0;
        self.ended = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64, parts: u32) -> Entry {
        Entry {
            op: Op::Flush,
            target: None,
            signal: None,
            on_gpu: false,
            copied: Vec::new(),
            started: 0,
            is_begun: false,
            parts,
            number,
        }
    }

    #[test]
    fn operations_count_as_completed_in_the_order_posted() {
        let mut stream = Stream::default();
        stream
            .entries
            .extend([entry(1, 0), entry(0, 1), entry(2, 0)]);
        for _ in 0..3 {
            stream.begin();
        }
        stream.settle(0);
        assert_eq!((stream.counters.completed, stream.reusable()), (0, 1));
        stream.settle(2);
        assert_eq!(
            stream.counters.completed, 1,
            "the second has a part in flight"
        );
        assert_eq!(stream.reusable(), 1);
        stream.entry(1).unwrap().parts = 0;
        stream.settle(1);
        assert_eq!(stream.counters.completed, 2, "the third is not served");
        assert_eq!(stream.reusable(), 3, "its source was read");
        stream.settle(2);
        assert_eq!((stream.counters.completed, stream.next), (3, 0));
        assert_eq!(stream.reusable(), 3);
    }

    #[test]
    fn what_was_cancelled_is_found_no_more_and_counts_no_more() {
        let mut stream = Stream::default();
        stream.entries.extend([entry(1, 0), entry(2, 1)]);
        stream.begin();
        stream.cancel();
        assert!(stream.entry(0).is_none() && stream.entry(1).is_none());
        stream.entries.push_back(entry(3, 0));
        assert_eq!(stream.current().map(|(serial, _)| serial), Some(2));
        stream.settle(9);
        assert_eq!(stream.counters.completed, 0);
    }
}
