//! Symmetric memory management: collective allocation with agreement and roll-back (M9 to M14).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::BitOr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use bytemuck::Pod;
use oxshmem_heap::{Allocator, Segment};
use oxshmem_transport::{Memory, MemoryKind};

use crate::collectives::signature::CallSignature;
use crate::gpu::GpuMemory;
use crate::lane::{Extents, Rail};
use crate::live_block_cache::Live;
use crate::place::placed;
use crate::shared::Shared;
use crate::sym::NIC;
use crate::world::NicAtomics;
use crate::{Context, Error, Result, Sym, World};

/// What a block will be used for. Hints change no meaning (OpenSHMEM `shmem_malloc_with_hints`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints(u32);

impl Hints {
    /// Nothing special.
    pub const NONE: Hints = Hints(0);
    /// The block is a target of remote atomics: those of 64 bits are performed by NICs, where every
    /// PE's can (M29; `OXSHMEM_ATOMICS`).
    #[doc(alias = "SHMEM_MALLOC_ATOMICS_REMOTE")]
    pub const ATOMICS_REMOTE: Hints = Hints(1);
    /// The block holds signal words.
    #[doc(alias = "SHMEM_MALLOC_SIGNAL_REMOTE")]
    pub const SIGNAL_REMOTE: Hints = Hints(2);
}

impl BitOr for Hints {
    type Output = Hints;
    fn bitor(self, other: Self) -> Self {
        Hints(self.0 | other.0)
    }
}

/// A symmetric heap of this PE. Its allocator goes through the same states on every PE.
pub(crate) struct Heap {
    backing: Backing,
    /// The most bytes that the program can have of it.
    limit: usize,
    /// What sets the limit.
    setting: &'static str,
    allocator: Allocator,
    /// Live blocks by offset.
    blocks: BTreeMap<u64, Block>,
    /// How often a block has ended.
    changes: Arc<AtomicU64>,
    generation: u32,
    /// Bytes from the start that transports have pinned: they stay committed.
    pinned: usize,
    /// Bytes from the start that the library has for itself, and the most that were ever in use.
    own: usize,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u64,
    align: u64,
    generation: u32,
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap")
            .field("blocks", &self.blocks.len())
            .finish_non_exhaustive()
    }
}

/// Where a heap's memory is committed as needed.
enum Backing {
    /// There is no such heap.
    Nothing,
    Host(Segment),
    Gpu {
        memory: Box<dyn GpuMemory>,
        cut: Extents,
        /// Those that are committed.
        pieces: Vec<Memory>,
    },
}

impl Backing {
    fn kind(&self) -> MemoryKind {
        match self {
            Backing::Gpu { .. } => MemoryKind::Cuda,
            _ => HOST,
        }
    }

    /// Whether what this transport has registered of it stays committed while it has.
    fn stays_for(&self, via: &Rail) -> bool {
        via.pins() || self.kind() != HOST
    }

    /// Commits the first `bytes` at least.
    fn commit(&mut self, bytes: usize) -> Result<(), String> {
        match self {
            Backing::Nothing => Ok(()),
            Backing::Host(segment) => segment.commit(bytes).map_err(|error| error.to_string()),
            Backing::Gpu {
                memory,
                cut,
                pieces,
            } => {
                for piece in pieces.len() as u32..cut.count(bytes as u64) {
                    let (start, end) = (cut.start(piece), cut.end(piece));
                    pieces.push(memory.commit(start as usize, (end - start) as usize)?);
                }
                Ok(())
            }
        }
    }

    /// Takes back what lies beyond the first `bytes`.
    fn uncommit(&mut self, bytes: usize) {
        match self {
            Backing::Nothing => {}
            Backing::Host(segment) => {
                let _ = segment.uncommit(bytes);
            }
            Backing::Gpu {
                memory,
                cut,
                pieces,
            } => {
                let keep = cut.count((bytes as u64).max(1));
                if (keep as usize) < pieces.len() {
                    pieces.truncate(keep as usize);
                    memory.uncommit(cut.start(keep) as usize);
                }
            }
        }
    }

