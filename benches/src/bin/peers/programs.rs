//! One run of one side's program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::Args;
use oxshmem_benches::affinity;
use oxshmem_benches::modes::Mode;
use oxshmem_benches::samples::Side;
use oxshmem_benches::targets::Source;

use crate::command::{DEADLINE, number, output};
use crate::{tcp, ucx};

/// The paths of the programs.
#[derive(Args)]
pub struct Programs {
    /// The OpenSHMEM counterpart, built from benches/oshmem by Open MPI's oshcc.
    #[arg(long, value_name = "PROGRAM", default_value = "target/release/peers-c")]
    peers_c: PathBuf,
    /// Open MPI's launcher; oxshmem's has the same name.
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/bin/oshrun")]
    pub oshrun: PathBuf,
    /// The prefix of oxshmem's installed C API. Its `bin` has the same `peers-c`, built by its own
    /// oshcc.
    #[arg(long, value_name = "FOLDER", default_value = "target/release/capi")]
    capi: PathBuf,
    /// libfabric's own figures, built from benches/libfabric.
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "target/release/libfabric-peer"
    )]
    libfabric: PathBuf,
    /// The folder that holds the built `oxshmem`, `peer` and `sockets`.
    #[arg(long, value_name = "FOLDER", default_value = "target/release")]
    bin: PathBuf,
    /// The rows over TCP within one host, over its loopback interface.
    #[arg(long)]
    loopback: bool,
}

/// The sides that are measured.
pub fn sides(source: Source, mode: Mode) -> &'static [Side] {
    match mode {
        Mode::Micro if source == Source::Rust => &[Side::Oshmem, Side::Oxshmem, Side::Ucx],
        Mode::Threads => &[Side::Oxshmem],
        Mode::Tcp if source == Source::Rust => &[
            Side::Oshmem,
            Side::Oxshmem,
            Side::Ucx,
            Side::Libfabric,
            Side::Sockets,
        ],
        _ => &[Side::Oshmem, Side::Oxshmem],
    }
}

impl Programs {
    /// Runs a side, and returns its rows.
    pub fn run(
        &self,
        source: Source,
        side: Side,
        mode: Mode,
        pes: usize,
    ) -> anyhow::Result<Vec<(String, f64)>> {
        if mode == Mode::Tcp {
            return self.over_tcp(side);
        }
        match side {
            Side::Ucx => ucx::rows(),
            Side::Oxshmem => best(runs(mode).into_iter().map(|(mode, _)| {
                let command = self.oxshmem(source, mode, pes);
                self.run_once(command, mode, pes)
            })),
            Side::Oshmem => {
                let cpus = affinity::allowed()?.len();
                best(runs(mode).into_iter().map(|(mode, options)| {
                    let command = self.oshmem(mode, options, pes, cpus);
                    self.run_once(command, mode, pes)
                }))
            }
            Side::Nvshmem => bail!("NVSHMEM is what `gpu_peers` compares with"),
            Side::Libfabric | Side::Sockets => bail!("{} has rows over TCP only", side.name()),
        }
    }

    /// One side between hosts that `benches/tcp` has made. All by ssh or by `on-host`, and over TCP alone.
    fn over_tcp(&self, side: Side) -> anyhow::Result<Vec<(String, f64)>> {
        let told = |command: &mut Command| {
            let (text, _) = output(command)?;
            let lines: Vec<Vec<&str>> = text
                .lines()
                .map(|line| line.split_whitespace().collect())
                .collect();
            figures(&lines).with_context(|| format!("{command:?}"))
        };
        let ends = match self.loopback {
            true => tcp::LOOPBACK,
            false => tcp::TWO_HOSTS,
        };
        match side {
            Side::Oxshmem => {
                let peer = self.bin.join("peer");
                let mut launcher = tcp::on(ends.near, &self.bin.join("oxshmem"));
                launcher.arg("run");
                match self.loopback {
                    true => launcher
                        .args(["-n", "2"])
                        .env("OXSHMEM_TRANSPORT", "ofi")
                        .env("OXSHMEM_OFI_INTERFACE", ends.device),
                    false => launcher.args(["--hosts", "a:1,b:1"]),
                };
                told(launcher.arg(peer).arg(Mode::Tcp.argument()))
            }
            Side::Oshmem => {
                let mut launcher = tcp::on(ends.near, &self.oshrun);
                let device = format!("UCX_NET_DEVICES={}", ends.device);
                let hosts = match self.loopback {
                    true => "localhost:2",
                    false => "a,b",
                };
                launcher
                    .args(["--mca", "btl", "^openib", "--allow-run-as-root"])
                    .args(["--host", hosts, "--oversubscribe", "--bind-to", "none"])
                    .args(["-x", "UCX_TLS=tcp,self", "-x", &device])
                    .args([
                        "-x",
                        "UCX_LOG_LEVEL=error",
                        "-x",
                        "SHMEM_SYMMETRIC_SIZE=64M",
                    ])
                    .args(["-n", "2"]);
                told(launcher.arg(&self.peers_c).arg(Mode::Tcp.argument()))
            }
            Side::Ucx => ucx::over_tcp(&ends),
            Side::Libfabric => tcp::pair(&ends, &self.libfabric, 18601, told),
            Side::Sockets => tcp::pair(&ends, &self.bin.join("sockets"), 18602, told),
            Side::Nvshmem => bail!("NVSHMEM has no rows over TCP"),
        }
    }

