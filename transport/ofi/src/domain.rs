//! The domain: one PE's endpoint, memory and peers.

use std::any::Any;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use oxshmem_gpudirect::Gpu;
use oxshmem_transport::{
    AtomicTable, Capabilities, Domain, Error, Guarantees, Inbox, Job, Lane, LocalKey, LocalRegion,
    Memory, MemoryKind, Pe, Peer, Reach, Region, RegionId, RegionNumber, RegionNumbers,
    RemoteRegion, Result,
};

use crate::atomics::AtomicSet;
use crate::driver::Driver;
use crate::fabric::endpoint::Endpoint;
use crate::fabric::info::Info;
use crate::fabric::memory::MemoryRegion;
use crate::fabric::slots::LONG_BUFFER;
use crate::facts::{Facts, bits};
use crate::gpu::{self, Direct, DomainGpu};
use crate::inbox::OfiInbox;
use crate::lane::OfiLane;
use crate::limits::{NAME, SAFE_MESSAGE};
use crate::local::OWN;
use crate::names;
use crate::plan::{AtomicPath, Plan, capabilities, explain};
use crate::random::random;
use crate::reasons::orders;
use crate::region::OwnRegion;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::{LocalMemory, State, Ways};
use crate::wire::{Address, Key};

/// One PE's opened interface.
#[derive(Debug)]
pub(crate) struct OfiDomain {
    // Ends first.
    _driver: Driver,
    shared: Arc<Shared>,
    facts: Facts,
    plan: Plan,
    gpu: DomainGpu,
    capabilities: Arc<Capabilities>,
    address: Address,
    numbers: RegionNumbers,
    me: Pe,
}

/// The longest message: one that the provider ends in any case, even if its PE dies. It has whole words, so that none is in
/// two messages.
fn longest_message(facts: &Facts) -> usize {
    match facts.ends_long_sends() {
        true => (facts.longest as usize).min(LONG_BUFFER) & !7,
        false => SAFE_MESSAGE,
    }
}

impl OfiDomain {
    pub(crate) fn open(
        info: &Info,
        plan: Plan,
        settings: &Settings,
        gpu: Option<&Arc<dyn Gpu>>,
        job: Job,
    ) -> Result<OfiDomain> {
        let facts = info.facts().clone();
        let endpoint = Endpoint::open(info, job.size)?;
        let atomics = match plan.atomics {
            AtomicPath::Provider => AtomicSet::of(|op| endpoint.has_atomic(op)),
            AtomicPath::Messages => AtomicSet::default(),
        };
        let gpu = match gpu {
            None => Err("no GPU was given to libfabric".into()),
            Some(gpu) => try_gpu(&endpoint, &facts, &plan, settings, gpu),
        };
        let nonce = random()?;
        let address = Address {
            pe: job.me.0,
            nonce,
            provider: facts.provider.clone(),
            protocol: facts.protocol,
            format: facts.address_format,
            is_local: facts.is_on_this_host_only(),
            atomics: atomics.0,
            gpu: gpu::support(&gpu),
            name: endpoint.name()?,
        };
        let ways = Ways {
            puts: plan.puts,
            local_keys: facts.mr_mode & bits::MR_LOCAL != 0,
            gpu: gpu.is_ok(),
            longest: facts.longest,
            message: longest_message(&facts),
            connect_timeout: settings.connect_timeout,
        };
        let me = job.me;
        let state = State::new(job, nonce, ways, endpoint);
        state.check()?;
        let shared = Arc::new(Shared::new(state)?);
        Ok(OfiDomain {
            _driver: Driver::start(&shared)?,
            capabilities: Arc::new(capabilities(&facts, &plan, atomics.table(), gpu.is_ok())),
            shared,
            facts,
            plan,
            gpu,
            address,
            numbers: RegionNumbers::default(),
            me,
        })
    }

