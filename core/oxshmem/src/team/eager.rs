//! Calls in which one member gives and the others take, where all load each other's memory. Who gives does
//! not wait: it may be some such calls ahead of who takes.
//!
//! It puts what it gives into its own memory, then tells each member by a word that it is there. What fits into the
//! word's cache line it gives each member with the word, for whom that is one transfer instead of two. Words and
//! memory are used again after an arrival: by then all have taken. Where there is no room for one more, a call
//! begins with an arrival; all members count alike. A word carries the next arrival's epoch and, as an
//! [arrival](crate::arrival)'s does, a digest of the call and of those before it.
//!
//! A call that fails before anything was given fails by an arrival, as every other does. Who waits for a word
//! looks at the arrivals, too. Who has arrived since either had this call's gift, or made another call, or failed in
//! this one. The giver tells itself first, in its own memory, so that in the first case its word is seen there; in the
//! others the call fails everywhere, and who waits arrives instead. So does who hears that the giver's calls are
//! others: all the rest find it there by their next call. Should those be calls of another team, for which they wait
//! there, then who arrived alone, whatever it called, finds what was given meanwhile and gives up after a while.
//! Where all take, and so wait for each other, each says after a while in which call it does: who finds that of the giver
//! arrives.

use std::time::Instant;

use oxshmem_transport::Width;

use super::call::{CollectiveCall, GRACE};
use super::state::{EpochState, LINE, TeamState};
use crate::dissemination::{self, FAILED, MISMATCH, SIGNATURE, SyncSlot, SyncWords};
use crate::hang::WaitedFor;
use crate::lane::AccessPath;
use crate::mapped::HostMemory;
use crate::order::{FenceSite, OpKind};
use crate::simulated::HostSpan;
use crate::sync_area::CallSignature;
use crate::wait::WaitReason;
use crate::{Error, Result, Sym};

/// A call ahead of the next arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EagerSlot {
    /// Where its word is.
    slot: u32,
    /// The next arrival's epoch, and the call with those before it.
    told: u64,
    /// Where the giver has what it gives.
    pub given: Sym<u8>,
    /// Whether that is beside the word, of every member.
    beside: bool,
}

impl EagerSlot {
    fn epoch(&self) -> u32 {
        (self.told >> 32) as u32
    }
}

/// In every word of a call ahead: one that was never written has it not, whatever the epoch.
const GIVEN: u64 = MISMATCH;

/// Whether a word is of a call ahead of this epoch's arrival.
#[inline]
pub(super) fn is_given(told: u64, epoch: u32) -> bool {
    (told >> 32) as u32 == epoch && told & GIVEN != 0
}

/// Turns that a member leaves to others after an arrival, at most, before the expected call.
const TURNS: u32 = 2;

/// Room for a call ahead.
struct EagerRoom {
    slot: u32,
    given: Sym<u8>,
    /// How much of the scratch memory it takes; nothing where it is beside the word.
    taken: usize,
}

impl EagerRoom {
    #[inline(always)]
    fn of(core: &TeamState, state: &EpochState, bytes: usize) -> Option<Self> {
        let epoch = state.epoch.wrapping_add(1);
        let slot = core.slot_ahead(epoch, state.ahead)?;
        let mail = SyncSlot {
            slot,
            member: core.members.me() as u32,
        };
        let (given, taken) = match core.beside(epoch, mail, bytes) {
            Some(given) => (given, 0),
            None => core.scratch_ahead(state.used, bytes)?,
        };
        Some(EagerRoom { slot, given, taken })
    }
}

/// What may end a wait for a word.
enum EagerPoll {
    /// The word is here, or the giver has it.
    Given { told: u64, here: bool },
    /// There is an arrival to make instead.
    Elsewhere,
    /// The giver takes.
    Nowhere,
}

