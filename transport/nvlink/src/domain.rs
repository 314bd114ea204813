use std::any::Any;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use oxshmem_cuda::{Context, Device, DevicePtr, Import, Imported, Names, devices};
use oxshmem_device::Kernels;
use oxshmem_transport::{
    AtomicLevel, AtomicTable, Capabilities, Completion, Domain, Error, GpuFlush, Guarantees, Job,
    Lane, Limits, LocalKey, LocalRegion, Memory, MemoryKind, Pe, Peer, Published, Reach, Region,
    RegionId, RegionNumber, RegionNumbers, RemoteRegion, Result, SignalSupport, WireUp,
};

use crate::fault::driver;
use crate::key::{Address, Key};
use crate::lane::{DEPTH, NvlinkLane};
use crate::local::{Near, ON_GPU};
use crate::pool::Memories;
use crate::process::{self, Process, Registered};
use crate::shared::{Keep, Mapped, State};
use crate::{NAME, UNREGISTERED};

const LIMITS: Limits = Limits {
    max: 1 << 40,
    align: 1,
    unregistered: UNREGISTERED as u64,
    inline: 0,
};

/// A stream's order, and nothing between streams.
const GUARANTEES: Guarantees = Guarantees {
    put_put: true,
    put_atomic: true,
    atomic_put: true,
    atomic_atomic: true,
    put_message: false,
    put_get: true,
    get_get: true,
    across_lanes: false,
    completion: Completion::Placed,
    gpu_flush: GpuFlush::None,
};

/// What lanes need.
#[derive(Debug)]
pub(crate) struct Opened {
    pub context: Context,
    pub kernels: Arc<Kernels>,
    pub memories: Memories,
    pub shared: Published<State>,
    pub job: Job,
}

/// One PE's GPU.
#[derive(Debug)]
pub(crate) struct NvlinkDomain {
    opened: Arc<Opened>,
    capabilities: Capabilities,
    numbers: RegionNumbers,
    /// Peers' heaps, by PE and where they begin there.
    heaps: Mutex<Heaps>,
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

type Heaps = BTreeMap<(Pe, u64), Arc<Mutex<Imported>>>;

impl NvlinkDomain {
    pub(crate) fn new(context: Context, kernels: Arc<Kernels>, job: Job) -> NvlinkDomain {
        NvlinkDomain {
            opened: Arc::new(Opened {
                context,
                kernels,
                memories: Memories::default(),
                shared: Published::default(),
                job,
            }),
            capabilities: Capabilities {
                // What the host sends goes by way of the pool.
                put: Limits {
                    inline: UNREGISTERED as u64,
                    ..LIMITS
                },
                get: LIMITS,
                put_signal: SignalSupport::Native(AtomicLevel::Cpu),
                atomics: AtomicTable::uniform(AtomicLevel::Cpu),
                memory: &[MemoryKind::Cuda],
                depth: Some(DEPTH),
                wire_up: WireUp::None,
                pins: false,
                batch: 1,
                message: 0,
                passive_target: true,
            },
            numbers: RegionNumbers::default(),
            heaps: Mutex::default(),
        }
    }

    fn device(&self) -> &Device {
        self.opened.context.device()
    }

