//! Runs on simulated machines: one PE at a time, by decisions that can be replayed and shrunk.

use std::fmt;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};

use oxshmem::testing::spmd_with;
use oxshmem::{Builder, Error, MemoryKind, Result, World};
use oxshmem_weak::{Choices, Plan, Scheduler, Trace, shrink};

use crate::outcome::Outcome;
use crate::outcomes::Outcomes;
use crate::program::Program;
use crate::report::{Report, Schedule};
use crate::run::{Prepared, order};

/// A simulated machine and its scheduler.
#[derive(Clone)]
pub struct Machine {
    /// The name, for a reader.
    pub name: &'static str,
    /// Chooses which PE runs next, and records the choices for replay.
    pub scheduler: Arc<Scheduler>,
    /// Builds the worlds of its PEs.
    pub builder: Builder,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("name", &self.name)
            .field("scheduler", &self.scheduler)
            .finish_non_exhaustive()
    }
}

/// The effort of a search for outcomes.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The first run's seed; each later run has the next number.
    pub seed: u64,
    /// Runs on each machine at least.
    pub least: u64,
    /// Runs on each machine at most, while some allowed outcome has not been seen.
    pub most: u64,
}

/// Runs a program on each of some machines, one after the other: at least as often as `search` says
/// on each, and longer while an allowed outcome has not been seen. A forbidden outcome ends the
/// search; the report has the shortest schedule that leads to it.
///
/// Machines differ in their guarantees, and so in the outcomes that they can show: where a lane
/// keeps no order a fence has to complete the operations that it orders, where it keeps all a fence
/// costs nothing.
///
/// # Errors
///
/// Any error of the program's calls, except a deadlock, which is an outcome.
pub fn search(
    machines: &[Machine],
    program: &Program,
    outcomes: &Outcomes<'_>,
    search: Search,
) -> Result<Report> {
    let mut report = Report::new(program, outcomes);
    for machine in machines {
        let (mut seed, before) = (search.seed, report.runs);
        let mut found: Option<(Outcome, Trace)> = None;
        runs(machine, program, outcomes, |last| {
            if let Some((outcome, trace)) = last
                && report.count(outcome)
            {
                found = Some((outcome.clone(), trace.clone()));
                return None;
            }
            let runs = report.runs - before;
            let enough = report.is_complete() && runs >= search.least;
            if enough || runs >= search.most {
                return None;
            }
            let plan = Plan::Random(seed);
            seed += 1;
            Some(plan)
        })?;
        if let Some((outcome, trace)) = found {
            let (schedule, steps) = explain(machine, program, outcomes, trace, seed - 1);
            report.explain(&outcome, schedule, steps);
            return Ok(report);
        }
    }
    Ok(report)
}

/// Runs a program once, by a plan.
///
/// # Errors
///
/// As [`search`].
pub fn once(
    machine: &Machine,
    program: &Program,
    outcomes: &Outcomes<'_>,
    plan: Plan,
) -> Result<(Outcome, Trace)> {
    let (mut plan, mut ended) = (Some(plan), None);
    runs(machine, program, outcomes, |last| {
        ended = last.cloned();
        plan.take()
    })?;
    ended.ok_or_else(|| failed("the run did not begin"))
}

/// The shortest schedule like this one with a forbidden outcome, and its steps.
fn explain(
    machine: &Machine,
    program: &Program,
    outcomes: &Outcomes<'_>,
    trace: Trace,
    seed: u64,
) -> (Schedule, Vec<String>) {
    let forbidden = |decisions: &[u32]| {
        let run = once(machine, program, outcomes, Plan::Replay(decisions.to_vec()));
        // A schedule that ends in another error explains nothing.
        run.ok().filter(|(outcome, _)| !outcomes.allows(outcome))
    };
    let shortest = shrink(trace.replay(), |decisions| forbidden(decisions).is_some());
    // Falls back to the original schedule if the shortest one does not repeat the outcome.
    let (decisions, steps) = match forbidden(&shortest) {
        Some((_, shorter)) => (shortest, shorter.steps),
        None => (trace.replay(), trace.steps),
    };
    let schedule = Schedule {
        machine: machine.name,
        seed,
        decisions,
    };
    (schedule, steps)
}

fn failed(what: &str) -> Error {
    Error::Argument {
        call: "litmus",
        what: what.into(),
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that the PEs of one run share.
#[derive(Default)]
struct Run {
    /// Whether there is a run.
    going: bool,
    registers: Vec<(usize, u64)>,
    memory: Vec<(usize, u64)>,
    /// The error of the first PE that failed.
    error: Option<Error>,
    /// The outcome of the last run.
    ended: Option<(Outcome, Trace)>,
}

impl Run {
    /// Joins the PEs' values to an outcome.
    fn outcome(&mut self, program: &Program) -> Outcome {
        let row = |values: &mut Vec<(usize, u64)>| {
            values.sort_unstable();
            values.drain(..).map(|(_, value)| value).collect::<Vec<_>>()
        };
        program.outcome(&row(&mut self.registers), &row(&mut self.memory))
    }
}

/// Runs a program by plans, one after the other, until `next` has no more. `next` is given the
/// outcome of the run before.
fn runs(
    machine: &Machine,
    program: &Program,
    outcomes: &Outcomes<'_>,
    next: impl FnMut(Option<&(Outcome, Trace)>) -> Option<Plan> + Send,
) -> Result<()> {
    let scheduler = &machine.scheduler;
    let next = Mutex::new(next);
    let run = Mutex::new(Run::default());
    let together = Barrier::new(program.pes());
    let one_pe = |world: &World| -> Result<()> {
        let me = world.my_pe();
        let prepared = Prepared::new(world, program, MemoryKind::Host)?;
        loop {
            if me == 0 {
                let ended = held(&run).ended.take();
                let plan = held(&next)(ended.as_ref());
                held(&run).going = plan.is_some();
                plan.into_iter().for_each(|plan| scheduler.plan(plan));
            }
            let ready = prepared.clear();
            together.wait();
            if !held(&run).going {
                ready?;
                return prepared.free();
            }
            let mut note = |words: String| scheduler.note(|| format!("PE {me}: {words}"));
            let done = ready.and_then(|()| {
                let _turn = scheduler.enter(me);
                let choose = |n| scheduler.choose(n);
                let order = order(program, outcomes.model(), me, choose);
                prepared.run(&order, &mut note)
            });
            match done {
                Ok(registers) => held(&run).registers.extend(registers),
                Err(error) => {
                    held(&run).error.get_or_insert(error);
                }
            }
            // All PEs have finished: their operations are complete, and all see the same memory.
            together.wait();
            if held(&run).error.is_some() {
                return Err(failed("this run ended badly"));
            }
            let memory = prepared.observed()?;
            held(&run).memory.extend(memory);
            together.wait();
            if me == 0 {
                let mut run = held(&run);
                let outcome = run.outcome(program);
                run.ended = Some((outcome, scheduler.trace()));
            }
        }
    };
    loop {
        let result = spmd_with(machine.builder.clone(), program.pes(), one_pe);
        let mut run = held(&run);
        match (result, run.error.take()) {
            (Ok(_), _) => return Ok(()),
            (Err(_), Some(Error::Deadlock { .. })) => {
                // A world with cancelled calls is not used again.
                run.registers.clear();
                run.memory.clear();
                run.ended = Some((Outcome::Deadlock, scheduler.trace()));
            }
            (Err(_), Some(error)) | (Err(error), None) => return Err(error),
        }
    }
}
