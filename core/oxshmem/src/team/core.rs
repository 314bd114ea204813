//! What a team is made of: its members, its words in symmetric memory, and how far it has come.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hosts::Hosts;
use super::members::Members;
use crate::arrival::Shape;
use crate::sync::Digest;
use crate::{Result, Sym};

/// Words of a cache line.
pub(crate) const LINE: usize = 64 / size_of::<u64>();
/// Digits of a round where the words of one share a line.
const PACKED: usize = LINE;
/// Bytes of each half of a packed team's scratch memory.
const PACKED_HALF: usize = 256;
const RECENT: usize = 6;

/// How a team's symmetric memory is laid out: arrival words by [epoch parity][round][digit], then
/// scratch memory in two halves, one for each parity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The most digits of a round.
    radix: usize,
    /// The most rounds.
    rounds: usize,
    /// Words from one digit's word to the next.
    apart: usize,
    /// Bytes of each half of the scratch memory.
    half: usize,
}

/// Rounds by which `pes` PEs all hear of each other.
fn rounds(pes: usize, radix: usize) -> usize {
    let (mut rounds, mut reach) = (0, 1);
    while reach < pes {
        reach *= radix;
        rounds += 1;
    }
    rounds
}

impl Layout {
    /// For a world: a line for each word, and few rounds.
    pub(crate) fn wide(pes: usize, oversubscribed: bool, half: usize) -> Self {
        // One round up to 8 PEs. Where PEs take turns on few CPUs a round costs a turn of each, so
        // one round serves longer there; where they run at once, messages cost more than rounds.
        let one_round = if oversubscribed { 64 } else { 8 };
        let radix = if pes <= one_round {
            pes.max(2)
        } else {
            pes.isqrt() + 1
        };
        Layout {
            radix,
            rounds: rounds(pes, radix),
            apart: LINE,
            half,
        }
    }

    /// For teams of a world of so many PEs: a line for each round's words.
    pub(crate) fn packed(pes: usize) -> Self {
        Layout {
            radix: PACKED,
            rounds: rounds(pes, PACKED),
            apart: 1,
            half: PACKED_HALF,
        }
    }

    fn words_a_round(self) -> usize {
        (self.radix * self.apart).next_multiple_of(LINE)
    }

    fn word_bytes(self) -> usize {
        2 * self.rounds * self.words_a_round() * size_of::<u64>()
    }

    /// Bytes that a team needs.
    pub(crate) fn bytes(self) -> usize {
        self.word_bytes() + 2 * self.half
    }

    fn shape(self, members: &Members) -> Shape {
        let pes = members.len();
        let radix = self.radix.min(pes.max(2));
        Shape {
            me: members.me(),
            pes,
            radix,
            rounds: rounds(pes, radix).min(self.rounds),
        }
    }
}

/// A team, as one of its members has it.
#[derive(Debug)]
pub(crate) struct Core {
    pub members: Members,
    pub shape: Shape,
    layout: Layout,
    words: Sym<u64>,
    scratch: Sym<u8>,
    /// Whether every member's memory is loaded and stored by every other.
    pub mapped: bool,
    /// Its members by host, where that tells how to go.
    pub hosts: Option<Hosts>,
    /// Its place in the pool, if it can be destroyed.
    slot: Option<usize>,
    state: Mutex<State>,
}

/// How far a team has come on this PE.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub epoch: u32,
    /// Running hash of the collective calls that count without a barrier of their own (M9).
    pub history: u64,
    pub calls: u64,
    /// The last few, in words, for the error that a mismatch is.
    pub recent: VecDeque<String>,
    /// Why there can be no collective call any more.
    pub broken: Option<String>,
}

impl Core {
    /// A team in zeroed memory of [`Layout::bytes`], whose epochs begin after `epoch`.
    pub(crate) fn new(
        members: Members,
        layout: Layout,
        memory: Sym<u8>,
        mapped: bool,
        epoch: u32,
    ) -> Result<Self> {
        let words = layout.word_bytes();
        let state = State {
            epoch,
            ..State::default()
        };
        Ok(Core {
            shape: layout.shape(&members),
            members,
            layout,
            words: memory.range(..words)?.cast()?,
            scratch: memory.range(words..words + 2 * layout.half)?,
            mapped,
            hosts: None,
            slot: None,
            state: Mutex::new(state),
        })
    }

    /// Gives a team that nobody has used yet other members; the memory has room for as many.
    pub(crate) fn set_members(&mut self, members: Members) {
        self.shape = self.layout.shape(&members);
        self.members = members;
    }

    pub(crate) fn in_slot(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Given the host of each PE of the world, if every PE maps all of its host.
    pub(crate) fn on_hosts(mut self, hosts: Option<&[u32]>) -> Self {
        self.hosts = hosts.and_then(|hosts| Hosts::of(&self.members, hosts));
        self
    }

    pub(crate) fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// An arrival word.
    #[inline]
    pub(crate) fn word(&self, epoch: u32, round: usize, digit: usize) -> Result<Sym<u64>> {
        let parity = (epoch & 1) as usize;
        let round = (parity * self.layout.rounds + round) * self.layout.words_a_round();
        self.words.at(round + digit * self.layout.apart)
    }

    /// The half of the scratch memory that the arrival of this epoch announces. What this PE writes there
    /// before may be read by all until they arrive in the next: so it is written again two epochs later.
    pub(crate) fn scratch(&self, epoch: u32) -> Result<Sym<u8>> {
        let (parity, half) = ((epoch & 1) as usize, self.layout.half);
        self.scratch.range(parity * half..(parity + 1) * half)
    }

    /// Bytes of each half of the scratch memory.
    pub(crate) fn half(&self) -> usize {
        self.layout.half
    }

    /// All of the team's words.
    pub(crate) fn words(&self) -> Sym<u64> {
        self.words
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a collective call that has its own place in the sequence (M9).
    pub(crate) fn record(&mut self, digest: Digest, words: String) {
        self.calls += 1;
        self.history = Digest::of_history(self.history)
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

    #[test]
    fn dissemination_reaches_every_pe_from_every_pe() {
        for n in (1..70).chain([512, 1000]) {
            let wide = [false, true].map(|crowd| Layout::wide(n, crowd, 64));
            for layout in [wide[0], wide[1], Layout::packed(n), Layout::packed(4096)] {
                let shape = layout.shape(&Members::all(n, 0));
                assert!(shape.rounds <= layout.rounds && shape.radix <= layout.radix);
                // Heard from, as distances backwards from PE 0.
                let mut heard = vec![0_usize];
                let mut distance = 1;
                for _ in 0..shape.rounds {
                    let known = heard.clone();
                    heard = std::iter::once(0)
                        .chain(shape.digits(distance))
                        .flat_map(|k| known.iter().map(move |d| (d + k * distance) % n))
                        .collect();
                    heard.sort_unstable();
                    heard.dedup();
                    distance *= shape.radix;
                }
                assert_eq!(heard.len(), n, "{n} PEs, {shape:?}");
            }
        }
    }

    #[test]
    fn words_and_scratch_lie_apart() {
        for layout in [Layout::packed(300), Layout::wide(9, false, 128)] {
            let memory = Sym::new(2, 0, 4096, layout.bytes());
            let core = Core::new(Members::all(9, 4), layout, memory, true, 0).unwrap();
            let mut places: Vec<(u64, u64)> = Vec::new();
            for epoch in [6, 7] {
                for round in 0..core.shape.rounds {
                    for digit in 1..core.shape.radix {
                        let word = core.word(epoch, round, digit).unwrap();
                        places.push((word.offset(), 8));
                    }
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
}
