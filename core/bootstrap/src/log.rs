//! Lines for the user: to the program's `tracing` subscriber if it has one, else to stderr.

use std::io::Write;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes that a pipe takes whole, if it takes any.
const SHORT: usize = 4096;

/// Warns the user.
pub fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        say(&format!("warning: {message}"));
    }
}

/// Writes a line to stderr, even if there is a subscriber: that may be gone where the process ends. A line that cannot be
/// written is dropped.
pub fn say(message: &str) {
    let _ = std::io::stderr().write_all(format!("oxshmem: {message}\n").as_bytes());
}

/// Warns as [`warn`] does, but drops the line if stderr does not take it at once.
pub(crate) fn warn_at_once(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        // Nobody reads now, and nobody is waited for.
        let _ = say_at_once(&format!("warning: {message}"));
    }
}

/// Writes a line to stderr if that takes it at once: without waiting for its reader, nor for a thread that holds its lock.
/// Gives whether it did.
pub(crate) fn say_at_once(message: &str) -> bool {
    let line = format!("oxshmem: {message}\n");
    // Only its descriptor is used: its lock is not taken.
    let stderr = std::io::stderr();
    let mut room = [PollFd::new(&stderr, PollFlags::OUT)];
    let asked = poll(&mut room, Some(&Timespec::default()));
    // A pipe that is writable takes a page: longer lines might block.
    asked.is_ok()
        && room.iter().all(|end| end.revents() == PollFlags::OUT)
        && line.len() <= SHORT
        && rustix::io::write(&stderr, line.as_bytes()) == Ok(line.len())
}
