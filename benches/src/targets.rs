//! The speed targets: what is compared with what, and how it must come out.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::sizes::BLOCKS;
use crate::statistics::Summary;

/// Whose figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Open MPI's OpenSHMEM, by `peers.c`.
    Oshmem,
    /// oxshmem, and the limits measured beside it, by `peer`.
    Oxshmem,
}

/// All figures: for each side and row one per round, a failed round's missing.
pub type Samples = BTreeMap<(Side, String), BTreeMap<usize, f64>>;

/// How a figure must compare with the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Less is better.
    AtMost(f64),
    /// More is better.
    AtLeast(f64),
}

impl Bound {
    fn met(self, value: f64) -> bool {
        match self {
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
        }
    }

    fn limit(self) -> f64 {
        match self {
            Bound::AtMost(value) | Bound::AtLeast(value) => value,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::AtMost(value) => write!(f, "<= {value:.3}"),
            Bound::AtLeast(value) => write!(f, ">= {value:.3}"),
        }
    }
}

/// One figure out of [`Samples`]: the least of some rows of one side (several where the limit is
/// the best of several ways).
#[derive(Clone, Debug)]
struct Figure {
    side: Side,
    rows: Vec<String>,
}

impl Figure {
    fn in_round(&self, samples: &Samples, round: usize) -> Option<f64> {
        let of = |row: &String| samples.get(&(self.side, row.clone()))?.get(&round).copied();
        self.rows.iter().filter_map(of).min_by(f64::total_cmp)
    }
}

fn ours(row: impl Into<String>) -> Figure {
    Figure {
        side: Side::Oxshmem,
        rows: vec![row.into()],
    }
}

fn theirs(row: impl Into<String>) -> Figure {
    Figure {
        side: Side::Oshmem,
        rows: vec![row.into()],
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
struct Target {
    name: String,
    unit: &'static str,
    value: Figure,
    /// The value is divided by this figure of the same round; none for a plain value.
    by: Option<Figure>,
    bound: Option<Bound>,
}

/// The outcome of one line.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What was measured.
    pub name: String,
    /// Its unit: `ratio`, `ns`, `s` or `MiB`.
    pub unit: &'static str,
    /// What came out; none if no round gave it.
    pub measured: Option<Summary>,
    /// What was to be reached; none for a figure that is only told.
    pub target: Option<Bound>,
    /// Whether it was.
    pub met: Option<bool>,
    /// By how much it was missed, in percent of the target.
    pub missed_by_percent: Option<f64>,
}

impl Verdict {
    /// The last column.
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
                    .is_some_and(|(measured, target)| {
                        target.met(measured.low) || target.met(measured.high)
                    });
                let noise = if spans { " (within its interval)" } else { "" };
                format!("missed by {by:.1} %{noise}")
            }
        }
    }
}

