//! A comparison with earlier runs, row by row.

mod missing;
mod runs;
mod significance;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::metric::Metric;
use super::row::Row;
use super::statistics::median;
use super::table;

use missing::{Lack, Missing};
use runs::Key;
pub use runs::Runs;

/// The smallest change called significant. The position of a build's code alone can cause smaller
/// ones.
const NOTEWORTHY: f64 = 0.02;

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Better,
    Worse,
    /// No significant change.
    Same,
    /// Too few runs to tell.
    Unknown,
}

/// A row that both sides have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    metric: Metric,
    op: String,
    bytes: usize,
    /// Runs of each side that have the row.
    old_runs: usize,
    new_runs: usize,
    /// The median over each side's medians: nanoseconds of one operation, or percent of overlap.
    old: f64,
    new: f64,
    /// New time divided by old time; for overlap, the difference in percentage points.
    change: f64,
    /// The interval of the change with 95 % confidence, if there are enough runs.
    interval: Option<(f64, f64)>,
    /// The probability that the two sides differ so much by chance.
    probability: f64,
    verdict: Verdict,
}

/// All rows, and the circumstances that may explain the changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    changes: Vec<Change>,
    /// Parameters that differ between runs, in words.
    different: Vec<String>,
    /// Rows that some run lacks. Rows of one side only are not compared.
    missing: Vec<Missing>,
}

impl Comparison {
    /// Compares the rows just measured, and the new runs that count with them, with the earlier
    /// runs.
    pub fn of(runs: &Runs, parameters: &Value, rows: &[Row]) -> Self {
        let (mut both, mut missing) = (Vec::new(), Vec::new());
        for (key, now) in all_rows(runs, rows) {
            let earlier = runs.earlier.iter().filter_map(|run| run.median(key));
            let earlier: Vec<f64> = earlier.collect();
            let new = runs.new.iter().filter_map(|run| run.median(key));
            let new: Vec<f64> = new.chain(now.and_then(runs::median)).collect();
            let has = (earlier.len(), new.len());
            let lack = match now {
                None => Some(Lack::Now),
                Some(_) if earlier.is_empty() => Some(Lack::Then),
                Some(_) if has != (runs.earlier.len(), runs.new.len() + 1) => Some(Lack::Some),
                Some(_) => None,
            };
            missing.extend(lack.map(|lack| Missing::new(key, lack, has.0, has.1)));
            if now.is_some() && !earlier.is_empty() {
                both.push((key, earlier, new));
            }
        }
        let probabilities: Vec<f64> = both
            .iter()
            .map(|(_, old, new)| significance::rank_sum(old, new))
            .collect();
        let significant = significance::too_small(&probabilities);
        let changes: Vec<Change> = both
            .iter()
            .zip(probabilities.iter().zip(significant))
            .map(|((key, old, new), (p, significant))| Change::of(*key, old, new, *p, significant))
            .collect();
        let mut different = Vec::new();
        for run in runs.earlier.iter().chain(&runs.new) {
            note_differences("", &run.parameters, parameters, &mut different);
        }
        Comparison {
            different,
            missing,
            changes,
        }
    }

    /// Number of missing rows of this kind.
    fn lacking(&self, lack: Lack) -> usize {
        let is_so = |row: &&Missing| row.lack() == lack;
        self.missing.iter().filter(is_so).count()
    }

    /// Whether some row has become worse by more than this many percent.
    pub fn is_slower(&self, percent: f64) -> bool {
        let slower = |change: &&Change| change.verdict == Verdict::Worse && change.loss() > percent;
        self.changes.iter().any(|change| slower(&change))
    }

    /// A warning if there are too few runs to tell a change.
    fn too_few(&self) -> Option<String> {
        let rows = self.changes.len();
        let told = |change: &Change| {
            significance::together(change.old_runs, change.new_runs, rows).unwrap_or(rows + 1)
        };
        let fewest = self
            .changes
            .iter()
            .max_by_key(|change| told(change))
            .filter(|change| told(change) > 1)?;
        let runs = format!("{} earlier and {} new", fewest.old_runs, fewest.new_runs);
        let enough = significance::enough(rows);
        Some(match told(fewest) {
            needed if needed > rows => format!(
                "Too few runs to tell a change from chance: {runs}. {} of each tell one that all rows have, \
                 {enough} of each one of a single row.",
                significance::enough(1)
            ),
            needed => format!(
                "So few runs ({runs}) tell a change only where {needed} rows have one; {enough} of each tell \
                 one of a single row."
            ),
        })
    }
}

