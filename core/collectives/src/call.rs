//! One collective call of a team: its arrivals, and its end where a member fails.
//!
//! The call holds the team's state locked on this PE while it runs. A failure before an arrival fails the call on all
//! members. A failure midway aborts the team's collective calls.

pub mod eager;
pub mod explain;

use std::fmt;
use std::sync::MutexGuard;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use oxshmem_engine::control::message::Message;
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::progress::futex::Kernel;
use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::park;
use oxshmem_engine::progress::reason::{WaitReason, WaitsOn};
use oxshmem_engine::trace::timeline::Span;
use oxshmem_transport::Width;

use crate::dissemination;
use crate::dissemination::{ABORTED, FAILED, MISMATCH, SIGNATURE, SyncSlot, SyncWords};
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::signature::CallSignature;
use crate::sync_area::SyncArea;
use crate::team::{EpochState, TeamState};
use crate::transfer::Transfer;
use oxshmem_engine::error::Error as EngineError;
use oxshmem_engine::worker::Worker;

/// A collective call in progress.
pub struct CollectiveCall<'t> {
    /// The worker whose thread makes the call.
    pub worker: &'t Worker,
    /// The memory of collective calls.
    pub area: &'t SyncArea,
    /// The team.
    pub team: &'t TeamState,
    pub(crate) state: MutexGuard<'t, EpochState>,
    pub(crate) info: CallInfo<'t>,
    pub(crate) needs: WaitsOn<'t>,
    /// Whether some member may have left the team already, so that its words may be another team's.
    parting: bool,
    /// The span of the call in a trace.
    _span: Option<Span<'t>>,
}

impl fmt::Debug for CollectiveCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectiveCall")
            .field("team", &self.team)
            .finish_non_exhaustive()
    }
}

/// A call's name, signature and words.
#[derive(Clone, Copy)]
pub struct CallInfo<'t> {
    /// The name of the call.
    pub name: &'static str,
    /// The call and its arguments, on which all members must agree (M36).
    pub signature: CallSignature,
    /// The same in words.
    pub words: &'t dyn Fn() -> String,
}

impl fmt::Debug for CallInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallInfo")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The words of one epoch's arrival, and of the [eager](eager) calls before it.
pub(crate) struct TeamSyncWords<'t> {
    worker: &'t Worker,
    area: &'t SyncArea,
    team: &'t TeamState,
    epoch: u32,
    info: &'t CallInfo<'t>,
    needs: WaitsOn<'t>,
    /// The slot of an eager call that this PE does not make before the arrival. Its root may be elsewhere.
    skipped_eager_slot: Option<u32>,
}

