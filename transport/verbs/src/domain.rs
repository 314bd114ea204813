//! One PE's opened port.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Completion, Domain, Error, GpuFlush,
    Guarantees, Inbox, Job, Lane, Limits, LocalRegion, Memory, MemoryKind, Pe, Peer, Reach, Region,
    RegionId, RegionNumbers, RemoteRegion, Result, SignalSupport, Width, WireUp,
};

use crate::gpu::{self, Carries, Gpu};
use crate::ibv::sys::ibv_atomic_cap;
use crate::ibv::{Connect, Event, ProtectionDomain};
use crate::inbox::VerbsInbox;
use crate::lane::{PER_OPERATION, VerbsLane};
use crate::passive::Passive;
use crate::port::{Path, Port, path};
use crate::region::{Registered, RegisteredLocal, Remote};
use crate::settings::Settings;
use crate::shared::{Imported, MOST_REGIONS, Shared};
use crate::statistics::Totals;
use crate::wire::{Address, Key};
use crate::{BATCH, MESSAGE, NAME, UNREGISTERED};

/// What everything made from a domain needs.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) port: Port,
    pub(crate) domain: Arc<ProtectionDomain>,
    pub(crate) settings: Settings,
    pub(crate) shared: Shared,
    pub(crate) totals: Arc<Totals>,
    nonce: AtomicU64,
    /// Numbers of queue pairs that the device says have failed.
    hurt: Mutex<Vec<u32>>,
    port_down: AtomicBool,
    /// Whether there is an inbox; who has it waits for the device's events, too.
    pub(crate) inbox_taken: AtomicBool,
}

impl Opened {
    pub(crate) fn new(
        port: Port,
        settings: Settings,
        job: Job,
        totals: Arc<Totals>,
    ) -> Result<Opened> {
        let start = RandomState::new().build_hasher().finish();
        Ok(Opened {
            domain: Arc::new(ProtectionDomain::new(&port.context)?),
            port,
            settings,
            shared: Shared::new(job),
            totals,
            nonce: AtomicU64::new(start),
            hurt: Mutex::default(),
            port_down: AtomicBool::new(false),
            inbox_taken: AtomicBool::new(false),
        })
    }

    /// Learns what the device tells of itself. A port that goes down may come back before the retries
    /// are over, so it ends nothing: if it does not come back, the connections' errors name it.
    pub(crate) fn events(&self) {
        while let Some(event) = self.port.context.next_event() {
            self.event(event);
        }
    }

    #[cold]
    pub(crate) fn event(&self, event: Event) {
        let port = self.port.name();
        match event {
            Event::Fatal(name) => {
                let why = format!("the device failed ({name} on {port}); see the kernel log");
                tracing::error!(%why);
                self.shared.fail(&why);
            }
            Event::PortDown(number) if number == self.port.number => {
                tracing::warn!(%port, "the port went down (IBV_EVENT_PORT_ERR)");
                self.port_down.store(true, Ordering::Relaxed);
            }
            Event::PortUp(number) if number == self.port.number => {
                tracing::info!(%port, "the port is up again (IBV_EVENT_PORT_ACTIVE)");
                self.port_down.store(false, Ordering::Relaxed);
            }
            Event::PairFailed(number, name) => {
                tracing::warn!(%port, queue_pair = number, "a queue pair failed ({name})");
                let mut hurt = self.hurt.lock().unwrap_or_else(PoisonError::into_inner);
                hurt.push(number);
            }
            other => tracing::debug!(%port, ?other, "a device's event"),
        }
    }

    /// Whether this side's port is known to be down.
    pub(crate) fn port_down(&self) -> bool {
        // Relaxed: only for an error's words.
        self.port_down.load(Ordering::Relaxed)
    }

