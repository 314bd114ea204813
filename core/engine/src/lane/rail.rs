//! One opened transport, as all contexts of a PE share it: its registrations, its capabilities and
//! guarantees, and the idle lanes that ended contexts have left.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use oxshmem_transport::{
    Capabilities, Completion, Domain, GpuFlush, Guarantees, Lane, LocalKey, MemoryKind, Peer,
    Region, RegionId, Remote, SignalSupport, WireUp,
};

use crate::error::Result;
use crate::memory::extents::{Extents, MAX_EXTENTS};
use crate::order::op_set::{OpKind, OpSet};

/// One opened transport.
pub struct Rail {
    /// The transport's name.
    pub name: &'static str,
    /// The opened device.
    pub domain: Arc<dyn Domain>,
    /// The domain's capabilities, which are constant.
    pub caps: Capabilities,
    guarantees: GuaranteeSet,
    /// The promises towards each PE, from the wire-up on.
    towards: OnceLock<PeerPromises>,
    /// Whether operations take lanes of it.
    lanes_enabled: AtomicBool,
    // Dropped before the registrations that its operations use.
    /// Lanes of ended contexts.
    idle: Mutex<Vec<IdleLane>>,
    /// The registrations of this PE's heaps; every other PE has the same.
    pub host: RegisteredHeap,
    /// This PE's GPU heap, as it is registered.
    pub gpu: RegisteredHeap,
    /// Whether no operation will use it any more.
    retired: AtomicBool,
}

/// Guarantees by kind of memory.
type GuaranteeSet = [Guarantees; MemoryKind::ALL.len()];

/// The promises of a domain towards one PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Promises {
    guarantees: GuaranteeSet,
    put_signal: SignalSupport,
    /// The messages that may be there without a reply.
    message_window: usize,
}

impl Promises {
    /// The promises that both make.
    fn both(self, other: Promises) -> Promises {
        Promises {
            guarantees: std::array::from_fn(|kind| {
                self.guarantees[kind].both(other.guarantees[kind])
            }),
            put_signal: self.put_signal.min(other.put_signal),
            message_window: self.message_window.min(other.message_window),
        }
    }
}

/// The promises towards each PE. Most jobs have NICs of one kind, so one set: each set is kept once.
struct PeerPromises {
    sets: Vec<Promises>,
    /// By PE, the index of its set.
    of: Box<[u8]>,
}

impl PeerPromises {
    /// From the sets of all PEs. Beyond 256 different sets, a PE gets the promises that all of them make.
    fn new(all: impl Iterator<Item = Promises>) -> Self {
        let mut sets: Vec<Promises> = Vec::new();
        let index = |set| {
            let known = sets.iter().position(|known| *known == set);
            known.unwrap_or_else(|| {
                sets.push(set);
                sets.len() - 1
            })
        };
        let of: Vec<usize> = all.map(index).collect();
        let last = usize::from(u8::MAX);
        if sets.len() > last {
            let rest = sets.split_off(last);
            let weakest = rest.into_iter().reduce(Promises::both);
            sets.extend(weakest);
        }
        PeerPromises {
            sets,
            of: of.into_iter().map(|at| at.min(last) as u8).collect(),
        }
    }

    fn towards(&self, pe: usize) -> Option<&Promises> {
        self.sets.get(usize::from(*self.of.get(pe)?))
    }
}

/// A lane, and by PE whether it is connected: empty where none need be.
pub(crate) struct IdleLane {
    pub lane: Box<dyn Lane>,
    pub connected: Vec<bool>,
}

/// A heap of this PE in the extents in which one transport has it registered.
pub struct RegisteredHeap {
    /// The extents in which it is registered.
    pub extents: Extents,
    /// The region number of the first.
    first: u32,
    /// In order; none if the transport carries no such memory.
    regions: Mutex<Vec<Box<dyn Region>>>,
    /// The keys of the first `registered` of them, for operations, which take no lock.
    keys: Box<[AtomicU64]>,
    registered: AtomicUsize,
    imported: Mutex<Vec<Peer>>,
    shared_with: Mutex<Vec<u32>>,
}

