//! Runs oxshmem and Open MPI's OpenSHMEM by turns on the same two processors, and compares them.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use oxshmem_benches::affinity;
use oxshmem_benches::statistics::Summary;
use oxshmem_benches::targets::{Samples, Side, Verdict, judge};
use serde::Serialize;

/// Compares oxshmem with Open MPI's OpenSHMEM and with the machine's limits.
///
/// `benches/peers` installs and builds all that is needed and then runs this. Exits with 1 where
/// something could not be measured; a missed target is told, and no failure.
#[derive(Parser)]
struct Args {
    /// How often each side is measured; 64-PE starts and memory a third as often.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Write everything to this file, every sample included.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The OpenSHMEM counterpart, built from peers.c.
    #[arg(long, value_name = "PROGRAM")]
    peers_c: PathBuf,
    /// The folder that holds the built `oxshmem` and `peer`.
    #[arg(long, value_name = "FOLDER")]
    bin: PathBuf,
    /// The state of the source, for the JSON file.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

/// No run takes longer, in seconds.
const DEADLINE: &str = "120";

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let cpus = affinity::allowed()?;
    ensure!(
        cpus.len() >= 2,
        "this comparison needs two processors, and may use {} only",
        cpus.len()
    );
    affinity::restrict(&cpus[..2])?;

    let mut samples = Samples::new();
    let mut failures = Vec::new();
    let start = Instant::now();
    let rounds = args.rounds as usize;
    for round in 0..rounds {
        if std::io::stderr().is_terminal() {
            eprint!(
                "\rround {} of {rounds}, {} s",
                round + 1,
                start.elapsed().as_secs()
            );
        }
        let mut sides = [Side::Oshmem, Side::Oxshmem];
        sides.rotate_left(round % 2);
        let mut measure = |mode: Mode, pes| {
            for side in sides {
                match run(&args, side, mode, pes) {
                    Ok(figures) => {
                        for (row, value) in figures {
                            samples.entry((side, row)).or_default().insert(round, value);
                        }
                    }
                    Err(error) => failures.push(format!("round {}: {error:#}", round + 1)),
                }
            }
        };
        measure(Mode::Micro, 2);
        measure(Mode::Barrier, 4);
        measure(Mode::Barrier, 8);
        measure(Mode::Empty, 4);
        if round % 3 == 0 {
            measure(Mode::Empty, 64);
            measure(Mode::Memory, 64);
        }
        // What fails in the first round will fail in all.
        if round == 0
            && let Some(failure) = failures.first()
        {
            bail!("{failure}");
        }
    }
    if std::io::stderr().is_terminal() {
        eprintln!();
    }

    let verdicts = judge(&samples, rounds);
    print(&verdicts, &samples)?;
    if let Some(file) = &args.json {
        let report = report(&args, &verdicts, &samples, &failures);
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))?;
    }
    for failure in &failures {
        eprintln!("peers: {failure}");
    }
    ensure!(failures.is_empty(), "{} runs failed", failures.len());
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Micro,
    Barrier,
    Memory,
    Empty,
}

impl Mode {
    fn argument(self) -> &'static str {
        match self {
            Mode::Micro => "micro",
            Mode::Barrier => "barrier",
            Mode::Memory => "memory",
            Mode::Empty => "empty",
        }
    }
}

/// Runs one side once; gives its rows.
fn run(args: &Args, side: Side, mode: Mode, pes: usize) -> anyhow::Result<Vec<(String, f64)>> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", DEADLINE]).stdin(Stdio::null());
    match side {
        Side::Oshmem => command
            .arg("oshrun")
            .args([
                "--mca",
                "btl",
                "^openib",
                "--allow-run-as-root",
                "--oversubscribe",
            ])
            .args(["--bind-to", "none", "-n", &pes.to_string()])
            .arg(&args.peers_c)
            .env("UCX_LOG_LEVEL", "error"),
        Side::Oxshmem => command
            .arg(args.bin.join("oxshmem"))
            .args(["run", "-n", &pes.to_string()])
            .arg(args.bin.join("peer")),
    };
    command.arg(mode.argument());
    let start = Instant::now();
    let output = command
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    let took = start.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}: {}", output.status, said.trim());
    }
    let lines: Vec<Vec<&str>> = std::str::from_utf8(&output.stdout)
        .with_context(|| format!("{command:?}: its output"))?
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let number = |word: &str| -> anyhow::Result<f64> {
        word.parse()
            .with_context(|| format!("{command:?}: `{word}` is no number"))
    };
    match mode {
        Mode::Empty => Ok(vec![(format!("empty_{pes}"), took)]),
        Mode::Memory => {
            // A line a PE, in KiB.
            let mut totals = [0.0; 2];
            let mut seen = 0;
            for line in &lines {
                let ["memory", pss, rss] = line[..] else {
                    continue;
                };
                totals = [totals[0] + number(pss)?, totals[1] + number(rss)?];
                seen += 1;
            }
            ensure!(
                seen == pes,
                "{command:?}: {seen} of {pes} PEs told their memory"
            );
            let mean = |total: f64| total / 1024.0 / pes as f64;
            let [pss, rss] = totals.map(mean);
            Ok(vec![
                (format!("pss_{pes}"), pss),
                (format!("rss_{pes}"), rss),
            ])
        }
        Mode::Micro | Mode::Barrier => {
            let mut rows = Vec::new();
            for line in &lines {
                let [row, value] = line[..] else { continue };
                let row = if row == "barrier" {
                    format!("barrier_{pes}")
                } else {
                    row.into()
                };
                rows.push((row, number(value)?));
            }
            ensure!(!rows.is_empty(), "{command:?}: printed no row");
            Ok(rows)
        }
    }
}

