//! The domain of the verbs transport: one PE's opened port, what it can do and what it promises.

mod promises;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_gpudirect::Gpu;
use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Domain, Error, Guarantees, Inbox, Job, Lane,
    LocalRegion, Memory, MemoryKind, Pe, Peer, Reach, Region, RegionId, RegionNumbers,
    RemoteRegion, Result, SignalSupport, Width,
};

use self::promises::{
    atomics_towards, capabilities, explain_claim, guarantees, guarantees_on_gpu, promises_no_less,
    signals_towards,
};
use crate::cpu_model::CpuModel;
use crate::domain_state::bit;
use crate::gpu::{Direct, DomainGpu, refused};
use crate::inbox::VerbsInbox;
use crate::lane::VerbsLane;
use crate::limits::NAME;
use crate::port::{Port, path};
use crate::port_state::{PortState, bad_peer_data};
use crate::rails::{Candidate, Pairing, Rails, reaches};
use crate::region::{RegisteringNic, VerbsLocalRegion, VerbsRegion, VerbsRemoteRegion};
use crate::remote_region::{Imported, MOST_REGIONS};
use crate::responder::{Responder, Role, message_window};
use crate::settings::Settings;
use crate::statistics::Totals;
use crate::wire::{
    Address, Endpoint, EndpointReplies, EndpointReply, Endpoints, Key, TargetProperties,
    is_first_nonce,
};

/// One of the NICs of a domain.
#[derive(Debug)]
struct DomainNic {
    gpu: DomainGpu,
    /// Made when first needed: PEs that no other PE connects with have none.
    responder: Mutex<Option<Arc<Responder>>>,
    port_state: Arc<PortState>,
}

impl DomainNic {
    fn responder(&self) -> Result<Arc<Responder>> {
        let mut made = self
            .responder
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(responder) = &*made {
            return Ok(Arc::clone(responder));
        }
        let responder = Arc::new(Responder::new(&self.port_state)?);
        *made = Some(Arc::clone(&responder));
        Ok(responder)
    }

    /// Whether it promises no less than the first NIC of its PE, as a target and as an origin, reaches the same memory, and has
    /// room for as many messages.
    fn stands_in_for(&self, first: &DomainNic) -> bool {
        let (own, its) = (&self.port_state, &first.port_state);
        let reaches_gpu = match (first.gpu.direct(), self.gpu.direct()) {
            (Err(_), _) => true,
            (Ok(_), Err(_)) => false,
            (Ok(its), Ok(own)) => its.needs_flush() || !own.needs_flush(),
        };
        let (own_limits, its_limits) = (own.port.limits, its.port.limits);
        let has_same_atomics = own_limits.atomics == its_limits.atomics
            && own_limits.pci_atomics >= its_limits.pci_atomics;
        let window = |limits| message_window(its.published.job.size, limits);
        reaches_gpu
            && has_same_atomics
            && window(own_limits) >= window(its_limits)
            && promises_no_less(own.target_properties(), its.target_properties())
    }