fn table() -> Vec<Target> {
    let mut table = Vec::new();
    let mut ratio = |name: &str, value: Figure, by: Figure, bound: Option<Bound>| {
        table.push(Target {
            name: name.into(),
            unit: "ratio",
            value,
            by: Some(by),
            bound,
        });
    };
    let at_most = |value| Some(Bound::AtMost(value));
    let at_least = |value| Some(Bound::AtLeast(value));
    let best = |rows: &[&str]| Figure {
        side: Side::Oxshmem,
        rows: rows.iter().map(|row| (*row).into()).collect(),
    };
    let fenced = best(&["store_mfence", "store_locked"]);
    let bare = best(&[
        "bare_ping_pong",
        "bare_ping_pong_steps",
        "bare_ping_pong_pause",
    ]);

    ratio(
        "8-byte put / OSHMEM",
        ours("put8"),
        theirs("put8"),
        at_most(1.0 / 3.0),
    );
    ratio(
        "8-byte put / checked store",
        ours("put8"),
        ours("store8"),
        at_most(1.5),
    );
    ratio("8-byte p / OSHMEM", ours("p8"), theirs("p8"), None);
    ratio("8-byte p / checked store", ours("p8"), ours("store8"), None);
    ratio(
        "8-byte get / OSHMEM",
        ours("get8"),
        theirs("get8"),
        at_most(1.0 / 3.0),
    );
    ratio(
        "8-byte get / checked load",
        ours("get8"),
        ours("load8"),
        None,
    );
    ratio(
        "fetch-add / OSHMEM",
        ours("fetch_add8"),
        theirs("fetch_add8"),
        at_most(0.7),
    );
    ratio(
        "fetch-add / lock xadd",
        ours("fetch_add8"),
        ours("xadd8"),
        at_most(1.3),
    );
    ratio(
        "quiet, clean / OSHMEM",
        ours("quiet_clean"),
        theirs("quiet_clean"),
        None,
    );
    ratio(
        "put + quiet / OSHMEM",
        ours("put_quiet"),
        theirs("put_quiet"),
        None,
    );
    ratio(
        "put + quiet / store + fence",
        ours("put_quiet"),
        fenced,
        at_most(1.2),
    );
    for bytes in BLOCKS {
        let size = readable(bytes);
        for way in ["put", "get"] {
            let row = format!("{way}_{bytes}");
            let memcpy = ours(format!("memcpy_{row}"));
            let name = format!("{way} {size}: speed of memcpy's");
            ratio(&name, memcpy, ours(row.clone()), at_least(0.97));
            let name = format!("{way} {size}: speed of OSHMEM's");
            ratio(&name, theirs(row.clone()), ours(row), at_least(1.0));
        }
    }
    ratio("ping-pong / bare", ours("ping_pong"), bare, at_most(1.15));
    ratio(
        "ping-pong: times OSHMEM's",
        theirs("ping_pong"),
        ours("ping_pong"),
        at_least(1.5),
    );
    for (pes, least) in [(2, 2.0), (4, 1.5), (8, 1.5)] {
        let row = format!("barrier_{pes}");
        let name = format!("barrier, {pes} PEs: times OSHMEM's");
        ratio(&name, theirs(row.clone()), ours(row), at_least(least));
    }
    for pes in [4, 64] {
        let row = format!("empty_{pes}");
        let name = format!("empty program, {pes} PEs: times OSHMEM's");
        ratio(&name, theirs(row.clone()), ours(row), None);
    }

    let mut plain = |name: &str, unit, row: &str, bound| {
        table.push(Target {
            name: name.into(),
            unit,
            value: ours(row),
            by: None,
            bound,
        });
    };
    plain("8-byte put", "ns", "put8", None);
    plain("8-byte get", "ns", "get8", None);
    plain("fetch-add", "ns", "fetch_add8", None);
    plain("quiet, clean", "ns", "quiet_clean", at_most(2.0));
    plain("ping-pong, half round trip", "ns", "ping_pong", None);
    plain("empty program, 4 PEs", "s", "empty_4", at_most(0.1));
    plain("empty program, 64 PEs", "s", "empty_64", at_most(0.8));
    plain("resident a PE (PSS), 64 PEs", "MiB", "pss_64", at_most(8.0));
    plain("resident a PE (RSS), 64 PEs", "MiB", "rss_64", None);
    table
}

/// A size in bytes as people write it.
fn readable(bytes: usize) -> String {
    match bytes {
        mib if mib >= 1 << 20 => format!("{} MiB", mib >> 20),
        kib => format!("{} KiB", kib >> 10),
    }
}

/// Judges what was measured.
#[must_use]
pub fn judge(samples: &Samples, rounds: usize) -> Vec<Verdict> {
    let judged = table().into_iter().map(|target| {
        let in_round = |round| {
            let value = target.value.in_round(samples, round)?;
            match &target.by {
                Some(by) => Some(value / by.in_round(samples, round)?),
                None => Some(value),
            }
        };
        let values: Vec<f64> = (0..rounds).filter_map(in_round).collect();
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
                .and_then(|(b, value)| missed(b, value)),
            name: target.name,
            unit: target.unit,
            measured,
            target: target.bound,
            met,
        }
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rows: &[(Side, &str, f64)]) -> Samples {
        rows.iter()
            .map(|(side, row, value)| ((*side, (*row).into()), BTreeMap::from([(0, *value)])))
            .collect()
    }

    fn verdict(samples: &Samples, name: &str) -> Verdict {
        judge(samples, 1)
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
    fn a_miss_says_by_how_much() {
        let samples = samples(&[
            (Side::Oxshmem, "put_1024", 20.0),
            (Side::Oxshmem, "memcpy_put_1024", 9.7),
        ]);
        let verdict = verdict(&samples, "put 1 KiB: speed of memcpy's");
        assert_eq!(
            (verdict.met, verdict.words().as_str()),
            (Some(false), "missed by 50.0 %")
        );
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
        let verdict = verdict(&Samples::new(), "quiet, clean");
        assert_eq!(
            (verdict.met, verdict.words().as_str()),
            (Some(false), "not measured")
        );
    }
}
