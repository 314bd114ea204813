//! The OpenSHMEM 1.6 API for C and C++: `liboxshmem`.
//!
//! The exported functions are generated from the table (`core/capi/table`, whose documentation says how): each is a
//! symbol `pshmem_X` with a weak alias `shmem_X`, and passes its arguments to a function of one of the modules here,
//! with the call's name for messages. Those modules are the chapters of the specification. They find the context by
//! [`call`], and symmetric objects by [`objects`].
//!
//! # State
//!
//! The process is one PE: [`library`] holds its [`World`](oxshmem::World) while it is initialized, and the teams and
//! contexts ([`entries`]) that handles name ([`handles`]). No other package keeps state of the process.
//!
//! # Failure
//!
//! A call that returns nothing and fails prints what failed, where and why, and ends the job ([`failure`]). One that
//! returns a status prints the same, and returns it. Nothing panics.
//!
//! # Threads
//!
//! Up to `SHMEM_THREAD_SERIALIZED` one thread at a time is in a call, and puts, gets, atomics, waits, fences and quiets
//! take no lock. Collective calls and those for memory take some, which nobody else holds then. At
//! `SHMEM_THREAD_MULTIPLE` threads share the default context and those without options by a lock each; [`threads`]
//! describes the other calls. Private and serialized contexts have no lock where all memory is mapped. Where there are lanes
//! they have one: not for their own users, but for the waits of other threads, which make progress on all lanes.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]
#![expect(clippy::too_many_arguments, reason = "OpenSHMEM's calls have as many")]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
compile_error!(
    "the C API is for x86-64 Linux with glibc: C's types, and long double's, are those there"
);

mod active_sets;
mod atomics;
mod call;
mod collectives;
mod contexts;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "no_cuda.rs"]
mod cuda;
mod entries;
mod failure;
mod handles;
mod inline;
mod library;
mod locks;
mod long_double;
mod memory;
mod objects;
mod order;
mod query;
mod rma;
mod setup;
mod signals;
mod statics;
mod teams;
mod thread;
mod threads;
mod waits;

/// The symbols.
#[allow(
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    clippy::unused_unit,
    missing_docs,
    non_snake_case,
    unused_unsafe,
    reason = "generated: each function passes its caller's promises on, which are the specification's"
)]
mod exports {
    use std::ffi::{c_int, c_long, c_void};

    use oxshmem::{Complex, LongDouble};

    use crate::handles::{Ctx, SessionConfig, Team, TeamConfig};
    use crate::*;

    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}
