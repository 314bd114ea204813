//! Lines for the user: to the program's `tracing` subscriber if it has one, else to stderr.

pub(crate) use oxshmem_bootstrap::log::{say, warn};

/// Details that a user need not see: to the `tracing` subscriber only.
pub(crate) fn info(message: &str) {
    tracing::info!(target: "oxshmem", "{message}");
}