    /// The bytes from `start` to `end` as a transport registers them, committed if they stay so.
    fn piece(&mut self, start: u64, end: u64, via: &Rail) -> Result<Memory, String> {
        let (at, len) = (start as usize, (end - start) as usize);
        if self.stays_for(via) {
            self.commit(end as usize)?;
        }
        match self {
            Backing::Nothing => Err("there is no such heap".into()),
            Backing::Host(segment) => {
                let descriptor = (!via.pins()).then(|| Arc::clone(segment.descriptor()));
                let own = segment.mapping();
                let owner = Arc::clone(own) as _;
                // SAFETY: the piece lies within the mapping, which keeps the bytes mapped; this
                // library accesses them through Span alone.
                Ok(unsafe { Memory::new(own.base().add(at), len, HOST, descriptor, owner) })
            }
            Backing::Gpu { cut, pieces, .. } => {
                let piece = pieces.get(cut.index(start) as usize);
                piece.cloned().ok_or("it is not committed".into())
            }
        }
    }
}

const HOST: MemoryKind = MemoryKind::Host;
/// The alignment of every block: a cache line, and enough for any type (M12).
pub(crate) const ALIGN: u64 = 64;
/// To more than this no heap's start is aligned.
const MOST_ALIGN: usize = 1 << 40;
/// The generation of what is never freed: the library's own words,
pub(crate) const OWN: u32 = 0;
/// and the program's statics.
pub(crate) const STATIC: u32 = NIC - 1;

impl Heap {
    /// A heap in the first `capacity` bytes of host memory, of which the program can have `limit`, as `setting` says.
    pub(crate) fn new(
        segment: Segment,
        (limit, capacity): (usize, usize),
        setting: &'static str,
    ) -> Self {
        Self::with(Backing::Host(segment), (limit, capacity), setting)
    }

    /// One without memory, to find out how much it would need.
    pub(crate) fn of_nothing() -> Self {
        Self::with(
            Backing::Nothing,
            (0, MOST_ALIGN << 8),
            "OXSHMEM_SYMMETRIC_SIZE",
        )
    }

    /// A heap of `limit` bytes in GPU memory, if there is any.
    pub(crate) fn on_gpu(memory: Option<Box<dyn GpuMemory>>, limit: usize) -> Self {
        let backing = match memory {
            None => Backing::Nothing,
            Some(memory) => Backing::Gpu {
                cut: match memory.is_whole() {
                    true => Extents::whole(limit as u64),
                    false => Extents::capped(limit as u64),
                },
                memory,
                pieces: Vec::new(),
            },
        };
        Self::with(backing, (limit, limit), "OXSHMEM_CUDA_SYMMETRIC_SIZE")
    }

    /// The most bytes that the program can have of it.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// How it is cut into pieces by all transports alike, if it is a GPU's.
    pub(crate) fn cut(&self) -> Option<Extents> {
        match &self.backing {
            Backing::Gpu { cut, .. } => Some(*cut),
            _ => None,
        }
    }

    /// Its first byte's address and its limit, if it is a GPU's and something is committed.
    pub(crate) fn on_gpu_at(&self) -> Option<(NonNull<u8>, usize)> {
        match &self.backing {
            Backing::Gpu { pieces, .. } => pieces.first().map(|piece| (piece.base(), self.limit)),
            _ => None,
        }
    }

    fn with(backing: Backing, (limit, capacity): (usize, usize), setting: &'static str) -> Self {
        Heap {
            backing,
            limit,
            setting,
            allocator: Allocator::new(capacity),
            blocks: BTreeMap::new(),
            changes: Arc::default(),
            generation: OWN,
            pinned: 0,
            own: 0,
            most: 0,
        }
    }

    fn uncommit(&mut self) {
        let high = self.allocator.high_water().max(self.pinned);
        self.backing.uncommit(high);
    }

