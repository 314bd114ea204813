//! A team's state on one of its members: the members, the team's words in symmetric memory, and the epoch.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use oxshmem_engine::group::Group;

use crate::dissemination::{Dissemination, Round, SyncSlot};
use crate::elements::Elements;
use crate::error::Result;
use crate::hierarchy::HostGroups;
use crate::layout::Layout;
use crate::signature::CallSignature;
use oxshmem_engine::worker::Worker;

/// Recent calls that are kept in words.
const RECENT: usize = 6;

/// A team, as one of its members has it.
#[derive(Debug)]
pub struct TeamState {
    /// The members.
    pub members: Group,
    /// The rounds of an arrival.
    pub rounds: Box<[Round]>,
    layout: Layout,
    words: Elements<u64>,
    scratch: Elements<u8>,
    /// Whether every member's memory is loaded and stored by every other.
    pub mapped: bool,
    /// The members by host, where calls are hierarchical.
    pub hosts: Option<HostGroups>,
    /// The team's slot in the pool, if it can be destroyed.
    slot: Option<usize>,
    pub(crate) epochs: Mutex<EpochState>,
    /// The team as kernels know it, once they do.
    pub in_kernels: OnceLock<TeamInKernels>,
}

/// A team as this PE's kernels know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamInKernels {
    /// Its number, the same on all members.
    pub number: i32,
    /// The GPU address of a table of the members' heaps, each as it is mapped for this PE's GPU.
    pub heaps: u64,
}

/// A team's progress on this PE.
#[derive(Debug, Default)]
pub(crate) struct EpochState {
    pub epoch: u32,
    /// Running hash of the collective calls that count without a barrier of their own (M9).
    pub history: u64,
    pub calls: u64,
    /// The last few calls in words, for the error of a mismatch.
    pub recent: VecDeque<String>,
    /// Eager calls since the last arrival.
    pub eager_calls: usize,
    /// Bytes of the scratch memory that those use.
    pub eager_bytes: usize,
    /// The last of them.
    pub last_eager: EagerBroadcast,
    /// The reason why there can be no collective call any more.
    pub aborted: Option<String>,
}

/// An eager broadcast's arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EagerBroadcast {
    /// The root's rank in the team.
    pub root: usize,
    pub bytes: usize,
}

impl TeamState {
    /// A team in zeroed memory of [`Layout::bytes`], whose epochs begin after `epoch`.
    pub(crate) fn new(
        members: Group,
        layout: Layout,
        memory: Elements<u8>,
        mapped: bool,
        epoch: u32,
    ) -> Result<Self> {
        let words = layout.word_bytes();
        let state = EpochState {
            epoch,
            ..EpochState::default()
        };
        Ok(TeamState {
            rounds: layout.rounds(&members),
            members,
            layout,
            words: memory.range(..words)?.cast()?,
            scratch: memory.range(words..words + 3 * layout.half)?,
            mapped,
            hosts: None,
            slot: None,
            epochs: Mutex::new(state),
            in_kernels: OnceLock::new(),
        })
    }

    /// Gives a team that nobody has used yet other members. Its memory has room for as many.
    pub(crate) fn set_members(&mut self, members: Group) {
        self.rounds = self.layout.rounds(&members);
        self.members = members;
    }

