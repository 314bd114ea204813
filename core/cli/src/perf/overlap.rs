//! The overlap of a transfer with computing. First a transfer alone is timed. Then PE 0 starts one,
//! computes for as long, and completes it; the time beyond the computing is the part that did not
//! overlap.

use std::hint::black_box;
use std::time::{Duration, Instant};

use oxshmem::Result;

use super::fixture::Fixture;
use super::op::Work;

/// Times of one batch: a transfer alone, computing alone, and both. A disturbance of the machine
/// affects all three.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub transfer: Duration,
    computing: Duration,
    both: Duration,
}

impl Round {
    /// The share of the transfer's time that was left for computing, in percent.
    pub fn overlap(self) -> f64 {
        let [transfer, computing, both] =
            [self.transfer, self.computing, self.both].map(|time| time.as_secs_f64());
        (100.0 * (1.0 - (both - computing) / transfer)).clamp(0.0, 100.0)
    }
}

/// Transfers in a round of so many repetitions.
pub fn transfers(repetitions: u64) -> u64 {
    2 * repetitions
}

/// Does PE 0's part of a batch.
pub fn round(work: &mut dyn Work, fixture: &Fixture<'_>, repetitions: u64) -> Result<Round> {
    // Transfers one after the other, each with other work beside it.
    let mut transfer = |meanwhile: &mut dyn FnMut()| -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..repetitions {
            work.run_beside(fixture, meanwhile)?;
            fixture.world.quiet()?;
        }
        Ok(start.elapsed())
    };
    let alone = transfer(&mut || ())?;
    let steps = as_long_as(alone.as_secs_f64() / repetitions as f64);
    let start = Instant::now();
    (0..repetitions).for_each(|_| compute(steps));
    let computing = start.elapsed();
    Ok(Round {
        transfer: alone,
        computing,
        both: transfer(&mut || compute(steps))?,
    })
}

/// Computes for a time proportional to `steps`, and touches none of the transfer's memory.
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
        // Disturbed figures stay within bounds.
        assert_eq!(overlap(100, 100, 500), 0.0);
        assert_eq!(overlap(100, 100, 90), 100.0);
    }
}
