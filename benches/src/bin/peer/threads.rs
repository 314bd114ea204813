//! How many puts of 8 bytes to mapped memory a second thread adds: each on a context of its own, and both
//! on one that they share, beside one thread alone.

use std::sync::Barrier;
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
    // A page for each, so that threads share no cache line.
    let words = world.alloc_aligned::<u64>(WORDS * THREADS, 4096)?;
    let done = world.alloc_zeroed::<u64>(1)?;
    if world.my_pe() == 0 {
        measure(world, words, &cpus)?;
        world.p(done, 1, 1)?;
        world.quiet()?;
    } else {
        // Leaves its processor to the threads.
        while world.g(done, 1)? == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    world.barrier_all()?;
    world.free(done)?;
    world.free(words)?;
    Ok(())
}

/// The rows' batches take turns.
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

/// Each thread on a context of its own.
fn on_own(
    world: &World,
    words: Sym<u64>,
    threads: usize,
    cpus: &[usize],
) -> anyhow::Result<Duration> {
    let contexts = (0..threads).map(|_| world.create_context(ContextOptions::NONE));
    let contexts: Vec<_> = contexts.collect::<oxshmem::Result<_>>()?;
    on_threads(contexts, cpus, |thread, context| {
        puts(&context, part(words, thread)?, THREAD_PUTS)
    })
}

/// All threads on one.
fn on_one(world: &World, words: Sym<u64>, cpus: &[usize]) -> anyhow::Result<Duration> {
    let context = world.create_context(ContextOptions::NONE)?.share();
    let each = vec![&context; THREADS];
    on_threads(each, cpus, |thread, context: &SharedContext<'_>| {
        let words = part(words, thread)?;
        for _ in 0..THREAD_PUTS / WINDOW as u64 {
            puts(&context.lock(), words, WINDOW as u64)?;
        }
        Ok(())
    })
}

fn part(words: Sym<u64>, thread: usize) -> oxshmem::Result<Sym<u64>> {
    words.range(thread * WORDS..(thread + 1) * WORDS)
}

/// As a program's loop has them: another word each time, a check of each call, and a quiet now and then.
#[inline(never)]
fn puts(context: &Context<'_>, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    for i in 0..count {
        let at = i as usize;
        context.p(words.at(at % WORDS)?, i, 1)?;
        if at % WINDOW == WINDOW - 1 {
            context.quiet()?;
        }
    }
    context.quiet()
}

/// Runs `f` on a processor for each of these, all at once; gives how long the slowest took.
fn on_threads<T: Send>(
    each: Vec<T>,
    cpus: &[usize],
    f: impl Fn(usize, T) -> oxshmem::Result<()> + Sync,
) -> anyhow::Result<Duration> {
    let start = Barrier::new(each.len());
    std::thread::scope(|threads| {
        let spawn = |((thread, one), cpu): ((usize, T), &usize)| {
            let (f, start, cpu) = (&f, &start, *cpu);
            threads.spawn(move || -> anyhow::Result<Duration> {
                affinity::restrict(&[cpu])?;
                start.wait();
                let since = Instant::now();
                f(thread, one)?;
                Ok(since.elapsed())
            })
        };
        let spawned: Vec<_> = each.into_iter().enumerate().zip(cpus).map(spawn).collect();
        let mut slowest = Duration::ZERO;
        for thread in spawned {
            let took = thread
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            slowest = slowest.max(took);
        }
        Ok(slowest)
    })
}
