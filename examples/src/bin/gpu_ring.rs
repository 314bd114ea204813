//! A ring of GPUs: blocks of GPU memory go round all PEs, and streams alone order each hop.
//!
//! A hop is three calls that only queue work: put the block with a signal to the right neighbour
//! (M22: a PE that sees the signal sees the block), notify the left neighbour that its next block
//! has space here, and wait for the left neighbour's block. The host waits once, at the end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use oxshmem::cuda::{Stream, StreamOptions};
use oxshmem::{Cmp, MemoryKind, SignalOp, Sym, World};

/// Passes a block of GPU memory round all PEs, checks it where it ends, and prints the bandwidth.
///
/// Run it under a launcher (`oxshmem run -n 2 gpu_ring`), or let it launch itself (`gpu_ring --pes 2`).
/// The PEs may share a GPU.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// How many hops each block makes.
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Size of a block, a multiple of 8.
    #[arg(long, default_value_t = 4 << 20)]
    bytes: usize,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu_ring: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(
        args.bytes >= 8 && args.bytes.is_multiple_of(8),
        "--bytes {}: a block is a multiple of 8 bytes",
        args.bytes
    );
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    let gpu = world.gpu_context().context(
        "there is no GPU heap: set OXSHMEM_CUDA_SYMMETRIC_SIZE to the bytes of each PE, 64M for example",
    )?;
    let stream = Stream::new(gpu, &StreamOptions::default())?;
    let (me, pes) = (world.my_pe(), world.n_pes());

    // One block arrives while the other leaves.
    let words = args.bytes / 8;
    let blocks = world.alloc_on::<u64>(MemoryKind::Cuda, 2 * words)?;
    let signals = world.alloc_on::<u64>(MemoryKind::Cuda, 2)?;
    world.put(blocks.range(..words)?, &block_of(me, words), me)?;
    world.put(signals, &[0, 0], me)?;
    world.barrier_all()?;

    let start = Instant::now();
    pass_on(args, &world, blocks, signals, &stream)?;
    world.synchronize(&stream)?;
    let took = start.elapsed();

    // The block that is here now started as many PEs to the left as it made hops.
    let made_here = (me as i128 - i128::from(args.rounds)).rem_euclid(pes as i128) as usize;
    let mut seen = vec![0; words];
    let last = args.rounds as usize % 2 * words;
    world.get(&mut seen, blocks.range(last..last + words)?, me)?;
    let wrong = (0..words).find(|at| seen[*at] != word_of(made_here, *at));
    ensure!(
        wrong.is_none(),
        "PE {me}: the block of PE {made_here} is not whole after {} hops: word {wrong:?}",
        args.rounds
    );
    world.barrier_all()?;
    if me == 0 {
        println!("gpu_ring: {}", summary(args, pes, took));
    }
    world.free(signals)?;
    world.free(blocks)?;
    world.finalize()?;
    Ok(())
}

/// Queues all hops.
fn pass_on(
    args: &Args,
    world: &World,
    blocks: Sym<u64>,
    signals: Sym<u64>,
    stream: &Stream,
) -> oxshmem::Result<()> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % pes, (me + pes - 1) % pes);
    let (arrived, has_room) = (signals.at(0)?, signals.at(1)?);
    let half = blocks.len() / 2;
    let block = |number: u64| {
        let first = (number % 2) as usize * half;
        blocks.range(first..first + half)
    };
    for round in 0..args.rounds {
        // The right neighbour has sent on the block that this round's block replaces.
        world.wait_until_on_stream(has_room, Cmp::Ge, round, stream)?;
        let (to, from) = (block(round + 1)?, block(round)?);
        world.put_signal_on_stream(to, from, arrived, 1, SignalOp::Add, right, stream)?;
        world.signal_on_stream(has_room, 1, SignalOp::Add, left, stream)?;
        world.wait_until_on_stream(arrived, Cmp::Ge, round + 1, stream)?;
    }
    Ok(())
}

fn word_of(pe: usize, at: usize) -> u64 {
    (pe as u64) << 48 | at as u64
}

fn block_of(pe: usize, words: usize) -> Vec<u64> {
    (0..words).map(|at| word_of(pe, at)).collect()
}

fn summary(args: &Args, pes: usize, took: Duration) -> String {
    let hop = took.as_secs_f64() / args.rounds.max(1) as f64;
    format!(
        "blocks of {} bytes made {} hops among {pes} PEs and came whole, {:.1} us a hop, {:.2} GB/s each",
        args.bytes,
        args.rounds,
        hop * 1e6,
        args.bytes as f64 / hop / 1e9
    )
}
