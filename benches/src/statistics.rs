//! Medians of samples, with an interval.

use serde::Serialize;

/// A median and where it could as well lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The median of the rounds.
    pub median: f64,
    /// The lower end of the median's interval of about 95 % confidence.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Summary {
    /// Of samples in any order; none of none. The interval is between two of the samples, by rank:
    /// it assumes no distribution. With less than 6 samples it spans them all.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (count, last) = (sorted.len(), sorted.len().checked_sub(1)?);
        let outside = ((count as f64 - 1.96 * (count as f64).sqrt()) / 2.0).max(0.0) as usize;
        Some(Summary {
            median: f64::midpoint(sorted[last / 2], sorted[count / 2]),
            low: sorted[outside],
            high: sorted[last - outside],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_median() {
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn fifteen_rounds_leave_out_three_at_each_end() {
        let samples: Vec<f64> = (0..15).rev().map(f64::from).collect();
        assert_eq!(
            Summary::of(&samples),
            Some(Summary {
                median: 7.0,
                low: 3.0,
                high: 11.0
            })
        );
    }

    #[test]
    fn an_even_count_takes_the_middle_of_two() {
        let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(
            summary,
            Summary {
                median: 2.5,
                low: 1.0,
                high: 4.0
            }
        );
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median(samples in prop::collection::vec(-1e9..1e9, 1..99)) {
            let summary = Summary::of(&samples).unwrap();
            prop_assert!(summary.low <= summary.median && summary.median <= summary.high);
        }
    }
}
