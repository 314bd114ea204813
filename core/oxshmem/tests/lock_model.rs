//! A model check of locks: every order of the steps of a few PEs that take a lock and let it go, with
//! losses, time limits and lanes that fail at every moment. It runs the library's own
//! `src/lock/mcs_lock.rs`, compiled here over words of a model.
//!
//! A call is run again from its beginning for each of its steps, with the answers that it has had so far, until
//! it asks for one more. So what a PE has got from a call is its whole state, states can be compared, and each
//! is gone on from once. Checked in all of them: the lock goes to the PE that entered first, while
//! nobody else has it; who was lost with it is followed by nobody; and no PE that lives waits for ever. Each way in
//! which the library hears of a failure is left out once, to show that the check would notice.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use mcs_lock::{HOLDS, LockWords};

#[path = "../src/lock/mcs_lock.rs"]
mod mcs_lock;

/// A step that a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Whole,
    Change { from: u32, to: u32 },
    Swap { to: u32 },
    Lives { pe: u32 },
    Own,
    Clear,
    Await { bits: u32, whom: u32 },
    Tell { pe: u32, bits: u32 },
}

/// The call has no more answers; or, for who reads it, it has failed.
struct Paused;

/// A call that gets the answers of its first steps.
struct Replay<'a> {
    me: u32,
    answers: &'a [u32],
    asked: Cell<usize>,
    next: Cell<Option<Step>>,
}

impl Replay<'_> {
    fn ask(&self, step: Step) -> Result<u32, Paused> {
        let at = self.asked.replace(self.asked.get() + 1);
        self.answers.get(at).copied().ok_or_else(|| {
            self.next.set(Some(step));
            Paused
        })
    }
}

impl LockWords for Replay<'_> {
    type Error = Paused;

    fn me(&self) -> u32 {
        self.me
    }
    fn check_intact(&self) -> Result<(), Paused> {
        self.ask(Step::Whole).map(drop)
    }
    fn change_last(&self, from: u32, to: u32) -> Result<u32, Paused> {
        self.ask(Step::Change { from, to })
    }
    fn swap_last(&self, to: u32) -> Result<u32, Paused> {
        self.ask(Step::Swap { to })
    }
    fn check_alive(&self, pe: u32) -> Result<(), Paused> {
        self.ask(Step::Lives { pe }).map(drop)
    }
    fn own_word(&self) -> Result<u32, Paused> {
        self.ask(Step::Own)
    }
    fn clear_own(&self) -> Result<(), Paused> {
        self.ask(Step::Clear).map(drop)
    }
    fn await_own(&self, bits: u32, whom: u32) -> Result<u32, Paused> {
        self.ask(Step::Await { bits, whom })
    }
    fn set_bits(&self, pe: u32, bits: u32) -> Result<(), Paused> {
        self.ask(Step::Tell { pe, bits }).map(drop)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Take,
    TakeIfFree,
    LetGo,
}

/// At most so many PEs, calls that each makes, and steps of a call.
const PES: usize = 4;
const CALLS: usize = 3;
const STEPS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Doing {
    /// In a call that has got so many of these answers.
    Call(Call, [u32; STEPS], usize),
    /// It has made all its calls.
    Done,
    /// Lost, while a step may have been under way that is performed later, or never.
    Lost(Option<Step>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pe {
    doing: Doing,
    /// How many of its calls it has begun.
    begun: usize,
    own: u32,
    /// It knows that the lock is broken.
    knows: bool,
}

/// Numbers of faults that may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Faults {
    /// A PE is lost to all.
    losses: u8,
    /// Two PEs are lost to each other, and live.
    cuts: u8,
    /// A wait takes too long.
    timeouts: u8,
    /// A step fails; it may have been performed.
    failures: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    last: u32,
    pes: [Pe; PES],
    cut: Option<(usize, usize)>,
    faults: Faults,
    /// The PEs that are in the queue or hold the lock, in order, and how many.
    queue: ([usize; PES], usize),
}

/// The step that the library is to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Nobody is told that a lock is broken.
    Telling,
    /// A call does not ask whether the lock is broken, nor does a wait.
    Asking,
    /// A wait does not look at the PE that it waits for.
    Looking,
}

/// How a step goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    Well(u32),
    /// It fails, and breaks the lock.
    Breaks,
    /// The lock was broken before.
    Fails,
}

