//! PE 0's part: it keeps the results and writes them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use super::args::Args;
use super::compare::{Comparison, Runs};
use super::metric::Metric;
use super::parameters::Parameters;
use super::report::Report;
use super::row::{Figures, Row};
use super::task::Task;
use super::{csv, plot, table};

/// The figures, and the circumstances under which they were measured.
#[derive(Serialize)]
struct Results {
    parameters: Parameters,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
}

/// The destinations of results.
pub struct Out {
    report: Report,
    /// Whether tables are printed.
    table: bool,
}

impl Out {
    /// An output for a measurement of so many `steps`. PEs other than 0 show nothing.
    pub fn new(args: &Args, steps: usize) -> anyhow::Result<Self> {
        check_writable(args)?;
        let to_stdout = |path: &Path| path.as_os_str() == "-";
        let outputs = [args.json.as_deref(), args.csv.as_deref()];
        Ok(Out {
            report: Report::new(args.launcher, steps),
            table: !outputs.into_iter().flatten().any(to_stdout),
        })
    }

    /// Prints a line of a table, if tables are printed.
    pub fn line(&mut self, text: &str) -> anyhow::Result<()> {
        if self.table {
            self.report.line(text)?;
        }
        Ok(())
    }

    /// Shows the step that is being measured, after `done` others.
    pub fn progress(&self, done: usize, label: String) {
        self.report.progress(done, label);
    }

    /// Ends the progress display.
    pub fn done(&self) {
        self.report.done();
    }

    /// Writes JSON, where that is asked for.
    pub fn json(&mut self, args: &Args, results: &impl Serialize) -> anyhow::Result<()> {
        let Some(path) = &args.json else {
            return Ok(());
        };
        let mut json = serde_json::to_string_pretty(results)?;
        json.push('\n');
        self.write(path, &json)
    }

    /// Writes to a file or to stdout.
    fn write(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        if path.as_os_str() == "-" {
            return self.report.line(text.trim_end());
        }
        let written = File::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

pub struct Leader {
    out: Out,
    runs: Option<Runs>,
    results: Results,
    /// The metric of the table's section that is being shown.
    metric: Option<Metric>,
}

impl Leader {
    /// Shows the parameters, before the rows of `plan`.
    pub fn new(args: &Args, parameters: Parameters, plan: &[Task]) -> anyhow::Result<Self> {
        let runs = Runs::read(args, plan)?;
        let mut out = Out::new(args, plan.len())?;
        out.line(&parameters.to_string())?;
        Ok(Leader {
            out,
            runs,
            results: Results {
                parameters,
                rows: Vec::new(),
                comparison: None,
            },
            metric: None,
        })
    }

    /// Shows the row that is being measured, after `done` others.
    pub fn begin(&self, done: usize, label: String) {
        self.out.progress(done, label);
    }

    pub fn row(&mut self, task: &Task, figures: &Figures) -> anyhow::Result<()> {
        let mut row = Row::of(task, figures);
        if row.metric == Metric::Bandwidth {
            row.of_memcpy = self
                .memcpy(row.bytes)
                .zip(row.bandwidth)
                .map(|(limit, own)| own / limit);
        }
        if self.metric != Some(row.metric) {
            let space = if self.metric.is_some() { "\n" } else { "" };
            self.out
                .line(&format!("{space}{}", table::header(row.metric)))?;
            self.metric = Some(row.metric);
        }
        self.out.line(&table::row(&row))?;
        self.results.rows.push(row);
        Ok(())
    }

    /// The bandwidth of memcpy at a size, if it was measured.
    fn memcpy(&self, bytes: usize) -> Option<f64> {
        let is_it = |row: &&Row| {
            (row.metric, row.op, row.bytes) == (Metric::Bandwidth, super::ops::limit::MEMCPY, bytes)
        };
        self.results.rows.iter().find(is_it)?.bandwidth
    }

    /// Writes, draws and compares as asked for.
    pub fn finish(mut self, args: &Args) -> anyhow::Result<ExitCode> {
        self.out.done();
        let rows = &self.results.rows;
        let checks: u64 = rows.iter().map(|row| row.checks).sum();
        self.out.line(&format!(
            "\ndata right in all {} rows ({checks} checks)",
            rows.len()
        ))?;
        let mut status = ExitCode::SUCCESS;
        if let Some(runs) = &self.runs {
            let parameters = serde_json::to_value(&self.results.parameters)?;
            let comparison = Comparison::of(runs, &parameters, rows);
            self.out.line(&comparison.to_string())?;
            if args
                .fail_if_slower
                .is_some_and(|percent| comparison.is_slower(percent))
            {
                status = ExitCode::FAILURE;
            }
            self.results.comparison = Some(comparison);
        }
        if let Some(path) = &args.csv {
            self.out.write(path, &csv::text(&self.results.rows))?;
        }
        if let Some(path) = &args.plot {
            let picture = plot::svg(&self.results.parameters.title(), &self.results.rows)?;
            self.out.write(path, &picture)?;
        }
        self.out.json(args, &self.results)?;
        Ok(status)
    }
}

/// Checks before measuring that the files can be written. Leaves them as they are.
pub fn check_writable(args: &Args) -> anyhow::Result<()> {
    let paths = [&args.json, &args.csv, &args.plot].into_iter().flatten();
    let mut files = paths.filter(|path| path.as_os_str() != "-");
    Ok(files.try_for_each(|path| oxshmem_figures::check_writable(path))?)
}
