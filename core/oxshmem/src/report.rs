//! Warnings: to the program's `tracing` subscriber if it has one, else to stderr.

pub(crate) fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        eprintln!("oxshmem: warning: {message}");
    }
}

/// What a user need not see, but may want to: to the `tracing` subscriber only.
pub(crate) fn info(message: &str) {
    tracing::info!(target: "oxshmem", "{message}");
}
