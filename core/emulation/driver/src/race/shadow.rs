//! The last accesses to each byte of memory.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::clock::{Agent, Clock, Stamp};
use super::pending::Operand;
use super::place::COPY;
use super::scope::{Reach, Scope};

/// Bytes of a cell.
const CELL: usize = 8;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) writes: bool,
    /// Whether it is atomic, or volatile, which the memory model counts as such.
    pub(crate) atomic: bool,
}

/// An access to some bytes of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) stamp: Stamp,
    pub(crate) kind: Kind,
    /// Where the access is: the block, the device, and the scope if it is atomic.
    pub(crate) reach: Reach,
    /// The place in the program.
    pub(crate) pc: usize,
    /// All bytes of the access.
    pub(crate) len: usize,
    /// Whether it is a nonblocking call's, which a copy of the host's carries out.
    pub(crate) by_copy: bool,
    /// For an atomic write: its number among those to its cell, from 1.
    number: u32,
    /// The bytes of the cell.
    mask: u8,
}

impl Access {
    pub(crate) fn new(stamp: Stamp, kind: Kind, reach: Reach, (pc, len): (usize, usize)) -> Access {
        Access {
            stamp,
            kind,
            reach,
            pc,
            len,
            by_copy: false,
            number: 0,
            mask: u8::MAX,
        }
    }

    /// The same as one that a copy carries out.
    pub(crate) fn by_copy(self, by_copy: bool) -> Access {
        Access { by_copy, ..self }
    }

    /// Whether two accesses conflict unless one comes before the other.
    fn conflicts(&self, other: &Access) -> bool {
        let both_atomic = self.kind.atomic && other.kind.atomic;
        let is_carried_out = |one: &Access, by: &Access| one.by_copy && by.pc == COPY;
        self.mask & other.mask != 0
            && !is_carried_out(self, other)
            && !is_carried_out(other, self)
            && self.stamp.agent != other.stamp.agent
            && (self.kind.writes || other.kind.writes)
            && !(both_atomic && self.reach.meets(other.reach))
    }

    /// The key that accesses which replace each other have in common.
    fn key(&self) -> (Agent, u8, bool, Scope) {
        let Access {
            stamp, mask, kind, ..
        } = self;
        (stamp.agent, *mask, kind.writes, self.reach.scope)
    }
}

/// Of two races the one to tell of: that with a nonblocking call and not that with the copy that carries it out; else the first.
fn more_telling(one: Option<Access>, other: Option<Access>) -> Option<Access> {
    let is_call = |race: &Access| Operand::of_agent(race.stamp.agent).is_some();
    match one {
        Some(race) if !is_call(&race) => other.filter(is_call).or(one),
        one => one.or(other),
    }
}

/// The last accesses to the bytes of a cell.
#[derive(Default)]
struct Cell {
    writes: Vec<Access>,
    /// Sorted by their keys: of one key the last is there.
    reads: Vec<Access>,
    atomics: Vec<Access>,
    /// The number of atomic writes, and how many of them each thread has seen by atomic loads. A thread may then read what it has
    /// waited for. Sorted by threads.
    written: u32,
    seen: Vec<(Agent, u32)>,
    /// Whether some atomics may be out of the others' scope.
    narrow: bool,
    /// Entries of a list after which it is searched for those that are of no use any more.
    most: usize,
}

impl Cell {
    /// Notes an access, and gives an earlier one that it is not ordered with, if there is one.
    fn note(&mut self, mut access: Access, before: &Clock) -> Option<Access> {
        let Kind { writes, atomic } = access.kind;
        if writes && atomic {
            self.written += 1;
            access.number = self.written;
        }
        let seen = match access.kind {
            Kind {
                writes: false,
                atomic: false,
            } => self.seen_by(access.stamp.agent),
            _ => 0,
        };
        let ordered =
            |old: &Access| old.stamp.agent == access.stamp.agent || before.knows(old.stamp);
        let find = |list: &[Access]| {
            let races = list.iter().copied();
            let is_seen = |old: &Access| (1..=seen).contains(&old.number);
            let races = races.filter(|old| access.conflicts(old) && !ordered(old) && !is_seen(old));
            races.fold(None, |race, old| more_telling(race, Some(old)))
        };
        let mut race = find(&self.writes);
        if writes {
            race = more_telling(race, find(&self.reads));
        }
        self.narrow |= atomic && access.reach.scope == Scope::Block
            || self
                .atomics
                .first()
                .is_some_and(|other| other.reach.device != access.reach.device);
        if !atomic || self.narrow {
            race = more_telling(race, find(&self.atomics));
        }
        if writes && !atomic {
            // Whatever conflicts with those before it conflicts with this one, too.
            let stays = |old: &Access| old.mask & !access.mask != 0 || !ordered(old);
            for list in [&mut self.writes, &mut self.reads, &mut self.atomics] {
                list.retain(stays);
            }
            self.writes.push(access);
            return race;
        }
        let list = if atomic {
            &mut self.atomics
        } else {
            &mut self.reads
        };
        match list.binary_search_by_key(&access.key(), Access::key) {
            Ok(at) => list[at] = access,
            Err(at) => list.insert(at, access),
        }
        if list.len() > self.most.max(FEW) {
            // An access that conflicts with one of these, and is not ordered with it, is not ordered with this one either.
            let narrow = self.narrow;
            list.retain(|old| {
                let same = old.mask & !access.mask == 0 && (writes || !old.kind.writes);
                old.key() == access.key() || narrow || !same || !before.knows(old.stamp)
            });
            self.most = 2 * list.len();
        }
        race
    }

