//! Giga-updates per second: random words of a table on all PEs, as HPC Challenge's RandomAccess.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::anyhow;
use clap::{Parser, ValueEnum};
use oxshmem::World;
use oxshmem_examples::gups::{self, Table};
use oxshmem_examples::output;
use oxshmem_figures::{Curve, Panel, Values, Words, panels};

/// Updates random words of a table that is spread over all PEs, four times its words, and checks them.
///
/// Run it under a launcher (`oxshmem run -n 4 gups`), or let it launch itself (`gups --pes 4`).
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Launch this many PEs on this host (unless already one of a job).
    #[arg(long, value_name = "N")]
    pes: Option<usize>,
    /// Each PE has 2 to the power of this words of 8 bytes.
    #[arg(long, value_name = "EXPONENT", default_value_t = 22, value_parser = clap::value_parser!(u32).range(0..=40))]
    size: u32,
    /// Begin with a table of this size, and double it until it has `--size`; each is updated as often.
    #[arg(long, value_name = "EXPONENT")]
    from: Option<u32>,
    /// How to update a word.
    #[arg(long, value_enum, default_value_t = How::Atomic)]
    update: How,
    /// Draw the rate over the table's size, as SVG.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// By atomic exclusive-or; no update may be lost.
    Atomic,
    /// By get and put, 1024 at a time; one word in a hundred may be wrong.
    GetPut,
}

impl From<How> for gups::Update {
    fn from(how: How) -> Self {
        match how {
            How::Atomic => gups::Update::Atomic,
            How::GetPut => gups::Update::GetPut,
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gups: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(pes) = args.pes {
        oxshmem::launch::self_with(pes)?;
    }
    let first = args.from.unwrap_or(args.size);
    if first > args.size {
        let size = args.size;
        return Err(anyhow!(
            "--from {first} is larger than --size {size}: give a smaller one"
        ));
    }
    let update = args.update.into();
    let world = World::init()?;
    output::check(&world, args.picture.as_deref())?;
    let memory = world.alloc::<u64>(1 << args.size)?;
    let mut points = Vec::new();
    for size in first..=args.size {
        let table = Table::new(&world, memory, size)?;
        // About the same number of updates for each size; an odd number of rounds, as the check
        // requires.
        let rounds = match args.size - size {
            0 => 1,
            halved => (1_u64 << halved) + 1,
        };
        let start = Instant::now();
        for _ in 0..rounds {
            table.update(update)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let updates = rounds * table.updates();
        let rate = updates as f64 / seconds / 1e9;
        points.push((f64::from(size).exp2(), rate));
        if let Some(check) = table.check()? {
            println!(
                "gups: {updates} updates of {} words on {} PEs in {seconds:.3} s: {rate:.4} GUP/s; {} words wrong",
                check.words,
                world.n_pes(),
                check.wrong,
            );
            check
                .verdict(update)
                .map_err(|what| anyhow!("wrong: {what}"))?;
        }
    }
    if let Some(path) = args.picture.as_ref().filter(|_| world.my_pe() == 0) {
        draw(path, &world, points)?;
    }
    world.free(memory)?;
    world.finalize()?;
    Ok(())
}

/// The rate over the table's size.
fn draw(path: &Path, world: &World, points: Vec<(f64, f64)>) -> anyhow::Result<()> {
    let title = format!("Random updates by {} PEs", world.n_pes());
    let panel = Panel {
        words: Words {
            title: &title,
            across: "words of 8 bytes on each PE",
            up: "GUP/s",
        },
        size: |words| format!("2^{:.0}", words.log2()),
        value: |rate| format!("{rate:.2}"),
        values: Values::FromZero,
        curves: vec![Curve {
            name: String::new(),
            at: 0,
            points,
            limit: false,
        }],
    };
    Ok(oxshmem_figures::write(path, &panels("", &[panel])?)?)
}
