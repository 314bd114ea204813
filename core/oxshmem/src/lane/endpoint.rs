//! One context's lane of one transport, and what is outstanding on it. One owner at a time uses it: the
//! context's thread.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use oxshmem_transport::{Counters, Lane, MemoryKind, Op, Pe, Status};

use super::Effect;
use super::in_flight::{InFlight, Issued, PeerInFlight};
use super::rail::{Rail, Vacant};
use crate::order::{OpKind, OpSet, preserves_order};
use crate::trace::{Operation, Tally, Trace};
use crate::{Error, Result};

/// One context's lane of one transport.
pub(crate) struct Endpoint {
    via: Arc<Rail>,
    /// Which of the transports it is.
    pub(super) index: usize,
    /// Number of PEs in the world.
    pes: usize,
    // Dropped before the registrations that its operations use.
    lane: RefCell<LaneState>,
    outstanding: RefCell<InFlight>,
    /// Where there is a trace. Boxed: others need not carry it.
    pub(super) tally: Option<Box<Tally>>,
}

struct LaneState {
    lane: Option<Box<dyn Lane>>,
    /// By PE, whether it is connected; empty where none need be.
    connected: Vec<bool>,
    /// Why there is no lane any more.
    failure: String,
    /// Operations that are to be posted together.
    waiting: Waiting,
    /// Why some of those were refused, by the PE they went to.
    refused: Vec<(usize, oxshmem_transport::Error)>,
    /// The PEs to which the way has failed although they live, and why.
    cut: Vec<(usize, String)>,
    /// A way has failed, or the lane, since who may wait for what was on it was told.
    untold: bool,
    /// Who was told.
    told: Vec<usize>,
}

impl Deref for Endpoint {
    type Target = Rail;
    fn deref(&self) -> &Rail {
        &self.via
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// How a lane has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Towards this PE, which does not answer any more.
    Peer(Pe),
    /// Towards some PE that lives, or as a whole: [`Channel::untold`] gives whom that concerns.
    Way,
}

/// What looking at a lane alone has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollOutcome {
    /// What was looked for has completed.
    Completed,
    /// The way to this PE has failed.
    Failed(Pe),
    NotYet,
}

/// Operations towards one PE that a lane has yet to be given: before any other, and before anything
/// is waited for.
#[derive(Default)]
struct Waiting {
    pe: usize,
    ops: Vec<Op>,
}

// SAFETY: the operations' near sides are the poster's, who promised their validity until they have
// completed, wherever the lane, and what waits for it, is moved to.
unsafe impl Send for Waiting {}

impl LaneState {
    /// Notes a way that has failed although the PE lives. The others' go on.
    fn note_cut(&mut self, error: &oxshmem_transport::Error) {
        if let oxshmem_transport::Error::Connection { pe, .. } = error
            && !self.cut.iter().any(|(known, _)| *known == pe.index())
        {
            self.cut.push((pe.index(), error.to_string()));
            self.untold = true;
        }
    }

    /// Drives the lane a step. Gives the PE to which a way has failed just now.
    #[inline]
    fn step(&mut self) -> Option<Pe> {
        match self.lane.as_mut()?.progress() {
            Ok(()) => None,
            Err(oxshmem_transport::Error::PeerLost { pe, .. }) => Some(pe),
            Err(error @ oxshmem_transport::Error::Connection { .. }) => {
                self.note_cut(&error);
                None
            }
            Err(error) => {
                self.lane = None;
                self.failure = error.to_string();
                self.untold = true;
                None
            }
        }
    }

    /// Drives the lane until so many operations towards a PE have completed, for some rounds at most.
    #[inline]
    fn look_for(&mut self, pe: Pe, target: u64, rounds: u32) -> PollOutcome {
        for _ in 0..rounds {
            if let Some(failed) = self.step() {
                return PollOutcome::Failed(failed);
            }
            match &self.lane {
                Some(lane) if lane.counters(pe).completed >= target => {
                    return PollOutcome::Completed;
                }
                Some(_) if self.cut.is_empty() => {}
                _ => break,
            }
        }
        PollOutcome::NotYet
    }

