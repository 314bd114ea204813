//! The speed targets: the compared figures, and the bounds that they must meet.

mod rows;

use clap::ValueEnum;
use oxshmem_figures::Bound;
use serde::{Deserialize, Serialize};

use crate::samples::{Samples, Side};
use crate::statistics::{Spread, Summary};

/// A group of rows that is measured together, and can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Single operations between 2 PEs, UCX's among them.
    Micro,
    /// Barrier with 4 and 8 PEs.
    Barrier,
    /// Collective calls.
    Collectives,
    /// Updates of random words.
    Gups,
    /// A parallel integer sort.
    Sort,
    /// Calls as other benchmarks time them: windows of puts, a broadcast alone after a barrier.
    Patterns,
    /// Message rates of two threads.
    Threads,
    /// The duration of an empty program, the first use of memory, and a PE's resident memory.
    Start,
}

/// The language of both sides' programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Ours in Rust, by its own API, and the other's in C.
    #[default]
    Rust,
    /// Both the same C, each built and started by its own side's `oshcc` and `oshrun`.
    C,
}

impl Source {
    /// Whether our program has rows of this group.
    #[must_use]
    pub fn has(self, group: Group) -> bool {
        self == Source::Rust || group != Group::Threads
    }
}

/// One figure out of [`Samples`]: the least of some rows of one side (several if the limit is the
/// best of several methods).
#[derive(Clone, Debug)]
struct Figure {
    side: Side,
    rows: Vec<String>,
}

impl Figure {
    fn in_round(&self, samples: &Samples, round: usize) -> Option<f64> {
        let rows = self.rows.iter();
        let values = rows.filter_map(|row| samples.in_round(self.side, row, round));
        values.min_by(f64::total_cmp)
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
struct Target {
    group: Group,
    name: String,
    unit: &'static str,
    value: Figure,
    /// The figure of the same round that the value is divided by; `None` for a plain value.
    by: Option<Figure>,
    bound: Option<Bound>,
}

/// The outcome of one line.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The measured quantity.
    pub name: String,
    /// Its unit: `ratio`, `ns`, `s` or `MiB`.
    pub unit: &'static str,
    /// The measured value; `None` if no round gave it.
    pub measured: Option<Summary>,
    /// The target; `None` if the figure is only for information.
    pub target: Option<Bound>,
    /// Whether the target was met.
    pub met: Option<bool>,
    /// The distance to a missed target, in percent of the target.
    pub missed_by_percent: Option<f64>,
}

impl Verdict {
    /// The headings of [`cells`](Self::cells).
    pub const HEADINGS: [&'static str; 6] = [
        "comparison",
        "median",
        "interval",
        "unit",
        "target",
        "verdict",
    ];

    /// The cells of a table's line.
    #[must_use]
    pub fn cells(&self) -> [String; 6] {
        let (median, interval) = self.measured.map_or_else(Default::default, |measured| {
            (
                format!("{:.3}", measured.median),
                format!("{:.3}", measured.spread),
            )
        });
        let target = self.target.map(|target| target.to_string());
        let (unit, target) = (self.unit.into(), target.unwrap_or_default());
        [
            self.name.clone(),
            median,
            interval,
            unit,
            target,
            self.words(),
        ]
    }

    /// The text of the last column.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.met, self.missed_by_percent) {
            (None, _) if self.measured.is_none() => "not measured".into(),
            (None, _) => "-".into(),
            (Some(true), _) => "met".into(),
            (Some(false), None) => "not measured".into(),
            (Some(false), Some(by)) => {
                let spans = self
                    .measured
                    .zip(self.target)
                    .is_some_and(|(measured, target)| match measured.spread {
                        Spread::Interval(low, high) => target.met(low) || target.met(high),
                        Spread::Rounds(..) => false,
                    });
                let noise = if spans { " (within its interval)" } else { "" };
                format!("missed by {by:.1} %{noise}")
            }
        }
    }
}

/// Judges the samples of these groups.
#[must_use]
pub fn judge(samples: &Samples, source: Source, groups: &[Group]) -> Vec<Verdict> {
    let chosen = rows::all(source).filter(|target| groups.contains(&target.group));
    chosen.map(|target| judge_one(target, samples)).collect()
}

