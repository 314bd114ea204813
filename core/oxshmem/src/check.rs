//! Checked mode: accesses that the memory models leave undefined together (M31, M32), made errors.
//!
//! Every PE has a table in its symmetric memory of the words that others have operations on *under
//! way*: a put or a non-fetching atomic is under way from its call to its origin's next fence, quiet
//! or barrier, since until then nothing orders it before anything. An operation on such a word by
//! another PE is an error if one of the two is atomic and the other is not (M32), or both are of
//! different types (M31).
//!
//! What it finds is wrong; it may miss things. The table has room for [`SLOTS`] words a PE, a long
//! transfer enters its first [`LONGEST`] words only, and blocking operations that merely happen to
//! overlap in time leave no trace.
//!
//! M33 needs no check here (checked mode hands out no pointers), M34 is excluded by types, M37 by borrows;
//! but a symmetric object is not borrowed: where one is a nonblocking copy's near side, others' atomics on
//! it are found here, and puts to it are not. M35, M36 and M38 are checked in every mode; checked mode adds
//! the age of handles.

use bytemuck::Pod;
use oxshmem_transport::{AtomicOp, MemoryKind, Width};

use crate::alloc::OWN;
use crate::lane::AccessPath;
use crate::mapped::HostMemory;
use crate::order::{FenceSite, OpKind};
use crate::{Context, Error, Result, Sym};

/// Words a PE's table has room for.
pub(crate) const SLOTS: usize = 1 << 14;
/// Bytes of a word: the narrowest atomic's, so that what is beside an atomic is not taken for it.
const WORD: u64 = 4;
/// Words of one transfer that are entered.
const LONGEST: u64 = 1024;
/// Places where one word may stand.
const PROBES: u64 = 8;

/// What an operation does to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads it, not atomically.
    Get,
    /// Writes it, not atomically.
    Put,
    /// An atomic of this type.
    Atomic(Type),
}

/// The type of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type(pub &'static str);

/// The types that atomics take; an entry holds the index.
const TYPES: [&str; 8] = ["i32", "u32", "f32", "i64", "u64", "f64", "isize", "usize"];

impl Access {
    fn number(self) -> u64 {
        match self {
            Access::Get => 1,
            Access::Put => 2,
            Access::Atomic(Type(name)) => {
                3 + TYPES.iter().position(|t| *t == name).unwrap_or(TYPES.len()) as u64
            }
        }
    }

    fn name(number: u64) -> String {
        match number {
            1 => "a get".into(),
            2 => "a put".into(),
            n => format!(
                "an atomic of type {}",
                TYPES.get(n as usize - 3).unwrap_or(&"?")
            ),
        }
    }
}

/// One slot of a table: word (36 bits), access (8), operations under way (8), origin (12).
#[derive(Clone, Copy)]
struct Entry(u64);

impl Entry {
    const ONE: u64 = 1 << 12;
    const MANY: u64 = 0xfff;
    /// Words beyond this have no entries; the upper half is for GPU memory.
    const WORDS: u64 = 1 << 36;

    fn new(word: u64, access: u64, origin: usize) -> Self {
        Entry(word << 28 | access << 20 | Self::ONE | Self::origin_bits(origin))
    }

    fn origin_bits(origin: usize) -> u64 {
        (origin as u64).min(Self::MANY)
    }

    fn word(self) -> u64 {
        self.0 >> 28
    }
    fn access(self) -> u64 {
        self.0 >> 20 & 0xff
    }
    fn count(self) -> u64 {
        self.0 >> 12 & 0xff
    }
    fn origin(self) -> u64 {
        self.0 & 0xfff
    }

    fn one_more(self, origin: usize) -> Option<Self> {
        let same = self.origin() == Self::origin_bits(origin);
        let next = if same { self.0 } else { self.0 | Self::MANY };
        (self.count() < 0xff).then_some(Entry(next + Self::ONE))
    }

    fn one_less(self) -> Self {
        if self.count() <= 1 {
            Entry(0)
        } else {
            Entry(self.0 - Self::ONE)
        }
    }
}

/// Entries of a context's own operations under way: PE, slot, word.
pub(crate) type Entered = Vec<(usize, usize, u64)>;

