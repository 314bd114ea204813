//! What is measured.

use serde::{Deserialize, Serialize};

use crate::collective::Cost;
use crate::memory::Footprint;
use crate::model::Model;

/// A job of PEs on this host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub pes: usize,
    /// From the first PE's beginning until all have passed a barrier, in seconds.
    pub start_s: f64,
    /// What a PE has then, over what its process had before.
    pub each: Footprint,
    /// The library's own part of a PE's symmetric heap, in bytes.
    pub internals: u64,
    pub barrier: Cost,
    /// Of one word.
    pub reduce: Cost,
    /// Bytes that a PE gives in each exchange of its start.
    pub exchanges: Vec<usize>,
}

/// The same of processes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Processes {
    #[serde(flatten)]
    pub row: Job,
    /// A program that joins and ends, from start to end, in seconds.
    pub empty_s: f64,
}

/// Connections to a rendezvous, and nothing else.
#[derive(Debug, Serialize, Deserialize)]
pub struct Meeting {
    pub pes: usize,
    /// Until all are connected, in seconds.
    pub connect_s: f64,
    /// An exchange of nothing.
    pub barrier_s: f64,
    /// An exchange of so many bytes of each.
    pub gather_s: f64,
    pub gather_bytes: usize,
    /// A message from one to another and its answer, all of them at once.
    pub question_s: f64,
}

/// One PE among others that are stand-ins.
#[derive(Debug, Serialize, Deserialize)]
pub struct Alone {
    pub pes: usize,
    pub hosts: usize,
    /// Its own part of joining, in seconds.
    pub join_s: f64,
    /// What it has allocated then, in bytes.
    pub allocated: f64,
    /// Bytes that it gives in each exchange.
    pub exchanges: Vec<usize>,
    /// Bytes that it is then told of all, at most.
    pub packed: usize,
}

/// All of it.
#[derive(Debug, Serialize)]
pub struct Results {
    pub cpus: usize,
    pub threads: Vec<Job>,
    pub processes: Vec<Processes>,
    pub meetings: Vec<Meeting>,
    /// Among few, and among many.
    pub alone: (Alone, Alone),
    /// None where too few rows were measured for it.
    pub model: Option<Model>,
}

impl Results {
    pub fn new(
        threads: Vec<Job>,
        processes: Vec<Processes>,
        meetings: Vec<Meeting>,
        alone: (Alone, Alone),
    ) -> Self {
        let model = Model::of(&processes, &meetings, &alone);
        Results {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            threads,
            processes,
            meetings,
            alone,
            model,
        }
    }
}
