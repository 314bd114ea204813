//! Rows that not every run has.

use std::fmt;

use oxshmem_figures::units::Bytes;
use serde::Serialize;

use super::runs::Key;
use crate::perf::metric::Metric;

/// A row that some run lacks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missing {
    metric: Metric,
    op: String,
    bytes: usize,
    window: u64,
    threads: u32,
    lack: Lack,
    /// Runs of each side that have the row.
    old_runs: usize,
    new_runs: usize,
}

/// The runs that lack a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The run just measured.
    Now,
    /// All earlier runs.
    Then,
    /// Some of the runs that are compared.
    Some,
}

/// Operations that are missing at the same sizes.
struct Line<'a> {
    first: &'a Missing,
    ops: Vec<&'a str>,
    sizes: Vec<usize>,
}

impl Missing {
    pub fn new(key: Key<'_>, lack: Lack, old_runs: usize, new_runs: usize) -> Self {
        let (metric, op, bytes, (window, threads)) = key;
        Missing {
            metric,
            op: op.into(),
            bytes,
            window,
            threads,
            lack,
            old_runs,
            new_runs,
        }
    }

    pub fn lack(&self) -> Lack {
        self.lack
    }

    /// Whether one line can show both rows: they differ only in operation and size.
    fn is_alike(&self, other: &Missing) -> bool {
        let told = |row: &Missing| {
            let runs = (row.lack == Lack::Some).then_some((row.old_runs, row.new_runs));
            (row.lack, runs, row.metric, row.window, row.threads)
        };
        told(self) == told(other)
    }
}

/// Shows the missing rows of one kind. Operations that are missing at the same sizes share a line.
pub fn show(rows: &[Missing], lack: Lack, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows.iter().filter(|row| row.lack == lack) {
        let of_its_own = |line: &&mut Line<'_>| line.first.is_alike(row) && line.ops == [&row.op];
        match lines.iter_mut().find(of_its_own) {
            Some(line) => line.sizes.push(row.bytes),
            None => lines.push(Line {
                first: row,
                ops: vec![&row.op],
                sizes: vec![row.bytes],
            }),
        }
    }
    let mut joined: Vec<Line<'_>> = Vec::new();
    for line in lines {
        let same =
            |other: &&mut Line<'_>| other.first.is_alike(line.first) && other.sizes == line.sizes;
        match joined.iter_mut().find(same) {
            Some(other) => other.ops.extend(line.ops),
            None => joined.push(line),
        }
    }
    joined.iter().try_for_each(|line| writeln!(f, "{line}"))
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.first;
        match row.lack {
            Lack::Now => write!(f, "measured only then: ")?,
            Lack::Then => write!(f, "measured only now: ")?,
            Lack::Some => write!(
                f,
                "not in all runs (in {} earlier and {} new): ",
                row.old_runs, row.new_runs
            )?,
        }
        write!(f, "{} of {}", row.metric.name(), self.ops.join(", "))?;
        let sizes = self.sizes.iter().filter(|bytes| **bytes > 0);
        let sizes: Vec<String> = sizes.map(|bytes| Bytes(*bytes).to_string()).collect();
        if !sizes.is_empty() {
            write!(f, ": {}", sizes.join(", "))?;
        }
        if row.metric.has_window() {
            write!(f, " (window {}, threads {})", row.window, row.threads)?;
        }
        Ok(())
    }
}