    /// The queue pairs that have failed since the last call.
    pub(crate) fn take_hurt(&self) -> Vec<u32> {
        let mut hurt = self.hurt.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *hurt)
    }

    /// A number that no other end has, very probably anywhere.
    pub(crate) fn nonce(&self) -> u64 {
        // Relaxed: only the numbers matter.
        let count = self.nonce.fetch_add(1, Ordering::Relaxed);
        count.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Whether packets carry a route within an InfiniBand subnet too.
    pub(crate) fn route_needed(&self) -> bool {
        self.settings.global_route || self.port.state.needs_route
    }

    /// How an end of this side is connected; what differs from end to end is given.
    pub(crate) fn connection(
        &self,
        path: &Path,
        their_lid: u16,
        their_number: u32,
        sequences: (u32, u32),
        reads: (u8, u8),
    ) -> Result<Connect, String> {
        let route = path
            .route
            .map(|(ours, theirs)| match self.port.index_of(ours) {
                Some(index) => Ok((index, theirs)),
                None => Err(format!("{ours} is not an identifier of this port")),
            });
        let (our_sequence, their_sequence) = sequences;
        let (reads_out, reads_in) = reads;
        let port = self.port.name();
        let (bytes, partition) = (128u32 << path.mtu, self.port.partition_key);
        let ends = match path.route {
            Some((ours, theirs)) => format!("from {ours} to {theirs}"),
            None => format!("from LID {} to LID {their_lid}", self.port.state.lid),
        };
        Ok(Connect {
            words: format!("{ends}, port {port}, MTU {bytes}, P_Key {partition:#06x}"),
            port: self.port.number,
            mtu: path.mtu,
            their_number,
            their_sequence,
            our_sequence,
            their_lid,
            route: route.transpose()?,
            service_level: self.settings.service_level,
            traffic_class: self.settings.traffic_class,
            timeout: self.port.timeout,
            retries: self.port.retries,
            receiver_retries: self.settings.rnr_retry,
            receiver_timer: self.settings.min_rnr_timer,
            reads_out,
            reads_in,
        })
    }
}

/// A datum of a peer that is not what it should be.
pub(crate) fn bad(what: &'static str, pe: Pe, why: String) -> Error {
    Error::BadPeerData {
        transport: NAME,
        what,
        pe,
        why,
    }
}

#[derive(Debug)]
pub(crate) struct VerbsDomain {
    capabilities: Capabilities,
    guarantees: Guarantees,
    gpu: Carries,
    /// Whether there was ever a lane from or to this PE: else no NIC has written here.
    used: AtomicBool,
    numbers: RegionNumbers,
    passive: Mutex<Option<Arc<Passive>>>,
    opened: Arc<Opened>,
}

/// What the device can do. `gpu`: whether it reaches GPU memory.
fn capabilities(port: &Port, settings: &Settings, gpu: bool) -> Capabilities {
    let max = u64::from(port.state.largest_message).clamp(UNREGISTERED as u64, 1 << 30);
    let (nic, cpu) = (AtomicLevel::Nic, AtomicLevel::Cpu);
    let changing = match port.limits.atomics {
        ibv_atomic_cap::IBV_ATOMIC_NONE => AtomicLevel::None,
        // Exclusive against the CPU's is not exclusive against a GPU's on its own memory (M29).
        ibv_atomic_cap::IBV_ATOMIC_GLOB if !gpu => cpu,
        _ => nic,
    };
    let limits = |inline| Limits {
        max,
        align: 1,
        unregistered: UNREGISTERED as u64,
        inline,
    };
    Capabilities {
        put: limits(UNREGISTERED as u64),
        get: limits(0),
        put_signal: match changing {
            AtomicLevel::None => SignalSupport::None,
            level => SignalSupport::Native(level),
        },
        // An aligned word is read and written whole, so as a CPU does it.
        atomics: AtomicTable::uniform(AtomicLevel::None)
            .with(AtomicOp::Fetch, Width::W64, cpu)
            .with(AtomicOp::Set, Width::W64, cpu)
            .with(AtomicOp::Add, Width::W64, changing)
            .with(AtomicOp::CompareSwap, Width::W64, changing),
        memory: match gpu {
            false => &[MemoryKind::Host],
            true => &[MemoryKind::Host, MemoryKind::Cuda],
        },
        depth: Some(depth(port, settings)),
        wire_up: WireUp::PerLane,
        pins: true,
        batch: BATCH,
        message: MESSAGE as u32,
        passive_target: true,
    }
}

