//! Arrival of all PEs, by dissemination through words of symmetric memory; the base of every
//! collective call.
//!
//! In round r each PE writes a word to the PEs at distances k·radixʳ (0 < k < radix) and waits for
//! those of as many others; after ⌈log_radix n⌉ rounds each has heard, directly or not, of all. The
//! word carries the epoch, and what the sender knows so far: a digest of the collective call it is
//! in (all must be equal, M36) and whether it failed on any PE (M13). So one exchange is barrier,
//! check and agreement together, and its verdict is the same on every PE.
//!
//! Words of odd and even epochs are apart: a PE can be one epoch ahead of another, never two.

use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem_transport::Width;

use crate::arrival::{self, BROKEN, DIGEST, FAILED, MISMATCH, Post, Shape};
use crate::futex::Kernel;
use crate::mapped::Bytes;
use crate::messages::{Message, of_bootstrap};
use crate::order::{Class, Inserted};
use crate::park::{self, Bell};
use crate::rma::on_gpu;
use crate::wait::{Needs, Reason};
use crate::wire::Path;
use crate::{Error, Result, Sym, World};

/// Each PE's part of the library's own symmetric memory.
#[derive(Debug)]
pub(crate) struct Internal {
    /// Futex word and count of sleepers.
    bell: Sym<u32>,
    /// Arrival words: [epoch parity][round][digit], a cache line each.
    slots: Sym<u64>,
    pub radix: usize,
    pub rounds: usize,
    state: Mutex<Collective>,
}

/// What this PE has called so far.
#[derive(Debug, Default)]
struct Collective {
    epoch: u32,
    /// Running hash of the collective calls that count without a barrier of their own (M9).
    history: u64,
    calls: u64,
    /// The last few, in words, for the error that a mismatch is.
    recent: VecDeque<String>,
    /// Why there can be no collective call any more.
    broken: Option<String>,
}

const LINE: usize = 64 / size_of::<u64>();
const RECENT: usize = 6;

/// A collective call and its arguments, as a number that all PEs must agree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Of a call's name.
    pub(crate) const fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
            i += 1;
        }
        Digest(hash)
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }

    /// With an argument.
    #[inline(always)]
    pub(crate) const fn and(self, argument: u64) -> Self {
        let mixed = (self.0 ^ argument).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Digest(mixed ^ (mixed >> 29))
    }
}

impl Internal {
    /// How many bytes `n` PEs need, and the radix and rounds they use.
    fn shape(n: usize, oversubscribed: bool) -> (usize, usize) {
        // One round up to 8 PEs. Where PEs take turns on few CPUs a round costs a turn of each, so
        // one round serves longer there; where they run at once, messages cost more than rounds.
        let one_round = if oversubscribed { 64 } else { 8 };
        let radix = if n <= one_round {
            n.max(2)
        } else {
            n.isqrt() + 1
        };
        let mut rounds = 0;
        let mut reach = 1;
        while reach < n {
            reach *= radix;
            rounds += 1;
        }
        (radix, rounds)
    }

    /// Lays the words out with `place`, which allocates zeroed bytes at the same offset on every PE.
    pub(crate) fn new(
        n: usize,
        oversubscribed: bool,
        mut place: impl FnMut(usize) -> Result<Sym<u8>>,
    ) -> Result<Self> {
        let (radix, rounds) = Self::shape(n, oversubscribed);
        let slots = 2 * rounds * radix * LINE;
        Ok(Internal {
            bell: place(64)?.cast()?,
            slots: place((slots * size_of::<u64>()).max(64))?.cast()?,
            radix,
            rounds,
            state: Mutex::default(),
        })
    }

    fn slot(&self, epoch: u32, round: usize, digit: usize) -> Result<Sym<u64>> {
        let parity = (epoch & 1) as usize;
        self.slots
            .at(((parity * self.rounds + round) * self.radix + digit) * LINE)
    }

    fn state(&self) -> MutexGuard<'_, Collective> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a collective call that has its own place in the sequence (M9).
    pub(crate) fn record(&self, digest: Digest, words: impl FnOnce() -> String) {
        let mut state = self.state();
        state.calls += 1;
        state.history = Digest(state.history).and(digest.0).and(state.calls).0;
        if state.recent.len() == RECENT {
            state.recent.pop_front();
        }
        let line = format!("#{} {}", state.calls, words());
        state.recent.push_back(line);
    }
}

/// The words of one collective call.
struct Words<'a> {
    world: &'a World,
    call: &'static str,
    epoch: u32,
    needs: Needs,
    /// The call and its arguments, in words.
    words: &'a dyn Fn() -> String,
}

