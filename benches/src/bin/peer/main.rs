//! One side of the comparison: oxshmem, and the machine's limits in the same run. The other side,
//! `benches/oshmem`, has the same rows and the same loops. `peers` starts both, by turns.

mod collectives;
mod gups;
mod memory;
mod micro;
mod sort;
mod threads;
mod together;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use oxshmem::World;
use oxshmem_benches::affinity;

/// Measures oxshmem for `peers`; prints a line `ROW NANOSECONDS` for each row.
#[derive(Parser)]
struct Args {
    mode: Mode,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// 2 PEs: puts, gets, atomics, order, message rate, latency, barrier, and their limits.
    Micro,
    /// Barrier alone.
    Barrier,
    /// All-reduce, broadcast, fcollect, alltoall.
    Collectives,
    /// Updates of random words.
    Gups,
    /// A parallel integer sort.
    Sort,
    /// 2 PEs: message rates of two threads of PE 0.
    Threads,
    /// Each PE prints what it keeps resident with an unused heap, in KiB: PSS and RSS.
    Memory,
    /// Joins and leaves.
    Empty,
}

fn main() -> ExitCode {
    match run(Args::parse().mode) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mode: Mode) -> anyhow::Result<()> {
    let world = World::init()?;
    match mode {
        Mode::Micro => micro::run(pinned(&world)?)?,
        Mode::Barrier => micro::barrier_alone(pinned(&world)?)?,
        Mode::Collectives => collectives::run(pinned(&world)?)?,
        Mode::Gups => gups::run(pinned(&world)?)?,
        Mode::Sort => sort::run(pinned(&world)?)?,
        Mode::Threads => threads::run(&world)?,
        Mode::Memory => memory::run(&world)?,
        Mode::Empty => {}
    }
    world.finalize()?;
    Ok(())
}

/// With a processor for each PE, each keeps to its own.
fn pinned(world: &World) -> anyhow::Result<&World> {
    let allowed = affinity::allowed()?;
    if world.n_pes() <= allowed.len() {
        affinity::restrict(&[allowed[world.my_pe()]])?;
    }
    Ok(world)
}
