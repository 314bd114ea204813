//! A sort of integers that are spread over all PEs, as in the benchmarks NAS IS and ISx.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Parser;
use oxshmem::World;
use oxshmem_examples::isort::{self, Phases, Sorter};
use oxshmem_examples::output;
use oxshmem_figures::{Words, bars};

/// Sorts random keys of all PEs and checks that they are in order and the same as before.
///
/// Run it under a launcher (`oxshmem run -n 4 isort`), or let it launch itself (`isort --pes 4`).
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// Keys of each PE.
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    keys: u32,
    /// How many times to sort, each time other keys.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Draw how long each PE was at what, as SVG.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("isort: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    output::check(&world, args.picture.as_deref())?;
    let mut sorter = Sorter::new(&world, args.keys as usize)?;
    let (mut mine, mut seconds) = (Phases::default(), 0.0);
    let mut keys = vec![0; args.keys as usize];
    for round in 0..args.iterations {
        isort::draw(&mut keys, world.my_pe(), round.into());
        let phases = sorter.sort(&keys)?;
        mine.count += phases.count;
        mine.exchange += phases.exchange;
        mine.sort += phases.sort;
        seconds += slowest(&world, phases)?;
        let check = sorter.check(&keys)?;
        if world.my_pe() == 0 {
            check
                .verdict()
                .map_err(|what| anyhow!("wrong after sort {}: {what}", round + 1))?;
        }
    }
    let all = gather(&world, mine)?;
    if world.my_pe() == 0 {
        let keys = u64::from(args.keys) * world.n_pes() as u64;
        println!(
            "isort: {keys} keys on {} PEs, {} times in {seconds:.3} s: {:.2} million keys/s; checked: in order, the same keys",
            world.n_pes(),
            args.iterations,
            keys as f64 * f64::from(args.iterations) / seconds / 1e6
        );
        if let Some(path) = &args.picture {
            draw(path, &all, args)?;
        }
    }
    sorter.free()?;
    world.finalize()?;
    Ok(())
}

/// The time of the slowest PE.
fn slowest(world: &World, mine: Phases) -> oxshmem::Result<f64> {
    let all = gather(world, mine)?;
    Ok(all.iter().map(Phases::total).fold(0.0, f64::max))
}

/// Every PE's phases, on every PE. Collective.
fn gather(world: &World, mine: Phases) -> oxshmem::Result<Vec<Phases>> {
    let shared = world.alloc::<[f64; 3]>(world.n_pes())?;
    let place = shared.at(world.my_pe())?;
    for pe in 0..world.n_pes() {
        world.p(place, [mine.count, mine.exchange, mine.sort], pe)?;
    }
    world.barrier_all()?;
    let mut all = vec![[0.0; 3]; world.n_pes()];
    world.read(&mut all, shared)?;
    world.free(shared)?;
    let phases = all.into_iter().map(|[count, exchange, sort]| Phases {
        count,
        exchange,
        sort,
    });
    Ok(phases.collect())
}

fn draw(path: &Path, all: &[Phases], args: &Args) -> anyhow::Result<()> {
    let labels: Vec<String> = (0..all.len()).map(|pe| format!("PE {pe}")).collect();
    let title = format!("{} sorts of {} keys a PE", args.iterations, args.keys);
    let words = Words {
        title: &title,
        across: "",
        up: "time, ms",
    };
    let part = |of: fn(&Phases) -> f64| all.iter().map(|phases| 1e3 * of(phases)).collect();
    let parts = [
        ("count", part(|phases| phases.count)),
        ("exchange", part(|phases| phases.exchange)),
        ("sort what came", part(|phases| phases.sort)),
    ];
    oxshmem_figures::write(path, &bars(words, &labels, &parts)?).context("the picture")
}
