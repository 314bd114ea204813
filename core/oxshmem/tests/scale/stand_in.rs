//! Transports that declare what the real ones will, and move nothing.

use std::any::Any;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    AtomicLevel, AtomicTable, Capabilities, Completion, Counters, Device, Domain, Error, GpuFlush,
    Guarantees, Job, Lane, Limits, LocalKey, Memory, MemoryKind, Network, Op, Pe, Peer, Posted,
    Reach, Region, RegionId, RemoteRegion, Result, SignalSupport, Transport, WireUp,
};

/// The transport that a [`StandIn`] stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// GPUs of one host.
    Nvlink,
    /// Host memory of one host, mapped.
    Loopback,
    /// Host and GPU memory everywhere, on a lane.
    Verbs,
}

#[derive(Clone, Debug)]
pub struct StandIn {
    pub kind: Kind,
    pub devices: Vec<String>,
}

impl StandIn {
    fn memory(kind: Kind) -> &'static [MemoryKind] {
        match kind {
            Kind::Nvlink => &[MemoryKind::Cuda],
            Kind::Loopback => &[MemoryKind::Host],
            Kind::Verbs => &[MemoryKind::Host, MemoryKind::Cuda],
        }
    }
}

// SAFETY: the one mapping it gives is the memory registered with the same domain, kept by its owner;
// no operation is ever accepted.
unsafe impl Transport for StandIn {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Nvlink => "nvlink",
            Kind::Loopback => "loopback",
            Kind::Verbs => "verbs",
        }
    }

    fn probe(&self) -> Result<Vec<Device>> {
        let device = |name: &String| Device {
            name: name.clone(),
            description: "a stand-in".into(),
            megabits: 400_000,
            networks: match self.kind {
                Kind::Verbs => vec![Network {
                    name: "InfiniBand fe80::/64".into(),
                    uncertain: false,
                }],
                Kind::Nvlink | Kind::Loopback => Vec::new(),
            },
        };
        Ok(self.devices.iter().map(device).collect())
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let limits = Limits {
            max: u64::MAX,
            align: 1,
            unregistered: 0,
            inline: 0,
            ordered: u64::MAX,
        };
        let atomics = match self.kind {
            Kind::Nvlink => AtomicLevel::None,
            Kind::Loopback => AtomicLevel::Cpu,
            Kind::Verbs => AtomicLevel::Nic,
        };
        Ok(Arc::new(StandInDomain {
            kind: self.kind,
            // A queue pair's name, a GID: what a NIC's address is long.
            address: format!("{:>16}{:024}", device.name, job.me.0).into_bytes(),
            job: job.clone(),
            capabilities: Capabilities {
                put: limits,
                get: limits,
                put_signal: SignalSupport::None,
                atomics: AtomicTable::uniform(atomics),
                memory: StandIn::memory(self.kind),
                depth: None,
                wire_up: match self.kind {
                    Kind::Verbs => WireUp::PerLane,
                    _ => WireUp::None,
                },
                passive_target: true,
                moves_in_calls: false,
                acknowledges: true,
                pins: false,
                batch: 1,
                message: 0,
            },
            registered: Mutex::default(),
        }))
    }
}

#[derive(Debug)]
struct StandInDomain {
    kind: Kind,
    address: Vec<u8>,
    job: Job,
    capabilities: Capabilities,
    registered: Mutex<Option<Memory>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Domain for StandInDomain {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        StandIn::memory(self.kind)
            .contains(&kind)
            .then_some(Guarantees {
                put_put: true,
                put_fence_put: true,
                put_atomic: true,
                atomic_put: true,
                atomic_atomic: true,
                put_message: false,
                put_get: true,
                get_get: true,
                across_lanes: false,
                completion: Completion::Accepted,
                gpu_flush: GpuFlush::None,
            })
    }

    fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        let near = peer.host == self.job.host;
        let elsewhere = || Reach::None(format!("it runs on host {}", peer.host.0));
        match (self.kind, kind) {
            (Kind::Verbs, _) => Reach::Remote,
            (Kind::Loopback, MemoryKind::Host) | (Kind::Nvlink, MemoryKind::Cuda) if near => {
                Reach::Mapped { descriptor: false }
            }
            (Kind::Loopback, MemoryKind::Host) | (Kind::Nvlink, MemoryKind::Cuda) => elsewhere(),
            (_, kind) => Reach::None(format!("{kind} memory is none of its own")),
        }
    }

    fn register(&self, _: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        *held(&self.registered) = Some(memory.clone());
        Ok(Box::new(Registered(self.address.clone())))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        _: &[u8],
        _: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        match &*held(&self.registered) {
            Some(memory) => Ok(Arc::new(Imported {
                memory: memory.clone(),
                mapped: self.kind != Kind::Verbs,
            })),
            None => Err(Error::UnknownRegion {
                transport: "stand-in",
                region: region.0,
                pe: peer.pe,
            }),
        }
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        Ok(Box::new(NoLane))
    }

    fn peer_lost(&self, _: Pe) {}

    fn shutdown(&self) {}
}

#[derive(Debug)]
struct Registered(Vec<u8>);

impl Region for Registered {
    fn id(&self) -> RegionId {
        RegionId(0)
    }

    fn key(&self) -> &[u8] {
        &self.0
    }

    fn local_key(&self) -> LocalKey {
        LocalKey(0)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[derive(Debug)]
struct Imported {
    memory: Memory,
    mapped: bool,
}

impl RemoteRegion for Imported {
    fn mapped(&self) -> Option<NonNull<u8>> {
        self.mapped.then_some(self.memory.base())
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(self.memory.owner())
    }
}

#[derive(Debug)]
struct NoLane;

impl Lane for NoLane {
    fn endpoint(&mut self, _: Pe) -> Result<Vec<u8>> {
        // A queue pair's number, its first packet's and a GID.
        Ok(vec![0x5a; 24])
    }

    fn connect(&mut self, _: Pe, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn post(&mut self, _: Pe, _: &[Op]) -> Posted {
        Posted::refused(
            0,
            Error::Closed {
                transport: "stand-in",
            },
        )
    }

    fn progress(&mut self) -> Result<()> {
        Ok(())
    }

    fn counters(&self, _: Pe) -> Counters {
        Counters::default()
    }
}