fn judge_one(target: Target, samples: &Samples) -> Verdict {
    let in_round = |round| {
        let value = target.value.in_round(samples, round)?;
        match &target.by {
            Some(by) => Some(value / by.in_round(samples, round)?),
            None => Some(value),
        }
    };
    let values: Vec<f64> = (0..samples.rounds()).filter_map(in_round).collect();
    let measured = Summary::of(&values);
    let met = target
        .bound
        .map(|bound| measured.is_some_and(|value| bound.met(value.median)));
    let missed = |bound: Bound, value: Summary| {
        (!bound.met(value.median))
            .then(|| 100.0 * (value.median - bound.limit()).abs() / bound.limit())
    };
    Verdict {
        missed_by_percent: target
            .bound
            .zip(measured)
            .and_then(|(bound, value)| missed(bound, value)),
        name: target.name,
        unit: target.unit,
        measured,
        target: target.bound,
        met,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rows: &[(Side, &str, f64)]) -> Samples {
        let mut samples = Samples::default();
        for (side, row, value) in rows {
            samples.add(*side, row, 0, *value);
        }
        samples
    }

    fn verdict(samples: &Samples, name: &str) -> Verdict {
        judge(samples, Source::Rust, &[Group::Micro])
            .into_iter()
            .find(|verdict| verdict.name == name)
            .unwrap()
    }

    #[test]
    fn a_ratio_is_judged_within_its_round() {
        let samples = samples(&[(Side::Oxshmem, "put8", 2.0), (Side::Oshmem, "put8", 10.0)]);
        let verdict = verdict(&samples, "8-byte put / OSHMEM");
        assert_eq!(verdict.measured.map(|value| value.median), Some(0.2));
        assert_eq!((verdict.met, verdict.words().as_str()), (Some(true), "met"));
    }

    #[test]
    fn only_what_was_to_be_measured_is_judged() {
        let samples = Samples::default();
        for source in [Source::Rust, Source::C] {
            let of = |groups: &[Group]| judge(&samples, source, groups).len();
            assert_eq!(of(&[]), 0);
            for group in Group::value_variants() {
                assert_eq!(
                    of(&[*group]) > 0,
                    source.has(*group),
                    "{source:?}, {group:?}"
                );
            }
            let each: usize = Group::value_variants()
                .iter()
                .map(|group| of(&[*group]))
                .sum();
            assert_eq!(of(Group::value_variants()), each);
        }
    }

    #[test]
    fn of_one_source_ours_is_to_be_ahead_at_every_row_and_far_ahead_at_some() {
        for (row, name, times) in [
            ("p8", "8-byte p", 2.0),
            ("put_8", "putmem 8 B", 2.0),
            ("ping_pong", "ping-pong", 1.5),
            ("barrier_2", "barrier, 2 PEs", 1.5),
            ("get_16777216", "getmem 16 MiB", 1.0),
            ("allreduce_1048576_8", "allreduce 1 MiB, 8 PEs", 1.0),
        ] {
            for (ours, met) in [(1.0, true), (1.001, false)] {
                let samples = samples(&[(Side::Oxshmem, row, ours), (Side::Oshmem, row, times)]);
                let verdicts = judge(&samples, Source::C, Group::value_variants());
                let verdict = verdicts.iter().find(|verdict| verdict.measured.is_some());
                let verdict = verdict.map(|verdict| (verdict.name.as_str(), verdict.met));
                let name = format!("{name}: times OSHMEM's speed");
                assert_eq!(verdict, Some((name.as_str(), Some(met))));
            }
        }
    }

    #[test]
    fn a_miss_says_by_how_much() {
        let samples = samples(&[
            (Side::Oxshmem, "put_1024", 20.0),
            (Side::Oxshmem, "memcpy_put_1024", 9.7),
        ]);
        let verdict = verdict(&samples, "put 1 KiB: times memcpy's speed");
        assert_eq!(
            (verdict.met, verdict.words().as_str()),
            (Some(false), "missed by 50.0 %")
        );
    }

    #[test]
    fn a_miss_is_within_an_interval_where_there_is_one() {
        for (rounds, words) in [
            (5, "missed by 50.0 %"),
            (7, "missed by 50.0 % (within its interval)"),
        ] {
            let mut samples = Samples::default();
            for round in 0..rounds {
                let times = if round == 0 { 1.0 } else { 3.0 };
                samples.add(Side::Oxshmem, "quiet_clean", round, times);
            }
            let verdict = verdict(&samples, "quiet, clean");
            assert_eq!(verdict.words(), words, "{rounds} rounds");
        }
    }

    #[test]
    fn the_limit_is_the_best_way_that_was_measured() {
        let samples = samples(&[
            (Side::Oxshmem, "put_quiet", 12.0),
            (Side::Oxshmem, "store_mfence", 30.0),
            (Side::Oxshmem, "store_locked", 8.0),
        ]);
        let verdict = verdict(&samples, "put + quiet / store + fence");
        assert_eq!(verdict.measured.map(|value| value.median), Some(1.5));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let verdict = verdict(&Samples::default(), "quiet, clean");
        assert_eq!(
            (verdict.met, verdict.words().as_str()),
            (Some(false), "not measured")
        );
    }
}
