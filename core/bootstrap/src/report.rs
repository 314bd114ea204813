//! Warnings: to the program's `tracing` subscriber if it has one, else to stderr.

pub(crate) fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        eprintln!("oxshmem: warning: {message}");
    }
}