    /// Room in the allocator and committed memory behind it, or neither.
    fn place(&mut self, bytes: u64, align: u64) -> Result<u64, String> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let Some(block) = self.allocator.allocate(size, align as usize) else {
            return Err(format!(
                "{} bytes are free, at most {} of them in one piece; free blocks or raise {}",
                self.allocator.unused(),
                self.allocator.largest_free(),
                self.setting
            ));
        };
        if let Err(why) = self.backing.commit(block.offset + block.size) {
            self.take_back(block.offset as u64);
            return Err(why);
        }
        self.most = self.most.max(self.allocator.high_water());
        Ok(block.offset as u64)
    }

    /// Undoes `place` of a block on which nothing was built yet.
    fn take_back(&mut self, offset: u64) {
        if self.allocator.free(offset as usize).is_ok() {
            self.uncommit();
        }
    }

    /// Places bytes that are never freed, zeroed, before the heap is shared.
    pub(crate) fn place_permanent(
        &mut self,
        tag: u32,
        generation: u32,
        bytes: usize,
        align: usize,
    ) -> Result<Sym<u8>> {
        let limit = self.limit as u64;
        let offset = self
            .place(bytes as u64, (align as u64).max(ALIGN))
            .map_err(|why| Error::OutOfMemory {
                call: "init",
                bytes: bytes as u64,
                limit,
                why,
            })?;
        self.own = self.allocator.high_water();
        Ok(Sym::new(tag, generation, offset, bytes))
    }

    /// The most bytes that were in use since the program could use any, up to the last of them.
    pub(crate) fn most_used(&self) -> u64 {
        self.most.saturating_sub(self.own) as u64
    }

    /// Registers with the transports what the heap reaches into and is not registered yet. If one
    /// fails, the caller undoes it by [`unregister`](Self::unregister).
    pub(crate) fn register(&mut self, transports: &[Arc<Rail>]) -> Result<()> {
        let kind = self.backing.kind();
        if self.limit == 0 {
            return Ok(());
        }
        let high = self.allocator.high_water() as u64;
        for via in transports {
            if via.is_retired() || !via.caps.memory.contains(&kind) {
                continue;
            }
            let pieces = via.registered_heap(kind);
            let have = pieces.regions().len() as u32;
            for piece in have..pieces.extents.count(high.max(1)) {
                let (start, end) = (pieces.extents.start(piece), pieces.extents.end(piece));
                // Pinning takes the pages: they are counted here, not found missing there.
                let memory = self.backing.piece(start, end, via);
                let memory = memory.map_err(|why| Error::OutOfMemory {
                    call: "registration",
                    bytes: end - start,
                    limit: self.limit as u64,
                    why,
                })?;
                pieces.grow(via.domain.register(pieces.id(piece), &memory)?);
                if self.backing.stays_for(via) {
                    self.pinned = self.pinned.max(end as usize);
                }
            }
        }
        Ok(())
    }

    /// Ends all registrations with transports that pin, for good.
    pub(crate) fn let_go(&mut self, transports: &[Arc<Rail>]) {
        for via in transports.iter().filter(|via| via.pins()) {
            via.retire();
        }
        self.pinned = 0;
        self.uncommit();
    }

    /// Ends the registration of all pieces but the first, by transport.
    fn unregister(&mut self, transports: &[Arc<Rail>], keep: &[usize]) {
        self.pinned = 0;
        let kind = self.backing.kind();
        for (via, &keep) in transports.iter().zip(keep) {
            let pieces = via.registered_heap(kind);
            pieces.shrink(keep);
            if self.backing.stays_for(via)
                && let Some(last) = (keep as u32).checked_sub(1)
            {
                self.pinned = self.pinned.max(pieces.extents.end(last) as usize);
            }
        }
        self.uncommit();
    }

    /// One past the last byte in use, as on every PE.
    pub(crate) fn high_water(&self) -> u64 {
        self.allocator.high_water() as u64
    }

    fn next_generation(&mut self) -> u32 {
        self.generation = match self.generation + 1 {
            STATIC => OWN + 1,
            next => next,
        };
        self.generation
    }

    /// The live block that `sym` names whole.
    fn block<T: Pod>(&self, call: &'static str, sym: Sym<T>) -> Result<Block> {
        match self.blocks.get(&sym.offset()) {
            Some(block) if block.generation == sym.generation() => {
                if block.bytes == sym.bytes() as u64 {
                    Ok(*block)
                } else {
                    Err(Error::NotABlock { call })
                }
            }
            _ if self.holds(sym) => Err(Error::NotABlock { call }),
            _ => Err(Error::Stale {
                call,
                offset: sym.offset(),
            }),
        }
    }

    /// Whether `sym` lies in a live block of its own generation, or in permanent memory.
    #[inline]
    fn holds<T: Pod>(&self, sym: Sym<T>) -> bool {
        let around = self.around(sym.offset());
        is_never_freed(sym) || around.is_some_and(|live| is_in(sym, &live))
    }

    /// How often a block has ended: who remembers one needs no lock to know that it lives.
    pub(crate) fn changes(&self) -> &Arc<AtomicU64> {
        &self.changes
    }

    /// A block is none any more.
    fn end(&mut self, offset: u64) {
        self.blocks.remove(&offset);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Frees every live block.
    pub(crate) fn free_all(&mut self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        for offset in std::mem::take(&mut self.blocks).into_keys() {
            // It was live, so the allocator knows it.
            let _ = self.allocator.free(offset as usize);
        }
        self.uncommit();
    }

    /// The live block around an offset: where it starts, its bytes and its generation.
    fn around(&self, offset: u64) -> Option<Live> {
        let (start, block) = self.blocks.range(..=offset).next_back()?;
        let live = Live {
            start: *start,
            bytes: block.bytes,
            generation: block.generation,
        };
        live.has(offset, 0).then_some(live)
    }

    /// Blocks that were not freed, and their bytes.
    pub(crate) fn leaks(&self) -> (usize, u64) {
        (
            self.blocks.len(),
            self.blocks.values().map(|b| b.bytes).sum(),
        )
    }
}

