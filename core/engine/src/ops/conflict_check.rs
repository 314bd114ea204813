//! Checked mode: accesses that the memory models leave undefined together (M31, M32), made errors.
//!
//! Every PE has a table in its symmetric memory of the words that others have operations *in flight* on:
//! a put or a non-fetching atomic is in flight from its call to its origin's next fence, quiet
//! or barrier, since until then nothing orders it before anything. An operation on such a word by
//! another PE is an error if one of the two is atomic and the other is not (M32), or both are of
//! different types (M31).
//!
//! Every reported error is real, but some are missed: the table has [`SLOTS`] words a PE, a long
//! transfer enters its first [`LONGEST`] words only, and blocking operations that merely happen to
//! overlap in time leave no trace.
//!
//! M33 needs no check here (checked mode hands out no pointers), M34 is excluded by types, M37 by borrows;
//! but a symmetric object is not borrowed: where one is a nonblocking copy's local side, others' atomics on
//! it are found here, and puts to it are not. M35, M36 and M38 are checked in every mode; checked mode adds
//! the age of handles.

use oxshmem_transport::{AtomicOp, MemoryKind};

use crate::error::{Error, Result};
use crate::memory::mapped::HostMemory;
use crate::memory::target::OWN;
use crate::memory::target::Target;
use crate::ops::access_path::AccessPath;
use crate::order::conflict::{Access, Entry, SLOTS};
use crate::order::fence_site::FenceSite;
use crate::order::op_set::OpKind;
use crate::worker::Worker;
use oxshmem_transport::AtomicRequest;

/// Bytes of a word: the narrowest atomic's, so that a neighbour of an atomic is not taken for it.
const WORD: u64 = 4;
/// Words of one transfer that are entered.
const LONGEST: u64 = 1024;
/// Slots where one word may stand.
const PROBES: u64 = 8;

/// The name of the accesses to the table in errors.
const CALL: &str = "checked mode";

/// One slot of a PE's table.
#[derive(Clone, Copy)]
struct TableSlot {
    table: Target,
    slot: usize,
    pe: usize,
}

impl TableSlot {
    /// The slot's word.
    fn word(self) -> Result<Target> {
        const WORD: usize = size_of::<u64>();
        let word = self.table.part(self.slot * WORD, WORD);
        word.ok_or_else(|| Error::Argument {
            call: CALL,
            what: format!("the table has no slot {}", self.slot),
        })
    }
}

impl Worker {
    /// Refuses an access that conflicts with one in flight; enters it if `in_flight` says that it
    /// outlasts its call. Nothing outside checked mode.
    #[inline]
    pub fn guard(&self, access: Access, target: Target, pe: usize, in_flight: bool) -> Result<()> {
        match self.engine.shadow {
            None => Ok(()),
            Some(table) => self.guard_words(table, access, target, pe, in_flight),
        }
    }

    #[cold]
    fn guard_words(
        &self,
        table: Target,
        access: Access,
        target: Target,
        pe: usize,
        in_flight: bool,
    ) -> Result<()> {
        let (start, bytes) = (target.offset(), target.len() as u64);
        if target.generation() == OWN || bytes == 0 {
            return Ok(());
        }
        // GPU memory's words stand apart from the host's.
        let apart = match target.kind_in(self.tag) {
            Some(MemoryKind::Host) | None => 0,
            Some(_) => Entry::WORDS / 2,
        };
        let (first, last) = (start / WORD + apart, (start + bytes - 1) / WORD + apart);
        for word in first..=last.min(first + LONGEST - 1) {
            self.guard_word(table, access, word, pe, in_flight)?;
        }
        Ok(())
    }

    fn guard_word(
        &self,
        table: Target,
        access: Access,
        word: u64,
        pe: usize,
        in_flight: bool,
    ) -> Result<()> {
        if word >= Entry::WORDS {
            return Ok(());
        }
        let (me, number) = (self.engine.me, access.number());
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
                    return Err(self.conflict(access, entry, pe));
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
        origin != Entry::MANY && self.engine.liveness.is_lost(origin as usize)
    }

    /// Ends the entries of this context's operations: from here on those are ordered.
    #[inline]
    pub(crate) fn end_guarded(&self) -> Result<()> {
        match self.engine.shadow {
            None => Ok(()),
            Some(table) => self.end_entered(table),
        }
    }

    #[cold]
    fn end_entered(&self, table: Target) -> Result<()> {
        let mut first = Ok(());
        for (pe, slot, word) in self.state.entered.take() {
            match self.end_entry(TableSlot { table, slot, pe }, word) {
                // The table of a lost PE needs no clearing.
                Err(Error::PeerLost { .. }) => {}
                // A failure does not keep the other entries from being ended.
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
        // Its errors are not of the access that is checked.
        self.named(CALL, || {
            match self.access_path(OpKind::Atomic, at.word()?, at.pe)? {
                AccessPath::Mapped(word) => Ok(word.rmw_word(request, FenceSite::Read)),
                AccessPath::Lane(endpoint, remote) => {
                    self.lane_amo(endpoint, remote, request, true)
                }
                AccessPath::Staged(remote) => self.staged_atomic(remote, request),
            }
        })
    }

    #[cold]
    fn conflict(&self, access: Access, entry: Entry, pe: usize) -> Error {
        let by = match entry.origin() {
            Entry::MANY => "several PEs".into(),
            origin => format!("PE {origin}"),
        };
        Error::Conflict {
            call: self.call(),
            what: format!(
                "{} of PE {} on the 4 bytes at offset {} of PE {pe} meets {} by {by}, which no \
                 fence, quiet or barrier has ordered yet; separate them, or use one kind of access",
                Access::name(access.number()),
                self.engine.me,
                entry.word() * WORD,
                Access::name(entry.access()),
            ),
        }
    }
}
