//! Earlier runs, each from a file of `--json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::significance;
use crate::perf::args::Args;
use crate::perf::metric::Metric;
use crate::perf::row::Row;
use crate::perf::table;
use crate::perf::task::Task;
use crate::perf::unsupported::Unsupported;

/// Runs of a side at most: more would prove no more.
const MOST: usize = 32;

/// The runs of both sides, without the one being measured.
pub struct Runs {
    pub earlier: Vec<Run>,
    /// Runs that count with the one being measured.
    pub new: Vec<Run>,
}

/// One run.
#[derive(Deserialize)]
pub struct Run {
    pub parameters: Value,
    pub rows: Vec<RunRow>,
}

#[derive(Deserialize)]
pub struct RunRow {
    metric: Metric,
    op: String,
    bytes: usize,
    window: u64,
    threads: u32,
    time_ns: Median,
    overlap: Option<f64>,
}

#[derive(Deserialize)]
struct Median {
    median: f64,
}

/// The identity of a row.
pub type Key<'a> = (Metric, &'a str, usize, (u64, u32));

impl Runs {
    /// Reads the files that are asked for, if any. Each must have at least one of the rows of
    /// `plan`.
    pub fn read(args: &Args, plan: &[Task]) -> Result<Option<Self>, Unsupported> {
        if args.compare.is_empty() {
            return Ok(None);
        }
        let read = |paths: &[PathBuf]| -> Result<Vec<Run>, Unsupported> {
            paths.iter().map(|path| Run::read(path, plan)).collect()
        };
        let (earlier, new) = (args.compare.len(), args.with.len() + 1);
        let counted = || {
            ensure!(
                earlier.max(new) <= MOST,
                "{earlier} earlier runs and {new} new ones are more than is sensible; give {MOST} \
                 of a side at most"
            );
            ensure!(
                args.fail_if_slower.is_none() || significance::can_tell(earlier, new),
                "--fail-if-slower cannot tell from {earlier} earlier and {new} new runs what is \
                 chance; measure {} of each, and give their files to --compare and --with",
                significance::enough(1)
            );
            let mut named = BTreeSet::new();
            for path in args.compare.iter().chain(&args.with) {
                // A file that cannot be found is reported when it is read.
                let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                ensure!(
                    named.insert(file),
                    "{} is named twice; a run counts once: give each of --compare and --with a file \
                     of its own",
                    path.display()
                );
            }
            anyhow::Ok(())
        };
        counted().map_err(Unsupported)?;
        Ok(Some(Runs {
            earlier: read(&args.compare)?,
            new: read(&args.with)?,
        }))
    }
}

impl Run {
    fn read(path: &Path, plan: &[Task]) -> Result<Self, Unsupported> {
        let named = || format!("cannot compare with {}", path.display());
        let text = std::fs::read_to_string(path)
            .with_context(named)
            .map_err(Unsupported)?;
        let run = Run::parse(&text).with_context(named).map_err(Unsupported)?;
        let known = |task: &Task| {
            let key = (
                task.metric,
                task.op.name,
                task.bytes,
                (task.window, task.threads),
            );
            run.row(key).is_some()
        };
        if !plan.iter().any(known) {
            let what = "it has none of the rows that are measured now; give the same operations, \
                        --metric, --sizes, --window and --threads";
            return Err(Unsupported(anyhow!(what).context(named())));
        }
        Ok(run)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let run: Run = serde_json::from_str(text)
            .map_err(|error| anyhow!("it is not what oxshmem perf --json writes: {error}"))?;
        run.check_rows()?;
        Ok(run)
    }

    fn row(&self, key: Key<'_>) -> Option<&RunRow> {
        self.rows.iter().find(|row| row.key() == key)
    }

    /// The median of a row: nanoseconds of one operation, or percent of overlap.
    pub fn median(&self, key: Key<'_>) -> Option<f64> {
        self.row(key).and_then(RunRow::median)
    }

    /// Checks that no row appears twice.
    fn check_rows(&self) -> anyhow::Result<()> {
        let mut known = BTreeSet::new();
        for row in &self.rows {
            ensure!(
                known.insert(row.key()),
                "it has the row {} twice; give the file of one run",
                table::name(row.metric, &row.op, row.bytes)
            );
        }
        Ok(())
    }
}

