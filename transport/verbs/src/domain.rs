//! The domain of the verbs transport: one PE's opened port, what it can do and what it promises.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Capabilities, Completion, Domain, Error, GpuFlush,
    Guarantees, Inbox, Job, Lane, Limits, LocalRegion, Memory, MemoryKind, Pe, Peer, Reach, Region,
    RegionId, RegionNumbers, RemoteRegion, Result, SignalSupport, Width, WireUp,
};

use crate::gpu::DomainGpu;
use crate::gpu::driver::{self, Gpu};
use crate::ibv::sys::ibv_atomic_cap;
use crate::inbox::VerbsInbox;
use crate::lane::VerbsLane;
use crate::limits::{BATCH, MESSAGE, NAME, UNREGISTERED};
use crate::port::{Port, path};
use crate::port_state::{PortState, bad_peer_data};
use crate::region::{VerbsLocalRegion, VerbsRegion, VerbsRemoteRegion};
use crate::remote_region::{Imported, MOST_REGIONS};
use crate::responder::Responder;
use crate::settings::Settings;
use crate::statistics::Totals;
use crate::wire::{Address, Key, TargetProperties};

/// One PE's domain on one port.
#[derive(Debug)]
pub(crate) struct VerbsDomain {
    capabilities: Capabilities,
    gpu: DomainGpu,
    /// Whether there was ever a lane from or to this PE: else no NIC has written here.
    used: AtomicBool,
    numbers: RegionNumbers,
    responder: Mutex<Option<Arc<Responder>>>,
    port_state: Arc<PortState>,
}

/// The level of atomics that change a word. A device's claim that its atomics are the CPU's, too
/// (`IBV_ATOMIC_GLOB`), is believed if it is `trusted`: of a program, or made by atomics of the bus. Others claim it with
/// various meanings.
fn atomic_level(claimed: ibv_atomic_cap::Type, trusted: bool) -> AtomicLevel {
    match claimed {
        ibv_atomic_cap::IBV_ATOMIC_NONE => AtomicLevel::None,
        ibv_atomic_cap::IBV_ATOMIC_GLOB if trusted => AtomicLevel::Cpu,
        _ => AtomicLevel::Nic,
    }
}

/// The capabilities of a device. `gpu`: whether it reaches GPU memory.
fn capabilities(port_state: &PortState, gpu: bool) -> Capabilities {
    let (port, in_order) = (&port_state.port, port_state.placement.in_order());
    let max = u64::from(port.attributes.largest_message).clamp(UNREGISTERED as u64, 1 << 30);
    let cpu = AtomicLevel::Cpu;
    // Exclusive against the CPU's is not exclusive against a GPU's on its own memory (M29).
    let trusted = !gpu && (port.software || port.limits.pci_atomics);
    let changing = atomic_level(port.limits.atomics, trusted);
    let limits = |inline| Limits {
        max,
        align: 1,
        unregistered: UNREGISTERED as u64,
        inline,
        ordered: port_state.ordered(),
    };
    Capabilities {
        put: limits(UNREGISTERED as u64),
        get: limits(0),
        put_signal: match changing {
            AtomicLevel::None => SignalSupport::None,
            // Such a device has no fence that holds the signal back.
            _ if port.software && !in_order => SignalSupport::None,
            level => SignalSupport::Native(level),
        },
        // An aligned word is read and written whole, so as a CPU does it.
        atomics: AtomicTable::uniform(AtomicLevel::None)
            .with(AtomicOp::Fetch, Width::W64, cpu)
            .with(AtomicOp::Set, Width::W64, cpu)
            .with(AtomicOp::Add, Width::W64, changing)
            .with(AtomicOp::CompareSwap, Width::W64, changing),
        memory: if gpu {
            &[MemoryKind::Host, MemoryKind::Cuda]
        } else {
            &[MemoryKind::Host]
        },
        depth: Some(port_state.depth),
        wire_up: WireUp::PerLane,
        pins: true,
        batch: BATCH,
        message: MESSAGE as u32,
        passive_target: true,
        moves_in_calls: false,
    }
}

/// The order that a reliable connection keeps. `relaxed`: puts may pass each other on the way to memory.
fn guarantees(relaxed: bool, target: TargetProperties) -> Guarantees {
    let in_order = target.placement.in_order();
    Guarantees {
        put_put: in_order && !relaxed && target.has_strict_keys,
        // By the strict keys from there on.
        put_fence_put: in_order && target.has_strict_keys,
        // An atomic passes no write before it, and the lane itself holds back Set and Fetch, which are a write and a read.
        // By a relaxed key the end of an atomic is one more write, which may pass others.
        put_atomic: target.has_strict_keys,
        // A responder may perform a write before an atomic that was sent before it.
        atomic_put: false,
        // By the fence that the lane sets where the hardware would not keep it.
        atomic_atomic: true,
        put_message: true,
        // A target that places out of order may serve a read before a write.
        put_get: in_order,
        get_get: in_order,
        across_lanes: false,
        completion: Completion::Accepted,
        gpu_flush: GpuFlush::None,
    }
}

