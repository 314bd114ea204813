//! The most common mistake of one-sided programs, to try out: a flag without a fence before it.
//!
//! A producer puts a page of data to its consumer, then a flag. Only a fence between them makes
//! them arrive in that order (M17). Between processes of one x86 host they happen to arrive in
//! order anyway. So the mistake stays unseen until the program runs on another machine, or over
//! weak: `OXSHMEM_TRANSPORT='weak(loopback)' OXSHMEM_SEED=1 handover --pes 2`.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use oxshmem::{Cmp, World};

/// Hands pages over from each even PE to the next, and checks that each comes before its flag.
///
/// Run it under a launcher (`oxshmem run -n 2 handover`), or let it launch itself (`handover --pes 2`).
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// How many pages.
    #[arg(long, default_value_t = 500)]
    pages: u64,
    /// Put the fence between page and flag. Without it the program is wrong.
    #[arg(long)]
    fence: bool,
}

/// Words of a page.
const PAGE: usize = 16;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("handover: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    let (me, pes) = (world.my_pe(), world.n_pes());
    ensure!(
        pes > 1,
        "there is nobody to hand anything over to; give it at least 2 PEs"
    );
    let page = world.alloc_zeroed::<u64>(PAGE)?;
    let flag = world.alloc_zeroed::<u64>(1)?;
    if !me.is_multiple_of(2) {
        consume(args, &world, page, flag)?;
    } else if me + 1 < pes {
        produce(args, &world, page, flag)?;
    }
    world.free(flag).context("freeing the flag")?;
    world.free(page).context("freeing the page")?;
    if me == 0 {
        println!(
            "handover: each of {} pages came before its flag",
            args.pages
        );
    }
    world.finalize()?;
    Ok(())
}

type Words = oxshmem::Sym<u64>;

fn produce(args: &Args, world: &World, page: Words, flag: Words) -> anyhow::Result<()> {
    let to = world.my_pe() + 1;
    for number in 1..=args.pages {
        world.put(page, &[number; PAGE], to)?;
        if args.fence {
            world.fence()?;
        }
        world.p(flag, number, to)?;
        // The consumer signals here that it is ready for the next page.
        world.wait_until(flag, Cmp::Ge, number)?;
    }
    Ok(())
}

fn consume(args: &Args, world: &World, page: Words, flag: Words) -> anyhow::Result<()> {
    let from = world.my_pe() - 1;
    for number in 1..=args.pages {
        world.wait_until(flag, Cmp::Ge, number)?;
        let mut words = [0; PAGE];
        world.read(&mut words, page)?;
        let late = words.iter().filter(|word| **word != number).count();
        ensure!(
            late == 0,
            "PE {}: the flag of page {number} is here, {late} of the page's {PAGE} words are not; \
             a fence belongs between the two puts (--fence)",
            world.my_pe()
        );
        world.p(flag, number, from)?;
    }
    Ok(())
}
