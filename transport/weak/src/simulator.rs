//! Transports over a simulated [`Machine`]: one that maps, and NICs.
//!
//! All PEs are threads of one process and open clones of one [`Simulator`]. Several over the same
//! machine mean the same memory by the same addresses, so that a world may mix paths: CPU accesses to
//! mapped peers, puts by this NIC, atomics by that. A PE's CPU reaches a mapped peer by an
//! [`Accessor`](oxshmem_transport::Accessor); there is no address to load from.
//!
//! A lane here keeps every order, but waits at a doorbell, as NICs do. For one that does the worst
//! that less would permit put [`Weak`](crate::Weak) over it.
//!
//! Outside of runs ([`Mode::Tame`](crate::Mode)) it is a plain transport between threads.

mod cpu;
mod domain;
mod lane;
mod wire;

use std::fmt;
use std::sync::Arc;

use oxshmem_transport::{
    AtomicLevel, AtomicTable, Capabilities, Device, Domain, Error, Job, Limits, Memory, MemoryKind,
    Pe, Reach, Result, Schedule, SignalSupport, Transport, WireUp, conformance,
};

use self::domain::SimulatedDomain;
use crate::machine::Machine;

/// The scheduler of each PE's thread.
type Schedules = Arc<dyn Fn(Pe) -> Arc<dyn Schedule> + Send + Sync>;

/// How many operations towards one PE a lane holds.
const DEPTH: u32 = 64;

/// A transport of PEs that share a simulated machine.
#[derive(Clone)]
pub struct Simulator {
    machine: Arc<Machine>,
    name: &'static str,
    capabilities: Capabilities,
    maps: Maps,
    schedules: Option<Schedules>,
}

/// The other PEs whose host memory a PE's CPU loads and stores.
#[derive(Clone, Debug)]
enum Maps {
    None,
    All,
    /// By PE the host that it simulates to be on: those of equal number.
    ByHost(Vec<u32>),
}

impl Maps {
    /// How `me` reaches another PE's host memory; the error says why it does not.
    fn reach(&self, me: Pe, other: Pe) -> Result<Reach, String> {
        match self {
            Maps::None if me != other => Ok(Reach::Remote),
            Maps::ByHost(hosts) if me != other => {
                let host = |pe: Pe| hosts.get(pe.index()).copied();
                match (host(me), host(other)) {
                    (Some(mine), Some(its)) if mine == its => Ok(MAPPED),
                    _ => Err("it was put on another simulated host; add a NIC".into()),
                }
            }
            _ => Ok(MAPPED),
        }
    }
}

/// There is no descriptor to pass on.
const MAPPED: Reach = Reach::Mapped { descriptor: false };

impl Simulator {
    /// Named `simulator`: every PE's CPU loads and stores every PE's host memory.
    #[must_use]
    pub fn new(machine: Arc<Machine>) -> Self {
        Simulator {
            maps: Maps::All,
            ..Self::nic(machine, "simulator", &[MemoryKind::Host])
        }
    }

    /// A NIC for each PE, which reaches other PEs' memory of these kinds by operations alone. (A PE's
    /// CPU still loads and stores its own host memory.)
    #[must_use]
    pub fn nic(machine: Arc<Machine>, name: &'static str, memory: &'static [MemoryKind]) -> Self {
        // Where the bytes are does not matter to a simulated NIC; it reads them when it comes to it.
        let limits = Limits {
            max: 1 << 30,
            align: 1,
            unregistered: 1 << 30,
            inline: 0,
            ordered: u64::MAX,
        };
        let capabilities = Capabilities {
            put: limits,
            get: limits,
            put_signal: SignalSupport::Native(AtomicLevel::Cpu),
            atomics: AtomicTable::uniform(AtomicLevel::Cpu),
            memory,
            depth: Some(DEPTH),
            wire_up: WireUp::None,
            pins: false,
            batch: 1,
            message: 0,
            passive_target: true,
            moves_in_calls: false,
            acknowledges: true,
        };
        Simulator {
            machine,
            name,
            capabilities,
            maps: Maps::None,
            schedules: None,
        }
    }

    /// PEs that are given different numbers are on different hosts, and reach each other by another
    /// transport, such as a [`nic`](Self::nic) listed after this one.
    #[must_use]
    pub fn on_hosts(mut self, host_of_pe: Vec<u32>) -> Self {
        self.maps = Maps::ByHost(host_of_pe);
        self
    }

    /// With these atomics only, on lanes and for what it says of itself.
    #[must_use]
    pub fn with_atomics(mut self, atomics: AtomicTable) -> Self {
        self.capabilities.atomics = atomics;
        self
    }

    /// With put-with-signal as an operation, or not.
    #[must_use]
    pub fn with_put_signal(mut self, support: SignalSupport) -> Self {
        self.capabilities.put_signal = support;
        self
    }

    /// PEs' threads run when these say so.
    #[must_use]
    pub fn scheduled(
        mut self,
        schedules: impl Fn(Pe) -> Arc<dyn Schedule> + Send + Sync + 'static,
    ) -> Self {
        self.schedules = Some(Arc::new(schedules));
        self
    }

    /// The machine that it is over.
    #[must_use]
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator")
            .field("name", &self.name)
            .field("machine", &self.machine)
            .field("capabilities", &self.capabilities)
            .field("maps", &self.maps)
            .field("scheduled", &self.schedules.is_some())
            .finish()
    }
}

// SAFETY: nothing here is mapped. A lane touches local memory only in `progress`, for operations it
// has queued: it counts one as completed after that, and drops the queue with the lane or the PE.
unsafe impl Transport for Simulator {
    fn name(&self) -> &'static str {
        self.name
    }

    fn probe(&self) -> Result<Vec<Device>> {
        let description = "a simulated machine for the threads of this process".into();
        Ok(vec![Device {
            name: "machine".into(),
            description,
            megabits: 0,
            networks: Vec::new(),
        }])
    }

    fn open(&self, _: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let (size, pes) = (job.size, self.machine.pes());
        if size > pes {
            let why = format!("the machine has {pes} CPUs, the job {size} PEs; make a larger one");
            let transport = self.name;
            return Err(Error::Unavailable { transport, why });
        }
        Ok(Arc::new(SimulatedDomain::new(self.clone(), job.clone())))
    }
}

/// `len` bytes, rounded up to whole pages, that stand for memory of a GPU, to be registered with
/// simulators: addresses alone, whose bytes nobody uses. None where there is not that much.
#[must_use]
pub fn simulated_gpu_memory(len: usize) -> Option<Memory> {
    conformance::pages(len, MemoryKind::Cuda)
}
