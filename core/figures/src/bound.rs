//! Bounds of figures, with a test whether one is met.

use std::fmt;

use serde::Serialize;

/// The bound that a figure must meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Less is better.
    AtMost(f64),
    /// More is better.
    AtLeast(f64),
}

impl Bound {
    /// Whether a figure is within it.
    #[must_use]
    pub fn met(self, value: f64) -> bool {
        match self {
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
        }
    }

    /// The limit itself, which still meets the bound.
    #[must_use]
    pub fn limit(self) -> f64 {
        match self {
            Bound::AtMost(value) | Bound::AtLeast(value) => value,
        }
    }
}

/// Prints with the requested number of digits.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self {
            Bound::AtMost(_) => "<=",
            Bound::AtLeast(_) => ">=",
        };
        let digits = f.precision().unwrap_or(3);
        write!(f, "{sign} {:.digits$}", self.limit())
    }
}
