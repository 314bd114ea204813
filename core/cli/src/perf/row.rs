//! A row of results.

use serde::{Deserialize, Serialize};

use super::batches::Measured;
use super::metric::Metric;
use super::statistics::{Times, median};
use super::task::Task;

/// One operation, one metric, one size.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub metric: Metric,
    pub op: &'static str,
    /// Bytes of one operation; 0 if it moves none.
    pub bytes: usize,
    /// Operations in flight at once.
    pub window: u64,
    /// Threads, each with a window of its own.
    pub threads: u32,
    pub time_ns: Times,
    /// Bytes per second at the median; `None` if that means nothing.
    pub bandwidth: Option<f64>,
    /// The bandwidth as a share of memcpy's at the same size.
    pub of_memcpy: Option<f64>,
    /// Operations per second at the median.
    pub rate: f64,
    /// The median overlap in percent.
    pub overlap: Option<f64>,
    pub batches: usize,
    /// Repetitions in a batch; where there is a window, each is one window.
    pub repetitions: u64,
    /// The number of checks of its data, all of them passed.
    pub checks: u64,
}

/// The figures of one row, as the measuring PE sends them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Figures {
    time_ns: Times,
    /// The median overlap in percent.
    overlap: Option<f64>,
    batches: usize,
    repetitions: u64,
    checks: u64,
}

impl Figures {
    pub fn of(task: &Task, found: &Measured) -> Figures {
        Figures {
            time_ns: Times::of(&found.batches, &found.singles),
            overlap: (task.metric == Metric::Overlap).then(|| median(&found.overlaps)),
            batches: found.batches.len(),
            repetitions: found.repetitions,
            checks: found.checks,
        }
    }
}

impl Row {
    pub fn of(task: &Task, figures: &Figures) -> Row {
        let time_ns = figures.time_ns;
        Row {
            metric: task.metric,
            op: task.op.name,
            bytes: task.bytes,
            window: task.window,
            threads: task.threads,
            time_ns,
            bandwidth: task
                .op
                .moves_blocks()
                .then(|| per_second(task.bytes as f64, time_ns.median)),
            of_memcpy: None,
            rate: per_second(1.0, time_ns.median),
            overlap: figures.overlap,
            batches: figures.batches,
            repetitions: figures.repetitions,
            checks: figures.checks,
        }
    }

    /// The value of its curve: nanoseconds, bytes or operations per second, or percent.
    pub fn value(&self) -> Option<f64> {
        match self.metric {
            Metric::Latency => Some(self.time_ns.median),
            Metric::Rate => Some(self.rate),
            Metric::Bandwidth | Metric::Bidirectional => self.bandwidth,
            Metric::Overlap => self.overlap,
        }
    }
}

/// The rate per second of an amount in so many nanoseconds.
pub fn per_second(amount: f64, nanoseconds: f64) -> f64 {
    amount / nanoseconds * 1e9
}
