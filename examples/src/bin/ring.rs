//! The hello-world of one-sided programs: a token goes round all PEs.
//!
//! Each PE waits for its signal, reads the token that came with it, checks it, adds its own number,
//! and puts token and signal together to the next PE (M22: a PE that sees the signal sees the
//! token).

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use oxshmem::{Cmp, SignalOp, World};

/// Passes a token round all PEs and checks it at each.
///
/// Run it under a launcher (`oxshmem run -n 4 ring`), or let it launch itself (`ring --pes 4`).
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// How often the token goes round.
    #[arg(long, default_value_t = 1000)]
    laps: u64,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ring: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    let (me, pes) = (world.my_pe() as u64, world.n_pes() as u64);
    let next = (world.my_pe() + 1) % world.n_pes();

    // The token: the number of PEs that have had it, and the sum of their numbers.
    let token = world.alloc_zeroed::<u64>(2)?;
    let signal = world.alloc_zeroed::<u64>(1)?;
    let round = pes * (pes - 1) / 2;

    let start = Instant::now();
    for lap in 0..args.laps {
        // PE 0 makes the token; after that it arrives there once a lap, as at every PE.
        let arrivals = if me == 0 { lap } else { lap + 1 };
        world.signal_wait_until(signal, Cmp::Ge, arrivals)?;
        let mut had = [0, 0];
        world.read(&mut had, token)?;
        let before = [lap * pes + me, lap * round + me * me.saturating_sub(1) / 2];
        ensure!(
            had == before,
            "PE {me}, lap {lap}: token is {had:?} and should be {before:?}"
        );
        world.put_signal(
            token,
            &[had[0] + 1, had[1] + me],
            signal,
            1,
            SignalOp::Add,
            next,
        )?;
    }
    if me == 0 {
        world.signal_wait_until(signal, Cmp::Ge, args.laps)?;
        let took = start.elapsed();
        let mut had = [0, 0];
        world.read(&mut had, token)?;
        let end = [args.laps * pes, args.laps * round];
        ensure!(
            had == end,
            "the token came home as {had:?} and should be {end:?}"
        );
        let hops = had[0].max(1);
        println!(
            "ring: the token went {} times round {pes} PEs and came home whole, {} ns a hop",
            args.laps,
            took.as_nanos() / u128::from(hops)
        );
    }
    world.free(signal).context("freeing the signal")?;
    world.free(token).context("freeing the token")?;
    world.finalize()?;
    Ok(())
}
