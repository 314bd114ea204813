//! The error for requests that cannot be satisfied, as opposed to failures of a run.

use std::fmt;

use crate::output;

/// Options that make no sense, or results that cannot be compared with. The exit status is 2.
#[derive(Debug)]
pub struct Unsupported(pub anyhow::Error);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&output::with_causes(&self.0))
    }
}

impl std::error::Error for Unsupported {}
