//! The comparison of oxshmem, Open MPI's OpenSHMEM and UCX: runs them alternately on the same two
//! processors.

mod command;
mod programs;
mod results;
mod tcp;
mod ucx;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::{Parser, ValueEnum};
use oxshmem_benches::affinity;
use oxshmem_benches::curves::pictures;
use oxshmem_benches::modes::Mode;
use oxshmem_benches::samples::Samples;
use oxshmem_benches::sizes::{COLLECTIVE_PES, PROGRAM_PES};
use oxshmem_benches::targets::{Group, Source};

use crate::programs::{Programs, sides};
use crate::results::{Machine, Results};

/// Compares oxshmem with Open MPI's OpenSHMEM, with UCX and with the machine's limits.
///
/// `benches/peers` installs and builds all that is needed and then runs this. Prints tables in Markdown.
/// Exits with 1 where something could not be measured; a missed target is told, and no failure.
#[derive(Parser)]
struct Args {
    /// How often each side is measured; 64-PE starts and memory a third as often.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// oxshmem's program: the one in Rust, or the same C source as OSHMEM's, which has no threads.
    #[arg(long, value_enum, default_value_t)]
    source: Source,
    /// Measure these only, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Group::usual())]
    only: Vec<Group>,
    /// Write everything to this file, every sample included.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the curves, as SVG files in this folder.
    #[arg(long, value_name = "FOLDER")]
    plot: Option<PathBuf>,
    /// Measure nothing; show and draw what --json wrote.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    programs: Programs,
    /// The state of the source, for the results.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let results = match &args.from {
        Some(file) => Results::read(file)?,
        None => measured(&args)?,
    };
    print!("{results}");
    if let Some(file) = &args.json {
        results.write(file)?;
    }
    if let Some(folder) = &args.plot {
        draw(&results, folder)?;
    }
    for failure in &results.failures {
        eprintln!("peers: {failure}");
    }
    ensure!(
        results.failures.is_empty(),
        "{} runs failed",
        results.failures.len()
    );
    Ok(())
}

fn measured(args: &Args) -> anyhow::Result<Results> {
    let cpus = affinity::allowed()?;
    ensure!(
        cpus.len() >= 2,
        "this comparison needs two processors, and may use {} only",
        cpus.len()
    );
    affinity::restrict(&cpus[..2])?;
    let mut groups = args.only.clone();
    groups.retain(|group| args.source.has(*group));
    groups.sort();
    groups.dedup();
    ensure!(!groups.is_empty(), "the C source has no such rows");
    let machine = Machine::here(&args.programs.oshrun);
    let mut samples = Samples::default();
    let mut failures = Vec::new();
    let start = Instant::now();
    for round in 0..args.rounds as usize {
        if std::io::stderr().is_terminal() {
            let seconds = start.elapsed().as_secs();
            eprint!("\rround {} of {}, {seconds} s", round + 1, args.rounds);
        }
        for (mode, pes) in runs(&groups, round) {
            let mut sides = sides(args.source, mode).to_vec();
            let count = sides.len();
            sides.rotate_left(round % count);
            for side in sides {
                match args.programs.run(args.source, side, mode, pes) {
                    Ok(figures) => {
                        for (row, value) in figures {
                            samples.add(side, &row, round, value);
                        }
                    }
                    Err(error) => failures.push(format!("round {}: {error:#}", round + 1)),
                }
            }
            // A failure in the first round will repeat in all.
            if let Some(failure) = failures.first().filter(|_| round == 0) {
                bail!("{failure}");
            }
        }
    }
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    Ok(Results {
        commit: args.commit.clone(),
        source: args.source,
        machine,
        rounds: args.rounds,
        groups,
        samples,
        failures,
    })
}

/// The modes that are run in a round, and their numbers of PEs.
fn runs(groups: &[Group], round: usize) -> Vec<(Mode, usize)> {
    let with = |mode, pes: &[usize]| pes.iter().map(|pes| (mode, *pes)).collect::<Vec<_>>();
    let of = |group: &Group| match group {
        Group::Micro => with(Mode::Micro, &[2]),
        Group::Barrier => with(Mode::Barrier, &[4, 8]),
        Group::Collectives => with(Mode::Collectives, &COLLECTIVE_PES),
        Group::Gups => with(Mode::Gups, &PROGRAM_PES),
        Group::Sort => with(Mode::Sort, &PROGRAM_PES),
        Group::Patterns => with(Mode::Patterns, &COLLECTIVE_PES),
        Group::Tcp => with(Mode::Tcp, &[2]),
        Group::Threads => with(Mode::Threads, &[2]),
        Group::Start if round.is_multiple_of(3) => {
            vec![
                (Mode::Empty, 4),
                (Mode::First, 2),
                (Mode::Empty, 64),
                (Mode::Memory, 64),
            ]
        }
        Group::Start => vec![(Mode::Empty, 4), (Mode::First, 2)],
    };
    let all = Group::value_variants().iter();
    all.filter(|group| groups.contains(group))
        .flat_map(of)
        .collect()
}

fn draw(results: &Results, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let (begin, title) = results.title();
    for (name, svg) in pictures(begin, &title, &results.samples)? {
        let file = folder.join(name).with_extension("svg");
        oxshmem_figures::write(&file, &svg)?;
        eprintln!("peers: drawn {}", file.display());
    }
    Ok(())
}