    pub(crate) fn in_slot(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Groups the members by the host of each PE of the world, which is given if every PE maps all of its host.
    pub(crate) fn on_hosts(mut self, hosts: Option<&[u32]>) -> Self {
        if let Some(groups) = hosts.and_then(|hosts| HostGroups::groups(&self.members, hosts)) {
            let radix = self.layout.hierarchical;
            self.rounds = radix.rounds_by_host(&groups.members, groups.mine).into();
            self.hosts = Some(HostGroups::of(groups, radix.across));
        }
        self
    }

    /// Its slot, unless it is a permanent team.
    pub fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// An arrival word, or that of an [eager](super::call::eager) call.
    #[inline]
    pub(crate) fn word(&self, epoch: u32, slot: SyncSlot) -> Result<Elements<u64>> {
        self.words.at(self.position(epoch, slot))
    }

    #[inline]
    fn position(&self, epoch: u32, slot: SyncSlot) -> usize {
        let parity = (epoch & 1) as usize;
        (parity * self.layout.slots + slot.index as usize) * self.layout.stride
    }

    /// The half of the scratch memory that the arrival of this epoch announces. All members may read this PE's data
    /// there until they arrive in the next epoch. So it is written again two epochs later.
    pub(crate) fn scratch(&self, epoch: u32) -> Result<Elements<u8>> {
        let (parity, half) = ((epoch & 1) as usize, self.layout.half);
        self.scratch.range(parity * half..(parity + 1) * half)
    }

    /// The slot of the [word](Self::word) of an [eager](super::call::eager) call before an epoch's arrival, by its number
    /// since the last one. None where no slot is free.
    #[inline(always)]
    pub(crate) fn eager_slot_index(&self, epoch: u32, number: usize) -> Option<u32> {
        // Behind the slots of both parities.
        let before = (2 - (epoch & 1) as usize) * self.layout.slots;
        (number + 1 < self.layout.eager_slots).then_some((before + number) as u32)
    }

    /// The word by which a member that waits for the root of an [eager](super::call::eager) call announces which call it
    /// is in.
    pub(crate) fn waiting_word(&self) -> Result<Elements<u64>> {
        let slots = 2 * self.layout.slots + self.layout.eager_slots;
        self.words.at((slots - 1) * self.layout.stride)
    }

    /// The bytes behind a word in its own cache line, if there are as many.
    #[inline(always)]
    pub(crate) fn inline_payload(
        &self,
        epoch: u32,
        slot: SyncSlot,
        bytes: usize,
    ) -> Option<Elements<u8>> {
        let line = self.layout.stride * size_of::<u64>();
        if size_of::<u64>() + bytes > line {
            return None;
        }
        let start = self.position(epoch, slot) * size_of::<u64>() + size_of::<u64>();
        let words: Elements<u8> = self.words.cast().ok()?;
        words.range(start..start + bytes).ok()
    }

    /// Scratch memory for an eager call, from byte `used` on, and how many bytes the call uses up.
    #[inline(always)]
    pub(crate) fn eager_scratch(&self, used: usize, bytes: usize) -> Option<(Elements<u8>, usize)> {
        let start = 2 * self.layout.half + used;
        let line = self.layout.stride * size_of::<u64>();
        let reserved = bytes.next_multiple_of(line);
        let fits = used + bytes <= self.layout.half;
        let payload = fits.then(|| self.scratch.range(start..start + bytes).ok())?;
        Some((payload?, reserved))
    }

    /// Bytes of each half of the scratch memory.
    pub(crate) fn half(&self) -> usize {
        self.layout.half
    }

    /// The number of first rounds of an arrival after which members have received the signals of all on their hosts.
    /// They signal no other host before.
    pub(crate) fn rounds_on_host(&self) -> usize {
        let on_host = Dissemination {
            radix: self.layout.hierarchical.on_host,
            first: 0,
        };
        on_host.rounds(self.hosts.as_ref().map_or(0, HostGroups::members_on_host))
    }

    /// Whether all members load each other's memory, and an arrival has one round, in which each signals all others.
    pub(crate) fn has_one_round(&self) -> bool {
        self.mapped && self.hosts.is_none() && self.rounds.len() == 1
    }

    /// Members on this PE's host, as far as it knows.
    pub(crate) fn members_on_host(&self) -> usize {
        match &self.hosts {
            Some(hosts) => hosts.members_on_host(),
            None if self.mapped => self.members.len(),
            None => 1,
        }
    }

    /// Whether members may be oversubscribed. The same on each.
    pub(crate) fn oversubscribed(&self) -> bool {
        self.layout.oversubscribed
    }

    /// All of the team's words.
    pub fn words(&self) -> Elements<u64> {
        self.words
    }

    /// Makes the team as it was at first. No PE is in a call of it, and none comes to one before all have done this.
    pub fn reset(&self, worker: &Worker) {
        worker.own(self.words).zero();
        *self.epochs() = EpochState::default();
    }

    #[inline]
    pub(crate) fn epochs(&self) -> MutexGuard<'_, EpochState> {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EpochState {
    /// Counts a collective call that has its own place in the sequence (M9).
    pub(crate) fn record(&mut self, signature: CallSignature, words: String) {
        self.calls += 1;
        self.history = CallSignature::of_history(self.history)
            .and(signature.value())
            .and(self.calls)
            .value();
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(format!("#{} {words}", self.calls));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::JobShape;

    /// Checks that each of `pes` members hears of all, where member i arrives in `rounds(i)`, and that no word is
    /// written twice in an epoch, nor left unread.
    fn all_hear_of_all(pes: usize, slots: usize, rounds: impl Fn(usize) -> Box<[Round]>) {
        let known = hear_of_what_was_done(pes, slots, rounds, |_| 0);
        assert!(known.iter().flatten().all(|known| *known));
    }

    /// The others of which each member has heard after they had done as many rounds as `before` says, and then something.
    fn hear_of_what_was_done(
        pes: usize,
        slots: usize,
        rounds: impl Fn(usize) -> Box<[Round]>,
        before: impl Fn(usize) -> usize,
    ) -> Vec<Vec<bool>> {
        let all: Vec<Box<[Round]>> = (0..pes).map(rounds).collect();
        let mut known = vec![vec![false; pes]; pes];
        // The written words, by reader, slot and writer.
        let mut words = std::collections::HashMap::new();
        let mut written = std::collections::HashSet::new();
        let mut at = vec![(0, false); pes];
        let mut moves = true;
        while std::mem::take(&mut moves) {
            for me in 0..pes {
                let (round, signaled) = &mut at[me];
                known[me][me] |= *round >= before(me);
                let Some(now) = all[me].get(*round) else {
                    continue;
                };
                if !*signaled {
                    for slot in &now.sends {
                        assert!((slot.index as usize) < slots);
                        assert!(written.insert((slot.member, slot.index)));
                        words.insert((slot.member, slot.index, me as u32), known[me].clone());
                    }
                    (*signaled, moves) = (true, true);
                }
                let key = |slot: &SyncSlot| (me as u32, slot.index, slot.member);
                if now
                    .receives
                    .iter()
                    .all(|slot| words.contains_key(&key(slot)))
                {
                    for slot in &now.receives {
                        let theirs = words.remove(&key(slot)).unwrap();
                        known[me]
                            .iter_mut()
                            .zip(theirs)
                            .for_each(|(mine, it)| *mine |= it);
                    }
                    (*round, *signaled, moves) = (*round + 1, false, true);
                }
            }
        }
        assert!(words.is_empty(), "words that nobody reads: {words:?}");
        known
    }

    fn on_one_host(pes: usize) -> JobShape {
        JobShape {
            pes,
            hosts: 1,
            max_pes_per_host: pes,
            oversubscribed: false,
        }
    }

    #[test]
    fn dissemination_reaches_every_pe_from_every_pe() {
        for n in (1..40).chain([64, 65, 70, 200]) {
            let shape = on_one_host(n);
            let wide = [false, true].map(|oversubscribed| {
                let shape = JobShape {
                    oversubscribed,
                    ..shape
                };
                Layout::wide(shape, 64)
            });
            let packed = [shape, on_one_host(4096)].map(Layout::packed);
            for layout in wide.into_iter().chain(packed) {
                all_hear_of_all(n, layout.slots, |me| layout.rounds(&Group::all(n, me)));
            }
        }
    }

    #[test]
    fn hosts_reach_each_other_by_few_words() {
        // Members by host, in any order.
        let host_maps: [&[u32]; 6] = [
            &[0, 1, 0, 1],
            &[0, 0, 0, 1],
            &[0, 0, 1, 2, 1, 0],
            &[3, 1, 2, 0, 3, 1, 2, 0, 3, 3, 3],
            &std::array::from_fn::<u32, 96, _>(|pe| pe as u32 % 48),
            &std::array::from_fn::<u32, 150, _>(|pe| pe as u32 / 2),
        ];
        for hosts in host_maps {
            let pes = hosts.len();
            let count = |host: u32| hosts.iter().filter(|of| **of == host).count();
            let number = *hosts.iter().max().unwrap() as usize + 1;
            let shape = JobShape {
                pes,
                hosts: number,
                max_pes_per_host: (0..number as u32).map(count).max().unwrap(),
                oversubscribed: false,
            };
            let turns = JobShape {
                oversubscribed: true,
                ..shape
            };
            for layout in [
                Layout::wide(shape, 64),
                Layout::wide(turns, 64),
                Layout::packed(shape),
            ] {
                let memory = Elements::unaccessed(0, layout.bytes());
                let rounds = |me: usize| {
                    let team =
                        TeamState::new(Group::all(pes, me), layout, memory, false, 0).unwrap();
                    team.on_hosts(Some(hosts)).rounds
                };
                all_hear_of_all(pes, layout.slots, rounds);
                // The action of one representative of each host, when its host is here, is known to all.
                let teams: Vec<TeamState> = (0..pes)
                    .map(|me| {
                        let members = Group::all(pes, me);
                        let team = TeamState::new(members, layout, memory, false, 0).unwrap();
                        team.on_hosts(Some(hosts))
                    })
                    .collect();
                let on_host = |me: usize| teams[me].rounds_on_host();
                let known = hear_of_what_was_done(pes, layout.slots, rounds, on_host);
                for (team, known) in teams.iter().zip(&known) {
                    let representatives: Vec<usize> =
                        team.hosts.as_ref().unwrap().representatives().collect();
                    let of: Vec<u32> = representatives
                        .iter()
                        .map(|member| hosts[*member])
                        .collect();
                    assert!(of.iter().copied().eq(0..number as u32), "{of:?}");
                    assert!(representatives.iter().all(|member| known[*member]));
                    let me = team.members.me();
                    assert_eq!(representatives[hosts[me] as usize], me);
                }
                // No more words go across than hosts of one member each would need.
                let across = |me: usize| {
                    let rounds = rounds(me);
                    let remote = |slot: &&SyncSlot| hosts[slot.member as usize] != hosts[me];
                    rounds
                        .iter()
                        .flat_map(|round| &round.sends)
                        .filter(remote)
                        .count()
                };
                let words: usize = (0..pes).map(across).sum();
                let alone = Dissemination {
                    radix: layout.hierarchical.across,
                    first: 0,
                };
                let each = |me: usize| -> usize {
                    let rounds = alone.of((number, me), |_| true, |at, _| at as u32);
                    rounds.iter().map(|round| round.sends.len()).sum()
                };
                assert_eq!(words, (0..number).map(each).sum::<usize>());
            }
        }
    }

    /// The documentation of `Team` says how much.
    #[test]
    fn a_team_takes_as_much_room_as_is_told() {
        let bytes = |pes: usize, hosts: usize, max_pes_per_host: usize| {
            Layout::packed(JobShape {
                pes,
                hosts,
                max_pes_per_host,
                oversubscribed: false,
            })
            .bytes()
        };
        let least = bytes(2, 1, 2);
        let (mut one_host, mut alike, mut any) = (0, 0, 0);
        for pes in (2..4096).step_by(7).chain([4096]) {
            one_host = one_host.max(bytes(pes, 1, pes));
            for hosts in 2..=pes {
                if pes.is_multiple_of(hosts) {
                    alike = alike.max(bytes(pes, hosts, pes / hosts));
                }
                any = any.max(bytes(pes, hosts, pes - hosts + 1));
            }
        }
        let more = [one_host, alike, any].map(|most| most - least);
        assert_eq!(more, [1536 - 1152, 2432 - 1152, 4096 - 1152]);
    }

    #[test]
    fn words_and_scratch_lie_apart() {
        let nine = on_one_host(9);
        for layout in [Layout::packed(on_one_host(300)), Layout::wide(nine, 128)] {
            let memory = Elements::unaccessed(4096, layout.bytes());
            let team = TeamState::new(Group::all(9, 4), layout, memory, true, 0).unwrap();
            let mut positions: Vec<(u64, u64)> = Vec::new();
            for epoch in [6, 7] {
                for slot in team.rounds.iter().flat_map(|round| &round.receives) {
                    let word = team.word(epoch, *slot).unwrap();
                    positions.push((word.offset(), 8));
                }
                let scratch = team.scratch(epoch).unwrap();
                positions.push((scratch.offset(), scratch.len() as u64));
            }
            positions.sort_unstable();
            let end = 4096 + layout.bytes() as u64;
            assert!(
                positions
                    .iter()
                    .all(|(at, len)| *at >= 4096 && at + len <= end)
            );
            assert!(
                positions
                    .windows(2)
                    .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
            );
        }
    }

    /// A member that is alone on its host hears of others in a single round, and they of it in none.
    #[test]
    fn members_on_several_hosts_do_not_meet_at_once() {
        let shape = JobShape {
            hosts: 2,
            max_pes_per_host: 2,
            ..on_one_host(3)
        };
        for me in 0..3 {
            let team = |hosts| {
                let layout = Layout::wide(shape, 64);
                let memory = Elements::unaccessed(0, layout.bytes());
                let team = TeamState::new(Group::all(3, me), layout, memory, true, 0).unwrap();
                team.on_hosts(hosts)
            };
            assert!(team(None).has_one_round());
            assert!(!team(Some(&[0, 0, 1])).has_one_round());
        }
    }
}