impl Context<'_> {
    pub(crate) fn heap(&self, kind: MemoryKind) -> MutexGuard<'_, Heap> {
        self.shared.heap(kind)
    }

    /// Refuses handles of other worlds and of freed blocks.
    #[inline]
    pub(crate) fn check_live<T: Pod>(&self, call: &'static str, sym: Sym<T>) -> Result<()> {
        let known = self.kind_of(sym) == Some(HOST) && {
            let is = |live: &Live| is_in(sym, live);
            is_never_freed(sym) || self.block(sym.offset(), is).is_some()
        };
        match known {
            true => Ok(()),
            false => self.check_age(call, sym),
        }
    }

    #[cold]
    fn check_age<T: Pod>(&self, call: &'static str, sym: Sym<T>) -> Result<()> {
        match self.kind_of(sym) {
            None => Err(Error::Foreign { call }),
            Some(kind) => self.shared.check_live(kind, call, sym),
        }
    }

    /// The live block of host memory around an offset, if this holds for it. One that calls have found lately is
    /// found without a lock.
    #[inline]
    pub(crate) fn block(&self, offset: u64, is: impl Fn(&Live) -> bool) -> Option<Live> {
        let changes = &self.shared.heap_changes;
        let lately = &self.shared.live_blocks;
        // What ends a block is collective: a program that names it at the same time errs.
        let known = lately.find(changes.load(Ordering::Relaxed), &is);
        known.or_else(|| {
            let heap = self.heap(HOST);
            let live = heap.around(offset).filter(is)?;
            lately.keep(changes.load(Ordering::Relaxed), live);
            Some(live)
        })
    }
}

