//! The engine of oxshmem: it moves bytes and words between PEs' symmetric heaps, and keeps the memory model's order
//! (M15 to M29).
//!
//! An [`Engine`](engine::Engine) is a PE's part in a job; a [`Worker`](worker::Worker) is one sequence of operations
//! with a fence and quiet of its own. Both are data. The operations lie in [`ops`], as methods of `Worker`, and each
//! uses what stands before it here:
//!
//! | module | content |
//! |---|---|
//! | [`order`] | fence sites, sets of operation kinds, conflict entries: pure data |
//! | [`memory`] | mapped and simulated bytes, extents, targets, registrations, bounce buffers |
//! | [`peer`] | the table of peers that the fast path reads, and the liveness of PEs |
//! | [`route`] | the path to each PE, its choice and the reasons |
//! | [`lane`] | opened devices (rails), one context's endpoints on them, operations in flight |
//! | [`am`] | active messages: requests, replies that are pending, the progress thread |
//! | [`control`] | messages over the bootstrap, and calls that have no reply yet |
//! | [`gpu`] | flushes of GPUs, and the server of staged copies |
//! | [`trace`] | spans and counters on a time line |
//! | [`progress`] | waits: polls, parks, sleeps |
//! | [`ops`] | put, get, put-with-signal, atomics, flush, fence, quiet, connection, failure |
//!
//! It is for the crates `oxshmem-collectives` and `oxshmem` alone, which check the arguments of users' calls. It knows
//! no handle, no type and no team, reads no environment variable, and names no transport. Its functions trust their
//! callers as modules of one crate do; the checks that they rely on are named at each.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "readers of these pages read the source, too"
)]
#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

pub mod am;
pub mod call_site;
pub mod control;
pub mod engine;
pub mod error;
pub mod gpu;
pub mod group;
pub mod lane;
pub mod memory;
pub mod ops;
pub mod order;
pub mod peer;
pub mod progress;
pub mod report;
pub mod route;
pub mod trace;
pub mod worker;
