//! The library's own symmetric memory, and arrival of all PEs in it: the base of every collective call.
//!
//! Arrival is by [dissemination](crate::arrival) through words of symmetric memory: in a few rounds each
//! member of a [team](crate::team) has heard, directly or not, of all; where a team spans hosts, host by
//! host, so that few words cross the network. The word carries the epoch, and what the sender knows so
//! far: a digest of the collective call it is in (all must be equal, M36) and whether it failed on any
//! member (M13). So one arrival is barrier, check and agreement together, and its verdict is the same on
//! every member.
//!
//! Words of odd and even epochs are apart: a PE can be one epoch ahead of another, never two.

use oxshmem_transport::Width;

use crate::handle::on_gpu;
use crate::lane::{AccessPath, LocalBuffer};
use crate::mapped::HostMemory;
use crate::order::{FenceSite, OpKind};
use crate::park::Parker;
use crate::team::{CallInfo, Group, JobShape, Layout, Pool, SlotBudget, TeamState};
use crate::world::NicAtomics;
use crate::{Context, Result, Sym, World};

/// Each PE's part of the library's own symmetric memory.
#[derive(Debug)]
pub(crate) struct SyncArea {
    /// Futex word and count of sleepers.
    bell: Sym<u32>,
    /// The team of all PEs.
    pub all: TeamState,
    /// The team of those that reach each other's memory by loads and stores (M8).
    pub shared: TeamState,
    pub pool: Pool,
    /// The host of each PE, if every PE of the job maps all of its host.
    pub hosts: Option<Box<[u32]>>,
}

/// What the library's own memory is laid out for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncAreaPlan {
    pub crowd: JobShape,
    pub me: usize,
    /// How many teams a PE may be in, if they fit; and whether members make some among themselves.
    pub teams: usize,
    pub among: bool,
    /// The heap's limit in bytes.
    pub limit: usize,
}

/// Of each half of the world's scratch memory, in bytes; but not more than such a part of the heap.
const SCRATCH: usize = 64 << 10;
const SCRATCH_PART: usize = 64;
/// Of the heap such a part at most is for teams.
const TEAMS_PART: usize = 8;

/// A collective call and its arguments, as a number that all PEs must agree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSignature(u64);

impl CallSignature {
    /// Of a call's name.
    pub(crate) const fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
            i += 1;
        }
        CallSignature(hash)
    }

    /// Of the calls before this one.
    pub(crate) const fn of_history(history: u64) -> Self {
        CallSignature(history)
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }

    /// With an argument.
    #[inline(always)]
    pub(crate) const fn and(self, argument: u64) -> Self {
        let mixed = (self.0 ^ argument).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        CallSignature(mixed ^ (mixed >> 29))
    }
}

impl SyncArea {
    /// Lays the memory out with `place`, which allocates zeroed bytes at the same offset on every PE.
    pub(crate) fn new(
        plan: SyncAreaPlan,
        mut place: impl FnMut(usize) -> Result<Sym<u8>>,
    ) -> Result<Self> {
        let SyncAreaPlan {
            crowd, me, limit, ..
        } = plan;
        let pes = crowd.pes;
        let half = SCRATCH.min(limit / SCRATCH_PART).next_multiple_of(64);
        let wide = Layout::wide(crowd, half);
        let packed = Layout::packed(crowd);
        let room = SlotBudget::of(crowd, plan.teams, limit / TEAMS_PART, plan.among);
        let alone = Group::all(pes, me).strided(me, 1, 1).ok().flatten();
        let alone = alone.unwrap_or_else(|| Group::all(pes, me));
        Ok(SyncArea {
            bell: place(64)?.cast()?,
            all: TeamState::new(Group::all(pes, me), wide, place(wide.bytes())?, false, 0)?,
            shared: TeamState::new(alone, packed, place(packed.bytes())?, true, 0)?,
            pool: Pool::new(crowd, room, place(room.bytes(crowd).max(64))?),
            hosts: None,
        })
    }

    /// What the PEs agreed on when the routes were chosen: whether all PEs are mapped; which are, on
    /// each of them, for this PE and each other (ascending); and the hosts, if each PE maps all of its own.
    pub(crate) fn set_routes(
        mut self,
        all_mapped: bool,
        shared: &[usize],
        hosts: Option<Box<[u32]>>,
    ) -> Self {
        self.all.mapped = all_mapped;
        self.all = self.all.on_hosts(hosts.as_deref());
        self.hosts = hosts;
        if let Ok(Some(members)) = self.all.members.listed(shared) {
            self.shared.set_members(members);
        }
        self
    }