    fn oxshmem(&self, source: Source, mode: Mode, pes: usize) -> Command {
        let mut command = timed();
        let program = match source {
            Source::Rust => {
                command.arg(self.bin.join("oxshmem")).arg("run");
                self.bin.join("peer")
            }
            Source::C => {
                command.arg(self.capi.join("bin/oshrun"));
                self.capi.join("bin/peers-c")
            }
        };
        if is_bound(mode) {
            command.args(["--bind", "core"]);
        }
        command.args(["-n", &pes.to_string()]).arg(program);
        command
    }

    fn oshmem(&self, mode: Mode, options: &[&str], pes: usize, cpus: usize) -> Command {
        let mut command = timed();
        command
            .arg(&self.oshrun)
            .args(["--mca", "btl", "^openib", "--allow-run-as-root"])
            .args(["--oversubscribe", "--bind-to"])
            .arg(if is_bound(mode) {
                "core:overload-allowed"
            } else {
                "none"
            });
        if pes > cpus {
            // A waiting PE yields its processor to the PEs that it waits for.
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
        }
        command
            .args(options)
            .args(["-n", &pes.to_string()])
            .arg(&self.peers_c)
            .env("UCX_LOG_LEVEL", "error");
        command
    }

    fn run_once(
        &self,
        mut command: Command,
        mode: Mode,
        pes: usize,
    ) -> anyhow::Result<Vec<(String, f64)>> {
        command.arg(mode.argument());
        let (text, seconds) = output(&mut command)?;
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        match mode {
            Mode::Empty => Ok(vec![(format!("empty_{pes}"), seconds)]),
            Mode::Memory => memory(&lines, pes),
            _ => figures(&lines),
        }
        .with_context(|| format!("{command:?}"))
    }
}

/// Whether PEs are bound to processors, one after the other and round again. Where PEs outnumber
/// processors, the kernel leaves three of them on one of two for seconds, and the measurement would
/// be of that. PEs with threads are not bound, nor are starts.
fn is_bound(mode: Mode) -> bool {
    !matches!(mode, Mode::Threads | Mode::Empty | Mode::Memory)
}

/// A command that ends by the deadline.
fn timed() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", DEADLINE]);
    command
}

/// The runs of a side, and for OSHMEM the options of its launcher. If several runs have the same
/// row, the best one counts, on both sides: for seconds at a time a host may place two processors
/// of a virtual machine far from each other, and each side is as likely to meet them close.
fn runs(mode: Mode) -> Vec<(Mode, &'static [&'static str])> {
    // Enough for all modes but the start and its memory, which have the default.
    const HEAP: [&str; 2] = ["-x", "SHMEM_SYMMETRIC_SIZE=512M"];
    const BASIC: [&str; 5] = [HEAP[0], HEAP[1], "--mca", "scoll", "basic"];
    match mode {
        Mode::Empty | Mode::Memory => vec![(mode, &[])],
        // By MPI's collective calls, which is the default, and by OSHMEM's own: neither is always
        // faster.
        Mode::Collectives | Mode::Barrier | Mode::Patterns => vec![(mode, &HEAP), (mode, &BASIC)],
        // The barrier of 2 PEs belongs to this mode, and is measured both ways, too.
        Mode::Micro => vec![(mode, &HEAP), (mode, &HEAP), (Mode::Barrier, &BASIC)],
        // Two rows of the same side are compared.
        Mode::Threads | Mode::Tcp => vec![(mode, &HEAP)],
        Mode::Gups | Mode::Sort | Mode::First => vec![(mode, &HEAP), (mode, &HEAP)],
    }
}

/// The rows of several runs, each the best of its kind.
fn best(
    runs: impl Iterator<Item = anyhow::Result<Vec<(String, f64)>>>,
) -> anyhow::Result<Vec<(String, f64)>> {
    let mut best = BTreeMap::new();
    for rows in runs {
        for (row, value) in rows? {
            let held = best.entry(row).or_insert(value);
            *held = value.min(*held);
        }
    }
    Ok(best.into_iter().collect())
}

