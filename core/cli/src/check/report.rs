//! The check's output: text, JSON and pictures.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use oxshmem_figures::units::{PerSecond, Time};
use oxshmem_figures::{Heat, heat};
use serde::Serialize;

use super::args::Args;
use super::finding::{Counts, Finding};
use super::host::Host;
use super::links::{Effort, Share};
use super::measured::Measured;
use super::members::Member;
use super::statistics::{Matrix, better_median};
use crate::output;

/// Members up to which matrices are printed.
const MATRIX: usize = 12;
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// A pattern in which all hosts send at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pattern {
    pub name: &'static str,
    /// Bytes per second of all members together, and of the slowest one.
    pub sum: f64,
    pub least: f64,
    /// The slowest member.
    pub slowest: Option<usize>,
    pub wrong: u64,
}

impl Pattern {
    pub fn of(name: &'static str, shares: &[Share]) -> Self {
        let sending = || shares.iter().filter(|share| share.sent > 0.0);
        let slowest = sending().min_by(|a, b| a.sent.total_cmp(&b.sent));
        Pattern {
            name,
            sum: sending().map(|share| share.sent).sum(),
            least: slowest.map_or(0.0, |share| share.sent),
            slowest: slowest.map(|share| share.member),
            wrong: shares.iter().map(|share| share.wrong).sum(),
        }
    }
}

/// All results, as PE 0 has them.
#[derive(Serialize)]
pub struct Results {
    version: &'static str,
    effort: Effort,
    hosts: Vec<NamedHost>,
    /// Findings about the hosts, and about the links.
    #[serde(skip)]
    pub setup: Vec<Finding>,
    #[serde(skip)]
    pub links: Vec<Finding>,
    pub rounds: usize,
    pub members: Vec<Member>,
    #[serde(skip)]
    pub measured: Measured,
    pub patterns: Vec<Pattern>,
}

#[derive(Serialize)]
struct NamedHost {
    name: String,
    #[serde(flatten)]
    host: Host,
}

/// One link, in JSON.
#[derive(Serialize)]
struct LinkFigures<'a> {
    from: &'a str,
    to: &'a str,
    latency_ns: Option<f64>,
    bytes_per_second: Option<f64>,
    both_ways_bytes_per_second: Option<f64>,
}

/// The document of JSON.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    results: &'a Results,
    links: Vec<LinkFigures<'a>>,
    findings: Vec<&'a Finding>,
    counts: Counts,
}

impl Results {
    /// The results before anything was measured. Only PE 0 keeps the hosts.
    pub fn new(args: &Args, me: usize, names: &[String], hosts: &[Host]) -> Self {
        let hosts = names.iter().zip(hosts).map(|(name, host)| NamedHost {
            name: name.clone(),
            host: host.clone(),
        });
        Results {
            version: env!("CARGO_PKG_VERSION"),
            effort: args.effort(),
            hosts: if me == 0 { hosts.collect() } else { Vec::new() },
            setup: Vec::new(),
            links: Vec::new(),
            rounds: 0,
            members: Vec::new(),
            measured: Measured::default(),
            patterns: Vec::new(),
        }
    }

    fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.setup.iter().chain(&self.links)
    }

    fn counts(&self) -> Counts {
        Counts::of(self.findings())
    }

    fn json(&self) -> serde_json::Result<String> {
        let cell = |matrix: &Matrix, from: usize, to: usize| *matrix.get(from)?.get(to)?;
        let mut links = Vec::new();
        for (from, a) in self.members.iter().enumerate() {
            for (to, b) in self.members.iter().enumerate() {
                let figures = LinkFigures {
                    from: &a.name,
                    to: &b.name,
                    latency_ns: cell(&self.measured.latency, from, to),
                    bytes_per_second: cell(&self.measured.one_way, from, to),
                    both_ways_bytes_per_second: cell(&self.measured.both_ways, from, to),
                };
                if figures.latency_ns.is_some() {
                    links.push(figures);
                }
            }
        }
        let document = Document {
            results: self,
            links,
            findings: self.findings().collect(),
            counts: self.counts(),
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    fn svg(&self) -> anyhow::Result<String> {
        let labels: Vec<String> = self
            .members
            .iter()
            .map(|member| member.name.clone())
            .collect();
        let rate = |value| PerSecond(value, "B/s").to_string();
        let part = |title, values, less_is_better, shown| Heat {
            title,
            values,
            shown,
            less_is_better,
        };
        let parts = [
            part(
                "Bandwidth one way, from row to column",
                &*self.measured.one_way,
                false,
                rate as fn(f64) -> String,
            ),
            part(
                "Bandwidth of both ways at once",
                &*self.measured.both_ways,
                false,
                rate,
            ),
            part("Latency", &*self.measured.latency, true, |value| {
                Time(value).to_string()
            }),
        ];
        Ok(heat(
            &format!("oxshmem check: links between {} members", labels.len()),
            &labels,
            &parts,
        )?)
    }

    /// The measured figures as text.
    fn figures(&self) -> String {
        let mut text = String::new();
        let ways: Vec<String> = self
            .members
            .iter()
            .map(|m| format!("{} ({})", m.transport, m.rail))
            .collect();
        let mut distinct = ways.clone();
        distinct.sort();
        distinct.dedup();
        let (count, rounds) = (self.members.len(), self.rounds);
        // Writing to a `String` does not fail.
        let _ = writeln!(
            text,
            "\nLinks: {count} members, {rounds} rounds, by {}\n",
            distinct.join(", ")
        );
        let measured = &self.measured;
        if count <= MATRIX {
            let most = |matrix: &Matrix| {
                matrix
                    .iter()
                    .flatten()
                    .flatten()
                    .copied()
                    .fold(0.0, f64::max)
            };
            let (unit, factor, digits) = match most(&measured.both_ways) {
                most if most < 1e9 => ("MB/s", 1e6, 1),
                _ => ("GB/s", 1e9, 2),
            };
            let rate = |value: f64| format!("{:.digits$}", value / factor);
            let time = |value: f64| format!("{:.1}", value / 1e3);
            text += &self.table(
                &format!("bandwidth one way, {unit}, from row to column"),
                &measured.one_way,
                rate,
            );
            text += &self.table(
                &format!("bandwidth of both ways at once, {unit}"),
                &measured.both_ways,
                rate,
            );
            text += &self.table(
                "latency of 8 bytes with a flag, µs",
                &measured.latency,
                time,
            );
        } else {
            text += &self.summary();
        }
        if !self.patterns.is_empty() {
            text += "All at once\n";
        }
        for pattern in &self.patterns {
            let slowest = pattern.slowest.and_then(|member| self.members.get(member));
            let _ = writeln!(
                text,
                "  {:<12} {:>10} in all; the slowest is {} with {}",
                pattern.name,
                PerSecond(pattern.sum, "B/s").to_string(),
                slowest.map_or("none", |member| &member.name),
                PerSecond(pattern.least, "B/s")
            );
        }
        text
    }

    fn table(&self, title: &str, matrix: &Matrix, shown: impl Fn(f64) -> String) -> String {
        let names: Vec<&str> = self.members.iter().map(|member| &*member.name).collect();
        let widest = names
            .iter()
            .map(|name| name.len())
            .max()
            .unwrap_or(0)
            .max(7);
        let mut text = format!("{title}\n  {:widest$}", "");
        let columns = names.iter().map(|name| format!(" {name:>widest$}"));
        text.extend(columns);
        text.push('\n');
        for (name, row) in names.iter().zip(matrix) {
            let cells = row.iter().map(|cell| cell.map_or("-".into(), &shown));
            let cells: String = cells.map(|cell| format!(" {cell:>widest$}")).collect();
            let _ = writeln!(text, "  {name:<widest$}{cells}");
        }
        text.push('\n');
        text
    }

    /// A line for each member: the medians of its links.
    fn summary(&self) -> String {
        let widest = self
            .members
            .iter()
            .map(|member| member.name.len())
            .max()
            .unwrap_or(0)
            .max(6);
        let mut text = format!(
            "  {:<widest$} {:>11} {:>11} {:>11} {:>11}\n",
            "median", "sends", "receives", "both ways", "latency"
        );
        let measured = &self.measured;
        let row = |matrix: &Matrix, at: usize| {
            better_median(matrix.get(at).into_iter().flatten().flatten().copied())
        };
        let column = |matrix: &Matrix, at: usize| {
            better_median(
                matrix
                    .iter()
                    .filter_map(|row| row.get(at).copied().flatten()),
            )
        };
        for (at, member) in self.members.iter().enumerate() {
            let rate =
                |value: Option<f64>| value.map_or("-".into(), |v| PerSecond(v, "B/s").to_string());
            let time = row(&measured.latency, at).map_or("-".into(), |v| Time(v).to_string());
            let _ = writeln!(
                text,
                "  {:<widest$} {:>11} {:>11} {:>11} {time:>11}",
                member.name,
                rate(row(&measured.one_way, at)),
                rate(column(&measured.one_way, at)),
                rate(row(&measured.both_ways, at)),
            );
        }
        text.push('\n');
        text
    }
}

/// Where results go.
pub struct Out {
    /// Whether text is printed: JSON or a picture on stdout takes its place.
    text: bool,
    verbose: bool,
    last: Instant,
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Out {
    pub fn new(args: &Args) -> Self {
        let files = [&args.json, &args.svg].into_iter().flatten();
        Out {
            text: !files.into_iter().any(|path| is_stdout(path)),
            verbose: args.verbose,
            last: Instant::now(),
        }
    }

    /// Checks before the work that the files can be written.
    pub fn check_writable(&self, args: &Args) -> anyhow::Result<()> {
        let mut files = [&args.json, &args.svg]
            .into_iter()
            .flatten()
            .filter(|path| !is_stdout(path));
        Ok(files.try_for_each(|path| oxshmem_figures::check_writable(path))?)
    }

    fn print(&self, text: &str) -> anyhow::Result<()> {
        if self.text {
            output::print(text)
        } else {
            Ok(())
        }
    }

    /// Prints what was found on the hosts.
    pub fn setup(&self, results: &Results, pes: usize) -> anyhow::Result<()> {
        let names: Vec<&str> = results.hosts.iter().map(|host| &*host.name).collect();
        let mut text = format!(
            "oxshmem check {}: {pes} PEs on {} host{}: {}\n\nSet-up\n",
            results.version,
            names.len(),
            if names.len() == 1 { "" } else { "s" },
            names.join(", ")
        );
        if self.verbose {
            for host in &results.hosts {
                let _ = writeln!(text, "\nhost {}", host.name);
                text.extend(
                    host.host
                        .findings
                        .iter()
                        .map(|finding| format!("{finding}\n")),
                );
            }
            text.push_str("\nall hosts\n");
        }
        text.extend(results.setup.iter().map(|finding| format!("{finding}\n")));
        self.print(&text)
    }

    /// Tells on stderr how far the rounds are, now and then.
    pub fn progress(&mut self, done: usize, all: usize) {
        if self.last.elapsed() >= PROGRESS {
            self.last = Instant::now();
            output::complain("check", &format!("{done} of {all} rounds are done"));
        }
    }

    /// Prints and writes the results, and gives the exit status.
    pub fn finish(self, args: &Args, results: &Results) -> anyhow::Result<ExitCode> {
        let counts = results.counts();
        let mut text = String::new();
        if !results.members.is_empty() {
            text = results.figures() + "\nFindings\n";
            text.extend(results.links.iter().map(|finding| format!("{finding}\n")));
            if !results.links.iter().any(Finding::is_bad) {
                let all = Finding::ok(
                    "links",
                    "none is slow compared with the others; all data were right",
                );
                let _ = writeln!(text, "{all}");
            }
        }
        let _ = writeln!(text, "\n{counts}");
        self.print(&text)?;
        if let Some(path) = &args.json {
            write(path, &results.json()?)?;
        }
        if let Some(path) = &args.svg {
            write(path, &results.svg()?)?;
        }
        Ok(counts.status(args.strict).into())
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if is_stdout(path) {
        return output::print(text);
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The check of this host alone.
pub fn host_only(args: &Args, host: Host) -> anyhow::Result<ExitCode> {
    let out = Out::new(args);
    out.check_writable(args)?;
    let mut text = format!(
        "oxshmem check {}: host {}\n\n",
        env!("CARGO_PKG_VERSION"),
        host.hostname
    );
    text.extend(host.findings.iter().map(|finding| format!("{finding}\n")));
    let counts = Counts::of(&host.findings);
    let _ = writeln!(text, "\n{counts}");
    if !args.host_only {
        text += "no job: this host alone; for the links start a job, such as: oxshmem run --hosts a,b oxshmem check\n";
    }
    out.print(&text)?;
    if let Some(path) = &args.json {
        let mut results = Results::new(
            args,
            0,
            std::slice::from_ref(&host.hostname),
            std::slice::from_ref(&host),
        );
        results.setup = host.findings;
        write(path, &results.json()?)?;
    }
    Ok(counts.status(args.strict).into())
}
