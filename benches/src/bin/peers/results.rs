//! The results, with place and time: as text and as a file.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use oxshmem_benches::samples::{Samples, Side};
use oxshmem_benches::table::markdown;
use oxshmem_benches::targets::{Group, Source, Verdict, judge};
use oxshmem_figures::units::Time;
use serde::{Deserialize, Serialize};

/// The results of one comparison.
#[derive(Serialize, Deserialize)]
pub struct Results {
    pub commit: String,
    #[serde(default)]
    pub source: Source,
    pub machine: Machine,
    pub rounds: u32,
    pub groups: Vec<Group>,
    pub samples: Samples,
    pub failures: Vec<String>,
}

/// The machine when the comparison began.
#[derive(Serialize, Deserialize)]
pub struct Machine {
    date: String,
    processor: String,
    processors: usize,
    kernel: String,
    /// The load of the last minute, before any program of ours ran.
    load: Option<f64>,
    oshmem: String,
    ucx: String,
}

impl Machine {
    pub fn here(oshrun: &Path) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let model = processor
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        let load = read("/proc/loadavg");
        let load = load.split(' ').next().and_then(|word| word.parse().ok());
        Machine {
            date: first_line("date".as_ref(), &["-u", "+%F %H:%M"]),
            processor: model
                .unwrap_or_default()
                .trim_matches(['\t', ' ', ':'])
                .into(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: first_line("uname".as_ref(), &["-r"]),
            load,
            oshmem: first_line(oshrun, &["--version"]),
            ucx: first_line("ucx_info".as_ref(), &["-v"]),
        }
    }
}

fn first_line(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
    text.and_then(|text| {
        text.lines()
            .next()
            .map(|line| line.trim_matches(['#', ' ']).into())
    })
    .unwrap_or_default()
}

/// The verdicts, which the file contains as well.
#[derive(Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    results: &'a Results,
    comparisons: Vec<Verdict>,
}

impl Results {
    /// Reads the results that [`write`](Self::write) wrote.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is no file of `peers --json`", file.display()))
    }

    /// Writes every sample, and the verdicts.
    pub fn write(&self, file: &Path) -> anyhow::Result<()> {
        let judged = Judged {
            results: self,
            comparisons: judge(&self.samples, self.source, &self.groups),
        };
        let text = serde_json::to_string_pretty(&judged)?;
        std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))
    }

    /// The prefix of the pictures' names, and their title.
    pub fn title(&self) -> (&'static str, String) {
        let Machine {
            processor, date, ..
        } = &self.machine;
        let (begin, what) = match self.source {
            Source::Rust => ("peers", ""),
            Source::C => ("peers-c", "the same C source, "),
        };
        let commit = &self.commit;
        let rounds = self.rounds;
        let title = format!("{what}{processor}, {rounds} rounds, commit {commit}, {date}");
        (begin, title)
    }
}

/// Prints tables in Markdown.
impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine {
            date,
            processor,
            processors,
            kernel,
            load,
            oshmem,
            ucx,
        } = &self.machine;
        writeln!(
            f,
            "{}Commit {}, {date}, {} rounds, on two of {processors} processors ({processor}), Linux {kernel}, \
             {oshmem}, {ucx}; load {} when it began.\n",
            match self.source {
                Source::Rust => "",
                Source::C => "Both sides of the same C source. ",
            },
            self.commit,
            self.rounds,
            load.map_or_else(|| "unknown".into(), |load| format!("{load:.2}"))
        )?;
        let verdicts = judge(&self.samples, self.source, &self.groups);
        let cells: Vec<_> = verdicts.iter().map(Verdict::cells).collect();
        writeln!(f, "{}", markdown(Verdict::HEADINGS, &cells))?;
        let sides = [
            Side::Oxshmem,
            Side::Oshmem,
            Side::Ucx,
            Side::Libfabric,
            Side::Sockets,
        ];
        let medians = |row: &str| {
            let [ours, oshmem, ucx, libfabric, sockets] = sides.map(|side| {
                let summary = self.samples.summary(side, row);
                summary.map_or_else(String::new, |summary| shown(row, summary.median))
            });
            [format!("`{row}`"), ours, oshmem, ucx, libfabric, sockets]
        };
        let cells: Vec<_> = self.samples.rows().into_iter().map(medians).collect();
        let headings = [
            "row, medians",
            "oxshmem, or limit",
            "OSHMEM",
            "UCX",
            "libfabric",
            "sockets",
        ];
        write!(f, "{}", markdown(headings, &cells))
    }
}

/// A figure with its unit, which depends on the row.
fn shown(row: &str, value: f64) -> String {
    match row.split('_').next() {
        Some("empty") => Time(1e9 * value).to_string(),
        Some("calls") => format!("{value:.2} calls"),
        Some("pss" | "rss") => format!("{value:.2} MiB"),
        _ => Time(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again_with_the_same_tables() {
        let mut samples = Samples::default();
        for round in [0, 2] {
            samples.add(Side::Oxshmem, "barrier_4", round, 2e3);
            samples.add(Side::Oshmem, "barrier_4", round, 5e3);
        }
        let results = Results {
            commit: "abc".into(),
            source: Source::C,
            machine: Machine::here("oshrun".as_ref()),
            rounds: 3,
            groups: vec![Group::Barrier],
            samples,
            failures: vec!["one".into()],
        };
        let file = std::env::temp_dir().join(format!("oxshmem-results-{}", std::process::id()));
        results.write(&file).unwrap();
        let again = Results::read(&file).unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let text = again.to_string();
        assert_eq!(text, results.to_string());
        for words in [
            "same C source",
            "Commit abc",
            "2.500 to 2.500",
            "2.00 µs",
            "5.00 µs",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(written.contains("missed_by_percent"), "{written}");
        assert_eq!(again.failures, ["one"]);
        assert_eq!(again.source, Source::C);
    }

    #[test]
    fn a_file_of_something_else_is_named() {
        let error = Results::read(Path::new("/proc/self/status")).err().unwrap();
        assert!(format!("{error:#}").contains("/proc/self/status"));
    }

    #[test]
    fn a_figure_has_the_unit_of_its_row() {
        assert_eq!(shown("empty_64", 0.13), "130 ms");
        assert_eq!(shown("pss_64", 0.451), "0.45 MiB");
        assert_eq!(shown("put8", 0.435), "0.43 ns");
    }
}
