//! The domain of the loopback transport.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use oxshmem_heap::Mapping;
use oxshmem_transport::{
    AtomicLevel, AtomicTable, Capabilities, Completion, Domain, Error, GpuFlush, Guarantees, Job,
    Lane, Limits, LocalKey, Memory, MemoryKind, Pe, Peer, Reach, Region, RegionId, RegionNumber,
    RegionNumbers, RemoteRegion, Result, SignalSupport, WireUp,
};

use crate::lane::LoopbackLane;
use crate::name::NAME;
use crate::peers::{Imported, Keeper, Peers};
use crate::registry::Registry;
use crate::wire::{Address, Key};

/// No memory is longer (Rust's own bound).
const MAX: u64 = isize::MAX as u64;

const LIMITS: Limits = Limits {
    max: MAX,
    align: 1,
    unregistered: MAX,
    inline: MAX,
    ordered: u64::MAX,
};

static CAPABILITIES: Capabilities = Capabilities {
    put: LIMITS,
    get: LIMITS,
    put_signal: SignalSupport::Native(AtomicLevel::Cpu),
    atomics: AtomicTable::uniform(AtomicLevel::Cpu),
    memory: &[MemoryKind::Host],
    depth: None,
    wire_up: WireUp::None,
    pins: false,
    batch: 1,
    message: 0,
    passive_target: true,
    moves_in_calls: false,
    acknowledges: true,
};

/// All hold on every CPU, because a lane performs each operation in `post` and puts the fences
/// there that a CPU weaker than x86 needs (see [`crate::lane`]). They are about lanes alone: plain stores to
/// a mapping follow the CPU's memory model.
const GUARANTEES: Guarantees = Guarantees {
    put_put: true,
    put_fence_put: true,
    put_atomic: true,
    atomic_put: true,
    atomic_atomic: true,
    put_message: false,
    put_get: true,
    get_get: true,
    across_lanes: true,
    completion: Completion::Placed,
    gpu_flush: GpuFlush::None,
};

/// One PE's domain.
#[derive(Debug)]
pub(crate) struct LoopbackDomain {
    registry: Arc<Registry>,
    own: Address,
    job: Job,
    numbers: RegionNumbers,
    peers: Arc<Peers>,
}

impl LoopbackDomain {
    pub(crate) fn new(registry: Arc<Registry>, own: Address, job: &Job) -> LoopbackDomain {
        let peers = Arc::new(Peers::new(job.size));
        LoopbackDomain {
            registry,
            own,
            job: job.clone(),
            numbers: RegionNumbers::default(),
            peers,
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.peers.read().closed {
            return Err(Error::Closed { transport: NAME });
        }
        Ok(())
    }

    /// Finds a peer's memory: in this process if the key was made here, else by mapping the
    /// descriptor.
    fn locate(&self, pe: Pe, key: &Key, descriptor: Option<OwnedFd>) -> Result<Keeper> {
        if key.nonce == self.own.nonce {
            return match self.registry.find(key.number) {
                Some(memory) if memory.len() as u64 == key.len => Ok(Keeper::Memory(memory)),
                Some(memory) => Err(bad_key(
                    pe,
                    format!("{} bytes of {}", key.len, memory.len()),
                )),
                None => Err(bad_key(pe, "its registration has ended".into())),
            };
        }
        let Some(descriptor) = descriptor else {
            let why = "the memory is another process's, and no descriptor came with the key";
            return Err(bad_key(pe, why.into()));
        };
        let len = usize::try_from(key.len)
            .map_err(|_| bad_key(pe, format!("{} bytes are more than any memory", key.len)))?;
        match Mapping::of_descriptor(descriptor.as_fd(), len) {
            Ok(mapping) => Ok(Keeper::Mapping(Arc::new(mapping))),
            Err(error @ oxshmem_heap::Error::BadDescriptor { .. }) => {
                Err(bad_key(pe, error.to_string()))
            }
            Err(error) => Err(Error::Os {
                transport: NAME,
                call: format!("mapping {len} bytes of PE {pe}"),
                source: std::io::Error::other(error),
            }),
        }
    }
}

/// Whether no descriptor can be passed between the two: abstract sockets are limited to one network namespace.
fn is_elsewhere(own: Address, theirs: Address) -> bool {
    matches!((own.network, theirs.network), (Some(own), Some(theirs)) if own != theirs)
}

fn bad_key(pe: Pe, why: String) -> Error {
    Error::BadPeerData {
        transport: NAME,
        what: "the key of a region",
        pe,
        why,
    }
}

impl Domain for LoopbackDomain {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        (kind == MemoryKind::Host).then_some(GUARANTEES)
    }

