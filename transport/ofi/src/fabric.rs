//! Safe objects over libfabric: each holds its parents, so that they end in the right order, and ends itself when
//! dropped.
//!
//! An endpoint and all that hangs on its domain has one user at a time: the transport asks for `FI_THREAD_DOMAIN`, and
//! holds a lock. Only sleeping on the descriptor of a completion queue is free of it.

mod atomic;
pub(crate) mod endpoint;
pub(crate) mod fault;
pub(crate) mod info;
pub(crate) mod library;
pub(crate) mod memory;
pub(crate) mod open;
mod queue;
pub(crate) mod slots;
// Generated: `ci/bindings`. Whoever calls a function upholds what its manual page demands.
#[rustfmt::skip]
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_debug_implementations,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals
)]
pub(crate) mod sys;
