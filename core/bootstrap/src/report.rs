//! Warnings: to the program's `tracing` subscriber if it has one, else to stderr.

use std::io::Write;

pub(crate) fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        say(&format!("warning: {message}"));
    }
}

/// Says something on stderr; where it cannot be written nobody wants to know.
pub(crate) fn say(words: &str) {
    let _ = std::io::stderr().write_all(format!("oxshmem: {words}\n").as_bytes());
}
