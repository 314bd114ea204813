//! The timing of one row. The measuring PE times; before each batch it announces the batch's length
//! to all PEs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use oxshmem::{Result, Session};

use super::batches::{Effort, Measured, Until, time};
use super::fixture::{Fixture, Role};
use super::metric::Metric;
use super::op::{Who, Work};
use super::overlap::{self, Round};
use super::task::Task;
use super::threads::Threads;

/// The least duration of an operation that is timed by itself, in clock readings.
const CLOCKS: f64 = 10.0;
/// Such operations at most.
const MOST_SINGLES: usize = 100_000;

/// One PE's part in a row.
struct Participant<'g, 'w> {
    fixture: &'g Fixture<'w>,
    task: Task,
    role: Role,
    validate: bool,
    work: Box<dyn Work>,
    /// The threads, if there are several. They issue all operations.
    threads: Option<Threads<'w>>,
    /// Operations since the last preparation.
    total: u64,
    checks: u64,
}

impl<'g, 'w> Participant<'g, 'w> {
    /// Collective.
    fn new(fixture: &'g Fixture<'w>, task: Task, validate: bool) -> Result<Self> {
        let work = (task.op.prepare)(fixture, task.bytes)?;
        let threads = match task.threads {
            0 | 1 => None,
            _ => Some(Threads::new(fixture, &task)?),
        };
        if fixture.session && task.op.has_threads() {
            fixture.world.session_start(Session::default().batch());
        }
        fixture.world.barrier_all()?;
        Ok(Participant {
            threads,
            fixture,
            role: task.role(fixture),
            task,
            validate,
            work,
            total: 0,
            checks: 0,
        })
    }

    /// Does this PE's part of a batch, and returns how long it took.
    fn run(&mut self, repetitions: u64) -> anyhow::Result<Duration> {
        let world = self.fixture.world;
        if let Some(threads) = self.threads.as_mut().filter(|_| self.role.acts) {
            self.total += repetitions * self.task.window;
            return threads.run(repetitions, self.task.window, || world.sync_all());
        }
        // No PE still sleeps or is waking up when the batch begins.
        world.sync_all()?;
        let start = Instant::now();
        self.run_alone(repetitions)?;
        Ok(start.elapsed())
    }

    fn run_alone(&mut self, repetitions: u64) -> Result<()> {
        let world = self.fixture.world;
        if self.task.metric == Metric::Latency {
            self.total += repetitions;
            if !self.role.acts {
                return Ok(());
            }
            if self.task.op.who == Who::OneCompleting {
                return (0..repetitions).try_for_each(|_| self.work.run(self.fixture, 1));
            }
            self.work.run(self.fixture, repetitions)?;
            return match self.task.op.who {
                Who::One => world.quiet(),
                _ => Ok(()),
            };
        }
        let window = self.task.window;
        self.total += repetitions * window;
        if self.role.acts {
            for _ in 0..repetitions {
                self.work.run(self.fixture, window)?;
                if self.task.op.who == Who::One {
                    world.quiet()?;
                }
            }
        }
        match (self.task.metric, &self.threads) {
            // The slower of the two counts.
            (Metric::Bidirectional, None) => world.sync_all(),
            _ => Ok(()),
        }
    }

    /// Does this PE's part of a batch whose operations are timed one by one, if it acts.
    fn run_timed(&mut self, repetitions: u64, times: &mut Vec<f64>) -> Result<()> {
        self.fixture.world.sync_all()?;
        let mut last = Instant::now();
        for _ in 0..repetitions {
            self.work.run(self.fixture, 1)?;
            let now = Instant::now();
            times.push((now - last).as_nanos() as f64 / self.task.per_repetition() as f64);
            last = now;
        }
        self.total += repetitions;
        match self.task.op.who {
            Who::One => self.fixture.world.quiet(),
            _ => Ok(()),
        }
    }

    /// Completes a batch. Collective.
    fn batch_done(&mut self) -> anyhow::Result<()> {
        if self.validate {
            self.check()?;
            match &mut self.threads {
                Some(threads) => threads.validate(self.role)?,
                None => self.work.validate(self.fixture, self.role)?,
            }
            self.fixture.world.barrier_all()?;
            self.work = (self.task.op.prepare)(self.fixture, self.task.bytes)?;
            if let Some(threads) = &mut self.threads {
                threads.prepare(&self.task)?;
            }
            self.fixture.world.barrier_all()?;
            self.total = 0;
        }
        Ok(())
    }

    /// Checks the data; no PE goes on before all have checked. Collective.
    fn check(&mut self) -> anyhow::Result<()> {
        self.fixture.world.barrier_all()?;
        match &self.threads {
            Some(threads) => threads.check(self.role, self.total)?,
            None => self.work.check(self.fixture, self.role, self.total)?,
        }
        self.checks += 1;
        Ok(self.fixture.world.barrier_all()?)
    }

