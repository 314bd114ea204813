//! Room for teams in the library's own symmetric memory: slots, laid out when the world is joined.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::group::Group;
use super::proposal::SlotProposal;
use super::state::{JobShape, Layout, TeamState};
use crate::{Result, Sym};

/// Slots for teams that members make [among](super::among) themselves for one call each: threads of a PE are rarely in
/// more such calls at once.
const PASSING: usize = 8;

/// How many slots there are, by what for, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotBudget {
    /// For teams that are split off others.
    split: usize,
    /// For those that members make among themselves and keep.
    kept: usize,
    /// For those that they make for one call.
    passing: usize,
}

impl SlotBudget {
    /// For `wanted` splits, as many as fit in `bytes`, and for a quarter as many teams of members' own if there are to be
    /// such: whatever fits, there are some for one call.
    pub(crate) fn of(crowd: JobShape, wanted: usize, bytes: usize, among: bool) -> Self {
        let split = wanted.min(bytes / Layout::packed(crowd).bytes());
        let (kept, passing) = match among {
            true => (split / 4, PASSING),
            false => (0, 0),
        };
        SlotBudget {
            split,
            kept,
            passing,
        }
    }

    /// Bytes of all of it.
    pub(crate) fn bytes(self, crowd: JobShape) -> usize {
        self.slots() * Layout::packed(crowd).bytes()
    }

    pub(crate) fn slots(self) -> usize {
        self.split + self.kept + self.passing
    }

    pub(super) fn splits(self) -> Range<usize> {
        0..self.split
    }

    /// Those of teams that members make among themselves.
    pub(super) fn among(self) -> Range<usize> {
        self.split..self.slots()
    }

    /// Whether a slot is for one call.
    pub(super) fn is_passing(self, slot: usize) -> bool {
        slot >= self.split + self.kept
    }
}

/// The slots of this PE. A team has the same one on each of its members.
#[derive(Debug)]
pub(crate) struct Pool {
    memory: Sym<u8>,
    room: SlotBudget,
    layout: Layout,
    state: Mutex<PoolState>,
}

#[derive(Debug)]
struct PoolState {
    /// A bit for each slot that is free.
    free: Vec<u64>,
    /// The highest epoch that a destroyed team of this PE has come to.
    epoch: u32,
    /// The ranks of the splits that choose slots just now, and that of the one which has the free slots to
    /// itself.
    choosing: Vec<usize>,
    chooses: Option<usize>,
    /// How often this PE has called for a team of these PEs among themselves.
    among: HashMap<Strided, u64>,
}

/// Start, stride and size of a set of the world's PEs.
pub(super) type Strided = (usize, isize, usize);

/// A split that chooses slots, as threads may make several on this PE at once. Its rank is the same on all
/// members of its team, and another than that of any other team of this PE.
///
/// A split has the free slots to itself from [`take`](Self::take) on, until it [leaves](Self::leave) them or has
/// [reserved](Pool::reserve) what was chosen. Where one has them on some members and another on others, neither waits for the other: both
/// leave them and try again. The least rank of all gets them everywhere, since no other takes them meanwhile.
pub(crate) struct SlotClaim<'p> {
    pool: &'p Pool,
    rank: usize,
}

impl SlotClaim<'_> {
    /// What this PE offers, to this split alone. None where another has the free slots or comes
    /// before.
    pub(super) fn take(&self) -> Option<SlotProposal> {
        let mut state = self.pool.state();
        if state.chooses.is_some() || state.choosing.iter().min() != Some(&self.rank) {
            return None;
        }
        state.chooses = Some(self.rank);
        Some(state.offer())
    }

    /// Leaves the free slots to others.
    pub(crate) fn leave(&self) {
        let mut state = self.pool.state();
        state.chooses = state.chooses.filter(|rank| *rank != self.rank);
    }
}

impl Drop for SlotClaim<'_> {
    fn drop(&mut self) {
        self.leave();
        self.pool.state().choosing.retain(|rank| *rank != self.rank);
    }
}

impl PoolState {
    /// The free slots, and the epoch beyond which a new team's begin, so that no word of an old one can be taken
    /// for its own. For members that all map each other.
    fn offer(&self) -> SlotProposal {
        SlotProposal {
            free: self.free.clone(),
            mapped: true,
            // Slots are clean when they are lent, so that the count may begin again.
            epoch: match self.epoch {
                epoch if epoch < 1 << 31 => epoch,
                _ => 0,
            },
        }
    }
}

impl Pool {
    /// Slots in zeroed memory of as many bytes as the room has.
    pub(crate) fn new(crowd: JobShape, room: SlotBudget, memory: Sym<u8>) -> Self {
        Pool {
            memory,
            room,
            layout: Layout::packed(crowd),
            state: Mutex::new(PoolState {
                free: Self::all_free(room.slots()),
                epoch: 0,
                choosing: Vec::new(),
                chooses: None,
                among: HashMap::new(),
            }),
        }
    }

