//! Timing one row. PE 0 times; before each batch it tells all PEs how long the batch is.

use std::time::{Duration, Instant};

use oxshmem::Result;
use serde::Serialize;

use super::case::{self, Ground};
use super::op::Op;

/// How much time a row gets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Effort {
    /// A batch takes at least this.
    pub batch: Duration,
    /// Batches are measured for this long.
    pub row: Duration,
}

impl Effort {
    pub const THOROUGH: Effort = Effort {
        batch: Duration::from_micros(200),
        row: Duration::from_millis(200),
    };
    pub const QUICK: Effort = Effort {
        batch: Duration::from_micros(50),
        row: Duration::from_millis(20),
    };
}

/// Batches that a row has however long they take, and at most.
const BATCHES: std::ops::RangeInclusive<usize> = 7..=10_000;
/// Operations of no batch exceed this, however fast they are.
const MOST_REPETITIONS: u64 = 1 << 40;

/// Nanoseconds of one operation, over batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    pub min: f64,
    pub median: f64,
    pub p99: f64,
}

impl Latency {
    /// Of batches in any order; not a number if there are none.
    fn of(mut batches: Vec<f64>) -> Self {
        batches.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * batches.len() as f64).ceil() as usize;
            batches
                .get(rank.saturating_sub(1))
                .copied()
                .unwrap_or(f64::NAN)
        };
        Latency {
            min: at(0.0),
            median: at(0.5),
            p99: at(0.99),
        }
    }
}

/// What PE 0 found.
#[derive(Debug)]
pub struct Found {
    pub latency: Latency,
    pub batches: usize,
    pub repetitions: u64,
}

/// Measures one row and checks its data. Collective; PE 0 gets the result.
pub fn measure(
    ground: &Ground<'_>,
    op: Op,
    bytes: usize,
    effort: Effort,
) -> anyhow::Result<Option<Found>> {
    let mut case = case::prepare(ground, op, bytes)?;
    let mut total = 0;
    let found = if ground.leads() {
        let mut batch = |repetitions: u64| -> Result<Duration> {
            ground.tell(repetitions)?;
            let start = Instant::now();
            case.run(ground, repetitions)?;
            total += repetitions;
            Ok(start.elapsed())
        };
        let found = time(&mut batch, effort, op.per_repetition())?;
        ground.tell(0)?;
        Some(found)
    } else {
        loop {
            match ground.hear()? {
                0 => break None,
                repetitions => {
                    case.run(ground, repetitions)?;
                    total += repetitions;
                }
            }
        }
    };
    case.check(ground, total)?;
    // No PE goes on, nor is a row shown, before all have checked.
    ground.world.barrier_all()?;
    Ok(found)
}

/// Finds how many repetitions make a batch, which warms up too, and measures batches.
fn time(
    batch: &mut dyn FnMut(u64) -> Result<Duration>,
    effort: Effort,
    per_repetition: f64,
) -> Result<Found> {
    let mut repetitions = 1;
    while batch(repetitions)? < effort.batch && repetitions < MOST_REPETITIONS {
        repetitions *= 2;
    }
    let start = Instant::now();
    let mut batches = Vec::new();
    while batches.len() < *BATCHES.start()
        || (batches.len() < *BATCHES.end() && start.elapsed() < effort.row)
    {
        let took = batch(repetitions)?.as_secs_f64() * 1e9;
        batches.push(took / repetitions as f64 / per_repetition);
    }
    Ok(Found {
        batches: batches.len(),
        repetitions,
        latency: Latency::of(batches),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_batches_that_were_measured() {
        let batches: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(
            Latency::of(batches),
            Latency {
                min: 1.0,
                median: 100.0,
                p99: 198.0
            }
        );
        assert_eq!(
            Latency::of(vec![7.0]),
            Latency {
                min: 7.0,
                median: 7.0,
                p99: 7.0
            }
        );
    }

    #[test]
    fn batches_grow_until_they_are_long_enough() {
        // An operation of one microsecond.
        let mut batch = |repetitions| Ok(Duration::from_micros(repetitions));
        let effort = Effort {
            batch: Duration::from_micros(100),
            row: Duration::ZERO,
        };
        let found = time(&mut batch, effort, 2.0).unwrap();
        assert_eq!((found.repetitions, found.batches), (128, 7));
        assert_eq!(
            found.latency,
            Latency {
                min: 500.0,
                median: 500.0,
                p99: 500.0
            }
        );
    }
}
