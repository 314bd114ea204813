//! Runs PEs, which are threads of one process, one at a time, by decisions that can be repeated.
//!
//! A run begins when every PE has [entered](Scheduler::enter) and ends when all have left. In it one
//! thread goes on at a time. At each [yield point](Schedule::yield_point) the scheduler decides the next event:
//! the same PE goes on, another does, or an [`Environment`] takes a step (an operation is performed, a store
//! drains). Other choices that a simulated machine leaves open are decided in
//! the same sequence ([`Choices::choose`]). The decisions of a run, given to [`Plan::Replay`], make the
//! same run again; decision 0 is always the tame one: go on, the first step, the newest value.
//!
//! Outside a run nothing is held and nothing is simulated.
//!
//! A PE in a run must not wait for another one in a way that the scheduler does not know. Should one
//! do so, or not enter at all, the run is abandoned after a while ([`Trace::broken`]) and all PEs run
//! freely. A PE may poll without waiting: no PE goes on alone for ever, and no possible step of an
//! environment is put off for ever.
//!
//! A PE that has left runs freely while others go on. So it does not access the data that they work on, and drops
//! no lane with operations in flight, until all have left. Its operations in flight proceed in the turns of
//! others; those that remain when the last PE leaves are completed then.

mod plan;
mod shrink;

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use oxshmem_transport::{Pe, Schedule};

pub use self::plan::Plan;
use self::plan::{Next, Planner};
pub use self::shrink::shrink;
use crate::choice::{Choices, Environment, Mode};

/// How long the thread whose turn it is may do nothing that the scheduler sees, and how long those who
/// have entered wait for one more to do so.
const PATIENCE: Duration = Duration::from_secs(10);
/// Unsuccessful polls in a row, of each PE, that make a deadlock: a PE may have done something in between that
/// showed as no change.
const VAIN: usize = 4;
/// Yield points that a PE may make after it was woken before it counts as having done something: those of one
/// poll of its condition.
const POLLS: usize = 32;
/// Decisions in a row that let one PE go on, while others or an environment could: then it is their turn, so that
/// a PE that polls without ever waiting sees the change that it polls for.
const ALONE: usize = 200;
/// Decisions in a row by which nothing moved by itself, while something could: then it does.
const STILL: usize = 1000;
/// More decisions than any sensible run takes: PEs that go on for ever without getting anywhere.
const MOST: usize = 20_000;

/// Decides which PE's thread runs, and what moves by itself.
pub struct Scheduler {
    me: Weak<Scheduler>,
    state: Mutex<State>,
    /// Each PE's thread waits for its turn on its own.
    turns: Vec<Condvar>,
    patience: Duration,
    environments: Mutex<Vec<Weak<dyn Environment>>>,
}

/// The record of a run: enough to repeat it, and to read it.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Each decision, and between how many.
    pub decisions: Vec<(u32, u32)>,
    /// The steps, in words.
    pub steps: Vec<String>,
    /// Every PE that had not left waited for an event that could not happen.
    pub deadlock: bool,
    /// The reason why the run was abandoned, if it was; then it cannot be repeated.
    pub broken: Option<String>,
}

impl Trace {
    /// The decisions alone, for [`Plan::Replay`]; without the tame ones at the end.
    #[must_use]
    pub fn replay(&self) -> Vec<u32> {
        let mut decisions: Vec<u32> = self.decisions.iter().map(|(chosen, _)| *chosen).collect();
        while decisions.last() == Some(&0) {
            decisions.pop();
        }
        decisions
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No run.
    Free,
    /// Some PEs have entered.
    Gathering,
    /// One thread at a time.
    Running,
    /// A run that was abandoned, until all have left.
    Broken,
    /// All have left; operations in flight complete.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Not in the run (yet, or any more).
    Out,
    /// Can go on.
    Ready,
    /// Found nothing when things had changed this often.
    Idle(u64),
}

#[derive(Debug)]
struct State {
    phase: Phase,
    planner: Planner,
    pes: Vec<Status>,
    turn: usize,
    /// The number of changes that a waiting PE might poll for.
    changes: u64,
    /// For a PE that was idle: points it may still make without having changed anything.
    polls: Vec<usize>,
    /// How often it was decided what happens next, also where there was one thing only.
    rounds: usize,
    /// Calls in a row that found nothing.
    vain: usize,
    /// Decisions in a row that let the same PE go on.
    alone: usize,
    /// Decisions in a row that let some PE go on.
    still: usize,
    trace: Trace,
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("pes", &self.turns.len())
            .finish_non_exhaustive()
    }
}

