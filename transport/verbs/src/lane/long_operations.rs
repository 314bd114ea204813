//! The operations of one connection that go in several parts, and the count of all operations that have completed. Pure
//! data.
//!
//! Parts complete in any order, the operations of the primary queue pair in their own. Operations count as completed in
//! the order posted, as those of one queue pair do: whoever waits for the first of two need not wait for the second.

use std::collections::VecDeque;

use oxshmem_transport::Op;

/// One operation in parts.
#[derive(Debug)]
struct LongOperation {
    /// Parts that have not completed.
    parts: u32,
    /// Operations of the primary queue pair that were posted before it.
    primaries_before: u64,
    /// The update of a signal that waits for those parts, and then is one itself.
    signal: Option<Op>,
}

/// The number of such an operation. Numbers wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LongNumber(u32);

/// The operations in parts of one connection, in the order posted.
#[derive(Debug, Default)]
pub(crate) struct LongOperations {
    outstanding: VecDeque<LongOperation>,
    /// The number of the first of those.
    first: u32,
    /// Those posted so far.
    posted: u64,
    /// Those counted as completed.
    counted: u64,
    /// Operations of the primary queue pair that have completed.
    primaries_done: u64,
    /// Signals that wait for their data.
    signals: usize,
    /// Requests of the primary queue pair that are parts, by their numbers, in order.
    primary_parts: VecDeque<(u32, LongNumber)>,
    /// Operations whose data is placed, so that their signals are due.
    due: VecDeque<LongNumber>,
}

impl LongOperations {
    /// Enters an operation, where `posted` operations were posted before it, with its signal. It has no parts yet.
    pub(crate) fn enter(&mut self, posted: u64, signal: Option<Op>) -> LongNumber {
        let number = self.first.wrapping_add(self.outstanding.len() as u32);
        self.signals += usize::from(signal.is_some());
        self.outstanding.push_back(LongOperation {
            parts: 0,
            primaries_before: posted - self.posted,
            signal,
        });
        self.posted += 1;
        LongNumber(number)
    }

    fn operation(&mut self, number: LongNumber) -> Option<&mut LongOperation> {
        let at = number.0.wrapping_sub(self.first);
        self.outstanding.get_mut(at as usize)
    }

    /// Adds parts to an operation, before any of its parts can have completed or while others have not.
    pub(crate) fn add_parts(&mut self, number: LongNumber, parts: u32) {
        if let Some(operation) = self.operation(number) {
            operation.parts += parts;
        }
    }

    /// One part has completed.
    pub(crate) fn part_done(&mut self, number: LongNumber) {
        let Some(operation) = self.operation(number) else {
            return;
        };
        operation.parts = operation.parts.saturating_sub(1);
        if operation.parts == 0 && operation.signal.is_some() {
            self.due.push_back(number);
        }
    }

    /// Enters a request of the primary queue pair as one more part.
    pub(crate) fn enter_primary_part(&mut self, request: u32, number: LongNumber) {
        self.add_parts(number, 1);
        self.move_to_primary(request, number);
    }

    /// A part goes to the primary queue pair, as this request, from one that is lost.
    pub(crate) fn move_to_primary(&mut self, request: u32, number: LongNumber) {
        self.primary_parts.push_back((request, number));
    }

    /// Takes the parts of the primary queue pair, which has ended: the numbers of their last requests, in order. Other requests
    /// complete them.
    pub(crate) fn take_primary_parts(&mut self) -> VecDeque<(u32, LongNumber)> {
        std::mem::take(&mut self.primary_parts)
    }

    /// Operations of the primary queue pair have completed, and perhaps parts there: those whose requests are not
    /// outstanding any more.
    pub(crate) fn primaries_done(&mut self, count: u64, is_outstanding: impl Fn(u32) -> bool) {
        self.primaries_done += count;
        while let Some((request, number)) = self.primary_parts.front().copied()
            && !is_outstanding(request)
        {
            self.primary_parts.pop_front();
            self.part_done(number);
        }
    }

    /// Operations of both kinds that have completed, and all before them.
    pub(crate) fn completed(&mut self) -> u64 {
        while let Some(first) = self.outstanding.front() {
            let reached = self.primaries_done >= first.primaries_before;
            if !reached || first.parts > 0 || first.signal.is_some() {
                return self.primaries_done.min(first.primaries_before) + self.counted;
            }
            self.outstanding.pop_front();
            self.first = self.first.wrapping_add(1);
            self.counted += 1;
        }
        self.primaries_done + self.counted
    }

    /// Whether signals wait for their data.
    pub(crate) fn has_signals(&self) -> bool {
        self.signals > 0
    }

    /// Whether signals are due.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The signal that has been due for longest.
    pub(crate) fn due(&mut self) -> Option<(LongNumber, Op)> {
        let number = *self.due.front()?;
        let signal = self.operation(number)?.signal?;
        Some((number, signal))
    }

    /// That signal is about to be posted, and waits no more.
    pub(crate) fn signal_posted(&mut self) {
        let number = self.due.pop_front();
        if let Some(operation) = number.and_then(|number| self.operation(number)) {
            operation.signal = None;
            self.signals -= 1;
        }
    }

    /// Whether nothing is outstanding.
    pub(crate) fn is_empty(&self) -> bool {
        self.outstanding.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(long: &mut LongOperations, parts: u32, posted: u64) -> LongNumber {
        let number = long.enter(posted, None);
        long.add_parts(number, parts);
        number
    }

    #[test]
    fn operations_count_in_the_order_posted_whatever_completes_first() {
        let mut long = LongOperations::default();
        // Primary 0, long 1, primary 2, long 3, primary 4.
        let one = enter(&mut long, 2, 1);
        let three = enter(&mut long, 1, 3);
        assert_eq!(long.completed(), 0);
        long.part_done(three);
        long.primaries_done(1, |_| true);
        assert_eq!(long.completed(), 1);
        // Primaries 2 and 4 are behind the first long one.
        long.primaries_done(2, |_| true);
        assert_eq!(long.completed(), 1);
        long.part_done(one);
        assert_eq!(long.completed(), 1);
        long.part_done(one);
        assert_eq!(long.completed(), 5);
        assert!(long.is_empty());
        // Those after them count as before.
        long.primaries_done(1, |_| true);
        assert_eq!(long.completed(), 6);
        let last = enter(&mut long, 1, 6);
        long.part_done(last);
        assert_eq!(long.completed(), 7);
    }

    #[test]
    fn m22_a_signal_is_due_when_all_parts_are_done_and_then_is_one_itself() {
        let mut long = LongOperations::default();
        let number = long.enter(0, Some(Op::Flush));
        long.add_parts(number, 2);
        long.part_done(number);
        assert!(long.has_signals() && !long.has_due() && long.due().is_none());
        long.part_done(number);
        assert!(long.has_due() && long.due().is_some());
        assert_eq!(long.completed(), 0);
        long.signal_posted();
        long.enter_primary_part(7, number);
        assert!(!long.has_signals() && !long.has_due());
        long.primaries_done(0, |request| request == 7);
        assert_eq!(long.completed(), 0, "counted before its signal");
        long.primaries_done(0, |_| false);
        assert_eq!(long.completed(), 1);
    }

    #[test]
    fn numbers_wrap() {
        let mut long = LongOperations {
            first: u32::MAX,
            ..LongOperations::default()
        };
        let numbers = [enter(&mut long, 1, 0), enter(&mut long, 1, 1)];
        long.part_done(numbers[1]);
        assert_eq!(long.completed(), 0);
        long.part_done(numbers[0]);
        assert_eq!(long.completed(), 2);
    }
}