/// The calls of each PE, made by turns; a PE that got the lock lets go of it.
type Program = [[Option<Call>; CALLS]];

struct Search<'a> {
    program: &'a Program,
    without: Without,
    seen: HashSet<State>,
    open: Vec<State>,
    /// Calls that failed.
    failed: usize,
}

/// Searches all that can happen to PEs with this program. The home is PE 0. Gives the number of states and of calls
/// that failed, or what is wrong.
fn search(program: &Program, faults: Faults, without: Without) -> Result<(usize, usize), String> {
    let pe = Pe {
        doing: Doing::Done,
        begun: 0,
        own: 0,
        knows: false,
    };
    let mut first = State {
        last: 0,
        pes: [pe; PES],
        cut: None,
        faults,
        queue: ([0; PES], 0),
    };
    let mut search = Search {
        program,
        without,
        seen: HashSet::new(),
        open: Vec::new(),
        failed: 0,
    };
    (0..program.len()).for_each(|at| first.begins(at, program));
    search.add(first);
    while let Some(state) = search.open.pop() {
        search.go_on(state)?;
    }
    Ok((search.seen.len(), search.failed))
}

/// The result of a call after these answers, or the step that it asks for next.
fn replay(at: usize, call: Call, answers: &[u32]) -> Result<bool, Step> {
    let replay = Replay {
        me: at as u32 + 1,
        answers,
        asked: Cell::new(0),
        next: Cell::new(None),
    };
    let given = match call {
        Call::Take => mcs_lock::acquire(&replay),
        Call::TakeIfFree => mcs_lock::try_acquire(&replay),
        Call::LetGo => mcs_lock::release(&replay).map(|()| true),
    };
    given.map_err(|Paused| replay.next.get().unwrap())
}

impl Search<'_> {
    fn add(&mut self, state: State) {
        if self.seen.insert(state) {
            self.open.push(state);
        }
    }

    /// Adds all that may come next.
    fn go_on(&mut self, state: State) -> Result<(), String> {
        let mut goes = false;
        for at in 0..self.program.len() {
            goes |= self.steps_of(state, at)?;
            if self.without != Without::Telling {
                goes |= self.deliver(state, at);
            }
            self.lose(state, at);
        }
        let waits = |pe: &Pe| matches!(pe.doing, Doing::Call(..));
        match !goes && state.pes.iter().any(waits) {
            true => Err(format!("PEs wait for ever: {state:?}")),
            false => Ok(()),
        }
    }

    /// The next PE that lives hears of this one that the lock is broken: surely, unless this one is lost.
    fn deliver(&mut self, state: State, at: usize) -> bool {
        let lost = |at: &usize| matches!(state.pes[*at].doing, Doing::Lost(_));
        let next = (at + 1..self.program.len())
            .chain(0..at)
            .find(|pe| !lost(pe));
        let Some(to) = next.filter(|&to| state.pes[at].knows && !state.pes[to].knows) else {
            return false;
        };
        let mut next = state;
        next.pes[to].knows = true;
        self.add(next);
        !lost(&at)
    }

    /// The PE is lost, to all or to one other.
    fn lose(&mut self, state: State, at: usize) {
        if state.faults.losses > 0 && !matches!(state.pes[at].doing, Doing::Lost(_)) {
            let mut next = state;
            next.faults.losses -= 1;
            let under_way = state.pes[at].next_step(at);
            next.pes[at].doing = Doing::Lost(under_way.filter(|step| step.is_performed()));
            self.add(next);
        }
        for other in 0..at {
            if state.faults.cuts > 0 {
                let mut next = state;
                next.faults.cuts -= 1;
                next.cut = Some((other, at));
                self.add(next);
            }
        }
    }

    /// Adds what a PE may do next; tells whether there is anything that needs no fault.
    fn steps_of(&mut self, state: State, at: usize) -> Result<bool, String> {
        let pe = &state.pes[at];
        if let Doing::Lost(Some(late)) = pe.doing {
            let mut next = state;
            next.pes[at].doing = Doing::Lost(None);
            next.perform(at, late);
            self.add(next);
        }
        let Some(step) = pe.next_step(at) else {
            return Ok(false);
        };
        let whom = step.needs();
        let is_lost = whom.is_some_and(|whom| {
            let pair = [(whom, at), (at, whom)];
            let cut = state.cut.is_some_and(|cut| pair.contains(&cut));
            cut || matches!(state.pes[whom].doing, Doing::Lost(_))
        });
        let knows = pe.knows && self.without != Without::Asking;
        let mut ends = Vec::new();
        match step {
            Step::Whole if knows => ends.push((state, Goes::Fails)),
            Step::Await { bits, .. } => {
                if pe.own & bits != 0 {
                    ends.push((state, Goes::Well(pe.own)));
                }
                if knows {
                    ends.push((state, Goes::Fails));
                }
            }
            // A lost PE's memory may be there still, and who has not heard of the loss may use it.
            _ => {
                let mut next = state;
                let answer = next.perform(at, step);
                ends.push((next, Goes::Well(answer)));
            }
        }
        let awaits = matches!(step, Step::Await { .. });
        if is_lost && !(awaits && self.without == Without::Looking) {
            ends.push((state, Goes::Breaks));
        }
        let goes = !ends.is_empty();
        if awaits && state.faults.timeouts > 0 {
            let mut next = state;
            next.faults.timeouts -= 1;
            ends.push((next, Goes::Breaks));
        }
        if step.is_performed() && state.faults.failures > 0 {
            let mut performed = state;
            performed.perform(at, step);
            for mut next in [state, performed] {
                next.faults.failures -= 1;
                ends.push((next, Goes::Breaks));
            }
        }
        for (mut next, goes) in ends {
            self.failed += usize::from(!matches!(goes, Goes::Well(_)));
            next.went(at, goes, self.program)?;
            self.add(next);
        }
        Ok(goes)
    }
}

