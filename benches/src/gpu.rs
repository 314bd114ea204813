//! Operations on streams, compared with NVSHMEM's: the numbers that both sides use, and the table
//! of results.

use serde::Serialize;

use crate::samples::{Samples, Side};
use crate::statistics::Summary;

/// Batches measured per row (`nvshmem/peer.cu` has the same numbers); the median counts.
pub const BATCHES: usize = 7;
/// Barriers in a batch.
pub const BARRIERS: u64 = 20;
/// Calls timed at a time: they fit into a stream's queue.
pub const CALLS: u64 = 64;
/// The exit status of a side that finds no GPU.
pub const NO_GPU: u8 = 3;
/// The number of bytes from which on a put is compared with the copy's speed, and not with
/// NVSHMEM's time.
pub const LARGE: usize = 1 << 20;
/// The target at large sizes, as a part of the copy's speed.
const OF_THE_COPY: f64 = 0.97;
/// The target for a call's time beyond the driver's own, in nanoseconds.
const BEYOND_THE_DRIVER: f64 = 2000.0;

/// The sizes measured, in bytes: 8 times the powers of 8 up to a largest.
pub fn sizes(largest: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(8_usize), |size| size.checked_mul(8))
        .take_while(move |size| *size <= largest)
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The row's name: `put_4096`, `barrier`.
    pub row: String,
    /// Our time, in nanoseconds.
    pub ours: Option<Summary>,
    /// NVSHMEM's time, in nanoseconds.
    pub theirs: Option<Summary>,
    /// Our time divided by theirs, within rounds.
    pub ratio: Option<Summary>,
    /// The time of the driver's copy of as many bytes divided by ours: our part of its speed.
    pub of_copy: Option<Summary>,
    /// Our time less that of the driver's own call, in nanoseconds, for rows of calls.
    pub beyond: Option<Summary>,
    /// The target; `None` if the line is only for information.
    pub target: Option<&'static str>,
    /// Whether the target was met.
    pub met: Option<bool>,
}

/// The lines of the sizes up to a largest.
#[must_use]
pub fn table(samples: &Samples, largest: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for kind in ["put", "put_signal", "put_latency", "put_signal_latency"] {
        for size in sizes(largest) {
            let copy = if kind.ends_with("latency") {
                "copy_latency"
            } else {
                "copy"
            };
            let mut line = line(samples, format!("{kind}_{size}"));
            line.of_copy = samples.within_rounds(
                (Side::Oxshmem, &format!("{copy}_{size}")),
                (Side::Oxshmem, &line.row),
                |copy, ours| copy / ours,
            );
            if size >= LARGE {
                line.target = Some("0.97 of the copy's speed");
                line.met = Some(line.of_copy.is_some_and(|part| part.median >= OF_THE_COPY));
            } else {
                line.target = Some("ahead");
                line.met = ahead(&line);
            }
            lines.push(line);
        }
    }
    let mut barrier = line(samples, "barrier".into());
    barrier.target = Some("ahead");
    barrier.met = ahead(&barrier);
    lines.push(barrier);
    for row in ["put_call", "put_signal_call"] {
        let mut line = line(samples, row.into());
        let call = (Side::Oxshmem, "copy_call");
        line.beyond = samples.within_rounds((Side::Oxshmem, row), call, |ours, copy| ours - copy);
        if row == "put_call" {
            line.target = Some("2 us beyond the driver's call");
            line.met = Some(line.beyond.is_some_and(|ns| ns.median < BEYOND_THE_DRIVER));
        }
        lines.push(line);
    }
    lines
}

fn line(samples: &Samples, row: String) -> Line {
    Line {
        ours: samples.summary(Side::Oxshmem, &row),
        theirs: samples.summary(Side::Nvshmem, &row),
        ratio: samples.within_rounds(
            (Side::Oxshmem, &row),
            (Side::Nvshmem, &row),
            |ours, theirs| ours / theirs,
        ),
        of_copy: None,
        beyond: None,
        target: None,
        met: None,
        row,
    }
}

/// Whether we take less time; `None` if NVSHMEM was not measured.
fn ahead(line: &Line) -> Option<bool> {
    Some(line.ratio?.median < 1.0)
}