    /// Takes part in all batches that the measuring PE announces.
    fn follow(&mut self) -> anyhow::Result<()> {
        loop {
            match self.fixture.next_batch()? {
                0 => return Ok(()),
                repetitions => self.run(repetitions)?,
            };
            self.batch_done()?;
        }
    }

    /// Announces and does a batch; returns how long it took.
    fn timed(&mut self, repetitions: u64) -> anyhow::Result<Duration> {
        self.fixture.announce(repetitions)?;
        let took = self.run(repetitions)?;
        self.batch_done()?;
        Ok(took)
    }

    /// Announces and does a batch of overlapping transfers.
    fn overlapped(&mut self, repetitions: u64) -> anyhow::Result<Round> {
        let transfers = overlap::transfers(repetitions);
        self.fixture.announce(transfers)?;
        self.fixture.world.sync_all()?;
        let round = overlap::round(self.work.as_mut(), self.fixture, repetitions)?;
        self.total += transfers;
        self.batch_done()?;
        Ok(round)
    }

    fn lead(&mut self, effort: Effort, clock: f64) -> anyhow::Result<Measured> {
        let per_repetition = self.task.per_repetition();
        if self.task.metric == Metric::Overlap {
            let mut overlaps = Vec::new();
            let mut batch = |n| {
                let round = self.overlapped(n)?;
                overlaps.push(round.overlap());
                anyhow::Ok(round.transfer)
            };
            let found = time(&mut batch, effort, per_repetition)?;
            // Only of the batches of full length.
            let overlaps = overlaps.split_off(overlaps.len() - found.batches.len());
            return Ok(Measured { overlaps, ..found });
        }
        let mut found = time(&mut |n| self.timed(n), effort, per_repetition)?;
        let one = super::statistics::median(&found.batches) * per_repetition as f64;
        if self.task.metric == Metric::Latency && one >= CLOCKS * clock {
            found.singles = self.singles(effort, found.repetitions)?;
        }
        Ok(found)
    }

    /// Times operations one by one: half as many, or for half as long, as those in batches.
    fn singles(&mut self, effort: Effort, repetitions: u64) -> anyhow::Result<Vec<f64>> {
        let mut singles = Vec::new();
        let start = Instant::now();
        let each = self.task.per_repetition();
        let enough = |done: usize| match effort.row {
            _ if done >= MOST_SINGLES => true,
            Until::Time(row) => start.elapsed() >= row / 2,
            Until::Operations(operations) => done as u64 * each >= operations / 2,
        };
        let repetitions = repetitions.min(MOST_SINGLES as u64);
        while singles.is_empty() || !enough(singles.len()) {
            self.fixture.announce(repetitions)?;
            self.run_timed(repetitions, &mut singles)?;
            self.batch_done()?;
        }
        Ok(singles)
    }
}

/// Measures one row and checks its data. Collective; the measuring PE gets the result.
pub fn measure(
    fixture: &Fixture<'_>,
    task: Task,
    effort: Effort,
    clock: f64,
) -> anyhow::Result<Option<Measured>> {
    let mut participant = Participant::new(fixture, task, effort.validate)?;
    let found = if fixture.leads() {
        let found = participant.lead(effort, clock)?;
        fixture.announce(0)?;
        Some(found)
    } else {
        participant.follow()?;
        None
    };
    // Otherwise the last batch's data has been checked, and cleared.
    if participant.total > 0 {
        participant.check()?;
    }
    fixture.world.session_stop();
    Ok(found.map(|found| Measured {
        checks: participant.checks,
        ..found
    }))
}