impl Scheduler {
    /// For this many PEs, all of which take part in every run.
    #[must_use]
    pub fn new(pes: usize) -> Arc<Scheduler> {
        Self::with_patience(pes, PATIENCE)
    }

    /// [`new`](Self::new), but gives a run up when the thread whose turn it is has done nothing that
    /// the scheduler sees, or nobody more has entered, for this long, instead of 10 s.
    #[must_use]
    pub fn with_patience(pes: usize, patience: Duration) -> Arc<Scheduler> {
        Arc::new_cyclic(|me| Scheduler {
            me: me.clone(),
            state: Mutex::new(State {
                phase: Phase::Free,
                planner: Planner::new(Plan::Replay(Vec::new()), pes),
                pes: vec![Status::Out; pes],
                turn: 0,
                changes: 0,
                polls: vec![0; pes],
                rounds: 0,
                vain: 0,
                alone: 0,
                still: 0,
                trace: Trace::default(),
            }),
            turns: (0..pes).map(|_| Condvar::new()).collect(),
            patience,
            environments: Mutex::default(),
        })
    }

    /// Something that moves by itself takes part in runs from now on, while it lives.
    pub fn attach(&self, environment: Weak<dyn Environment>) {
        self.environments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(environment);
    }

    /// How the next run is decided. Called outside of runs.
    pub fn plan(&self, plan: Plan) {
        let mut state = self.lock();
        state.planner = Planner::new(plan, self.turns.len());
    }

    /// One PE's part in the schedule.
    #[must_use]
    pub fn schedule(&self, pe: Pe) -> Arc<dyn Schedule> {
        Arc::new(PeSchedule {
            scheduler: self.me.clone(),
            pe: pe.index(),
        })
    }

    /// Takes part in the next run, from when all PEs have entered until what is returned is dropped.
    ///
    /// Waits for the other PEs, and first for those of the run before that have not left it yet.
    pub fn enter(&self, pe: usize) -> Turn<'_> {
        let mut state = self.lock();
        while !matches!(state.phase, Phase::Free | Phase::Gathering)
            && let Some(turn) = self.turns.get(pe)
        {
            state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.phase == Phase::Free {
            state.phase = Phase::Gathering;
            // Nothing of the run before makes a difference to this one.
            state.polls.fill(0);
            state.rounds = 0;
            state.trace = Trace::default();
            state.vain = 0;
            (state.alone, state.still) = (0, 0);
        }
        if let Some(status) = state.pes.get_mut(pe) {
            *status = Status::Ready;
        }
        if state.pes.iter().all(|status| *status == Status::Ready) {
            state.phase = Phase::Running;
            let first = state.planner.first(self.turns.len());
            let pes = self.turns.len();
            state.record(first, pes);
            state.turn = first;
            self.wake(first);
        }
        drop(self.await_turn(state, pe));
        Turn {
            scheduler: self,
            pe,
        }
    }

