//! The outcomes of a program's runs, with the model's verdict.

use std::collections::BTreeMap;
use std::fmt;

use crate::outcome::Outcome;
use crate::outcomes::Outcomes;
use crate::program::{MemoryModel, Program};

/// The outcomes that runs of one program showed, and the model's verdict on them.
#[derive(Clone, Debug)]
pub struct Report {
    /// The program's name.
    pub program: String,
    /// The memory model of the runs.
    pub model: MemoryModel,
    /// The number of runs with each allowed outcome, 0 included.
    pub allowed: BTreeMap<Outcome, u64>,
    /// The outcomes that the model forbids: how often each was seen, and an explanation of the
    /// first.
    pub forbidden: BTreeMap<Outcome, ForbiddenOutcome>,
    /// The number of runs.
    pub runs: u64,
}

/// A forbidden outcome.
#[derive(Clone, Debug, Default)]
pub struct ForbiddenOutcome {
    /// The number of runs with it.
    pub times: u64,
    /// A schedule that repeats it; `None` on platforms that record none.
    pub schedule: Option<Schedule>,
    /// The steps of that run.
    pub steps: Vec<String>,
}

/// The decisions of a run on a simulated machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The machine's name.
    pub machine: &'static str,
    /// The seed of the run that found it.
    pub seed: u64,
    /// The decisions, shortened as far as possible.
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
    /// An empty report.
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

    /// Counts a run. Returns true for the first run with a forbidden outcome: the caller then
    /// [explains](Self::explain) it.
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

    /// Adds an explanation of a forbidden outcome.
    pub fn explain(&mut self, outcome: &Outcome, schedule: Schedule, steps: Vec<String>) {
        if let Some(found) = self.forbidden.get_mut(outcome) {
            found.schedule = Some(schedule);
            found.steps = steps;
        }
    }

    /// Whether no run had a forbidden outcome.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.forbidden.is_empty()
    }

    /// The number of allowed outcomes that were seen.
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
    /// A line with the verdict, then one for each outcome.
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