    /// The address of a peer that can be reached, or the reason why it cannot.
    fn judge(&self, peer: &Peer) -> Result<Address, String> {
        let Some(bytes) = &peer.address else {
            return Err("it has no ofi transport open; `oxshmem info` on its host says why".into());
        };
        let theirs = Address::from_bytes(bytes).map_err(|why| format!("its address: {why}"))?;
        let ours = &self.address;
        if theirs.pe != peer.pe.0 {
            return Err(format!("its address is PE {}'s", theirs.pe));
        }
        if (&theirs.provider, theirs.protocol) != (&ours.provider, ours.protocol) {
            return Err(format!(
                "it uses libfabric's provider {}, and this PE {}: set OXSHMEM_OFI_PROVIDER to one that all hosts have",
                theirs.provider, ours.provider
            ));
        }
        if theirs.format != ours.format {
            return Err(format!(
                "its address has another format than this PE's ({} and {}): name interfaces of one kind by \
                 OXSHMEM_OFI_INTERFACE",
                theirs.format, ours.format
            ));
        }
        if let Some(why) = names::refusal(ours.format, &theirs.name, &ours.name) {
            return Err(why.into());
        }
        let elsewhere = peer.pe != self.me && peer.host != self.shared.lock().job.host;
        if elsewhere && (theirs.is_local || ours.is_local) {
            return Err(
                "its interface or this PE's is reached from its own host only: name another by OXSHMEM_OFI_INTERFACE"
                    .into(),
            );
        }
        Ok(theirs)
    }

    /// Takes a peer's address, for operations to it.
    fn learn(&self, theirs: &Address) {
        let mut state = self.shared.lock();
        if let Some(peer) = state.peer(theirs.pe).filter(|peer| peer.address.is_none()) {
            let ours = &self.address;
            let name = names::localized(ours.format, &theirs.name, &ours.name);
            peer.atomics = self.common_atomics(theirs);
            peer.known = Some((name, theirs.nonce));
        }
    }

    /// The GPU whose memory is registered.
    fn direct(&self) -> Result<&Direct> {
        self.gpu.as_ref().map_err(|why| refused(why.clone()))
    }

    /// The provider's atomics on a peer's words, which its provider performs.
    fn common_atomics(&self, theirs: &Address) -> AtomicSet {
        AtomicSet(self.address.atomics).both(AtomicSet(theirs.atomics))
    }

    /// Registers bytes, by a key of this side's choice where the provider leaves it.
    ///
    /// # Safety
    ///
    /// As [`Endpoint::register`].
    unsafe fn register_bytes(
        &self,
        state: &State,
        addr: *const u8,
        len: usize,
        (access, gpu): (u64, Option<i32>),
    ) -> Result<MemoryRegion> {
        let Some(endpoint) = &state.endpoint else {
            return Err(Error::Closed { transport: NAME });
        };
        let mask = match self.facts.mr_key_size {
            bytes @ 1..8 => (1 << (8 * bytes)) - 1,
            _ => u64::MAX,
        };
        let chosen = self.facts.mr_mode & bits::MR_PROV_KEY == 0;
        // A key that is taken is refused: rare where keys are long.
        let mut tries = 8;
        loop {
            // A key that nobody guesses.
            let key = if chosen { random()? & mask } else { 0 };
            // SAFETY: the caller's promise.
            match unsafe { endpoint.register(addr, len, access, key, gpu) } {
                Err(_) if chosen && tries > 0 => tries -= 1,
                result => return result,
            }
        }
    }
}

/// The error for GPU memory that is not registered, or not flushed.
fn refused(why: String) -> Error {
    Error::Memory {
        transport: NAME,
        kind: MemoryKind::Cuda,
        why,
    }
}

