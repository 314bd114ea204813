//! The bootstrap of an oxshmem job: how its PEs are started and find each other.
//!
//! [`Bootstrap`] is a PE's connection to its job before (and beside) its transports: its rank, the job's size,
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
mod codec;
mod collective_rounds;
mod delivery;
mod descriptors;
mod environment;
mod error;
mod exchange;
mod exit_hook;
mod exit_status;
mod fault;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod hub;
mod in_process;
mod job_key;
mod launch;
mod limits;
mod lock;
pub mod log;
mod pmi;
mod pmix;
mod process;
mod process_manager;
mod protocol;
mod single;
mod unique_id;
mod variables;
mod waits;
mod wake;

pub use bootstrap::{AskHandler, Bootstrap, ExitHandler, MessageHandler, PeerExit};
pub use client::TcpBootstrap;
pub use environment::backend::{described_rank, describes_job};
pub use environment::join;
pub use error::{Error, Result};
pub use exchange::{HexBytes, exchange};
pub use exit_status::ExitStatus;
pub use hub::control::AbortNotice;
pub use in_process::InProcess;
pub use job_key::JobKey;
pub use launch::agent::{CpuSets, serve as serve_agent};
pub use launch::hosts::{Host, Hosts};
pub use launch::job::Launch;
pub use launch::job_end::{JobEnd, Outcome};
pub use launch::self_with;
pub use limits::{MAX_GATHERED_BYTES, MAX_MESSAGE_BYTES};
pub use single::Single;
pub use unique_id::{Invitation, join_by_id};
pub use variables::{DEFAULT_DEADLINE, HUB_ADDRESS, RSH};
pub use waits::{Awaited, Waiting};
