//! Eager broadcasts among members that load each other's memory: the root publishes and does not wait.
//!
//! A root may be several such calls ahead of the other members. It puts the payload into its own memory, then signals
//! each member. A payload that fits into the signal word's cache line travels with the word, which saves a member the
//! second transfer. Words and memory are used again after an arrival: by then all members have consumed. Where no
//! slot is free, a call begins with an arrival; all members count slots alike. A word carries the next arrival's epoch
//! and, as an [arrival](crate::dissemination)'s does, a signature of the call and of those before it.
//!
//! A call that fails before its root has published fails by an arrival, as every other call does. So a member that
//! waits for a word polls the arrival words, too. A member that has arrived since then either has consumed this call's
//! payload, or made another call, or failed in this one. The root signals itself first, in its own memory: in the first
//! case the waiting member finds the word there. In the other two the call fails everywhere, and the waiting member
//! arrives instead.
//!
//! A member that finds a word with another signature than its own arrives instead, too: the others find the mismatch by
//! their next call of the team. If they are in calls of another team that wait for it, the member, alone in its
//! arrival, sees that the eager call was published, and aborts after `GRACE`. If the roots differ so that all members
//! consume, and wait for each other, each announces its wait after `GRACE`. A member that finds the root's
//! announcement arrives.

use std::time::Instant;

use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::memory::simulated::HostSpan;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::reason::WaitReason;
use oxshmem_transport::Width;

use crate::call::{CollectiveCall, EAGER, GRACE, is_eager_word};
use crate::dissemination;
use crate::dissemination::{FAILED, MISMATCH, SIGNATURE, SyncSlot, SyncWords};
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::layout::LINE;
use crate::signature::CallSignature;
use crate::team::{EagerBroadcast, EpochState, TeamState};

/// An eager call before the next arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EagerSlot {
    /// The slot of its word.
    index: u32,
    /// The signal: the next arrival's epoch, and the signature of the call with those before it.
    signal: u64,
    /// The payload in the root's memory.
    pub payload: Elements<u8>,
    /// Whether the payload lies in the signal word's cache line, and is sent to every member with it.
    inline: bool,
}

impl EagerSlot {
    fn epoch(&self) -> u32 {
        (self.signal >> 32) as u32
    }
}

/// Times that a member yields its CPU after an arrival, at most, before the expected call.
const YIELDS: u32 = 2;

/// Free memory for an eager call.
struct EagerRoom {
    index: u32,
    payload: Elements<u8>,
    /// Bytes of scratch memory that it uses up; none where the payload is beside the word.
    reserved: usize,
}

impl EagerRoom {
    #[inline(always)]
    fn of(team: &TeamState, state: &EpochState, bytes: usize) -> Option<Self> {
        let epoch = state.epoch.wrapping_add(1);
        let index = team.eager_slot_index(epoch, state.eager_calls)?;
        let slot = SyncSlot {
            index,
            member: team.members.me() as u32,
        };
        let (payload, reserved) = match team.inline_payload(epoch, slot, bytes) {
            Some(payload) => (payload, 0),
            None => team.eager_scratch(state.eager_bytes, bytes)?,
        };
        Some(EagerRoom {
            index,
            payload,
            reserved,
        })
    }
}

/// The outcome of a wait for the root's word.
enum EagerPoll {
    /// The word, from this PE's memory (`here`) or the root's.
    Published { word: u64, here: bool },
    /// Some member has arrived: an arrival is to be made instead.
    Arrived,
    /// The root waits as a consumer itself.
    RootWaits,
}

