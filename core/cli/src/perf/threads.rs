//! Several threads of a PE at once, each with a context, a word and a block of its own.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use oxshmem::{Context, ContextOptions, Error, Result};

use super::ground::{Ground, Seat, Target};
use super::measure::Task;
use super::op::{Who, Work};

/// A PE's threads in a row. They live for a batch, their contexts and data for the row.
pub struct Threads<'w> {
    threads: Vec<Thread<'w>>,
    /// Whether a quiet completes what one has posted.
    quiets: bool,
}

struct Thread<'w> {
    context: Context<'w>,
    ground: Ground<'w>,
    work: Box<dyn Work>,
}

impl<'w> Threads<'w> {
    /// Collective.
    pub fn new(ground: &Ground<'w>, task: &Task) -> Result<Self> {
        let thread = |thread| {
            let ground = ground.of_thread(thread)?;
            Ok(Thread {
                context: ground.world.create_context(ContextOptions::NONE)?,
                work: (task.op.prepare)(&ground, task.bytes)?,
                ground,
            })
        };
        Ok(Threads {
            threads: (0..task.threads as usize)
                .map(thread)
                .collect::<Result<_>>()?,
            quiets: task.op.who == Who::One,
        })
    }

    /// Makes all ready again. Collective.
    pub fn prepare(&mut self, task: &Task) -> Result<()> {
        for thread in &mut self.threads {
            thread.work = (task.op.prepare)(&thread.ground, task.bytes)?;
        }
        Ok(())
    }

    /// So many windows by each; the time from the first one's beginning to the last one's end.
    pub fn run(&mut self, repetitions: u64, window: u64) -> Result<Duration> {
        let (quiets, together) = (self.quiets, Barrier::new(self.threads.len()));
        let mut posting = Vec::with_capacity(self.threads.len());
        for Thread {
            context,
            ground,
            work,
        } in &mut self.threads
        {
            let work = work.one_sided().ok_or(Error::Argument {
                call: "perf",
                what: "this operation is not one for several threads".into(),
            })?;
            let places = (ground.word, ground.block, ground.source, ground.peer());
            posting.push((context, work, places));
        }
        let spans = std::thread::scope(|scope| {
            let started: Vec<_> = posting
                .into_iter()
                .map(|(context, work, (word, block, source, pe))| {
                    let together = &together;
                    scope.spawn(move || {
                        let target = Target {
                            context,
                            word,
                            block,
                            source,
                            pe,
                        };
                        together.wait();
                        let start = Instant::now();
                        for _ in 0..repetitions {
                            work.post(&target, window)?;
                            if quiets {
                                target.context.quiet()?;
                            }
                        }
                        Result::Ok((start, Instant::now()))
                    })
                })
                .collect();
            let ended = started.into_iter().map(|thread| match thread.join() {
                Ok(span) => span,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.collect::<Result<Vec<_>>>()
        })?;
        let first = spans.iter().map(|(start, _)| *start).min();
        let last = spans.iter().map(|(_, end)| *end).max();
        Ok(first
            .zip(last)
            .map_or(Duration::ZERO, |(first, last)| last - first))
    }

    /// Checks each one's data, of which `total` operations were done each. Collective.
    pub fn check(&self, seat: Seat, total: u64) -> anyhow::Result<()> {
        let check = |thread: &Thread<'_>| thread.work.check(&thread.ground, seat, total);
        self.threads.iter().try_for_each(check)
    }
}