/// Tries a registration of GPU memory on the opened endpoint.
fn try_gpu(
    endpoint: &Endpoint,
    facts: &Facts,
    plan: &Plan,
    settings: &Settings,
    gpu: &Arc<dyn Gpu>,
) -> DomainGpu {
    let properties = gpu.properties();
    if let Some(why) = gpu::refusal(settings.hmem, facts, plan, &properties) {
        tracing::info!(%why, "no GPU memory by libfabric");
        return Err(why);
    }
    let memory = gpu.trial_memory()?;
    let access = bits::REMOTE_READ | bits::REMOTE_WRITE | bits::READ | bits::WRITE;
    let (base, len) = (memory.base().as_ptr(), memory.len());
    // SAFETY: the trial's memory, which lives until its registration has ended, and which nothing else uses.
    let tried = unsafe { endpoint.register(base, len, access, 0, Some(properties.ordinal)) };
    match tried {
        Ok(_registered) => Ok(Direct {
            gpu: Arc::clone(gpu),
            ordinal: properties.ordinal,
            flush: !properties.ordered,
        }),
        Err(error) => {
            let why = format!(
                "{}: {error}; see whether libfabric is built with CUDA, and FI_HMEM_CUDA_USE_DMABUF",
                properties.name
            );
            tracing::info!(%why, "no GPU memory by libfabric");
            Err(why)
        }
    }
}

