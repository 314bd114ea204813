//! Warnings: to the program's `tracing` subscriber if it has one, else to stderr.

use std::io::Write;

pub(crate) fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        // Where it cannot be written nobody wants to know.
        let line = format!("oxshmem: warning: {message}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// What a user need not see, but may want to: to the `tracing` subscriber only.
pub(crate) fn info(message: &str) {
    tracing::info!(target: "oxshmem", "{message}");
}