    fn seen_by(&self, agent: Agent) -> u32 {
        let found = self.seen.binary_search_by_key(&agent, |seen| seen.0);
        found.map_or(0, |at| self.seen[at].1)
    }

    /// A thread has loaded from the cell by an atomic operation.
    fn see(&mut self, agent: Agent) {
        match self.seen.binary_search_by_key(&agent, |seen| seen.0) {
            Ok(at) => self.seen[at].1 = self.written,
            Err(_) if self.written == 0 => {}
            Err(_) if self.seen.len() >= MOST_SEEN => {}
            Err(at) => self.seen.insert(at, (agent, self.written)),
        }
    }

    /// An earlier access to the same bytes that this one is not ordered with.
    fn conflict(&self, access: &Access, before: &Clock) -> Option<Access> {
        let lists = [&self.writes, &self.reads, &self.atomics];
        let mut all = lists.into_iter().flatten();
        all.find(|old| access.conflicts(old) && !before.knows(old.stamp))
            .copied()
    }
}

/// An access to many bytes at once, by a copy or a fill.
struct Span {
    bytes: Range<usize>,
    access: Access,
}

/// Threads that have seen the atomic writes to a cell, at most: more poll a word seldom, and are not worth the memory.
const MOST_SEEN: usize = 2048;
/// Entries of a list that are not worth a search.
const FEW: usize = 16;
/// Bytes of a copy from which on it is kept as one.
const LONG: usize = 4096;

/// The bytes of a cell that are among some bytes, a bit each.
fn mask(bytes: &Range<usize>, cell: usize) -> u8 {
    let first = bytes.start.max(cell * CELL);
    let count = bytes.end.min((cell + 1) * CELL).saturating_sub(first);
    (((1_u16 << count) - 1) << (first % CELL)) as u8
}

