//! What runs of a program ended with, beside what the model allows.

use std::collections::BTreeMap;
use std::fmt;

use crate::outcome::{Outcome, Outcomes};
use crate::program::{MemoryModel, Program};

/// The outcomes that runs of one program showed, and the model's verdict on them.
#[derive(Clone, Debug)]
pub struct Report {
    /// The program's name.
    pub program: String,
    /// The model it ran under.
    pub model: MemoryModel,
    /// How often each allowed outcome was seen; 0 for one that was not.
    pub allowed: BTreeMap<Outcome, u64>,
    /// Outcomes that the model does not allow, how often each, and how the first came about.
    pub forbidden: BTreeMap<Outcome, Found>,
    /// How many runs.
    pub runs: u64,
}

/// A forbidden outcome.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// How often.
    pub times: u64,
    /// What to run again for one of them; none where nothing recorded it.
    pub schedule: Option<Schedule>,
    /// What happens in it.
    pub steps: Vec<String>,
}

/// How a simulated machine's run was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Which machine.
    pub machine: &'static str,
    /// The seed of the run that it was found by.
    pub seed: u64,
    /// The decisions, shortened as far as they go.
    pub decisions: Vec<u32>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decisions: Vec<String> = self.decisions.iter().map(u32::to_string).collect();
        let decisions = match decisions.as_slice() {
            [] => "the tame one".into(),
            decisions => decisions.join(","),
        };
        let (machine, seed) = (self.machine, self.seed);
        write!(
            f,
            "on {machine}, seed {seed}; shortest schedule: {decisions}"
        )
    }
}

impl Report {
    /// Before the first run.
    #[must_use]
    pub fn new(program: &Program, outcomes: &Outcomes) -> Self {
        Report {
            program: program.name().to_owned(),
            model: outcomes.model(),
            allowed: outcomes.iter().map(|o| (o.clone(), 0)).collect(),
            forbidden: BTreeMap::new(),
            runs: 0,
        }
    }

    /// Counts a run. True if it is the first with an outcome that is not allowed: the caller then
    /// says [how](Self::explain).
    pub fn count(&mut self, outcome: &Outcome) -> bool {
        self.runs += 1;
        if let Some(times) = self.allowed.get_mut(outcome) {
            *times += 1;
            return false;
        }
        let found = self.forbidden.entry(outcome.clone()).or_default();
        found.times += 1;
        found.times == 1
    }

    /// Says how a forbidden outcome came about.
    pub fn explain(&mut self, outcome: &Outcome, schedule: Schedule, steps: Vec<String>) {
        if let Some(found) = self.forbidden.get_mut(outcome) {
            found.schedule = Some(schedule);
            found.steps = steps;
        }
    }

    /// Whether no run was forbidden.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.forbidden.is_empty()
    }

    /// How many allowed outcomes were seen.
    #[must_use]
    pub fn seen(&self) -> usize {
        self.allowed.values().filter(|times| **times > 0).count()
    }

    /// Whether every allowed outcome was seen.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.seen() == self.allowed.len()
    }
}

impl fmt::Display for Report {
    /// A line of verdict, then one for each outcome.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_clean() { "ok" } else { "FORBIDDEN" };
        writeln!(
            f,
            "{verdict:9} {} ({}): {} of {} allowed outcomes seen in {} runs",
            self.program,
            self.model,
            self.seen(),
            self.allowed.len(),
            self.runs
        )?;
        for (outcome, times) in &self.allowed {
            writeln!(f, "  {times:>10}  {outcome}")?;
        }
        for (outcome, found) in &self.forbidden {
            writeln!(f, "  {:>10}  {outcome}   <- forbidden", found.times)?;
            if let Some(schedule) = &found.schedule {
                writeln!(f, "              {schedule}")?;
            }
            for line in &found.steps {
                writeln!(f, "              {line}")?;
            }
        }
        Ok(())
    }
}
