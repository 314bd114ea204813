//! A row of results.

use serde::Serialize;

use super::measure::{Found, Task};
use super::metric::Metric;
use super::statistics::{Times, median};

/// One operation, one metric, one size.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub metric: Metric,
    pub op: &'static str,
    /// Bytes of one operation; 0 where it moves none.
    pub bytes: usize,
    /// Operations under way at once.
    pub window: u64,
    /// Threads that have one each.
    pub threads: u32,
    pub time_ns: Times,
    /// Bytes per second at the median; none where that means nothing.
    pub bandwidth: Option<f64>,
    /// The bandwidth as a share of memcpy's of the same size.
    pub of_memcpy: Option<f64>,
    /// Operations per second at the median.
    pub rate: f64,
    /// The median, in percent.
    pub overlap: Option<f64>,
    pub batches: usize,
    /// Repetitions in a batch: of windows, where there are.
    pub repetitions: u64,
    /// How often its data was checked, and right.
    pub checks: u64,
}

impl Row {
    pub fn of(task: &Task, found: &Found) -> Row {
        let time_ns = Times::of(&found.batches, &found.singles);
        Row {
            metric: task.metric,
            op: task.op.name,
            bytes: task.bytes,
            window: task.window,
            threads: task.threads,
            bandwidth: task
                .op
                .moves_blocks()
                .then(|| per_second(task.bytes as f64, time_ns.median)),
            of_memcpy: None,
            rate: per_second(1.0, time_ns.median),
            overlap: (task.metric == Metric::Overlap).then(|| median(&found.overlaps)),
            batches: found.batches.len(),
            repetitions: found.repetitions,
            checks: found.checks,
            time_ns,
        }
    }

    /// What its curve shows: nanoseconds, bytes or operations per second, or percent.
    pub fn value(&self) -> Option<f64> {
        match self.metric {
            Metric::Latency => Some(self.time_ns.median),
            Metric::Rate => Some(self.rate),
            Metric::Bandwidth | Metric::Bidirectional => self.bandwidth,
            Metric::Overlap => self.overlap,
        }
    }
}

/// Of an amount in nanoseconds.
pub fn per_second(amount: f64, nanoseconds: f64) -> f64 {
    amount / nanoseconds * 1e9
}