    /// Posts what waits, as far as there is room. Gives whether nothing waits any more.
    fn post_deferred(&mut self) -> bool {
        let pe = self.waiting.pe;
        while !self.waiting.ops.is_empty() {
            let ops = &mut self.waiting.ops;
            let Some(lane) = &mut self.lane else {
                ops.clear();
                break;
            };
            // SAFETY: whoever put them off promised what `Lane::post` needs.
            let posted = unsafe { lane.post(Pe(pe as u32), ops) };
            let taken = posted.accepted.min(ops.len());
            match posted.status {
                Status::All => ops.clear(),
                Status::Full => {
                    ops.drain(..taken);
                    return false;
                }
                // That one can never be taken; those behind it may.
                Status::Refused(error) => {
                    ops.drain(..(taken + 1).min(ops.len()));
                    self.note_cut(&error);
                    self.refused.push((pe, error));
                }
            }
        }
        true
    }

    /// Why the way to a PE has failed, if it has, although the PE lives.
    fn cut_to(&self, pe: usize) -> Option<String> {
        let cut = self.cut.iter().find(|(whom, _)| *whom == pe)?;
        Some(cut.1.clone())
    }

    /// The lane, and whether all that waited for it has been posted.
    fn ready(&mut self) -> Result<(&mut dyn Lane, bool), String> {
        let posted = self.post_deferred();
        Ok((self.lane()?, posted))
    }

    #[inline]
    fn lane(&mut self) -> Result<&mut dyn Lane, String> {
        match &mut self.lane {
            Some(lane) => Ok(lane.as_mut()),
            None => Err(self.failure.clone()),
        }
    }

    /// Whether the next context may have it: nothing is left of this one's.
    fn is_sound(&self) -> bool {
        self.cut.is_empty() && self.refused.is_empty() && self.waiting.ops.is_empty()
    }
}

impl Endpoint {
    /// A context's, in a job of `pes` PEs.
    pub(super) fn open(via: &Arc<Rail>, index: usize, pes: usize) -> Result<Self> {
        let (lane, connected) = match via.take_lane()? {
            Some(Vacant { lane, connected }) => (Some(lane), connected),
            None => (None, Vec::new()),
        };
        Ok(Endpoint {
            via: Arc::clone(via),
            index,
            pes,
            lane: RefCell::new(LaneState {
                lane,
                connected,
                failure: "not opened".into(),
                waiting: Waiting::default(),
                refused: Vec::new(),
                cut: Vec::new(),
                untold: false,
                told: Vec::new(),
            }),
            outstanding: RefCell::default(),
            tally: None,
        })
    }

    /// What shows the lane in a trace as that of a context.
    pub(super) fn tally(&self, trace: &Arc<Trace>, context: u64) -> Box<Tally> {
        Box::new(Tally::new(trace, context, (self.index, self.name)))
    }