impl Step {
    /// Whether it does something to words of others.
    fn is_performed(self) -> bool {
        matches!(
            self,
            Step::Change { .. } | Step::Swap { .. } | Step::Tell { .. }
        )
    }

    /// The PE without which it cannot go well.
    fn needs(self) -> Option<usize> {
        match self {
            Step::Change { .. } | Step::Swap { .. } => Some(0),
            Step::Lives { pe } | Step::Tell { pe, .. } => Some(pe as usize - 1),
            Step::Await { whom, .. } => Some(whom as usize - 1),
            Step::Whole | Step::Own | Step::Clear => None,
        }
    }
}

impl Pe {
    fn next_step(&self, at: usize) -> Option<Step> {
        match &self.doing {
            Doing::Call(call, answers, count) => replay(at, *call, &answers[..*count]).err(),
            Doing::Done | Doing::Lost(_) => None,
        }
    }
}

impl State {
    /// A PE makes its next call, if there is one.
    fn begins(&mut self, at: usize, program: &Program) {
        let pe = &mut self.pes[at];
        let next = program[at].get(pe.begun).copied().flatten();
        pe.begun += usize::from(next.is_some());
        pe.doing = next.map_or(Doing::Done, |call| Doing::Call(call, [0; STEPS], 0));
    }

    /// Does what a step does to the words; gives its answer.
    fn perform(&mut self, at: usize, step: Step) -> u32 {
        match step {
            Step::Change { from, to } => {
                let old = self.last;
                if old == from {
                    self.last = to;
                    match to {
                        0 => self.leaves(at),
                        _ => self.enters(at),
                    }
                }
                old
            }
            Step::Swap { to } => {
                self.enters(at);
                std::mem::replace(&mut self.last, to)
            }
            Step::Own => self.pes[at].own,
            Step::Clear => std::mem::take(&mut self.pes[at].own),
            Step::Tell { pe, bits } => {
                let pe = pe as usize - 1;
                self.pes[pe].own |= bits;
                if bits == HOLDS && pe != at {
                    self.leaves(at);
                }
                0
            }
            Step::Whole | Step::Lives { .. } | Step::Await { .. } => 0,
        }
    }

    fn enters(&mut self, at: usize) {
        let (pes, count) = &mut self.queue;
        pes[*count] = at;
        *count += 1;
    }

    fn leaves(&mut self, at: usize) {
        let (pes, count) = &mut self.queue;
        assert_eq!(pes[0], at, "who lets go has the lock");
        pes.rotate_left(1);
        *count -= 1;
        pes[*count] = 0;
    }

