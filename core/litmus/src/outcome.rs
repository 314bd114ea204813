//! The outcome of a run, and the steps that lead to it.

use std::fmt;

use crate::program::{Pattern, Program};

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
