//! NVSHMEM's names over oxshmem: `libnvshmem_host`.
//!
//! The exported functions are generated from the table (`core/nvshmem/table`): each passes its arguments to a function of one of the
//! modules here, with the call's name for messages.
//!
//! # Two stages
//!
//! A program may learn its number before it chooses a GPU. So the start has two stages: [`job`] joins the job, and [`pe`] opens the GPU
//! heap, on the GPU that is current in the first call that needs it. Where every PE has a current GPU when it starts, both are one.
//!
//! # Calls of the host
//!
//! A call that moves data is the call on a stream of the library's own, and a wait for it. Nonblocking calls are complete after a quiet
//! or a barrier. One thread at a time is in a call; others wait for it.
//!
//! # Failure
//!
//! A call that returns a status prints what failed, where and why, and returns one of NVSHMEM's codes. One that returns none prints the
//! same, and ends the job ([`failure`]). Nothing panics.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]
#![expect(clippy::too_many_arguments, reason = "NVSHMEM's calls have as many")]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
compile_error!("NVSHMEM's names are for x86-64 Linux with glibc: C's types are those there");

mod atomics;
mod attributes;
mod collectives;
mod environment;
mod failure;
mod host_call;
mod images;
mod job;
mod launch;
mod memory;
mod modules;
mod numbers;
mod other_libraries;
mod pe;
mod places;
mod regions;
mod rma;
mod setup;
mod state;
mod streams;
mod team_table;
mod teams;
mod triplets;
mod types;

/// The symbols.
#[allow(
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    unused_unsafe,
    reason = "generated: each function passes its caller's promises on, which are NVSHMEM's"
)]
mod exports {
    use std::ffi::{c_char, c_void};

    use crate::types::{
        DeviceLibraryCallback, Dim3, Fold, InitAttr, LaunchAttr, RegionAttrs, StreamHandle,
        TeamConfig, UniqueId, Version,
    };

    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}