    /// A step of a PE went so. If its call has ended by that, the next begins.
    fn went(&mut self, at: usize, goes: Goes, program: &Program) -> Result<(), String> {
        let before = *self;
        let pe = &mut self.pes[at];
        let Doing::Call(call, answers, count) = &mut pe.doing else {
            return Ok(());
        };
        if let Goes::Well(answer) = goes {
            answers[*count] = answer;
            *count += 1;
            let Ok(done) = replay(at, *call, &answers[..*count]) else {
                return Ok(());
            };
            let took = done && *call != Call::LetGo;
            if *call == Call::Take && !took {
                return Err(format!("PE {at} is said to have the lock: {before:?}"));
            }
            if took {
                let (pes, count) = self.queue;
                if pes[..count].first() != Some(&at) {
                    return Err(format!("PE {at} is not the first in the queue: {before:?}"));
                }
                pe.doing = Doing::Call(Call::LetGo, [0; STEPS], 0);
                return Ok(());
            }
        }
        pe.knows |= goes == Goes::Breaks;
        self.begins(at, program);
        Ok(())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "last {}, ", self.last)?;
        write!(f, "queue {:?}, ", &self.queue.0[..self.queue.1])?;
        write!(f, "cut {:?}, {:?}, ", self.cut, self.faults)?;
        f.debug_list().entries(self.pes).finish()
    }
}

const TAKE: Option<Call> = Some(Call::Take);
const TRY: Option<Call> = Some(Call::TakeIfFree);

/// Three PEs; the last two ask again, by a test, too.
const THREE: &Program = &[[TAKE, None, None], [TAKE, TRY, None], [TAKE, TAKE, None]];
/// Two that ask often, one of them the home.
const TWO: &Program = &[[TAKE, TRY, TAKE], [TRY, TAKE, TAKE]];
/// A queue of four.
const FOUR: &Program = &[[TAKE, None, None]; 4];

const NONE: Faults = Faults {
    losses: 0,
    cuts: 0,
    timeouts: 0,
    failures: 0,
};

fn holds_for(program: &Program, faults: Faults) {
    let (states, failed) = search(program, faults, Without::Nothing).unwrap();
    let n = program.len();
    println!("{n} PEs, {faults:?}: {states} states, {failed} failed steps");
    assert_eq!(failed > 0, faults != NONE);
}

#[test]
fn a_lock_goes_from_hand_to_hand_in_order_and_no_call_fails() {
    holds_for(TWO, NONE);
    holds_for(THREE, NONE);
    holds_for(FOUR, NONE);
}

#[test]
fn after_a_loss_nobody_waits_for_ever_nor_takes_the_lock_of_the_lost() {
    holds_for(TWO, Faults { losses: 1, ..NONE });
    holds_for(THREE, Faults { losses: 1, ..NONE });
    holds_for(FOUR, Faults { losses: 2, ..NONE });
    holds_for(
        THREE,
        Faults {
            losses: 1,
            timeouts: 1,
            ..NONE
        },
    );
    holds_for(
        TWO,
        Faults {
            losses: 1,
            cuts: 1,
            timeouts: 1,
            failures: 1,
        },
    );
}

#[test]
fn a_way_that_fails_between_two_pes_that_live_ends_the_lock_for_all() {
    holds_for(THREE, Faults { cuts: 1, ..NONE });
}

#[test]
fn a_wait_that_takes_too_long_ends_the_lock_for_all() {
    holds_for(
        THREE,
        Faults {
            timeouts: 1,
            ..NONE
        },
    );
}

#[test]
fn a_step_that_fails_performed_or_not_ends_the_lock_for_all() {
    holds_for(
        THREE,
        Faults {
            failures: 1,
            ..NONE
        },
    );
}

#[test]
fn what_a_failure_needs_is_found_missing() {
    let missing = |faults, without| {
        let found = search(THREE, faults, without);
        let found = found.expect_err("nothing was found");
        assert!(found.contains("for ever"), "{without:?}: {found}");
    };
    missing(Faults { losses: 1, ..NONE }, Without::Telling);
    missing(Faults { losses: 1, ..NONE }, Without::Looking);
    missing(
        Faults {
            timeouts: 1,
            ..NONE
        },
        Without::Asking,
    );
    missing(
        Faults {
            timeouts: 1,
            ..NONE
        },
        Without::Telling,
    );
    missing(Faults { cuts: 1, ..NONE }, Without::Telling);
}