    /// The record of the last run.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.lock().trace.clone()
    }

    /// Adds a line to the run's steps.
    pub fn note(&self, words: impl FnOnce() -> String) {
        let mut state = self.lock();
        if state.phase == Phase::Running {
            state.trace.steps.push(words());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, pe: usize) {
        if let Some(turn) = self.turns.get(pe) {
            turn.notify_one();
        }
    }

    fn wake_all(&self) {
        self.turns.iter().for_each(Condvar::notify_all);
    }

    /// Returns when it is this PE's turn, or nobody is held any more.
    fn await_turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        pe: usize,
    ) -> MutexGuard<'a, State> {
        let Some(turn) = self.turns.get(pe) else {
            return state;
        };
        loop {
            match state.phase {
                Phase::Free | Phase::Broken | Phase::Over => return state,
                Phase::Running if state.turn == pe => return state,
                Phase::Running | Phase::Gathering => {}
            }
            let seen = |state: &State| {
                let inside = state.pes.iter().filter(|s| **s != Status::Out).count();
                (
                    state.phase,
                    inside,
                    state.trace.decisions.len(),
                    state.changes,
                )
            };
            let before = seen(&state);
            let (woken, timeout) = turn
                .wait_timeout(state, self.patience)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if !timeout.timed_out() || before != seen(&state) {
                continue;
            }
            match state.phase {
                Phase::Running if state.turn != pe => {
                    let why = format!("PE {} waits for something outside of it", state.turn);
                    self.give_up(&mut state, why);
                }
                Phase::Gathering => {
                    let out = |pe: &usize| state.pes.get(*pe) == Some(&Status::Out);
                    let missing = (0..self.turns.len()).find(out).unwrap_or_default();
                    self.give_up(&mut state, format!("PE {missing} does not enter it"));
                }
                _ => {}
            }
        }
    }

    /// Ends the run's order: from here on everybody runs freely.
    fn give_up(&self, state: &mut State, why: String) {
        state.phase = Phase::Broken;
        state.trace.broken = Some(why);
        self.wake_all();
    }

    /// The environments that may take steps now.
    fn environments(&self) -> Vec<Arc<dyn Environment>> {
        let mut all = self
            .environments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.retain(|environment| environment.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Lets things move by themselves as is decided, until a PE is to go on: gives which, and it has
    /// the turn. None if nobody is scheduled any more. The caller has the turn, as `pe`, if it is not
    /// out.
    fn next(&self, pe: usize) -> Option<usize> {
        loop {
            // Nobody else moves anything meanwhile: this thread has the turn.
            let environments = self.environments();
            let steps: Vec<usize> = environments.iter().map(|e| e.steps()).collect();
            let mut state = self.lock();
            if state.phase != Phase::Running {
                return None;
            }
            state.rounds += 1;
            if state.rounds >= MOST {
                state.trace.deadlock = true;
                self.give_up(&mut state, format!("it took more than {MOST} decisions"));
                return None;
            }
            match state.decide(pe, steps.iter().sum()) {
                None => {
                    // Nothing moves and nobody can go on.
                    state.trace.deadlock = true;
                    state.phase = Phase::Broken;
                    self.wake_all();
                    return None;
                }
                Some(Next::Pe(next)) => {
                    state.turn = next;
                    return Some(next);
                }
                Some(Next::Step(number)) => {
                    state.changes += 1;
                    state.vain = 0;
                    drop(state);
                    self.step(&environments, &steps, number);
                }
            }
        }
    }

    /// Takes the step of this number among those of all.
    fn step(&self, environments: &[Arc<dyn Environment>], steps: &[usize], mut number: usize) {
        for (environment, steps) in environments.iter().zip(steps) {
            if number < *steps {
                let words = environment.step(number);
                self.lock().trace.steps.push(words);
                return;
            }
            number -= steps;
        }
    }

    /// Lets whatever is decided happen, until it is `pe`'s turn again. `pe` has the turn.
    fn advance(&self, pe: usize) -> MutexGuard<'_, State> {
        match self.next(pe) {
            Some(next) if next != pe => {
                self.wake(next);
                self.await_turn(self.lock(), pe)
            }
            _ => self.lock(),
        }
    }

    fn yield_point(&self, pe: usize) {
        {
            let mut state = self.lock();
            if !state.has_turn(pe) {
                return;
            }
            match state.polls.get_mut(pe) {
                Some(polls) if *polls > 0 => *polls -= 1,
                _ => {
                    state.changes += 1;
                    state.vain = 0;
                }
            }
        }
        drop(self.advance(pe));
    }

    fn idle(&self, pe: usize) -> bool {
        {
            let mut state = self.lock();
            match state.phase {
                Phase::Running if state.turn == pe => {}
                Phase::Broken => {
                    let deadlock = state.trace.deadlock;
                    drop(state);
                    std::thread::yield_now();
                    return !deadlock;
                }
                _ => {
                    drop(state);
                    std::thread::yield_now();
                    return true;
                }
            }
            state.vain += 1;
            let changes = state.changes;
            if let Some(status) = state.pes.get_mut(pe) {
                *status = Status::Idle(changes);
            }
        }
        let mut state = self.advance(pe);
        if let Some(status) = state.pes.get_mut(pe)
            && *status != Status::Out
        {
            *status = Status::Ready;
        }
        if let Some(polls) = state.polls.get_mut(pe) {
            *polls = POLLS;
        }
        !state.trace.deadlock
    }

    fn leave(&self, pe: usize) {
        let mut state = self.lock();
        let had_turn = state.has_turn(pe);
        if let Some(status) = state.pes.get_mut(pe) {
            *status = Status::Out;
        }
        state.changes += 1;
        state.vain = 0;
        let over = state.pes.iter().all(|status| *status == Status::Out);
        if over {
            // Nobody enters again before all is settled.
            state.phase = Phase::Over;
            drop(state);
            self.environments().iter().for_each(|e| e.quiesce());
            self.lock().phase = Phase::Free;
            self.wake_all();
            return;
        }
        drop(state);
        if had_turn && let Some(next) = self.next(pe) {
            self.wake(next);
        }
    }
}

