//! The pool of one PE: its operations in flight, and the steps that may happen to them next.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{Completion, Counters, Error, Lane, Local, Op, Pe, Result, Status};

use super::pieces::{Piece, pieces, words};
use super::{Fenced, Settings};
use crate::choice::{Choices, Mode};
use crate::machine::Machine;

/// The number of times that the wrapped lane is driven for a piece before something else is done.
const DRIVES: usize = 64;
/// Polls after which an operation that was not performed by choice is performed.
const OLD: u32 = 3;
/// One operation in so many is held back by a PE that runs freely, ...
const HELD: usize = 6;
/// ... for less than so many polls: those of a wait that still yields.
const LONGEST: usize = 48;

/// One PE's pool.
pub(super) struct Pool {
    name: &'static str,
    me: Pe,
    settings: Settings,
    choices: Arc<dyn Choices>,
    machine: Option<Arc<Machine>>,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    lanes: BTreeMap<u64, WrappedLane>,
    next_lane: u64,
    /// In the order posted.
    pending: Vec<Pending>,
    /// The last post was Full though there was room: the next is not.
    was_full: bool,
    /// Whether operations that the wrapped lanes have completed are placed.
    places: bool,
}

struct WrappedLane {
    lane: Box<dyn Lane>,
    counters: BTreeMap<Pe, Counters>,
    /// The fences towards each PE.
    fences: BTreeMap<Pe, Fences>,
    /// The error by which it failed.
    failure: Option<Error>,
}

/// A lane's fences towards a PE.
#[derive(Clone, Copy, Default)]
struct Fences {
    count: u64,
    /// Whether a put was posted behind the last one.
    has_put: bool,
}

struct Pending {
    lane: u64,
    pe: Pe,
    op: Op,
    /// The number of its lane's fences towards the PE before it.
    fences: u64,
    /// Whether it is the first put behind the last of these.
    is_first_behind: bool,
    /// The source's copy, if the source may be reused already.
    _copied: Option<Box<[u8]>>,
    pieces: Vec<Piece>,
    /// Completed, as the lane counts it.
    counted: bool,
    /// Polls since it was posted.
    age: u32,
    /// Until this age it is performed only if it must be.
    held: u32,
}

// SAFETY: the raw pointers in the `Op`s are the posters', who promised their validity until the
// operation has completed or the lane is dropped, wherever it is performed; copies are owned here.
unsafe impl Send for Pending {}