    fn address(&self) -> Vec<u8> {
        self.own.to_bytes()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        if kind != MemoryKind::Host {
            return Reach::None(format!("{kind} memory is not the CPU's to load and store"));
        }
        if peer.pe.0 >= self.job.size {
            return Reach::None(format!("the job has {} PEs", self.job.size));
        }
        if peer.host != self.job.host {
            return Reach::None(format!(
                "it runs on host {}, this PE on {}",
                peer.host.0, self.job.host.0
            ));
        }
        let Some(address) = &peer.address else {
            return Reach::None("it has no loopback open".into());
        };
        match Address::from_bytes(address) {
            Ok(theirs) if theirs.nonce == self.own.nonce => Reach::Mapped { descriptor: false },
            Ok(theirs) if is_elsewhere(self.own, theirs) => Reach::None(
                "it is in another network namespace (another container), and memory is passed \
                 within one only: give both the same network (docker run --network host, or \
                 --network container:NAME)"
                    .into(),
            ),
            Ok(_) => Reach::Mapped { descriptor: true },
            Err(why) => Reach::None(format!("its address makes no sense: {why}")),
        }
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        self.check_open()?;
        let refused = |why: &str| {
            let (kind, why) = (memory.kind(), why.into());
            Err(Error::Memory {
                transport: NAME,
                kind,
                why,
            })
        };
        if memory.kind() != MemoryKind::Host {
            return refused("only host memory can be mapped");
        }
        if !memory.base().addr().get().is_multiple_of(PAGE) {
            return refused("it does not begin on a page");
        }
        let claimed = self.numbers.claim(NAME, id, memory)?;
        let memory = Arc::new(memory.clone());
        let number = self.registry.insert(&memory);
        let key = Key {
            nonce: self.own.nonce,
            number,
            pe: self.job.me.0,
            region: id.0,
            len: memory.len() as u64,
        };
        let registry = self.registry.clone();
        Ok(Box::new(LoopbackRegion {
            registry,
            claimed,
            number,
            key: key.to_bytes(),
            memory,
        }))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        self.check_open()?;
        if self.peers.read().lost.contains(&peer.pe) {
            return Err(Error::PeerLost {
                transport: NAME,
                pe: peer.pe,
            });
        }
        if let Reach::None(why) = self.reach(peer, MemoryKind::Host) {
            return Err(Error::Unreachable {
                transport: NAME,
                pe: peer.pe,
                why,
            });
        }
        let key = Key::from_bytes(key).map_err(|why| bad_key(peer.pe, why))?;
        if (key.pe, key.region) != (peer.pe.0, region.0) {
            let why = format!("it is of region {} of PE {}", key.region, key.pe);
            return Err(bad_key(
                peer.pe,
                format!("{why}, not of region {}", region.0),
            ));
        }
        let keeper = self.locate(peer.pe, &key, descriptor)?;
        let imported = Arc::new(Imported { keeper });
        self.peers
            .write()
            .imported
            .insert((peer.pe, region), imported.clone());
        Ok(imported)
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        self.check_open()?;
        Ok(Box::new(LoopbackLane::new(self.peers.clone())))
    }

    fn peer_lost(&self, pe: Pe) {
        if pe.0 < self.job.size {
            let mut state = self.peers.write();
            state.lost.insert(pe);
            state.imported.retain(|(owner, _), _| *owner != pe);
        }
    }

    fn shutdown(&self) {
        let mut state = self.peers.write();
        state.closed = true;
        state.imported.clear();
    }
}

/// The smallest page of any system: memory that begins on a page is aligned for every word.
const PAGE: usize = 4096;

#[derive(Debug)]
struct LoopbackRegion {
    registry: Arc<Registry>,
    claimed: RegionNumber,
    number: u64,
    key: Vec<u8>,
    memory: Arc<Memory>,
}

impl Region for LoopbackRegion {
    fn id(&self) -> RegionId {
        self.claimed.id()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        LocalKey(self.number)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.memory
            .descriptor()
            .map(|descriptor| descriptor.as_fd())
    }
}

impl Drop for LoopbackRegion {
    fn drop(&mut self) {
        self.registry.remove(self.number);
    }
}
