//! The abstract machine: the events that it can perform in a state, and the states that they lead
//! to.

use crate::events::{Action, Event, Events, Set, only};
use crate::outcome::{Outcome, Step};
use crate::program::{MemoryModel, Program};
use crate::translate;

/// A state of the machine between two events: the performed events, then the cells' and registers'
/// values.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    done: Set,
    pub values: Box<[u64]>,
}

/// An event that can be performed now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    event: u8,
    /// A read takes the value of this PE's own write that is in flight.
    forwarded: bool,
}

/// A program on the abstract machine.
#[derive(Debug)]
pub(crate) struct Machine<'p> {
    pub program: &'p Program,
    pub events: Events,
    /// Every event.
    all: Set,
}

impl Machine<'_> {
    pub fn of(program: &Program, model: MemoryModel) -> Machine<'_> {
        let events = translate::events(program, model);
        Machine {
            program,
            all: (0..events.all.len()).fold(0, |set, event| set | only(event)),
            events,
        }
    }

    pub fn start(&self) -> State {
        let words = self.events.cells.len() + self.events.registers.len();
        State {
            done: 0,
            values: vec![0; words].into(),
        }
    }

    pub fn outcome(&self, state: &State) -> Outcome {
        if state.done != self.all {
            return Outcome::Deadlock;
        }
        let (memory, registers) = state.values.split_at(self.events.cells.len());
        // The observed words are the first cells.
        self.program.outcome(registers, memory)
    }

    fn event(&self, choice: Choice) -> &Event {
        &self.events.all[usize::from(choice.event)]
    }

    fn forwarded(&self, choice: Choice) -> Option<u64> {
        let own = self.event(choice).forward.filter(|_| choice.forwarded);
        own.map(|own| own.value)
    }

    /// Whether no later event reads a cell, so that its value makes no difference.
    fn is_dead(&self, cell: usize, done: Set) -> bool {
        let observed = self.program.observed().len();
        cell >= observed && self.events.readers[cell] & !done == 0
    }

    /// The events that can be performed. If one of them conflicts with no event to come, it is the
    /// only choice: it does not affect the events performed before it, nor they it.
    pub fn choices(&self, state: &State) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (number, event) in (0..).zip(&self.events.all) {
            if state.done & only(number.into()) != 0 || event.after & !state.done != 0 {
                continue;
            }
            if event.flush & !state.done == 0 && holds(event, &state.values, None) {
                let choice = Choice {
                    event: number,
                    forwarded: false,
                };
                let unseen = event.action.reads().is_none()
                    && (event.action.writes()).is_none_or(|cell| self.is_dead(cell, state.done));
                if unseen || event.conflicts & !state.done == 0 {
                    return vec![choice];
                }
                choices.push(choice);
            }
            let own = event
                .forward
                .filter(|own| state.done & only(own.write) == 0);
            if own.is_some_and(|own| holds(event, &state.values, Some(own.value))) {
                choices.push(Choice {
                    event: number,
                    forwarded: true,
                });
            }
        }
        choices
    }

    pub fn perform(&self, state: &State, choice: Choice) -> State {
        let mut next = state.clone();
        next.done |= only(choice.event.into());
        let (memory, registers) = next.values.split_at_mut(self.events.cells.len());
        let forwarded = self.forwarded(choice);
        let seen = |cell: usize| forwarded.unwrap_or(state.values[cell]);
        match self.event(choice).action {
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
            Action::Lock(cell) => memory[cell] = 1,
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
    pub fn steps(&self, path: &[Choice]) -> Vec<Step> {
        let mut state = self.start();
        let mut steps = Vec::new();
        for &choice in path {
            let next = self.perform(&state, choice);
            let event = self.event(choice);
            let statements = self.program.statements(event.pe.unwrap_or(0));
            let text = statements.get(event.statement);
            let text = text.map_or(String::new(), |s| self.program.statement_text(s));
            let happened = match (event.action, event.pe) {
                (Action::Meet, Some(_)) => "those before it are here".into(),
                (action, _) => self.words(action, &state, &next, self.forwarded(choice)),
            };
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
            Action::Update(cell, update, value) => {
                let old = old.values[cell];
                let new = update.apply(old, value);
                format!("{} becomes {new}, was {old}", name(cell))
            }
            Action::Read(cell, into) => format!("{} of {}", register(into), from(cell)),
            Action::Exchange(cell, fetching, into) => {
                let new = fetching.apply(old.values[cell]);
                format!("{}, {} is {new} now", register(into), name(cell))
            }
            Action::Test(cell, _, _, into) => format!("{} by {}", register(into), from(cell)),
            Action::Wait(cell, ..) => {
                let value = forwarded.unwrap_or(old.values[cell]);
                format!("goes on, sees {value} in {}", from(cell))
            }
            Action::Copy(from, to) => {
                let value = old.values[from];
                format!("{} becomes {value} of {}", name(to), name(from))
            }
            Action::Lock(_) => "has the lock".into(),
            Action::Meet => "all are here".into(),
        }
    }
}

/// Whether the event's condition holds: of a wait, or that a lock is free. Other events have none.
fn holds(event: &Event, values: &[u64], forwarded: Option<u64>) -> bool {
    match event.action {
        Action::Wait(cell, cmp, value, _) => cmp.holds(forwarded.unwrap_or(values[cell]), value),
        Action::Lock(cell) => values[cell] == 0,
        _ => true,
    }
}
