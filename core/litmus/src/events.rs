//! Events, and their partial order. A program has no branches, so each word that it reads or writes
//! is one event, and the order that the contract gives within a PE is fixed.

use oxshmem::Cmp;

use crate::program::{Fetching, Place, Register, Update};

/// A set of events, by index.
pub(crate) type Set = u128;

pub(crate) const fn only(event: usize) -> Set {
    1 << event
}

/// The action of an event. Cells and registers are indices into [`Events::cells`] and
/// [`Events::registers`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Write(usize, u64),
    Update(usize, Update, u64),
    Read(usize, usize),
    Exchange(usize, Fetching, usize),
    Test(usize, Cmp, u64, usize),
    Wait(usize, Cmp, u64, Option<usize>),
    /// Acquires a lock that is free.
    Lock(usize),
    /// Copies a broadcast's word: from, to. No program variable is on one of the two sides.
    Copy(usize, usize),
    /// All PEs have entered a collective call; for a scan, those up to this PE.
    Meet,
}

impl Action {
    pub fn reads(self) -> Option<usize> {
        match self {
            Action::Write(..) | Action::Update(_, Update::Set, _) | Action::Meet => None,
            Action::Update(cell, ..)
            | Action::Read(cell, _)
            | Action::Exchange(cell, ..)
            | Action::Test(cell, ..)
            | Action::Wait(cell, ..)
            | Action::Lock(cell)
            | Action::Copy(cell, _) => Some(cell),
        }
    }

    pub fn writes(self) -> Option<usize> {
        match self {
            Action::Write(cell, _)
            | Action::Update(cell, ..)
            | Action::Exchange(cell, ..)
            | Action::Lock(cell)
            | Action::Copy(_, cell) => Some(cell),
            Action::Read(..) | Action::Test(..) | Action::Wait(..) | Action::Meet => None,
        }
    }

    /// The value that it writes, if it is known before the event is performed.
    pub fn known_value(self) -> Option<u64> {
        match self {
            Action::Write(_, value) | Action::Update(_, Update::Set, value) => Some(value),
            _ => None,
        }
    }

    fn conflicts(self, other: Action) -> bool {
        let hits = |writes: Option<usize>, by: Action| {
            writes.is_some() && (by.reads() == writes || by.writes() == writes)
        };
        hits(self.writes(), other) || hits(other.writes(), self)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// The PE of the event; `None` for a meeting of all.
    pub pe: Option<usize>,
    /// The index of the PE's statement.
    pub statement: usize,
    pub action: Action,
    /// The events that are performed before it.
    pub after: Set,
    /// For a read: this PE's own earlier puts to the word, which a read from memory waits for.
    pub flush: Set,
    /// For a read: this PE's last write to the word, whose value may be forwarded while it is in
    /// flight.
    pub forward: Option<Own>,
    /// Events on the same word that may come before or after this one, where one of the two writes.
    pub conflicts: Set,
}

/// A write of the PE that reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub write: usize,
    pub value: u64,
}

/// A program's events in one memory model.
#[derive(Debug)]
pub(crate) struct Events {
    pub all: Vec<Event>,
    /// The cells' words; the observed words come first.
    pub cells: Vec<Place>,
    /// For each cell, the events that read it.
    pub readers: Vec<Set>,
    pub registers: Vec<Register>,
}

impl Events {
    /// Makes `after` transitive, and finds the conflicts and each cell's readers.
    pub fn close(&mut self) {
        self.readers = vec![0; self.cells.len()];
        for (index, event) in self.all.iter().enumerate() {
            if let Some(cell) = event.action.reads() {
                self.readers[cell] |= only(index);
            }
        }
        let events = self.all.len();
        loop {
            let mut grew = false;
            for i in 0..events {
                let direct = self.all[i].after;
                let more = (0..events)
                    .filter(|&j| direct & only(j) != 0)
                    .fold(direct, |set, j| set | self.all[j].after);
                grew |= more != direct;
                self.all[i].after = more;
            }
            if !grew {
                break;
            }
        }
        for i in 0..events {
            for j in 0..events {
                let (a, b) = (&self.all[i], &self.all[j]);
                let ordered = a.after & only(j) != 0 || b.after & only(i) != 0;
                if i != j && !ordered && a.action.conflicts(b.action) {
                    self.all[i].conflicts |= only(j);
                }
            }
        }
    }
}