/// A hash of numbers that are spread already but for their low bits.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }
    fn write_usize(&mut self, number: usize) {
        let mixed = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// A map by address.
pub(crate) type ByAddress<T> = HashMap<usize, T, BuildHasherDefault<Spread>>;

/// The accesses to all memory.
#[derive(Default)]
pub(crate) struct Shadow {
    cells: ByAddress<Cell>,
    spans: Vec<Span>,
}

impl Shadow {
    pub(super) fn with_capacity(cells: usize) -> Shadow {
        Shadow {
            cells: ByAddress::with_capacity_and_hasher(cells, BuildHasherDefault::default()),
            spans: Vec::new(),
        }
    }

    /// Notes an access to `len` bytes, and gives an earlier one that it is not ordered with, if there is one.
    pub(crate) fn note(
        &mut self,
        at: usize,
        len: usize,
        access: Access,
        before: &Clock,
    ) -> Option<Access> {
        let bytes = at..at.saturating_add(len);
        let mut race = self.conflict_with_spans(&bytes, &access, before);
        if len >= LONG {
            return race.or_else(|| self.note_span(bytes, access, before));
        }
        let mut start = at;
        while start < bytes.end {
            let cell = start / CELL;
            let mask = mask(&bytes, cell);
            let access = Access { mask, ..access };
            let found = self.cells.entry(cell).or_default().note(access, before);
            race = more_telling(race, found);
            start = (cell + 1) * CELL;
        }
        race
    }

    /// A thread has loaded from a place by an atomic operation.
    pub(super) fn see(&mut self, at: usize, agent: Agent) {
        if let Some(cell) = self.cells.get_mut(&(at / CELL)) {
            cell.see(agent);
        }
    }

    /// The atomic writes to the cell of a byte that are for the whole system.
    pub(super) fn system_writes(&self, at: usize) -> impl Iterator<Item = Stamp> {
        let atomics = self.cells.get(&(at / CELL)).map(|cell| &cell.atomics);
        let atomics = atomics.into_iter().flatten();
        let writes = atomics.filter(|one| one.kind.writes && one.reach.scope == Scope::System);
        writes.map(|one| one.stamp)
    }

    fn conflict_with_spans(
        &self,
        bytes: &Range<usize>,
        access: &Access,
        before: &Clock,
    ) -> Option<Access> {
        let mut spans = self.spans.iter();
        let found = spans.find(|span| {
            let apart = span.bytes.end <= bytes.start || bytes.end <= span.bytes.start;
            !apart && access.conflicts(&span.access) && !before.knows(span.access.stamp)
        });
        found.map(|span| span.access)
    }

    fn note_span(&mut self, bytes: Range<usize>, access: Access, before: &Clock) -> Option<Access> {
        let cells = bytes.start / CELL..bytes.end.div_ceil(CELL);
        // The first and the last cell may have other bytes, too.
        let conflict = |(number, cell): (usize, &Cell)| {
            let mask = mask(&bytes, number);
            cell.conflict(&Access { mask, ..access }, before)
        };
        let race = if cells.len() < self.cells.len() {
            let mut known = cells.filter_map(|number| Some((number, self.cells.get(&number)?)));
            known.find_map(conflict)
        } else {
            let known = self.cells.iter().map(|(number, cell)| (*number, cell));
            let mut known = known.filter(|(number, _)| cells.contains(number));
            known.find_map(conflict)
        };
        let stays = |span: &Span| {
            let inside = bytes.start <= span.bytes.start && span.bytes.end <= bytes.end;
            let replaced = access.kind.writes || !span.access.kind.writes;
            !(inside && replaced && before.knows(span.access.stamp))
        };
        self.spans.retain(stays);
        self.spans.push(Span { bytes, access });
        race
    }

    /// Forgets the accesses to bytes whose use has ended.
    pub(crate) fn forget(&mut self, at: usize, len: usize) {
        let bytes = at..at.saturating_add(len);
        let cells = bytes.start / CELL..bytes.end.div_ceil(CELL);
        if cells.len() < self.cells.len() {
            cells.for_each(|cell| {
                self.cells.remove(&cell);
            });
        } else {
            self.cells.retain(|cell, _| !cells.contains(cell));
        }
        let inside = |span: &Span| bytes.start <= span.bytes.start && span.bytes.end <= bytes.end;
        self.spans.retain(|span| !inside(span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(thread: u32, writes: bool, atomic: Option<Scope>, pc: usize) -> Access {
        let stamp = Stamp {
            agent: Agent {
                strand: 0,
                piece: 0,
                thread,
            },
            epoch: 1,
        };
        let kind = Kind {
            writes,
            atomic: atomic.is_some(),
        };
        let reach = Reach {
            scope: atomic.unwrap_or(Scope::System),
            device: 0,
            block: (0, 0, thread / 10),
        };
        Access::new(stamp, kind, reach, (pc, 4))
    }

    fn nothing() -> Clock {
        Clock::default()
    }

    #[test]
    fn unordered_accesses_race_if_one_writes() {
        let mut shadow = Shadow::default();
        let read = access(1, false, None, 10);
        assert!(shadow.note(64, 4, read, &nothing()).is_none());
        let other = access(2, false, None, 11);
        assert!(shadow.note(64, 4, other, &nothing()).is_none());
        let write = access(3, true, None, 12);
        assert!(
            shadow.note(68, 4, write, &nothing()).is_none(),
            "other bytes"
        );
        let found = shadow.note(66, 4, write, &nothing());
        assert_eq!(found.map(|race| race.pc), Some(10));
        // A thread does not race with itself.
        assert!(shadow.note(68, 4, write, &nothing()).is_none());
    }

    #[test]
    fn a_long_copy_does_not_race_with_the_bytes_beside_it() {
        let mut shadow = Shadow::default();
        let beside = access(1, true, None, 10);
        assert!(shadow.note(60, 4, beside, &nothing()).is_none());
        assert!(shadow.note(64 + LONG + 4, 4, beside, &nothing()).is_none());
        let copy = access(2, true, None, 11);
        assert!(shadow.note(64, LONG + 4, copy, &nothing()).is_none());
        let overlapping = access(3, true, None, 12);
        let found = shadow.note(62, LONG + 4, overlapping, &nothing());
        assert!(found.is_some());
        let mut shadow = Shadow::default();
        shadow.note(64 + LONG, 4, beside, &nothing());
        let found = shadow.note(66, LONG - 1, copy, &nothing());
        assert_eq!(found.map(|race| race.pc), Some(10), "one byte in common");
    }

    #[test]
    fn what_came_before_does_not_race_and_is_replaced() {
        let mut shadow = Shadow::default();
        let write = access(1, true, None, 10);
        shadow.note(0, 8, write, &nothing());
        let mut knows = nothing();
        knows.add(write.stamp);
        let second = access(2, true, None, 11);
        assert!(shadow.note(0, 8, second, &knows).is_none());
        // The first was replaced: a third is told of the second.
        let third = access(3, true, None, 12);
        let found = shadow.note(0, 8, third, &nothing());
        assert_eq!(found.map(|race| race.pc), Some(11));
    }

    #[test]
    fn atomics_race_with_plain_accesses_and_with_those_that_their_scope_does_not_reach() {
        let mut shadow = Shadow::default();
        let device = access(1, true, Some(Scope::Device), 10);
        assert!(shadow.note(0, 4, device, &nothing()).is_none());
        let same = access(20, true, Some(Scope::Device), 11);
        assert!(shadow.note(0, 4, same, &nothing()).is_none());
        let block = access(30, true, Some(Scope::Block), 12);
        assert!(shadow.note(0, 4, block, &nothing()).is_some());
        let plain = access(2, false, None, 13);
        assert!(shadow.note(0, 4, plain, &nothing()).is_some());
    }

    #[test]
    fn a_thread_may_read_what_it_has_waited_for() {
        let mut shadow = Shadow::default();
        let write = access(1, true, Some(Scope::System), 10);
        let load = access(2, false, Some(Scope::System), 11);
        let read = access(2, false, None, 12);
        shadow.note(0, 4, load, &nothing());
        shadow.see(0, load.stamp.agent);
        shadow.note(0, 4, write, &nothing());
        // The load was before the write.
        assert!(shadow.note(0, 4, read, &nothing()).is_some());
        shadow.see(0, load.stamp.agent);
        assert!(shadow.note(0, 4, read, &nothing()).is_none());
        // Another one has not seen it, and it has not seen another one.
        let other = access(3, false, None, 13);
        assert!(shadow.note(0, 4, other, &nothing()).is_some());
        shadow.note(0, 4, access(4, true, Some(Scope::System), 14), &nothing());
        assert!(shadow.note(0, 4, read, &nothing()).is_some());
        // It may not write there.
        shadow.see(0, load.stamp.agent);
        assert!(
            shadow
                .note(0, 4, access(2, true, None, 15), &nothing())
                .is_some()
        );
    }

    #[test]
    fn a_long_copy_is_compared_with_what_was_before_and_comes_after_it() {
        let mut shadow = Shadow::default();
        let write = access(1, true, None, 10);
        shadow.note(5000, 4, write, &nothing());
        let copy = access(2, false, None, 1);
        let found = shadow.note(4096, 8192, copy, &nothing());
        assert_eq!(found.map(|race| race.pc), Some(10));
        let later = access(3, true, None, 11);
        let found = shadow.note(12_000, 4, later, &nothing());
        assert_eq!(found.map(|race| race.pc), Some(1));
        assert!(shadow.note(12_288, 4, later, &nothing()).is_none());
        let mut knows = nothing();
        knows.add(copy.stamp);
        assert!(shadow.note(8000, 4, later, &knows).is_none());
    }

    #[test]
    fn a_word_that_many_read_one_after_the_other_is_not_kept_for_all() {
        let mut shadow = Shadow::default();
        let mut knows = nothing();
        for thread in 0..1000 {
            let read = access(thread, false, None, 10);
            assert!(shadow.note(0, 8, read, &knows).is_none());
            knows.add(read.stamp);
        }
        assert!(shadow.cells[&0].reads.len() < 50);
        let write = access(2000, true, None, 11);
        assert!(shadow.note(0, 8, write, &nothing()).is_some());
    }

    #[test]
    fn memory_that_ended_is_forgotten() {
        let mut shadow = Shadow::default();
        for at in [0, 8, 16] {
            shadow.note(at, 8, access(1, true, None, 10), &nothing());
        }
        shadow.forget(8, 8);
        let write = access(2, true, None, 11);
        assert!(shadow.note(8, 8, write, &nothing()).is_none());
        assert!(shadow.note(16, 8, write, &nothing()).is_some());
    }
}