fn print(verdicts: &[Verdict], samples: &Samples) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let all = summaries(samples);
    writeln!(
        out,
        "{:<24} {:>14} {:>14}",
        "row (medians)", "OSHMEM", "oxshmem, limits"
    )?;
    let rows: std::collections::BTreeSet<&str> = all.keys().map(|(_, row)| row.as_str()).collect();
    for row in rows {
        let of = |side| {
            let summary = all.get(&(side, row.to_string()));
            summary.map_or_else(String::new, |summary| format!("{:.2}", summary.median))
        };
        writeln!(
            out,
            "{row:<24} {:>14} {:>14}",
            of(Side::Oshmem),
            of(Side::Oxshmem)
        )?;
    }
    writeln!(
        out,
        "\nns each; empty_N in s, pss_N and rss_N in MiB a PE\n"
    )?;
    writeln!(
        out,
        "{:<40} {:>9} {:>21} {:>6} {:>10}  verdict",
        "comparison", "median", "interval", "unit", "target"
    )?;
    for verdict in verdicts {
        let (median, interval) = verdict.measured.map_or_else(Default::default, |measured| {
            (
                format!("{:.3}", measured.median),
                format!("{:.3} to {:.3}", measured.low, measured.high),
            )
        });
        let target = verdict
            .target
            .map(|target| target.to_string())
            .unwrap_or_default();
        writeln!(
            out,
            "{:<40} {median:>9} {interval:>21} {:>6} {target:>10}  {}",
            verdict.name,
            verdict.unit,
            verdict.words()
        )?;
    }
    Ok(())
}

fn summaries(samples: &Samples) -> BTreeMap<(Side, String), Summary> {
    let of =
        |values: &BTreeMap<usize, f64>| Summary::of(&values.values().copied().collect::<Vec<_>>());
    samples
        .iter()
        .filter_map(|(key, values)| Some((key.clone(), of(values)?)))
        .collect()
}

#[derive(Serialize)]
struct Report<'a> {
    commit: &'a str,
    date: String,
    machine: Machine,
    rounds: u32,
    comparisons: &'a [Verdict],
    /// Side, then row, then round.
    samples: BTreeMap<Side, BTreeMap<&'a str, &'a BTreeMap<usize, f64>>>,
    failures: &'a [String],
}

#[derive(Serialize)]
struct Machine {
    processor: String,
    kernel: String,
    oshmem: String,
}

fn report<'a>(
    args: &'a Args,
    verdicts: &'a [Verdict],
    samples: &'a Samples,
    failures: &'a [String],
) -> Report<'a> {
    let mut by_side: BTreeMap<Side, BTreeMap<&str, &BTreeMap<usize, f64>>> = BTreeMap::new();
    for ((side, row), values) in samples {
        by_side.entry(*side).or_default().insert(row, values);
    }
    let first_line = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok();
        let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
        text.and_then(|text| text.lines().next().map(String::from))
            .unwrap_or_default()
    };
    let processor = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let model = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    Report {
        commit: &args.commit,
        date: first_line("date", &["-u", "+%FT%TZ"]),
        machine: Machine {
            processor: model
                .unwrap_or_default()
                .trim_matches(['\t', ' ', ':'])
                .into(),
            kernel: first_line("uname", &["-r"]),
            oshmem: first_line("oshrun", &["--version"]),
        },
        rounds: args.rounds,
        comparisons: verdicts,
        samples: by_side,
        failures,
    }
}