/// Nanoseconds that one clock reading takes.
pub fn clock() -> f64 {
    const READS: u32 = 1000;
    let start = Instant::now();
    for _ in 0..READS {
        black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(READS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::fixture::Footprint;
    use crate::perf::op::Op;
    use crate::perf::sizes::Sizes;
    use crate::perf::team::Which;
    use clap::ValueEnum;
    use oxshmem::testing::spmd;

    fn brief(validate: bool) -> Effort {
        Effort {
            batch: Duration::from_micros(1),
            row: Until::Operations(8),
            validate,
        }
    }

    /// The operations that can be measured without a GPU.
    fn on_hosts() -> impl Iterator<Item = &'static Op> {
        Op::all().filter(|op| !op.needs_gpu())
    }

    fn all(validate: bool, pes: usize) {
        spmd(pes, |world| {
            let sizes: Sizes = "250..1000".parse().unwrap();
            let tasks = on_hosts().flat_map(|op| {
                let of = move |metric: &Metric| {
                    let task = move |bytes| Task {
                        op,
                        metric: *metric,
                        bytes,
                        window: if metric.has_window() { 3 } else { 1 },
                        threads: 1,
                    };
                    op.sizes(sizes).into_iter().map(task).collect::<Vec<_>>()
                };
                op.metrics.iter().flat_map(of).collect::<Vec<_>>()
            });
            let possible = |task: &Task| {
                pes > 1 || !(task.op.needs_two() || task.metric == Metric::Bidirectional)
            };
            let tasks: Vec<Task> = tasks.filter(possible).collect();
            let footprint = tasks.iter().map(|task| task.op.footprint(task.bytes, pes));
            let team = world.team();
            let footprint = footprint.fold(Footprint::default(), Footprint::and);
            let footprint = if validate {
                footprint.of_slots()
            } else {
                footprint
            };
            let fixture = Fixture::new(world, Some(&team), footprint, 1)?;
            for task in tasks {
                // Without timing one by one, and with it.
                for clock in [f64::INFINITY, 0.0] {
                    let found = measure(&fixture, task, brief(validate), clock).unwrap();
                    assert_eq!(found.is_some(), world.my_pe() == 0);
                    let Some(found) = found else { continue };
                    let singles = task.metric == Metric::Latency && clock == 0.0;
                    assert_eq!(!found.singles.is_empty(), singles);
                    assert!(!found.batches.is_empty());
                    let overlaps = task.metric == Metric::Overlap;
                    assert_eq!(!found.overlaps.is_empty(), overlaps);
                    assert_eq!(found.checks > 1, validate, "{}", task.op.name);
                }
            }
            fixture.free()
        })
        .unwrap();
    }

    #[test]
    fn every_operation_is_measured_for_every_metric_and_its_data_checked() {
        for pes in [1, 3] {
            all(false, pes);
        }
    }

    #[test]
    fn the_data_of_every_batch_is_checked_where_that_is_asked() {
        all(true, 2);
    }

    #[test]
    fn threads_each_do_all_of_a_window_by_a_context_of_their_own() {
        spmd(2, |world| {
            let footprint = Footprint {
                block: 512,
                source: 256,
            };
            let team = world.team();
            let fixture = Fixture::new(world, Some(&team), footprint.of_slots(), 3)?;
            for op in on_hosts().filter(|op| op.has_threads()) {
                for metric in op.metrics.iter().filter(|metric| metric.has_window()) {
                    let task = Task {
                        op,
                        metric: *metric,
                        bytes: op.sizes("256".parse().unwrap())[0],
                        window: 4,
                        threads: 3,
                    };
                    for validate in [false, true] {
                        let found = measure(&fixture, task, brief(validate), 0.0).unwrap();
                        assert_eq!(found.is_some(), world.my_pe() == 0);
                        assert!(found.is_none_or(|found| !found.batches.is_empty()));
                    }
                }
            }
            fixture.free()
        })
        .unwrap();
    }

    #[test]
    fn collectives_of_every_team_bring_its_members_what_they_should() {
        for which in Which::value_variants() {
            spmd(5, |world| {
                let team = which.form(world)?;
                let collectives = || on_hosts().filter(|op| op.who == Who::Team);
                let footprint = collectives().map(|op| op.footprint(256, world.n_pes()));
                let footprint = footprint.fold(Footprint::default(), Footprint::and);
                let fixture = Fixture::new(world, team.as_ref(), footprint.of_slots(), 1)?;
                for op in collectives() {
                    let task = Task {
                        op,
                        metric: Metric::Latency,
                        bytes: op.sizes("256".parse().unwrap())[0],
                        window: 1,
                        threads: 1,
                    };
                    let found = measure(&fixture, task, brief(true), f64::INFINITY).unwrap();
                    assert!(found.is_none_or(|found| found.checks > 1));
                }
                fixture.free()?;
                which.end(team)
            })
            .unwrap();
        }
    }

    #[test]
    fn wrong_data_is_found() {
        spmd(2, |world| {
            let footprint = Footprint {
                block: 512,
                source: 512,
            };
            let team = world.team();
            let fixture = Fixture::new(world, Some(&team), footprint, 1)?;
            let wrong = world.alloc_zeroed::<u64>(1)?;
            for op in on_hosts() {
                let task = Task {
                    op,
                    metric: op.default_metric(),
                    bytes: op.sizes("64".parse().unwrap())[0],
                    window: 1,
                    threads: 1,
                };
                // Nothing was run, so nothing can have arrived.
                let participant = Participant::new(&fixture, task, false)?;
                let checked = participant.work.check(&fixture, participant.role, 5);
                world.write(wrong, &[u64::from(checked.is_err())])?;
                world.sum_reduce(wrong, wrong)?;
                // Operations that leave no data are done by their check itself.
                let right = [
                    "barrier",
                    "sync",
                    "lock",
                    "lock-all",
                    "test-lock",
                    "context",
                    "team-split",
                    "alloc",
                ];
                let right = right.contains(&op.name);
                assert_eq!(world.g(wrong, world.my_pe())? > 0, !right, "{}", op.name);
            }
            fixture.free()
        })
        .unwrap();
    }
}