/// Operations outstanding towards one PE, of as many requests as one may take; two more are kept
/// back.
pub(crate) fn depth(port: &Port, settings: &Settings) -> u32 {
    let most = port.limits.queue_depth.saturating_sub(2) / PER_OPERATION;
    settings.depth.min(most).max(1)
}

/// What a reliable connection keeps, and a registration in which writes may pass each other does
/// not.
fn guarantees(relaxed: bool) -> Guarantees {
    Guarantees {
        put_put: !relaxed,
        // What is not a relaxed write passes no write before it.
        put_atomic: true,
        // A responder may perform a write before an atomic that was sent before it.
        atomic_put: false,
        // By the fence that the lane sets where the hardware would not keep it.
        atomic_atomic: true,
        put_message: true,
        put_get: true,
        get_get: true,
        across_lanes: false,
        completion: Completion::Accepted,
        gpu_flush: GpuFlush::None,
    }
}

/// What is kept towards GPU memory. The PCIe bus keeps the order of what goes to one device: nothing
/// is promised of what goes to the GPU and then to host memory, nor the other way round, and core takes
/// a promise of both kinds for that. A [flush](oxshmem_transport::Op::Flush) reads both.
fn guarantees_on_gpu(flush: bool) -> Guarantees {
    Guarantees {
        put_get: true,
        get_get: true,
        completion: Completion::Accepted,
        gpu_flush: match flush {
            true => GpuFlush::Target,
            false => GpuFlush::None,
        },
        ..Guarantees::NONE
    }
}

impl VerbsDomain {
    pub(crate) fn new(
        port: Port,
        settings: Settings,
        gpu: Option<&Arc<dyn Gpu>>,
        job: Job,
        totals: Arc<Totals>,
    ) -> Result<VerbsDomain> {
        let opened = Arc::new(Opened::new(port, settings, job, totals)?);
        let gpu = Carries::of(gpu, &opened);
        let (port, settings) = (&opened.port, &opened.settings);
        Ok(VerbsDomain {
            capabilities: capabilities(port, settings, gpu.direct().is_ok()),
            guarantees: guarantees(port.relaxed),
            gpu,
            used: AtomicBool::new(false),
            numbers: RegionNumbers::default(),
            passive: Mutex::default(),
            opened,
        })
    }

    /// The side that answers, made when first needed: PEs that nobody connects with have none.
    fn passive(&self) -> Result<Arc<Passive>> {
        let mut made = self.passive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(passive) = &*made {
            return Ok(Arc::clone(passive));
        }
        let passive = Arc::new(Passive::new(&self.opened)?);
        *made = Some(Arc::clone(&passive));
        Ok(passive)
    }

    /// What a peer says of itself, if it is reached.
    fn judge(&self, peer: &Peer) -> Result<Address, String> {
        let Some(address) = &peer.address else {
            return Err(
                "it has no verbs transport open; `oxshmem info` on its host says why".into(),
            );
        };
        let address = Address::from_bytes(address).map_err(|why| format!("its address: {why}"))?;
        if address.pe != peer.pe.0 {
            return Err(format!("its address is PE {}'s", address.pe));
        }
        let here = self.opened.port.place();
        path(&here, &address.place, self.opened.route_needed())?;
        Ok(address)
    }
}

