//! The race detector: accesses of kernels that no barrier, fence, stream or event orders.
//!
//! `oxshmem cuda cc --check` has the compiler call it before each access to memory, and in place of each atomic operation. It keeps,
//! for each byte, the last accesses, and for each thread of a kernel what has happened before it. Two accesses of different threads
//! to one byte, of which one writes, are a race if neither has happened before the other, whether or not this run showed it.
//!
//! The order is that of CUDA's memory model: barriers of blocks and grids, `__syncwarp`, fences and atomic operations with their scopes,
//! and, between kernels, streams, events, and the calls by which the host waits. The host is one thread for it: what the host's own code
//! does to memory is not seen.
//!
//! The processes of a job have one set of [notes], in an [arena] that each of them maps at one address. There, memory and code have
//! [names] that mean the same in all of them. What a host does to tell another one of something is not seen either: the calls by which it does so
//! are ([`host_calls`]), and what it may have told is taken for told.

mod access;
mod arena;
mod clock;
mod grid;
mod host;
mod known;
mod meeting;
mod memory;
mod names;
mod notes;
mod objects;
mod pending;
mod place;
mod report;
mod scope;
mod shadow;
mod strand;
mod thread;

pub(crate) use self::access::{
    Atomic, access, after_atomic, before_atomic, completes, fence, know_words_of_host, operand,
};
pub(crate) use self::clock::{Clock, join};
pub(crate) use self::grid::GridCheck;
pub(crate) use self::host::{
    HostCall, host, host_accesses, host_calls, host_operand, host_returns, host_waited, is_unseen,
};
pub(crate) use self::memory::{ended, forget, mapped, page_locked, released, unloaded, unmapped};
pub(crate) use self::pending::{Completes, Operand};
pub(crate) use self::place::{COPY, FILL, Place};
pub(crate) use self::scope::Scope;
pub(crate) use self::strand::{
    Strand, next_piece, piece_accesses, piece_acquires, piece_clock, piece_releases, piece_waited,
};
pub(crate) use self::thread::{Thread, gathered};

/// Turns the detector on, for an image that was just loaded: an address in it, and a hash of its bytes. Gives its first address.
pub(crate) fn activate(inside: usize, content: u64) -> usize {
    let (at, length) = objects::extent(inside);
    names::loaded(at, length, content);
    notes::join_job();
    // Else places in it have no line.
    backtrace::clear_symbol_cache();
    report::watch_the_end();
    notes::activate();
    at
}
