//! Locations: words with all of their writes, in the order that coherence gives them.

use std::rc::Rc;

use super::access::{Agent, Scope};
use super::view::{Stamp, View};

/// The space between the stamps of writes that came one after the other.
const GAP: Stamp = 1 << 32;

#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) stamp: Stamp,
    pub(super) value: u64,
    pub(super) by: Agent,
    /// None for a weak write.
    pub(super) scope: Option<Scope>,
    /// The view that a reader at this distance acquires.
    pub(super) released: [Option<Rc<View>>; 3],
    /// Whether it is the second half of a read-modify-write of the write before it.
    pub(super) updates: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Location {
    /// Never empty: the first is the value at the start.
    pub(super) writes: Vec<Write>,
    /// The last read of each agent, by its count of accesses; for guarded locations.
    pub(super) reads: Vec<(Agent, u32)>,
    pub(super) is_guarded: bool,
}

impl Location {
    pub(super) fn new(value: u64, is_guarded: bool) -> Location {
        let start = Write {
            stamp: 0,
            value,
            by: Agent(usize::MAX),
            scope: None,
            released: [const { None }; 3],
            updates: false,
        };
        Location {
            writes: vec![start],
            reads: Vec::new(),
            is_guarded,
        }
    }

    /// The places of the writes that a view leaves open, newest first.
    pub(super) fn open(&self, view: Stamp) -> impl Iterator<Item = usize> + '_ {
        let known = move |&place: &usize| self.writes.get(place).is_some_and(|w| w.stamp >= view);
        (0..self.writes.len()).rev().take_while(known)
    }

    /// The place of the write at a moment.
    pub(super) fn rank(&self, stamp: Stamp) -> u64 {
        self.writes.partition_point(|write| write.stamp <= stamp) as u64
    }

    /// Whether a write fits between this place and the next.
    pub(super) fn has_room(&self, place: usize) -> bool {
        match (self.writes.get(place), self.writes.get(place + 1)) {
            (Some(write), Some(next)) => next.stamp - write.stamp > 1,
            _ => true,
        }
    }

    /// Puts a write behind the one at this place; gives its stamp.
    pub(super) fn insert(&mut self, place: usize, mut write: Write) -> Stamp {
        let before = self.writes.get(place).map_or(0, |write| write.stamp);
        write.stamp = match self.writes.get(place + 1) {
            Some(next) => before + (next.stamp - before) / 2,
            None => before + GAP,
        };
        let stamp = write.stamp;
        self.writes
            .insert((place + 1).min(self.writes.len()), write);
        stamp
    }

    pub(super) fn remember(&mut self, reader: Agent, access: u32) {
        if !self.is_guarded {
            return;
        }
        match self.reads.iter_mut().find(|(agent, _)| *agent == reader) {
            Some((_, last)) => *last = access,
            None => self.reads.push((reader, access)),
        }
    }
}