impl fmt::Debug for RegisteredHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredHeap")
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Rail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rail")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl RegisteredHeap {
    fn new(first: u32) -> Self {
        RegisteredHeap {
            extents: Extents::whole(0),
            first,
            regions: Mutex::default(),
            keys: Box::default(),
            registered: AtomicUsize::new(0),
            imported: Mutex::default(),
            shared_with: Mutex::default(),
        }
    }

    /// Sets how the heap is cut, before anything is registered.
    pub fn set_extents(&mut self, extents: Extents) {
        self.extents = extents;
        let count = extents.count(extents.limit());
        self.keys = (0..count).map(|_| AtomicU64::new(0)).collect();
    }

    /// The registered extents of this PE's heap.
    pub fn regions(&self) -> MutexGuard<'_, Vec<Box<dyn Region>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The PEs whose heaps of this kind are imported here, and grow.
    pub fn imported(&self) -> MutexGuard<'_, Vec<Peer>> {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The PEs that pass each other the descriptors of extents, this one among them, if any do.
    pub fn shared_with(&self) -> MutexGuard<'_, Vec<u32>> {
        let pes = self.shared_with.lock();
        pes.unwrap_or_else(PoisonError::into_inner)
    }

    /// The region number of an extent, which is the same on every PE.
    #[inline]
    pub fn id(&self, extent: u32) -> RegionId {
        RegionId(self.first + extent)
    }

    /// Bytes of the extent with this region number.
    pub fn len_of(&self, id: RegionId) -> u64 {
        let extent = id.0.saturating_sub(self.first);
        self.extents.end(extent) - self.extents.start(extent)
    }

    /// The byte of a heap as it is named towards its PE, and how many bytes its extent has from there.
    #[inline]
    pub(crate) fn locate(&self, offset: u64) -> (Remote, usize) {
        let (extent, offset, rest) = self.extents.locate(offset);
        let region = self.id(extent);
        let rest = usize::try_from(rest).unwrap_or(usize::MAX);
        (Remote { region, offset }, rest)
    }

    /// One more extent is registered.
    pub fn grow(&self, region: Box<dyn Region>) {
        let mut regions = self.regions();
        if let Some(key) = self.keys.get(regions.len()) {
            key.store(region.local_key().0, Ordering::Relaxed);
        }
        regions.push(region);
        // Pairs with the load in `local_key`: a thread that sees the count sees the key.
        self.registered.store(regions.len(), Ordering::Release);
    }

    /// Deregisters all extents but the first `count`. Nothing uses the others.
    pub fn shrink(&self, count: usize) {
        let mut regions = self.regions();
        regions.truncate(count);
        self.registered.store(regions.len(), Ordering::Release);
    }

    /// The key of the extent of this PE's heap in which a byte lies, and how many bytes the extent has from there.
    #[inline]
    pub(crate) fn local_key(&self, offset: u64) -> Option<(LocalKey, usize)> {
        let (extent, _, rest) = self.extents.locate(offset);
        let extent = extent as usize;
        let registered = extent < self.registered.load(Ordering::Acquire);
        let key = self.keys.get(extent).filter(|_| registered)?;
        let rest = usize::try_from(rest).unwrap_or(usize::MAX);
        Some((LocalKey(key.load(Ordering::Relaxed)), rest))
    }

    /// Records that a PE's heap is imported: so will be the extents that it grows by.
    pub fn imports_from(&self, peer: &Peer) {
        let mut imported = self.imported();
        if !imported.iter().any(|known| known.pe == peer.pe) {
            imported.push(peer.clone());
        }
    }
}

