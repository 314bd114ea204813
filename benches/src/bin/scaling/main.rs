//! `scaling`: the cost of start, memory, barriers and all-reduces for growing numbers of PEs, and a model
//! of a job of 10,000.
//!
//!     scaling                               all of it: half a minute
//!     scaling --threads 2,8 --processes 2   some of it
//!     scaling --json FILE --markdown FILE   the same for programs, and for docs/scaling.md
//!
//! Every row is measured by a process of its own, so that none finds the memory of another. PEs that are
//! threads are measured up to hundreds. They share the CPUs, and the cost of that is counted: a row has
//! the context switches beside the times.

mod alone;
mod collective;
mod counted;
#[path = "../../../../core/oxshmem/tests/scale/crowd.rs"]
mod crowd;
mod job;
mod meeting;
mod memory;
mod model;
mod packed;
mod results;
mod rows;
#[path = "../../../../core/oxshmem/tests/scale/stand_in.rs"]
mod stand_in;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::{Parser, ValueEnum};
use serde::de::DeserializeOwned;

use results::Results;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Measures cost as it grows with the PEs.
#[derive(Parser)]
struct Args {
    /// Numbers of PEs that are threads of one process.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "2,4,8,16,32,64,128,256,512"
    )]
    threads: Vec<usize>,
    /// Numbers of PEs that are processes.
    #[arg(long, value_delimiter = ',', default_value = "2,4,8,16,32,64")]
    processes: Vec<usize>,
    /// Numbers of connections to a rendezvous.
    #[arg(long, value_delimiter = ',', default_value = "8,32,128,512")]
    meetings: Vec<usize>,
    /// PEs of the job that is modelled, 8 a host; one of them is joined among stand-ins for the others.
    #[arg(long, default_value_t = 10_000)]
    modelled: usize,
    /// Write all rows as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables of docs/scaling.md.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// The measurement of a process that this program starts, and its number of PEs.
    #[arg(long, hide = true, requires = "pes")]
    part: Option<Part>,
    #[arg(long, hide = true)]
    pes: Option<usize>,
}

/// The measurement of one process.
#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Threads,
    Processes,
    Empty,
    Meeting,
    Alone,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    match (args.part, args.pes) {
        (Some(part), Some(pes)) => measure(part, pes),
        _ => measure_all(&args),
    }
}

/// Measures one row, and prints it as JSON.
fn measure(part: Part, pes: usize) -> anyhow::Result<()> {
    match part {
        Part::Threads => print(&job::threads(pes)?),
        Part::Processes => job::process(pes)?.map_or(Ok(()), |row| print(&row)),
        Part::Empty => job::empty(pes),
        Part::Meeting => print(&meeting::measure(pes)?),
        Part::Alone => print(&alone::measure(pes)?),
    }
}

fn print(row: &impl serde::Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(row)?);
    Ok(())
}

fn measure_all(args: &Args) -> anyhow::Result<()> {
    ensure!(
        args.modelled >= 16 && args.modelled.is_multiple_of(rows::WIDTH),
        "--modelled takes a multiple of {} from 16 on",
        rows::WIDTH
    );
    let (mut threads, mut processes, mut meetings) = (Vec::new(), Vec::new(), Vec::new());
    for &pes in &args.threads {
        eprintln!("{pes} PEs as threads");
        threads.push(row(Part::Threads, pes)?);
    }
    for &pes in &args.processes {
        eprintln!("{pes} PEs as processes");
        let row: rows::Job = row(Part::Processes, pes)?;
        let empty_s = job::time_empty(|| run(Part::Empty, pes).map(drop))?;
        processes.push(rows::Processes { row, empty_s });
    }
    for &pes in &args.meetings {
        eprintln!("{pes} connections to a rendezvous");
        meetings.push(row(Part::Meeting, pes)?);
    }
    eprintln!("one PE among {}", args.modelled);
    let few = row(Part::Alone, rows::WIDTH)?;
    let many = row(Part::Alone, args.modelled)?;
    let results = Results::new(threads, processes, meetings, (few, many));
    let text = table::markdown(&results);
    print!("{text}");
    if let Some(path) = &args.markdown {
        write(path, &text)?;
    }
    if let Some(path) = &args.json {
        write(path, &(serde_json::to_string_pretty(&results)? + "\n"))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Runs this program for a part, and returns its output.
fn run(part: Part, pes: usize) -> anyhow::Result<String> {
    let name = part
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--part", &name, "--pes", &pes.to_string()]);
    let done = command.stderr(Stdio::inherit()).output()?;
    ensure!(
        done.status.success(),
        "{name} of {pes} PEs failed: {}",
        done.status
    );
    Ok(String::from_utf8(done.stdout)?)
}

fn row<R: DeserializeOwned>(part: Part, pes: usize) -> anyhow::Result<R> {
    let text = run(part, pes)?;
    serde_json::from_str(&text).with_context(|| format!("not a row: {text:?}"))
}
