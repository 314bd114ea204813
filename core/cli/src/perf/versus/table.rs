//! The results: for each row both sides' figures, their ratio, and the cost of an operation.

use oxshmem_figures::Bound;
use serde::Serialize;

use super::row::{Posting, Row, Unit};

/// A median and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub median: f64,
    /// The ends of the median's interval of about 95 % confidence.
    pub low: f64,
    pub high: f64,
}

impl Summary {
    /// The summary of samples in any order; `None` for none. The interval's ends are samples, found
    /// by rank, so that no distribution is assumed. With less than 6 samples it spans them all.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let cut = ((count - 1.96 * count.sqrt()) / 2.0).max(0.0) as usize;
        let middle = sorted.len().checked_sub(1)?;
        Some(Summary {
            median: f64::midpoint(sorted[middle / 2], sorted[sorted.len() / 2]),
            low: sorted[cut],
            high: sorted[middle - cut],
        })
    }
}

/// The cost of one operation at the PE that issues it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// `None` if strace is not installed or cannot attach.
    pub system_calls: Option<f64>,
    pub requests: f64,
    pub doorbells: f64,
    pub completions: f64,
}

impl Cost {
    /// perftest's cost, by its sources.
    pub fn posted(posting: Posting, system_calls: Option<f64>) -> Cost {
        let Posting {
            requests,
            doorbells,
            completions,
        } = posting;
        Cost {
            system_calls,
            requests,
            doorbells,
            completions,
        }
    }
}

/// One row's results.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub name: &'static str,
    pub bytes: usize,
    pub unit: Unit,
    /// Operations of one round.
    pub count: u64,
    pub perftest: String,
    pub oxshmem_rounds: Vec<f64>,
    pub perftest_rounds: Vec<f64>,
    pub oxshmem: Option<Summary>,
    pub theirs: Option<Summary>,
    /// oxshmem's figure divided by perftest's of the same round.
    pub ratio: Option<Summary>,
    pub target: Bound,
    pub met: Option<bool>,
    pub oxshmem_cost: Option<Cost>,
    pub perftest_cost: Option<Cost>,
}

impl Compared {
    /// The results of rounds in which both sides were measured.
    pub fn new(row: &Row, count: u64, rounds: &[(f64, f64)], target: Bound) -> Compared {
        let (ours, theirs): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
        let ratios: Vec<f64> = rounds.iter().map(|(ours, theirs)| ours / theirs).collect();
        let ratio = Summary::of(&ratios);
        Compared {
            name: row.name,
            bytes: row.bytes,
            unit: row.unit,
            count,
            perftest: [&[row.program], row.args].concat().join(" "),
            oxshmem: Summary::of(&ours),
            theirs: Summary::of(&theirs),
            ratio,
            target,
            met: ratio.map(|ratio| target.met(ratio.median)),
            oxshmem_cost: None,
            perftest_cost: None,
            oxshmem_rounds: ours,
            perftest_rounds: theirs,
        }
    }

    /// A line of the first table.
    pub fn times(&self) -> String {
        let of = |summary: Option<Summary>| {
            summary.map_or("-".into(), |summary| shown(self.unit, summary.median))
        };
        let ratio = self.ratio.map_or("-".into(), |ratio| {
            format!("{:.2}  {:.2} to {:.2}", ratio.median, ratio.low, ratio.high)
        });
        let verdict = match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not measured",
        };
        let target = format!("{:.2}", self.target);
        format!(
            "{:<12}{:>12}{:>12}  {ratio:<20}{target:<9}{verdict}",
            self.name,
            of(self.oxshmem),
            of(self.theirs)
        )
    }

    /// A line of the second table.
    pub fn costs(&self) -> Option<String> {
        let (ours, theirs) = (self.oxshmem_cost?, self.perftest_cost?);
        let pair = |ours: f64, theirs: f64| format!("{ours:.2} / {theirs:.2}");
        let calls = match (ours.system_calls, theirs.system_calls) {
            (Some(ours), Some(theirs)) => pair(ours, theirs),
            _ => "-".into(),
        };
        Some(format!(
            "{:<12}{calls:>16}{:>16}{:>16}{:>16}",
            self.name,
            pair(ours.requests, theirs.requests),
            pair(ours.doorbells, theirs.doorbells),
            pair(ours.completions, theirs.completions),
        ))
    }
}

/// The head of the table of [`Compared::times`].
pub fn times_header() -> String {
    format!(
        "{:<12}{:>12}{:>12}  {:<20}{:<9}{}",
        "", "oxshmem", "perftest", "ratio", "target", "verdict"
    )
}

/// The head of the table of [`Compared::costs`].
pub fn costs_header() -> String {
    format!(
        "{:<12}{:>16}{:>16}{:>16}{:>16}",
        "", "system calls", "work requests", "doorbells", "completions"
    )
}

/// A figure with three digits.
fn shown(unit: Unit, figure: f64) -> String {
    let (value, name) = match unit {
        Unit::Nanoseconds => (figure / 1e3, "µs"),
        Unit::Bandwidth => (figure / 1e6, "MB/s"),
        Unit::Rate => (figure / 1e3, "k/s"),
    };
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::versus::row::ROWS;

    #[test]
    fn of_fifteen_rounds_three_at_each_end_are_left_out() {
        let samples: Vec<f64> = (0..15).rev().map(f64::from).collect();
        let summary = Summary::of(&samples).unwrap();
        assert_eq!(
            (summary.median, summary.low, summary.high),
            (7.0, 3.0, 11.0)
        );
        assert_eq!(Summary::of(&[]), None);
        let few = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((few.median, few.low, few.high), (2.5, 1.0, 4.0));
    }

    #[test]
    fn ratios_are_of_figures_of_the_same_round() {
        // Noise that slows both sides of a round does not count.
        let rounds = [(10.0, 10.0), (50.0, 50.0), (11.0, 10.0)];
        let compared = Compared::new(&ROWS[0], 100, &rounds, Bound::AtMost(1.15));
        assert_eq!(compared.ratio.unwrap().median, 1.0);
        assert_eq!(compared.met, Some(true));
        let line = compared.times();
        assert!(
            line.starts_with("put 8 B") && line.ends_with("met"),
            "{line}"
        );
        let none = Compared::new(&ROWS[0], 100, &[], Bound::AtMost(1.15));
        assert_eq!(none.met, None);
        assert!(none.times().ends_with("not measured"));
        assert_eq!(none.costs(), None);
    }

    #[test]
    fn rows_line_up_with_their_headers() {
        let mut compared = Compared::new(&ROWS[1], 1, &[(5e3, 4e3)], Bound::AtMost(1.15));
        let cost = Cost::posted(ROWS[1].posting, Some(1.0));
        (compared.oxshmem_cost, compared.perftest_cost) = (Some(cost), Some(cost));
        let column = |line: &str, word: &str| line.find(word).map(|at| line[..at].chars().count());
        let times = compared.times();
        assert_eq!(column(&times, "<= 1.15"), column(&times_header(), "target"));
        let costs = compared.costs().unwrap();
        assert_eq!(costs.chars().count(), costs_header().chars().count());
    }
}
