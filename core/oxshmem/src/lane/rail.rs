//! One opened transport, as all contexts of a PE share it: what is registered with it, what it can do and
//! promises, and the lanes that contexts have left to the next.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    Capabilities, Completion, Domain, GpuFlush, Guarantees, Lane, LocalKey, MemoryKind, Peer,
    Region, RegionId, Remote, WireUp,
};

use super::extents::{Extents, MAX_EXTENTS};
use crate::Result;
use crate::order::{OpKind, OpSet};

/// One opened transport.
pub(crate) struct Rail {
    pub name: &'static str,
    pub domain: Arc<dyn Domain>,
    /// The domain's, which are constant.
    pub caps: Capabilities,
    guarantees: [Guarantees; MemoryKind::ALL.len()],
    /// Operations take lanes of it.
    used: AtomicBool,
    // Dropped before the registrations that its operations use.
    /// Lanes that no context has.
    vacant: Mutex<Vec<Vacant>>,
    /// How this PE's heaps are registered, and every other PE's with them.
    pub host: Pieces,
    pub gpu: Pieces,
    /// Nothing will ever go by it.
    retired: AtomicBool,
}

/// A lane, and by PE whether it is connected: nobody where none need be.
pub(super) struct Vacant {
    pub lane: Box<dyn Lane>,
    pub connected: Vec<bool>,
}

/// A heap of this PE in the pieces in which one transport has it registered.
pub(crate) struct Pieces {
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

impl fmt::Debug for Rail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Pieces {
    fn new(first: u32) -> Self {
        Pieces {
            extents: Extents::whole(0),
            first,
            regions: Mutex::default(),
            keys: Box::default(),
            registered: AtomicUsize::new(0),
            imported: Mutex::default(),
            shared_with: Mutex::default(),
        }
    }

    /// How the heap is cut, before anything is registered.
    pub(crate) fn cut(&mut self, extents: Extents) {
        self.extents = extents;
        let count = extents.count(extents.limit());
        self.keys = (0..count).map(|_| AtomicU64::new(0)).collect();
    }

    /// The registered pieces of this PE's heap.
    pub(crate) fn regions(&self) -> MutexGuard<'_, Vec<Box<dyn Region>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose heap of this kind is imported here, and grows.
    pub(crate) fn imported(&self) -> MutexGuard<'_, Vec<Peer>> {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The PEs that pass each other the descriptors of pieces, this one among them, if any do.
    pub(crate) fn shared_with(&self) -> MutexGuard<'_, Vec<u32>> {
        let pes = self.shared_with.lock();
        pes.unwrap_or_else(PoisonError::into_inner)
    }

    /// The region number of a piece, which is the same on every PE.
    #[inline]
    pub(crate) fn id(&self, piece: u32) -> RegionId {
        RegionId(self.first + piece)
    }

    /// Bytes of the piece with this region number.
    pub(crate) fn len_of(&self, id: RegionId) -> u64 {
        let piece = id.0.saturating_sub(self.first);
        self.extents.end(piece) - self.extents.start(piece)
    }

    /// The byte of a heap as it is named towards its PE, and how many bytes its piece has from there.
    #[inline]
    pub(crate) fn locate(&self, offset: u64) -> (Remote, usize) {
        let (piece, offset, rest) = self.extents.locate(offset);
        let region = self.id(piece);
        let rest = usize::try_from(rest).unwrap_or(usize::MAX);
        (Remote { region, offset }, rest)
    }

    /// One more piece is registered.
    pub(crate) fn grow(&self, region: Box<dyn Region>) {
        let mut regions = self.regions();
        if let Some(key) = self.keys.get(regions.len()) {
            key.store(region.local_key().0, Ordering::Relaxed);
        }
        regions.push(region);
        // Pairs with the load in `local_key`: who sees the count sees the key.
        self.registered.store(regions.len(), Ordering::Release);
    }

    /// Ends the registration of all pieces but the first `count`. Nothing uses the others.
    pub(crate) fn shrink(&self, count: usize) {
        let mut regions = self.regions();
        regions.truncate(count);
        self.registered.store(regions.len(), Ordering::Release);
    }