    fn made_responder(&self) -> Option<Arc<Responder>> {
        let made = self.responder.lock();
        made.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One PE's domain on one port, and on further ones for long transfers.
#[derive(Debug)]
pub(crate) struct VerbsDomain {
    capabilities: Capabilities,
    /// Whether there was ever a lane from or to this PE: else no NIC has written here.
    used: AtomicBool,
    numbers: RegionNumbers,
    /// The NIC for all operations.
    first: DomainNic,
    /// The others, in the order of their numbers from 1 on.
    further: Vec<DomainNic>,
    /// The number of the NIC at which peers' primary connections end.
    primary: Mutex<u8>,
    rails: Arc<Rails>,
    port_state: Arc<PortState>,
}

impl VerbsDomain {
    pub(crate) fn new(
        port: Port,
        settings: Settings,
        gpu: Option<&Arc<dyn Gpu>>,
        (job, totals): (Job, Arc<Totals>),
        candidates: Option<&[Candidate]>,
    ) -> Result<VerbsDomain> {
        let port_state = Arc::new(PortState::new(port, settings, job, totals)?);
        let rails = Rails::open(Arc::clone(&port_state), candidates)?;
        let of = |state: &Arc<PortState>| DomainNic {
            gpu: DomainGpu::of(gpu, state),
            responder: Mutex::default(),
            port_state: Arc::clone(state),
        };
        let first = of(&port_state);
        let further: Vec<DomainNic> = rails.further.iter().map(of).collect();
        let stand_ins = further
            .iter()
            .filter(|nic| nic.stands_in_for(&first))
            .fold(bit(0), |set, nic| set | bit(nic.port_state.rail));
        port_state.published.set_stand_ins(stand_ins);
        let rails = Arc::new(rails);
        Ok(VerbsDomain {
            capabilities: capabilities(&rails, first.gpu.direct().is_ok()),
            used: AtomicBool::new(false),
            numbers: RegionNumbers::default(),
            first,
            further,
            primary: Mutex::new(0),
            rails,
            port_state,
        })
    }

    /// All NICs, the first one first.
    fn nics(&self) -> impl Iterator<Item = &DomainNic> {
        std::iter::once(&self.first).chain(&self.further)
    }

    /// The access to GPU memory by the first NIC, or the reason why there is none.
    fn direct(&self) -> Result<&Direct, &str> {
        self.first.gpu.direct()
    }

    /// The NICs by which memory of a kind is to be registered, by number.
    fn registering(&self, kind: MemoryKind) -> Vec<Option<RegisteringNic<'_>>> {
        let of = |nic| registering(nic, kind);
        self.nics().map(of).collect()
    }

    /// The address of a peer that can be reached, or the reason why it cannot.
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
        let here = self.port_state.addressing().address();
        let Some(first) = address.rails.first() else {
            return Err("its address names no port".into());
        };
        path(&here, &first.port, self.port_state.route_needed())?;
        Ok(address)
    }

    /// Makes the queue pair that responds to one of a lane's; none if no NIC here reaches its NIC, or the one that does fails
    /// to, and is not the first: others will do then.
    fn accept_one(
        &self,
        pe: Pe,
        endpoint: Endpoint,
        pairing: &mut Pairing<'_>,
    ) -> Result<Option<EndpointReply>> {
        let (number, route_needed) = (endpoint.rail, self.port_state.route_needed());
        let rail = pairing.find(number, &endpoint.port, &endpoint.networks, route_needed);
        let rail = match rail {
            Ok(rail) => rail,
            Err(why) => {
                tracing::debug!(%pe, number, %why, "a NIC of a PE is not connected with");
                return Ok(None);
            }
        };
        // The first NIC is left out only where it is known to be lost.
        let is_left_out = |state: &PortState| match (rail, is_first_nonce(endpoint.nonce)) {
            (0, true) => !state.is_alive(),
            _ => !state.is_usable(),
        };
        let nic = self.nic(rail).filter(|nic| !is_left_out(&nic.port_state));
        let Some(nic) = nic else {
            return Ok(None);
        };
        let made = nic.responder();
        match made.and_then(|made| made.accept(pe, endpoint, Role::Bulk)) {
            Ok(reply) => Ok(Some(reply)),
            Err(error) if rail == 0 => Err(error),
            Err(error) => {
                let port = nic.port_state.port.name();
                tracing::warn!(%pe, %port, %error, "a NIC is not used with a PE");
                Ok(None)
            }
        }
    }

    fn nic(&self, rail: u8) -> Option<&DomainNic> {
        self.nics().nth(usize::from(rail))
    }

    /// Whether two NICs' atomics on one word do not exclude each other.
    fn has_atomics_of_one_nic(&self) -> bool {
        let atomics = &self.capabilities.atomics;
        atomics.level(AtomicOp::Add, Width::W64) == AtomicLevel::Nic
    }

    /// Makes the queue pair that responds to a lane's for all operations, of which it offers some.
    fn accept_primary(&self, pe: Pe, offered: &[Endpoint]) -> Result<Vec<Option<EndpointReply>>> {
        let known = offered.iter().enumerate().find_map(|(at, endpoint)| {
            let mut made = self.nics().filter_map(DomainNic::made_responder);
            Some((at, made.find_map(|made| made.known(pe, endpoint))?))
        });
        let (at, reply) = match known {
            Some(known) => known,
            None => self.make_primary(pe, offered)?,
        };
        if reply.rail != 0 {
            // The inbox listens there from now on.
            self.first.responder()?.wake();
        }
        let mut replies = vec![None; offered.len()];
        if let Some(place) = replies.get_mut(at) {
            *place = Some(reply);
        }
        Ok(replies)
    }

