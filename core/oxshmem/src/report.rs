//! Warnings: to the program's `tracing` subscriber if it has one, else to stderr.

use std::io::Write;

pub(crate) fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        say(&format!("warning: {message}"));
    }
}

/// Says something on stderr, though there may be a subscriber: where the process ends, that may be gone.
pub(crate) fn say(message: &str) {
    // Where it cannot be written nobody wants to know.
    let _ = std::io::stderr().write_all(format!("oxshmem: {message}\n").as_bytes());
}

/// What a user need not see, but may want to: to the `tracing` subscriber only.
pub(crate) fn info(message: &str) {
    tracing::info!(target: "oxshmem", "{message}");
}
