//! Comparison with an earlier run, row by row.

mod significance;

use std::fmt;
use std::path::Path;

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::measure::Task;
use super::metric::Metric;
use super::row::Row;
use super::statistics::median;
use super::table;

/// Of the changes that are called significant at most this share is so by chance.
const CHANCE: f64 = 0.01;
/// Smaller changes are not called significant: where a run's memory and code happen to lie does as
/// much.
const NOTEWORTHY: f64 = 0.02;

/// Results that cannot be compared with; the exit status is 2.
#[derive(Debug)]
pub struct Unable(anyhow::Error);

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Unable {}

/// An earlier run.
#[derive(Deserialize)]
pub struct Earlier {
    parameters: Value,
    rows: Vec<EarlierRow>,
}

#[derive(Deserialize)]
struct EarlierRow {
    metric: Metric,
    op: String,
    bytes: usize,
    window: u64,
    threads: u32,
    samples: Vec<f64>,
}

impl Earlier {
    /// Reads a run that has one of these rows at least.
    pub fn read(path: &Path, plan: &[Task]) -> Result<Self, Unable> {
        let named = || format!("cannot compare with {}", path.display());
        let text = std::fs::read_to_string(path)
            .with_context(named)
            .map_err(Unable)?;
        let earlier: Earlier = serde_json::from_str(&text)
            .map_err(|error| anyhow!("it is not what oxshmem perf --json writes: {error}"))
            .with_context(named)
            .map_err(Unable)?;
        let known = |task: &Task| {
            let key = (
                task.metric,
                task.op.name,
                task.bytes,
                (task.window, task.threads),
            );
            earlier.rows.iter().any(|row| row.key() == key)
        };
        if !plan.iter().any(known) {
            let what = "it has none of the rows that are measured now; give the same operations, \
                        --metric, --sizes, --window and --threads";
            return Err(Unable(anyhow!(what).context(named())));
        }
        Ok(earlier)
    }
}

impl EarlierRow {
    fn key(&self) -> (Metric, &str, usize, (u64, u32)) {
        (
            self.metric,
            &self.op,
            self.bytes,
            (self.window, self.threads),
        )
    }
}

/// How a row came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Better,
    Worse,
    /// No significant change.
    Same,
}

/// A row of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    metric: Metric,
    op: &'static str,
    bytes: usize,
    /// Medians: nanoseconds of one operation, or percent of overlap.
    old: f64,
    new: f64,
    /// New time divided by old; of overlap, percent that came to it.
    change: f64,
    /// Where it lies with about 95 % confidence.
    low: f64,
    high: f64,
    /// That the two would differ so much by chance.
    probability: f64,
    verdict: Verdict,
}

/// All of them.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// What was different: parameters of the two runs.
    different: Vec<String>,
    changes: Vec<Change>,
    /// Rows of one run only.
    only_old: usize,
    only_new: usize,
}

impl Comparison {
    pub fn of(earlier: &Earlier, parameters: &Value, rows: &[Row]) -> Self {
        let pairs: Vec<(&EarlierRow, &Row)> = rows
            .iter()
            .filter_map(|new| {
                let key = (new.metric, new.op, new.bytes, (new.window, new.threads));
                let old = earlier.rows.iter().find(|row| row.key() == key)?;
                Some((old, new))
            })
            .collect();
        let probabilities: Vec<f64> = pairs
            .iter()
            .map(|(old, new)| significance::rank_sum(&old.samples, &new.samples))
            .collect();
        let significant = significance::too_small(&probabilities, CHANCE);
        let changes: Vec<Change> = pairs
            .iter()
            .zip(probabilities.iter().zip(significant))
            .map(|((old, new), (p, significant))| Change::of(old, new, *p, significant))
            .collect();
        Comparison {
            different: different(&earlier.parameters, parameters),
            only_old: earlier.rows.len().saturating_sub(changes.len()),
            only_new: rows.len() - changes.len(),
            changes,
        }
    }