    /// An operation is given to the lane, and lasts until what this gives is dropped if it is `awaited`.
    #[inline]
    pub(super) fn traced(
        &self,
        op: &Op,
        pe: usize,
        awaited: bool,
        leaves: Effect,
    ) -> Option<Operation<'_>> {
        let leaves = !matches!(leaves, Effect::Nothing);
        self.tally.as_ref()?.operation(op, pe, (awaited, leaves))
    }

    fn trace_clean(&self) {
        if let Some(tally) = self.tally.as_ref().filter(|_| self.is_clean()) {
            tally.clean();
        }
    }

    /// Its context ends. If all it issued has completed, the next one may have the lane; else that is
    /// dropped, which waits until nothing outstanding touches local memory.
    pub(super) fn close(&mut self, completed: bool) {
        let state = self.lane.get_mut();
        let Some(lane) = state.lane.take() else {
            return;
        };
        if completed && state.is_sound() {
            let connected = std::mem::take(&mut state.connected);
            self.via.leave_lane(Vacant { lane, connected });
        }
    }

    /// The world ends: the lane is left to be dropped after its bootstrap, with its transport.
    pub(super) fn retire_lane(&mut self) {
        let state = self.lane.get_mut();
        if let Some(lane) = state.lane.take() {
            let connected = Vec::new();
            self.via.leave_lane(Vacant { lane, connected });
        }
    }

    /// Whether the lane has yet to be connected with a PE.
    #[inline]
    pub(super) fn needs_connection(&self, pe: usize) -> bool {
        self.is_wired() && self.lane.borrow().connected.get(pe) != Some(&true)
    }

    /// This side's endpoint of the lane towards `pe`.
    pub(super) fn endpoint(&self, call: &'static str, pe: usize) -> Result<Vec<u8>> {
        let mut state = self.lane.borrow_mut();
        let lane = state.lane().map_err(|why| self.failed(call, why))?;
        Ok(lane.endpoint(Pe(pe as u32))?)
    }

    /// Connects the lane with `pe`, which answered.
    pub(super) fn connect(&self, call: &'static str, pe: usize, answer: &[u8]) -> Result<()> {
        let mut state = self.lane.borrow_mut();
        let lane = state.lane().map_err(|why| self.failed(call, why))?;
        lane.connect(Pe(pe as u32), answer)?;
        state.connected.resize(self.pes, false);
        if let Some(connected) = state.connected.get_mut(pe) {
            *connected = true;
        }
        Ok(())
    }

    /// The error of a lane that is gone.
    pub(super) fn failed(&self, call: &'static str, why: String) -> Error {
        Error::LaneFailed {
            call,
            transport: self.name,
            why,
        }
    }

    /// Posts one operation; gives how many the lane has then taken towards the PE.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    pub(super) unsafe fn post(&self, to: Pe, op: Op) -> Result<(Status, u64), String> {
        let mut state = self.lane.borrow_mut();
        let (lane, ready) = state.ready()?;
        if !ready {
            return Ok((Status::Full, 0));
        }
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(to, &[op]) };
        let count = lane.counters(to).posted;
        if let Status::Refused(error) = &posted.status {
            state.note_cut(error);
        }
        Ok((posted.status, count))
    }

    /// Takes an operation to post together with others, if the transport gains by that and there is
    /// room.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`], from now on.
    pub(super) unsafe fn defer(&self, pe: usize, op: Op) -> bool {
        let most = self.caps.batch as usize;
        if most < 2 {
            return false;
        }
        let state = &mut *self.lane.borrow_mut();
        // Who was refused is to be told so.
        if state.lane.is_none() || state.refused.iter().any(|(whom, _)| *whom == pe) {
            return false;
        }
        let other = state.waiting.pe != pe;
        if (other || state.waiting.ops.len() >= most) && !state.post_deferred() {
            return false;
        }
        let waiting = &mut state.waiting;
        waiting.ops.reserve(most);
        waiting.pe = pe;
        waiting.ops.push(op);
        if waiting.ops.len() == most {
            state.post_deferred();
        }
        true
    }

    /// Posts what was put off. Gives whether nothing of it waits that goes to `pe`.
    pub(super) fn post_waiting(&self, pe: usize) -> bool {
        let mut state = self.lane.borrow_mut();
        state.post_deferred() || state.waiting.pe != pe
    }

    /// Why something that was put off was refused by `pe`, once.
    pub(super) fn take_refusal(&self, pe: usize) -> Option<oxshmem_transport::Error> {
        let refused = &mut self.lane.borrow_mut().refused;
        let mut first = None;
        // The others of that PE have the same cause.
        for (whom, error) in std::mem::take(refused) {
            match whom == pe {
                true => first = first.or(Some(error)),
                false => refused.push((whom, error)),
            }
        }
        first
    }

    /// Whether the lane is gone, and why.
    pub(super) fn gone(&self) -> Option<String> {
        self.lane.borrow_mut().lane().err()
    }

    /// Forgets everything towards a PE that was lost, after the lane's first step since: what has not
    /// completed is given up.
    pub(super) fn forget(&self, pe: usize) {
        let state = &mut *self.lane.borrow_mut();
        let mut completed = true;
        if state.waiting.pe == pe && !state.waiting.ops.is_empty() {
            state.waiting.ops.clear();
            completed = false;
        }
        state.refused.retain(|(whom, _)| {
            completed &= *whom != pe;
            *whom != pe
        });
        let counters = state.lane().map(|lane| lane.counters(Pe(pe as u32)));
        match counters.is_ok_and(|now| completed && now.completed >= now.posted) {
            true => self.clean(pe),
            false => self.give_up(pe),
        }
    }

    pub(super) fn counters(&self, to: Pe) -> Result<Counters, String> {
        Ok(self.lane.borrow_mut().lane()?.counters(to))
    }

    /// Drives the lane a step. Gives what has failed.
    pub(super) fn progress(&self) -> Option<Failed> {
        let state = &mut *self.lane.borrow_mut();
        state.post_deferred();
        let lost = state.step().map(Failed::Peer);
        lost.or(state.untold.then_some(Failed::Way))
    }

    /// The PEs that live, and to which something is outstanding on a way that has failed: they may wait for it.
    /// What this library's own words may be among, which are put into host memory.
    fn stranded(&self) -> Vec<(usize, String)> {
        let state = self.lane.borrow();
        if state.lane.is_some() && state.cut.is_empty() {
            return Vec::new();
        }
        let why = |pe: usize| match &state.lane {
            Some(_) => state.cut_to(pe),
            None => Some(state.failure.clone()),
        };
        let words = |pe: &usize| self.updates(*pe).has(OpKind::Put, MemoryKind::Host);
        let stranded = self.peers_in_flight().filter(words);
        stranded.filter_map(|pe| Some((pe, why(pe)?))).collect()
    }

    /// One of these PEs that may wait for what is outstanding on a way that has failed, and why it has.
    pub(super) fn stranded_of(&self, which: impl Fn(usize) -> bool) -> Option<(usize, String)> {
        self.stranded().into_iter().find(|(pe, _)| which(*pe))
    }

    /// The PEs that may wait for what is outstanding on a way that has failed; each once.
    pub(super) fn undelivered_peers(&self) -> Vec<usize> {
        if !std::mem::take(&mut self.lane.borrow_mut().untold) {
            return Vec::new();
        }
        let mut untold: Vec<usize> = self.stranded().into_iter().map(|(pe, _)| pe).collect();
        let told = &mut self.lane.borrow_mut().told;
        untold.retain(|pe| !told.contains(pe));
        told.extend(&untold);
        untold
    }

    /// Completions of what was posted to a PE are about to be waited for.
    pub(super) fn request_completion(&self, pe: Pe) {
        if let Ok(lane) = self.lane.borrow_mut().lane() {
            lane.request_completion(pe);
        }
    }

    /// Posts one operation and drives the lane alone until it has completed, for some rounds at most;
    /// nothing, if the lane does not take it at once. Gives also how many it has then taken.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    #[inline]
    pub(super) unsafe fn perform(
        &self,
        to: Pe,
        op: &Op,
        (updates, rounds): (bool, u32),
    ) -> Option<(u64, PollOutcome)> {
        let state = &mut *self.lane.borrow_mut();
        let connected = !self.is_wired() || state.connected.get(to.index()) == Some(&true);
        if !connected || !state.waiting.ops.is_empty() || !state.cut.is_empty() {
            return None;
        }
        let lane = state.lane.as_mut()?;
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(to, std::slice::from_ref(op)) };
        // What is full now may not be soon; what is refused is so again.
        let Status::All = posted.status else {
            return None;
        };
        let target = lane.counters(to).posted;
        if updates {
            lane.request_completion(to);
        }
        Some((target, state.look_for(to, target, rounds)))
    }

    /// Drives the lane alone until so many operations towards a PE have completed, for some rounds at
    /// most.
    pub(super) fn look_for(&self, pe: Pe, target: u64, rounds: u32) -> PollOutcome {
        self.lane.borrow_mut().look_for(pe, target, rounds)
    }

    /// Why the way to a PE has failed, if it has, although the PE lives.
    pub(super) fn failure_towards(&self, pe: usize) -> Option<String> {
        self.lane.borrow().cut_to(pe)
    }

    /// Drops the lane, which waits until nothing outstanding touches local memory. What it had not
    /// completed stays noted, so that the next quiet says so.
    pub(super) fn fail(&self, why: &Error) {
        let state = &mut *self.lane.borrow_mut();
        if state.lane.take().is_some() {
            state.waiting = Waiting::default();
            state.failure = why.to_string();
            state.untold = true;
        }
    }

    /// Notes something outstanding.
    #[inline]
    pub(super) fn note(&self, pe: usize, noted: Issued) {
        let mut outstanding = self.outstanding.borrow_mut();
        outstanding.note(self.pes, pe, noted);
    }

    /// How many operations towards a PE a flush must see completed; none if nothing is outstanding.
    /// An error is told once for each PE: what the lane had not completed is lost with it.
    pub(super) fn outstanding(&self, pe: Pe) -> Option<Result<u64, String>> {
        let mut outstanding = self.outstanding.borrow_mut();
        outstanding.in_flight(pe.index())?;
        let target = self.counters(pe).map(|counters| counters.posted);
        if target.is_err() {
            outstanding.give_up(pe.index());
        }
        drop(outstanding);
        self.trace_clean();
        Some(target)
    }

    /// What is outstanding towards a PE.
    fn in_flight(&self, pe: usize) -> Option<PeerInFlight> {
        self.outstanding.borrow().in_flight(pe).copied()
    }

    /// All updates outstanding towards a PE.
    pub(super) fn updates(&self, pe: usize) -> OpSet {
        self.in_flight(pe).unwrap_or_default().all
    }

    /// Whether nothing but messages is outstanding towards a PE.
    pub(super) fn only_messages(&self, pe: usize) -> bool {
        let dirty = self.in_flight(pe);
        dirty.is_some_and(|dirty| !dirty.brings && dirty.all.only_messages())
    }

    /// Whether the lane itself performs all of `earlier` before any of `later`.
    pub(super) fn preserves_order(&self, earlier: OpSet, later: OpSet) -> bool {
        preserves_order(|kind| self.guarantees(kind), earlier, later)
    }

    /// The PEs with anything outstanding, in order.
    pub(super) fn peers_in_flight(&self) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let pe = self.outstanding.borrow().next(from)?;
            from = pe + 1;
            Some(pe)
        })
    }

    /// What the next fence orders of what is outstanding towards a PE.
    pub(super) fn to_order(&self, pe: usize) -> OpSet {
        self.in_flight(pe).unwrap_or_default().classes
    }

    pub(super) fn is_clean(&self) -> bool {
        self.outstanding.borrow().is_clean()
    }

    /// What was outstanding towards a PE has completed.
    pub(super) fn clean(&self, pe: usize) {
        self.outstanding.borrow_mut().clean(pe);
        self.trace_clean();
    }

    /// What is outstanding towards a PE is given up: if something was to come, a quiet tells so.
    pub(super) fn give_up(&self, pe: usize) {
        self.outstanding.borrow_mut().give_up(pe);
        self.trace_clean();
    }

    /// Of what is outstanding towards a PE the messages are given up.
    pub(super) fn give_messages_up(&self, pe: usize) {
        self.outstanding.borrow_mut().give_messages_up(pe);
    }

    /// Whether messages to a PE were given up.
    pub(super) fn is_unanswered(&self, pe: usize) -> bool {
        self.in_flight(pe).is_some_and(|dirty| dirty.unanswered)
    }

    /// A PE, one of `only`, from which something does not come, while no quiet has told so.
    pub(super) fn missing(&self, only: Option<&[usize]>) -> Option<usize> {
        let outstanding = self.outstanding.borrow();
        let mut missing = outstanding.missing().iter().copied();
        missing.find(|pe| only.is_none_or(|only| only.contains(pe)))
    }

    /// A quiet has told that what was to come from a PE does not.
    pub(super) fn failure_was_reported(&self, pe: usize) {
        self.outstanding.borrow_mut().failure_was_reported(pe);
        self.trace_clean();
    }

    /// What is outstanding towards a PE comes before what other lanes are given later.
    pub(super) fn fence(&self, pe: usize) {
        self.outstanding.borrow_mut().fence(pe);
    }

    pub(super) fn is_fenced(&self, pe: usize) -> bool {
        self.in_flight(pe).is_some_and(|dirty| dirty.fenced)
    }

    /// Has a test look at what the lane is asked.
    #[cfg(test)]
    pub(super) fn wrap(&self, wrap: impl FnOnce(Box<dyn Lane>) -> Box<dyn Lane>) {
        let lane = &mut self.lane.borrow_mut().lane;
        *lane = lane.take().map(wrap);
    }
}
