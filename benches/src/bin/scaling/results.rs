//! The results: all rows, and the model made of them.

use serde::Serialize;

use crate::model::Model;
use crate::rows::{Alone, Job, Meeting, Processes};

/// All results.
#[derive(Debug, Serialize)]
pub struct Results {
    pub cpus: usize,
    pub threads: Vec<Job>,
    pub processes: Vec<Processes>,
    pub meetings: Vec<Meeting>,
    /// In a small job, and in a large one.
    pub alone: (Alone, Alone),
    /// `None` if too few rows were measured for it.
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
