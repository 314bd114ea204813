//! The platforms that programs run on.

use clap::ValueEnum;
use oxshmem::FenceSite;
use oxshmem_litmus::directed::Machine;
use oxshmem_litmus::{MemoryModel, machines};

/// A platform for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Platform {
    /// Simulated lanes and memory that are as weak as is permitted.
    #[value(alias = "weak(loopback)")]
    Weak,
    /// Simulated memory alone, with weak CPUs.
    Simulator,
    /// Real memory: threads of this process, or the processes of a job.
    Loopback,
    /// The transports of this job's PEs.
    #[value(skip)]
    Job,
}

impl Platform {
    /// Whether the scheduler decides the runs, so that they can be repeated.
    pub fn is_simulated(self) -> bool {
        matches!(self, Platform::Weak | Platform::Simulator)
    }

    /// The simulated machines that a program runs on, in order; none on real memory.
    pub fn machines(self, pes: usize, model: MemoryModel, omit: Option<FenceSite>) -> Vec<Machine> {
        let mut all = match self {
            Platform::Weak => machines::weak(pes, model),
            Platform::Simulator => vec![machines::mapped(pes, model)],
            Platform::Loopback | Platform::Job => Vec::new(),
        };
        if let Some(inserted) = omit {
            for machine in &mut all {
                machine.builder = machine.builder.clone().disable_fence(inserted);
            }
        }
        all
    }
}