impl State {
    fn has_turn(&self, pe: usize) -> bool {
        self.phase == Phase::Running && self.turn == pe
    }

    /// Decides the next step; `pe` would go on. None if nothing can happen.
    fn decide(&mut self, pe: usize, steps: usize) -> Option<Next> {
        let changes = self.changes;
        let can = |status: &Status| match status {
            Status::Out => false,
            Status::Ready => true,
            Status::Idle(at) => *at < changes,
        };
        let mut pes: Vec<usize> = (0..self.pes.len())
            .filter(|&pe| self.pes.get(pe).is_some_and(can))
            .collect();
        if pes.is_empty() && steps == 0 {
            // Perhaps one did something that showed as no change: every PE polls once more, in turn.
            let count = self.pes.len();
            let inside = |pe: &usize| self.pes.get(*pe).is_some_and(|s| *s != Status::Out);
            if self.vain > VAIN * count {
                return None;
            }
            let after = (1..=count).map(|i| pe.wrapping_add(i) % count);
            pes.extend(after.into_iter().find(inside));
        }
        // The tame choice first: the same PE goes on; if it cannot, what moves by itself.
        let mut options = Vec::with_capacity(pes.len() + steps);
        if pes.contains(&pe) && (self.alone < ALONE || pes.len() + steps == 1) {
            options.push(Next::Pe(pe));
        }
        options.extend((0..steps).map(Next::Step));
        if self.still < STILL || steps == 0 {
            options.extend(pes.into_iter().filter(|p| *p != pe).map(Next::Pe));
        }
        let chosen = self.planner.next(&options);
        self.record(chosen, options.len());
        let next = options.get(chosen).copied();
        match next {
            Some(Next::Pe(same)) if same == pe => {
                (self.alone, self.still) = (self.alone + 1, self.still + 1)
            }
            Some(Next::Pe(_)) => (self.alone, self.still) = (0, self.still + 1),
            _ => (self.alone, self.still) = (0, 0),
        }
        next
    }

    fn record(&mut self, chosen: usize, of: usize) {
        if of > 1 {
            self.trace.decisions.push((chosen as u32, of as u32));
        }
    }
}

impl Choices for Scheduler {
    fn choose(&self, n: usize) -> usize {
        let mut state = self.lock();
        if state.phase != Phase::Running || n < 2 {
            return 0;
        }
        let chosen = state.planner.choose(n);
        state.record(chosen, n);
        chosen
    }

    fn mode(&self, pe: Pe) -> Mode {
        let state = self.lock();
        let inside = state.pes.get(pe.index()).is_some_and(|s| *s != Status::Out);
        if state.phase == Phase::Running && inside {
            Mode::Directed
        } else {
            Mode::Tame
        }
    }
}

#[derive(Debug)]
struct PeSchedule {
    scheduler: Weak<Scheduler>,
    pe: usize,
}

impl Schedule for PeSchedule {
    fn yield_point(&self) {
        if let Some(scheduler) = self.scheduler.upgrade() {
            scheduler.yield_point(self.pe);
        }
    }

    fn idle(&self) -> bool {
        match self.scheduler.upgrade() {
            Some(scheduler) => scheduler.idle(self.pe),
            None => {
                std::thread::yield_now();
                true
            }
        }
    }
}

/// A PE's part in a run. It leaves when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn<'a> {
    scheduler: &'a Scheduler,
    pe: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.scheduler.leave(self.pe);
    }
}
