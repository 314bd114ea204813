//! The error for unusable input.

use std::fmt;

/// Unusable input. The text says what it is, where it is, and what would be right.
#[derive(Debug)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The exit status of unusable input.
pub const REFUSED: u8 = 2;
