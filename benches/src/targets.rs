//! The speed targets: the compared figures, and the bounds that they must meet.

mod rows;
mod target;

use oxshmem_figures::Bound;
use serde::Serialize;

use crate::samples::Samples;
use crate::statistics::{Spread, Summary};
use target::Target;

pub use target::{Group, Source};

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
    use crate::samples::Side;
    use clap::ValueEnum;

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