/// The action of members in an arrival, besides the barrier.
enum ArrivalHook<'d> {
    Nothing,
    /// Nothing: this PE arrives in place of the last [eager](eager) call, which it has counted.
    InPlace,
    /// An action when the members on this host have arrived, before any other host is signaled.
    Between(&'d mut dyn FnMut() -> Result<()>),
    /// The read of each member's data, by its rank, as soon as that member has arrived.
    Reading(&'d mut dyn FnMut(usize) -> Result<()>),
}

/// The time that a PE which arrives instead of consuming waits for members that may be waiting for it in calls of other
/// teams; and the time after which a consumer checks whether the root is a consumer, too.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The bit that every word of an eager call has. A word that was never written lacks it, whatever the epoch.
const EAGER: u64 = MISMATCH;

/// Whether a word is one of an eager call before this epoch's arrival.
#[inline]
fn is_eager_word(word: u64, epoch: u32) -> bool {
    (word >> 32) as u32 == epoch && word & EAGER != 0
}

impl SyncWords for TeamSyncWords<'_> {
    type Error = Error;

    #[inline]
    fn signal(&self, slot: SyncSlot, word: u64) -> Result<()> {
        let target = self.team.word(self.epoch, slot)?;
        let to = self.team.members.pe(slot.member as usize);
        match Transfer::new(self.worker, self.info.name).signal(target, word, to) {
            // A PE that has left in order had received all its signals: only their completion is missing.
            Err(Error::Engine(EngineError::PeerLost { pe, .. }))
                if matches!(self.needs, WaitsOn::Finalizing)
                    && !self.worker.engine.liveness.has_died(pe) =>
            {
                Ok(())
            }
            signaled => signaled,
        }
    }

    #[inline]
    fn fenced(&self) {
        self.worker.peers.clear_dirty();
        if let Some(simulation) = &self.worker.engine.simulation {
            simulation.fence(FenceSite::QuietStores);
        }
    }

    #[inline]
    fn wake(&self, member: u32) {
        let pe = self.team.members.pe(member as usize);
        if let Some(parker) = self.area.parker(self.worker, pe) {
            park::unpark_all(parker, &Kernel);
        }
    }

    #[inline]
    fn await_signal(&self, slot: SyncSlot) -> Result<u64> {
        let arrived = self.worker.own(self.team.word(self.epoch, slot)?);
        self.wait(dissemination::ARRIVES, slot, || {
            let word = arrived.load_word(Width::W64, FenceSite::Arrived);
            dissemination::accepts(word, self.epoch).then_some(word)
        })
    }

    #[inline]
    fn load_acquire(&self, slot: SyncSlot) -> u64 {
        // Every slot of a member has a word.
        self.team.word(self.epoch, slot).map_or(0, |word| {
            let arrived = self.worker.own(word);
            arrived.load_word(Width::W64, FenceSite::Arrived)
        })
    }

    #[inline]
    fn wait<R>(
        &self,
        what: &'static str,
        slot: SyncSlot,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        let (worker, area) = (self.worker, self.area);
        let from = self.team.members.pe(slot.member as usize);
        let describe = || {
            (
                WaitedFor::Pe(from),
                format!("{what} in {}", (self.info.words)()),
            )
        };
        let reason = WaitReason {
            call: self.info.name,
            needs: self.needs,
            describe: &describe,
        };
        // A word that comes by a lane wakes nobody.
        let parker = area
            .parker(worker, from)
            .and_then(|_| area.parker(worker, worker.engine.me));
        let mut since = None;
        worker.wait_unless(&reason, parker, ready, || {
            self.missed_eager_call(&mut since).map(Err)
        })
    }
}

impl TeamSyncWords<'_> {
    /// The error that ends this PE's wait: the eager call that it skipped by arriving has been published, and the
    /// others have not arrived for [`GRACE`] since.
    #[cold]
    fn missed_eager_call(&self, since: &mut Option<Instant>) -> Option<Error> {
        let (index, member) = (self.skipped_eager_slot?, self.team.members.me() as u32);
        if !is_eager_word(self.load_acquire(SyncSlot { index, member }), self.epoch) {
            return None;
        }
        let waited = since.get_or_insert_with(Instant::now).elapsed();
        (waited >= GRACE).then(|| Error::CollectiveMismatch {
            call: self.info.name,
            detail: format!(
                "this PE called {}; others called something else, which does not wait, and no call of this team since",
                (self.info.words)()
            ),
        })
    }
}

/// A word that announces this PE's abort, and the member that it is for.
struct AbortWord {
    slot: Elements<u64>,
    word: u64,
    to: usize,
}

impl TeamState {
    /// Announces to the members that this PE makes no further call of the team. A member that waits for it in the next
    /// call, or enters that call later, gets [`Error::CollectivesEnded`]. Does nothing if another thread is in a
    /// call, or the team's calls have ended.
    pub fn leave(&self, worker: &Worker, area: &SyncArea) {
        let Ok(state) = self.epochs.try_lock() else {
            return;
        };
        if state.aborted.is_some() {
            return;
        }
        // In the last epoch this PE has arrived; nobody is in one before.
        let epoch = state.epoch.wrapping_add(1);
        let transfer = Transfer::new(worker.in_call("leave"), "leave");
        for AbortWord { slot, word, to } in self.abort_words(epoch) {
            // A member that cannot be signaled goes on waiting, or gets the error of a lost PE.
            let _ = transfer.announce(slot, word, to);
        }
        // Members without a signal do not wait for this PE. To check all members' parkers would map a page
        // of each, and the page tables above it.
        fence(Ordering::SeqCst);
        for AbortWord { to, .. } in self.abort_words(epoch) {
            if let Some(parker) = area.parker(worker, to) {
                park::unpark_all(parker, &Kernel);
            }
        }
    }

