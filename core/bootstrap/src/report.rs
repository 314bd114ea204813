//! Warnings: to the program's `tracing` subscriber if it has one, else to stderr.

use std::io::Write;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a pipe takes as a whole, if it takes anything.
const SHORT: usize = 4096;

pub(crate) fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        say(&format!("warning: {message}"));
    }
}

/// Warns as [`warn`] does, but says nothing on a stderr that does not take it at once.
pub(crate) fn warn_at_once(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "oxshmem", "{message}");
    } else {
        // Nobody reads now, and nobody is waited for.
        let _ = say_at_once(&format!("warning: {message}"));
    }
}

/// Says something on stderr if that takes it at once, and nobody has to be waited for: neither who reads it nor a thread
/// that holds it. Gives whether it did.
pub(crate) fn say_at_once(words: &str) -> bool {
    let line = format!("oxshmem: {words}\n");
    // Its lock is not taken.
    let stderr = std::io::stderr();
    let mut room = [PollFd::new(&stderr, PollFlags::OUT)];
    let asked = poll(&mut room, Some(&Timespec::default()));
    // A pipe that has room has it for a page: longer ones might wait.
    asked.is_ok()
        && room.iter().all(|end| end.revents() == PollFlags::OUT)
        && line.len() <= SHORT
        && rustix::io::write(&stderr, line.as_bytes()) == Ok(line.len())
}

/// Says something on stderr; where it cannot be written nobody wants to know.
pub(crate) fn say(words: &str) {
    let _ = std::io::stderr().write_all(format!("oxshmem: {words}\n").as_bytes());
}
