//! The length and the number of a row's batches.

use std::time::{Duration, Instant};

use serde::Serialize;

/// The time or the number of operations that a row gets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effort {
    /// The least duration of a batch, if there are operations enough.
    pub batch: Duration,
    pub row: Until,
    /// Whether data is cleared before each batch and checked after it, not only once a row.
    pub validate: bool,
}

/// The condition that ends a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    Time(Duration),
    Operations(u64),
}

/// Batches of a row at least, however long they take.
const FEWEST: usize = 7;
/// Batches of a longer row at most, about: each batch is longer then.
const MOST: u32 = 10_000;
/// Repetitions of a batch at most, however fast they are.
const MOST_REPETITIONS: u64 = 1 << 40;
/// Trial batches that must all be long enough: a single one may have been disturbed.
const TRIALS: usize = 3;

impl Effort {
    /// An effort with batches of at least `batch`.
    pub fn new(batch: Duration, row: Until, validate: bool) -> Self {
        let batch = match row {
            Until::Time(row) => batch.max(row / MOST),
            Until::Operations(_) => batch,
        };
        Effort {
            batch,
            row,
            validate,
        }
    }
}

/// The measurements of the measuring PE.
#[derive(Debug, Default)]
pub struct Measured {
    /// Nanoseconds of one operation, for each batch.
    pub batches: Vec<f64>,
    /// Nanoseconds of operations that were timed one by one.
    pub singles: Vec<f64>,
    /// The share of a transfer's time that was left, in percent, for each batch.
    pub overlaps: Vec<f64>,
    /// Repetitions in a batch.
    pub repetitions: u64,
    /// The number of checks of the data.
    pub checks: u64,
}

/// Finds how many repetitions make a batch, which also warms up, and measures the batches.
pub fn time<E>(
    batch: &mut dyn FnMut(u64) -> Result<Duration, E>,
    effort: Effort,
    per_repetition: u64,
) -> Result<Measured, E> {
    // A small number of operations is also divided into several batches.
    let wanted = match effort.row {
        Until::Time(_) => u64::MAX,
        Until::Operations(operations) => operations.div_ceil(per_repetition),
    };
    let most = (wanted / FEWEST as u64).clamp(1, MOST_REPETITIONS);
    let mut repetitions = 1;
    while !takes(batch, repetitions, effort.batch)? && repetitions < most {
        repetitions = (repetitions * 2).min(most);
    }
    let start = Instant::now();
    let mut batches = Vec::new();
    let enough = |done: usize| match effort.row {
        Until::Time(row) => done >= FEWEST && start.elapsed() >= row,
        Until::Operations(_) => done as u64 * repetitions >= wanted,
    };
    while batches.is_empty() || !enough(batches.len()) {
        let took = batch(repetitions)?.as_secs_f64() * 1e9;
        batches.push(took / repetitions as f64 / per_repetition as f64);
    }
    Ok(Measured {
        batches,
        repetitions,
        ..Measured::default()
    })
}

/// Whether so many repetitions take at least this long, each time.
fn takes<E>(
    batch: &mut dyn FnMut(u64) -> Result<Duration, E>,
    repetitions: u64,
    least: Duration,
) -> Result<bool, E> {
    for _ in 0..TRIALS {
        if batch(repetitions)? < least {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: fn(u64) -> Duration = Duration::from_micros;

    fn effort(row: Until) -> Effort {
        Effort::new(MICROS(100), row, false)
    }

    #[test]
    fn batches_grow_until_they_are_long_enough() {
        // An operation of one microsecond.
        let mut batch = |repetitions| Ok::<_, ()>(MICROS(repetitions));
        let mut found =
            |row, per_repetition| time(&mut batch, effort(row), per_repetition).unwrap();
        let timed = found(Until::Time(Duration::ZERO), 2);
        assert_eq!((timed.repetitions, timed.batches.len()), (128, 7));
        assert!(timed.batches.iter().all(|batch| *batch == 500.0));
        let counted = found(Until::Operations(70), 2);
        assert_eq!((counted.repetitions, counted.batches.len()), (5, 7));
        let counted = found(Until::Operations(1), 1);
        assert_eq!((counted.repetitions, counted.batches.len()), (1, 1));
    }

    #[test]
    fn a_batch_that_was_disturbed_does_not_make_the_others_short() {
        // Now and then one repetition takes a thousand times as long, but never two in a row.
        for disturbed in 0..8 {
            let mut done = 0;
            let mut batch = |repetitions| {
                done += 1;
                let slow = done % 2 == 0 && done / 2 % 8 == disturbed;
                Ok::<_, ()>(MICROS(repetitions * if slow { 1000 } else { 1 }))
            };
            let found = time(&mut batch, effort(Until::Time(Duration::ZERO)), 1).unwrap();
            assert_eq!(found.repetitions, 128);
        }
    }

    #[test]
    fn long_rows_have_longer_batches() {
        let batch = |row| effort(Until::Time(row)).batch;
        assert_eq!(batch(Duration::from_millis(150)), MICROS(100));
        assert_eq!(batch(Duration::from_secs(60)), MICROS(6000));
        let counted = effort(Until::Operations(u64::MAX));
        assert_eq!(counted.batch, MICROS(100));
    }
}
