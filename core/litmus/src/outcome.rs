//! What a program can end with.

use std::collections::BTreeMap;
use std::fmt;

use crate::machine::{Choice, Machine};
use crate::program::{Expectation, MemoryModel, Pattern, Program, Verdict};

/// What one run of a program ended with. Prints as `r0=1 r1=0 [x@1]=2`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Every statement was done. The registers' values and then those of the observed words, each
    /// with its label (`r0`, `[x@1]`). Made by [`Program::outcome`].
    Ended(Vec<(String, u64)>),
    /// All PEs that were left waited for what nobody would bring.
    Deadlock,
}

impl Outcome {
    /// Whether this is one of those that a pattern is about.
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
    /// The outcome that these values are: `registers` in the order of
    /// [`registers`](Self::registers), `memory` in that of [`observed`](Self::observed).
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
    /// Whose; none for a meeting of all.
    pub pe: Option<usize>,
    /// Which statement of this PE (of PE 0, for a meeting), counted from 0.
    pub statement: usize,
    /// What happened, in words.
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

    /// How many states of the machine were looked at.
    #[must_use]
    pub fn states(&self) -> usize {
        self.states
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.allowed.len()
    }

    /// Never: a program ends with something.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Whether this may happen.
    #[must_use]
    pub fn allows(&self, outcome: &Outcome) -> bool {
        self.allowed.contains_key(outcome)
    }

    /// How this can come about: the steps of one execution that ends so. None if it cannot.
    #[must_use]
    pub fn witness(&self, outcome: &Outcome) -> Option<Vec<Step>> {
        let path = self.allowed.get(outcome)?;
        Some(self.machine.steps(path))
    }

    /// Every allowed outcome, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Outcome> {
        self.allowed.keys()
    }

    /// The first outcome that a pattern is about, if there is one.
    #[must_use]
    pub fn find(&self, pattern: &Pattern) -> Option<&Outcome> {
        self.iter().find(|outcome| outcome.matches(pattern))
    }

    /// Those of the program's expectations about this model that do not hold.
    #[must_use]
    pub fn unmet(&self) -> Vec<&Expectation> {
        let all = self.machine.program.expectations().iter();
        all.filter(|e| e.model.is_none_or(|model| model == self.model))
            .filter(|e| self.find(&e.pattern).is_some() != (e.verdict == Verdict::Allowed))
            .collect()
    }
}
