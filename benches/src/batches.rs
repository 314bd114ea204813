//! Timing of loops in batches, as in `oshmem/timing.c`: repetitions are doubled until a batch is
//! long enough, then the median of a fixed number of batches is taken.

use std::time::Instant;

use crate::sizes::{BATCHES, MIN_BATCH_NS};
use crate::statistics::Summary;

/// A row: its name, and the loop that does its operation so many times.
pub struct Row<'a, E> {
    name: String,
    /// Operations in one repetition.
    each: f64,
    run: Box<dyn FnMut(u64) -> Result<(), E> + 'a>,
}

impl<E> std::fmt::Debug for Row<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A row whose loop does one operation in a repetition.
pub fn row<'a, E>(
    name: impl Into<String>,
    run: impl FnMut(u64) -> Result<(), E> + 'a,
) -> Row<'a, E> {
    row_of(name, 1, run)
}

/// A row whose loop does `each` operations in a repetition.
pub fn row_of<'a, E>(
    name: impl Into<String>,
    each: u64,
    run: impl FnMut(u64) -> Result<(), E> + 'a,
) -> Row<'a, E> {
    Row {
        name: name.into(),
        each: each as f64,
        run: Box::new(run),
    }
}

impl<E> Row<'_, E> {
    /// The row's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Nanoseconds of `n` repetitions.
    pub fn time(&mut self, n: u64) -> Result<f64, E> {
        let start = Instant::now();
        (self.run)(n)?;
        Ok(start.elapsed().as_nanos() as f64)
    }

    /// Nanoseconds of one operation, in a batch of `n` repetitions.
    pub fn batch(&mut self, n: u64) -> Result<f64, E> {
        Ok(self.time(n)? / (n as f64 * self.each))
    }
}

/// Prints a row of nanoseconds per operation, the median of its batches.
pub fn report(name: &str, batches: &[f64]) {
    if let Some(summary) = Summary::of(batches) {
        println!("{name} {:.4}", summary.median);
    }
}

/// Measures rows that are compared closely: their batches alternate.
pub fn measure<E>(mut rows: Vec<Row<'_, E>>) -> Result<(), E> {
    let mut repetitions = Vec::new();
    for row in &mut rows {
        let mut n = 1;
        while row.time(n)? < MIN_BATCH_NS {
            n *= 2;
        }
        repetitions.push(n);
    }
    let mut batches = vec![Vec::with_capacity(BATCHES); rows.len()];
    for _ in 0..BATCHES {
        for ((row, n), times) in rows.iter_mut().zip(&repetitions).zip(&mut batches) {
            times.push(row.batch(*n)?);
        }
    }
    for (row, times) in rows.iter().zip(&batches) {
        report(&row.name, times);
    }
    Ok(())
}
