//! One PE's operations under way, and what may happen to them next.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    AtomicOp, Completion, Counters, Error, Guarantees, Lane, Local, Op, Pe, Remote, Result,
    SignalOp, Status, Width,
};

use super::Settings;
use crate::choice::{Choices, Mode};
use crate::machine::Machine;

/// Pieces that a put is split into, at most.
const PIECES: usize = 4;
/// How often the wrapped lane is driven for a piece before something else gets its turn.
const DRIVES: usize = 64;
/// Looks after which an operation that nobody performed is performed.
const OLD: u32 = 3;

/// One PE's pool.
pub(super) struct Pool {
    name: &'static str,
    me: Pe,
    settings: Settings,
    choices: Arc<dyn Choices>,
    machine: Option<Arc<Machine>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lanes: BTreeMap<u64, WrappedLane>,
    next_lane: u64,
    /// In the order posted.
    pending: Vec<Pending>,
    /// The last answer was Full: the next is not.
    was_full: bool,
}

struct WrappedLane {
    lane: Box<dyn Lane>,
    counters: BTreeMap<Pe, Counters>,
    /// Why it does not work any more.
    failure: Option<Error>,
}

struct Pending {
    lane: u64,
    pe: Pe,
    op: Op,
    /// The source's copy, where the source may be gone.
    _copied: Option<Box<[u8]>>,
    pieces: Vec<Piece>,
    /// Completed, as the lane counts it.
    counted: bool,
    age: u32,
}