impl Post for Words<'_> {
    type Error = Error;

    #[inline]
    fn tell(&self, round: usize, digit: usize, word: u64, to: usize) -> Result<()> {
        let slot = self.world.inner.internal.slot(self.epoch, round, digit)?;
        match self.world.tell(self.call, slot, word, to) {
            // Who has left in order has heard what it had to: the completion comes too late.
            Err(Error::PeerLost { pe, .. })
                if matches!(self.needs, Needs::Finalizing)
                    && !self.world.shared.losses.has_died(pe) =>
            {
                Ok(())
            }
            told => told,
        }
    }

    #[inline]
    fn fenced(&self) {
        self.world.peers.take_notes();
        if let Some(simulation) = &self.world.shared.simulation {
            simulation.fence(Inserted::QuietStores);
        }
    }

    #[inline]
    fn ring(&self, to: usize) {
        if let Some(bell) = self.world.bell(to) {
            park::ring(bell, &Kernel);
        }
    }

    #[inline]
    fn hear(&self, round: usize, digit: usize, from: usize) -> Result<u64> {
        let world = self.world;
        let slot = world.inner.internal.slot(self.epoch, round, digit)?;
        let arrived = world.own(slot);
        let tell = || {
            (
                format!("PE {from}"),
                format!("its arrival in {}", (self.words)()),
            )
        };
        let reason = Reason {
            call: self.call,
            needs: self.needs,
            tell: &tell,
        };
        // Whose words come by a lane rings no bell.
        let bell = world.bell(from).and_then(|_| world.bell(world.my_pe()));
        world.wait(&reason, bell, || {
            let word = arrived.look(Width::W64, Inserted::Arrived);
            arrival::accepts(word, self.epoch).then_some(word)
        })
    }
}

impl World {
    fn shape(&self) -> Shape {
        let internal = &self.inner.internal;
        Shape {
            me: self.my_pe(),
            pes: self.n_pes(),
            radix: internal.radix,
            rounds: internal.rounds,
        }
    }

