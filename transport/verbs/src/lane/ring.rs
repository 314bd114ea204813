//! The requests of one queue pair that are outstanding, in order, and what is to be done when each
//! is complete.
//!
//! Requests complete in the order posted, so one signalled request tells of all before it.

use super::pool::Block;

/// What to do with the data that a request has fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deliver {
    Nothing,
    /// Copy as many bytes from the block.
    Bytes(*mut u8, u32),
    /// Store the block's word.
    Word(*mut u64),
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) deliver: Deliver,
    pub(crate) block: Option<Block>,
    /// Whether it is its operation's last.
    pub(crate) ends: bool,
    /// How much it moves.
    pub(crate) bytes: u32,
}

impl Slot {
    /// The last request of an operation that brings nothing back.
    pub(crate) const PLAIN: Slot = Slot {
        deliver: Deliver::Nothing,
        block: None,
        ends: true,
        bytes: 0,
    };
}

#[derive(Debug)]
pub(crate) struct Ring {
    /// A power of two of them; request `n` is at `n % slots.len()`.
    slots: Box<[Slot]>,
    /// Requests held at most.
    most: u32,
    /// The next request's number. Numbers wrap.
    head: u32,
    /// The oldest outstanding one's.
    tail: u32,
    /// One more than the last signalled one's.
    signalled: u32,
    /// What all outstanding ones move.
    bytes: u64,
    /// What those after the last signalled one move.
    unsignalled_bytes: u64,
}

impl Ring {
    pub(crate) fn new(most: u32) -> Ring {
        let slots = vec![Slot::PLAIN; most.next_power_of_two() as usize];
        Ring {
            slots: slots.into(),
            most,
            head: 0,
            tail: 0,
            signalled: 0,
            bytes: 0,
            unsignalled_bytes: 0,
        }
    }

    #[inline]
    fn index(&self, number: u32) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.head.wrapping_sub(self.tail)
    }

    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.most - self.outstanding()
    }

    /// The oldest outstanding request's number, or the next one's.
    #[inline]
    pub(crate) fn oldest(&self) -> u32 {
        self.tail
    }

    /// How many bytes are under way.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether request `number` is outstanding.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        number.wrapping_sub(self.tail) < self.outstanding()
    }

    /// Enters a request; its number. There must be room.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot) -> u32 {
        debug_assert!(self.free() > 0);
        let number = self.head;
        let index = self.index(number);
        self.slots[index] = slot;
        self.bytes += u64::from(slot.bytes);
        self.unsignalled_bytes += u64::from(slot.bytes);
        self.head = number.wrapping_add(1);
        number
    }

    /// How many requests, of those entered last, are not signalled.
    #[inline]
    pub(crate) fn unsignalled(&self) -> u32 {
        self.head.wrapping_sub(self.signalled)
    }

    /// How many bytes those move.
    #[inline]
    pub(crate) fn unsignalled_bytes(&self) -> u64 {
        self.unsignalled_bytes
    }

    /// Notes that the last one entered is signalled.
    #[inline]
    pub(crate) fn signal(&mut self) {
        self.signalled = self.head;
        self.unsignalled_bytes = 0;
    }

    /// Whether a signalled request is outstanding, so that a completion will come.
    #[inline]
    pub(crate) fn expects(&self) -> bool {
        self.outstanding() > self.unsignalled()
    }

    /// How many are not beyond `number`, which is outstanding.
    #[inline]
    pub(crate) fn up_to(&self, number: u32) -> u32 {
        let more = number.wrapping_sub(self.tail);
        if more < self.outstanding() {
            more + 1
        } else {
            0
        }
    }

    /// Takes the oldest one out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Slot> {
        if self.outstanding() == 0 {
            return None;
        }
        let slot = self.slots[self.index(self.tail)];
        self.tail = self.tail.wrapping_add(1);
        self.bytes -= u64::from(slot.bytes);
        Some(slot)
    }

    /// Takes all out, when their queue pair is gone.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = Slot> {
        std::iter::from_fn(|| self.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring whose numbers are about to wrap.
    fn ring(most: u32) -> Ring {
        let mut ring = Ring::new(most);
        (ring.head, ring.tail, ring.signalled) = (u32::MAX - 1, u32::MAX - 1, u32::MAX - 1);
        ring
    }

    fn numbered(number: u32) -> Slot {
        Slot {
            deliver: Deliver::Bytes(std::ptr::null_mut(), number),
            ..Slot::PLAIN
        }
    }

    fn number(slot: Slot) -> u32 {
        match slot.deliver {
            Deliver::Bytes(_, number) => number,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_completion_retires_all_before_it_in_order() {
        let mut ring = ring(6);
        let numbers: Vec<u32> = (0..6).map(|n| ring.push(numbered(n))).collect();
        assert_eq!(ring.free(), 0);
        let upto = numbers[3];
        let count = ring.up_to(upto);
        let retired: Vec<u32> = (0..count).filter_map(|_| ring.pop().map(number)).collect();
        assert_eq!(retired, [0, 1, 2, 3]);
        assert_eq!((ring.outstanding(), ring.free()), (2, 4));
        assert!(!ring.contains(upto) && ring.contains(numbers[4]));
        assert_eq!(ring.up_to(upto), 0, "told twice");
        let left: Vec<u32> = ring.give_up().map(number).collect();
        assert_eq!(left, [4, 5]);
        assert_eq!(ring.free(), 6);
    }

    #[test]
    fn what_follows_the_last_signal_is_known() {
        let mut ring = ring(6);
        let long = Slot {
            bytes: 100,
            ..Slot::PLAIN
        };
        ring.push(long);
        assert!(!ring.expects() && ring.unsignalled_bytes() == 100);
        let signalled = ring.push(long);
        ring.signal();
        assert_eq!((ring.unsignalled_bytes(), ring.bytes()), (0, 200));
        assert!(ring.expects() && ring.unsignalled() == 0);
        ring.push(Slot::PLAIN);
        assert!(ring.expects() && ring.unsignalled() == 1);
        for _ in 0..ring.up_to(signalled) {
            ring.pop();
        }
        assert!(!ring.expects() && ring.unsignalled() == 1 && ring.outstanding() == 1);
    }
}