    /// Ends the team's calls of this PE after the last arrival of all. Two further calls would write over the words that a
    /// slower member still waits for. Where another thread is in a call already, that one fails by itself.
    pub fn close(&self) {
        if let Ok(mut state) = self.epochs.try_lock() {
            state
                .aborted
                .get_or_insert_with(|| "this PE has finalized".into());
        }
    }

    /// The sync words that announce this PE's abort to the members in `epoch`.
    fn abort_words(&self, epoch: u32) -> impl Iterator<Item = AbortWord> {
        let word = dissemination::word(epoch, ABORTED);
        let sends = self.rounds.iter().flat_map(|round| &round.sends);
        sends.filter_map(move |slot| {
            Some(AbortWord {
                to: self.members.pe(slot.member as usize),
                slot: self.word(epoch, *slot).ok()?,
                word,
            })
        })
    }

    fn unpark_members(&self, worker: &Worker, area: &SyncArea) {
        fence(Ordering::SeqCst);
        for parker in self.members.pes().filter_map(|pe| area.parker(worker, pe)) {
            park::unpark_all(parker, &Kernel);
        }
    }
}

impl SyncArea {
    /// Begins a collective call of a team, perhaps with a span of its own in a trace.
    #[inline]
    pub fn begin<'t>(
        &'t self,
        worker: &'t Worker,
        team: &'t TeamState,
        info: CallInfo<'t>,
        span: Option<Span<'t>>,
    ) -> CollectiveCall<'t> {
        worker.in_call(info.name);
        CollectiveCall {
            worker,
            area: self,
            team,
            state: team.epochs(),
            info,
            needs: WaitsOn::Members(&team.members),
            parting: false,
            _span: span,
        }
    }
}

impl<'t> CollectiveCall<'t> {
    /// Makes it the call of finalize, after which PEs leave.
    pub fn finalizing(self) -> Self {
        CollectiveCall {
            needs: WaitsOn::Finalizing,
            ..self
        }
    }