impl Context<'_> {
    /// Refuses an access that conflicts with one under way; enters it if `under_way` says that it
    /// outlasts its call. Nothing outside checked mode.
    pub(crate) fn guard<T: Pod>(
        &self,
        call: &'static str,
        access: Access,
        sym: Sym<T>,
        elements: usize,
        pe: usize,
        under_way: bool,
    ) -> Result<()> {
        let Some(table) = self.shared.shadow else {
            return Ok(());
        };
        let (start, bytes) = (sym.offset(), (elements * size_of::<T>()) as u64);
        if sym.generation() == OWN || bytes == 0 {
            return Ok(());
        }
        // GPU memory's words stand apart from the host's.
        let apart = match self.kind_of(sym) {
            Some(MemoryKind::Host) | None => 0,
            Some(_) => Entry::WORDS / 2,
        };
        let (first, last) = (start / WORD + apart, (start + bytes - 1) / WORD + apart);
        for word in first..=last.min(first + LONGEST - 1) {
            self.guard_word(table, call, access, word, pe, under_way)?;
        }
        Ok(())
    }

    fn guard_word(
        &self,
        table: Sym<u64>,
        call: &'static str,
        access: Access,
        word: u64,
        pe: usize,
        under_way: bool,
    ) -> Result<()> {
        if word >= Entry::WORDS {
            return Ok(());
        }
        let (me, number) = (self.shared.me, access.number());
        let first = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        'again: loop {
            let mut vacant = None;
            for probe in 0..PROBES {
                let slot = ((first + probe) % SLOTS as u64) as usize;
                let entry = Entry(self.slot(table, AtomicOp::Fetch, slot, pe, 0, 0)?);
                if entry.count() == 0 {
                    vacant = vacant.or(Some(slot));
                    continue;
                }
                if entry.word() != word {
                    continue;
                }
                let plain = |n: u64| n < 3;
                let together = entry.access() == number
                    || (plain(entry.access()) && plain(number))
                    || entry.origin() == Entry::origin_bits(me)
                    || self.is_gone(entry.origin());
                if !together {
                    return Err(self.conflict(call, access, entry, pe));
                }
                if !under_way || entry.access() != number {
                    return Ok(());
                }
                let Some(next) = entry.one_more(me) else {
                    return Ok(());
                };
                if self.swap_slot(table, slot, pe, entry, next)? {
                    self.state.entered.borrow_mut().push((pe, slot, word));
                    return Ok(());
                }
                continue 'again;
            }
            let Some(slot) = vacant.filter(|_| under_way) else {
                return Ok(());
            };
            if self.swap_slot(table, slot, pe, Entry(0), Entry::new(word, number, me))? {
                self.state.entered.borrow_mut().push((pe, slot, word));
                return Ok(());
            }
        }
    }

    fn is_gone(&self, origin: u64) -> bool {
        origin != Entry::MANY && self.shared.liveness.is_lost(origin as usize)
    }

    /// Ends what this context has under way: from here on it is ordered.
    pub(crate) fn end_under_way(&self) -> Result<()> {
        let Some(table) = self.shared.shadow else {
            return Ok(());
        };
        let mut first = Ok(());
        for (pe, slot, word) in self.state.entered.take() {
            match self.end_entry(table, pe, slot, word) {
                // Whose table is gone needs no clearing.
                Err(Error::PeerLost { .. }) => {}
                // One that fails keeps none of the others from being ended.
                ended => first = first.and(ended),
            }
        }
        first
    }

    fn end_entry(&self, table: Sym<u64>, pe: usize, slot: usize, word: u64) -> Result<()> {
        loop {
            let entry = Entry(self.slot(table, AtomicOp::Fetch, slot, pe, 0, 0)?);
            if entry.word() != word
                || entry.count() == 0
                || self.swap_slot(table, slot, pe, entry, entry.one_less())?
            {
                return Ok(());
            }
        }
    }

    fn swap_slot(
        &self,
        table: Sym<u64>,
        slot: usize,
        pe: usize,
        from: Entry,
        to: Entry,
    ) -> Result<bool> {
        Ok(self.slot(table, AtomicOp::CompareSwap, slot, pe, to.0, from.0)? == from.0)
    }

    fn slot(
        &self,
        table: Sym<u64>,
        op: AtomicOp,
        slot: usize,
        pe: usize,
        operand: u64,
        compare: u64,
    ) -> Result<u64> {
        const CALL: &str = "checked mode";
        let operands = (operand, compare);
        match self.path(CALL, OpKind::Atomic, table.at(slot)?, pe)? {
            AccessPath::Mapped(word) => {
                Ok(word.rmw_word(Width::W64, op, operands, FenceSite::Read))
            }
            AccessPath::Lane(via, far) => {
                self.lane_amo(CALL, via, far, Width::W64, op, operands, true)
            }
            AccessPath::Staged(far) => self.staged_atomic(CALL, far, (op, Width::W64), operands),
        }
    }

    #[cold]
    fn conflict(&self, call: &'static str, access: Access, entry: Entry, pe: usize) -> Error {
        let by = match entry.origin() {
            Entry::MANY => "several PEs".into(),
            origin => format!("PE {origin}"),
        };
        Error::Conflict {
            call,
            what: format!(
                "{} of PE {} on the 4 bytes at offset {} of PE {pe} meets {} by {by}, which no \
                 fence, quiet or barrier has ordered yet; separate them, or use one kind of access",
                Access::name(access.number()),
                self.shared.me,
                entry.word() * WORD,
                Access::name(entry.access()),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use crate::testing::spmd_with;
    use crate::{Error, World};

    fn conflict(
        first: impl Fn(&World, crate::Sym<u64>) -> crate::Result<()> + Sync,
        second: impl Fn(&World, crate::Sym<u64>) -> crate::Result<()> + Sync,
    ) -> Option<String> {
        let turn = Barrier::new(2);
        let found = spmd_with(World::builder().check(true), 2, |world| {
            let x = world.alloc_zeroed::<u64>(4)?;
            let found = if world.my_pe() == 0 {
                first(world, x)?;
                turn.wait();
                turn.wait();
                None
            } else {
                turn.wait();
                let result = second(world, x);
                turn.wait();
                match result {
                    Ok(()) => None,
                    Err(Error::Conflict { what, .. }) => Some(what),
                    Err(error) => return Err(error),
                }
            };
            world.free(x)?;
            Ok(found)
        });
        found.unwrap().into_iter().flatten().next()
    }

    #[test]
    fn m31_atomics_of_two_types_on_one_word_are_found() {
        let what = conflict(
            |w, x| w.add(x, 1, 1),
            |w, x| w.fetch_add(x.cast::<i64>()?, 1, 1).map(drop),
        )
        .unwrap();
        assert!(
            what.contains("i64") && what.contains("u64") && what.contains("PE 0"),
            "{what}"
        );
        let narrow = conflict(
            |w, x| w.add(x, 1, 1),
            |w, x| w.add(x.cast::<u32>()?.at(1)?, 1, 1),
        );
        assert!(narrow.is_some());
    }

    #[test]
    fn m32_an_atomic_and_a_put_or_get_on_one_word_are_found() {
        assert!(conflict(|w, x| w.add(x, 1, 1), |w, x| w.p(x, 1, 1)).is_some());
        assert!(conflict(|w, x| w.add(x, 1, 1), |w, x| w.g(x, 1).map(drop)).is_some());
        assert!(conflict(|w, x| w.put(x, &[1; 4], 1), |w, x| w.inc(x.at(3)?, 1)).is_some());
    }

    #[test]
    fn m32_what_a_fence_has_ordered_is_refused_to_nobody_though_another_entry_cannot_be_ended() {
        let unended = |w: &World, x: crate::Sym<u64>| {
            w.add(x, 1, 1)?;
            // In no slot of any table.
            w.state.entered.borrow_mut().insert(0, (1, super::SLOTS, 0));
            assert!(w.fence().is_err());
            Ok(())
        };
        assert_eq!(conflict(unended, |w, x| w.p(x, 1, 1)), None);
    }

    #[test]
    fn what_the_contract_allows_is_not_refused() {
        // One type; other words; ordered by fence or quiet; fetching atomics are complete.
        assert_eq!(conflict(|w, x| w.add(x, 1, 1), |w, x| w.inc(x, 1)), None);
        assert_eq!(
            conflict(|w, x| w.add(x, 1, 1), |w, x| w.p(x.at(1)?, 1, 1)),
            None
        );
        assert_eq!(
            conflict(|w, x| w.p(x, 1, 1), |w, x| w.g(x, 1).map(drop)),
            None
        );
        let fenced = |w: &World, x: crate::Sym<u64>| w.p(x, 1, 1).and_then(|()| w.fence());
        assert_eq!(conflict(fenced, |w, x| w.inc(x, 1)), None);
        let quieted = |w: &World, x: crate::Sym<u64>| w.add(x, 1, 1).and_then(|()| w.quiet());
        assert_eq!(conflict(quieted, |w, x| w.g(x, 1).map(drop)), None);
        assert_eq!(
            conflict(|w, x| w.fetch_inc(x, 1).map(drop), |w, x| w.p(x, 2, 1)),
            None
        );
        // Its own memory a PE stores to without a lane.
        let own = |w: &World, x: crate::Sym<u64>| {
            w.quiet()?;
            w.write(x, &[1])?;
            w.quiet()
        };
        assert_eq!(conflict(own, |w, x| w.inc(x, 0)), None);
    }
}
