//! What PE 0 has in hand: the results, and where they go.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::Args;
use super::measure::{Found, Latency};
use super::op::Op;
use super::report::Report;
use super::table::{self, Parameters};

/// What was measured, under what circumstances.
#[derive(Serialize)]
struct Results {
    parameters: Parameters,
    rows: Vec<Row>,
}

/// One row.
#[derive(Serialize)]
pub struct Row {
    pub op: &'static str,
    /// Bytes of one operation; 0 where it moves none.
    pub bytes: usize,
    /// Of one operation, over batches.
    pub latency_ns: Latency,
    /// Bytes per second at the median; none where that means nothing.
    pub bandwidth: Option<f64>,
    pub batches: usize,
    /// Repetitions in a batch.
    pub repetitions: u64,
}

/// Where results go.
pub struct Out {
    report: Report,
    /// Whether tables go out.
    table: bool,
}

impl Out {
    /// For a measurement of so many `steps`. On PEs other than 0 nothing is shown.
    pub fn new(args: &Args, steps: usize) -> anyhow::Result<Self> {
        check_writable(args)?;
        Ok(Out {
            report: Report::new(args.launcher, steps),
            table: args.json.is_none() || json_file(args).is_some(),
        })
    }

    /// A line of a table, if tables go out.
    pub fn line(&mut self, text: &str) -> anyhow::Result<()> {
        if self.table {
            self.report.line(text)?;
        }
        Ok(())
    }

    /// Which step is being measured, after how many.
    pub fn progress(&self, done: usize, label: String) {
        self.report.progress(done, label);
    }

    /// Writes the JSON, where that is asked for.
    pub fn finish(mut self, args: &Args, results: &impl Serialize) -> anyhow::Result<()> {
        self.report.done();
        let mut json = serde_json::to_string_pretty(results)?;
        if !self.table {
            return self.report.line(&json);
        }
        let Some(path) = json_file(args) else {
            return Ok(());
        };
        json.push('\n');
        let written = File::create(path).and_then(|mut file| file.write_all(json.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

pub struct Leader {
    out: Out,
    results: Results,
}

impl Leader {
    /// Shows the parameters, before `rows` rows.
    pub fn new(args: &Args, parameters: Parameters, rows: usize) -> anyhow::Result<Self> {
        let mut out = Out::new(args, rows)?;
        out.line(&format!("{parameters}\n{}", table::header()))?;
        Ok(Leader {
            out,
            results: Results {
                parameters,
                rows: Vec::new(),
            },
        })
    }

    /// Shows which row is being measured, after how many.
    pub fn begin(&self, done: usize, label: String) {
        self.out.progress(done, label);
    }

    pub fn row(&mut self, op: Op, bytes: usize, found: &Found) -> anyhow::Result<()> {
        let row = Row {
            op: op.name(),
            bytes,
            latency_ns: found.latency,
            bandwidth: op
                .moves_data()
                .then(|| bytes as f64 / found.latency.median * 1e9),
            batches: found.batches,
            repetitions: found.repetitions,
        };
        self.out.line(&row.to_string())?;
        self.results.rows.push(row);
        Ok(())
    }

    /// Writes the JSON, where that is asked for.
    pub fn finish(self, args: &Args) -> anyhow::Result<()> {
        self.out.finish(args, &self.results)
    }
}

/// The file for JSON, if that is not stdout.
fn json_file(args: &Args) -> Option<&Path> {
    args.json.as_deref().filter(|path| path.as_os_str() != "-")
}

/// Whether the file for JSON can be written is better known before measuring.
pub fn check_writable(args: &Args) -> anyhow::Result<()> {
    let Some(path) = json_file(args) else {
        return Ok(());
    };
    let opened = File::options().create(true).append(true).open(path);
    opened
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}
