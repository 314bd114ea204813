//! Summary statistics of many times.

use serde::{Deserialize, Serialize};

/// Nanoseconds of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub min: f64,
    pub median: f64,
    pub p99: f64,
    pub p99_9: f64,
    /// The samples that p99 and p99.9 are taken of.
    pub tail: Tail,
}

/// The samples of a quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tail {
    /// Single operations, each timed by itself.
    Operations,
    /// Means of batches: operations are too short to time each, or their tail lies below the
    /// batches' median.
    Batches,
}

impl Times {
    /// The summary of batches, and of single operations if any were timed. A batch's figure is a
    /// mean, which includes rare long operations. It may lie above the p99 of single operations,
    /// which were also timed at another moment. Both tails are then taken of batches, so that no
    /// quantile lies below a lower one.
    pub fn of(batches: &[f64], singles: &[f64]) -> Self {
        let (batches, singles) = (Sorted::of(batches), Sorted::of(singles));
        let median = batches.at(0.5);
        let (tail, of) = if singles.at(0.99) >= median {
            (&singles, Tail::Operations)
        } else {
            (&batches, Tail::Batches)
        };
        Times {
            min: batches.at(0.0),
            median,
            p99: tail.at(0.99),
            p99_9: tail.at(0.999),
            tail: of,
        }
    }
}

/// Samples in order.
pub struct Sorted(Vec<f64>);

impl Sorted {
    pub fn of(samples: &[f64]) -> Self {
        let mut samples = samples.to_vec();
        samples.sort_by(f64::total_cmp);
        Sorted(samples)
    }

    /// The least sample that at least this share of all does not exceed; NaN if there are none.
    pub fn at(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        let sample = self.0.get(rank.saturating_sub(1));
        sample.copied().unwrap_or(f64::NAN)
    }
}

/// The middle sample; for an even number, the mean of two.
pub fn median(samples: &[f64]) -> f64 {
    let Sorted(sorted) = Sorted::of(samples);
    let middle = sorted.len() / 2;
    let other = sorted.len().saturating_sub(1) / 2;
    match (sorted.get(other), sorted.get(middle)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_samples_that_were_measured() {
        let batches: Vec<f64> = (1..=2000).rev().map(f64::from).collect();
        let times = |p99, p99_9, tail| Times {
            min: 1.0,
            median: 1000.0,
            p99,
            p99_9,
            tail,
        };
        assert_eq!(
            Times::of(&batches, &[]),
            times(1980.0, 1998.0, Tail::Batches)
        );
        assert_eq!(
            Times::of(&batches, &[7.0, 2001.0]),
            times(2001.0, 2001.0, Tail::Operations)
        );
        // Its single operations were timed while the machine was idle.
        assert_eq!(
            Times::of(&batches, &[7.0]),
            times(1980.0, 1998.0, Tail::Batches)
        );
        assert!(Times::of(&[], &[]).median.is_nan());
    }

    proptest! {
        #[test]
        fn no_quantile_lies_below_a_lower_one(
            batches in vec(0.1..1e9_f64, 1..50),
            singles in vec(0.1..1e9_f64, 0..50),
        ) {
            let times = Times::of(&batches, &singles);
            let Times { min, median, p99, p99_9, .. } = times;
            prop_assert!(min <= median && median <= p99 && p99 <= p99_9, "{times:?}");
        }
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }
}