/// The guarantees towards GPU memory. The PCIe bus keeps the order of writes to one device only. No order
/// is promised between a write to the GPU and one to host memory, in either direction; a promise for both
/// kinds would mean that to the core. A [flush](oxshmem_transport::Op::Flush) reads both.
fn guarantees_on_gpu(flush: bool, in_order: bool) -> Guarantees {
    Guarantees {
        put_get: in_order,
        get_get: in_order,
        completion: Completion::Accepted,
        gpu_flush: if flush {
            GpuFlush::Target
        } else {
            GpuFlush::None
        },
        ..Guarantees::NONE
    }
}

/// The put-with-signal towards targets with these properties, of a device that offers `signals`; `software`: it has no
/// fences, by which hardware holds a signal behind its data. Where there is none, the core flushes between the two.
fn signals_towards(
    signals: SignalSupport,
    software: bool,
    target: TargetProperties,
) -> SignalSupport {
    let (in_order, strict) = (target.placement.in_order(), target.has_strict_keys);
    let held = !software || (in_order && strict);
    match held && target.has_atomics {
        true => signals,
        false => SignalSupport::None,
    }
}

/// The atomics of a device that has `own`, towards a target with these properties: a word belongs to the NIC of the PE that
/// has it, so that NIC must perform them (M29).
fn atomics_towards(own: AtomicTable, target: TargetProperties) -> AtomicTable {
    if target.has_atomics {
        return own;
    }
    [AtomicOp::Add, AtomicOp::CompareSwap]
        .into_iter()
        .fold(own, |table, op| {
            table.with(op, Width::W64, AtomicLevel::None)
        })
}

impl VerbsDomain {
    pub(crate) fn new(
        port: Port,
        settings: Settings,
        gpu: Option<&Arc<dyn Gpu>>,
        job: Job,
        totals: Arc<Totals>,
    ) -> Result<VerbsDomain> {
        let port_state = Arc::new(PortState::new(port, settings, job, totals)?);
        let gpu = DomainGpu::of(gpu, &port_state);
        Ok(VerbsDomain {
            capabilities: capabilities(&port_state, gpu.direct().is_ok()),
            gpu,
            used: AtomicBool::new(false),
            numbers: RegionNumbers::default(),
            responder: Mutex::default(),
            port_state,
        })
    }

