//! Behaviour on a device, beside the conformance suite: memory of all sorts as the local buffer,
//! failures of connections, what is left behind, what a machine that is not set up right is told.
//!
//! ```text
//! cargo test -p oxshmem-verbs --no-run
//! ci/softroce --nodes 2 -- target/debug/deps/device-… --ignored --test-threads 1
//! ```

#![cfg(feature = "rdma")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod addresses;
mod counts;
mod failures;
#[cfg(feature = "cuda")]
mod gpu;
mod local_memory;
mod machine;
mod pair;