impl Line {
    /// The line's cells: row, times, ratios, verdict.
    #[must_use]
    pub fn cells(&self) -> [String; 7] {
        let time = |of: Option<Summary>| of.map_or_else(String::new, |ns| microseconds(ns.median));
        let ratio = |of: Option<Summary>| {
            of.map_or_else(String::new, |ratio| {
                format!("{:.3} ({:.3})", ratio.median, ratio.spread)
            })
        };
        let beyond = self.beyond.map_or_else(String::new, |ns| {
            format!("{:.0} ns ({:.0})", ns.median, ns.spread)
        });
        let verdict = match (self.target, self.met) {
            (Some(target), Some(true)) => format!("{target}: met"),
            (Some(target), Some(false)) => format!("{target}: missed"),
            (Some(target), None) => format!("{target}: not measured"),
            (None, _) => String::new(),
        };
        [
            self.row.clone(),
            time(self.ours),
            time(self.theirs),
            ratio(self.ratio),
            ratio(self.of_copy),
            beyond,
            verdict,
        ]
    }

    /// The headings of the cells.
    pub const HEADINGS: [&'static str; 7] = [
        "row",
        "ours, us",
        "NVSHMEM, us",
        "ours / NVSHMEM",
        "of the copy's speed",
        "beyond the call",
        "target",
    ];
}

fn microseconds(ns: f64) -> String {
    format!("{:.3}", ns / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;

    fn samples(rows: &[(Side, &str, &[f64])]) -> Samples {
        let mut samples = Samples::default();
        for (side, row, values) in rows {
            for (round, value) in values.iter().enumerate() {
                samples.add(*side, row, round, *value);
            }
        }
        samples
    }

    fn line_of(samples: &Samples, row: &str) -> Line {
        let lines = table(samples, 1 << 30);
        lines.into_iter().find(|line| line.row == row).unwrap()
    }

    #[test]
    fn sizes_go_from_eight_bytes_to_the_largest() {
        assert_eq!(sizes(1 << 30).last(), Some(1 << 30));
        assert_eq!(sizes(600).collect::<Vec<_>>(), [8, 64, 512]);
    }

    #[test]
    fn a_small_put_is_judged_against_nvshmem_within_rounds() {
        let samples = samples(&[
            (Side::Oxshmem, "put_8", &[1.0, 4.0, 3.0]),
            (Side::Nvshmem, "put_8", &[2.0, 8.0, 6.0]),
        ]);
        let line = line_of(&samples, "put_8");
        let half = line.ratio.unwrap();
        assert_eq!(half.median, 0.5);
        assert_eq!(half.spread, Spread::Rounds(0.5, 0.5));
        assert_eq!(line.met, Some(true));
    }

    #[test]
    fn a_large_put_is_judged_against_the_copy() {
        let slow = [
            (Side::Oxshmem, "put_16777216", &[100.0][..]),
            (Side::Oxshmem, "copy_16777216", &[96.0]),
            (Side::Nvshmem, "put_16777216", &[200.0]),
        ];
        assert_eq!(line_of(&samples(&slow), "put_16777216").met, Some(false));
        let fast = [(Side::Oxshmem, "put_16777216", &[98.0][..]), slow[1]];
        assert_eq!(line_of(&samples(&fast), "put_16777216").met, Some(true));
    }

    #[test]
    fn a_call_is_judged_by_what_it_takes_beyond_the_drivers() {
        let rows = [
            (Side::Oxshmem, "put_call", &[3500.0][..]),
            (Side::Oxshmem, "copy_call", &[1600.0]),
        ];
        let line = line_of(&samples(&rows), "put_call");
        assert_eq!(line.beyond.map(|ns| ns.median), Some(1900.0));
        assert_eq!(line.met, Some(true));
    }

    #[test]
    fn what_nvshmem_was_not_measured_for_is_not_said_to_be_met() {
        let line = line_of(&samples(&[(Side::Oxshmem, "barrier", &[1.0])]), "barrier");
        assert_eq!(line.met, None);
        assert!(line.cells()[6].ends_with("not measured"));
    }
}