    /// The responder, made when first needed: PEs that no other PE connects with have none.
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
        path(&here, &address.port, self.port_state.route_needed())?;
        Ok(address)
    }

    /// The guarantees towards targets with these properties.
    fn guarantees_of(&self, kind: MemoryKind, target: TargetProperties) -> Option<Guarantees> {
        match kind {
            MemoryKind::Host => Some(guarantees(self.port_state.port.relaxed.host, target)),
            MemoryKind::Cuda => {
                let direct = self.gpu.direct().ok()?;
                let in_order = target.placement.in_order();
                Some(guarantees_on_gpu(direct.needs_flush(), in_order))
            }
            _ => None,
        }
    }
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
        Some(told)
    }

    fn address(&self) -> Vec<u8> {
        let address = Address {
            pe: self.port_state.published.job.me.0,
            port: self.port_state.addressing().address(),
            target: self.port_state.target_properties(),
            gpu: self.gpu.support(),
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
        let (domain, port) = (&self.port_state.protection_domain, &self.port_state.port);
        let me = self.port_state.published.job.me.0;
        let relaxed = match gpu {
            None => port.relaxed.host,
            Some(_) => port.relaxed.gpu,
        };
        let region = VerbsRegion::new(domain, gpu, me, number, memory, relaxed)?;
        Ok(Box::new(region))
    }

    unsafe fn register_local(
        &self,
        addr: *mut u8,
        len: usize,
        written: bool,
    ) -> Result<Box<dyn LocalRegion>> {
        let gpu = match self.gpu.kind_of(addr) {
            MemoryKind::Cuda => Some(
                self.gpu
                    .direct()
                    .map_err(|why| driver::refused(why.into()))?,
            ),
            _ => None,
        };
        let relaxed = self.port_state.port.relaxed;
        let relaxed = if gpu.is_some() {
            relaxed.gpu
        } else {
            relaxed.host
        };
        let domain = &self.port_state.protection_domain;
        // SAFETY: the bytes stay mapped while the region lives, as this function's caller promises.
        let region = unsafe { VerbsLocalRegion::new(domain, gpu, addr, len, written, relaxed) }?;
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
        let imported = Imported::new(key, if key.gpu { relaxed.gpu } else { relaxed.host });
        self.port_state.published.import(peer.pe, region, imported);
        Ok(Arc::new(VerbsRemoteRegion { len }))
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        if self.port_state.published.is_closed() {
            return Err(Error::Closed { transport: NAME });
        }
        self.used.store(true, Ordering::Release);
        Ok(Box::new(VerbsLane::new(&self.port_state)?))
    }

    fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        self.port_state.published.check(pe)?;
        self.used.store(true, Ordering::Release);
        self.responder()?.accept(pe, endpoint)
    }

    fn inbox(&self) -> Result<Box<dyn Inbox>> {
        if self.port_state.published.is_closed() {
            return Err(Error::Closed { transport: NAME });
        }
        Ok(Box::new(VerbsInbox::new(self.responder()?)?))
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
        self.port_state.published.lose(pe);
        let responder = self
            .responder
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(responder) = &*responder {
            responder.disconnect_peer(pe);
        }
    }

    fn shutdown(&self) {
        self.port_state.published.close();
        let responder = self
            .responder
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(responder) = &*responder {
            responder.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placement;

    #[test]
    fn m17_only_targets_that_place_writes_in_order_get_the_promises_that_stand_on_it() {
        let of = |placement| {
            let target = TargetProperties {
                placement,
                has_strict_keys: true,
                has_atomics: true,
            };
            guarantees(false, target)
        };
        let (kept, lost) = (of(Placement::DeviceInOrder), of(Placement::NotAnswered));
        assert!(kept.put_put && kept.put_get && kept.get_get);
        assert!(!lost.put_put && !lost.put_get && !lost.get_get && !lost.put_fence_put);
        // An atomic and a message wait for the writes before them.
        assert!(lost.put_atomic && lost.put_message);
        for flush in [false, true] {
            assert!(guarantees_on_gpu(flush, true).put_get);
            assert!(!guarantees_on_gpu(flush, false).put_get);
        }
    }

    #[test]
    fn m29_a_claim_that_atomics_are_the_cpus_needs_a_reason() {
        let glob = ibv_atomic_cap::IBV_ATOMIC_GLOB;
        assert_eq!(atomic_level(glob, false), AtomicLevel::Nic);
        assert_eq!(atomic_level(glob, true), AtomicLevel::Cpu);
        for trusted in [false, true] {
            let level = |claimed| atomic_level(claimed, trusted);
            assert_eq!(level(ibv_atomic_cap::IBV_ATOMIC_HCA), AtomicLevel::Nic);
            assert_eq!(level(ibv_atomic_cap::IBV_ATOMIC_NONE), AtomicLevel::None);
        }
    }

    #[test]
    fn m29_no_atomic_goes_to_a_nic_without() {
        let target = |has_atomics| TargetProperties {
            placement: Placement::Driver,
            has_strict_keys: true,
            has_atomics,
        };
        let cpu = AtomicLevel::Cpu;
        let own = AtomicTable::uniform(AtomicLevel::None)
            .with(AtomicOp::Fetch, Width::W64, cpu)
            .with(AtomicOp::Set, Width::W64, cpu)
            .with(AtomicOp::Add, Width::W64, AtomicLevel::Nic)
            .with(AtomicOp::CompareSwap, Width::W64, AtomicLevel::Nic);
        assert_eq!(atomics_towards(own, target(true)), own);
        let left = atomics_towards(own, target(false));
        for op in AtomicOp::ALL {
            // A read and a write are no atomics of the NIC.
            let level = match op {
                AtomicOp::Fetch | AtomicOp::Set => cpu,
                _ => AtomicLevel::None,
            };
            assert_eq!(left.level(op, Width::W64), level, "{op}");
        }
        for level in [AtomicLevel::Nic, cpu] {
            let signals = SignalSupport::Native(level);
            assert_eq!(signals_towards(signals, false, target(true)), signals);
            let towards = signals_towards(signals, false, target(false));
            assert_eq!(towards, SignalSupport::None);
        }
    }

    #[test]
    fn m17_writes_that_pass_each_other_on_the_bus_are_promised_no_order() {
        let of = |relaxed, has_strict_keys| {
            let target = TargetProperties {
                placement: Placement::Driver,
                has_strict_keys,
                has_atomics: true,
            };
            guarantees(relaxed, target)
        };
        assert!(of(false, true).put_put && of(false, true).put_atomic);
        // Atomics have keys of their own.
        assert!(!of(true, true).put_put && of(true, true).put_atomic);
        // And so have puts after a fence.
        assert!(of(true, true).put_fence_put);
        for relaxed in [false, true] {
            let only = of(relaxed, false);
            assert!(!only.put_put && !only.put_atomic && !only.put_fence_put);
            // A read passes no write there, and completions follow what they complete.
            assert!(only.put_get && only.put_message);
        }
    }

    #[test]
    fn m22_signals_are_offered_where_both_ends_hold_them_behind_their_data() {
        let target = |placement, has_strict_keys, has_atomics| TargetProperties {
            placement,
            has_strict_keys,
            has_atomics,
        };
        let native = SignalSupport::Native(AtomicLevel::Nic);
        let (keeps, reorders) = (Placement::Driver, Placement::DeviceOutOfOrder);
        for (target, by_software, by_hardware) in [
            (target(keeps, true, true), true, true),
            (target(keeps, false, true), false, true),
            (target(reorders, true, true), false, true),
            // Without atomics there is no word for the barrier.
            (target(reorders, true, false), false, false),
        ] {
            for (software, offered) in [(true, by_software), (false, by_hardware)] {
                let towards = signals_towards(native, software, target);
                assert_eq!(towards == native, offered, "{software} {target:?}");
                let none = signals_towards(SignalSupport::None, software, target);
                assert_eq!(none, SignalSupport::None);
            }
        }
    }
}
