//! PMI-1 and PMI-2: text over a descriptor that the process manager left in `PMI_FD`.
//!
//! MPICH's and Intel's `mpiexec` (hydra) and Slurm's `srun --mpi=pmi2` speak both. A session lasts
//! from [`open`] to the end of [`meet`](Manager::meet): afterwards the PEs have their own way to
//! each other, and the process manager sees this process as one that has finalized.

use std::time::Instant;

use crate::environment::meeting::{Manager, Place};
use crate::protocol::MAX_PES;
use crate::{Error, Result};

mod fields;
mod one;
mod socket;
mod two;

use socket::Socket;

/// Which of the two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Version::One => "PMI-1",
            Version::Two => "PMI-2",
        }
    }
}

/// What `PMI_FD`, `PMI_RANK`, `PMI_SIZE` and `PMI_JOBID` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub version: Version,
    pub descriptor: i32,
    pub rank: u32,
    pub size: u32,
    /// PMI-2's only, and not every process manager names it.
    pub job: Option<String>,
}

/// The key under which rank 0 publishes.
const KEY: &str = "oxshmem-rendezvous";

/// Begins a session; every wait in it ends at `end`.
pub(crate) fn open(settings: Settings, end: Instant) -> Result<Box<dyn Manager>> {
    let socket = Socket::inherited(settings.descriptor, settings.version.name(), end)?;
    Ok(match settings.version {
        Version::One => Box::new(one::Session::open(socket, settings)?),
        Version::Two => Box::new(two::Session::open(socket, settings)?),
    })
}

fn place(&Settings { rank, size, .. }: &Settings) -> Place {
    Place { rank, size }
}

/// An answer that is not the one to the question.
fn unexpected(interface: &'static str, step: &'static str, what: String) -> Error {
    Error::ProcessManager {
        interface,
        step,
        why: what,
        hint: "PMI_FD may lead to something that speaks another protocol: set OXSHMEM_BOOTSTRAP \
               to pmi1 or pmi2 as the process manager's documentation says",
    }
}

/// Refuses an answer with another number than the environment's, which would split the job.
fn agree(interface: &'static str, name: &str, environment: u32, answer: u32) -> Result<()> {
    if environment == answer && answer <= MAX_PES {
        return Ok(());
    }
    let what = format!("the process manager says {name} {answer}, the environment {environment}");
    Err(unexpected(interface, "joining", what))
}

#[cfg(test)]
mod tests;
