//! The result of the programs, and their check of a condition.

use std::error::Error;

/// The result of any of these programs.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Fails, unless the condition holds.
pub fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds {
        Ok(())
    } else {
        Err(otherwise().into())
    }
}