/// A part of an operation that happens at one moment.
struct Piece {
    op: Op,
    /// It goes after all pieces before it: a signal, a flush.
    last: bool,
    state: PieceState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceState {
    Waiting,
    /// Given to the wrapped lane; done when that has completed so many.
    Given(u64),
    Done,
}

// SAFETY: the raw pointers in the `Op`s are the posters', who promised their validity until the
// operation has completed or the lane is dropped, wherever it is performed; copies are owned here.
unsafe impl Send for Pending {}

/// Something that can happen.
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
    ) -> Self {
        Pool {
            name,
            me,
            settings,
            choices,
            machine,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_lane(&self, lane: Box<dyn Lane>) -> u64 {
        let mut state = self.lock();
        let number = state.next_lane;
        state.next_lane += 1;
        let wrapped = WrappedLane {
            lane,
            counters: BTreeMap::new(),
            failure: None,
        };
        state.lanes.insert(number, wrapped);
        number
    }

    /// Takes a lane's operations out, then drops it: from here on nothing of it touches memory.
    pub(super) fn remove_lane(&self, number: u64) {
        let mut state = self.lock();
        state.pending.retain(|pending| pending.lane != number);
        let lane = state.lanes.remove(&number);
        drop(state);
        drop(lane);
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

    /// What is outstanding towards a lost PE is given up.
    pub(super) fn forget(&self, pe: Pe) {
        self.lock().pending.retain(|pending| pending.pe != pe);
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
        let outstanding = {
            let counters = self.counters(lane, pe);
            counters.posted - counters.completed
        };
        let deep = self.settings.depth.is_some_and(|depth| {
            let held = self.lock();
            let held = held.pending.iter().filter(|p| (p.lane, p.pe) == (lane, pe));
            outstanding >= u64::from(depth) || held.count() as u64 >= u64::from(depth)
        });
        let was_full = std::mem::take(&mut self.lock().was_full);
        let moody = mode != Mode::Tame && !was_full && self.choices.choose(FULL) == FULL - 1;
        if deep || moody {
            self.lock().was_full = moody;
            return Status::Full;
        }
        // SAFETY: the caller's promise: the source is readable now.
        let (op, copied) = unsafe { self.with_source(op) };
        let early = match (&op, self.settings.guarantees.completion) {
            (_, Completion::Placed) => false,
            (Op::Put { .. } | Op::PutSignal { .. }, _) => copied.is_some(),
            (Op::Atomic { fetch, .. }, _) => fetch.is_none(),
            _ => false,
        };
        let early = early && (mode == Mode::Tame || self.choices.choose(2) == 0);
        let mut state = self.lock();
        let Some(wrapped) = state.lanes.get_mut(&lane) else {
            return Status::Refused(Error::Closed {
                transport: self.name,
            });
        };
        let counters = wrapped.counters.entry(pe).or_default();
        counters.posted += 1;
        counters.completed += u64::from(early);
        state.pending.push(Pending {
            lane,
            pe,
            pieces: pieces(&op),
            op,
            _copied: copied,
            counted: early,
            age: 0,
        });
        Status::All
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

    /// A call of the PE: outside of a schedule some of what can happen does.
    pub(super) fn progress(&self, lane: u64) -> Result<()> {
        match self.choices.mode(self.me) {
            Mode::Directed => {}
            Mode::Tame => self.drain(),
            Mode::Free => {
                let steps = self.steps();
                for _ in 0..steps {
                    let steps = self.steps();
                    if steps > 0 && self.choices.choose(3) > 0 {
                        self.step(self.choices.choose(steps));
                    }
                }
                self.age();
            }
        }
        let mut state = self.lock();
        match state.lanes.get_mut(&lane) {
            None => Err(Error::Closed {
                transport: self.name,
            }),
            Some(wrapped) => match wrapped.failure.take() {
                Some(error) => Err(error),
                None => wrapped.lane.progress(),
            },
        }
    }

    /// Performs what has waited too long.
    pub(super) fn age(&self) {
        loop {
            let mut state = self.lock();
            let steps = state.possible(self.settings.guarantees);
            let old = steps.into_iter().find(|step| {
                let (Step::Perform(of, _) | Step::Complete(of)) = step;
                state.pending.get(*of).is_some_and(|p| p.age >= OLD)
            });
            let Some(step) = old else {
                state.pending.iter_mut().for_each(|p| p.age += 1);
                return;
            };
            state.take(step);
        }
    }

    /// Performs everything that can be.
    pub(super) fn drain(&self) {
        while self.steps() > 0 {
            self.step(0);
        }
    }

    pub(super) fn steps(&self) -> usize {
        let mut state = self.lock();
        state.poll();
        state.possible(self.settings.guarantees).len()
    }

    pub(super) fn step(&self, number: usize) -> String {
        let mut state = self.lock();
        let steps = state.possible(self.settings.guarantees);
        match steps.get(number) {
            Some(step) => {
                let words = state.take(*step);
                format!("{} of PE {}: {words}", self.name, self.me)
            }
            None => "nothing under way".into(),
        }
    }
}

/// One post in so many is answered Full.
const FULL: usize = 12;

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

/// The parts of an operation that happen at one moment each.
fn pieces(op: &Op) -> Vec<Piece> {
    let piece = |op, last| Piece {
        op,
        last,
        state: PieceState::Waiting,
    };
    match *op {
        Op::Put { from, to } => parts(from, to).map(|op| piece(op, false)).collect(),
        Op::PutSignal {
            from,
            to,
            signal,
            op,
            value,
        } => {
            let atomic = Op::Atomic {
                op: match op {
                    SignalOp::Set => AtomicOp::Set,
                    SignalOp::Add => AtomicOp::Add,
                },
                width: Width::W64,
                on: signal,
                operand: value,
                compare: 0,
                fetch: None,
            };
            let data = parts(from, to).map(|op| piece(op, false));
            data.chain([piece(atomic, true)]).collect()
        }
        op => vec![piece(op, matches!(op, Op::Flush))],
    }
}

/// A put's bytes in a few pieces, cut where an aligned word begins.
fn parts(from: Local, to: Remote) -> impl Iterator<Item = Op> {
    let words = from.len.div_ceil(8);
    let size = words.div_ceil(PIECES).max(1) * 8;
    let first = (size - (to.offset % 8) as usize).min(from.len);
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= from.len {
            return None;
        }
        let len = if at == 0 { first } else { size }.min(from.len - at);
        let part = Op::Put {
            from: Local {
                addr: from.addr.wrapping_add(at),
                len,
                ..from
            },
            to: Remote {
                offset: to.offset + at as u64,
                ..to
            },
        };
        at += len;
        Some(part)
    })
}

impl Pending {
    fn is_performed(&self) -> bool {
        self.pieces.iter().all(|p| p.state == PieceState::Done)
    }

    /// Whether it has to wait for one that was posted before it.
    fn waits_for(&self, earlier: &Pending, promised: Guarantees) -> bool {
        if self.pe != earlier.pe || earlier.is_performed() {
            return false;
        }
        if self.lane != earlier.lane && !promised.across_lanes {
            return false;
        }
        let (first, second) = (Class::of(&earlier.op), Class::of(&self.op));
        match (first, second) {
            (_, Class::Flush) => true,
            (Class::Flush, _) => false,
            (Class::Put, Class::Put) => promised.put_put,
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

impl State {
    /// Everything that can happen now, in the order posted.
    fn possible(&self, promised: Guarantees) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, pending) in self.pending.iter().enumerate() {
            if pending.is_performed() {
                if !pending.counted {
                    steps.push(Step::Complete(index));
                }
                continue;
            }
            let before = self.pending.iter().take(index);
            if before.into_iter().any(|e| pending.waits_for(e, promised)) {
                continue;
            }
            for (at, piece) in pending.pieces.iter().enumerate() {
                let before = pending.pieces.iter().take(at);
                let ready = !piece.last || before.into_iter().all(|p| p.state == PieceState::Done);
                if piece.state == PieceState::Waiting && ready {
                    steps.push(Step::Perform(index, at));
                }
            }
        }
        steps
    }

    /// Does one of them, and says what it was.
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
        self.pending.retain(|p| !(p.counted && p.is_performed()));
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
            // All before it were performed.
            piece.state = PieceState::Done;
            return;
        }
        // SAFETY: who posted the operation promised its memory until it is completed, which is not
        // counted yet, or its source was copied, and the copy lives as long as the operation.
        let posted = unsafe { wrapped.lane.post(pending.pe, &[piece.op]) };
        match posted.status {
            Status::All => {
                piece.state = PieceState::Given(wrapped.lane.counters(pending.pe).posted);
            }
            Status::Full => {}
            Status::Refused(error) => {
                // Checked before: it is the PE or the lane that is gone.
                piece.state = PieceState::Done;
                wrapped.failure.get_or_insert(error);
            }
        }
        for _ in 0..DRIVES {
            let given = match piece.state {
                PieceState::Given(target) => target,
                _ => break,
            };
            if wrapped.lane.counters(pending.pe).completed >= given {
                piece.state = PieceState::Done;
            } else if let Err(error) = wrapped.lane.progress() {
                wrapped.failure.get_or_insert(error);
                break;
            }
        }
    }

    /// Looks what the wrapped lanes have done meanwhile.
    fn poll(&mut self) {
        for pending in &mut self.pending {
            let Some(wrapped) = self.lanes.get_mut(&pending.lane) else {
                continue;
            };
            for piece in &mut pending.pieces {
                let PieceState::Given(target) = piece.state else {
                    continue;
                };
                // A failure shows in the lane's own progress.
                let _ = wrapped.lane.progress();
                if wrapped.lane.counters(pending.pe).completed >= target {
                    piece.state = PieceState::Done;
                }
            }
        }
    }
}

/// An operation, for a reader.
fn words(pe: Pe, op: &Op) -> String {
    match op {
        Op::Put { from, to } => {
            format!("puts {} bytes at {} of PE {pe}", from.len, to.offset)
        }
        Op::Get { into, from } => {
            format!("gets {} bytes at {} of PE {pe}", into.len, from.offset)
        }
        Op::PutSignal { from, to, .. } => format!(
            "puts {} bytes at {} of PE {pe}, with a signal",
            from.len, to.offset
        ),
        Op::Atomic { op, on, .. } => format!("atomic {op} at {} of PE {pe}", on.offset),
        _ => format!("a flush towards PE {pe}"),
    }
}