    /// Makes the queue pair at the chosen NIC. Gives the place of the endpoint that it answers, and the reply.
    fn make_primary(&self, pe: Pe, offered: &[Endpoint]) -> Result<(usize, EndpointReply)> {
        loop {
            let (at, rail) = self.choose_primary(pe, offered, &mut self.primary())?;
            let endpoint = offered.get(at).ok_or(Error::Closed { transport: NAME })?;
            let responder = self.nic(rail).unwrap_or(&self.first).responder()?;
            // Not under the lock: address resolution may take long, and other PEs do not wait for it.
            let accepted = responder.accept(pe, endpoint.clone(), Role::Primary);
            if !self.has_atomics_of_one_nic() || *self.primary() == rail {
                return Ok((at, accepted?));
            }
            // The connections have gone to another NIC meanwhile.
            responder.end_endpoint(pe, endpoint);
        }
    }

    /// The number of the NIC at which peers' primary connections end, locked.
    fn primary(&self) -> MutexGuard<'_, u8> {
        self.primary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses one of the endpoints that a lane offers for all operations, and the NIC here. `current`: the one that peers'
    /// lanes have; another takes its place if it is lost.
    fn choose_primary(
        &self,
        pe: Pe,
        offered: &[Endpoint],
        current: &mut u8,
    ) -> Result<(usize, u8)> {
        let is_first = offered
            .iter()
            .all(|endpoint| is_first_nonce(endpoint.nonce));
        let ours = self.rails.addresses();
        let reached = |rail: u8| {
            let ours = ours.get(usize::from(rail)).ok_or_else(String::new);
            let mut why = String::new();
            let at = offered.iter().position(|endpoint| {
                // These two were judged by their addresses.
                let reached = match (rail, endpoint.rail) {
                    (0, 0) => Ok(()),
                    _ => ours.clone().and_then(|ours| {
                        let route_needed = self.port_state.route_needed();
                        reaches(ours, &endpoint.port, &endpoint.networks, route_needed)
                    }),
                };
                reached.map_err(|not| why = not).is_ok()
            });
            at.map(|at| (at, rail)).ok_or(why)
        };
        // A port that is down may come back while the peer's retries last. They were in vain before a second one.
        let is_lost = self.nic(*current).is_none_or(|nic| match is_first {
            true => !nic.port_state.is_alive(),
            false => !nic.port_state.is_usable(),
        });
        let others = self
            .rails
            .stand_ins()
            .filter(|state| state.rail != *current);
        let mut others = others.filter(|state| state.is_usable());
        let mut other = || others.find_map(|state| reached(state.rail).ok());
        if is_lost && let Some((at, rail)) = other() {
            let before = std::mem::replace(current, rail);
            let name = |rail| {
                self.rails
                    .get(rail)
                    .map(|state| state.port.name())
                    .unwrap_or_default()
            };
            tracing::warn!(%pe, lost = %name(before), nic = %name(rail), "connections for all operations towards this \
                 PE go to another of its NICs");
            let lost = self.nic(before).and_then(DomainNic::made_responder);
            if let Some(lost) = lost.filter(|_| self.has_atomics_of_one_nic()) {
                lost.end_primaries();
            }
            return Ok((at, rail));
        }
        match reached(*current) {
            Ok(chosen) => Ok(chosen),
            Err(why) => {
                let other = match self.has_atomics_of_one_nic() {
                    true => None,
                    false => other(),
                };
                other.ok_or_else(|| Error::Unreachable {
                    transport: NAME,
                    pe,
                    why: format!(
                        "none of the NICs that it offers reaches the one at which all primary connections of PE {} end: {why}",
                        self.port_state.published.job.me
                    ),
                })
            }
        }
    }

    /// The guarantees towards targets with these properties.
    fn guarantees_of(&self, kind: MemoryKind, target: TargetProperties) -> Option<Guarantees> {
        match kind {
            MemoryKind::Host => Some(guarantees(self.port_state.port.relaxed.host, target)),
            MemoryKind::Cuda => {
                let direct = self.direct().ok()?;
                let in_order = target.placement.in_order();
                Some(guarantees_on_gpu(direct.needs_flush(), in_order))
            }
            _ => None,
        }
    }
}

/// A NIC as one that registers memory of a kind, if it reaches it.
fn registering(nic: &DomainNic, kind: MemoryKind) -> Option<RegisteringNic<'_>> {
    let gpu = match kind {
        MemoryKind::Cuda => Some(nic.gpu.direct().ok()?),
        _ => None,
    };
    Some(RegisteringNic {
        domain: &nic.port_state.protection_domain,
        gpu,
    })
}