    /// Whether some row has become worse by more than so many percent.
    pub fn is_slower(&self, percent: f64) -> bool {
        let slower = |change: &&Change| change.verdict == Verdict::Worse && change.loss() > percent;
        self.changes.iter().any(|change| slower(&change))
    }
}

impl Change {
    fn of(old: &EarlierRow, new: &Row, probability: f64, significant: bool) -> Change {
        let metric = new.metric;
        let figure = move |old: f64, new: f64| match metric {
            Metric::Overlap => new - old,
            _ => new / old,
        };
        let (before, after) = (median(&old.samples), median(&new.samples));
        let change = figure(before, after);
        let (low, high) = significance::interval(&old.samples, &new.samples, figure);
        // Positive if it is worse, as a share.
        let worse = match new.metric {
            Metric::Overlap => -change / 100.0,
            _ => change - 1.0,
        };
        let verdict = match worse {
            _ if !significant || worse.abs() < NOTEWORTHY => Verdict::Same,
            worse if worse > 0.0 => Verdict::Worse,
            _ => Verdict::Better,
        };
        Change {
            metric: new.metric,
            op: new.op,
            bytes: new.bytes,
            old: before,
            new: after,
            change,
            low,
            high,
            probability,
            verdict,
        }
    }

    /// How much longer it takes, or how much overlap is lost, in percent; negative if it is better.
    fn loss(&self) -> f64 {
        match self.metric {
            Metric::Overlap => -self.change,
            _ => (self.change - 1.0) * 100.0,
        }
    }
}

