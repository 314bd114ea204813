//! Checked mode: accesses that the memory models leave undefined together (M31, M32), made errors.
//!
//! Every PE has a table in its symmetric memory of the words that others have operations *in flight* on:
//! a put or a non-fetching atomic is in flight from its call to its origin's next fence, quiet
//! or barrier, since until then nothing orders it before anything. An operation on such a word by
//! another PE is an error if one of the two is atomic and the other is not (M32), or both are of
//! different types (M31).
//!
//! Each error that it reports is one; it may miss some. The table has room for [`SLOTS`] words a PE, a long
//! transfer enters its first [`LONGEST`] words only, and blocking operations that merely happen to
//! overlap in time leave no trace.
//!
//! M33 needs no check here (checked mode hands out no pointers), M34 is excluded by types, M37 by borrows;
//! but a symmetric object is not borrowed: where one is a nonblocking copy's local side, others' atomics on
//! it are found here, and puts to it are not. M35, M36 and M38 are checked in every mode; checked mode adds
//! the age of handles.

use bytemuck::Pod;
use oxshmem_transport::{AtomicOp, MemoryKind, Width};

use crate::blocks::OWN;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lane::{AccessPath, AtomicRequest};
use crate::mapped::HostMemory;
use crate::order::conflict::{Access, Entry, SLOTS};
use crate::order::{FenceSite, OpKind};
use crate::sym::Sym;

/// Bytes of a word: the narrowest atomic's, so that a neighbour of an atomic is not taken for it.
const WORD: u64 = 4;
/// Words of one transfer that are entered.
const LONGEST: u64 = 1024;
/// Slots where one word may stand.
const PROBES: u64 = 8;

/// One slot of a PE's table.
#[derive(Clone, Copy)]
struct TableSlot {
    table: Sym<u64>,
    slot: usize,
    pe: usize,
}

impl Context<'_> {
    /// Refuses an access that conflicts with one in flight; enters it if `in_flight` says that it
    /// outlasts its call. Nothing outside checked mode.
    pub(crate) fn guard<T: Pod>(
        &self,
        call: &'static str,
        access: Access,
        sym: Sym<T>,
        elements: usize,
        pe: usize,
        in_flight: bool,
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
            self.guard_word(table, call, access, word, pe, in_flight)?;
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
        in_flight: bool,
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
                let at = TableSlot { table, slot, pe };
                let entry = self.read_slot(at)?;
                if entry.count() == 0 {
                    vacant = vacant.or(Some(at));
                    continue;
                }
                if entry.word() != word {
                    continue;
                }
                let together = Access::may_meet(entry.access(), number)
                    || entry.origin() == Entry::origin_bits(me)
                    || self.is_gone(entry.origin());
                if !together {
                    return Err(self.conflict(call, access, entry, pe));
                }
                if !in_flight || entry.access() != number {
                    return Ok(());
                }
                let Some(next) = entry.one_more(me) else {
                    return Ok(());
                };
                if self.swap_slot(at, entry, next)? {
                    self.state.entered.borrow_mut().push((pe, slot, word));
                    return Ok(());
                }
                continue 'again;
            }
            let Some(at) = vacant.filter(|_| in_flight) else {
                return Ok(());
            };
            if self.swap_slot(at, Entry(0), Entry::new(word, number, me))? {
                self.state.entered.borrow_mut().push((pe, at.slot, word));
                return Ok(());
            }
        }
    }

    fn is_gone(&self, origin: u64) -> bool {
        origin != Entry::MANY && self.shared.liveness.is_lost(origin as usize)
    }

    /// Ends the entries of this context's operations: from here on those are ordered.
    pub(crate) fn end_guarded(&self) -> Result<()> {
        let Some(table) = self.shared.shadow else {
            return Ok(());
        };
        let mut first = Ok(());
        for (pe, slot, word) in self.state.entered.take() {
            match self.end_entry(TableSlot { table, slot, pe }, word) {
                // The table of a lost PE needs no clearing.
                Err(Error::PeerLost { .. }) => {}
                // One that fails keeps none of the others from being ended.
                ended => first = first.and(ended),
            }
        }
        first
    }

    fn end_entry(&self, at: TableSlot, word: u64) -> Result<()> {
        loop {
            let entry = self.read_slot(at)?;
            if entry.word() != word
                || entry.count() == 0
                || self.swap_slot(at, entry, entry.one_less())?
            {
                return Ok(());
            }
        }
    }

    fn read_slot(&self, at: TableSlot) -> Result<Entry> {
        let read = AtomicRequest::wide(AtomicOp::Fetch, 0, 0);
        self.slot_atomic(at, read).map(Entry)
    }

    fn swap_slot(&self, at: TableSlot, from: Entry, to: Entry) -> Result<bool> {
        let swap = AtomicRequest::wide(AtomicOp::CompareSwap, to.0, from.0);
        Ok(self.slot_atomic(at, swap)? == from.0)
    }

    fn slot_atomic(&self, at: TableSlot, request: AtomicRequest) -> Result<u64> {
        const CALL: &str = "checked mode";
        match self.access_path(CALL, OpKind::Atomic, at.table.at(at.slot)?, at.pe)? {
            AccessPath::Mapped(word) => {
                let operands = request.operands();
                Ok(word.rmw_word(Width::W64, request.op, operands, FenceSite::Read))
            }
            AccessPath::Lane(endpoint, remote) => {
                self.lane_amo(CALL, endpoint, remote, request, true)
            }
            AccessPath::Staged(remote) => self.staged_atomic(CALL, remote, request),
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

    use crate::error::Error;
    use crate::testing::spmd_with;
    use crate::world::World;

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