impl Domain for OfiDomain {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        match kind {
            MemoryKind::Host => Some(self.plan.guarantees),
            _ => self.gpu.as_ref().ok().map(gpu::guarantees),
        }
    }

    fn atomics_towards(&self, peer: &Peer) -> AtomicTable {
        let theirs = self.judge(peer).ok();
        let common = theirs.map(|theirs| self.common_atomics(&theirs));
        common.unwrap_or_default().table()
    }

    fn explain(&self, peer: &Peer) -> Option<String> {
        let theirs = self.judge(peer).ok()?;
        let atomics = self.common_atomics(&theirs);
        let plan = explain(&self.facts, &self.plan, !atomics.is_empty());
        Some(format!("{plan}; {}", orders(&self.facts, &self.plan)))
    }

    fn address(&self) -> Vec<u8> {
        self.address.to_bytes()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match (kind, self.judge(peer)) {
            (_, Err(why)) => Reach::None(why),
            (MemoryKind::Host, Ok(theirs)) => {
                self.learn(&theirs);
                Reach::Remote
            }
            (_, Ok(_)) if peer.pe == self.me => {
                Reach::None("a PE's own GPU memory needs no NIC".into())
            }
            (_, Ok(theirs)) => match gpu::unreachable(&self.gpu, theirs.gpu) {
                None => {
                    self.learn(&theirs);
                    Reach::Remote
                }
                Some(why) => Reach::None(why),
            },
        }
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        let gpu = match memory.kind() {
            MemoryKind::Host => None,
            _ => Some(self.direct()?),
        };
        let number = self.numbers.claim(NAME, id, memory)?;
        let access = bits::REMOTE_READ | bits::REMOTE_WRITE | bits::READ | bits::WRITE;
        let base = memory.base().as_ptr();
        if let Some(direct) = gpu {
            direct.gpu.synchronize_copies(base);
        }
        let how = (access, gpu.map(|direct| direct.ordinal));
        let mut state = self.shared.lock();
        // SAFETY: the memory's owner, which the region holds, keeps the bytes mapped; the state drops registrations
        // before the endpoint.
        let registration = unsafe { self.register_bytes(&state, base, memory.len(), how)? };
        let virtual_addresses = self.facts.mr_mode & bits::MR_VIRT_ADDR != 0;
        let key = Key {
            pe: self.me.0,
            region: id.0,
            len: memory.len() as u64,
            base: if virtual_addresses {
                base.addr() as u64
            } else {
                0
            },
            key: registration.key(),
            phase: (base.addr() % 8) as u8,
        };
        let region = OwnRegion {
            registration: Some(registration),
            memory: memory.clone(),
        };
        state.regions.0.insert(id.0, region);
        drop(state);
        Ok(Box::new(OfiRegion {
            number,
            key: key.to_bytes(),
            shared: Arc::clone(&self.shared),
        }))
    }

    unsafe fn register_local(
        &self,
        addr: *mut u8,
        len: usize,
        written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        let known = self.gpu.as_ref().ok();
        let on_gpu = known.filter(|direct| direct.gpu.kind_of(addr) != MemoryKind::Host);
        let mut state = self.shared.lock();
        let number = state.next_local;
        state.next_local += 1;
        if on_gpu.is_some() || self.facts.mr_mode & bits::MR_LOCAL != 0 {
            let access = bits::SEND | bits::WRITE | if written { bits::READ } else { 0 };
            let how = (access, on_gpu.map(|direct| direct.ordinal));
            // SAFETY: the bytes stay mapped, by the caller's promise; the state drops registrations before the endpoint.
            let registration = unsafe { self.register_bytes(&state, addr, len, how)? };
            let memory = LocalMemory {
                registration,
                on_gpu: on_gpu.is_some(),
            };
            state.locals.insert(number, memory);
        }
        drop(state);
        Ok(Box::new(OfiLocalRegion {
            number,
            shared: Arc::clone(&self.shared),
        }))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        _: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let bad = |why: String| Error::BadPeerData {
            transport: NAME,
            what: "the key of a region",
            pe: peer.pe,
            why,
        };
        let key = Key::from_bytes(key).map_err(|why| bad(why.into()))?;
        if (key.pe, key.region) != (peer.pe.0, region.0) {
            return Err(bad(format!(
                "it is of region {} of PE {}, not of region {}",
                key.region, key.pe, region.0
            )));
        }
        let len = usize::try_from(key.len).map_err(|_| bad("it is too long".into()))?;
        if let Ok(theirs) = self.judge(peer) {
            self.learn(&theirs);
        }
        let mut state = self.shared.lock();
        let Some(known) = state.peer(peer.pe.0) else {
            return Err(bad(format!("the job has {} PEs", state.job.size)));
        };
        known.regions.insert(region.0, key);
        Ok(Arc::new(OfiRemoteRegion { len }))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        Ok(Box::new(OfiLane::new(&self.shared, &self.capabilities)?))
    }

    fn inbox(&self) -> Result<Box<dyn Inbox>> {
        Ok(Box::new(OfiInbox::open(&self.shared)?))
    }

    fn make_visible(&self, kind: MemoryKind) -> Result<()> {
        match &self.gpu {
            Ok(direct) if kind != MemoryKind::Host && direct.flush => {
                direct.gpu.flush().map_err(refused)
            }
            _ => Ok(()),
        }
    }

    fn peer_lost(&self, pe: Pe) {
        let mut state = self.shared.lock();
        if let Some(peer) = state.peer(pe.0) {
            peer.lost = true;
            state.cancel(pe.0);
            state.disconnect(pe.0);
        }
    }

    fn shutdown(&self) {
        self.shared.lock().closed = true;
        self.shared.wake_inbox();
    }
}

/// A region of this PE. Dropping it ends the registration.
#[derive(Debug)]
struct OfiRegion {
    number: RegionNumber,
    key: Vec<u8>,
    shared: Arc<Shared>,
}

impl Region for OfiRegion {
    fn id(&self) -> RegionId {
        self.number.id()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        LocalKey(u64::from(self.number.id().0) | OWN)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for OfiRegion {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.regions.0.remove(&self.number.id().0);
    }
}

/// Memory registered for the local side alone.
#[derive(Debug)]
struct OfiLocalRegion {
    number: u64,
    shared: Arc<Shared>,
}

impl LocalRegion for OfiLocalRegion {
    fn key(&self) -> LocalKey {
        LocalKey(self.number)
    }
}

impl Drop for OfiLocalRegion {
    fn drop(&mut self) {
        self.shared.lock().locals.remove(&self.number);
    }
}

/// A peer's region, which is reached by a lane.
#[derive(Debug)]
struct OfiRemoteRegion {
    len: usize,
}

impl RemoteRegion for OfiRemoteRegion {
    fn mapped(&self) -> Option<NonNull<u8>> {
        None
    }

    fn len(&self) -> usize {
        self.len
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(())
    }
}