impl Rail {
    /// A rail of an opened device, without lanes and registrations.
    pub fn new(name: &'static str, domain: Arc<dyn Domain>) -> Self {
        // A domain that declares no guarantees gives none.
        let promised = |kind| domain.guarantees(kind).unwrap_or(Guarantees::NONE);
        Rail {
            name,
            caps: domain.capabilities().clone(),
            guarantees: MemoryKind::ALL.map(promised),
            towards: OnceLock::new(),
            domain,
            lanes_enabled: AtomicBool::new(false),
            idle: Mutex::default(),
            host: RegisteredHeap::new(0),
            gpu: RegisteredHeap::new(MAX_EXTENTS),
            retired: AtomicBool::new(false),
        }
    }

    /// Whether it registers the heap extent by extent.
    pub fn pins(&self) -> bool {
        self.caps.pins
    }

    /// Ends the registrations: no operation will use the rail.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.host.shrink(0);
        self.gpu.shrink(0);
    }

    /// Whether its registrations have ended for good.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Operations take its lanes: every context has one.
    pub fn enable_lanes(&self) {
        self.lanes_enabled.store(true, Ordering::Release);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<IdleLane>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane for a context, if operations take any: an idle one, since its connections are worth keeping, or a
    /// new one.
    pub(crate) fn acquire_lane(&self) -> Result<Option<IdleLane>> {
        if !self.lanes_enabled.load(Ordering::Acquire) {
            return Ok(None);
        }
        let idle = self.idle().pop();
        match idle {
            Some(idle) => Ok(Some(idle)),
            None => Ok(Some(IdleLane {
                lane: self.domain.lane()?,
                connected: Vec::new(),
            })),
        }
    }

    /// Leaves a lane to the next context.
    pub(crate) fn release_lane(&self, lane: IdleLane) {
        self.idle().push(lane);
    }

    /// The registration of a heap of this kind.
    #[inline]
    pub fn registered_heap(&self, kind: MemoryKind) -> &RegisteredHeap {
        match kind {
            MemoryKind::Host => &self.host,
            _ => &self.gpu,
        }
    }

    /// Whether each lane must be connected with each PE.
    pub(crate) fn connects_lanes(&self) -> bool {
        self.caps.wire_up == WireUp::PerLane
    }

    /// Whether some operations are so long that they keep no order.
    #[inline]
    pub(crate) fn has_long_operations(&self) -> bool {
        self.caps.put.ordered != u64::MAX || self.caps.get.ordered != u64::MAX
    }

    /// The update of a put of `len` bytes to memory of a kind.
    #[inline]
    pub(crate) fn put_update(&self, kind: MemoryKind, len: usize) -> OpSet {
        OpSet::put(kind, self.caps.put.is_long(len as u64))
    }

    /// Whether completion means placement for all of these operations to a PE.
    pub(crate) fn completion_is_placement(&self, pe: usize, ops: OpSet) -> bool {
        self.kinds(ops)
            .all(|kind| self.guarantees(pe, kind).completion == Completion::Placed)
    }

    /// Whether it has registered this PE's GPU heap.
    pub fn carries_gpu(&self) -> bool {
        !self.gpu.regions().is_empty()
    }

    /// Whether data that it places in memory of a kind need a flush by the target's GPU (M27).
    pub(crate) fn needs_gpu_flush(&self, kind: MemoryKind) -> bool {
        of_kind(&self.guarantees, kind).gpu_flush == GpuFlush::Target
    }

    fn kinds(&self, ops: OpSet) -> impl Iterator<Item = MemoryKind> {
        MemoryKind::ALL
            .into_iter()
            .filter(move |kind| ops.has(OpKind::Put, *kind) || ops.has(OpKind::Atomic, *kind))
    }

    /// Its guarantees for memory of a kind at a PE: none, if it does not say.
    pub fn guarantees(&self, pe: usize, kind: MemoryKind) -> Guarantees {
        let towards = self.towards.get().and_then(|known| known.towards(pe));
        of_kind(
            towards.map_or(&self.guarantees, |known| &known.guarantees),
            kind,
        )
    }

    /// Its put-with-signal to a PE.
    pub(crate) fn put_signal(&self, pe: usize) -> SignalSupport {
        let towards = self.towards.get().and_then(|known| known.towards(pe));
        towards.map_or(self.caps.put_signal, |known| known.put_signal)
    }

    /// The most messages of this PE that may be at a PE without a reply.
    pub(crate) fn message_window(&self, pe: usize) -> usize {
        let towards = self.towards.get().and_then(|known| known.towards(pe));
        towards.map_or(usize::MAX, |known| known.message_window)
    }

    /// Takes the domain's promises towards these PEs, which are all, in order. Only the first call counts.
    pub fn learn_promises(&self, peers: impl Iterator<Item = Peer>) {
        let towards = |peer: Peer| Promises {
            guarantees: MemoryKind::ALL.map(|kind| {
                let promised = self.domain.guarantees_towards(&peer, kind);
                promised.unwrap_or(Guarantees::NONE)
            }),
            put_signal: self.domain.put_signal_towards(&peer),
            message_window: match self.domain.message_window(&peer) {
                Some(window) => window.max(1) as usize,
                None => usize::MAX,
            },
        };
        self.towards
            .get_or_init(|| PeerPromises::new(peers.map(towards)));
    }
}

