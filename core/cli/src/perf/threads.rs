//! Several threads of a PE at once, each with a context, a word and a block of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use oxshmem::{Cmp, Context, ContextOptions, Result, Session};

use super::fixture::{Fixture, Role, Target};
use super::gate::Gate;
use super::metric::Metric;
use super::op::{Who, Work};
use super::task::Task;

/// A PE's threads in a row. They live for a batch, their contexts and data for the row.
pub struct Threads<'w> {
    threads: Vec<Thread<'w>>,
    /// Whether a quiet completes the posted operations.
    quiets: bool,
    /// Whether a batch ends only when the partner's has ended, too.
    meets: bool,
    /// Batches so far.
    batches: u64,
}

struct Thread<'w> {
    context: Context<'w>,
    fixture: Fixture<'w>,
    work: Box<dyn Work>,
}

impl<'w> Threads<'w> {
    /// Collective.
    pub fn new(fixture: &Fixture<'w>, task: &Task) -> Result<Self> {
        let thread = |thread| {
            let fixture = fixture.of_thread(thread)?;
            let context = fixture.world.create_context(ContextOptions::NONE)?;
            if fixture.session {
                context.session_start(Session::default().batch());
            }
            Ok(Thread {
                context,
                work: (task.op.prepare)(&fixture, task.bytes)?,
                fixture,
            })
        };
        fixture.world.write(fixture.signal, &[0])?;
        Ok(Threads {
            threads: (0..task.threads as usize)
                .map(thread)
                .collect::<Result<_>>()?,
            quiets: task.op.who == Who::One,
            meets: task.metric == Metric::Bidirectional,
            batches: 0,
        })
    }

    /// Prepares all threads' operations again. Collective.
    pub fn prepare(&mut self, task: &Task) -> Result<()> {
        for thread in &mut self.threads {
            thread.work = (task.op.prepare)(&thread.fixture, task.bytes)?;
        }
        Ok(())
    }

    /// Runs `repetitions` windows on each thread. The threads begin when all are there and `begin`
    /// has returned. Returns the time from the first one's start to the last one's end.
    pub fn run(
        &mut self,
        repetitions: u64,
        window: u64,
        begin: impl FnOnce() -> Result<()>,
    ) -> anyhow::Result<Duration> {
        self.batches += 1;
        let (quiets, meets, batch) = (self.quiets, self.meets, self.batches);
        let (gate, posting) = (Gate::default(), AtomicUsize::new(self.threads.len()));
        let spans = std::thread::scope(|scope| {
            let opening = gate.opening();
            let mut started = Vec::with_capacity(self.threads.len());
            for Thread {
                context,
                fixture,
                work,
            } in &mut self.threads
            {
                let work = work
                    .one_sided()
                    .context("this operation is not one for several threads")?;
                let (word, block, source) = (fixture.word, fixture.block, fixture.source);
                let (signal, pe) = (fixture.signal, fixture.peer());
                let (gate, posting) = (&gate, &posting);
                let post = move || {
                    let target = Target {
                        context,
                        word,
                        block,
                        source,
                        pe,
                    };
                    if !gate.pass() {
                        return Ok(None);
                    }
                    let start = Instant::now();
                    for _ in 0..repetitions {
                        work.post(&target, window)?;
                        if quiets {
                            target.context.quiet()?;
                        }
                    }
                    // The last thread of each PE.
                    if meets && posting.fetch_sub(1, Ordering::Relaxed) == 1 {
                        target.context.signal_set(signal, batch, pe)?;
                        target.context.signal_wait_until(signal, Cmp::Ge, batch)?;
                    }
                    Result::Ok(Some((start, Instant::now())))
                };
                let spawned = Builder::new().spawn_scoped(scope, post);
                let refused =
                    || format!("cannot start thread {} (see --threads)", started.len() + 1);
                started.push(spawned.with_context(refused)?);
            }
            opening.expect(started.len());
            begin()?;
            opening.open();
            let ended = started.into_iter().map(|thread| match thread.join() {
                Ok(span) => span,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            anyhow::Ok(ended.collect::<Result<Vec<_>>>()?)
        })?;
        let spans = || spans.iter().flatten();
        let first = spans().map(|(start, _)| *start).min();
        let last = spans().map(|(_, end)| *end).max();
        Ok(first
            .zip(last)
            .map_or(Duration::ZERO, |(first, last)| last - first))
    }

    /// Validates each thread's operations, one thread after the other. Collective.
    pub fn validate(&mut self, role: Role) -> anyhow::Result<()> {
        let mut threads = self.threads.iter_mut();
        threads.try_for_each(|thread| thread.work.validate(&thread.fixture, role))
    }

    /// Checks each thread's data, after `total` operations of each. Collective.
    pub fn check(&self, role: Role, total: u64) -> anyhow::Result<()> {
        let check = |thread: &Thread<'_>| thread.work.check(&thread.fixture, role, total);
        self.threads.iter().try_for_each(check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::fixture::Footprint;
    use crate::perf::op::Op;
    use oxshmem::testing::spmd;

    fn puts(fixture: &Fixture<'_>, metric: Metric) -> Task {
        Task {
            op: Op::all().find(|op| op.name == "put").unwrap(),
            metric,
            bytes: fixture.block.len(),
            window: 2,
            threads: 3,
        }
    }

    const FOOTPRINT: Footprint = Footprint {
        block: 64,
        source: 0,
    };

    #[test]
    fn what_comes_before_the_first_operation_is_not_timed() {
        const BEFORE: Duration = Duration::from_millis(20);
        spmd(2, |world| {
            let fixture = Fixture::new(world, None, FOOTPRINT, 3)?;
            for metric in [Metric::Rate, Metric::Bidirectional] {
                let mut threads = Threads::new(&fixture, &puts(&fixture, metric))?;
                world.barrier_all()?;
                let start = Instant::now();
                let begin = || {
                    std::thread::sleep(BEFORE);
                    world.sync_all()
                };
                let took = threads.run(5, 2, begin).unwrap();
                assert!(took > Duration::ZERO && took + BEFORE <= start.elapsed());
                world.barrier_all()?;
                let role = Role {
                    acts: true,
                    receives: true,
                };
                threads.check(role, 10).unwrap();
                world.barrier_all()?;
            }
            fixture.free()
        })
        .unwrap();
    }

    #[test]
    fn threads_end_where_a_batch_cannot_begin() {
        spmd(1, |world| {
            let fixture = Fixture::new(world, None, FOOTPRINT, 3)?;
            let mut threads = Threads::new(&fixture, &puts(&fixture, Metric::Rate))?;
            let refused = || Err(world.g(fixture.word, usize::MAX).unwrap_err());
            assert!(threads.run(5, 2, refused).is_err());
            let role = Role {
                acts: true,
                receives: true,
            };
            assert!(threads.check(role, 10).is_err(), "nothing was put");
            fixture.free()
        })
        .unwrap();
    }
}