/// A step that can happen.
#[derive(Clone, Copy)]
enum Step {
    /// This piece of this operation is performed.
    Perform(usize, usize),
    /// This operation's completion is counted.
    Complete(usize),
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("me", &self.me)
            .field("pending", &self.lock().pending.len())
            .finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(
        name: &'static str,
        me: Pe,
        settings: Settings,
        choices: Arc<dyn Choices>,
        machine: Option<Arc<Machine>>,
        places: bool,
    ) -> Self {
        Pool {
            name,
            me,
            settings,
            choices,
            machine,
            state: Mutex::new(PoolState {
                places,
                ..PoolState::default()
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_lane(&self, lane: Box<dyn Lane>) -> u64 {
        let mut state = self.lock();
        let number = state.next_lane;
        state.next_lane += 1;
        let wrapped = WrappedLane {
            lane,
            counters: BTreeMap::new(),
            fences: BTreeMap::new(),
            failure: None,
        };
        state.lanes.insert(number, wrapped);
        number
    }

    /// Takes a lane's operations out, then drops it: from here on nothing of it touches memory.
    pub(super) fn remove_lane(&self, number: u64) {
        let mut state = self.lock();
        let lane = state.lanes.remove(&number);
        let of_lane = state.pending.extract_if(.., |p| p.lane == number);
        let pending: Vec<Pending> = of_lane.collect();
        drop(state);
        // First the lane: until then it may read the copies that the operations own.
        drop(lane);
        drop(pending);
    }

    /// The wrapped lane's endpoint, for wiring.
    pub(super) fn with_lane<R>(
        &self,
        number: u64,
        f: impl FnOnce(&mut dyn Lane) -> Result<R>,
    ) -> Result<R> {
        match self.lock().lanes.get_mut(&number) {
            Some(wrapped) => f(wrapped.lane.as_mut()),
            None => Err(Error::Closed {
                transport: self.name,
            }),
        }
    }

    /// Cancels operations towards a lost PE, after the wrapped domain was notified of the loss. A wrapped lane may
    /// read the copies that the operations own until it is called once more.
    pub(super) fn cancel(&self, pe: Pe) {
        let state = &mut *self.lock();
        for pending in state.pending.extract_if(.., |p| p.pe == pe) {
            if let Some(wrapped) = state.lanes.get_mut(&pending.lane)
                && pending.pieces.iter().any(Piece::is_given)
                && let Err(error) = wrapped.lane.progress()
            {
                wrapped.failure.get_or_insert(error);
            }
        }
    }

    pub(super) fn counters(&self, lane: u64, pe: Pe) -> Counters {
        let state = self.lock();
        let counters = state.lanes.get(&lane).and_then(|l| l.counters.get(&pe));
        counters.copied().unwrap_or_default()
    }

    /// Takes an operation that was checked, or is full.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    pub(super) unsafe fn post(&self, lane: u64, pe: Pe, op: Op) -> Status {
        let mode = self.choices.mode(self.me);
        if let Some(depth) = self.settings.depth.map(u64::from) {
            let counters = self.counters(lane, pe);
            let deep = counters.posted - counters.completed >= depth;
            // Operations that it holds although they are counted may make it full, or not.
            let moody = !deep && mode != Mode::Tame && self.may_be_full(lane, pe, depth);
            if deep || (moody && self.choices.choose(2) == 1) {
                self.lock().was_full = !deep;
                return Status::Full;
            }
        }
        // SAFETY: the source is readable now, as this function's caller promises.
        let (op, copied) = unsafe { self.with_source(op) };
        let early = match (&op, self.settings.guarantees.completion) {
            (_, Completion::Placed) => false,
            (Op::Put { .. } | Op::PutSignal { .. }, _) => copied.is_some(),
            (Op::Atomic { fetch, .. }, _) => fetch.is_none(),
            _ => false,
        };
        let early = early && (mode == Mode::Tame || self.choices.choose(2) == 0);
        let held = match mode {
            Mode::Free if self.choices.choose(HELD) == 0 => self.choices.choose(LONGEST) as u32,
            _ => 0,
        };
        let mut state = self.lock();
        let Some(wrapped) = state.lanes.get_mut(&lane) else {
            return Status::Refused(Error::Closed {
                transport: self.name,
            });
        };
        let counters = wrapped.counters.entry(pe).or_default();
        counters.posted += 1;
        counters.completed += u64::from(early);
        let fences = wrapped.fences.entry(pe).or_default();
        let is_put = matches!(Class::of(&op), Class::Put);
        let is_first_behind = is_put && !std::mem::replace(&mut fences.has_put, true);
        let fences = fences.count;
        state.pending.push(Pending {
            lane,
            pe,
            pieces: pieces(
                &op,
                self.settings.signals_wait || !is_long(&op, &self.settings),
            ),
            op,
            fences,
            is_first_behind,
            _copied: copied,
            counted: early,
            age: 0,
            held,
        });
        drop(state);
        if mode == Mode::Tame {
            // There may be no later call that drives it.
            self.drain();
        }
        Status::All
    }

    /// A fence of a lane towards a PE.
    pub(super) fn fence(&self, lane: u64, pe: Pe) {
        if let Some(wrapped) = self.lock().lanes.get_mut(&lane) {
            let fences = wrapped.fences.entry(pe).or_default();
            fences.count += 1;
            fences.has_put = false;
        }
    }

    /// Whether as many operations are in flight as a lane has to hold. Not twice in a row.
    fn may_be_full(&self, lane: u64, pe: Pe, depth: u64) -> bool {
        let mut state = self.lock();
        if std::mem::take(&mut state.was_full) {
            return false;
        }
        let held = state
            .pending
            .iter()
            .filter(|p| (p.lane, p.pe) == (lane, pe));
        held.count() as u64 >= depth
    }

    /// The operation with its source copied, if that may be reused at once.
    ///
    /// # Safety
    ///
    /// The source is readable.
    unsafe fn with_source(&self, mut op: Op) -> (Op, Option<Box<[u8]>>) {
        let (Op::Put { from, .. } | Op::PutSignal { from, .. }) = &mut op else {
            return (op, None);
        };
        if from.len as u64 > self.settings.inline {
            return (op, None);
        }
        let mut bytes = vec![0; from.len].into_boxed_slice();
        let simulated = self
            .machine
            .as_ref()
            .and_then(|m| Some((m, m.registered(self.me, from.addr.addr(), from.len)?)));
        match simulated {
            // As a CPU that copies it into the work request.
            Some((machine, (storage, at))) => machine.load(self.me, &storage, at, &mut bytes),
            None if from.len == 0 => {}
            // SAFETY: readable by the caller's promise; these bytes are new.
            None => unsafe { copy_relaxed(from.addr, &mut bytes) },
        }
        *from = Local {
            addr: bytes.as_mut_ptr(),
            len: bytes.len(),
            key: None,
        };
        (op, Some(bytes))
    }

    /// A call of the PE: without a scheduler some of the possible steps are taken.
    pub(super) fn progress(&self, lane: u64) -> Result<()> {
        match self.choices.mode(self.me) {
            Mode::Directed => {}
            Mode::Tame => self.drain(),
            Mode::Free => self.take_random_steps(),
        }
        let mut state = self.lock();
        match state.lanes.get_mut(&lane) {
            None => Err(Error::Closed {
                transport: self.name,
            }),
            Some(wrapped) => {
                let driven = wrapped.lane.progress();
                match std::mem::take(&mut wrapped.failure) {
                    None => driven,
                    Some(error) => {
                        wrapped.failure = driven.err();
                        Err(error)
                    }
                }
            }
        }
    }

    /// Takes some of the possible steps, and those of operations that have waited too long.
    pub(super) fn take_random_steps(&self) {
        for _ in 0..self.steps() {
            if self.choices.choose(3) == 0 {
                continue;
            }
            let choice = self.choices.choose(usize::MAX);
            let mut state = self.lock();
            let ready = state.possible_at(&self.settings, |p| p.age >= p.held);
            if let Some(step) = ready.get(choice % ready.len().max(1)) {
                state.take(*step);
            }
        }
        let mut state = self.lock();
        // As often as there can be steps: the wrapped lane may have no room for some of them now.
        let most: usize = state.pending.iter().map(|p| p.pieces.len() + 1).sum();
        for _ in 0..most {
            let old = state.possible_at(&self.settings, |p| p.age >= p.held + OLD);
            let Some(step) = old.first() else { break };
            state.take(*step);
        }
        state
            .pending
            .iter_mut()
            .for_each(|p| p.age = p.age.saturating_add(1));
    }

    /// Takes all possible steps.
    pub(super) fn drain(&self) {
        self.lock().was_full = false;
        while self.steps() > 0 {
            self.step(0);
        }
    }

    pub(super) fn steps(&self) -> usize {
        let mut state = self.lock();
        state.poll();
        state.possible(&self.settings).len()
    }

    pub(super) fn step(&self, number: usize) -> String {
        let mut state = self.lock();
        let steps = state.possible(&self.settings);
        match steps.get(number) {
            Some(step) => {
                let words = state.take(*step);
                format!("{} of PE {}: {words}", self.name, self.me)
            }
            None => "nothing under way".into(),
        }
    }
}

/// Copies bytes that peers may write at the same time, one by one.
///
/// # Safety
///
/// `from` is readable for as many bytes as `to` has.
unsafe fn copy_relaxed(from: *mut u8, to: &mut [u8]) {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
    let mut at = 0;
    while at < to.len() {
        let here = from.wrapping_add(at);
        let word = here.addr().is_multiple_of(8) && to.len() - at >= 8;
        if word {
            // SAFETY: 8 readable bytes, aligned; symmetric memory is accessed atomically.
            let value = unsafe { AtomicU64::from_ptr(here.cast()) }.load(Ordering::Relaxed);
            if let Some(part) = to.get_mut(at..at + 8) {
                part.copy_from_slice(&value.to_ne_bytes());
            }
            at += 8;
        } else {
            // SAFETY: a readable byte.
            let value = unsafe { AtomicU8::from_ptr(here) }.load(Ordering::Relaxed);
            if let Some(byte) = to.get_mut(at) {
                *byte = value;
            }
            at += 1;
        }
    }
}

/// Whether an operation is longer than those that keep an order.
fn is_long(op: &Op, settings: &Settings) -> bool {
    match op {
        Op::Put { from: local, .. }
        | Op::PutSignal { from: local, .. }
        | Op::Get { into: local, .. } => local.len as u64 > settings.ordered,
        _ => false,
    }
}

impl Pending {
    fn is_performed(&self) -> bool {
        self.pieces.iter().all(Piece::is_done)
    }

    /// Whether it has to wait for one that was posted before it.
    fn waits_for(&self, earlier: &Pending, settings: &Settings) -> bool {
        let promised = settings.guarantees;
        if self.pe != earlier.pe || earlier.is_performed() {
            return false;
        }
        if self.lane != earlier.lane && !promised.across_lanes {
            return false;
        }
        let (first, second) = (Class::of(&earlier.op), Class::of(&self.op));
        if is_long(&earlier.op, settings) || is_long(&self.op, settings) {
            return self.lane == earlier.lane && matches!(second, Class::Flush);
        }
        match (first, second) {
            (_, Class::Flush) => true,
            (Class::Flush, _) => false,
            (Class::Put, Class::Put) => {
                let behind = self.lane == earlier.lane && earlier.fences < self.fences;
                let fenced = match settings.fenced {
                    Fenced::All => behind,
                    Fenced::First => behind && self.is_first_behind,
                    Fenced::None => false,
                };
                promised.put_put || promised.put_fence_put && fenced
            }
            (Class::Put, Class::Atomic { .. }) => promised.put_atomic,
            (Class::Put, Class::Get) => promised.put_get,
            (Class::Atomic { .. }, Class::Put) => promised.atomic_put,
            (Class::Atomic { fetch: one }, Class::Atomic { fetch: other }) => {
                promised.atomic_atomic || (one && other && promised.get_get)
            }
            (Class::Get | Class::Atomic { fetch: true }, Class::Get)
            | (Class::Get, Class::Atomic { fetch: true }) => promised.get_get,
            (Class::Get, _) | (Class::Atomic { .. }, Class::Get) => false,
        }
    }
}

#[derive(Clone, Copy)]
enum Class {
    Put,
    Get,
    Atomic { fetch: bool },
    Flush,
}

impl Class {
    fn of(op: &Op) -> Self {
        match op {
            Op::Put { .. } | Op::PutSignal { .. } => Class::Put,
            Op::Get { .. } => Class::Get,
            Op::Atomic { fetch, .. } => Class::Atomic {
                fetch: fetch.is_some(),
            },
            _ => Class::Flush,
        }
    }
}

impl PoolState {
    /// All steps that can happen now, in the order posted.
    fn possible(&self, settings: &Settings) -> Vec<Step> {
        self.possible_at(settings, |_| true)
    }

    /// Those of them that concern operations that are `ready`.
    fn possible_at(&self, settings: &Settings, ready: impl Fn(&Pending) -> bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, pending) in self.pending.iter().enumerate() {
            if !ready(pending) {
                continue;
            }
            if pending.is_performed() {
                if !pending.counted {
                    steps.push(Step::Complete(index));
                }
                continue;
            }
            let before = self.pending.iter().take(index);
            if before.into_iter().any(|e| pending.waits_for(e, settings)) {
                continue;
            }
            for (at, piece) in pending.pieces.iter().enumerate() {
                let before = pending.pieces.iter().take(at);
                let ready = !piece.last || before.into_iter().all(Piece::is_done);
                if piece.is_waiting() && ready {
                    steps.push(Step::Perform(index, at));
                }
            }
        }
        steps
    }

    /// Takes a step, and gives it in words.
    fn take(&mut self, step: Step) -> String {
        let words = match step {
            Step::Complete(index) => {
                self.count(index);
                let told = self.pending.get(index).map(|p| words(p.pe, &p.op));
                format!("completes {}", told.unwrap_or_default())
            }
            Step::Perform(index, at) => {
                self.perform(index, at);
                let told = self.pending.get(index).and_then(|p| {
                    let piece = p.pieces.get(at)?;
                    Some(words(p.pe, &piece.op))
                });
                told.unwrap_or_default()
            }
        };
        self.poll();
        words
    }

    fn count(&mut self, index: usize) {
        let Some(pending) = self.pending.get_mut(index) else {
            return;
        };
        pending.counted = true;
        if let Some(wrapped) = self.lanes.get_mut(&pending.lane) {
            wrapped.counters.entry(pending.pe).or_default().completed += 1;
        }
    }

    /// Gives a piece to the wrapped lane and drives that.
    fn perform(&mut self, index: usize, at: usize) {
        let Some(pending) = self.pending.get_mut(index) else {
            return;
        };
        let (Some(piece), Some(wrapped)) = (
            pending.pieces.get_mut(at),
            self.lanes.get_mut(&pending.lane),
        ) else {
            return;
        };
        if let Op::Flush = piece.op {
            // All operations before it were performed.
            piece.done();
            return;
        }
        let lane = wrapped.lane.as_mut();
        // SAFETY: the poster of the operation promised its memory until it is completed, which is not
        // counted yet, or its source was copied, and the copy lives as long as the operation.
        let mut went = unsafe { piece.give(lane, pending.pe) };
        for _ in 0..DRIVES {
            if went.is_err() || !piece.is_given() {
                break;
            }
            went = piece.poll(lane, pending.pe, self.places);
            if piece.is_given() && went.is_ok() {
                went = lane.progress();
            }
        }
        // The operation was checked before: it can only be the PE or the lane that is gone.
        if let Err(error) = went {
            wrapped.failure.get_or_insert(error);
        }
    }

    /// Polls the wrapped lanes for completions.
    fn poll(&mut self) {
        for pending in &mut self.pending {
            let Some(wrapped) = self.lanes.get_mut(&pending.lane) else {
                continue;
            };
            for piece in pending.pieces.iter_mut().filter(|p| p.is_given()) {
                let lane = wrapped.lane.as_mut();
                let went = piece.poll(lane, pending.pe, self.places);
                if let Err(error) = went.and_then(|()| lane.progress()) {
                    wrapped.failure.get_or_insert(error);
                }
            }
        }
        self.pending.retain(|p| !(p.counted && p.is_performed()));
    }
}

#[cfg(test)]
mod tests;