/// Parses lines of a row and a number.
fn figures(lines: &[Vec<&str>]) -> anyhow::Result<Vec<(String, f64)>> {
    let mut rows = Vec::new();
    for line in lines {
        let [row, value] = line[..] else { continue };
        rows.push((row.into(), number(value)?));
    }
    ensure!(!rows.is_empty(), "it printed no row");
    Ok(rows)
}

/// The mean of the PEs' lines, from KiB to MiB.
fn memory(lines: &[Vec<&str>], pes: usize) -> anyhow::Result<Vec<(String, f64)>> {
    let mut totals = [0.0; 2];
    let mut seen = 0;
    for line in lines {
        let ["memory", pss, rss] = line[..] else {
            continue;
        };
        totals = [totals[0] + number(pss)?, totals[1] + number(rss)?];
        seen += 1;
    }
    ensure!(seen == pes, "{seen} of {pes} PEs told their memory");
    let [pss, rss] = totals.map(|total| total / 1024.0 / pes as f64);
    Ok(vec![
        (format!("pss_{pes}"), pss),
        (format!("rss_{pes}"), rss),
    ])
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn programs() -> Programs {
        Programs {
            peers_c: "their-peers-c".into(),
            oshrun: "their-oshrun".into(),
            libfabric: "libfabric-peer".into(),
            capi: "capi".into(),
            bin: "bin".into(),
            loopback: false,
        }
    }

    #[test]
    fn barriers_are_measured_by_both_components_of_oshmem() {
        for mode in [Mode::Micro, Mode::Barrier, Mode::Collectives] {
            let by_basic = |(_, options): &(Mode, &[&str])| options.contains(&"basic");
            let (basic, usual): (Vec<_>, Vec<_>) = runs(mode).into_iter().partition(by_basic);
            let has_it = |runs: &[(Mode, &[&str])]| {
                let mut runs = runs.iter();
                runs.any(|(run, _)| *run == mode || *run == Mode::Barrier)
            };
            assert!(has_it(&basic) && has_it(&usual), "{mode:?}");
        }
    }

    #[test]
    fn of_several_runs_the_best_of_each_row_counts() {
        let row = |name: &str, value| (name.to_owned(), value);
        let two = [
            vec![row("a", 2.0), row("b", 1.0)],
            vec![row("b", 3.0), row("a", 1.0)],
        ];
        let found = best(two.into_iter().map(Ok)).unwrap();
        assert_eq!(found, [row("a", 1.0), row("b", 1.0)]);
        assert!(best([Err(anyhow::anyhow!("it failed"))].into_iter()).is_err());
    }

    #[test]
    fn each_side_of_one_source_has_its_own_launcher_and_program() {
        let programs = programs();
        let words = |command: Command| format!("{command:?}");
        let ours = words(programs.oxshmem(Source::C, Mode::Empty, 2));
        let other = words(programs.oshmem(Mode::Micro, &[], 2, 2));
        assert!(
            ours.contains(r#""capi/bin/oshrun" "-n" "2" "capi/bin/peers-c""#),
            "{ours}"
        );
        assert!(other.contains(r#""their-oshrun" "#), "{other}");
        assert!(other.ends_with(r#""-n" "2" "their-peers-c""#), "{other}");
        for mode in Mode::value_variants() {
            assert!(!sides(Source::C, *mode).contains(&Side::Ucx), "{mode:?}");
        }
    }

    #[test]
    fn both_sides_are_bound_or_neither() {
        let programs = programs();
        for mode in Mode::value_variants() {
            let ours = programs.oxshmem(Source::Rust, *mode, 4);
            let other = programs.oshmem(*mode, &[], 4, 2);
            let has = |command: &Command, word: &str| command.get_args().any(|arg| arg == word);
            assert_eq!(
                has(&ours, "--bind"),
                has(&other, "core:overload-allowed"),
                "{mode:?}"
            );
        }
        assert!(!is_bound(Mode::Threads) && is_bound(Mode::Collectives));
    }

    #[test]
    fn waits_of_oshmem_yield_where_pes_outnumber_the_processors() {
        let programs = programs();
        for (pes, cpus) in [(2, 2), (4, 2), (8, 16)] {
            let command = programs.oshmem(Mode::Barrier, &[], pes, cpus);
            let yields = command.get_args().any(|arg| arg == "mpi_yield_when_idle");
            assert_eq!(yields, pes > cpus, "{command:?}");
        }
    }
}
