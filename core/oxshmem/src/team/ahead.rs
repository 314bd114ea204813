//! Calls in which one member gives and the others take, where all load each other's memory. Who gives does
//! not wait: it may be some such calls ahead of who takes.
//!
//! It puts what it gives into its own memory, then tells each member by a word that it is there. Words and
//! memory are used again after an arrival: by then all have taken. Where there is no room for one more, a call
//! begins with an arrival; all members count alike. A word carries the next arrival's epoch and, as an
//! [arrival](crate::arrival)'s does, a digest of the call and of those before it.
//!
//! A call that fails before anything was given fails by an arrival, as every other does. Who waits for a word
//! looks at the arrivals, too: where the giver has arrived, or anyone who has failed, the word will not come.
//! So does who hears that the giver's calls are others: all the rest find it there by their next call.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::Width;

use super::turn::Turn;
use crate::arrival::{self, BROKEN, DIGEST, FAILED, MISMATCH};
use crate::futex::Kernel;
use crate::mapped::Bytes;
use crate::order::Inserted;
use crate::park;
use crate::sync::Digest;
use crate::wait::Reason;
use crate::{Error, Result, Sym};

/// A call ahead of the next arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    word: Sym<u64>,
    /// The next arrival's epoch, and the call with those before it.
    told: u64,
    /// Where the giver has what it gives.
    pub given: Sym<u8>,
}

/// What may end a wait for a word.
enum Heard {
    Given(u64),
    /// There is an arrival to make instead.
    Elsewhere,
}

impl Turn<'_> {
    /// Begins a call in which one member, by its place in the team, gives so many bytes; if there is no room for
    /// it now, by an arrival.
    pub(crate) fn ahead(&mut self, from: usize, bytes: usize) -> Result<Ahead> {
        self.not_broken()?;
        let core = self.core;
        let room = |used, number| core.scratch_ahead(used, bytes).zip(core.word_ahead(number));
        let room = match room(self.state.used, self.state.ahead) {
            Some(room) => Some(room),
            None => {
                self.arrive(Ok(()))?;
                room(0, 0)
            }
        };
        let Some(((given, taken), word)) = room else {
            return Err(Error::Argument {
                call: self.call.name,
                what: format!("{bytes} bytes do not fit into the team's scratch memory"),
            });
        };
        self.state.used += taken;
        self.state.ahead += 1;
        self.state.last = (from, bytes);
        let history = Digest::of_history(self.state.history).and(self.call.digest.value());
        self.state.history = history.value();
        let epoch = self.state.epoch.wrapping_add(1);
        Ok(Ahead {
            word,
            told: arrival::word(epoch, history.value() & DIGEST),
            given,
        })
    }

    /// Tells all others that this member has given.
    pub(crate) fn give(&self, ahead: Ahead) -> Result<()> {
        let (world, members) = (self.world, &self.core.members);
        let me = world.my_pe();
        for to in members.pes().filter(|to| *to != me) {
            world.tell(self.call.name, ahead.word, ahead.told, to)?;
        }
        // Orders the words before the look at the sleepers (park::ring).
        fence(Ordering::SeqCst);
        let bells = members.pes().filter(|to| *to != me);
        for bell in bells.filter_map(|to| world.bell(to)) {
            park::ring(bell, &Kernel);
        }
        match world.shared.losses.any() {
            true => self.none_lost(),
            false => Ok(()),
        }
    }

    /// Waits until a member, by its place in the team, has given.
    pub(crate) fn take(&mut self, ahead: Ahead, from: usize) -> Result<()> {
        match self.hear_of(ahead, from) {
            Ok(Heard::Given(told)) if told == ahead.told => Ok(()),
            Ok(Heard::Given(_)) => self.fail_together(MISMATCH),
            Ok(Heard::Elsewhere) => self.fail_together(FAILED),
            Err(error) => {
                self.abandon(&error);
                Err(error)
            }
        }
    }

    fn hear_of(&self, ahead: Ahead, from: usize) -> Result<Heard> {
        let (world, core) = (self.world, self.core);
        let word = world.own(ahead.word);
        let epoch = (ahead.told >> 32) as u32;
        let given = || {
            let told = word.look(Width::W64, Inserted::Arrived);
            (told >> 32 == ahead.told >> 32).then_some(Heard::Given(told))
        };
        let hears = || core.rounds.iter().flat_map(|round| &round.hears);
        let elsewhere = || {
            hears().any(|mail| {
                let Ok(word) = core.word(epoch, *mail) else {
                    return false;
                };
                let told = world.own(word).look(Width::W64, Inserted::Arrived);
                let failed = told & (FAILED | MISMATCH | BROKEN) != 0;
                arrival::accepts(told, epoch) && (failed || mail.member as usize == from)
            })
        };
        let giver = self.pe(from);
        let tell = || {
            (
                format!("PE {giver}"),
                format!("what it gives in {}", (self.call.words)()),
            )
        };
        let reason = Reason {
            call: self.call.name,
            needs: self.needs,
            tell: &tell,
        };
        world.wait(&reason, world.bell(world.my_pe()), || {
            given().or_else(|| match elsewhere() {
                // What was given before it arrived is there by now.
                true => given().or(Some(Heard::Elsewhere)),
                false => None,
            })
        })
    }
}
