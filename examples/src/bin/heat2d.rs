//! Heat on a plate whose rows are divided among PEs, in host memory; `gpu_heat` is the same on
//! GPUs.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use oxshmem::World;
use oxshmem_examples::heat::Plate;
use oxshmem_examples::heat2d::Part;
use oxshmem_examples::output;

/// Lets heat spread over a plate on all PEs, and writes a picture of it.
///
/// Run it under a launcher (`oxshmem run -n 4 heat2d`), or let it launch itself (`heat2d --pes 4`).
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// Points in a row.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(3..=1 << 15))]
    width: u32,
    /// Rows.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(3..=1 << 15))]
    height: u32,
    /// Steps.
    #[arg(long, default_value_t = 2000)]
    steps: usize,
    /// The file for the picture.
    #[arg(long, value_name = "FILE", default_value = "heat.png")]
    picture: PathBuf,
    /// Do not compute the same in PE 0 alone to compare every number.
    #[arg(long)]
    no_check: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heat2d: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let world = World::init()?;
    let plate = Plate::for_pes(args.width, args.height, world.n_pes())?;
    output::check(&world, Some(&args.picture))?;
    let mut part = Part::new(&world, plate)?;
    world.barrier_all()?;
    let start = Instant::now();
    part.run(args.steps)?;
    world.barrier_all()?;
    let seconds = start.elapsed().as_secs_f64();

    if let Some(heat) = part.gather()? {
        let cells = ((plate.width - 2) * (plate.height - 2)) as f64 * args.steps as f64;
        let checked = if args.no_check {
            "not checked"
        } else {
            plate.check(&heat, args.steps)?;
            "checked: every number is that of a serial run"
        };
        println!(
            "heat2d: {} steps of {} x {} on {} PEs in {seconds:.3} s: {:.1} million cells/s; {checked}",
            args.steps,
            plate.width,
            plate.height,
            world.n_pes(),
            cells / seconds / 1e6
        );
        plate.save(&heat, &args.picture)?;
        println!("heat2d: {} shows it", args.picture.display());
    }
    part.free()?;
    world.finalize()?;
    Ok(())
}
