//! The gain of a second thread for puts of 8 bytes to mapped memory: each thread with its own
//! context, and both with a shared one, beside one thread alone. With a shared context a thread
//! takes the lock for a window of puts and its quiet, as a fast program would.

use std::ops::Deref;
use std::sync::{PoisonError, RwLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

use anyhow::ensure;
use oxshmem::{Context, ContextOptions, SharedContext, Sym, World};
use oxshmem_benches::affinity;
use oxshmem_benches::batches::report;
use oxshmem_benches::sizes::{BATCHES, THREAD_PUTS, THREADS, WINDOW, WORDS};

pub fn run(world: &World) -> anyhow::Result<()> {
    let cpus = affinity::allowed()?;
    ensure!(
        cpus.len() >= THREADS && world.n_pes() == 2,
        "`peer threads` needs 2 PEs and {THREADS} processors; here are {} and {}",
        world.n_pes(),
        cpus.len()
    );
    // A page for each thread, so that threads share no cache line.
    let words = world.alloc_aligned::<u64>(WORDS * THREADS, 4096)?;
    let done = world.alloc_zeroed::<u64>(1)?;
    if world.my_pe() == 0 {
        measure(world, words, &cpus)?;
        world.p(done, 1, 1)?;
        world.quiet()?;
    } else {
        // Leaves the processor to the threads.
        while world.g(done, 1)? == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    world.barrier_all()?;
    world.free(done)?;
    world.free(words)?;
    Ok(())
}

/// Measures the rows, their batches alternately.
fn measure(world: &World, words: Sym<u64>, cpus: &[usize]) -> anyhow::Result<()> {
    let (mut alone, mut own, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    let per_put = |took: Duration, threads: usize| {
        took.as_nanos() as f64 / (THREAD_PUTS * threads as u64) as f64
    };
    for _ in 0..BATCHES {
        alone.push(per_put(on_own(world, words, 1, cpus)?, 1));
        own.push(per_put(on_own(world, words, THREADS, cpus)?, THREADS));
        shared.push(per_put(on_one(world, words, cpus)?, THREADS));
    }
    report("threads_1", &alone);
    report(&format!("threads_{THREADS}"), &own);
    report(&format!("threads_{THREADS}_shared"), &shared);
    Ok(())
}

/// Each thread with a context of its own.
fn on_own(
    world: &World,
    words: Sym<u64>,
    threads: usize,
    cpus: &[usize],
) -> anyhow::Result<Duration> {
    let contexts = (0..threads).map(|_| world.create_context(ContextOptions::NONE));
    let contexts: Vec<_> = contexts.collect::<oxshmem::Result<_>>()?;
    on_threads(contexts, cpus, |thread, context| {
        puts(part(words, thread)?, || &context)
    })
}

/// All threads with one context.
fn on_one(world: &World, words: Sym<u64>, cpus: &[usize]) -> anyhow::Result<Duration> {
    let context = world.create_context(ContextOptions::NONE)?.share();
    let each = vec![&context; THREADS];
    on_threads(each, cpus, |thread, context: &SharedContext<'_>| {
        puts(part(words, thread)?, || context.lock())
    })
}

fn part(words: Sym<u64>, thread: usize) -> oxshmem::Result<Sym<u64>> {
    words.range(thread * WORDS..(thread + 1) * WORDS)
}

/// Puts as in a program's loop: another word each time, a check of each call, and a quiet after
/// each window, for which `take` gives the context.
#[inline(never)]
fn puts<'w, C>(words: Sym<u64>, take: impl Fn() -> C) -> oxshmem::Result<()>
where
    C: Deref<Target = Context<'w>>,
{
    for window in 0..THREAD_PUTS as usize / WINDOW {
        let context = take();
        for at in window * WINDOW..(window + 1) * WINDOW {
            context.p(words.at(at % WORDS)?, at as u64, 1)?;
        }
        context.quiet()?;
    }
    Ok(())
}

/// Runs `f` on a processor for each of these, all at once. Returns the time from the first one's
/// start to the last one's end.
fn on_threads<T: Send>(
    each: Vec<T>,
    cpus: &[usize],
    f: impl Fn(usize, T) -> oxshmem::Result<()> + Sync,
) -> anyhow::Result<Duration> {
    // Locked until all threads have been started, or one start has failed.
    let shut = RwLock::new(false);
    std::thread::scope(|threads| {
        let mut start = shut.write().unwrap_or_else(PoisonError::into_inner);
        let mut started = Vec::with_capacity(each.len());
        for ((thread, one), cpu) in each.into_iter().enumerate().zip(cpus) {
            let (f, shut, cpu) = (&f, &shut, *cpu);
            let post = move || -> anyhow::Result<(Instant, Instant)> {
                affinity::restrict(&[cpu])?;
                let go = *shut.read().unwrap_or_else(PoisonError::into_inner);
                ensure!(go, "another thread could not be started");
                let since = Instant::now();
                f(thread, one)?;
                Ok((since, Instant::now()))
            };
            started.push(Builder::new().spawn_scoped(threads, post)?);
        }
        *start = true;
        drop(start);
        let spans = started.into_iter().map(|thread| {
            let ended = thread.join();
            ended.map_err(|_| anyhow::anyhow!("a thread panicked"))?
        });
        Ok(from_first_to_last(
            &spans.collect::<anyhow::Result<Vec<_>>>()?,
        ))
    })
}

/// The time from the first start to the last end.
fn from_first_to_last(spans: &[(Instant, Instant)]) -> Duration {
    let first = spans.iter().map(|(since, _)| *since).min();
    let last = spans.iter().map(|(_, end)| *end).max();
    first
        .zip(last)
        .map_or(Duration::ZERO, |(first, last)| last - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_one_after_the_other_take_as_long_as_both() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let spans = [(at(5), at(9)), (at(0), at(5))];
        assert_eq!(from_first_to_last(&spans), Duration::from_millis(9));
    }
}
