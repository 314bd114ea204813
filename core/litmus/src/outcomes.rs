//! The set of outcomes that the model allows for a program, with an execution that leads to each.

use std::collections::BTreeMap;

use crate::machine::{Choice, Machine};
use crate::outcome::{Outcome, Step};
use crate::program::{Expectation, MemoryModel, Pattern, Verdict};

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