    /// A number of a team that no other team of this PE has, the same on all its members.
    pub(crate) fn rank(&self, team: &TeamState) -> usize {
        let all = &self.all;
        match team.slot() {
            Some(slot) => 2 + slot,
            None if std::ptr::eq(team, all) => 0,
            None => 1,
        }
    }

    /// Counts a collective call that has its own place in the sequence (M9).
    pub(crate) fn record(&self, digest: CallSignature, words: impl FnOnce() -> String) {
        self.all.state().record(digest, words());
    }
}

impl World {
    /// Whether [checked mode](crate::Builder::check) is on.
    pub(crate) fn is_checked(&self) -> bool {
        self.shared.config.check
    }

    /// [`bindings::uses_lanes`](crate::bindings::uses_lanes).
    pub(crate) fn uses_lanes(&self) -> bool {
        let all_mapped = (0..self.n_pes()).all(|pe| self.maps(pe));
        !all_mapped || self.shared.fences_always_slow || self.inner.nic_atomics != NicAtomics::Never
    }

    /// [`bindings::all_say`](crate::bindings::all_say).
    pub(crate) fn all_say(&self, yes: bool) -> Result<bool> {
        const CALL: &str = "all_say";
        let call = CallInfo {
            name: CALL,
            digest: const { CallSignature::of(CALL) },
            words: &|| "all_say()".into(),
        };
        self.shared
            .sync_area
            .all
            .turn(self, call, None)
            .all_say(yes)
    }

    /// Arrives in a collective call and waits for all PEs. Stores made before are visible to every PE
    /// that returns from it (mapped) or as far as earlier quiets made them (lanes).
    ///
    /// `mine` is how this PE's part of the call went so far; the call fails on every PE if it failed
    /// on one. `words` tells the call and its arguments if the PEs turn out to disagree.
    #[inline]
    pub(crate) fn together(
        &self,
        name: &'static str,
        digest: CallSignature,
        mine: Result<()>,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        let call = CallInfo {
            name,
            digest,
            words,
        };
        self.shared
            .sync_area
            .all
            .turn(self, call, None)
            .arrive(mine)
    }

    /// Arrives in finalize, after which PEs leave.
    pub(crate) fn last_together(&self, mine: Result<()>) -> Result<()> {
        let call = CallInfo {
            name: "finalize",
            digest: const { CallSignature::of("finalize") },
            words: &|| "finalize()".into(),
        };
        self.shared
            .sync_area
            .all
            .turn(self, call, None)
            .last()
            .arrive(mine)
    }
}

impl Context<'_> {
    /// Where a PE sleeps, if it is mapped here.
    pub(crate) fn parker(&self, pe: usize) -> Option<Parker<'_>> {
        let bell = self.shared.sync_area.bell;
        let span = self.peers.span(bell, pe);
        let span = span.or_else(|| self.peers.span_counted(bell, pe))?;
        Some(Parker {
            epoch: span.part(0, 4).atomic_u32(),
            waiters: span.part(4, 4).atomic_u32(),
        })
    }

    /// Writes an arrival word of PE `to`.
    pub(crate) fn tell(
        &self,
        call: &'static str,
        slot: Sym<u64>,
        word: u64,
        to: usize,
    ) -> Result<()> {
        if let Some(span) = self.peers.span(slot, to) {
            span.store_word(Width::W64, word, FenceSite::Arrive);
            return Ok(());
        }
        self.point();
        match self.path(call, OpKind::Put, slot, to)? {
            AccessPath::Mapped(place) => {
                place.store_word(Width::W64, word, FenceSite::Arrive);
                Ok(())
            }
            AccessPath::Lane(via, far) => {
                let word = word.to_ne_bytes();
                // SAFETY: `word` outlives the call.
                unsafe { self.lane_put(call, via, far, LocalBuffer::read(&word)) }
            }
            AccessPath::Staged(_) => Err(on_gpu(call, slot)),
        }
    }

    /// Whether this PE's CPU loads and stores a PE's symmetric memory.
    pub(crate) fn maps(&self, pe: usize) -> bool {
        let shared = &self.shared;
        !shared.config.check && shared.routes.get(pe).is_some_and(|route| route.mapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dissemination::SIGNATURE;

    #[test]
    fn a_digest_tells_calls_and_arguments_apart() {
        let a = CallSignature::of("malloc").and(8).and(16);
        let b = CallSignature::of("malloc").and(16).and(8);
        let c = CallSignature::of("align").and(8).and(16);
        assert!(a.0 & SIGNATURE != b.0 & SIGNATURE && a.0 & SIGNATURE != c.0 & SIGNATURE);
    }
}
