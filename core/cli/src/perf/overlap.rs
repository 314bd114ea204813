//! How much computing fits under a transfer: the transfer alone takes so long; begun, left alone
//! while PE 0 computes for as long, then completed, it takes longer than the computing does by what
//! did not fit.

use std::hint::black_box;
use std::time::{Duration, Instant};

use oxshmem::Result;

use super::ground::Ground;
use super::measure::{Effort, Found, time};
use super::op::Work;

/// Times of one batch.
#[derive(Clone, Copy, Debug)]
struct Round {
    transfer: Duration,
    computing: Duration,
    both: Duration,
}

impl Round {
    /// The share of the transfer's time that computing had, in percent.
    fn overlap(self) -> f64 {
        let [transfer, computing, both] =
            [self.transfer, self.computing, self.both].map(|time| time.as_secs_f64());
        (100.0 * (1.0 - (both - computing) / transfer)).clamp(0.0, 100.0)
    }
}

/// PE 0's rounds.
pub struct Rounds<'a, 'w> {
    ground: &'a Ground<'w>,
    work: &'a mut dyn Work,
    done: u64,
}

impl<'a, 'w> Rounds<'a, 'w> {
    pub fn new(ground: &'a Ground<'w>, work: &'a mut dyn Work) -> Self {
        let done = 0;
        Rounds { ground, work, done }
    }

    /// Transfers so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    pub fn measure(&mut self, effort: Effort) -> Result<Found> {
        let mut rounds = Vec::new();
        // A batch is a transfer alone, computing alone and both, so that what disturbs the machine
        // meets all three.
        let mut batch = |repetitions: u64| -> Result<Duration> {
            let transfer = self.transfers(repetitions, &mut || ())?;
            let steps = as_long_as(transfer.as_secs_f64() / repetitions as f64);
            let start = Instant::now();
            (0..repetitions).for_each(|_| compute(steps));
            let round = Round {
                transfer,
                computing: start.elapsed(),
                both: self.transfers(repetitions, &mut || compute(steps))?,
            };
            rounds.push(round);
            Ok(transfer)
        };
        let found = time(&mut batch, effort, 1)?;
        // Of the batches as long as they should be.
        let kept = rounds.iter().rev().take(found.batches.len()).rev();
        let overlaps = kept.map(|round| round.overlap()).collect();
        Ok(Found { overlaps, ..found })
    }

    /// Transfers one after the other, with something beside each.
    fn transfers(&mut self, count: u64, meanwhile: &mut dyn FnMut()) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..count {
            self.work.run_beside(self.ground, meanwhile)?;
            self.ground.world.quiet()?;
        }
        self.done += count;
        Ok(start.elapsed())
    }
}

/// Arithmetic that takes time in proportion to its steps, and touches none of the transfer's memory.
fn compute(steps: u64) {
    let mut x = 1_u64;
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    }
}

/// Steps of computing that take about so many seconds.
fn as_long_as(seconds: f64) -> u64 {
    const LEAST: Duration = Duration::from_micros(20);
    let mut steps = 1000;
    loop {
        let start = Instant::now();
        compute(steps);
        let took = start.elapsed();
        if took >= LEAST {
            return (seconds / took.as_secs_f64() * steps as f64) as u64;
        }
        steps *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_lengthen_computing_overlaps_it() {
        let overlap = |transfer, computing, both| {
            let [transfer, computing, both] =
                [transfer, computing, both].map(Duration::from_micros);
            let round = Round {
                transfer,
                computing,
                both,
            };
            round.overlap()
        };
        assert_eq!(overlap(100, 100, 100), 100.0);
        assert_eq!(overlap(100, 100, 200), 0.0);
        assert!((overlap(100, 100, 150) - 50.0).abs() < 1e-9);
        // Disturbed ones stay within bounds.
        assert_eq!(overlap(100, 100, 500), 0.0);
        assert_eq!(overlap(100, 100, 90), 100.0);
    }
}
