//! One collective call of a team, which holds the team while it runs: its arrivals, and what becomes of
//! them where a member fails.

use std::sync::MutexGuard;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use oxshmem_transport::Width;

use super::eager::is_given;
use super::state::{EpochState, TeamState};
use crate::control::Message;
use crate::dissemination::{self, ABORTED, FAILED, MISMATCH, SIGNATURE, SyncSlot, SyncWords};
use crate::futex::Kernel;
use crate::hang::WaitedFor;
use crate::mapped::HostMemory;
use crate::order::FenceSite;
use crate::park;
use crate::sync_area::CallSignature;
use crate::trace::Span;
use crate::wait::{WaitReason, WaitsOn};
use crate::{Context, Error, Result, Sym};

/// A collective call under way.
pub(crate) struct CollectiveCall<'t> {
    pub(super) world: &'t Context<'t>,
    pub(super) core: &'t TeamState,
    pub(super) state: MutexGuard<'t, EpochState>,
    pub(super) call: CallInfo<'t>,
    pub(super) needs: WaitsOn<'t>,
    /// Some member may be through with the team, and its words be another team's.
    parting: bool,
    /// Until the call ends.
    _traced: Option<Span<'t>>,
}

/// What is called.
#[derive(Clone, Copy)]
pub(crate) struct CallInfo<'t> {
    pub name: &'static str,
    /// The call and its arguments, on which all members must agree (M36).
    pub digest: CallSignature,
    /// The same in words.
    pub words: &'t dyn Fn() -> String,
}

/// The words of one epoch's arrival, and of the calls [ahead](super::ahead) of it.
pub(super) struct TeamSyncWords<'t> {
    world: &'t Context<'t>,
    core: &'t TeamState,
    epoch: u32,
    call: &'t CallInfo<'t>,
    needs: WaitsOn<'t>,
    /// The slot of a call ahead of the arrival that this PE does not make: who gave in it may be elsewhere.
    unmade: Option<u32>,
}

/// What members do in an arrival beside meeting.
enum ArrivalHook<'d> {
    Nothing,
    /// Nothing: this PE arrives in place of the last call [ahead](super::ahead), which it has counted.
    InPlace,
    /// Something when the members on this host are here, before any other host is told of that.
    Between(&'d mut dyn FnMut() -> Result<()>),
    /// They read what each, by its place, gives, as soon as that one is here.
    Reading(&'d mut dyn FnMut(usize) -> Result<()>),
}

/// So long who arrives instead of taking waits for others that may wait for it in calls of other teams; and who takes
/// for who may take itself.
pub(super) const GRACE: Duration = Duration::from_secs(5);

impl SyncWords for TeamSyncWords<'_> {
    type Error = Error;

    #[inline]
    fn tell(&self, mail: SyncSlot, word: u64) -> Result<()> {
        let slot = self.core.word(self.epoch, mail)?;
        let to = self.core.members.pe(mail.member as usize);
        match self.world.tell(self.call.name, slot, word, to) {
            // Who has left in order has heard what it had to: the completion comes too late.
            Err(Error::PeerLost { pe, .. })
                if matches!(self.needs, WaitsOn::Finalizing)
                    && !self.world.shared.liveness.has_died(pe) =>
            {
                Ok(())
            }
            told => told,
        }
    }

    #[inline]
    fn fenced(&self) {
        self.world.peers.clear_dirty();
        if let Some(simulation) = &self.world.shared.simulation {
            simulation.fence(FenceSite::QuietStores);
        }
    }

    #[inline]
    fn wake(&self, member: u32) {
        if let Some(bell) = self.world.parker(self.core.members.pe(member as usize)) {
            park::unpark_all(bell, &Kernel);
        }
    }

    #[inline]
    fn await_signal(&self, mail: SyncSlot) -> Result<u64> {
        let arrived = self.world.own(self.core.word(self.epoch, mail)?);
        self.wait(dissemination::ARRIVES, mail, || {
            let word = arrived.load_word(Width::W64, FenceSite::Arrived);
            dissemination::accepts(word, self.epoch).then_some(word)
        })
    }

    #[inline]
    fn load_acquire(&self, mail: SyncSlot) -> u64 {
        // A member's mail has a place.
        self.core.word(self.epoch, mail).map_or(0, |word| {
            let arrived = self.world.own(word);
            arrived.load_word(Width::W64, FenceSite::Arrived)
        })
    }

    #[inline]
    fn wait<R>(
        &self,
        what: &'static str,
        mail: SyncSlot,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        let world = self.world;
        let from = self.core.members.pe(mail.member as usize);
        let tell = || {
            (
                WaitedFor::Pe(from),
                format!("{what} in {}", (self.call.words)()),
            )
        };
        let reason = WaitReason {
            call: self.call.name,
            needs: self.needs,
            describe: &tell,
        };
        // Whose words come by a lane rings no bell.
        let bell = world.parker(from).and_then(|_| world.parker(world.my_pe()));
        let mut since = None;
        world.wait_unless(&reason, bell, ready, || self.leaves(&mut since).map(Err))
    }
}