impl Change {
    fn of(key: Key<'_>, old: &[f64], new: &[f64], probability: f64, significant: bool) -> Change {
        let (metric, op, bytes, _) = key;
        let figure = move |old: f64, new: f64| match metric {
            Metric::Overlap => new - old,
            _ => new / old,
        };
        let (before, after) = (median(old), median(new));
        let change = figure(before, after);
        let worse = worse(metric, change);
        let verdict = match worse {
            _ if !significance::can_tell(old.len(), new.len()) => Verdict::Unknown,
            _ if !significant || worse.abs() < NOTEWORTHY => Verdict::Same,
            worse if worse > 0.0 => Verdict::Worse,
            _ => Verdict::Better,
        };
        Change {
            metric,
            op: op.into(),
            bytes,
            old_runs: old.len(),
            new_runs: new.len(),
            old: before,
            new: after,
            change,
            interval: significance::interval(old, new, figure),
            probability,
            verdict,
        }
    }

    /// The loss in percent: longer time, or less overlap; negative if it is better.
    fn loss(&self) -> f64 {
        100.0 * worse(self.metric, self.change)
    }

    fn is_noteworthy(&self) -> bool {
        worse(self.metric, self.change).abs() >= NOTEWORTHY
    }
}

/// The rows of all runs, each once. Those just measured come first.
fn all_rows<'a>(runs: &'a Runs, rows: &'a [Row]) -> Vec<(Key<'a>, Option<&'a Row>)> {
    let now = rows.iter().map(|row| (runs::key(row), Some(row)));
    let mut all: Vec<_> = now.collect();
    for row in runs
        .earlier
        .iter()
        .chain(&runs.new)
        .flat_map(|run| &run.rows)
    {
        let key = row.key();
        if !all.iter().any(|(known, _)| *known == key) {
            all.push((key, None));
        }
    }
    all
}

/// The loss as a share: longer time, or less overlap; negative if it is better.
fn worse(metric: Metric, change: f64) -> f64 {
    match metric {
        Metric::Overlap => -change / 100.0,
        _ => change - 1.0,
    }
}

