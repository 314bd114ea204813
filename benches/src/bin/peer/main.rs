//! One side of the comparison: oxshmem, with the machine's limits in the same run. The other side,
//! `benches/oshmem`, has the same rows and the same loops. `peers` starts both alternately.

mod calls;
mod collectives;
mod first;
mod gups;
mod memory;
mod micro;
mod patterns;
mod sort;
mod tcp;
mod threads;
mod together;

use std::process::ExitCode;

use clap::Parser;
use oxshmem::World;
use oxshmem_benches::affinity;
use oxshmem_benches::modes::Mode;

/// Measures oxshmem for `peers`; prints a line `ROW NANOSECONDS` for each row.
#[derive(Parser)]
struct Args {
    mode: Mode,
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
        Mode::Patterns => patterns::run(pinned(&world)?)?,
        Mode::Tcp => tcp::run(pinned(&world)?)?,
        Mode::Threads => threads::run(&world)?,
        Mode::Memory => memory::run(&world)?,
        Mode::First => first::run(pinned(&world)?)?,
        Mode::Empty => {}
    }
    world.finalize()?;
    Ok(())
}

/// Binds each PE to a processor of its own, if there are enough.
fn pinned(world: &World) -> anyhow::Result<&World> {
    let allowed = affinity::allowed()?;
    if world.n_pes() <= allowed.len() {
        affinity::restrict(&[allowed[world.my_pe()]])?;
    }
    Ok(world)
}