impl TeamSyncWords<'_> {
    /// Why this PE waits no longer: a call ahead in whose place it arrives has been given, and others have had a while
    /// to come since.
    #[cold]
    fn leaves(&self, since: &mut Option<Instant>) -> Option<Error> {
        let (slot, member) = (self.unmade?, self.core.members.me() as u32);
        if !is_given(self.load_acquire(SyncSlot { slot, member }), self.epoch) {
            return None;
        }
        let waited = since.get_or_insert_with(Instant::now).elapsed();
        (waited >= GRACE).then(|| Error::CollectiveMismatch {
            call: self.call.name,
            detail: format!(
                "this PE called {}; others called something else, which does not wait, and no call of this team since",
                (self.call.words)()
            ),
        })
    }
}

impl TeamState {
    /// Begins a collective call, perhaps with a span of its own in a trace.
    #[inline]
    pub(crate) fn turn<'t>(
        &'t self,
        world: &'t Context<'t>,
        call: CallInfo<'t>,
        traced: Option<Span<'t>>,
    ) -> CollectiveCall<'t> {
        CollectiveCall {
            world,
            core: self,
            state: self.state(),
            call,
            needs: WaitsOn::Members(&self.members),
            parting: false,
            _traced: traced,
        }
    }

    /// Tells the members that this PE makes no call of the team any more: who waits for it in the next one, or comes to
    /// it, gets [`Error::CollectivesEnded`]. Nothing where another thread is in a call, or the team's calls have ended.
    pub(crate) fn leave(&self, world: &Context<'_>) {
        let Ok(state) = self.state.try_lock() else {
            return;
        };
        if state.aborted.is_some() {
            return;
        }
        // In the last one this PE has arrived; nobody is in one before.
        let epoch = state.epoch.wrapping_add(1);
        for (slot, word, to) in self.words_of_giving_up(epoch) {
            // Who cannot be told waits, or hears of a loss.
            let _ = world.tell("leave", slot, word, to);
        }
        // Members that were told nothing wait for nothing of this. To look at all members' bells would map a page
        // of each, and the page tables above it.
        fence(Ordering::SeqCst);
        for (_, _, to) in self.words_of_giving_up(epoch) {
            if let Some(bell) = world.parker(to) {
                park::unpark_all(bell, &Kernel);
            }
        }
    }

    /// Ends the team's calls of this PE after the last arrival of all. Two further calls would write over the words that a
    /// slower member still waits for. Where another thread is in a call already, that one fails by itself.
    pub(crate) fn close(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state
                .aborted
                .get_or_insert_with(|| "this PE has finalized".into());
        }
    }

    /// By what words members hear in a call of this epoch that this PE gives up, where they are, and whose.
    fn words_of_giving_up(&self, epoch: u32) -> impl Iterator<Item = (Sym<u64>, u64, usize)> {
        let word = dissemination::word(epoch, ABORTED);
        let told = self.rounds.iter().flat_map(|round| &round.sends);
        told.filter_map(move |mail| {
            let to = self.members.pe(mail.member as usize);
            Some((self.word(epoch, *mail).ok()?, word, to))
        })
    }

    fn ring_all(&self, world: &Context<'_>) {
        fence(Ordering::SeqCst);
        for bell in self.members.pes().filter_map(|pe| world.parker(pe)) {
            park::unpark_all(bell, &Kernel);
        }
    }
}

impl<'t> CollectiveCall<'t> {
    /// The same of finalize, after which PEs leave.
    pub(crate) fn last(self) -> Self {
        CollectiveCall {
            needs: WaitsOn::Finalizing,
            ..self
        }
    }

