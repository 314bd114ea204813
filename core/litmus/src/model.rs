//! The executable model: which outcomes the contract allows.
//!
//! An abstract machine has one memory of 64-bit words. Every word that a call reads or writes is
//! read or written at one moment, at which it is *performed*: visible to every PE (M24). All
//! executions of the machine are explored, so what is not found is forbidden. A PE makes its calls in
//! program order, and:
//!
//! - Puts, puts-with-signal, atomics that fetch nothing, stores to its own memory (`write`) and
//!   nonblocking operations are performed at any time after the call (M15), in any order, each word
//!   by itself, two puts to one word included; but a put-with-signal's signal after its data (M22).
//! - Gets, fetching atomics, waits and tests are performed before the call returns (M16).
//! - A `fence` puts earlier puts, puts-with-signal and atomics of its context before later ones of
//!   its context to the same PE; it puts earlier stores of the PE itself before later operations of
//!   its context to *any* PE, and before later stores (M17). Nonblocking updates count in the ordered
//!   model only (M18). Reads (get, `fetch`) are never ordered with writes by it.
//! - `quiet` returns when all operations of its context and all stores are performed (M19);
//!   `pe_quiet` looks at those towards the PEs named; `barrier_all` is a quiet of the default context
//!   and a meeting; `sync_all` waits for stores and meets.
//! - `broadcast` meets, then copies word by word; each PE returns when its copy is done, the root when
//!   all are.
//! - In the ordered model reads that block are performed in program order (M20). In the relaxed model
//!   those of a run of them ([`Program::read_runs`]) are performed in any order, of one word too (M21).
//!   `fence` and every other call end a run. `wait_until`, `signal_wait_until`, `signal_fetch` and
//!   `test` are never part of one (M23).
//!
//! # A PE and its own writes
//!
//! Beyond the contract, a blocking read sees the blocking puts that its PE made to that word before,
//! on the same context, and its PE's own stores. It may see them early, as a processor sees what is in
//! its store buffer: the value of the PE's last write to the word, if that is a put, store or set that
//! is not yet performed. There is no such promise for atomics: `set x@1 1` and then `r0 = fetch x@1`
//! may give the old value, as may a get after an unfinished `add` or `put_nbi`.

use std::collections::{BTreeMap, HashSet};

use crate::Error;
use crate::events::{Action, Event, Events, Set, only};
use crate::outcome::{Outcome, Outcomes, Step};
use crate::program::{MemoryModel, Program};

/// How many states [`outcomes`] looks at before it gives up.
pub const STATES: usize = 1_000_000;

/// Bytes that the states may take in all.
const BYTES: usize = 512 * 1024 * 1024;

/// Everything that the contract allows a program to end with in this model.
///
/// # Errors
///
/// [`Error::TooManyStates`] beyond [`STATES`], or fewer where a program has many words.
pub fn outcomes(program: &Program, model: MemoryModel) -> Result<Outcomes, Error> {
    let events = Events::of(program, model);
    let words = events.cells.len() + events.registers.len();
    let states = STATES.min(BYTES / (words * size_of::<u64>() + 128));
    let mut machine = Machine {
        program,
        all: (0..events.all.len()).fold(0, |set, event| set | only(event)),
        events,
        allowed: BTreeMap::new(),
    };
    let states = machine.explore(states)?;
    Ok(Outcomes {
        model,
        allowed: machine.allowed,
        states,
    })
}

/// The machine between two events: what was performed, then the cells' and registers' values.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    done: Set,
    values: Box<[u64]>,
}

/// An event that can be performed now.
#[derive(Clone, Copy)]
struct Choice {
    event: usize,
    /// A read takes the value of this PE's own write that is under way.
    forwarded: Option<u64>,
}

/// A state whose continuations are being explored.
struct Visit {
    state: State,
    choices: std::vec::IntoIter<Choice>,
}

struct Machine<'p> {
    program: &'p Program,
    events: Events,
    all: Set,
    allowed: BTreeMap<Outcome, Vec<Step>>,
}