    /// Where a PE sleeps, if it is mapped here.
    pub(crate) fn bell(&self, pe: usize) -> Option<Bell<'_>> {
        let span = self.peers.span(self.inner.internal.bell, pe)?;
        Some(Bell {
            rings: span.part(0, 4).atomic_u32(),
            sleepers: span.part(4, 4).atomic_u32(),
        })
    }

    /// Arrives in a collective call and waits for all. Stores made before are visible to every PE
    /// that returns from it (mapped) or as far as earlier quiets made them (lanes).
    ///
    /// `mine` is how this PE's part of the call went so far; the call fails on every PE if it failed
    /// on one. `words` tells the call and its arguments if the PEs turn out to disagree.
    #[inline]
    pub(crate) fn together(
        &self,
        call: &'static str,
        digest: Digest,
        mine: Result<()>,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        let well = match &mine {
            Ok(()) => self.agree(call, digest, false, Needs::Everyone, words)?,
            Err(error) => {
                let words = || format!("{} (which failed: {error})", words());
                self.agree(call, digest, true, Needs::Everyone, &words)?
            }
        };
        if well {
            Ok(())
        } else {
            self.failed_together(call, mine)
        }
    }

    /// Arrives in finalize, after which PEs leave.
    pub(crate) fn last_together(&self, digest: Digest, mine: Result<()>) -> Result<()> {
        let words = || "finalize()".into();
        if self.agree("finalize", digest, mine.is_err(), Needs::Finalizing, &words)? {
            return Ok(());
        }
        self.failed_together("finalize", mine)
    }

    /// Every PE is here, and knows that one or more failed: they tell each other why.
    #[cold]
    fn failed_together(&self, call: &'static str, mine: Result<()>) -> Result<()> {
        let why = mine
            .as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default();
        let all = self.shared.bootstrap.allgather(why.as_bytes());
        let all = all.map_err(|error| of_bootstrap(call, error))?;
        mine?;
        match all.iter().position(|said| !said.is_empty()) {
            Some(pe) => Err(Error::FailedElsewhere {
                call,
                pe,
                why: all
                    .get(pe)
                    .map(|w| String::from_utf8_lossy(w).into())
                    .unwrap_or_default(),
            }),
            // An error always has words.
            None => Err(Error::FailedElsewhere {
                call,
                pe: self.my_pe(),
                why: "it does not say why".into(),
            }),
        }
    }

    /// Gives whether the call went well on every PE so far.
    fn agree(
        &self,
        call: &'static str,
        digest: Digest,
        failed: bool,
        needs: Needs,
        words: &dyn Fn() -> String,
    ) -> Result<bool> {
        let mut state = self.inner.internal.state();
        if let Some(why) = &state.broken {
            return Err(Error::CollectivesEnded {
                call,
                why: why.clone(),
            });
        }
        state.epoch = state.epoch.wrapping_add(1);
        let mine = Digest(state.history).and(digest.0).0 & DIGEST;
        let known = mine | if failed { FAILED } else { 0 };
        let post = Words {
            world: self,
            call,
            epoch: state.epoch,
            needs,
            words,
        };
        let known = match arrival::disseminate(&post, self.shape(), state.epoch, known) {
            Ok(known) => known,
            Err(error) => {
                // Of a PE that died everyone hears. Any other failure is this PE's own, that of its way
                // to a PE that lives included: it is out of step for good, and the others must not
                // wait for it.
                let died = matches!(error, Error::PeerLost { pe, .. } if self.hears_of_end(pe));
                if !died {
                    state.broken = Some(error.to_string());
                    self.give_up(state.epoch);
                }
                return Err(error);
            }
        };
        if known & BROKEN != 0 {
            let why = "another PE gave up a collective call (its own error says why)";
            state.broken = Some(why.into());
            self.give_up(state.epoch);
            return Err(Error::CollectivesEnded {
                call,
                why: why.into(),
            });
        }
        if known & MISMATCH != 0 {
            return Err(self.mismatch(call, &mut state, &words()));
        }
        Ok(known & FAILED == 0)
    }

    /// Writes an arrival word of PE `to`.
    fn tell(&self, call: &'static str, slot: Sym<u64>, word: u64, to: usize) -> Result<()> {
        if let Some(span) = self.peers.span(slot, to) {
            span.tell(Width::W64, word, Inserted::Arrive);
            return Ok(());
        }
        self.point();
        match self.path(call, Class::Put, slot, to)? {
            Path::Near(place) => {
                place.tell(Width::W64, word, Inserted::Arrive);
                Ok(())
            }
            Path::Lane(via, far) => {
                let word = word.to_ne_bytes();
                // SAFETY: `word` outlives the call.
                unsafe { self.wire_put(call, via, far, word.as_ptr(), word.len()) }
            }
            Path::Staged(_) => Err(on_gpu(call, slot)),
        }
    }

    /// Tells everyone who may wait for this PE, in this call or the next, that it will not come.
    #[cold]
    fn give_up(&self, epoch: u32) {
        let shape = self.shape();
        for epoch in [epoch, epoch.wrapping_add(1)] {
            let mut distance = 1;
            for round in 0..shape.rounds {
                for k in shape.digits(distance) {
                    if let Ok(slot) = self.inner.internal.slot(epoch, round, k) {
                        let to = (shape.me + k * distance) % shape.pes;
                        match self.tell("give_up", slot, arrival::word(epoch, BROKEN), to) {
                            Ok(()) => {}
                            // The way there has failed, but perhaps not the way back: by the
                            // bootstrap it hears of this PE as of a lost one.
                            Err(_) => {
                                let _ = self.send("give_up", to, &Message::GaveUp);
                            }
                        }
                    }
                }
                distance *= shape.radix;
            }
        }
        fence(Ordering::SeqCst);
        for bell in (0..self.n_pes()).filter_map(|pe| self.bell(pe)) {
            park::ring(bell, &Kernel);
        }
    }

    /// Every PE is here, with the same verdict: they tell each other what they called.
    #[cold]
    fn mismatch(&self, call: &'static str, state: &mut Collective, words: &str) -> Error {
        let mut told: Vec<&str> = state.recent.iter().map(String::as_str).collect();
        // A call that is counted is in the list already.
        if !told.last().is_some_and(|last| last.ends_with(words)) {
            told.push(words);
        }
        let all = match self.shared.bootstrap.allgather(told.join(", ").as_bytes()) {
            Ok(all) => all,
            Err(error) => return of_bootstrap(call, error),
        };
        // The PEs agree again from here: they all start a new history.
        state.history = 0;
        state.calls = 0;
        state.recent.clear();
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (pe, said) in all.iter().enumerate() {
            let said = String::from_utf8_lossy(said).into_owned();
            match groups.iter_mut().find(|(other, _)| *other == said) {
                Some((_, pes)) => pes.push(pe.to_string()),
                None => groups.push((said, vec![pe.to_string()])),
            }
        }
        let detail = groups
            .into_iter()
            .map(|(said, pes)| format!("PE {} called {said}", pes.join(", ")))
            .collect::<Vec<_>>()
            .join("; ");
        Error::CollectiveMismatch { call, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dissemination_reaches_every_pe_from_every_pe() {
        for oversubscribed in [false, true] {
            for n in (1..70).chain([512, 1000]) {
                let (radix, rounds) = Internal::shape(n, oversubscribed);
                // Heard from, as distances backwards from PE 0.
                let mut heard = vec![0_usize];
                let mut distance = 1;
                for _ in 0..rounds {
                    let digits = (0..radix).take_while(|k| *k == 0 || k * distance < n);
                    let known = heard.clone();
                    heard = digits
                        .flat_map(|k| known.iter().map(move |d| (d + k * distance) % n))
                        .collect();
                    heard.sort_unstable();
                    heard.dedup();
                    distance *= radix;
                }
                assert_eq!(heard.len(), n, "n {n} radix {radix} rounds {rounds}");
            }
        }
    }

    #[test]
    fn a_digest_tells_calls_and_arguments_apart() {
        let a = Digest::of("malloc").and(8).and(16);
        let b = Digest::of("malloc").and(16).and(8);
        let c = Digest::of("align").and(8).and(16);
        assert!(a.0 & DIGEST != b.0 & DIGEST && a.0 & DIGEST != c.0 & DIGEST);
    }
}