impl RunRow {
    pub fn key(&self) -> Key<'_> {
        (
            self.metric,
            &self.op,
            self.bytes,
            (self.window, self.threads),
        )
    }

    fn median(&self) -> Option<f64> {
        match self.metric {
            Metric::Overlap => self.overlap,
            _ => Some(self.time_ns.median),
        }
    }
}

/// The key of a row just measured.
pub fn key(row: &Row) -> Key<'_> {
    (row.metric, row.op, row.bytes, (row.window, row.threads))
}

/// The median of a row just measured.
pub fn median(row: &Row) -> Option<f64> {
    match row.metric {
        Metric::Overlap => row.overlap,
        _ => Some(row.time_ns.median),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::perf::args::parsed;
    use crate::perf::compare::Comparison;

    #[test]
    fn what_cannot_be_compared_with_is_refused_with_the_reason() {
        let folder = std::env::temp_dir().join(format!("oxshmem-compare-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("old.json");
        let refused = |text: &str, args: &[&str]| {
            std::fs::write(&path, text).unwrap();
            let compare = ["--compare", path.to_str().unwrap()];
            let args = parsed(&[&compare, args].concat());
            Runs::read(&args, &[]).err().unwrap().to_string()
        };
        assert!(refused("{", &[]).contains("is not what oxshmem perf --json writes"));
        let text = refused("{\"parameters\": {}, \"rows\": [{}]}", &[]);
        assert!(text.contains("missing field `metric`"), "{text}");
        let row = r#"{"metric": "latency", "op": "put", "bytes": 8, "window": 1, "threads": 1, "time_ns": {"median": 1}}"#;
        let text = refused(
            &format!("{{\"parameters\": {{}}, \"rows\": [{row}, {row}]}}"),
            &[],
        );
        assert!(text.contains("latency of put, 8 B twice"), "{text}");
        let text = refused("{\"parameters\": {}, \"rows\": []}", &[]);
        assert!(text.contains("give the same operations"), "{text}");
        let text = refused("{", &["--fail-if-slower", "5"]);
        assert!(text.contains("measure 5 of each"), "{text}");
        let many = vec!["x.json"; MOST + 1].join(",");
        let text = refused("{", &["--compare", &many]);
        assert!(text.contains("32 of a side"), "{text}");
        // The list names the same file twice, by different paths.
        let same = format!("x.json,{}/./old.json", folder.display());
        for twice in [
            ["--compare", &same],
            ["--with", &same],
            ["--with", "x.json,x.json"],
        ] {
            let text = refused("{", &twice);
            assert!(text.contains("is named twice"), "{text}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(refused_missing(&path).contains("old.json"));
        assert!(Runs::read(&parsed(&[]), &[]).unwrap().is_none());
    }

    const RUN: &str = r#"{"parameters": {"pes": 2, "effort": {"batch": 1}}, "rows": [
        {"metric": "latency", "op": "put", "bytes": 8, "window": 1, "threads": 1, "time_ns": {"median": 1.5}},
        {"metric": "overlap", "op": "put-nbi", "bytes": 64, "window": 1, "threads": 1,
         "time_ns": {"median": 2e3}, "overlap": 30.0}]}"#;

    proptest! {
        /// Bytes of a results file that were changed, removed or inserted: the file is refused, or
        /// compared.
        #[test]
        fn damaged_results_are_refused_or_compared(
            changes in vec((any::<Index>(), 0..3, any::<u8>()), 0..4),
        ) {
            let mut bytes = RUN.as_bytes().to_vec();
            for (at, change, byte) in changes {
                let at = at.index(bytes.len());
                match change {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            let read = || Run::parse(&text);
            if let (Ok(earlier), Ok(new)) = (read(), read()) {
                let parameters = new.parameters.clone();
                let runs = Runs { earlier: vec![earlier], new: vec![new] };
                let told = Comparison::of(&runs, &parameters, &[]).to_string();
                prop_assert!(told.contains("0 of 0 rows"), "{told}");
            }
        }
    }

    fn refused_missing(path: &Path) -> String {
        let args = parsed(&["--compare", path.to_str().unwrap()]);
        Runs::read(&args, &[]).err().unwrap().to_string()
    }
}