fn of_kind(set: &GuaranteeSet, kind: MemoryKind) -> Guarantees {
    let index = MemoryKind::ALL.iter().position(|known| *known == kind);
    index.map_or(Guarantees::NONE, |index| set[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem_transport::AtomicLevel;

    fn promises(put_put: bool, put_get: bool, put_signal: SignalSupport) -> Promises {
        Promises {
            guarantees: MemoryKind::ALL.map(|_| Guarantees {
                put_put,
                put_get,
                ..Guarantees::NONE
            }),
            put_signal,
            message_window: usize::MAX,
        }
    }

    #[test]
    fn each_pe_has_the_promises_of_its_own_device() {
        let native = SignalSupport::Native(AtomicLevel::Nic);
        let none = SignalSupport::None;
        let sets = [
            promises(true, true, native),
            promises(false, true, native),
            promises(true, true, none),
            promises(true, true, native),
        ];
        let towards = PeerPromises::new(sets.into_iter());
        assert_eq!(towards.sets.len(), 3);
        let of = |pe| {
            let known = towards.towards(pe)?;
            Some((known.guarantees[0].put_put, known.put_signal))
        };
        assert_eq!(of(0), Some((true, native)));
        assert_eq!(of(1), Some((false, native)));
        assert_eq!(of(2), Some((true, none)));
        assert_eq!(of(3), Some((true, native)));
        assert_eq!(of(4), None);
    }

    #[test]
    fn more_different_sets_than_fit_promise_only_the_common_part() {
        // Bits of a number as promises make 2^9 different sets.
        let all: Vec<Promises> = (0..512_u32)
            .map(|n| {
                let bit = |at: u32| n >> at & 1 == 1;
                let guarantees = MemoryKind::ALL.map(|_| Guarantees {
                    put_put: bit(0),
                    put_fence_put: bit(0),
                    put_atomic: bit(1),
                    atomic_put: bit(2),
                    atomic_atomic: bit(3),
                    put_message: bit(4),
                    put_get: bit(5),
                    get_get: bit(6),
                    across_lanes: bit(7),
                    completion: if bit(8) {
                        Completion::Placed
                    } else {
                        Completion::Accepted
                    },
                    gpu_flush: GpuFlush::None,
                });
                let put_signal = match bit(0) {
                    true => SignalSupport::Native(AtomicLevel::Nic),
                    false => SignalSupport::None,
                };
                Promises {
                    guarantees,
                    put_signal,
                    message_window: 1 + usize::from(bit(1)),
                }
            })
            .collect();
        let towards = PeerPromises::new(all.iter().copied());
        for (pe, promised) in all.iter().enumerate() {
            let known = towards.towards(pe).unwrap();
            assert_eq!(known.both(*promised), *known, "{pe} got more");
        }
    }
}
