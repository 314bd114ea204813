//! What a team is made of: its members, its words in symmetric memory, and how far it has come.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::group::Group;
use super::hierarchy::HostGroups;
use crate::dissemination::{Dissemination, HierarchicalRadix, Round, SyncSlot};
use crate::sync_area::CallSignature;
use crate::{Context, ContextOptions, Result, Sym};

/// Words of a cache line.
pub(crate) const LINE: usize = 64 / size_of::<u64>();
/// Digits of a round where the words of one share a line.
const PACKED: usize = LINE;
/// Bytes of each half of a packed team's scratch memory.
const PACKED_HALF: usize = 256;
/// Calls by which a member may give something that others have not taken yet: in the world, where members take turns
/// on few CPUs for each arrival between; and in another team, which has less memory.
const AHEAD: usize = 256;
const PACKED_AHEAD: usize = 32;
const RECENT: usize = 6;

/// How a team's symmetric memory is laid out: arrival words by [epoch parity][slot] and the words of calls
/// [ahead](super::ahead) of an arrival; then scratch memory in two halves, one for each parity, and as much
/// for those calls as is in a half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Of the arrival of all by each other.
    flat: Dissemination,
    /// Of arrival host by host.
    by_host: HierarchicalRadix,
    /// Arrival words of an epoch.
    slots: usize,
    /// Whether members may have to take turns on their CPUs.
    in_turns: bool,
    /// Words from one slot to the next.
    apart: usize,
    /// Slots of calls ahead of an arrival; the last is for who [takes](Core::word_of_taking) in one.
    ahead: usize,
    /// Bytes of each half of the scratch memory.
    half: usize,
}

/// How the PEs of a world are spread over hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobShape {
    pub pes: usize,
    pub hosts: usize,
    /// PEs of the host that has most.
    pub max_pes_per_host: usize,
    /// Whether PEs of some host outnumber its CPUs.
    pub oversubscribed: bool,
}

impl Layout {
    /// For a world: a line for each word, and few rounds.
    pub(crate) fn wide(crowd: JobShape, half: usize) -> Self {
        // One round up to 8 PEs. Where PEs take turns on few CPUs a round costs a turn of each, so
        // one round serves longer there; where they run at once, messages cost more than rounds.
        let one_round = if crowd.oversubscribed { 64 } else { 8 };
        let radix = |count: usize, one_round: usize| match count <= one_round {
            true => count.max(2),
            false => count.isqrt() + 1,
        };
        let by_host = HierarchicalRadix {
            near: radix(crowd.max_pes_per_host, one_round),
            // Each of a host's members has its share of the words across.
            across: radix(crowd.hosts, 8 * crowd.max_pes_per_host),
        };
        let flat = radix(crowd.pes, one_round);
        Self::new(crowd, flat, by_host, (LINE, AHEAD), half)
    }

    /// For teams of a world: a line for each round's words.
    pub(crate) fn packed(crowd: JobShape) -> Self {
        let by_host = HierarchicalRadix {
            near: PACKED,
            across: PACKED,
        };
        Self::new(crowd, PACKED, by_host, (1, PACKED_AHEAD), PACKED_HALF)
    }

    fn new(
        crowd: JobShape,
        radix: usize,
        by_host: HierarchicalRadix,
        (apart, ahead): (usize, usize),
        half: usize,
    ) -> Self {
        let flat = Dissemination { radix, first: 0 };
        let slots = flat.rounds(crowd.pes) * flat.slots();
        let two_levels = match 1 < crowd.hosts && crowd.hosts < crowd.pes {
            true => by_host.slots(crowd.max_pes_per_host, crowd.hosts),
            false => 0,
        };
        Layout {
            flat,
            by_host,
            slots: slots.max(two_levels),
            in_turns: crowd.oversubscribed,
            apart,
            ahead,
            half,
        }
    }

    fn word_bytes(self) -> usize {
        (2 * self.slots + self.ahead) * self.apart * size_of::<u64>()
    }

    /// Bytes that a team needs.
    pub(crate) fn bytes(self) -> usize {
        self.word_bytes() + 3 * self.half
    }

    /// How members arrive, whatever their hosts.
    fn rounds(self, members: &Group) -> Box<[Round]> {
        let all = (members.len(), members.me());
        self.flat.of(all, |_| true, |at, _| at as u32).into()
    }
}

/// A team, as one of its members has it.
#[derive(Debug)]
pub(crate) struct TeamState {
    pub members: Group,
    /// How they arrive.
    pub rounds: Box<[Round]>,
    layout: Layout,
    words: Sym<u64>,
    scratch: Sym<u8>,
    /// Whether every member's memory is loaded and stored by every other.
    pub mapped: bool,
    /// Its members by host, where that tells how to go.
    pub hosts: Option<HostGroups>,
    /// Its place in the pool, if it can be destroyed.
    slot: Option<usize>,
    pub(super) state: Mutex<EpochState>,
}

