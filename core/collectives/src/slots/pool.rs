//! The pool of slots for teams in the library's own symmetric memory, laid out when the world is joined.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem_engine::group::Group;

use crate::elements::Elements;
use crate::error::Result;
use crate::layout::{JobShape, Layout};
use crate::slots::proposal::SlotProposal;
use crate::team::TeamState;

/// Slots for the teams of [active sets](super::active_set) that serve one call each: threads of a PE are rarely in
/// more such calls at once.
const PASSING: usize = 8;

/// The numbers of slots, by use, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotBudget {
    /// For teams that are split off others.
    split: usize,
    /// For teams of active sets that are kept.
    kept: usize,
    /// For teams of active sets that serve one call.
    passing: usize,
}

impl SlotBudget {
    /// Slots for `wanted` splits, as many as fit in `bytes`, and for a quarter as many teams of active sets if there are to be
    /// such. Whatever fits, there are some of those for one call.
    pub(crate) fn of(shape: JobShape, wanted: usize, bytes: usize, active_sets: bool) -> Self {
        let split = wanted.min(bytes / Layout::packed(shape).bytes());
        let (kept, passing) = if active_sets {
            (split / 4, PASSING)
        } else {
            (0, 0)
        };
        SlotBudget {
            split,
            kept,
            passing,
        }
    }

    /// Bytes of all slots.
    pub(crate) fn bytes(self, shape: JobShape) -> usize {
        self.slots() * Layout::packed(shape).bytes()
    }

    pub(crate) fn slots(self) -> usize {
        self.split + self.kept + self.passing
    }

    /// The slots of teams that are split from others.
    pub fn splits(self) -> Range<usize> {
        0..self.split
    }

    /// The slots of active sets' teams.
    pub(crate) fn active_sets(self) -> Range<usize> {
        self.split..self.slots()
    }

    /// Whether a slot is for one call.
    pub fn is_passing(self, slot: usize) -> bool {
        slot >= self.split + self.kept
    }
}

/// The slots of this PE. A team has the same one on each of its members.
#[derive(Debug)]
pub struct Pool {
    memory: Elements<u8>,
    budget: SlotBudget,
    layout: Layout,
    state: Mutex<PoolState>,
}

#[derive(Debug)]
struct PoolState {
    /// A bit for each slot that is free.
    free: Vec<u64>,
    /// The highest epoch that a destroyed team of this PE has come to.
    epoch: u32,
    /// The ranks of the claims that are choosing slots now.
    claims: Vec<usize>,
    /// The rank of the claim that holds the free slots exclusively.
    holder: Option<usize>,
    /// Calls of this PE for a team of each active set.
    active_sets: HashMap<ActiveSet, u64>,
}

/// A set of the world's PEs in OpenSHMEM's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ActiveSet {
    /// The first PE.
    pub start: usize,
    /// The distance of two PEs.
    pub stride: isize,
    /// Number of PEs.
    pub size: usize,
}

/// The claim of a call that chooses slots, as threads may make several such calls on this PE at once. Its rank is the same
/// on all members of the call, and another than that of any other call of this PE.
///
/// A claim holds the free slots exclusively from [`try_hold`](Self::try_hold) on, until it
/// [yields](Self::yield_slots) them or the call has [reserved](Pool::reserve) the chosen one. Where one claim holds them on
/// some members and another on others, neither waits for the other: both
/// yield and try again. The least rank of all gets them everywhere, since no other takes them meanwhile.
pub(crate) struct SlotClaim<'p> {
    pool: &'p Pool,
    rank: usize,
}

impl SlotClaim<'_> {
    /// Takes hold of the free slots. Gives this PE's proposal; none where another claim holds the slots or comes
    /// before.
    pub(crate) fn try_hold(&self) -> Option<SlotProposal> {
        let mut state = self.pool.state();
        if state.holder.is_some() || state.claims.iter().min() != Some(&self.rank) {
            return None;
        }
        state.holder = Some(self.rank);
        Some(state.proposal())
    }

    /// Yields the free slots to other claims.
    pub(crate) fn yield_slots(&self) {
        let mut state = self.pool.state();
        state.holder = state.holder.filter(|rank| *rank != self.rank);
    }
}

impl Drop for SlotClaim<'_> {
    fn drop(&mut self) {
        self.yield_slots();
        self.pool.state().claims.retain(|rank| *rank != self.rank);
    }
}

impl PoolState {
    /// The free slots, and the epoch beyond which a new team's begin, so that no word of an old one can be taken
    /// for its own. For members that all map each other.
    fn proposal(&self) -> SlotProposal {
        SlotProposal {
            free: self.free.clone(),
            mapped: true,
            // Slots are clean when they are acquired, so that the count may begin again.
            epoch: match self.epoch {
                epoch if epoch < 1 << 31 => epoch,
                _ => 0,
            },
        }
    }
}

impl Pool {
    /// Slots in zeroed memory of as many bytes as the budget has.
    pub(crate) fn new(shape: JobShape, budget: SlotBudget, memory: Elements<u8>) -> Self {
        Pool {
            memory,
            budget,
            layout: Layout::packed(shape),
            state: Mutex::new(PoolState {
                free: Self::all_free(budget.slots()),
                epoch: 0,
                claims: Vec::new(),
                holder: None,
                active_sets: HashMap::new(),
            }),
        }
    }

    /// Words of a proposal.
    pub fn proposal_words(&self) -> usize {
        SlotProposal::len(self.budget.slots())
    }