impl Domain for VerbsDomain {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        self.guarantees_of(kind, self.port_state.target_properties())
    }

    fn guarantees_towards(&self, peer: &Peer, kind: MemoryKind) -> Option<Guarantees> {
        match self.judge(peer) {
            Ok(address) => self.guarantees_of(kind, address.target),
            Err(_) => self.guarantees(kind),
        }
    }

    fn atomics_towards(&self, peer: &Peer) -> AtomicTable {
        let own = self.capabilities.atomics;
        match self.judge(peer) {
            Ok(address) => atomics_towards(own, address.target),
            Err(_) => own,
        }
    }

    fn put_signal_towards(&self, peer: &Peer) -> SignalSupport {
        let (own, software) = (self.capabilities.put_signal, self.port_state.port.software);
        match self.judge(peer) {
            Ok(address) => signals_towards(own, software, address.target),
            Err(_) => own,
        }
    }

    fn message_window(&self, peer: &Peer) -> Option<u32> {
        let address = self.judge(peer).ok()?;
        Some(address.message_window.get())
    }

    fn explain(&self, peer: &Peer) -> Option<String> {
        let address = self.judge(peer).ok()?;
        let mut told = address.target.explain();
        if self.put_signal_towards(peer) != self.capabilities.put_signal {
            told.push_str(
                "; a put-with-signal towards it is a put, a flush and a message, since its NIC and this \
                 PE's are not of one kind",
            );
        }
        if !self.port_state.port.limits.has_shared_receives() {
            told.push_str(
                "; this PE's NIC has no shared receive queues, so each connection has receives of its \
                 own for messages",
            );
        }
        let (port, settings) = (&self.port_state.port, &self.port_state.settings);
        let wanted = settings.relaxed_ordering;
        let ordering = port
            .relaxed
            .explain(wanted, port.software, CpuModel::here());
        let reaches_gpu = self.capabilities.memory.contains(&MemoryKind::Cuda);
        let claim = match port.software {
            true => None,
            false => explain_claim(port.limits.atomics, port.limits.pci_atomics, reaches_gpu),
        };
        let more = [Some(ordering), claim.map(str::to_owned)];
        let rails = self.rails.explain(&address.rails);
        for sentence in more.into_iter().chain([rails]).flatten() {
            told.push_str("; ");
            told.push_str(&sentence);
        }
        Some(told)
    }

    fn address(&self) -> Vec<u8> {
        let (job, limits) = (&self.port_state.published.job, self.port_state.port.limits);
        let address = Address {
            pe: job.me.0,
            rails: self.rails.addresses(),
            target: self.port_state.target_properties(),
            gpu: self.first.gpu.support(),
            message_window: message_window(job.size, limits),
        };
        address.to_bytes()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        let reached = match (kind, self.judge(peer)) {
            (_, Err(why)) => Err(why),
            (MemoryKind::Host, Ok(_)) => Ok(()),
            (MemoryKind::Cuda, Ok(address)) => self.first.gpu.reaches(&address.gpu),
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
        match memory.kind() {
            MemoryKind::Host => {}
            MemoryKind::Cuda => drop(self.direct().map_err(|why| refuse(why.into()))?),
            other => return Err(refuse(format!("{other} memory is not known to NICs"))),
        }
        if id.0 >= MOST_REGIONS {
            return Err(refuse(format!(
                "region numbers end at {}, this is {}",
                MOST_REGIONS - 1,
                id.0
            )));
        }
        let number = self.numbers.claim(NAME, id, memory)?;
        let me = self.port_state.published.job.me.0;
        let relaxed = self.port_state.port.relaxed;
        let relaxed = match memory.kind() {
            MemoryKind::Host => relaxed.host,
            _ => relaxed.gpu,
        };
        let (nics, keys) = (self.registering(memory.kind()), &self.rails.local_keys);
        let region = VerbsRegion::new(&nics, keys, me, number, memory, relaxed)?;
        Ok(Box::new(region))
    }

    unsafe fn register_local(
        &self,
        addr: *mut u8,
        len: usize,
        written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        let kind = self.first.gpu.kind_of(addr);
        let relaxed = self.port_state.port.relaxed;
        let relaxed = match kind {
            MemoryKind::Cuda => {
                self.direct().map_err(|why| refused(why.into()))?;
                relaxed.gpu
            }
            _ => relaxed.host,
        };
        let (nics, keys) = (self.registering(kind), &self.rails.local_keys);
        // SAFETY: the bytes stay mapped while the region lives, as this function's caller promises.
        let region = unsafe { VerbsLocalRegion::new(&nics, keys, (addr, len), written, relaxed) }?;
        Ok(Box::new(region))
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        _: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        let bad = |why| bad_peer_data("the key of a region", peer.pe, why);
        let key = Key::from_bytes(key).map_err(bad)?;
        if (key.pe, key.region) != (peer.pe.0, region.0) {
            return Err(bad(format!(
                "it is of region {} of PE {}, not of region {}",
                key.region, key.pe, region.0
            )));
        }
        if region.0 >= MOST_REGIONS || peer.pe.0 >= self.port_state.published.job.size {
            return Err(bad(format!("there is no region {}", region.0)));
        }
        let len = usize::try_from(key.len).map_err(|_| bad("it is too long".into()))?;
        let relaxed = self.port_state.port.relaxed;
        let relaxed = if key.gpu { relaxed.gpu } else { relaxed.host };
        let by_rail = Imported::by_rail(&key, relaxed);
        self.port_state.published.import(peer.pe, region, &by_rail);
        Ok(Arc::new(VerbsRemoteRegion { len }))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        if self.port_state.published.is_closed() {
            return Err(Error::Closed { transport: NAME });
        }
        self.used.store(true, Ordering::Release);
        Ok(Box::new(VerbsLane::new(&self.rails)?))
    }

    fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        self.port_state.published.check(pe)?;
        self.used.store(true, Ordering::Release);
        let bad = |why| bad_peer_data("the endpoint of a lane", pe, why);
        let mut endpoints = Endpoints::from_bytes(endpoint).map_err(bad)?;
        let bulk = endpoints.queues.split_off(usize::from(endpoints.primaries));
        let primaries = endpoints.queues;
        // They may say that a port is down, or up again.
        self.nics().for_each(|nic| nic.port_state.events());
        // Whichever NICs they had: nothing of an interrupted connection arrives any more.
        let responders: Vec<_> = self.nics().filter_map(DomainNic::made_responder).collect();
        for endpoint in primaries.iter().chain(&bulk) {
            responders
                .iter()
                .for_each(|made| made.end_before(pe, endpoint));
        }
        let mut replies = self.accept_primary(pe, &primaries)?;
        let ours = self.rails.addresses();
        let mut pairing = Pairing::new(&ours);
        for endpoint in bulk {
            replies.push(self.accept_one(pe, endpoint, &mut pairing)?);
        }
        Ok(EndpointReplies(replies).to_bytes())
    }

    fn inbox(&self) -> Result<Box<dyn Inbox>> {
        if self.port_state.published.is_closed() {
            return Err(Error::Closed { transport: NAME });
        }
        let responder = self.first.responder()?;
        let further = self.further.iter().filter_map(|nic| {
            let made = nic.responder();
            // No messages would be taken from there.
            let made = made.inspect_err(|error| nic.port_state.fail(&error.to_string()));
            made.ok()
        });
        Ok(Box::new(VerbsInbox::new(responder, further.collect())?))
    }

    fn make_visible(&self, kind: MemoryKind) -> Result<()> {
        // Acquire: with the stores where lanes begin, on other threads maybe.
        if kind != MemoryKind::Cuda || !self.used.load(Ordering::Acquire) {
            return Ok(());
        }
        let direct = self.nics().enumerate().filter_map(|(rail, nic)| {
            let direct = nic.gpu.direct().ok()?;
            // The driver's flush is for what all NICs wrote, a read for what one did.
            let is_needed = match (rail, direct.flushes_by_reading()) {
                (0, false) => true,
                (0, true) => nic.port_state.is_alive(),
                (_, reads) => reads && nic.port_state.is_usable(),
            };
            is_needed.then_some(direct)
        });
        direct.into_iter().try_for_each(Direct::make_visible)
    }

    fn peer_lost(&self, pe: Pe) {
        self.port_state.published.lose(pe);
        let responders = self.nics().filter_map(DomainNic::made_responder);
        responders.for_each(|responder| responder.disconnect_peer(pe));
    }

    fn shutdown(&self) {
        self.port_state.published.close();
        let responders = self.nics().filter_map(DomainNic::made_responder);
        responders.for_each(|responder| responder.wake());
    }
}
