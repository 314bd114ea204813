//! `contexts`: how many puts of 8 bytes a second threads issue to mapped memory, each on a context of its own
//! and all on one that they share, beside one thread alone.
//!
//! Run it as one PE, or as two by `oxshmem run`: PE 0 puts to the last one. The batches of all rows take turns;
//! each row gives the best of its own, so that what else the machine does counts least.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use oxshmem::{Context, ContextOptions, SharedContext, Sym, World};
use oxshmem_benches::affinity;

/// Measures message rates of threads.
#[derive(Parser)]
struct Args {
    /// Threads, at most one a processor.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Puts of each thread in a batch.
    #[arg(long, default_value_t = 20_000_000)]
    puts: u64,
    /// Batches of each row.
    #[arg(long, default_value_t = 15)]
    batches: usize,
}

/// Words of a thread's own: a page, so that threads share no cache line.
const WORDS: usize = 512;
/// Puts between two quiets.
const WINDOW: u64 = 64;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let cpus = affinity::allowed()?;
    ensure!(
        (1..=cpus.len()).contains(&args.threads),
        "{} threads, and {} processors to run on",
        args.threads,
        cpus.len()
    );
    let world = World::init()?;
    let words = world.alloc_aligned::<u64>(WORDS * args.threads, 4096)?;
    if world.my_pe() == 0 {
        measure(&world, words, &args, &cpus)?;
    }
    world.barrier_all()?;
    world.free(words)?;
    Ok(world.finalize()?)
}

fn measure(world: &World, words: Sym<u64>, args: &Args, cpus: &[usize]) -> anyhow::Result<()> {
    let rows: [(&str, usize, bool); 3] = [
        ("one thread, its own context", 1, false),
        ("threads, a context each", args.threads, false),
        ("threads, one shared context", args.threads, true),
    ];
    let mut best = [Duration::MAX; 3];
    for _ in 0..args.batches {
        for (best, (_, threads, shared)) in best.iter_mut().zip(rows) {
            let took = match shared {
                false => own(world, words, threads, args.puts, cpus)?,
                true => one(world, words, threads, args.puts, cpus)?,
            };
            *best = took.min(*best);
        }
    }
    let rates: Vec<f64> = rows
        .iter()
        .zip(best)
        .map(|((_, threads, _), best)| {
            *threads as f64 * args.puts as f64 / best.as_secs_f64() / 1e6
        })
        .collect();
    let alone = *rates.first().context("no rows")?;
    for ((name, threads, _), rate) in rows.iter().zip(&rates) {
        println!(
            "{name:<30} {threads} {rate:>9.1} M puts/s {:>6.2}x",
            rate / alone
        );
    }
    Ok(())
}

/// Each thread on a context of its own.
fn own(
    world: &World,
    words: Sym<u64>,
    threads: usize,
    count: u64,
    cpus: &[usize],
) -> anyhow::Result<Duration> {
    let contexts = (0..threads).map(|_| world.create_context(ContextOptions::NONE));
    let contexts: Vec<_> = contexts.collect::<oxshmem::Result<_>>()?;
    on_threads(contexts, cpus, |thread, context| {
        puts(&context, part(words, thread)?, count)
    })
}

/// All threads on one.
fn one(
    world: &World,
    words: Sym<u64>,
    threads: usize,
    count: u64,
    cpus: &[usize],
) -> anyhow::Result<Duration> {
    let context = world.create_context(ContextOptions::NONE)?.share();
    let each = vec![&context; threads];
    on_threads(each, cpus, |thread, context: &SharedContext<'_>| {
        let words = part(words, thread)?;
        for _ in 0..count / WINDOW {
            puts(&context.lock(), words, WINDOW)?;
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
    let to = context.n_pes() - 1;
    for i in 0..count {
        context.p(words.at(i as usize % WORDS)?, i, to)?;
        if i % WINDOW == WINDOW - 1 {
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