    /// What is called.
    pub(crate) fn name(&self) -> &'static str {
        self.call.name
    }

    /// The world's number of a member.
    #[inline]
    pub(crate) fn pe(&self, place: usize) -> usize {
        self.core.members.pe(place)
    }

    /// Scratch memory of each member, which the next arrival announces.
    pub(crate) fn scratch(&self) -> Result<Sym<u8>> {
        self.core.scratch(self.state.epoch.wrapping_add(1))
    }

    /// The last epoch that this PE has begun.
    pub(super) fn epoch(&self) -> u32 {
        self.state.epoch
    }

    /// Arrives and waits for all members. Stores made before are visible to every member that returns
    /// from it (mapped) or as far as earlier quiets made them (lanes).
    ///
    /// `mine` is how this PE's part of the call went so far; the call fails on every member if it failed
    /// on one.
    #[inline]
    pub(crate) fn arrive(&mut self, mine: Result<()>) -> Result<()> {
        match self.agree(mine.as_ref().err())? {
            true => Ok(()),
            false => self.failed_together(mine),
        }
    }

    /// That calls of the team can still be made.
    pub(super) fn check_not_aborted(&self) -> Result<()> {
        match &self.state.aborted {
            None => Ok(()),
            Some(why) => Err(Error::CollectivesEnded {
                call: self.call.name,
                why: why.clone(),
            }),
        }
    }

    /// That no member is lost.
    #[cold]
    pub(super) fn none_lost(&self) -> Result<()> {
        match self.world.shared.lost_among(self.needs) {
            None => Ok(()),
            Some(pe) => Err(Error::PeerLost {
                call: self.call.name,
                pe,
            }),
        }
    }

    /// Arrives because this PE has seen that the call has failed: with [`FAILED`] for a reason that others have
    /// and tell, with [`MISMATCH`] since the PEs are in different calls.
    #[cold]
    pub(super) fn fail_together(&mut self, flag: u64) -> Result<()> {
        self.agree_on(None, flag, ArrivalHook::InPlace)?;
        self.failed_together(Ok(()))
    }

    /// [`arrive`](Self::arrive) of a team of several [hosts](Core::hosts) that does `between` when the members
    /// on this host are here, before any other host is told of that: unless one of them failed or called
    /// something else. If it fails, the call ends.
    pub(crate) fn arrive_doing(
        &mut self,
        mine: Result<()>,
        between: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        if self.agree_on(mine.as_ref().err(), 0, ArrivalHook::Between(between))? {
            Ok(())
        } else {
            self.failed_together(mine)
        }
    }

    /// [`arrive`](Self::arrive) of a team [all of whose members meet at once](Core::meets_at_once), in which this one
    /// `read`s what each gives, by its place, as soon as that one is here: before others may be, and also where the call
    /// then fails. Where it goes well, all have read what this one gives; where it fails, others may still be reading it, and
    /// fail, too. A `read` that fails ends the team's calls.
    pub(crate) fn arrive_reading(
        &mut self,
        mine: Result<()>,
        read: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        match self.agree_on(mine.as_ref().err(), 0, ArrivalHook::Reading(read))? {
            true => Ok(()),
            false => self.failed_together(mine),
        }
    }

    /// Arrives for the last time, after all have. Who returns from it may lend the team's words to another one:
    /// so a member that fails in it writes none.
    pub(super) fn part(&mut self) -> Result<()> {
        self.parting = true;
        self.arrive(Ok(()))
    }

    /// Arrives. Gives whether the call went well on every member so far.
    pub(super) fn agree(&mut self, mine: Option<&Error>) -> Result<bool> {
        self.agree_on(mine, 0, ArrivalHook::Nothing)
    }

    /// Arrives. Gives whether all members say yes.
    pub(crate) fn all_say(&mut self, yes: bool) -> Result<bool> {
        self.agree_on(None, if yes { 0 } else { FAILED }, ArrivalHook::Nothing)
    }

    /// How words of an epoch go, and come, in this call.
    #[inline]
    pub(super) fn words<'a>(&'a self, epoch: u32, call: &'a CallInfo<'a>) -> TeamSyncWords<'a> {
        TeamSyncWords {
            world: self.world,
            core: self.core,
            epoch,
            call,
            needs: self.needs,
            unmade: None,
        }
    }

    /// [`agree`](Self::agree) with a flag that is known already, and with something to do beside.
    #[inline]
    fn agree_on(
        &mut self,
        mine: Option<&Error>,
        flag: u64,
        beside: ArrivalHook<'_>,
    ) -> Result<bool> {
        let name = self.call.name;
        self.check_not_aborted()?;
        self.state.epoch = self.state.epoch.wrapping_add(1);
        let history = CallSignature::of_history(self.state.history);
        let digest = history.and(self.call.digest.value()).value() & SIGNATURE;
        let known = digest | flag | if mine.is_some() { FAILED } else { 0 };
        let failed = || match mine {
            Some(error) => format!("{} (which failed: {error})", (self.call.words)()),
            None => (self.call.words)(),
        };
        let call = CallInfo {
            words: &failed,
            ..self.call
        };
        let epoch = self.state.epoch;
        // Where all make the same calls nobody gives in the next one before all have arrived.
        let counted = usize::from(matches!(beside, ArrivalHook::InPlace));
        let number = self.state.ahead.saturating_sub(counted);
        let post = TeamSyncWords {
            unmade: self.core.slot_ahead(epoch, number),
            ..self.words(epoch, &call)
        };
        let rounds = &self.core.rounds;
        let arrived = match (beside, rounds.first()) {
            (ArrivalHook::Reading(read), Some(round)) => {
                let me = self.core.members.me() as u32;
                dissemination::barrier_with_gather(&post, round, (epoch, me), known, |at| {
                    read(at as usize)
                })
            }
            (ArrivalHook::Between(between), _) => {
                let (near, rest) = rounds.split_at(self.core.rounds_near().min(rounds.len()));
                dissemination::barrier(&post, near, epoch, known).and_then(|known| {
                    if known & (ABORTED | MISMATCH | FAILED) == 0 {
                        between()?;
                    }
                    dissemination::barrier(&post, rest, epoch, known)
                })
            }
            _ => dissemination::barrier(&post, rounds, epoch, known),
        };
        let known = match arrived {
            Ok(known) => known,
            Err(error) => {
                self.abort(&error);
                return Err(error);
            }
        };
        let ahead = std::mem::take(&mut self.state.ahead);
        self.state.used = 0;
        // A program that had a call ahead before this arrival is likely to make the next one now.
        if ahead > 0 && self.world.shared.oversubscribed {
            self.yield_to_root();
        }
        if known & ABORTED != 0 {
            let why = "another PE gave up a collective call (its own error says why), or finalizes without it";
            self.state.aborted = Some(why.into());
            // It reaches all, so that nobody has parted.
            self.abort_collectives(true);
            return Err(Error::CollectivesEnded {
                call: name,
                why: why.into(),
            });
        }
        if known & MISMATCH != 0 {
            let words = failed();
            return Err(self.mismatch(&words, ahead));
        }
        Ok(known & FAILED == 0)
    }

    /// Ends the team's calls, where one has failed here midway and the others may be waiting for this PE.
    #[cold]
    pub(crate) fn abort(&mut self, error: &Error) {
        // Of a PE that died everyone hears. Any other failure is this PE's own, that of its way to a PE
        // that lives included: it is out of step for good, and the others must not wait for it.
        let died = matches!(error, Error::PeerLost { pe, .. } if self.world.exit_was_reported(*pe));
        if !died {
            self.state.aborted = Some(error.to_string());
            self.abort_collectives(!self.parting);
        }
    }

    /// Tells everyone who may wait for this PE, in this call or the next, that it will not come.
    #[cold]
    fn abort_collectives(&self, by_words: bool) {
        let (world, core) = (self.world, self.core);
        for epoch in [self.state.epoch, self.state.epoch.wrapping_add(1)] {
            for (slot, word, to) in core.words_of_giving_up(epoch) {
                // Where the way there has failed, but perhaps not the way back: by the bootstrap it
                // hears of this PE as of a lost one.
                if !by_words || world.tell("give_up", slot, word, to).is_err() {
                    let _ = world.send("give_up", to, &Message::Disconnect);
                }
            }
        }
        core.ring_all(world);
    }

    /// This PE's own copy of the team's words, none of which is waited for any more, is made as it was
    /// when the team got it.
    pub(super) fn clean(&self) {
        let words = self.core.words();
        if !words.is_empty() {
            self.world.own(words).zero();
        }
    }
}