    /// The numbers of teams that a PE can be in at a time, by use.
    pub fn budget(&self) -> SlotBudget {
        self.budget
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call for a team of these PEs. Gives its number.
    pub(crate) fn count_active_set(&self, set: ActiveSet) -> u64 {
        let mut state = self.state();
        let calls = state.active_sets.entry(set).or_default();
        *calls += 1;
        *calls
    }

    /// Begins to choose slots, when all members are in the call: so no PE that has not called
    /// keeps the free slots from others.
    pub(crate) fn claim(&self, rank: usize) -> SlotClaim<'_> {
        self.state().claims.push(rank);
        SlotClaim { pool: self, rank }
    }

    /// Takes a slot for a new team: before any other member can learn that all have taken it, since that member writes
    /// into it, whatever the outcome of this one's call.
    pub(crate) fn reserve(&self, slot: usize) {
        if let Some(word) = self.state().free.get_mut(slot / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    /// Makes a team in a slot that all its members have [reserved](Self::reserve).
    pub(crate) fn acquire(
        &self,
        slot: usize,
        members: Group,
        mapped: bool,
        epoch: u32,
    ) -> Result<TeamState> {
        let each = self.layout.bytes();
        let memory = self.memory.range(slot * each..(slot + 1) * each)?;
        TeamState::new(members, self.layout, memory, mapped, epoch).map(|team| team.in_slot(slot))
    }

    /// Gives all slots back: no PE is in a call of a team, nor will be. Gives the memory of those that were acquired, which
    /// the caller makes zero before they are acquired again.
    pub fn release_all(&self) -> Vec<Elements<u8>> {
        let mut state = self.state();
        let all = (0..self.budget.slots()).filter(|slot| {
            let word = state.free.get(slot / 64).copied().unwrap_or_default();
            word & 1 << (slot % 64) == 0
        });
        let each = self.layout.bytes();
        let acquired =
            all.filter_map(|slot| self.memory.range(slot * each..(slot + 1) * each).ok());
        let acquired = acquired.collect();
        state.free = Self::all_free(self.budget.slots());
        acquired
    }

    fn all_free(count: usize) -> Vec<u64> {
        let mut free = vec![u64::MAX; count / 64];
        if !count.is_multiple_of(64) {
            free.push((1 << (count % 64)) - 1);
        }
        free
    }

    /// Gives a slot back, whose memory is clean; `epoch` is the last one of the team that had it.
    pub(crate) fn release(&self, slot: usize, epoch: u32) {
        let mut state = self.state();
        if let Some(word) = state.free.get_mut(slot / 64) {
            *word |= 1 << (slot % 64);
        }
        state.epoch = state.epoch.max(epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits(shape: JobShape, count: usize) -> Pool {
        let budget = SlotBudget::of(shape, count, usize::MAX, false);
        Pool::new(shape, budget, Elements::unaccessed(0, budget.bytes(shape)))
    }

    #[test]
    fn a_pool_has_as_many_slots_as_were_asked_for_and_fit() {
        let seven = JobShape {
            pes: 7,
            hosts: 1,
            max_pes_per_host: 7,
            oversubscribed: false,
        };
        let each = Layout::packed(seven).bytes();
        assert_eq!(SlotBudget::of(seven, 256, 1 << 20, false).splits(), 0..256);
        let few = SlotBudget::of(seven, 256, 10 * each + 1, true);
        assert_eq!((few.splits(), few.active_sets()), (0..10, 10..20));
        let passing: Vec<bool> = (11..13).map(|slot| few.is_passing(slot)).collect();
        assert_eq!(passing, [false, true]);
        let none = SlotBudget::of(seven, 0, 0, true);
        assert_eq!((none.splits(), none.active_sets()), (0..0, 0..8));
        let pool = splits(seven, 70);
        let proposal = || pool.claim(0).try_hold().unwrap();
        assert_eq!(proposal().free, [u64::MAX, 63]);
        for slot in 0..70 {
            assert_eq!(proposal().slot(0..70, None), Some(slot));
            pool.reserve(slot);
            let team = pool.acquire(slot, Group::all(7, 0), true, 5).unwrap();
            assert_eq!(team.slot(), Some(slot));
        }
        assert_eq!(proposal().slot(0..70, None), None);
        pool.release(69, 40);
        assert_eq!((proposal().free, proposal().epoch), (vec![0, 32], 40));
        pool.release(3, 1 << 31);
        assert_eq!(proposal().epoch, 0);
    }

    #[test]
    fn an_emptied_pool_has_all_slots_again_and_tells_which_were_lent() {
        let two = JobShape {
            pes: 2,
            hosts: 1,
            max_pes_per_host: 2,
            oversubscribed: false,
        };
        let each = Layout::packed(two).bytes();
        let pool = splits(two, 70);
        pool.reserve(1);
        pool.reserve(69);
        let acquired: Vec<u64> = pool
            .release_all()
            .iter()
            .map(|words| words.offset())
            .collect();
        assert_eq!(acquired, [each as u64, 69 * each as u64]);
        assert_eq!(pool.claim(0).try_hold().unwrap().free, [u64::MAX, 63]);
        assert!(pool.release_all().is_empty());
    }

    #[test]
    fn one_split_at_a_time_has_the_free_slots_and_the_least_rank_gets_them() {
        let two = JobShape {
            pes: 2,
            hosts: 1,
            max_pes_per_host: 2,
            oversubscribed: false,
        };
        let pool = splits(two, 1);
        let high = pool.claim(7);
        assert!(high.try_hold().is_some());
        let low = pool.claim(3);
        assert!(low.try_hold().is_none() && high.try_hold().is_none());
        // The holder does not lose them to another.
        low.yield_slots();
        assert!(low.try_hold().is_none());
        high.yield_slots();
        // The last holder does not get them while a lesser rank wants them.
        assert!(high.try_hold().is_none() && low.try_hold().is_some());
        drop(low);
        assert!(high.try_hold().is_some());
    }
}
