//! Active messages: atomics that the CPU of the target's PE executes (M28, M29).

pub mod pending_replies;
pub mod progress_thread;
pub mod request;