impl CollectiveCall<'_> {
    /// Begins a call in which one member, by its place in the team, gives so many bytes; if there is no room for
    /// it now, by an arrival.
    #[inline]
    pub(crate) fn eager_slot(&mut self, from: usize, bytes: usize) -> Result<EagerSlot> {
        if self.state.aborted.is_some() {
            self.check_not_aborted()?;
        }
        let room = match EagerRoom::of(self.core, &self.state, bytes) {
            Some(room) => room,
            None => self.room_after_arrival(bytes).map_err(|error| *error)?,
        };
        self.state.used += room.taken;
        self.state.ahead += 1;
        self.state.last = (from, bytes);
        let history = CallSignature::of_history(self.state.history).and(self.call.digest.value());
        self.state.history = history.value();
        let epoch = self.state.epoch.wrapping_add(1);
        Ok(EagerSlot {
            slot: room.slot,
            told: dissemination::word(epoch, GIVEN | history.value() & SIGNATURE),
            given: room.given,
            beside: room.taken == 0,
        })
    }

    #[cold]
    #[inline(never)]
    fn room_after_arrival(&mut self, bytes: usize) -> Result<EagerRoom, Box<Error>> {
        self.arrive(Ok(()))?;
        EagerRoom::of(self.core, &self.state, bytes).ok_or_else(|| {
            Box::new(Error::Argument {
                call: self.call.name,
                what: format!("{bytes} bytes do not fit into the team's scratch memory"),
            })
        })
    }

    /// Tells all others that this member has given.
    #[inline]
    pub(crate) fn publish(&mut self, ahead: EagerSlot) -> Result<()> {
        match self.tell_given(ahead) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.abandon_next(&error);
                Err(error)
            }
        }
    }

    #[inline]
    fn tell_given(&self, ahead: EagerSlot) -> Result<()> {
        let (world, members) = (self.world, &self.core.members);
        let own = world.own(self.word_of(ahead)?);
        own.store_word(Width::W64, ahead.told, FenceSite::Arrive);
        let others = (0..members.len()).filter(|place| *place != members.me());
        let mut line = [0_u8; LINE * size_of::<u64>()];
        if ahead.beside
            && let Some(bytes) = line.get_mut(..ahead.given.len())
        {
            let call = self.call.name;
            world.get_bytes(call, bytes, ahead.given, world.my_pe())?;
            for place in others.clone() {
                world.put_bytes(call, ahead.given, bytes, members.pe(place))?;
            }
        }
        let others = others.map(|place| SyncSlot {
            slot: ahead.slot,
            member: place as u32,
        });
        self.prefetch_next(ahead.epoch());
        let words = self.words(ahead.epoch(), &self.call);
        dissemination::signal(&words, others, ahead.told)?;
        match world.shared.liveness.any() {
            true => self.none_lost(),
            false => Ok(()),
        }
    }

    /// Has the lines of the next call's words come here, from members that looked at them, while this call's go there:
    /// its fence waits no longer for several than for one.
    #[inline]
    fn prefetch_next(&self, epoch: u32) {
        let (core, me) = (self.core, self.core.members.me());
        let Some(slot) = core.slot_ahead(epoch, self.state.ahead) else {
            return;
        };
        let member = me as u32;
        let Ok(word) = core.word(epoch, SyncSlot { slot, member }) else {
            return;
        };
        for place in (0..core.members.len()).filter(|place| *place != me) {
            if let Some(there) = self.world.peers.span(word, core.members.pe(place)) {
                there.expect_store();
            }
        }
    }

    /// A call's word, here and at all others.
    #[inline]
    fn word_of(&self, ahead: EagerSlot) -> Result<Sym<u64>> {
        let mail = SyncSlot {
            slot: ahead.slot,
            member: self.core.members.me() as u32,
        };
        self.core.word(ahead.epoch(), mail)
    }

    /// Waits until a member, by its place in the team, has given; tells at which PE to find it.
    #[inline]
    pub(crate) fn consume(&mut self, ahead: EagerSlot, from: usize) -> Result<usize> {
        let giver = self.pe(from);
        match self.hear_of(ahead, from) {
            Ok(EagerPoll::Given { told, here }) if told == ahead.told => {
                Ok(match ahead.beside && here {
                    true => self.world.my_pe(),
                    false => giver,
                })
            }
            Ok(heard) => {
                let flag = match heard {
                    EagerPoll::Given { .. } | EagerPoll::Nowhere => MISMATCH,
                    EagerPoll::Elsewhere => FAILED,
                };
                self.fail_together(flag).map(|()| giver)
            }
            Err(error) => {
                self.abandon_next(&error);
                Err(error)
            }
        }
    }

    /// [`abandon`](Self::abandon) where the last arrival is complete, and others may still be in it.
    #[cold]
    fn abandon_next(&mut self, error: &Error) {
        let epoch = self.state.epoch;
        self.state.epoch = epoch.wrapping_add(1);
        self.abort(error);
        self.state.epoch = epoch;
    }

    #[inline]
    fn hear_of(&self, ahead: EagerSlot, from: usize) -> Result<EagerPoll> {
        let (world, core) = (self.world, self.core);
        let (epoch, giver) = (ahead.epoch(), self.pe(from));
        let word = self.word_of(ahead)?;
        let given = |place: HostSpan<'_>, here| {
            let told = place.load_word(Width::W64, FenceSite::Arrived);
            is_given(told, epoch).then_some(EagerPoll::Given { told, here })
        };
        let own = world.own(word);
        let theirs = self.at(giver, word)?.unwrap_or(own);
        let hears = || core.rounds.iter().flat_map(|round| &round.receives);
        let anyone_arrived = || {
            hears().any(|mail| {
                core.word(epoch, *mail).is_ok_and(|word| {
                    let told = world.own(word).load_word(Width::W64, FenceSite::Arrived);
                    dissemination::accepts(told, epoch)
                })
            })
        };
        let tell = || {
            (
                WaitedFor::Pe(giver),
                format!("what it gives in {}", (self.call.words)()),
            )
        };
        let reason = WaitReason {
            call: self.call.name,
            needs: self.needs,
            describe: &tell,
        };
        let heard = || {
            given(own, true).or_else(|| {
                anyone_arrived().then(|| given(theirs, false).unwrap_or(EagerPoll::Elsewhere))
            })
        };
        if world.shared.oversubscribed
            && let Some(heard) = given(own, true)
        {
            self.expect_more(epoch);
            return Ok(heard);
        }
        let mut since = None;
        world.wait_unless(&reason, world.parker(world.my_pe()), heard, || {
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            if waited < GRACE {
                return None;
            }
            let takes = self.takes_too(ahead, giver).transpose()?;
            Some(takes.map(|()| EagerPoll::Nowhere))
        })
    }

    /// After an arrival, gives the CPU to the giver of the expected call, as long as it has not given yet. The call would
    /// wait for that turn anyway. Where the program makes another call, one turn is lost, once.
    #[cold]
    pub(super) fn yield_to_root(&self) {
        let (core, me) = (self.core, self.core.members.me());
        let epoch = self.state.epoch.wrapping_add(1);
        let (giver, _) = self.state.last;
        let Some(slot) = core.slot_ahead(epoch, 0).filter(|_| giver != me) else {
            return;
        };
        let words = self.words(epoch, &self.call);
        let mail = SyncSlot {
            slot,
            member: me as u32,
        };
        for _ in 0..TURNS {
            if is_given(words.load_acquire(mail), epoch) {
                break;
            }
            std::thread::yield_now();
        }
    }

    /// Has the line of the next call's word come here while this call goes on: where PEs take turns, who finds a word
    /// at once is some calls behind its giver.
    #[inline]
    fn expect_more(&self, epoch: u32) {
        let (core, me) = (self.core, self.core.members.me());
        let Some(slot) = core.slot_ahead(epoch, self.state.ahead) else {
            return;
        };
        let member = me as u32;
        if let Ok(word) = core.word(epoch, SyncSlot { slot, member })
            && let Some(here) = self.world.peers.span(word, self.world.my_pe())
        {
            here.expect_load();
        }
    }

    /// A word at a PE whose memory is loaded here.
    #[inline]
    fn at(&self, pe: usize, word: Sym<u64>) -> Result<Option<HostSpan<'_>>> {
        let world = self.world;
        if let Some(span) = world.peers.span(word, pe) {
            return Ok(Some(HostSpan::Mapped(span)));
        }
        match world.path(self.call.name, OpKind::Put, word, pe)? {
            AccessPath::Mapped(place) => Ok(Some(place)),
            _ => Ok(None),
        }
    }

    /// Says that this PE takes in a call, and looks whether its giver says so, too.
    #[cold]
    fn takes_too(&self, ahead: EagerSlot, giver: usize) -> Result<Option<()>> {
        let word = self.core.word_of_taking()?;
        let call = dissemination::word(ahead.epoch(), ahead.slot.into());
        let own = self.world.own(word);
        own.store_word(Width::W64, call, FenceSite::Arrive);
        // Of a giver that is lost the wait hears, and then looks once more for what it gave.
        let theirs = self.at(giver, word).unwrap_or_default();
        let says_so =
            theirs.is_some_and(|place| place.load_word(Width::W64, FenceSite::Arrived) == call);
        Ok(says_so.then_some(()))
    }
}