/// Whether an object is the library's own memory, or the program's variables.
fn is_never_freed<T: Pod>(sym: Sym<T>) -> bool {
    matches!(sym.generation() & !NIC, OWN | STATIC)
}

/// Whether an object lies in this block, of this age.
#[inline]
fn is_in<T: Pod>(sym: Sym<T>, live: &Live) -> bool {
    live.generation == sym.generation() && live.has(sym.offset(), sym.bytes() as u64)
}

impl Shared {
    /// Refuses handles of freed blocks of this kind of memory.
    pub(crate) fn check_live<T: Pod>(
        &self,
        kind: MemoryKind,
        call: &'static str,
        sym: Sym<T>,
    ) -> Result<()> {
        if sym.is_empty() || self.heap(kind).holds(sym) {
            Ok(())
        } else {
            Err(Error::Stale {
                call,
                offset: sym.offset(),
            })
        }
    }
}

impl World {
    /// Takes back what an allocation that failed has registered.
    fn unregister_growth(&self, kind: MemoryKind, keep: &[usize]) {
        if self.inner.growth(kind).cut.is_some() {
            let transports = &self.shared.rails;
            self.heap(kind).unregister(transports, keep);
        }
    }

    /// Whether 64-bit atomics on a block with these hints are its NIC's (M29).
    fn in_nic_domain(&self, hints: Hints) -> bool {
        match self.inner.nic_atomics {
            NicAtomics::Never => false,
            NicAtomics::IfHinted => hints.0 & Hints::ATOMICS_REMOTE.0 != 0,
            NicAtomics::Always => true,
        }
    }

    /// Allocates `len` elements on every PE; their contents are unspecified (M9 to M14).
    ///
    /// Collective, with the same arguments on every PE; ends with a barrier, so the block is usable
    /// at every PE on return (M10). With `len` 0 it does nothing and gives an empty object (M11).
    /// If one PE has no room, every PE gets the error and the heap is unchanged (M13). The block is
    /// aligned for any type, to 64 bytes at least (M12).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let table = world.alloc::<f64>(1000)?; // 1000 numbers on each PE
    ///         world.write(table, &[1.5; 1000])?; // this PE's own
    ///         world.barrier_all()?;
    ///         let peer = 1 - world.my_pe();
    ///         assert_eq!(world.g(table.at(999)?, peer)?, 1.5); // the other PE's last
    ///         world.free(table)
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_malloc", "shmalloc", "MPI_Win_allocate"))]
    #[track_caller]
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Sym<T>> {
        placed(|| self.allocate(HOST, "alloc", len, ALIGN as usize, Hints::NONE, false))
    }

    /// [`alloc`](Self::alloc) with every byte zero (M12).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let counts = world.alloc_zeroed::<u64>(4)?;
    ///         let peer = 1 - world.my_pe();
    ///         assert_eq!(world.g(counts.at(3)?, peer)?, 0);
    ///         world.free(counts)
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_calloc", "nvshmem_calloc"))]
    #[track_caller]
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<Sym<T>> {
        placed(|| self.allocate(HOST, "alloc_zeroed", len, ALIGN as usize, Hints::NONE, true))
    }

    /// [`alloc`](Self::alloc) at a multiple of `align` bytes, which must be a power of two and a
    /// multiple of the size of a pointer (M12).
    #[doc(alias("shmem_align", "shmemalign", "nvshmem_align"))]
    #[track_caller]
    pub fn alloc_aligned<T: Pod>(&self, len: usize, align: usize) -> Result<Sym<T>> {
        placed(|| self.allocate(HOST, "alloc_aligned", len, align, Hints::NONE, false))
    }

    /// [`alloc`](Self::alloc) with hints, which change no meaning.
    #[doc(alias = "shmem_malloc_with_hints")]
    #[track_caller]
    pub fn alloc_with_hints<T: Pod>(&self, len: usize, hints: Hints) -> Result<Sym<T>> {
        placed(|| self.allocate(HOST, "alloc_with_hints", len, ALIGN as usize, hints, false))
    }

