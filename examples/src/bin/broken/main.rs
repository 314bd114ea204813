//! Five broken programs: each lacks one fence, quiet or signal, or has the wrong one. `--mended` runs each as it is right.
//!
//! docs/guide/five-programs.md explains them. On one x86 host nobody notices the mistakes. Over weak some seed shows each:
//! `OXSHMEM_TRANSPORT='weak(loopback)' OXSHMEM_SEED=1 broken flag --pes 3`.

use std::process::ExitCode;

use anyhow::ensure;
use clap::{Parser, ValueEnum};
use oxshmem::World;

mod check;
mod context;
mod flag;
mod meeting;
mod signal;
mod state;

/// A program that lacks a fence, a quiet or a signal, to see it fail and to see it mended.
///
/// Run it under a launcher (`oxshmem run -n 3 broken flag`), or let it launch itself (`broken flag --pes 3`).
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The program.
    program: Program,
    /// Run the program with its mistake mended.
    #[arg(long)]
    mended: bool,
    /// How often it runs, with new objects each time.
    #[arg(long, default_value_t = 50)]
    rounds: u32,
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Program {
    /// Data, then a flag, without a fence between them.
    Flag,
    /// Two puts, of which the signal covers the second alone.
    Signal,
    /// Two puts of one word, without a fence between them.
    State,
    /// Puts, then a call in which all PEs meet and which completes no puts.
    Meeting,
    /// A put on one context, and a quiet of another.
    Context,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("broken: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    ensure!(
        world.n_pes() >= 3,
        "a program of {} PEs; each of the five needs 3 (--pes 3)",
        world.n_pes()
    );
    let program = match args.program {
        Program::Flag => flag::run,
        Program::Signal => signal::run,
        Program::State => state::run,
        Program::Meeting => meeting::run,
        Program::Context => context::run,
    };
    // Each round has objects of its own.
    for _ in 0..args.rounds {
        program(&world, args.mended)?;
    }
    world.finalize()?;
    Ok(())
}