    /// How many words it is what a PE tells of its slots.
    pub(crate) fn words_of_offer(&self) -> usize {
        SlotProposal::len(self.room.slots())
    }

    /// How many teams a PE can be in at a time, by what for.
    pub(crate) fn room(&self) -> SlotBudget {
        self.room
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call for a team of these PEs among themselves.
    pub(super) fn count_among(&self, pes: Strided) -> u64 {
        let mut state = self.state();
        let calls = state.among.entry(pes).or_default();
        *calls += 1;
        *calls
    }

    /// Begins to choose slots, when all members of the split's team are in it: so nobody who has not called
    /// keeps the free slots from others.
    pub(crate) fn choose(&self, rank: usize) -> SlotClaim<'_> {
        self.state().choosing.push(rank);
        SlotClaim { pool: self, rank }
    }

    /// Takes a slot for a new team: before any other member can hear that all have it, since that one writes
    /// into it, whatever becomes of this one's call.
    pub(super) fn reserve(&self, slot: usize) {
        if let Some(word) = self.state().free.get_mut(slot / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    /// Lends a slot that all members of a team have [reserved](Self::reserve).
    pub(crate) fn acquire(
        &self,
        slot: usize,
        members: Group,
        mapped: bool,
        epoch: u32,
    ) -> Result<TeamState> {
        let each = self.layout.bytes();
        let memory = self.memory.range(slot * each..(slot + 1) * each)?;
        TeamState::new(members, self.layout, memory, mapped, epoch).map(|core| core.in_slot(slot))
    }

    /// Takes all slots back: no PE is in a call of a team, nor will be. Gives the memory of those that were lent, which
    /// is made zero before they are lent again.
    pub(crate) fn empty(&self) -> Vec<Sym<u8>> {
        let mut state = self.state();
        let all = (0..self.room.slots()).filter(|slot| {
            let word = state.free.get(slot / 64).copied().unwrap_or_default();
            word & 1 << (slot % 64) == 0
        });
        let each = self.layout.bytes();
        let lent = all.filter_map(|slot| self.memory.range(slot * each..(slot + 1) * each).ok());
        let lent = lent.collect();
        state.free = Self::all_free(self.room.slots());
        lent
    }

    fn all_free(count: usize) -> Vec<u64> {
        let mut free = vec![u64::MAX; count / 64];
        if !count.is_multiple_of(64) {
            free.push((1 << (count % 64)) - 1);
        }
        free
    }

    /// Takes a slot back, whose memory is clean; `epoch` is the last one of the team that had it.
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

    fn splits(crowd: JobShape, count: usize) -> Pool {
        let room = SlotBudget::of(crowd, count, usize::MAX, false);
        Pool::new(crowd, room, Sym::new(2, 0, 0, room.bytes(crowd)))
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
        assert_eq!((few.splits(), few.among()), (0..10, 10..20));
        let passing: Vec<bool> = (11..13).map(|slot| few.is_passing(slot)).collect();
        assert_eq!(passing, [false, true]);
        let none = SlotBudget::of(seven, 0, 0, true);
        assert_eq!((none.splits(), none.among()), (0..0, 0..8));
        let pool = splits(seven, 70);
        let offer = || pool.choose(0).take().unwrap();
        assert_eq!(offer().free, [u64::MAX, 63]);
        for slot in 0..70 {
            assert_eq!(offer().slot(0..70, None), Some(slot));
            pool.reserve(slot);
            let team = pool.acquire(slot, Group::all(7, 0), true, 5).unwrap();
            assert_eq!(team.slot(), Some(slot));
        }
        assert_eq!(offer().slot(0..70, None), None);
        pool.release(69, 40);
        assert_eq!((offer().free, offer().epoch), (vec![0, 32], 40));
        pool.release(3, 1 << 31);
        assert_eq!(offer().epoch, 0);
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
        let lent: Vec<u64> = pool.empty().iter().map(Sym::offset).collect();
        assert_eq!(lent, [each as u64, 69 * each as u64]);
        assert_eq!(pool.choose(0).take().unwrap().free, [u64::MAX, 63]);
        assert!(pool.empty().is_empty());
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
        let high = pool.choose(7);
        assert!(high.take().is_some());
        let low = pool.choose(3);
        assert!(low.take().is_none() && high.take().is_none());
        // It is not given up for another.
        low.leave();
        assert!(low.take().is_none());
        high.leave();
        // Not to the one that had it while a lesser wants it.
        assert!(high.take().is_none() && low.take().is_some());
        drop(low);
        assert!(high.take().is_some());
    }
}