    pub(crate) fn allocate_on<T: Pod>(
        &self,
        kind: MemoryKind,
        call: &'static str,
        len: usize,
    ) -> Result<Sym<T>> {
        self.allocate(kind, call, len, ALIGN as usize, Hints::NONE, false)
    }

    fn allocate<T: Pod>(
        &self,
        kind: MemoryKind,
        call: &'static str,
        len: usize,
        align: usize,
        hints: Hints,
        zero: bool,
    ) -> Result<Sym<T>> {
        let digest = CallSignature::of(call)
            .and(len as u64)
            .and(size_of::<T>() as u64)
            .and(align as u64)
            .and(hints.0.into())
            .and(kind as u64);
        let words = || {
            format!(
                "{call}({len} x {} bytes of {kind} memory, align {align}, {hints:?})",
                size_of::<T>()
            )
        };
        let _traced = self.traced(call);
        self.shared.sync_area.record(digest, words);
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        let tag = match kind {
            MemoryKind::Host => self.tag,
            _ => self.gpu_tag(),
        };
        if bytes == Some(0) {
            return Ok(Sym::new(tag, OWN, 0, len));
        }
        let limit = self.heap(kind).limit as u64;
        let no_room = |bytes: u64, why: String| Error::OutOfMemory {
            call,
            bytes,
            limit,
            why,
        };
        let fits = (size_of::<usize>()..=MOST_ALIGN).contains(&align);
        let placed = if !align.is_power_of_two() || !fits {
            Err(Error::Argument {
                call,
                what: format!(
                    "alignment {align} is not a power of two from {} to {MOST_ALIGN} bytes",
                    size_of::<usize>()
                ),
            })
        } else {
            match bytes {
                Some(bytes) => self
                    .heap(kind)
                    .place(bytes, align_for::<T>(align))
                    .map(|offset| (offset, bytes))
                    .map_err(|why| no_room(bytes, why)),
                None => Err(no_room(u64::MAX, "the size in bytes overflows".into())),
            }
        };
        let pieces = self.pieces(kind);
        let (mine, placed) = match placed {
            Ok(placed) => (self.register_growth(kind), Some(placed)),
            Err(error) => (Err(error), None),
        };
        if let Some((offset, bytes)) = placed
            && zero
        {
            self.own(Sym::<u8>::new(self.tag, OWN, offset, bytes as usize))
                .zero();
        }
        let agreed = self
            .barrier(call, digest, mine, &words)
            .and_then(|()| self.publish_growth(call, kind, digest, &words));
        let nic = kind == HOST && self.in_nic_domain(hints);
        let mut heap = self.heap(kind);
        match (agreed, placed) {
            (Ok(()), Some((offset, bytes))) => {
                if nic {
                    // No order: who is given the block, and looks for it, sees this too.
                    self.inner.hinted.store(true, Ordering::Relaxed);
                }
                let generation = heap.next_generation() | if nic { NIC } else { 0 };
                let block = Block {
                    bytes,
                    align: align as u64,
                    generation,
                };
                heap.blocks.insert(offset, block);
                drop(heap);
                // The bookkeeping is the same everywhere by now, whatever becomes of this.
                self.make_gpu_data_visible()?;
                Ok(Sym::new(tag, generation, offset, len))
            }
            (Err(error), placed) => {
                if let Some((offset, _)) = placed {
                    heap.take_back(offset);
                }
                drop(heap);
                self.unregister_growth(kind, &pieces);
                Err(error)
            }
            // Together they are well only if each is.
            (Ok(()), None) => Err(no_room(bytes.unwrap_or(u64::MAX), "not placed".into())),
        }
    }