impl CollectiveCall<'_> {
    /// Begins a call in which the root, by its rank in the team, publishes so many bytes. If no slot is free
    /// now, it begins by an arrival.
    #[inline]
    pub(crate) fn eager_slot(&mut self, root: usize, bytes: usize) -> Result<EagerSlot> {
        if self.state.aborted.is_some() {
            self.check_not_aborted()?;
        }
        let room = match EagerRoom::of(self.team, &self.state, bytes) {
            Some(room) => room,
            None => self.room_after_arrival(bytes).map_err(|error| *error)?,
        };
        self.state.eager_bytes += room.reserved;
        self.state.eager_calls += 1;
        self.state.last_eager = EagerBroadcast { root, bytes };
        let history =
            CallSignature::of_history(self.state.history).and(self.info.signature.value());
        self.state.history = history.value();
        let epoch = self.state.epoch.wrapping_add(1);
        Ok(EagerSlot {
            index: room.index,
            signal: dissemination::word(epoch, EAGER | history.value() & SIGNATURE),
            payload: room.payload,
            inline: room.reserved == 0,
        })
    }

    #[cold]
    #[inline(never)]
    fn room_after_arrival(&mut self, bytes: usize) -> Result<EagerRoom, Box<Error>> {
        self.arrive(Ok(()))?;
        EagerRoom::of(self.team, &self.state, bytes).ok_or_else(|| {
            Box::new(Error::Argument {
                call: self.info.name,
                what: format!("{bytes} bytes do not fit into the team's scratch memory"),
            })
        })
    }

    /// Signals all others that the payload is there, and sends it along where it is inline.
    #[inline]
    pub(crate) fn publish(&mut self, slot: EagerSlot) -> Result<()> {
        match self.signal_published(slot) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.abort_next(&error);
                Err(error)
            }
        }
    }

    #[inline]
    fn signal_published(&self, slot: EagerSlot) -> Result<()> {
        let (worker, members) = (self.worker, &self.team.members);
        let own = worker.own(self.eager_word(slot)?);
        own.store_word(Width::W64, slot.signal, FenceSite::Arrive);
        let others = (0..members.len()).filter(|rank| *rank != members.me());
        let mut line = [0_u8; LINE * size_of::<u64>()];
        if slot.inline
            && let Some(bytes) = line.get_mut(..slot.payload.len())
        {
            let transfer = self.transfer();
            transfer.get_bytes(bytes, slot.payload, worker.engine.me)?;
            for rank in others.clone() {
                transfer.put_bytes(slot.payload, bytes, members.pe(rank))?;
            }
        }
        let others = others.map(|rank| SyncSlot {
            index: slot.index,
            member: rank as u32,
        });
        self.prefetch_next(slot.epoch());
        let words = self.words(slot.epoch(), &self.info);
        dissemination::signal_all(&words, others, slot.signal)?;
        if worker.engine.liveness.any() {
            self.check_none_lost()
        } else {
            Ok(())
        }
    }

    /// Prefetches the lines of the next call's words, from the members that polled them, while this call's words
    /// travel: the next call's fence then waits no longer for several lines than for one.
    #[inline]
    fn prefetch_next(&self, epoch: u32) {
        let (team, me) = (self.team, self.team.members.me());
        let Some(index) = team.eager_slot_index(epoch, self.state.eager_calls) else {
            return;
        };
        let member = me as u32;
        let Ok(word) = team.word(epoch, SyncSlot { index, member }) else {
            return;
        };
        for rank in (0..team.members.len()).filter(|rank| *rank != me) {
            if let Some(span) = self.worker.peers.span(word, team.members.pe(rank)) {
                span.prefetch_write();
            }
        }
    }

    /// The word of an eager call, here and at all others.
    #[inline]
    fn eager_word(&self, slot: EagerSlot) -> Result<Elements<u64>> {
        let index = SyncSlot {
            index: slot.index,
            member: self.team.members.me() as u32,
        };
        self.team.word(slot.epoch(), index)
    }

    /// Waits until the root, by its rank in the team, has published. Gives the PE from which to copy the payload.
    #[inline]
    pub(crate) fn consume(&mut self, slot: EagerSlot, root: usize) -> Result<usize> {
        let root_pe = self.pe(root);
        match self.await_published(slot, root) {
            Ok(EagerPoll::Published { word, here }) if word == slot.signal => {
                if slot.inline && here {
                    Ok(self.worker.engine.me)
                } else {
                    Ok(root_pe)
                }
            }
            Ok(outcome) => {
                let flag = match outcome {
                    EagerPoll::Published { .. } | EagerPoll::RootWaits => MISMATCH,
                    EagerPoll::Arrived => FAILED,
                };
                self.fail_together(flag).map(|()| root_pe)
            }
            Err(error) => {
                self.abort_next(&error);
                Err(error)
            }
        }
    }

    /// [`abort`](Self::abort) where the last arrival is complete, and others may still be in it.
    #[cold]
    fn abort_next(&mut self, error: &Error) {
        let epoch = self.state.epoch;
        self.state.epoch = epoch.wrapping_add(1);
        self.abort(error);
        self.state.epoch = epoch;
    }

    #[inline]
    fn await_published(&self, slot: EagerSlot, root: usize) -> Result<EagerPoll> {
        let (worker, team) = (self.worker, self.team);
        let (epoch, root_pe) = (slot.epoch(), self.pe(root));
        let word = self.eager_word(slot)?;
        let published = |copy: HostSpan<'_>, here| {
            let word = copy.load_word(Width::W64, FenceSite::Arrived);
            is_eager_word(word, epoch).then_some(EagerPoll::Published { word, here })
        };
        let own = worker.own(word);
        let of_root = self.mapped_word(root_pe, word)?.unwrap_or(own);
        let receives = || team.rounds.iter().flat_map(|round| &round.receives);
        let anyone_arrived = || {
            receives().any(|slot| {
                team.word(epoch, *slot).is_ok_and(|word| {
                    let word = worker.own(word).load_word(Width::W64, FenceSite::Arrived);
                    dissemination::accepts(word, epoch)
                })
            })
        };
        let describe = || {
            (
                WaitedFor::Pe(root_pe),
                format!("what it gives in {}", (self.info.words)()),
            )
        };
        let reason = WaitReason {
            call: self.info.name,
            needs: self.needs,
            describe: &describe,
        };
        let poll = || {
            published(own, true).or_else(|| {
                anyone_arrived().then(|| published(of_root, false).unwrap_or(EagerPoll::Arrived))
            })
        };
        if worker.engine.oversubscribed
            && let Some(outcome) = published(own, true)
        {
            self.prefetch_next_own(epoch);
            return Ok(outcome);
        }
        let mut since = None;
        let parker = self.area.parker(worker, worker.engine.me);
        worker.wait_unless(&reason, parker, poll, || {
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            if waited < GRACE {
                return None;
            }
            let waits = self.root_waits_too(slot, root_pe).transpose()?;
            Some(waits.map(|()| EagerPoll::RootWaits))
        })
    }

    /// After an arrival, yields the CPU to the root of the expected call, as long as it has not published yet. The call
    /// would wait for that time slice anyway. If the program makes another call, one time slice is lost, once.
    #[cold]
    pub(crate) fn yield_to_root(&self) {
        let (team, me) = (self.team, self.team.members.me());
        let epoch = self.state.epoch.wrapping_add(1);
        let root = self.state.last_eager.root;
        let Some(index) = team.eager_slot_index(epoch, 0).filter(|_| root != me) else {
            return;
        };
        let words = self.words(epoch, &self.info);
        let slot = SyncSlot {
            index,
            member: me as u32,
        };
        for _ in 0..YIELDS {
            if is_eager_word(words.load_acquire(slot), epoch) {
                break;
            }
            std::thread::yield_now();
        }
    }

    /// Prefetches the line of the next call's word while this call goes on: where PEs are oversubscribed, a member that
    /// finds a word at once is some calls behind the root.
    #[inline]
    fn prefetch_next_own(&self, epoch: u32) {
        let (team, me) = (self.team, self.team.members.me());
        let Some(index) = team.eager_slot_index(epoch, self.state.eager_calls) else {
            return;
        };
        let member = me as u32;
        if let Ok(word) = team.word(epoch, SyncSlot { index, member })
            && let Some(span) = self.worker.peers.span(word, self.worker.engine.me)
        {
            span.prefetch_read();
        }
    }

    /// A word at a PE, if this PE loads that one's memory.
    #[inline]
    fn mapped_word(&self, pe: usize, word: Elements<u64>) -> Result<Option<HostSpan<'_>>> {
        let worker = self.worker;
        if let Some(span) = worker.peers.span(word, pe) {
            return Ok(Some(HostSpan::Mapped(span)));
        }
        match worker.access_path(OpKind::Put, word, pe)? {
            AccessPath::Mapped(span) => Ok(Some(span)),
            _ => Ok(None),
        }
    }

    /// Announces that this PE waits for the root in a call, and checks whether the root announces the same of itself.
    #[cold]
    fn root_waits_too(&self, slot: EagerSlot, root_pe: usize) -> Result<Option<()>> {
        let word = self.team.waiting_word()?;
        let call = dissemination::word(slot.epoch(), slot.index.into());
        let own = self.worker.own(word);
        own.store_word(Width::W64, call, FenceSite::Arrive);
        // If the root is lost, the wait itself finds that, and then polls for its word once more.
        let of_root = self.mapped_word(root_pe, word).unwrap_or_default();
        let waits =
            of_root.is_some_and(|span| span.load_word(Width::W64, FenceSite::Arrived) == call);
        Ok(waits.then_some(()))
    }
}
