//! Lines for the user: to the program's `tracing` subscriber if it has one, else to stderr.

pub use oxshmem_bootstrap::log::{say, warn};

/// A line for the program's `tracing` subscriber alone.
pub fn info(message: &str) {
    tracing::info!(target: "oxshmem", "{message}");
}