impl Domain for VerbsDomain {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        match kind {
            MemoryKind::Host => Some(self.guarantees),
            MemoryKind::Cuda => {
                let direct = self.gpu.direct().ok()?;
                Some(guarantees_on_gpu(direct.needs_flush()))
            }
            _ => None,
        }
    }

    fn address(&self) -> Vec<u8> {
        let address = Address {
            pe: self.opened.shared.job.me.0,
            place: self.opened.port.place(),
            gpu: self.gpu.told(),
        };
        address.to_bytes()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        let reached = match (kind, self.judge(peer)) {
            (_, Err(why)) => Err(why),
            (MemoryKind::Host, Ok(_)) => Ok(()),
            (MemoryKind::Cuda, Ok(address)) => self.gpu.reaches(&address.gpu),
            (other, Ok(_)) => Err(format!("{other} memory is not registered with NICs")),
        };
        match reached {
            Ok(()) => Reach::Remote,
            Err(why) => Reach::None(why),
        }
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        let refuse = |why: String| Error::Memory {
            transport: NAME,
            kind: memory.kind(),
            why,
        };
        let gpu = match memory.kind() {
            MemoryKind::Host => None,
            MemoryKind::Cuda => Some(self.gpu.direct().map_err(|why| refuse(why.into()))?),
            other => return Err(refuse(format!("{other} memory is not known to NICs"))),
        };
        if id.0 >= MOST_REGIONS {
            return Err(refuse(format!(
                "region numbers end at {}, this is {}",
                MOST_REGIONS - 1,
                id.0
            )));
        }
        let number = self.numbers.claim(NAME, id, memory)?;
        let (domain, port) = (&self.opened.domain, &self.opened.port);
        let me = self.opened.shared.job.me.0;
        let region = Registered::new(domain, gpu, me, number, memory, port.relaxed)?;
        Ok(Box::new(region))
    }

    unsafe fn register_local(
        &self,
        addr: *mut u8,
        len: usize,
        written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        let gpu = match self.gpu.kind_of(addr) {
            MemoryKind::Cuda => Some(self.gpu.direct().map_err(|why| gpu::refused(why.into()))?),
            _ => None,
        };
        // SAFETY: the caller's promise.
        let region = unsafe { RegisteredLocal::new(&self.opened.domain, gpu, addr, len, written) }?;
        Ok(Box::new(region))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        _: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let bad = |why| bad("the key of a region", peer.pe, why);
        let key = Key::from_bytes(key).map_err(bad)?;
        if (key.pe, key.region) != (peer.pe.0, region.0) {
            return Err(bad(format!(
                "it is of region {} of PE {}, not of region {}",
                key.region, key.pe, region.0
            )));
        }
        if region.0 >= MOST_REGIONS || peer.pe.0 >= self.opened.shared.job.size {
            return Err(bad(format!("there is no region {}", region.0)));
        }
        let len = usize::try_from(key.len).map_err(|_| bad("it is too long".into()))?;
        let imported = Imported::new(key, self.opened.port.relaxed);
        self.opened.shared.import(peer.pe, region, imported);
        Ok(Arc::new(Remote { len }))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        if self.opened.shared.is_closed() {
            return Err(Error::Closed { transport: NAME });
        }
        self.used.store(true, Ordering::Release);
        Ok(Box::new(VerbsLane::new(&self.opened)?))
    }

    fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        self.opened.shared.check(pe)?;
        self.used.store(true, Ordering::Release);
        self.passive()?.accept(pe, endpoint)
    }

    fn inbox(&self) -> Result<Box<dyn Inbox>> {
        if self.opened.shared.is_closed() {
            return Err(Error::Closed { transport: NAME });
        }
        Ok(Box::new(VerbsInbox::new(self.passive()?)?))
    }

    fn make_visible(&self, kind: MemoryKind) -> Result<()> {
        match self.gpu.direct() {
            // Acquire: with the stores where lanes begin, on other threads maybe.
            Ok(direct) if kind == MemoryKind::Cuda && self.used.load(Ordering::Acquire) => {
                direct.make_visible()
            }
            _ => Ok(()),
        }
    }

    fn peer_lost(&self, pe: Pe) {
        self.opened.shared.lose(pe);
        let passive = self.passive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(passive) = &*passive {
            passive.lose(pe);
        }
    }

    fn shutdown(&self) {
        self.opened.shared.close();
        let passive = self.passive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(passive) = &*passive {
            passive.wake();
        }
    }
}