    /// Host memory of the library's own, allocated after the PEs share their heaps, for as long as the
    /// world lives. Collective.
    pub(crate) fn allocate_own(&self, call: &'static str, bytes: usize) -> Result<Sym<u8>> {
        let block = self.allocate::<u8>(HOST, call, bytes, ALIGN as usize, Hints::NONE, false)?;
        self.heap(HOST).end(block.offset());
        Ok(Sym::new(self.tag, OWN, block.offset(), bytes))
    }

    /// Frees a block on every PE. Collective; begins with a barrier, and then releases (M10). An
    /// empty object is nothing (M11).
    ///
    /// # Errors
    ///
    /// A handle that was freed before, of another world, or of a part of a block is refused on every
    /// PE that gives it, and the call then fails on all (M35).
    #[doc(alias("shmem_free", "shfree", "nvshmem_free", "MPI_Win_free"))]
    #[track_caller]
    pub fn free<T: Pod>(&self, sym: Sym<T>) -> Result<()> {
        placed(|| self.free_inner(sym))
    }

    fn free_inner<T: Pod>(&self, sym: Sym<T>) -> Result<()> {
        const CALL: &str = "free";
        let _traced = self.traced(CALL);
        let digest = CallSignature::of(CALL)
            .and(sym.offset())
            .and(sym.generation().into())
            .and(u64::from(sym.tag() & 1));
        let words = || format!("free({} bytes at {})", sym.bytes(), sym.offset());
        self.shared.sync_area.record(digest, words);
        let kind = self.kind_of(sym);
        if sym.bytes() == 0 && kind.is_some() {
            return Ok(());
        }
        let mine = self.whole_block(CALL, sym).map(drop);
        self.barrier(CALL, digest, mine, &words)?;
        self.release(kind.unwrap_or(HOST), sym.offset());
        self.make_gpu_data_visible()
    }

    fn whole_block<T: Pod>(&self, call: &'static str, sym: Sym<T>) -> Result<Block> {
        let Some(kind) = self.kind_of(sym) else {
            return Err(Error::Foreign { call });
        };
        self.heap(kind).block(call, sym)
    }

    fn release(&self, kind: MemoryKind, offset: u64) {
        let mut heap = self.heap(kind);
        heap.end(offset);
        // The block was found live, so the allocator knows it.
        let _ = heap.allocator.free(offset as usize);
    }

    /// Changes a block's length to `len` elements, on every PE; contents are kept up to the shorter
    /// of the two (M10). The block may move: use the handle that is returned, the old one is stale.
    ///
    /// `len` 0 frees; an empty object allocates. On failure every PE gets the error and the block is
    /// as it was (M13).
    #[doc(alias("shmem_realloc", "shrealloc"))]
    #[track_caller]
    pub fn realloc<T: Pod>(&self, sym: Sym<T>, len: usize) -> Result<Sym<T>> {
        placed(|| self.realloc_inner(sym, len))
    }