    /// Whether this GPU reaches another one's memory, and performs atomics there; else why not.
    fn reaches(&self, address: &Address) -> std::result::Result<(), String> {
        let mine = self.device();
        if address.uuid == mine.uuid() {
            return Ok(());
        }
        let all = devices().map_err(|error| error.to_string())?;
        let Some(theirs) = all.into_iter().find(|d| d.uuid() == address.uuid) else {
            return Err(format!(
                "its {} is hidden from this process; let CUDA_VISIBLE_DEVICES show it",
                address.uuid
            ));
        };
        let pair = format!("GPU {} and {}", mine.ordinal(), theirs.ordinal());
        match mine.can_access(&theirs) {
            Ok(true) => {}
            Ok(false) => {
                return Err(format!(
                    "{pair} have no peer access (nvidia-smi topo -p2p r)"
                ));
            }
            Err(error) => return Err(error.to_string()),
        }
        match mine.native_atomics_to(&theirs) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!(
                "the link between {pair} carries no atomics (nvidia-smi topo -p2p a)"
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Memory of a PE of this process, its own included.
    fn find(&self, key: &Key) -> Option<(DevicePtr, Keep)> {
        let memory = process::find(key.number).filter(|_| key.process == Process::this())?;
        let start = DevicePtr::from_host(memory.base().as_ptr());
        let is_it = start.as_raw() == key.heap.wrapping_add(key.offset)
            && memory.len() as u64 == key.len
            && memory.kind() == MemoryKind::Cuda;
        is_it.then(|| (start, Arc::clone(memory.owner())))
    }

    /// Legacy memory of a PE that is a thread beside this one: where it is there, it is here.
    fn beside(&self, key: &Key) -> Result<Option<(DevicePtr, Keep)>> {
        let Some(found) = self.find(key) else {
            return Ok(None);
        };
        if key.uuid != self.device().uuid() {
            let all = devices().map_err(|error| driver("looking for a peer's GPU", &error))?;
            let Some(theirs) = all.into_iter().find(|gpu| gpu.uuid() == key.uuid) else {
                return Ok(None);
            };
            let peer = Context::new(&theirs);
            let enabled = peer.and_then(|peer| self.opened.context.enable_peer_access(&peer));
            enabled.map_err(|error| driver("peer access to a GPU", &error))?;
        }
        Ok(Some(found))
    }

    /// Maps a peer's extent beside those of the same heap: by its descriptor where one came, else as a
    /// fabric handle, else by legacy IPC, which maps its heap as a whole.
    fn map(&self, pe: Pe, key: &Key, descriptor: Option<OwnedFd>) -> Result<(DevicePtr, Keep)> {
        let bytes = (descriptor.as_ref().map(|fd| Import::Fd(fd.as_fd()))).or(key
            .names
            .fabric
            .as_ref()
            .map(Import::Fabric));
        if let (None, Some(_)) = (bytes, key.names.ipc)
            && let Some(found) = self.beside(key)?
        {
            return Ok(found);
        }
        let Some(import) = bytes.or(key.names.ipc.as_ref().map(Import::Ipc)) else {
            return Err(match &key.names.refused {
                Some(why) => Self::refuse(MemoryKind::Cuda, format!("at PE {pe}: {why}")),
                None => Error::BadPeerData {
                    transport: NAME,
                    what: "a region's descriptor",
                    pe,
                    why: "it did not come, and its GPU has neither fabric handles nor legacy IPC for it"
                        .into(),
                },
            });
        };
        let mut heaps = self.heaps.lock().unwrap_or_else(PoisonError::into_inner);
        let heap = match heaps.get(&(pe, key.heap)) {
            Some(heap) => Arc::clone(heap),
            None => {
                let heap = Imported::new(&self.opened.context, size(key.limit));
                let heap = heap.map_err(|error| driver("a place for a peer's heap", &error))?;
                Arc::new(Mutex::new(heap))
            }
        };
        let mut place = heap.lock().unwrap_or_else(PoisonError::into_inner);
        let (offset, len) = (size(key.offset), size(key.len));
        let mapped = place.address(offset, len);
        let start = match (import, mapped) {
            (Import::Ipc(_), Some(start)) => Ok(start),
            (Import::Ipc(_), None) => {
                let whole = place.add(0, size(key.limit), import);
                whole.map(|base| base.add(offset))
            }
            (_, mapped) => {
                if mapped.is_some() {
                    // By a call that then failed elsewhere: what was taken back is other memory.
                    place.truncate(offset);
                }
                place.add(offset, len, import)
            }
        };
        let start = start
            .map_err(|error| driver(&format!("mapping {len} bytes of PE {pe}'s GPU"), &error))?;
        drop(place);
        heaps.insert((pe, key.heap), Arc::clone(&heap));
        Ok((start, heap))
    }

    fn refuse(kind: MemoryKind, why: impl Into<String>) -> Error {
        Error::Memory {
            transport: NAME,
            kind,
            why: why.into(),
        }
    }
}

impl Domain for NvlinkDomain {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        (kind == MemoryKind::Cuda).then_some(GUARANTEES)
    }

    fn address(&self) -> Vec<u8> {
        let address = Address {
            uuid: self.device().uuid(),
            descriptors: self.device().has_posix_fd(),
        };
        address.to_bytes()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        if kind != MemoryKind::Cuda {
            return Reach::None(format!("{kind} memory is not a GPU's"));
        }
        if peer.host != self.opened.job.host {
            return Reach::None("its GPU is on another host".into());
        }
        let Some(address) = &peer.address else {
            return Reach::None("it has no GPU open".into());
        };
        let Some(address) = Address::from_bytes(address) else {
            return Reach::None("what it says of its GPU cannot be read".into());
        };
        match self.reaches(&address) {
            Ok(()) => Reach::Remote,
            Err(why) => Reach::None(why),
        }
    }

    fn wants_descriptor(&self, peer: &Peer, kind: MemoryKind) -> bool {
        let address = peer.address.as_deref().and_then(Address::from_bytes);
        // Those whose GPUs give none would be waited for.
        self.device().has_posix_fd()
            && address.is_some_and(|address| address.descriptors)
            && self.reach(peer, kind) == Reach::Remote
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        if memory.kind() != MemoryKind::Cuda {
            return Err(Self::refuse(memory.kind(), "only GPU memory is carried"));
        }
        let named = memory
            .names()
            .map_or(Some(Names::default()), Names::from_bytes);
        let Some(names) = named else {
            return Err(Self::refuse(memory.kind(), "its names are not heap/cuda's"));
        };
        // What says why nothing names it is its own PE's alone.
        if memory.descriptor().is_none() && names.is_empty() && names.refused.is_none() {
            let why = "nothing names it to peers; make it a heap/cuda Segment";
            return Err(Self::refuse(memory.kind(), why));
        }
        let (offset, limit) = memory.part();
        let registered = Registered::new(memory);
        let key = Key {
            uuid: self.device().uuid(),
            heap: (memory.base().addr().get() - offset) as u64,
            limit: limit as u64,
            offset: offset as u64,
            len: memory.len() as u64,
            process: Process::this(),
            number: registered.number(),
            names,
        };
        let number = self.numbers.claim(NAME, id, memory)?;
        Ok(Box::new(NvlinkRegion {
            number,
            key: key.to_bytes(),
            descriptor: memory.descriptor().cloned(),
            _registered: registered,
        }))
    }

    unsafe fn register_local(
        &self,
        addr: *mut u8,
        len: usize,
        _written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        Ok(Box::new(Near::new(&self.opened.context, addr, len)?))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let bad = |why: String| Error::BadPeerData {
            transport: NAME,
            what: "a region's key",
            pe: peer.pe,
            why,
        };
        let Some(key) = Key::from_bytes(key) else {
            return Err(bad("it cannot be read".into()));
        };
        if peer.pe.0 >= self.opened.job.size {
            return Err(bad(format!("the job has {} PEs", self.opened.job.size)));
        }
        let (start, keep) = match peer.pe == self.opened.job.me {
            true => self
                .find(&key)
                .ok_or_else(|| bad("it is of no region here".into()))?,
            false => self.map(peer.pe, &key, descriptor)?,
        };
        let kept = Arc::clone(&keep);
        self.opened.shared.change(|state| {
            let mapped = Mapped {
                start,
                len: key.len,
                _keep: kept,
            };
            state.table.insert((peer.pe, region), mapped);
        });
        Ok(Arc::new(NvlinkRemote {
            start,
            len: size(key.len),
            keep,
        }))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        Ok(Box::new(NvlinkLane::new(&self.opened)?))
    }

    fn peer_lost(&self, pe: Pe) {
        self.opened.shared.change(|state| {
            if !state.lost.contains(&pe) {
                state.lost.push(pe);
            }
        });
    }

    fn shutdown(&self) {
        self.opened.shared.change(|state| state.closed = true);
    }
}

#[derive(Debug)]
struct NvlinkRegion {
    number: RegionNumber,
    key: Vec<u8>,
    descriptor: Option<Arc<OwnedFd>>,
    _registered: Registered,
}

impl Region for NvlinkRegion {
    fn id(&self) -> RegionId {
        self.number.id()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        ON_GPU
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor
            .as_ref()
            .map(|descriptor| descriptor.as_fd())
    }
}

#[derive(Debug)]
struct NvlinkRemote {
    start: DevicePtr,
    len: usize,
    keep: Keep,
}

impl RemoteRegion for NvlinkRemote {
    /// The CPU loads no GPU memory.
    fn mapped(&self) -> Option<NonNull<u8>> {
        None
    }

    fn on_gpu(&self) -> Option<u64> {
        Some(self.start.as_raw())
    }

    fn len(&self) -> usize {
        self.len
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.keep)
    }
}
