//! Medians of samples, with their confidence intervals.

use std::fmt;

use serde::Serialize;

/// A median and its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The median of the rounds.
    pub median: f64,
    /// The range around it.
    pub spread: Spread,
}

/// The range in which a median lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Between these two with about 95 % confidence.
    Interval(f64, f64),
    /// The least and the greatest of fewer than six rounds. The median lies between them with less
    /// confidence: with 50 % for two rounds.
    Rounds(f64, f64),
}

/// The rounds that an interval of 95 % confidence needs: all rounds lie on one side of the median
/// in one of 2^(n - 1) cases.
const FEWEST: usize = 6;

impl Summary {
    /// The summary of samples in any order; `None` for none. The spread is between two of the
    /// samples, by rank: it assumes no distribution.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (count, last) = (sorted.len(), sorted.len().checked_sub(1)?);
        let outside = ((count as f64 - 1.96 * (count as f64).sqrt()) / 2.0).max(0.0) as usize;
        let spread = if count < FEWEST {
            Spread::Rounds(sorted[0], sorted[last])
        } else {
            Spread::Interval(sorted[outside], sorted[last - outside])
        };
        Some(Summary {
            median: f64::midpoint(sorted[last / 2], sorted[count / 2]),
            spread,
        })
    }
}

/// Prints with the requested number of digits.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        match self {
            Spread::Interval(low, high) => write!(f, "{low:.digits$} to {high:.digits$}"),
            Spread::Rounds(least, most) => {
                write!(f, "{least:.digits$} to {most:.digits$}, least and most")
            }
        }
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
                spread: Spread::Interval(3.0, 11.0),
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
                spread: Spread::Rounds(1.0, 4.0),
            }
        );
    }

    #[test]
    fn fewer_than_six_rounds_have_no_interval() {
        for count in 1..12 {
            let samples: Vec<f64> = (0..count).map(f64::from).collect();
            let spread = Summary::of(&samples).unwrap().spread;
            // The probability that all lie on one side of the median.
            let misses = 2.0 / f64::from(1 << count);
            let all = Spread::Interval(0.0, f64::from(count - 1));
            match spread {
                Spread::Rounds(..) => assert!(misses > 0.05, "{count}: {spread}"),
                _ => assert!(
                    misses < 0.05 && (count > 7 || spread == all),
                    "{count}: {spread}"
                ),
            }
        }
        let words = |samples: &[f64]| format!("{:.1}", Summary::of(samples).unwrap().spread);
        assert_eq!(words(&[2.0, 1.0]), "1.0 to 2.0, least and most");
        assert_eq!(words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), "1.0 to 6.0");
    }

    proptest! {
        #[test]
        fn the_spread_holds_the_median(samples in prop::collection::vec(-1e9..1e9, 1..99)) {
            let Summary { median, spread } = Summary::of(&samples).unwrap();
            let (Spread::Interval(low, high) | Spread::Rounds(low, high)) = spread;
            prop_assert!(low <= median && median <= high);
        }
    }
}