impl Machine<'_> {
    /// Depth first over all states; gives their number.
    fn explore(&mut self, limit: usize) -> Result<usize, Error> {
        let words = self.events.cells.len() + self.events.registers.len();
        let start = State {
            done: 0,
            values: vec![0; words].into(),
        };
        let mut seen = HashSet::from([start.clone()]);
        let mut path: Vec<Choice> = Vec::new();
        let mut stack = vec![self.visit(start, &path)];
        while let Some(visit) = stack.last_mut() {
            let Some(choice) = visit.choices.next() else {
                stack.pop();
                path.pop();
                continue;
            };
            let state = self.perform(&visit.state, choice);
            if !seen.insert(state.clone()) {
                continue;
            }
            if seen.len() > limit {
                return Err(Error::TooManyStates {
                    name: self.program.name().into(),
                    states: limit,
                });
            }
            path.push(choice);
            let next = self.visit(state, &path);
            stack.push(next);
        }
        Ok(seen.len())
    }

    /// Begins with a state, which `path` led to; if it is an end, notes its outcome.
    fn visit(&mut self, state: State, path: &[Choice]) -> Visit {
        let choices = self.choices(&state);
        if choices.is_empty() {
            let outcome = self.outcome(&state);
            if !self.allowed.contains_key(&outcome) {
                let witness = self.witness(path);
                self.allowed.insert(outcome, witness);
            }
        }
        Visit {
            state,
            choices: choices.into_iter(),
        }
    }

    fn outcome(&self, state: &State) -> Outcome {
        if state.done != self.all {
            return Outcome::Deadlock;
        }
        let (memory, registers) = state.values.split_at(self.events.cells.len());
        // The observed words are the first cells.
        self.program.outcome(registers, memory)
    }

    /// Whether nobody will look at a cell any more: what it holds makes no difference.
    fn is_dead(&self, cell: usize, done: Set) -> bool {
        let observed = self.program.observed().len();
        cell >= observed && self.events.readers[cell] & !done == 0
    }

    /// What can be performed. Where one of these conflicts with nothing that is still to come, it
    /// is the only choice: whatever else is performed before it leaves it as it is, and the other
    /// way round.
    fn choices(&self, state: &State) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (index, event) in self.events.all.iter().enumerate() {
            if state.done & only(index) != 0 || event.after & !state.done != 0 {
                continue;
            }
            if event.flush & !state.done == 0 && holds(event, &state.values, None) {
                let choice = Choice {
                    event: index,
                    forwarded: None,
                };
                let unseen = event.action.reads().is_none()
                    && (event.action.writes()).is_none_or(|cell| self.is_dead(cell, state.done));
                if unseen || event.conflicts & !state.done == 0 {
                    return vec![choice];
                }
                choices.push(choice);
            }
            let own = event.forward.filter(|&write| state.done & only(write) == 0);
            let own = own.and_then(|write| self.events.all[write].action.known_value());
            if own.is_some() && holds(event, &state.values, own) {
                choices.push(Choice {
                    event: index,
                    forwarded: own,
                });
            }
        }
        choices
    }

    fn perform(&self, state: &State, choice: Choice) -> State {
        let mut next = state.clone();
        next.done |= only(choice.event);
        let (memory, registers) = next.values.split_at_mut(self.events.cells.len());
        let seen = |cell: usize| choice.forwarded.unwrap_or(state.values[cell]);
        match self.events.all[choice.event].action {
            Action::Write(cell, value) => memory[cell] = value,
            Action::Update(cell, update, value) => {
                memory[cell] = update.apply(memory[cell], value);
            }
            Action::Read(cell, register) => registers[register] = seen(cell),
            Action::Exchange(cell, fetching, register) => {
                registers[register] = memory[cell];
                memory[cell] = fetching.apply(memory[cell]);
            }
            Action::Test(cell, cmp, value, register) => {
                registers[register] = u64::from(cmp.holds(seen(cell), value));
            }
            Action::Wait(cell, _, _, register) => {
                if let Some(register) = register {
                    registers[register] = seen(cell);
                }
            }
            Action::Copy(from, to) => memory[to] = memory[from],
            Action::Meet => {}
        }
        for (cell, value) in memory.iter_mut().enumerate() {
            if self.is_dead(cell, next.done) {
                *value = 0;
            }
        }
        next
    }

    /// A path in words.
    fn witness(&self, path: &[Choice]) -> Vec<Step> {
        let words = self.events.cells.len() + self.events.registers.len();
        let mut state = State {
            done: 0,
            values: vec![0; words].into(),
        };
        let mut steps = Vec::new();
        for &choice in path {
            let next = self.perform(&state, choice);
            let event = &self.events.all[choice.event];
            let statements = self.program.statements(event.pe.unwrap_or(0));
            let text = statements.get(event.statement);
            let text = text.map_or(String::new(), |s| self.program.statement_text(s));
            let happened = self.words(event.action, &state, &next, choice.forwarded);
            steps.push(Step {
                pe: event.pe,
                statement: event.statement,
                words: format!("{text}: {happened}"),
            });
            state = next;
        }
        steps
    }

    fn words(&self, action: Action, old: &State, new: &State, forwarded: Option<u64>) -> String {
        let name = |cell: usize| self.program.place_name(self.events.cells[cell]);
        let register = |index: usize| {
            let value = new.values[self.events.cells.len() + index];
            format!("{} = {value}", self.events.registers[index])
        };
        let from = |cell: usize| match forwarded {
            Some(_) => format!(
                "{}, as this PE wrote it and others do not see yet",
                name(cell)
            ),
            None => name(cell),
        };
        match action {
            Action::Write(cell, value) => format!("{} becomes {value}", name(cell)),
            Action::Update(cell, ..) => {
                let (old, new) = (old.values[cell], new.values[cell]);
                format!("{} becomes {new}, was {old}", name(cell))
            }
            Action::Read(cell, into) => format!("{} of {}", register(into), from(cell)),
            Action::Exchange(cell, _, into) => {
                let new = new.values[cell];
                format!("{}, {} is {new} now", register(into), name(cell))
            }
            Action::Test(cell, _, _, into) => format!("{} by {}", register(into), from(cell)),
            Action::Wait(cell, ..) => {
                let value = forwarded.unwrap_or(old.values[cell]);
                format!("goes on, sees {value} in {}", from(cell))
            }
            Action::Copy(from, to) => {
                format!("{} becomes {} of {}", name(to), new.values[to], name(from))
            }
            Action::Meet => "all are here".into(),
        }
    }
}

/// Whether a wait goes on; any other event does.
fn holds(event: &Event, values: &[u64], forwarded: Option<u64>) -> bool {
    match event.action {
        Action::Wait(cell, cmp, value, _) => cmp.holds(forwarded.unwrap_or(values[cell]), value),
        _ => true,
    }
}