    /// The key of the piece of this PE's heap in which a byte lies, and how far that reaches.
    #[inline]
    pub(super) fn local_key(&self, offset: u64) -> Option<(LocalKey, usize)> {
        let (piece, _, rest) = self.extents.locate(offset);
        let piece = piece as usize;
        let registered = piece < self.registered.load(Ordering::Acquire);
        let key = self.keys.get(piece).filter(|_| registered)?;
        let rest = usize::try_from(rest).unwrap_or(usize::MAX);
        Some((LocalKey(key.load(Ordering::Relaxed)), rest))
    }

    /// A PE's heap is imported, and so will be what it grows by.
    pub(crate) fn imports_from(&self, peer: &Peer) {
        let mut imported = self.imported();
        if !imported.iter().any(|known| known.pe == peer.pe) {
            imported.push(peer.clone());
        }
    }
}

impl Rail {
    pub(crate) fn new(name: &'static str, domain: Arc<dyn Domain>) -> Self {
        // Nothing, where it does not say.
        let promised = |kind| domain.guarantees(kind).unwrap_or(Guarantees::NONE);
        Rail {
            name,
            caps: domain.capabilities().clone(),
            guarantees: MemoryKind::ALL.map(promised),
            domain,
            used: AtomicBool::new(false),
            vacant: Mutex::default(),
            host: Pieces::new(0),
            gpu: Pieces::new(MAX_EXTENTS),
            retired: AtomicBool::new(false),
        }
    }

    /// Whether it registers the heap piece by piece.
    pub(crate) fn pins(&self) -> bool {
        self.caps.pins
    }

    /// Nothing will go by it: its registrations end.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.host.shrink(0);
        self.gpu.shrink(0);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Operations take its lanes: every context has one.
    pub(crate) fn use_lanes(&self) {
        self.used.store(true, Ordering::Release);
    }

    fn vacant(&self) -> MutexGuard<'_, Vec<Vacant>> {
        self.vacant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane for a context, if operations take any: one that another has left, since its connections are
    /// worth keeping, or a new one.
    pub(super) fn take_lane(&self) -> Result<Option<Vacant>> {
        if !self.used.load(Ordering::Acquire) {
            return Ok(None);
        }
        let left = self.vacant().pop();
        match left {
            Some(left) => Ok(Some(left)),
            None => Ok(Some(Vacant {
                lane: self.domain.lane()?,
                connected: Vec::new(),
            })),
        }
    }

    /// Leaves a lane to the next context.
    pub(super) fn leave_lane(&self, lane: Vacant) {
        self.vacant().push(lane);
    }

    /// The pieces of a heap of this kind.
    #[inline]
    pub(crate) fn pieces(&self, kind: MemoryKind) -> &Pieces {
        match kind {
            MemoryKind::Host => &self.host,
            _ => &self.gpu,
        }
    }

    /// Whether lanes must be connected with each PE.
    pub(super) fn is_wired(&self) -> bool {
        self.caps.wire_up == WireUp::PerLane
    }

    /// Whether completion means placement for all of these.
    pub(super) fn places(&self, classes: OpSet) -> bool {
        self.kinds(classes)
            .all(|kind| self.guarantees(kind).completion == Completion::Placed)
    }

    /// Whether it knows this PE's GPU heap.
    pub(crate) fn carries_gpu(&self) -> bool {
        !self.gpu.regions().is_empty()
    }

    /// Whether what it places in memory of a kind needs a flush by the target's GPU (M27).
    pub(super) fn needs_gpu_flush(&self, kind: MemoryKind) -> bool {
        self.guarantees(kind).gpu_flush == GpuFlush::Target
    }

    fn kinds(&self, classes: OpSet) -> impl Iterator<Item = MemoryKind> {
        MemoryKind::ALL.into_iter().filter(move |kind| {
            classes.has(OpKind::Put, *kind) || classes.has(OpKind::Atomic, *kind)
        })
    }

    /// What it promises about memory of a kind: nothing, if it does not say.
    pub(super) fn guarantees(&self, kind: MemoryKind) -> Guarantees {
        let index = MemoryKind::ALL.iter().position(|known| *known == kind);
        index.map_or(Guarantees::NONE, |index| self.guarantees[index])
    }
}
