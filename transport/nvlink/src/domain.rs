//! The domain of the nvlink transport: one PE's GPU, and the peers' memory mapped for it.

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

use crate::bounce_pool::PinnedPool;
use crate::device_state::DeviceState;
use crate::domain_state::{Keep, Mapped};
use crate::driver_error::driver_error;
use crate::lane::NvlinkLane;
use crate::limits::{DEPTH, NAME, UNREGISTERED};
use crate::local_region::{NvlinkLocalRegion, ON_GPU};
use crate::process::{self, Process, Registration};
use crate::wire::{Address, Key};

const LIMITS: Limits = Limits {
    max: 1 << 40,
    align: 1,
    unregistered: UNREGISTERED as u64,
    inline: 0,
    ordered: u64::MAX,
};

/// The order of a stream; none between streams.
const GUARANTEES: Guarantees = Guarantees {
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
    gpu_flush: GpuFlush::None,
};

/// One PE's GPU.
#[derive(Debug)]
pub(crate) struct NvlinkDomain {
    device_state: Arc<DeviceState>,
    capabilities: Capabilities,
    numbers: RegionNumbers,
    /// Peers' heaps, by PE and base address there.
    heaps: Mutex<Heaps>,
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

type Heaps = BTreeMap<(Pe, u64), Arc<Mutex<Imported>>>;

impl NvlinkDomain {
    pub(crate) fn new(context: Context, kernels: Arc<Kernels>, job: Job) -> NvlinkDomain {
        NvlinkDomain {
            device_state: Arc::new(DeviceState {
                context,
                kernels,
                pinned: PinnedPool::default(),
                published: Published::default(),
                job,
            }),
            capabilities: Capabilities {
                // Puts from host memory go through the bounce pool.
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
                moves_in_calls: false,
                acknowledges: true,
            },
            numbers: RegionNumbers::default(),
            heaps: Mutex::default(),
        }
    }

    fn device(&self) -> &Device {
        self.device_state.context.device()
    }

    /// Whether this GPU reaches another one's memory, and performs atomics there; else the reason.
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

    /// Memory of a PE of this process, this PE included.
    fn find(&self, key: &Key) -> Option<(DevicePtr, Keep)> {
        let memory = process::find(key.number).filter(|_| key.process == Process::this())?;
        let start = DevicePtr::from_host(memory.base().as_ptr());
        let is_it = start.as_raw() == key.heap.wrapping_add(key.offset)
            && memory.len() as u64 == key.len
            && memory.kind() == MemoryKind::Cuda;
        is_it.then(|| (start, Arc::clone(memory.owner())))
    }

    /// Legacy memory of a PE that is another thread of this process: its address is the same here.
    fn in_process(&self, key: &Key) -> Result<Option<(DevicePtr, Keep)>> {
        let Some(found) = self.find(key) else {
            return Ok(None);
        };
        if key.uuid != self.device().uuid() {
            let all =
                devices().map_err(|error| driver_error("looking for a peer's GPU", &error))?;
            let Some(theirs) = all.into_iter().find(|gpu| gpu.uuid() == key.uuid) else {
                return Ok(None);
            };
            let peer = Context::new(&theirs);
            let enabled = peer.and_then(|peer| self.device_state.context.enable_peer_access(&peer));
            enabled.map_err(|error| driver_error("peer access to a GPU", &error))?;
        }
        Ok(Some(found))
    }

    /// Maps a peer's extent, next to those of the same heap: by its descriptor if there is one, else as a
    /// fabric handle, else by legacy IPC, which maps its heap as a whole.
    fn map(&self, pe: Pe, key: &Key, descriptor: Option<OwnedFd>) -> Result<(DevicePtr, Keep)> {
        let bytes = (descriptor.as_ref().map(|fd| Import::Fd(fd.as_fd()))).or(key
            .names
            .fabric
            .as_ref()
            .map(Import::Fabric));
        if let (None, Some(_)) = (bytes, key.names.ipc)
            && let Some(found) = self.in_process(key)?
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
                let heap = Imported::new(&self.device_state.context, size(key.limit));
                let heap =
                    heap.map_err(|error| driver_error("a place for a peer's heap", &error))?;
                Arc::new(Mutex::new(heap))
            }
        };
        let mut reserved = heap.lock().unwrap_or_else(PoisonError::into_inner);
        let (offset, len) = (size(key.offset), size(key.len));
        let mapped = reserved.address(offset, len);
        let start = match (import, mapped) {
            (Import::Ipc(_), Some(start)) => Ok(start),
            (Import::Ipc(_), None) => {
                let whole = reserved.add(0, size(key.limit), import);
                whole.map(|base| base.add(offset))
            }
            (_, mapped) => {
                if mapped.is_some() {
                    // Mapped by a call that then failed on another PE: after the roll-back it is other memory.
                    reserved.truncate(offset);
                }
                reserved.add(offset, len, import)
            }
        };
        let start = start.map_err(|error| {
            driver_error(&format!("mapping {len} bytes of PE {pe}'s GPU"), &error)
        })?;
        drop(reserved);
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
        if peer.host != self.device_state.job.host {
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
        // To want one of a GPU that gives none would be a wait for nothing.
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
        // Memory without a descriptor or names is accepted with a reason alone: peers get that reason.
        if memory.descriptor().is_none() && names.is_empty() && names.refused.is_none() {
            let why = "nothing names it to peers; make it a heap/cuda Segment";
            return Err(Self::refuse(memory.kind(), why));
        }
        let (offset, limit) = memory.part();
        let registration = Registration::new(memory);
        let key = Key {
            uuid: self.device().uuid(),
            heap: (memory.base().addr().get() - offset) as u64,
            limit: limit as u64,
            offset: offset as u64,
            len: memory.len() as u64,
            process: Process::this(),
            number: registration.number(),
            names,
        };
        let number = self.numbers.claim(NAME, id, memory)?;
        Ok(Box::new(NvlinkRegion {
            number,
            key: key.to_bytes(),
            descriptor: memory.descriptor().cloned(),
            _registration: registration,
        }))
    }

    unsafe fn register_local(
        &self,
        addr: *mut u8,
        len: usize,
        _written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        Ok(Box::new(NvlinkLocalRegion::new(
            &self.device_state.context,
            addr,
            len,
        )?))
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
        if peer.pe.0 >= self.device_state.job.size {
            return Err(bad(format!(
                "the job has {} PEs",
                self.device_state.job.size
            )));
        }
        let (start, keep) = if peer.pe == self.device_state.job.me {
            let found = self.find(&key);
            found.ok_or_else(|| bad("it is of no region here".into()))?
        } else {
            self.map(peer.pe, &key, descriptor)?
        };
        let kept = Arc::clone(&keep);
        self.device_state.published.change(|state| {
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
        Ok(Box::new(NvlinkLane::new(&self.device_state)?))
    }

    fn peer_lost(&self, pe: Pe) {
        self.device_state.published.change(|state| {
            if !state.lost.contains(&pe) {
                state.lost.push(pe);
            }
        });
    }

    fn shutdown(&self) {
        self.device_state
            .published
            .change(|state| state.closed = true);
    }
}

#[derive(Debug)]
struct NvlinkRegion {
    number: RegionNumber,
    key: Vec<u8>,
    descriptor: Option<Arc<OwnedFd>>,
    _registration: Registration,
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
