//! The rows of the measurement.

use serde::{Deserialize, Serialize};

use crate::collective::Cost;
use crate::memory::Footprint;

/// PEs of a host in a large job.
pub const WIDTH: usize = 8;

/// A job of PEs on this host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub pes: usize,
    /// Seconds from the first PE's start until all have passed a barrier.
    pub start_s: f64,
    /// A PE's footprint at that time, without that of its process before.
    pub each: Footprint,
    /// The library's own part of a PE's symmetric heap, in bytes.
    pub internals: u64,
    pub barrier: Cost,
    /// An all-reduce of one word.
    pub reduce: Cost,
    /// Bytes of a PE's contribution to each exchange of its start.
    pub exchanges: Vec<usize>,
}

/// The same for processes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Processes {
    #[serde(flatten)]
    pub row: Job,
    /// Seconds of a program that joins and ends, from start to end.
    pub empty_s: f64,
}

/// Connections to a rendezvous alone.
#[derive(Debug, Serialize, Deserialize)]
pub struct Meeting {
    pub pes: usize,
    /// Seconds until all are connected.
    pub connect_s: f64,
    /// Seconds of an exchange without data.
    pub barrier_s: f64,
    /// Seconds of an exchange with so many bytes of each.
    pub gather_s: f64,
    pub gather_bytes: usize,
    /// Seconds of a message from one rank to another and its reply, all ranks at once.
    pub question_s: f64,
}

/// One PE among stand-ins for all others.
#[derive(Debug, Serialize, Deserialize)]
pub struct Alone {
    pub pes: usize,
    pub hosts: usize,
    /// Seconds of its own part of joining.
    pub join_s: f64,
    /// Bytes that it has allocated then.
    pub allocated: f64,
    /// Bytes of its contribution to each exchange.
    pub exchanges: Vec<usize>,
    /// Bytes that it then receives of all contributions, at most.
    pub packed: usize,
}