/// How far a team has come on this PE.
#[derive(Debug, Default)]
pub(crate) struct EpochState {
    pub epoch: u32,
    /// Running hash of the collective calls that count without a barrier of their own (M9).
    pub history: u64,
    pub calls: u64,
    /// The last few, in words, for the error that a mismatch is.
    pub recent: VecDeque<String>,
    /// Calls since the last arrival in which one member gave and did not wait, and bytes of the memory for
    /// them that are in use.
    pub ahead: usize,
    pub used: usize,
    /// Who gave in the last of them, by its place in the team, and how many bytes.
    pub last: (usize, usize),
    /// Why there can be no collective call any more.
    pub aborted: Option<String>,
}

impl TeamState {
    /// A team in zeroed memory of [`Layout::bytes`], whose epochs begin after `epoch`.
    pub(crate) fn new(
        members: Group,
        layout: Layout,
        memory: Sym<u8>,
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
            state: Mutex::new(state),
        })
    }

    /// Gives a team that nobody has used yet other members; the memory has room for as many.
    pub(crate) fn set_members(&mut self, members: Group) {
        self.rounds = self.layout.rounds(&members);
        self.members = members;
    }

    pub(crate) fn in_slot(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Given the host of each PE of the world, if every PE maps all of its host.
    pub(crate) fn on_hosts(mut self, hosts: Option<&[u32]>) -> Self {
        if let Some(groups) = hosts.and_then(|hosts| HostGroups::groups(&self.members, hosts)) {
            let by_host = self.layout.by_host;
            self.rounds = by_host.by_host(&groups.members, groups.mine).into();
            self.hosts = Some(HostGroups::of(groups, by_host.across));
        }
        self
    }

    pub(crate) fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// A context for operations towards the members, by their numbers in the team. The caller says how long it
    /// lives: no longer than the team.
    pub(super) fn context<'c>(
        &self,
        of: &Context<'_>,
        options: ContextOptions,
    ) -> Result<Context<'c>> {
        if std::ptr::eq(self, &raw const of.shared.sync_area.all) {
            return of.context_of(None, options);
        }
        let pes = self.members.pes().map(|pe| pe as u32).collect();
        of.context_of(Some(&pes), options)
    }

    /// An arrival word, or that of a call [ahead](super::ahead).
    #[inline]
    pub(crate) fn word(&self, epoch: u32, mail: SyncSlot) -> Result<Sym<u64>> {
        self.words.at(self.place(epoch, mail))
    }

    #[inline]
    fn place(&self, epoch: u32, mail: SyncSlot) -> usize {
        let parity = (epoch & 1) as usize;
        (parity * self.layout.slots + mail.slot as usize) * self.layout.apart
    }

    /// The half of the scratch memory that the arrival of this epoch announces. What this PE writes there
    /// before may be read by all until they arrive in the next: so it is written again two epochs later.
    pub(crate) fn scratch(&self, epoch: u32) -> Result<Sym<u8>> {
        let (parity, half) = ((epoch & 1) as usize, self.layout.half);
        self.scratch.range(parity * half..(parity + 1) * half)
    }

    /// Where members have the [word](Self::word) of a call [ahead](super::ahead) of an epoch's arrival, by its number
    /// since the last one; none where there is no room for one more.
    #[inline(always)]
    pub(super) fn slot_ahead(&self, epoch: u32, number: usize) -> Option<u32> {
        // Behind those of both parities.
        let before = (2 - (epoch & 1) as usize) * self.layout.slots;
        (number + 1 < self.layout.ahead).then_some((before + number) as u32)
    }

    /// Where a member that waits to take in a call [ahead](super::ahead) says of which one.
    pub(super) fn word_of_taking(&self) -> Result<Sym<u64>> {
        let slots = 2 * self.layout.slots + self.layout.ahead;
        self.words.at((slots - 1) * self.layout.apart)
    }

    /// So many bytes behind a word in its own cache line, if there are as many.
    #[inline(always)]
    pub(super) fn beside(&self, epoch: u32, mail: SyncSlot, bytes: usize) -> Option<Sym<u8>> {
        let line = self.layout.apart * size_of::<u64>();
        if size_of::<u64>() + bytes > line {
            return None;
        }
        let start = self.place(epoch, mail) * size_of::<u64>() + size_of::<u64>();
        let words: Sym<u8> = self.words.cast().ok()?;
        words.range(start..start + bytes).ok()
    }

    /// What calls ahead of an arrival give, from byte `used` on; and how many of them `bytes` take.
    #[inline(always)]
    pub(super) fn scratch_ahead(&self, used: usize, bytes: usize) -> Option<(Sym<u8>, usize)> {
        let start = 2 * self.layout.half + used;
        let line = self.layout.apart * size_of::<u64>();
        let taken = bytes.next_multiple_of(line);
        let fits = used + bytes <= self.layout.half;
        let place = fits.then(|| self.scratch.range(start..start + bytes).ok())?;
        Some((place?, taken))
    }

    /// Bytes of each half of the scratch memory.
    pub(crate) fn half(&self) -> usize {
        self.layout.half
    }

    /// The rounds of an arrival after which members have heard of all on their hosts, and before which they
    /// have told no other host anything.
    pub(super) fn rounds_near(&self) -> usize {
        let near = Dissemination {
            radix: self.layout.by_host.near,
            first: 0,
        };
        near.rounds(self.hosts.as_ref().map_or(0, HostGroups::near))
    }

    /// Whether all members load each other's memory and hear of all others in an arrival's only round.
    pub(crate) fn meets_at_once(&self) -> bool {
        self.mapped && self.hosts.is_none() && self.rounds.len() == 1
    }

    /// Members on this PE's host, as far as it knows.
    pub(crate) fn near(&self) -> usize {
        match &self.hosts {
            Some(hosts) => hosts.near(),
            None if self.mapped => self.members.len(),
            None => 1,
        }
    }

    /// Whether members may have to take turns on their CPUs. The same on each.
    pub(crate) fn oversubscribed(&self) -> bool {
        self.layout.in_turns
    }

    /// All of the team's words.
    pub(crate) fn words(&self) -> Sym<u64> {
        self.words
    }

    /// Begins anew, as it was made: no PE is in a call of it, and none comes to one before all have done this.
    pub(crate) fn begin_anew(&self, world: &Context<'_>) {
        world.own(self.words).zero();
        *self.state() = EpochState::default();
    }

    #[inline]
    pub(crate) fn state(&self) -> MutexGuard<'_, EpochState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EpochState {
    /// Counts a collective call that has its own place in the sequence (M9).
    pub(crate) fn record(&mut self, digest: CallSignature, words: String) {
        self.calls += 1;
        self.history = CallSignature::of_history(self.history)
            .and(digest.value())
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

    /// That each of `pes` members hears of all, where member i arrives in `rounds(i)`, and that no word is
    /// written twice in an epoch, nor left unread.
    fn all_hear_of_all(pes: usize, slots: usize, rounds: impl Fn(usize) -> Box<[Round]>) {
        let known = hear_of_what_was_done(pes, slots, rounds, |_| 0);
        assert!(known.iter().flatten().all(|known| *known));
    }

    /// Of which others each has heard after they had done as many rounds as `before` says, and something then.
    fn hear_of_what_was_done(
        pes: usize,
        slots: usize,
        rounds: impl Fn(usize) -> Box<[Round]>,
        before: impl Fn(usize) -> usize,
    ) -> Vec<Vec<bool>> {
        let all: Vec<Box<[Round]>> = (0..pes).map(rounds).collect();
        let mut known = vec![vec![false; pes]; pes];
        // What was written, by its reader, slot and writer.
        let mut words = std::collections::HashMap::new();
        let mut written = std::collections::HashSet::new();
        let mut at = vec![(0, false); pes];
        let mut moves = true;
        while std::mem::take(&mut moves) {
            for me in 0..pes {
                let (round, told) = &mut at[me];
                known[me][me] |= *round >= before(me);
                let Some(now) = all[me].get(*round) else {
                    continue;
                };
                if !*told {
                    for mail in &now.sends {
                        assert!((mail.slot as usize) < slots);
                        assert!(written.insert((mail.member, mail.slot)));
                        words.insert((mail.member, mail.slot, me as u32), known[me].clone());
                    }
                    (*told, moves) = (true, true);
                }
                let place = |mail: &SyncSlot| (me as u32, mail.slot, mail.member);
                if now
                    .receives
                    .iter()
                    .all(|mail| words.contains_key(&place(mail)))
                {
                    for mail in &now.receives {
                        let theirs = words.remove(&place(mail)).unwrap();
                        known[me]
                            .iter_mut()
                            .zip(theirs)
                            .for_each(|(mine, it)| *mine |= it);
                    }
                    (*round, *told, moves) = (*round + 1, false, true);
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
            let crowd = on_one_host(n);
            let wide = [false, true].map(|oversubscribed| {
                let crowd = JobShape {
                    oversubscribed,
                    ..crowd
                };
                Layout::wide(crowd, 64)
            });
            let packed = [crowd, on_one_host(4096)].map(Layout::packed);
            for layout in wide.into_iter().chain(packed) {
                all_hear_of_all(n, layout.slots, |me| layout.rounds(&Group::all(n, me)));
            }
        }
    }

    #[test]
    fn hosts_reach_each_other_by_few_words() {
        // Members by host, in any order.
        let spread: [&[u32]; 6] = [
            &[0, 1, 0, 1],
            &[0, 0, 0, 1],
            &[0, 0, 1, 2, 1, 0],
            &[3, 1, 2, 0, 3, 1, 2, 0, 3, 3, 3],
            &std::array::from_fn::<u32, 96, _>(|pe| pe as u32 % 48),
            &std::array::from_fn::<u32, 150, _>(|pe| pe as u32 / 2),
        ];
        for hosts in spread {
            let pes = hosts.len();
            let count = |host: u32| hosts.iter().filter(|of| **of == host).count();
            let number = *hosts.iter().max().unwrap() as usize + 1;
            let crowd = JobShape {
                pes,
                hosts: number,
                max_pes_per_host: (0..number as u32).map(count).max().unwrap(),
                oversubscribed: false,
            };
            let in_turns = JobShape {
                oversubscribed: true,
                ..crowd
            };
            for layout in [
                Layout::wide(crowd, 64),
                Layout::wide(in_turns, 64),
                Layout::packed(crowd),
            ] {
                let memory = Sym::new(2, 0, 0, layout.bytes());
                let rounds = |me: usize| {
                    let core =
                        TeamState::new(Group::all(pes, me), layout, memory, false, 0).unwrap();
                    core.on_hosts(Some(hosts)).rounds
                };
                all_hear_of_all(pes, layout.slots, rounds);
                // What members do when their hosts are here is known, of one of each host, to all.
                let cores: Vec<TeamState> = (0..pes)
                    .map(|me| {
                        let members = Group::all(pes, me);
                        let core = TeamState::new(members, layout, memory, false, 0).unwrap();
                        core.on_hosts(Some(hosts))
                    })
                    .collect();
                let near = |me: usize| cores[me].rounds_near();
                let known = hear_of_what_was_done(pes, layout.slots, rounds, near);
                for (core, known) in cores.iter().zip(&known) {
                    let tellers: Vec<usize> =
                        core.hosts.as_ref().unwrap().representatives().collect();
                    let of: Vec<u32> = tellers.iter().map(|teller| hosts[*teller]).collect();
                    assert!(of.iter().copied().eq(0..number as u32), "{of:?}");
                    assert!(tellers.iter().all(|teller| known[*teller]));
                    let me = core.members.me();
                    assert_eq!(tellers[hosts[me] as usize], me);
                }
                // Across go no more words than hosts would need that had one member each.
                let across = |me: usize| {
                    let rounds = rounds(me);
                    let far = |mail: &&SyncSlot| hosts[mail.member as usize] != hosts[me];
                    rounds
                        .iter()
                        .flat_map(|round| &round.sends)
                        .filter(far)
                        .count()
                };
                let words: usize = (0..pes).map(across).sum();
                let alone = layout.by_host.across;
                let alone = Dissemination {
                    radix: alone,
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
        let bytes = |pes: usize, hosts: usize, most_near: usize| {
            Layout::packed(JobShape {
                pes,
                hosts,
                max_pes_per_host: most_near,
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
            let memory = Sym::new(2, 0, 4096, layout.bytes());
            let core = TeamState::new(Group::all(9, 4), layout, memory, true, 0).unwrap();
            let mut places: Vec<(u64, u64)> = Vec::new();
            for epoch in [6, 7] {
                for mail in core.rounds.iter().flat_map(|round| &round.receives) {
                    let word = core.word(epoch, *mail).unwrap();
                    places.push((word.offset(), 8));
                }
                let scratch = core.scratch(epoch).unwrap();
                places.push((scratch.offset(), scratch.len() as u64));
            }
            places.sort_unstable();
            let end = 4096 + layout.bytes() as u64;
            assert!(
                places
                    .iter()
                    .all(|(at, len)| *at >= 4096 && at + len <= end)
            );
            assert!(places.array_windows().all(|[a, b]| a.0 + a.1 <= b.0));
        }
    }

    /// One that is alone on its host hears of others in a single round, and they of it in none.
    #[test]
    fn members_on_several_hosts_do_not_meet_at_once() {
        let crowd = JobShape {
            hosts: 2,
            max_pes_per_host: 2,
            ..on_one_host(3)
        };
        for me in 0..3 {
            let core = |hosts| {
                let layout = Layout::wide(crowd, 64);
                let memory = Sym::new(2, 0, 0, layout.bytes());
                let core = TeamState::new(Group::all(3, me), layout, memory, true, 0).unwrap();
                core.on_hosts(hosts)
            };
            assert!(core(None).meets_at_once());
            assert!(!core(Some(&[0, 0, 1])).meets_at_once());
        }
    }
}
