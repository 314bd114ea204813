use std::fmt;

use serde::Serialize;

/// How a figure must come out.
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

    /// The last figure that is.
    #[must_use]
    pub fn limit(self) -> f64 {
        match self {
            Bound::AtMost(value) | Bound::AtLeast(value) => value,
        }
    }
}

/// With as many digits as are asked for.
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
