//! How the PEs of an oxshmem job are started and find each other.
//!
//! [`Bootstrap`] is what a PE needs before (and beside) its transports: its rank, the job's size,
//! collective exchange of bytes, messages to a peer that may be computing, and word of a peer's
//! death. Nothing here is on a data path. [`join`] gives the one that the environment describes;
//! [`InProcess`] makes PEs of threads; [`Launch`] starts them as processes.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod bootstrap;
mod client;
mod delivery;
mod descriptors;
mod ending;
mod environment;
mod error;
mod exchange;
mod fault;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod hub;
mod in_process;
mod job_key;
mod launch;
mod pmi;
mod pmix;
mod protocol;
mod report;
mod rounds;
mod single;
mod waits;
mod wake;

pub use bootstrap::{AskHandler, Bootstrap, ExitHandler, MessageHandler, PeerExit};
pub use client::TcpBootstrap;
pub use environment::{DEFAULT_DEADLINE, described_rank, describes_job, join};
pub use error::{Error, Result};
pub use exchange::{HexBytes, exchange};
pub use hub::AbortNotice;
pub use in_process::InProcess;
pub use job_key::JobKey;
pub use launch::{
    CpuSets, Ending, HUB_ADDRESS, Host, Hosts, How, Launch, Outcome, RSH, self_with, serve_agent,
};
pub use protocol::{MAX_GATHERED_BYTES, MAX_MESSAGE_BYTES};
pub use single::Single;
pub use waits::{Awaited, Waiting};

/// Stack of a receive service's thread, bytes: it runs short handlers, and there is one per PE.
const SERVICE_STACK: usize = 128 << 10;