/// Parameters that have another value than they had, in words. What says how long was measured does
/// not matter.
fn different(old: &Value, new: &Value) -> Vec<String> {
    let Some(new) = new.as_object() else {
        return Vec::new();
    };
    new.iter()
        .filter(|(name, _)| *name != "effort")
        .filter_map(|(name, new)| {
            let old = old.get(name).unwrap_or(&Value::Null);
            (old != new).then(|| format!("{name} {new}, was {old}"))
        })
        .collect()
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nCompared with the earlier run:")?;
        for different in &self.different {
            writeln!(f, "not alike: {different}")?;
        }
        let changed = |change: &&Change| change.verdict != Verdict::Same;
        let changed: Vec<&Change> = self.changes.iter().filter(changed).collect();
        for change in &changed {
            writeln!(f, "{change}")?;
        }
        write!(
            f,
            "{} of {} rows changed significantly",
            changed.len(),
            self.changes.len()
        )?;
        match (self.only_old, self.only_new) {
            (0, 0) => Ok(()),
            (old, new) => write!(f, "; {old} were measured only then, {new} only now"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = table::name(self.metric, self.op, self.bytes);
        let Change {
            change, low, high, ..
        } = self;
        let (better, worse) = match self.metric {
            Metric::Overlap => ("more", "less"),
            _ => ("faster", "slower"),
        };
        let verdict = match self.verdict {
            Verdict::Better => better,
            Verdict::Worse => worse,
            Verdict::Same => "the same",
        };
        match self.metric {
            Metric::Overlap => write!(
                f,
                "{name:<36}{verdict:<9}{change:+.0} % of it ({low:+.0} to {high:+.0})"
            ),
            _ => write!(
                f,
                "{name:<36}{verdict:<9}{change:.3} of the time ({low:.3} to {high:.3})"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::table::tests::example;
    use serde_json::json;

    fn samples(around: f64) -> Vec<f64> {
        (0..40).map(|i| around + f64::from(i % 5)).collect()
    }

    fn row(metric: Metric, op: &'static str, around: f64) -> Row {
        Row {
            samples: samples(around),
            ..example(metric, op, 8, around)
        }
    }

    fn earlier(rows: &[Row]) -> Earlier {
        let json = json!({"parameters": {"pes": 4, "spin": "auto", "effort": 1}, "rows": rows});
        serde_json::from_value(json).unwrap()
    }

    fn compared(old: &[Row], new: &[Row]) -> Comparison {
        let parameters = json!({"pes": 2, "spin": "auto", "effort": 2});
        Comparison::of(&earlier(old), &parameters, new)
    }

    fn verdicts(comparison: &Comparison) -> Vec<Verdict> {
        let verdict = |change: &Change| change.verdict;
        comparison.changes.iter().map(verdict).collect()
    }

    #[test]
    fn what_changed_is_told_from_what_did_not() {
        let names = ["put", "get", "p", "g"];
        let rows = |times: [f64; 4]| -> Vec<Row> {
            let row = |(op, time): (&'static str, f64)| row(Metric::Latency, op, time);
            names.into_iter().zip(times).map(row).collect()
        };
        // Of g more is certain, but too little.
        let (old, new) = (
            rows([1000.0, 1000.0, 1000.0, 1000.0]),
            rows([1500.0, 500.0, 1000.0, 1010.0]),
        );
        let comparison = compared(&old, &new);
        use Verdict::{Better, Same, Worse};
        assert_eq!(verdicts(&comparison), [Worse, Better, Same, Same]);
        assert!(comparison.is_slower(40.0) && !comparison.is_slower(60.0));
        let text = comparison.to_string();
        assert!(text.contains("2 of 4 rows changed significantly"), "{text}");
        assert!(text.contains("latency of put, 8 B"), "{text}");
        assert!(text.contains("slower   1.499 of the time"), "{text}");
        assert!(text.contains("faster   0.501 of the time"), "{text}");
        // What may differ from run to run is not told.
        assert_eq!(comparison.different, ["pes 2, was 4"]);
    }

    #[test]
    fn more_overlap_is_better_and_more_time_is_not_at_any_metric() {
        let rows = |around: f64| {
            [Metric::Overlap, Metric::Bandwidth, Metric::Rate].map(|m| row(m, "put-nbi", around))
        };
        let comparison = compared(&rows(20.0), &rows(70.0));
        use Verdict::{Better, Worse};
        assert_eq!(verdicts(&comparison), [Better, Worse, Worse]);
        assert!(comparison.to_string().contains("more     +50 % of it"));
        let comparison = compared(&rows(70.0), &rows(20.0));
        assert_eq!(verdicts(&comparison), [Worse, Better, Better]);
        assert!(comparison.is_slower(49.0) && !comparison.is_slower(51.0));
    }

    #[test]
    fn rows_of_one_run_only_are_counted() {
        let old = [
            row(Metric::Latency, "put", 9.0),
            row(Metric::Latency, "p", 9.0),
        ];
        let new = [
            row(Metric::Latency, "put", 9.0),
            row(Metric::Rate, "p", 9.0),
        ];
        let comparison = compared(&old, &new);
        let counts = (
            comparison.changes.len(),
            comparison.only_old,
            comparison.only_new,
        );
        assert_eq!(counts, (1, 1, 1));
        assert!(
            comparison
                .to_string()
                .contains("1 were measured only then, 1 only now")
        );
    }

    #[test]
    fn what_cannot_be_compared_with_is_refused_with_the_reason() {
        let folder = std::env::temp_dir().join(format!("oxshmem-compare-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let refused = |text: &str| {
            let path = folder.join("old.json");
            std::fs::write(&path, text).unwrap();
            Earlier::read(&path, &[]).err().unwrap().to_string()
        };
        assert!(refused("{").contains("is not what oxshmem perf --json writes"));
        assert!(refused("{\"parameters\": {}, \"rows\": [{}]}").contains("missing field `metric`"));
        assert!(refused("{\"parameters\": {}, \"rows\": []}").contains("give the same operations"));
        let missing = Earlier::read(&folder.join("none.json"), &[]).err().unwrap();
        assert!(missing.to_string().contains("none.json"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
