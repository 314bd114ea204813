//! The sync area: the library's own symmetric memory, in which the members of teams meet.
//!
//! An arrival is a [dissemination barrier](super::dissemination) through words of symmetric memory: in a few rounds each
//! member of a [team](super::team) has received signals of all, directly or through others. Where a team spans hosts,
//! it goes host by host, so that few words cross the network. A word carries the epoch, a signature of the sender's
//! collective call (all must be equal, M36), and whether the call failed on any member that the sender knows of
//! (M13). So one arrival is barrier, check and agreement together, and its verdict is the same on every member.
//!
//! Words of odd and even epochs are apart: a PE can be one epoch ahead of another, never two.

use oxshmem_engine::group::Group;
use oxshmem_engine::progress::park::Parker;

use crate::elements::Elements;
use crate::error::Result;
use crate::layout::{JobShape, Layout};
use crate::select::Choices;
use crate::signature::CallSignature;
use crate::slots::pool::{Pool, SlotBudget};
use crate::slots::proposal::SlotProposal;
use crate::team::TeamState;
use oxshmem_engine::worker::Worker;

/// Each PE's part of the library's own symmetric memory.
#[derive(Debug)]
pub struct SyncArea {
    /// Futex word and count of waiters.
    parker: Elements<u32>,
    /// The team of all PEs.
    pub all: TeamState,
    /// The team of those that reach each other's memory by loads and stores (M8).
    pub shared: TeamState,
    /// The slots of other teams.
    pub pool: Pool,
    /// The host of each PE, if every PE of the job maps all of its host.
    pub hosts: Option<Box<[u32]>>,
    /// The algorithms that `OXSHMEM_COLLECTIVES` names.
    pub choices: Choices,
    /// Bytes of each PE's GPU heap.
    pub gpu_limit: u64,
}

/// The plan of the library's own memory.
#[derive(Clone, Copy, Debug)]
pub struct SyncAreaPlan {
    /// The PEs and hosts of the job.
    pub shape: JobShape,
    /// This PE.
    pub me: usize,
    /// Teams that a PE may be in, if they fit.
    pub teams: usize,
    /// Whether there are slots for the teams of active sets.
    pub among: bool,
    /// The heap's limit in bytes.
    pub limit: usize,
    /// The choice of algorithms by the program.
    pub choices: Choices,
}

/// Bytes of each half of the world's scratch memory.
const SCRATCH: usize = 64 << 10;
/// The part of the heap that such a half is at most.
const SCRATCH_PART: usize = 64;
/// The part of the heap that is for teams at most.
const TEAMS_PART: usize = 8;

impl SyncArea {
    /// Lays the memory out with `place`, which allocates zeroed bytes at the same offset on every PE.
    pub fn new(
        plan: SyncAreaPlan,
        mut place: impl FnMut(usize) -> Result<Elements<u8>>,
    ) -> Result<Self> {
        let SyncAreaPlan {
            shape, me, limit, ..
        } = plan;
        let pes = shape.pes;
        let half = SCRATCH.min(limit / SCRATCH_PART).next_multiple_of(64);
        let wide = Layout::wide(shape, half);
        let packed = Layout::packed(shape);
        let budget = SlotBudget::of(shape, plan.teams, limit / TEAMS_PART, plan.among);
        let alone = Group::all(pes, me).strided(me, 1, 1).ok().flatten();
        let alone = alone.unwrap_or_else(|| Group::all(pes, me));
        Ok(SyncArea {
            parker: place(64)?.cast()?,
            all: TeamState::new(Group::all(pes, me), wide, place(wide.bytes())?, false, 0)?,
            shared: TeamState::new(alone, packed, place(packed.bytes())?, true, 0)?,
            pool: Pool::new(shape, budget, place(budget.bytes(shape).max(64))?),
            hosts: None,
            choices: plan.choices,
            gpu_limit: 0,
        })
    }

    /// Applies the PEs' agreement on the routes: whether all PEs are mapped; which are, on
    /// each of them, for this PE and each other (ascending); and the hosts, if each PE maps all of its own.
    pub fn set_routes(
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

    /// A new team in a slot that all members have reserved, by their joint proposal.
    pub(crate) fn new_team(
        &self,
        slot: usize,
        members: Group,
        proposal: &SlotProposal,
    ) -> Result<TeamState> {
        let team = self
            .pool
            .acquire(slot, members, proposal.mapped, proposal.epoch)?;
        Ok(team.on_hosts(self.hosts.as_deref()))
    }

    /// A number of a team that no other team of this PE has, the same on all its members.
    pub(crate) fn number_of(&self, team: &TeamState) -> usize {
        let all = &self.all;
        match team.slot() {
            Some(slot) => 2 + slot,
            None if std::ptr::eq(team, all) => 0,
            None => 1,
        }
    }

    /// Counts a collective call that has its own place in the sequence (M9).
    pub fn record(&self, signature: CallSignature, words: impl FnOnce() -> String) {
        self.all.epochs().record(signature, words());
    }

    /// The parker of a PE, if it is mapped here.
    #[inline]
    pub fn parker<'c>(&self, worker: &'c Worker, pe: usize) -> Option<Parker<'c>> {
        let span = worker.peers.span(self.parker, pe);
        let span = span.or_else(|| worker.peers.span_counted(self.parker, pe))?;
        Some(Parker {
            epoch: span.part(0, 4).atomic_u32(),
            waiters: span.part(4, 4).atomic_u32(),
        })
    }
}
