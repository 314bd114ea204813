//! The domain of a simulated transport.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    Accessor, Capabilities, Completion, Domain, Error, GpuFlush, Guarantees, Job, Lane, LocalKey,
    Memory, MemoryKind, Pe, Peer, Reach, Region, RegionId, RegionNumber, RegionNumbers,
    RemoteRegion, Result, Schedule,
};

use super::cpu::Cpu;
use super::lane::SimulatedLane;
use super::wire::{packed, unpacked};
use super::{MAPPED, Simulator};
use crate::machine::Storage;

const ADDRESS: [u8; 4] = *b"sim1";
const KEY: [u8; 4] = *b"key1";

/// One PE's simulator.
#[derive(Debug)]
pub(super) struct SimulatedDomain {
    simulator: Simulator,
    job: Job,
    numbers: RegionNumbers,
    peers: Arc<Peers>,
}

/// The peers of a domain, which its lanes share.
#[derive(Debug, Default)]
pub(super) struct Peers(Mutex<PeersState>);

#[derive(Debug, Default)]
pub(super) struct PeersState {
    pub(super) closed: bool,
    pub(super) lost: HashSet<Pe>,
    pub(super) imported: HashMap<(Pe, RegionId), Arc<Storage>>,
}

impl Peers {
    /// The guarded state is whole whenever it is unlocked, so poison means nothing.
    pub(super) fn lock(&self) -> MutexGuard<'_, PeersState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimulatedDomain {
    pub(super) fn new(simulator: Simulator, job: Job) -> Self {
        SimulatedDomain {
            simulator,
            job,
            numbers: RegionNumbers::default(),
            peers: Arc::default(),
        }
    }

    fn open(&self) -> Result<()> {
        if self.peers.lock().closed {
            Err(Error::Closed {
                transport: self.simulator.name,
            })
        } else {
            Ok(())
        }
    }

    /// How memory of a PE that has this open is reached.
    fn way(&self, pe: Pe, kind: MemoryKind) -> Reach {
        if kind != MemoryKind::Host {
            return Reach::Remote;
        }
        let way = self.simulator.maps.reach(self.job.me, pe);
        way.unwrap_or_else(Reach::None)
    }
}

impl Domain for SimulatedDomain {
    fn capabilities(&self) -> &Capabilities {
        &self.simulator.capabilities
    }

    /// A lane's queue keeps order; two lanes' queues know nothing of each other.
    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        let listed = self.simulator.capabilities.memory.contains(&kind);
        listed.then_some(Guarantees {
            put_put: true,
            put_fence_put: true,
            put_atomic: true,
            atomic_put: true,
            atomic_atomic: true,
            put_message: false,
            put_get: true,
            get_get: true,
            across_lanes: false,
            completion: Completion::Placed,
            gpu_flush: match kind {
                MemoryKind::Cuda => GpuFlush::Target,
                _ => GpuFlush::None,
            },
        })
    }

    /// This process, and the machine in it: two PEs reach each other if they name the same.
    fn address(&self) -> Vec<u8> {
        let machine = Arc::as_ptr(&self.simulator.machine).addr() as u64;
        packed(ADDRESS, &[std::process::id().into(), machine])
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        let name = self.simulator.name;
        match &peer.address {
            _ if !self.simulator.capabilities.memory.contains(&kind) => {
                Reach::None(format!("{name} carries no {kind} memory"))
            }
            _ if peer.pe.0 >= self.job.size => {
                Reach::None(format!("the job has {} PEs", self.job.size))
            }
            None => Reach::None(format!("it has no {name} open")),
            Some(address) if *address != self.address() => {
                Reach::None("it is on another machine; give both PEs the same Machine".into())
            }
            Some(_) => self.way(peer.pe, kind),
        }
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        self.open()?;
        let refused = |why: &str| Error::Memory {
            transport: self.simulator.name,
            kind: memory.kind(),
            why: why.into(),
        };
        if !self.simulator.capabilities.memory.contains(&memory.kind()) {
            return Err(refused("it was made to carry other kinds"));
        }
        let storage = self.simulator.machine.register(self.job.me, memory);
        let storage = storage.ok_or_else(|| refused("it is not whole aligned words of 8 bytes"))?;
        let taken = self.numbers.claim(self.simulator.name, id, memory)?;
        let key = packed(KEY, &[storage.number(), id.0.into(), storage.len() as u64]);
        Ok(Box::new(SimulatedRegion {
            taken,
            storage,
            key,
        }))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        _: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        self.open()?;
        let bad = |why: &str| Error::BadPeerData {
            transport: self.simulator.name,
            what: "the key of a region",
            pe: peer.pe,
            why: why.into(),
        };
        let [number, id, len] = unpacked(KEY, key).ok_or_else(|| bad("it is not a key"))?;
        let machine = &self.simulator.machine;
        let storage = machine.numbered(number);
        let storage = storage.ok_or_else(|| bad("no such region, or not any more"))?;
        let owned = (storage.pe(), storage.len() as u64);
        if owned != (peer.pe, len) || id != u64::from(region.0) {
            return Err(bad("it is another region's"));
        }
        let mut peers = self.peers.lock();
        let known = (peer.pe, region);
        peers.imported.insert(known, Arc::clone(&storage));
        let mapped = self.way(peer.pe, storage.kind()) == MAPPED;
        let accessor = mapped.then(|| {
            let cpu: Arc<dyn Accessor> = Arc::new(Cpu {
                machine: Arc::clone(machine),
                me: self.job.me,
                storage: Arc::clone(&storage),
                schedule: self.schedule(),
            });
            cpu
        });
        Ok(Arc::new(SimulatedRemote { storage, accessor }))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        self.open()?;
        let (simulator, job) = (self.simulator.clone(), self.job.clone());
        let peers = Arc::clone(&self.peers);
        Ok(Box::new(SimulatedLane::new(simulator, job, peers)))
    }

    fn make_visible(&self, kind: MemoryKind) -> Result<()> {
        if kind == MemoryKind::Cuda {
            self.simulator.machine.make_visible(self.job.me);
        }
        Ok(())
    }

    fn schedule(&self) -> Option<Arc<dyn Schedule>> {
        let schedules = self.simulator.schedules.as_ref()?;
        Some(schedules(self.job.me))
    }

    fn peer_lost(&self, pe: Pe) {
        self.peers.lock().lost.insert(pe);
    }

    fn shutdown(&self) {
        self.peers.lock().closed = true;
    }
}

#[derive(Debug)]
struct SimulatedRegion {
    taken: RegionNumber,
    storage: Arc<Storage>,
    key: Vec<u8>,
}

impl Region for SimulatedRegion {
    fn id(&self) -> RegionId {
        self.taken.id()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        LocalKey(self.storage.number())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[derive(Debug)]
struct SimulatedRemote {
    storage: Arc<Storage>,
    accessor: Option<Arc<dyn Accessor>>,
}

impl RemoteRegion for SimulatedRemote {
    fn mapped(&self) -> Option<NonNull<u8>> {
        None
    }

    fn accessor(&self) -> Option<Arc<dyn Accessor>> {
        self.accessor.clone()
    }

    fn len(&self) -> usize {
        self.storage.len()
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.storage) as _
    }
}
