//! Room for teams in the library's own symmetric memory: slots, laid out when the world is joined.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::core::{Core, Crowd, Layout};
use super::members::Members;
use crate::{Result, Sym};

/// The slots of this PE. A team has the same one on each of its members.
#[derive(Debug)]
pub(crate) struct Pool {
    memory: Sym<u8>,
    count: usize,
    layout: Layout,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// A bit for each slot that is free.
    free: Vec<u64>,
    /// The highest epoch that a destroyed team of this PE has come to.
    epoch: u32,
    /// The ranks of the splits that choose slots just now, and that of the one which has the free slots to
    /// itself.
    choosing: Vec<usize>,
    chooses: Option<usize>,
}

/// A split that chooses slots, as threads may make several on this PE at once. Its rank is the same on all
/// members of its team, and another than that of any other team of this PE.
///
/// A split has the free slots to itself from [`take`](Self::take) on, until it [leaves](Self::leave) them or has
/// lent what was chosen. Where one has them on some members and another on others, neither waits for the other: both
/// leave them and try again. The least rank of all gets them everywhere, since no other takes them meanwhile.
pub(crate) struct Choosing<'p> {
    pool: &'p Pool,
    rank: usize,
}

impl Choosing<'_> {
    /// The free slots, a bit for each, for this split alone; and the epoch beyond which a new team's begin, so
    /// that no word of an old one can be taken for its own. None where another has them or comes before.
    pub(crate) fn take(&self) -> Option<(Vec<u64>, u32)> {
        let mut state = self.pool.state();
        if state.chooses.is_some() || state.choosing.iter().min() != Some(&self.rank) {
            return None;
        }
        state.chooses = Some(self.rank);
        Some((state.free.clone(), state.next_epoch()))
    }

    /// Leaves the free slots to others.
    pub(crate) fn leave(&self) {
        let mut state = self.pool.state();
        state.chooses = state.chooses.filter(|rank| *rank != self.rank);
    }
}

impl Drop for Choosing<'_> {
    fn drop(&mut self) {
        self.leave();
        self.pool.state().choosing.retain(|rank| *rank != self.rank);
    }
}

impl State {
    /// Slots are clean when they are lent, so that the count may begin again.
    fn next_epoch(&self) -> u32 {
        match self.epoch {
            epoch if epoch < 1 << 31 => epoch,
            _ => 0,
        }
    }
}

impl Pool {
    /// How many slots there can be, of `wanted`, in `bytes`; and the bytes of one.
    pub(crate) fn fit(crowd: Crowd, wanted: usize, bytes: usize) -> (usize, usize) {
        let each = Layout::packed(crowd).bytes();
        (wanted.min(bytes / each), each)
    }

    /// Slots in zeroed memory, as many as [`fit`](Self::fit) said.
    pub(crate) fn new(crowd: Crowd, count: usize, memory: Sym<u8>) -> Self {
        let mut free = vec![u64::MAX; count / 64];
        if !count.is_multiple_of(64) {
            free.push((1 << (count % 64)) - 1);
        }
        Pool {
            memory,
            count,
            layout: Layout::packed(crowd),
            state: Mutex::new(State {
                free,
                epoch: 0,
                choosing: Vec::new(),
                chooses: None,
            }),
        }
    }

    /// How many teams a PE can be in at a time.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The free slots and the epoch, as [`Choosing::take`] gives them, where no split is under way.
    pub(crate) fn free(&self) -> (Vec<u64>, u32) {
        let state = self.state();
        (state.free.clone(), state.next_epoch())
    }

    /// Begins to choose slots, when all members of the split's team are in it: so nobody who has not called
    /// keeps the free slots from others.
    pub(crate) fn choose(&self, rank: usize) -> Choosing<'_> {
        self.state().choosing.push(rank);
        Choosing { pool: self, rank }
    }

    /// Lends a slot to a team, whose split has the free slots to itself on all members.
    pub(crate) fn lend(
        &self,
        slot: usize,
        members: Members,
        mapped: bool,
        epoch: u32,
    ) -> Result<Core> {
        let mut state = self.state();
        if let Some(word) = state.free.get_mut(slot / 64) {
            *word &= !(1 << (slot % 64));
        }
        let each = self.layout.bytes();
        let memory = self.memory.range(slot * each..(slot + 1) * each)?;
        Core::new(members, self.layout, memory, mapped, epoch).map(|core| core.in_slot(slot))
    }

    /// Takes a slot back, whose memory is clean; `epoch` is the last one of the team that had it.
    pub(crate) fn take_back(&self, slot: usize, epoch: u32) {
        let mut state = self.state();
        if let Some(word) = state.free.get_mut(slot / 64) {
            *word |= 1 << (slot % 64);
        }
        state.epoch = state.epoch.max(epoch);
    }
}

/// The lowest bit that all have, but `not`.
pub(crate) fn lowest_common<'a>(
    all: impl IntoIterator<Item = &'a [u64]>,
    not: Option<usize>,
) -> Option<usize> {
    let mut common: Vec<u64> = Vec::new();
    for (i, free) in all.into_iter().enumerate() {
        match i {
            0 => common = free.to_vec(),
            _ => {
                common.truncate(free.len());
                common.iter_mut().zip(free).for_each(|(c, f)| *c &= f);
            }
        }
    }
    if let Some(not) = not
        && let Some(word) = common.get_mut(not / 64)
    {
        *word &= !(1 << (not % 64));
    }
    let word = common.iter().position(|word| *word != 0)?;
    Some(word * 64 + common.get(word)?.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_slot_that_all_have_free_is_taken() {
        let all: [&[u64]; 3] = [&[0b1100, 7], &[0b0111, 7], &[0b1110, 1]];
        assert_eq!(lowest_common(all, None), Some(2));
        assert_eq!(lowest_common(all, Some(2)), Some(64));
        let none: [&[u64]; 2] = [&[1], &[2]];
        assert_eq!(lowest_common(none, None), None);
        assert_eq!(lowest_common([], None), None);
    }

    #[test]
    fn a_pool_has_as_many_slots_as_were_asked_for_and_fit() {
        let seven = Crowd {
            pes: 7,
            hosts: 1,
            most_near: 7,
            oversubscribed: false,
        };
        let (count, each) = Pool::fit(seven, 256, 1 << 20);
        assert_eq!(count, 256);
        assert_eq!(Pool::fit(seven, 256, 10 * each + 1).0, 10);
        let memory = Sym::new(2, 0, 0, 70 * each);
        let pool = Pool::new(seven, 70, memory);
        let free = || pool.choose(0).take().unwrap();
        assert_eq!(free().0, [u64::MAX, 63]);
        for slot in 0..70 {
            assert_eq!(lowest_common([&*free().0], None), Some(slot));
            let team = pool.lend(slot, Members::all(7, 0), true, 5).unwrap();
            assert_eq!(team.slot(), Some(slot));
        }
        assert_eq!(lowest_common([&*free().0], None), None);
        pool.take_back(69, 40);
        assert_eq!(free(), (vec![0, 32], 40));
        pool.take_back(3, 1 << 31);
        assert_eq!(free().1, 0);
    }

    #[test]
    fn one_split_at_a_time_has_the_free_slots_and_the_least_rank_gets_them() {
        let two = Crowd {
            pes: 2,
            hosts: 1,
            most_near: 2,
            oversubscribed: false,
        };
        let each = Pool::fit(two, 1, usize::MAX).1;
        let pool = Pool::new(two, 1, Sym::new(2, 0, 0, each));
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