    /// The call's name.
    pub(crate) fn name(&self) -> &'static str {
        self.info.name
    }

    /// Copies of this call's data.
    #[inline]
    pub(crate) fn transfer(&self) -> Transfer<'t> {
        Transfer::new(self.worker, self.info.name)
    }

    /// The world's number of a member.
    #[inline]
    pub(crate) fn pe(&self, rank: usize) -> usize {
        self.team.members.pe(rank)
    }

    /// Scratch memory of each member, which the next arrival announces.
    pub(crate) fn scratch(&self) -> Result<Elements<u8>> {
        self.team.scratch(self.state.epoch.wrapping_add(1))
    }

    /// The last epoch that this PE has begun.
    pub(crate) fn epoch(&self) -> u32 {
        self.state.epoch
    }

    /// Arrives and waits for all members. Stores made before are visible to every member that returns
    /// from it (mapped) or as far as earlier quiets made them (lanes).
    ///
    /// `mine` is the result of this PE's part of the call so far. The call fails on every member if it failed
    /// on one.
    #[inline]
    pub fn arrive(&mut self, mine: Result<()>) -> Result<()> {
        if self.agree(mine.as_ref().err())? {
            Ok(())
        } else {
            self.failed_together(mine)
        }
    }

    /// Checks that calls of the team can still be made.
    #[inline]
    pub(crate) fn check_not_aborted(&self) -> Result<()> {
        match &self.state.aborted {
            None => Ok(()),
            Some(why) => Err(Error::CollectivesEnded {
                call: self.info.name,
                why: why.clone(),
            }),
        }
    }

    /// Checks that no member is lost.
    #[cold]
    pub(crate) fn check_none_lost(&self) -> Result<()> {
        match self.worker.engine.lost_among(self.needs) {
            None => Ok(()),
            Some(pe) => Err(Error::Engine(EngineError::PeerLost {
                call: self.info.name,
                pe,
            })),
        }
    }

    /// Arrives because this PE has seen that the call has failed: with [`FAILED`] for a reason that others have
    /// and announce, with [`MISMATCH`] since the PEs are in different calls.
    #[cold]
    pub(crate) fn fail_together(&mut self, flag: u64) -> Result<()> {
        self.agree_on(None, flag, ArrivalHook::InPlace)?;
        self.failed_together(Ok(()))
    }

    /// [`arrive`](Self::arrive) of a team of several [hosts](TeamState::hosts) that does `between` when the members
    /// on this host have arrived, before any other host is signaled: unless one of them failed or called
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

    /// [`arrive`](Self::arrive) of a team [of one round](TeamState::has_one_round), in which this member
    /// `read`s each member's data, by its rank, as soon as that member has arrived: maybe before others have, and also
    /// where the call then fails. On success all have read this one's data. On failure others may still be reading
    /// it, and fail, too. A `read` that fails ends the team's calls.
    pub(crate) fn arrive_reading(
        &mut self,
        mine: Result<()>,
        read: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        if self.agree_on(mine.as_ref().err(), 0, ArrivalHook::Reading(read))? {
            Ok(())
        } else {
            self.failed_together(mine)
        }
    }

    /// The last arrival of the team, after one that all members passed. A member that returns from it may give the
    /// team's words to another team, so a member that fails in it writes none.
    fn part(&mut self) -> Result<()> {
        self.parting = true;
        self.arrive(Ok(()))
    }

    /// Destroys the team, which has a slot, and gives the slot back.
    pub fn destroy(mut self) -> Result<()> {
        self.arrive(Ok(()))?;
        // All members have arrived and none aborted, so no word of an abort can arrive late.
        self.part()?;
        // This PE has received each word that was sent to it in this epoch, and by that all before: nothing
        // is in flight any more.
        self.clear_words();
        if let Some(slot) = self.team.slot() {
            self.area.pool.release(slot, self.epoch());
        }
        Ok(())
    }

    /// Arrives. Gives whether the call went well on every member so far.
    pub(crate) fn agree(&mut self, mine: Option<&Error>) -> Result<bool> {
        self.agree_on(mine, 0, ArrivalHook::Nothing)
    }

    /// Arrives. Gives whether `yes` is true on all members.
    pub fn all_say(&mut self, yes: bool) -> Result<bool> {
        self.agree_on(None, if yes { 0 } else { FAILED }, ArrivalHook::Nothing)
    }

    /// The sync words of an epoch in this call.
    #[inline]
    pub(crate) fn words<'a>(&'a self, epoch: u32, info: &'a CallInfo<'a>) -> TeamSyncWords<'a> {
        TeamSyncWords {
            worker: self.worker,
            area: self.area,
            team: self.team,
            epoch,
            info,
            needs: self.needs,
            skipped_eager_slot: None,
        }
    }

    /// [`agree`](Self::agree) with a flag that is known already, and with a hook.
    #[inline]
    fn agree_on(&mut self, mine: Option<&Error>, flag: u64, hook: ArrivalHook<'_>) -> Result<bool> {
        self.check_not_aborted()?;
        self.state.epoch = self.state.epoch.wrapping_add(1);
        let history = CallSignature::of_history(self.state.history);
        let signature = history.and(self.info.signature.value()).value() & SIGNATURE;
        let known = signature | flag | if mine.is_some() { FAILED } else { 0 };
        let words = || match mine {
            Some(error) => format!("{} (which failed: {error})", (self.info.words)()),
            None => (self.info.words)(),
        };
        let info = CallInfo {
            words: &words,
            ..self.info
        };
        let known = match self.meet(&info, known, hook) {
            Ok(known) => known,
            Err(error) => {
                self.abort(&error);
                return Err(error);
            }
        };
        let eager_calls = std::mem::take(&mut self.state.eager_calls);
        self.state.eager_bytes = 0;
        // A program that made an eager call before this arrival is likely to make the next one now.
        if eager_calls > 0 && self.worker.engine.oversubscribed {
            self.yield_to_root();
        }
        if known & ABORTED != 0 {
            let why = "another PE gave up a collective call (its own error says why), or finalizes without it";
            // The flag reaches all members, so none has left the team.
            self.abort_collectives(why.into(), true);
            return Err(Error::CollectivesEnded {
                call: self.info.name,
                why: why.into(),
            });
        }
        if known & MISMATCH != 0 {
            let words = words();
            return Err(self.mismatch(&words, eager_calls));
        }
        Ok(known & FAILED == 0)
    }

    /// The rounds of the epoch that has begun. Gives the flags of all.
    #[inline]
    fn meet(&self, info: &CallInfo<'_>, known: u64, hook: ArrivalHook<'_>) -> Result<u64> {
        let (team, epoch) = (self.team, self.state.epoch);
        // If all make the same calls, no root publishes the next eager call before all have arrived.
        let counted = usize::from(matches!(hook, ArrivalHook::InPlace));
        let number = self.state.eager_calls.saturating_sub(counted);
        let words = TeamSyncWords {
            skipped_eager_slot: team.eager_slot_index(epoch, number),
            ..self.words(epoch, info)
        };
        let rounds = &team.rounds;
        match (hook, rounds.first()) {
            (ArrivalHook::Reading(read), Some(round)) => {
                let me = team.members.me() as u32;
                dissemination::barrier_with_gather(&words, round, (epoch, me), known, |rank| {
                    read(rank as usize)
                })
            }
            (ArrivalHook::Between(between), _) => {
                let (on_host, rest) = rounds.split_at(team.rounds_on_host().min(rounds.len()));
                let known = dissemination::barrier(&words, on_host, epoch, known)?;
                if known & (ABORTED | MISMATCH | FAILED) == 0 {
                    between()?;
                }
                dissemination::barrier(&words, rest, epoch, known)
            }
            _ => dissemination::barrier(&words, rounds, epoch, known),
        }
    }

    /// Ends the team's calls after one has failed midway on this PE, for which the others may be waiting.
    #[cold]
    pub(crate) fn abort(&mut self, error: &Error) {
        // Every PE gets the report of a PE that died. Any other failure is this PE's own, a failed lane to a PE
        // that lives included: it is out of step for good, and the others must not wait for it.
        let died = matches!(error, Error::Engine(EngineError::PeerLost { pe, .. }) if self.worker.exit_was_reported(*pe));
        if !died {
            self.abort_collectives(error.to_string(), !self.parting);
        }
    }

    /// Ends the team's calls for this reason, and announces to all that may wait for this PE, in this call or the next, that it
    /// will not come.
    #[cold]
    fn abort_collectives(&mut self, why: String, by_words: bool) {
        let disconnect = Message::disconnect(&why);
        self.state.aborted = Some(why);
        let (worker, team) = (self.worker, self.team);
        let transfer = Transfer::new(worker.in_call("give_up"), "give_up");
        for epoch in [self.state.epoch, self.state.epoch.wrapping_add(1)] {
            for AbortWord { slot, word, to } in team.abort_words(epoch) {
                // The lane to the member has failed, but maybe not the member's lane to this PE. The message
                // over the bootstrap makes this PE a lost one to the member.
                if !by_words || transfer.announce(slot, word, to).is_err() {
                    let _ = worker.send(to, &disconnect);
                }
            }
        }
        team.unpark_members(worker, self.area);
    }

    /// Makes this PE's own copy of the team's words, none of which is waited for any more, zero as it was
    /// when the team got it.
    fn clear_words(&self) {
        let words = self.team.words();
        if !words.is_empty() {
            self.worker.own(words).zero();
        }
    }
}
