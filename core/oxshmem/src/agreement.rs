//! Agreement of all PEs on the failures of a step of the start-up: one PE's failure is every PE's.
//!
//! A PE that failed returns its own error. Every other PE returns [`Error::FailedElsewhere`] with the first PE that failed, so
//! all PEs but those that failed return the same error.

use std::fmt::Display;

use oxshmem_bootstrap::{Bootstrap, exchange};

use crate::error::{Error, Result};

/// Every PE's failure in this step, in the order of the PEs. Collective.
pub(crate) fn exchange_failures<R, E: Display>(
    bootstrap: &dyn Bootstrap,
    mine: &Result<R, E>,
) -> Result<Vec<Option<String>>> {
    let mine = mine.as_ref().err().map(ToString::to_string);
    Ok(exchange(bootstrap, &mine)?)
}

/// The first PE that failed, and its reason.
pub(crate) fn first_failure(
    all: impl IntoIterator<Item = Option<String>>,
) -> Option<(usize, String)> {
    (0..).zip(all).find_map(|(pe, why)| Some((pe, why?)))
}

/// An error that names the first PE that failed, unless none did.
pub(crate) fn none_failed(all: impl IntoIterator<Item = Option<String>>) -> Result<()> {
    match first_failure(all) {
        None => Ok(()),
        Some((pe, why)) => Err(Error::FailedElsewhere {
            call: "init",
            pe,
            why,
        }),
    }
}

/// Gives this PE's result if every PE's is good. Collective.
pub(crate) fn agree<R>(bootstrap: &dyn Bootstrap, mine: Result<R>) -> Result<R> {
    let failures = exchange_failures(bootstrap, &mine)?;
    let mine = mine?;
    none_failed(failures)?;
    Ok(mine)
}