    fn realloc_inner<T: Pod>(&self, sym: Sym<T>, len: usize) -> Result<Sym<T>> {
        const CALL: &str = "realloc";
        if sym.bytes() == 0 && sym.tag() == self.tag {
            return self.allocate(HOST, CALL, len, ALIGN as usize, Hints::NONE, false);
        }
        if len.saturating_mul(size_of::<T>()) == 0 {
            self.free(sym)?;
            return Ok(Sym::new(self.tag, OWN, 0, 0));
        }
        let _traced = self.traced(CALL);
        let digest = CallSignature::of(CALL)
            .and(sym.offset())
            .and(sym.generation().into())
            .and(len as u64)
            .and(size_of::<T>() as u64);
        let words = || {
            format!(
                "realloc({} bytes at {}, {len} elements)",
                sym.bytes(),
                sym.offset()
            )
        };
        self.shared.sync_area.record(digest, words);
        let whole = self
            .own_in_host_memory(CALL, sym)
            .and_then(|_| self.whole_block(CALL, sym));
        let (mine, block) = match whole {
            Ok(block) => (Ok(()), Some(block)),
            Err(error) => (Err(error), None),
        };
        // On entry: nobody uses the block any more.
        self.barrier(CALL, digest, mine, &words)?;
        let Some(block) = block else {
            return Err(Error::Stale {
                call: CALL,
                offset: sym.offset(),
            });
        };
        let limit = self.heap_limit() as u64;
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        let no_room = |why: String| Error::OutOfMemory {
            call: CALL,
            bytes: bytes.unwrap_or(u64::MAX),
            limit,
            why,
        };
        let pieces = self.pieces(HOST);
        let placed = match bytes {
            Some(bytes) => self
                .heap(HOST)
                .place_again(sym.offset(), block, bytes, align_for::<T>(1))
                .map_err(&no_room),
            None => Err(no_room("the size in bytes overflows".into())),
        };
        let (mine, placed) = match placed {
            Ok(placed) => (self.register_growth(HOST), Some(placed)),
            Err(error) => (Err(error), None),
        };
        if let Some(Placed::Moved(offset)) = placed {
            let kept = sym.bytes().min(bytes.unwrap_or(0) as usize);
            let to = Sym::<u8>::new(self.tag, OWN, offset, kept);
            let from = Sym::<u8>::new(self.tag, OWN, sym.offset(), kept);
            self.own(to).copy_from_span(self.own(from), kept);
        }
        // On exit: every PE's block is in place, or none is.
        let agreed = self
            .barrier(CALL, digest.and(1), mine, &words)
            .and_then(|()| self.publish_growth(CALL, HOST, digest, &words));
        let mut heap = self.heap(HOST);
        match (agreed, placed) {
            (Ok(()), Some(placed)) => {
                let generation = heap.next_generation() | (sym.generation() & NIC);
                heap.end(sym.offset());
                let offset = match placed {
                    Placed::Stayed { .. } => sym.offset(),
                    Placed::Moved(offset) => {
                        let _ = heap.allocator.free(sym.offset() as usize);
                        offset
                    }
                };
                let bytes = bytes.unwrap_or(0);
                heap.blocks.insert(
                    offset,
                    Block {
                        bytes,
                        generation,
                        ..block
                    },
                );
                Ok(Sym::new(self.tag, generation, offset, len))
            }
            (agreed, placed) => {
                match placed {
                    Some(Placed::Moved(offset)) => heap.take_back(offset),
                    Some(Placed::Stayed { before }) => {
                        // Shrinking back always fits.
                        let _ = heap
                            .allocator
                            .resize_in_place(sym.offset() as usize, before as usize);
                        heap.uncommit();
                    }
                    None => {}
                }
                drop(heap);
                self.unregister_growth(HOST, &pieces);
                Err(match agreed {
                    Err(error) => error,
                    Ok(()) => no_room("not placed".into()),
                })
            }
        }
    }
}

/// The alignment of a block of `T`s for which `align` is asked.
fn align_for<T>(align: usize) -> u64 {
    (align.max(align_of::<T>()) as u64).max(ALIGN)
}

/// Where a reallocated block went.
#[derive(Clone, Copy, Debug)]
enum Placed {
    /// It stayed; it had `before` bytes.
    Stayed { before: u64 },
    /// It has a second place at this offset; the first is not freed yet.
    Moved(u64),
}

impl Heap {
    fn place_again(
        &mut self,
        offset: u64,
        block: Block,
        bytes: u64,
        align: u64,
    ) -> Result<Placed, String> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        if offset.is_multiple_of(align) && self.allocator.resize_in_place(offset as usize, size) {
            if let Err(why) = self.backing.commit((offset + bytes) as usize) {
                // Shrinking back always fits.
                let _ = self
                    .allocator
                    .resize_in_place(offset as usize, block.bytes as usize);
                return Err(why);
            }
            self.most = self.most.max(self.allocator.high_water());
            return Ok(Placed::Stayed {
                before: block.bytes,
            });
        }
        self.place(bytes, block.align.max(align)).map(Placed::Moved)
    }
}