/// Notes in words the parameters whose value differs from the present one. Of the effort, only the
/// handling of each batch's data counts, not the duration.
fn note_differences(within: &str, old: &Value, new: &Value, noted: &mut Vec<String>) {
    let none = Map::new();
    let [old, new] = [old, new].map(|value| value.as_object().unwrap_or(&none));
    let only_old = old
        .keys()
        .filter(|name| !within.is_empty() && !new.contains_key(*name));
    let counts = |name: &&String| within != "effort" || *name == "validate";
    for name in new.keys().chain(only_old).filter(counts) {
        let [old, new] = [old, new].map(|values| values.get(name).unwrap_or(&Value::Null));
        if new.is_object() {
            note_differences(name, old, new, noted);
        } else if old != new {
            let different = format!("{name} {new}, was {old}");
            if !noted.contains(&different) {
                noted.push(different);
            }
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nCompared with earlier runs:")?;
        for different in &self.different {
            writeln!(f, "not alike: {different}")?;
        }
        let shown = |change: &&Change| change.verdict != Verdict::Same && change.is_noteworthy();
        let changed: Vec<&Change> = self.changes.iter().filter(shown).collect();
        for change in &changed {
            writeln!(f, "{change}")?;
        }
        for lack in [Lack::Now, Lack::Then, Lack::Some] {
            missing::show(&self.missing, lack, f)?;
        }
        let certain = changed
            .iter()
            .filter(|change| change.verdict != Verdict::Unknown);
        write!(
            f,
            "{} of {} rows changed significantly",
            certain.count(),
            self.changes.len()
        )?;
        match (self.lacking(Lack::Now), self.lacking(Lack::Then)) {
            (0, 0) => {}
            (old, new) => write!(f, "; {old} were measured only then, {new} only now")?,
        }
        self.too_few().map_or(Ok(()), |told| write!(f, "\n{told}"))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = table::name(self.metric, &self.op, self.bytes);
        let Change {
            change, interval, ..
        } = self;
        let (better, worse) = match self.metric {
            Metric::Overlap => ("more", "less"),
            _ => ("faster", "slower"),
        };
        let verdict = match self.verdict {
            Verdict::Better => better,
            Verdict::Worse => worse,
            Verdict::Same => "the same",
            Verdict::Unknown => "unclear",
        };
        write!(f, "{name:<36}{verdict:<9}")?;
        match (self.metric, interval) {
            (Metric::Overlap, None) => write!(f, "{change:+.0} % of it"),
            (Metric::Overlap, Some((low, high))) => {
                write!(f, "{change:+.0} % of it ({low:+.0} to {high:+.0})")
            }
            (_, None) => write!(f, "{change:.3} of the time"),
            (_, Some((low, high))) => {
                write!(f, "{change:.3} of the time ({low:.3} to {high:.3})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::runs::Run;
    use super::*;
    use crate::perf::table::tests::example;
    use serde_json::json;

    fn row(metric: Metric, op: &'static str, around: f64) -> Row {
        let mut row = example(metric, op, 8, around);
        row.overlap = row.overlap.map(|_| around);
        row
    }

    /// Copies of the rows as so many runs, no two with the same figures.
    fn runs(rows: &[Row], count: usize) -> Vec<Run> {
        let run = |i| {
            let rows: Vec<Row> = rows
                .iter()
                .map(|old| {
                    let around = old.overlap.unwrap_or(old.time_ns.median);
                    row(old.metric, old.op, around * (1.0 + i as f64 / 1e4))
                })
                .collect();
            let parameters = json!({
                "pes": 4,
                "effort": {"batch": 1, "validate": true},
                "settings": {"OXSHMEM_SPIN": "5", "OXSHMEM_CHECK": "1"}
            });
            serde_json::from_value(json!({"parameters": parameters, "rows": rows})).unwrap()
        };
        (1..=count).map(run).collect()
    }

    fn compared(old: &[Row], new: &[Row], count: usize) -> Comparison {
        let both = Runs {
            earlier: runs(old, count),
            new: runs(new, count - 1),
        };
        let parameters = json!({
            "pes": 2,
            "effort": {"batch": 2, "validate": false},
            "settings": {"OXSHMEM_SPIN": "5", "OXSHMEM_SEED": "7"}
        });
        Comparison::of(&both, &parameters, new)
    }

    fn verdicts(comparison: &Comparison) -> Vec<Verdict> {
        let verdict = |change: &Change| change.verdict;
        comparison.changes.iter().map(verdict).collect()
    }

    fn latencies(times: [f64; 4]) -> Vec<Row> {
        let row = |(op, time): (&'static str, f64)| row(Metric::Latency, op, time);
        ["put", "get", "p", "g"]
            .into_iter()
            .zip(times)
            .map(row)
            .collect()
    }

    #[test]
    fn what_changed_is_told_from_what_did_not() {
        // The change of g is certain, but too small.
        let (old, new) = (
            latencies([1000.0, 1000.0, 1000.0, 1000.0]),
            latencies([1500.0, 500.0, 1000.0, 1010.0]),
        );
        let comparison = compared(&old, &new, 7);
        use Verdict::{Better, Same, Worse};
        assert_eq!(verdicts(&comparison), [Worse, Better, Same, Same]);
        assert!(comparison.is_slower(40.0) && !comparison.is_slower(60.0));
        let text = comparison.to_string();
        assert!(text.contains("2 of 4 rows changed significantly"), "{text}");
        assert!(text.contains("latency of put, 8 B"), "{text}");
        assert!(
            text.contains("slower   1.500 of the time (1.499 to 1.500)"),
            "{text}"
        );
        assert!(
            text.contains("faster   0.500 of the time (0.500 to 0.500)"),
            "{text}"
        );
        // Each difference once, without those that may vary from run to run.
        let differences = [
            "pes 2, was 4",
            "validate false, was true",
            "OXSHMEM_SEED \"7\", was null",
            "OXSHMEM_CHECK null, was \"1\"",
        ];
        let mut different = comparison.different.clone();
        different.sort();
        let mut expected = differences.map(String::from);
        expected.sort();
        assert_eq!(different, expected);
    }

    #[test]
    fn so_few_runs_that_chance_could_do_as_much_prove_nothing() {
        let (old, new) = (latencies([1000.0; 4]), latencies([3000.0; 4]));
        let comparison = compared(&old, &new, 1);
        assert_eq!(verdicts(&comparison), [Verdict::Unknown; 4]);
        assert!(!comparison.is_slower(1.0));
        let text = comparison.to_string();
        assert!(text.contains("unclear  3.000 of the time\n"), "{text}");
        assert!(text.contains("0 of 4 rows changed significantly"), "{text}");
        assert!(text.contains("1 earlier and 1 new. 5 of each"), "{text}");
        // Enough runs for all rows together, but not for a single one.
        assert_eq!(verdicts(&compared(&old, &new, 5)), [Verdict::Worse; 4]);
        let one = compared(&old, &latencies([3000.0, 1000.0, 1000.0, 1000.0]), 5);
        assert_eq!(verdicts(&one), [Verdict::Same; 4]);
        let text = one.to_string();
        assert!(
            text.contains("only where 4 rows have one; 6 of each"),
            "{text}"
        );
    }

    #[test]
    fn more_overlap_is_better_and_more_time_is_not_at_any_metric() {
        let rows = |around: f64| {
            [Metric::Overlap, Metric::Bandwidth, Metric::Rate].map(|m| row(m, "put-nbi", around))
        };
        let comparison = compared(&rows(20.0), &rows(70.0), 7);
        use Verdict::{Better, Worse};
        assert_eq!(verdicts(&comparison), [Better, Worse, Worse]);
        assert!(comparison.to_string().contains("more     +50 % of it"));
        let comparison = compared(&rows(70.0), &rows(20.0), 7);
        assert_eq!(verdicts(&comparison), [Worse, Better, Better]);
        assert!(comparison.is_slower(49.0) && !comparison.is_slower(51.0));
    }

    #[test]
    fn rows_of_one_side_only_are_named() {
        let old = [
            row(Metric::Latency, "put", 9.0),
            row(Metric::Latency, "p", 9.0),
        ];
        let new = [
            row(Metric::Latency, "put", 9.0),
            row(Metric::Rate, "p", 9.0),
        ];
        let comparison = compared(&old, &new, 2);
        assert_eq!(comparison.changes.len(), 1);
        let text = comparison.to_string();
        assert!(
            text.contains("1 were measured only then, 1 only now"),
            "{text}"
        );
        assert!(
            text.contains("measured only then: latency of p: 8 B\n"),
            "{text}"
        );
        assert!(
            text.contains("measured only now: rate of p: 8 B (window 64, threads 1)\n"),
            "{text}"
        );
    }

    #[test]
    fn rows_that_some_runs_lack_are_compared_and_named() {
        let all = [
            row(Metric::Latency, "put", 9.0),
            row(Metric::Latency, "p", 9.0),
            row(Metric::Latency, "g", 9.0),
            row(Metric::Latency, "add", 9.0),
        ];
        let [put, p, g, add] = &all;
        let of = |rows: &[&Row]| {
            let rows: Vec<Row> = rows.iter().map(|row| (*row).clone()).collect();
            runs(&rows, 1).remove(0)
        };
        let both = Runs {
            earlier: vec![of(&[put, p, add]), of(&[p, add])],
            new: vec![of(&[put, p])],
        };
        let comparison = Comparison::of(&both, &json!({}), &[put.clone(), g.clone()]);
        let names: Vec<&str> = comparison.changes.iter().map(|c| &*c.op).collect();
        assert_eq!(names, ["put"]);
        let text = comparison.to_string();
        assert!(
            text.contains("not in all runs (in 1 earlier and 2 new): latency of put: 8 B\n"),
            "{text}"
        );
        assert!(
            text.contains("measured only then: latency of p, add: 8 B\n"),
            "{text}"
        );
        assert!(
            text.contains("measured only now: latency of g: 8 B\n"),
            "{text}"
        );
        assert!(
            text.contains("2 were measured only then, 1 only now"),
            "{text}"
        );
    }
}
