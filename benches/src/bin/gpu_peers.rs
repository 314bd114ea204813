//! The comparison of oxshmem with NVSHMEM: runs both alternately with two PEs on one GPU (or two),
//! and compares their operations on streams. Its program `gpu_peer` lies beside it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use oxshmem_benches::gpu::{Line, NO_GPU, table};
use oxshmem_benches::samples::{Samples, Side};
use oxshmem_benches::table::markdown;
use serde::Serialize;

/// Compares operations on streams with NVSHMEM's and with the driver's own copy.
///
/// `ci/gpu` builds all that is needed and then runs this. Exits with 1 where something could not be
/// measured, with 3 where there is no GPU; a missed target is told, and no failure.
#[derive(Parser)]
struct Args {
    /// How often each side is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The largest size, in bytes.
    #[arg(long, default_value_t = 1 << 30)]
    largest: usize,
    /// A batch of a row takes at least so many microseconds.
    #[arg(long, default_value_t = 2000)]
    batch: u32,
    /// 1: both PEs on GPU 0; 2: each on its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    gpus: u32,
    /// NVSHMEM's side, built by benches/nvshmem/build; without it only oxshmem is measured.
    #[arg(long, value_name = "PROGRAM")]
    nvshmem: Option<PathBuf>,
    /// The folders of NVSHMEM's library, for the loader.
    #[arg(long, value_name = "FOLDERS")]
    nvshmem_libraries: Option<String>,
    /// Write everything to this file, every sample included.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The state of the source, for the JSON file.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

/// The longest run, in seconds.
const DEADLINE: &str = "240";

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("gpu_peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut samples = Samples::default();
    let (mut failures, mut about) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for round in 0..args.rounds as usize {
        if std::io::stderr().is_terminal() {
            let seconds = start.elapsed().as_secs();
            eprint!("\rround {} of {}, {seconds} s ", round + 1, args.rounds);
        }
        let mut sides = vec![Side::Oxshmem];
        sides.extend(args.nvshmem.as_ref().map(|_| Side::Nvshmem));
        let count = sides.len();
        sides.rotate_left(round % count);
        for side in sides {
            match measure(args, side) {
                Ok(Measured::NoGpu(why)) => {
                    eprintln!("gpu_peers: no GPU: {}", why.trim());
                    return Ok(ExitCode::from(NO_GPU));
                }
                Ok(Measured::Rows { rows, note }) => {
                    for (row, value) in rows {
                        samples.add(side, &row, round, value);
                    }
                    if !about.contains(&note) {
                        about.push(note);
                    }
                }
                Err(error) => failures.push(format!("round {}: {error:#}", round + 1)),
            }
        }
        // A failure in the first round will repeat in all. (Not for oxshmem without NVSHMEM.)
        if round == 0 && samples.is_empty() {
            bail!("{}", failures.join("\n"));
        }
    }
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    let lines = table(&samples, args.largest);
    for note in &about {
        println!("{note}");
    }
    let cells: Vec<_> = lines.iter().map(Line::cells).collect();
    print!("{}", markdown(Line::HEADINGS, &cells));
    if let Some(file) = &args.json {
        let report = Report {
            commit: &args.commit,
            about: &about,
            rounds: args.rounds,
            gpus: args.gpus,
            lines: &lines,
            samples: &samples,
            failures: &failures,
        };
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))?;
    }
    for failure in &failures {
        eprintln!("gpu_peers: {failure}");
    }
    ensure!(failures.is_empty(), "{} runs failed", failures.len());
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Report<'a> {
    commit: &'a str,
    about: &'a [String],
    rounds: u32,
    gpus: u32,
    lines: &'a [Line],
    /// Side, then row, then round; nanoseconds.
    samples: &'a Samples,
    failures: &'a [String],
}

/// The output of one side.
enum Measured {
    Rows {
        rows: Vec<(String, f64)>,
        /// The library's version, and the GPU.
        note: String,
    },
    NoGpu(String),
}

/// Runs one side once.
fn measure(args: &Args, side: Side) -> anyhow::Result<Measured> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", DEADLINE]).stdin(Stdio::null());
    let (largest, batch) = (args.largest.to_string(), args.batch.to_string());
    match side {
        Side::Oxshmem => {
            let here = std::env::current_exe().context("where this program is")?;
            let bytes = 2 * args.largest + (64 << 20);
            command
                .arg(here.parent().unwrap_or(Path::new(".")).join("gpu_peer"))
                .args([&largest, &batch])
                .env("OXSHMEM_CUDA_SYMMETRIC_SIZE", bytes.to_string());
            if args.gpus == 1 {
                command.env("OXSHMEM_GPU", "0");
            }
        }
        Side::Nvshmem => {
            let program = args
                .nvshmem
                .as_ref()
                .context("NVSHMEM's side is not built")?;
            command
                .arg(program)
                .args([&largest, &batch, &args.gpus.to_string()]);
            if let Some(folders) = &args.nvshmem_libraries {
                command.env("LD_LIBRARY_PATH", folders);
            }
        }
        Side::Oshmem | Side::Ucx | Side::Libfabric | Side::Sockets => {
            bail!("{} has nothing on streams", side.name())
        }
    }
    let output = command
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(code) if code == i32::from(NO_GPU) => return Ok(Measured::NoGpu(errors.into())),
        _ => bail!("{command:?}: {}: {}", output.status, errors.trim()),
    }
    let text =
        std::str::from_utf8(&output.stdout).with_context(|| format!("{command:?}: its output"))?;
    let (mut rows, mut note) = (Vec::new(), String::new());
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("# ") {
            note = words.into();
        } else if let [row, value] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let value = value
                .parse()
                .with_context(|| format!("{command:?}: `{value}` is no number"))?;
            rows.push((row.to_owned(), value));
        }
    }
    ensure!(!rows.is_empty(), "{command:?}: printed no row");
    Ok(Measured::Rows { rows, note })
}
