//! The outcomes of a program.

use std::collections::BTreeMap;
use std::fmt;

use crate::machine::{Choice, Machine};
use crate::program::{Expectation, MemoryModel, Pattern, Program, Verdict};

/// The outcome of one run. Prints as `r0=1 r1=0 [x@1]=2`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Every statement was done. First the registers' values, then those of the observed words,
    /// each with its label (`r0`, `[x@1]`). Made by [`Program::outcome`].
    Ended(Vec<(String, u64)>),
    /// All PEs that were left waited for an event that none of them would cause.
    Deadlock,
}

impl Outcome {
    /// Whether the pattern describes this outcome.
    #[must_use]
    pub fn matches(&self, pattern: &Pattern) -> bool {
        match (self, pattern) {
            (Outcome::Deadlock, Pattern::Deadlock) => true,
            (Outcome::Ended(values), Pattern::Values(asked)) => {
                asked.iter().all(|one| values.contains(one))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Deadlock => f.pad("deadlock"),
            Outcome::Ended(values) => {
                let words: Vec<_> = values.iter().map(|(l, v)| format!("{l}={v}")).collect();
                f.pad(&words.join(" "))
            }
        }
    }
}

impl Program {
    /// The outcome with these values: `registers` in the order of [`registers`](Self::registers),
    /// `memory` in that of [`observed`](Self::observed).
    #[must_use]
    pub fn outcome(&self, registers: &[u64], memory: &[u64]) -> Outcome {
        let labels = self.registers().into_iter().map(|r| r.to_string());
        let places = self.observed().iter();
        let places = places.map(|&place| format!("[{}]", self.place_name(place)));
        let values = labels.zip(registers).chain(places.zip(memory));
        Outcome::Ended(values.map(|(label, &value)| (label, value)).collect())
    }
}

/// One step of the abstract machine: one word read or written, or a collective's meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The PE of the step; `None` for a meeting of all.
    pub pe: Option<usize>,
    /// The index of this PE's statement (of PE 0's, for a meeting).
    pub statement: usize,
    /// The step in words.
    pub words: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pe {
            Some(pe) => write!(f, "PE {pe}: {}", self.words),
            None => write!(f, "all PEs: {}", self.words),
        }
    }
}

/// All outcomes that a program may have in one memory model.
#[derive(Debug)]
pub struct Outcomes<'p> {
    pub(crate) machine: Machine<'p>,
    pub(crate) model: MemoryModel,
    pub(crate) allowed: BTreeMap<Outcome, Box<[Choice]>>,
    pub(crate) states: usize,
}

impl Outcomes<'_> {
    /// The model that allows them.
    #[must_use]
    pub fn model(&self) -> MemoryModel {
        self.model
    }

    /// The number of states of the machine that were visited.
    #[must_use]
    pub fn states(&self) -> usize {
        self.states
    }

    /// The number of outcomes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.allowed.len()
    }

    /// Always false: a program has at least one outcome.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Whether this outcome is allowed.
    #[must_use]
    pub fn allows(&self, outcome: &Outcome) -> bool {
        self.allowed.contains_key(outcome)
    }

    /// The steps of one execution with this outcome. `None` if there is none.
    #[must_use]
    pub fn witness(&self, outcome: &Outcome) -> Option<Vec<Step>> {
        let path = self.allowed.get(outcome)?;
        Some(self.machine.steps(path))
    }

    /// Every allowed outcome, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Outcome> {
        self.allowed.keys()
    }

    /// The first outcome that a pattern describes, if there is one.
    #[must_use]
    pub fn find(&self, pattern: &Pattern) -> Option<&Outcome> {
        self.iter().find(|outcome| outcome.matches(pattern))
    }

    /// The program's expectations about this model that do not hold.
    #[must_use]
    pub fn unmet(&self) -> Vec<&Expectation> {
        let all = self.machine.program.expectations().iter();
        all.filter(|e| e.model.is_none_or(|model| model == self.model))
            .filter(|e| self.find(&e.pattern).is_some() != (e.verdict == Verdict::Allowed))
            .collect()
    }
}
