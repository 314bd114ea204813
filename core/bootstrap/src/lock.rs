//! Locks that outlive a panic.
//!
//! All state behind this crate's locks is whole after each change, so a lock that a panic has poisoned is as good as
//! another: a handler that panics must not take every later call down with it.

use std::sync::{LockResult, PoisonError};

/// The guard of a lock or of a wait, poisoned or not.
pub(crate) fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
