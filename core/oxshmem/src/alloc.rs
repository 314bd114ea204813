//! Symmetric memory management: collective allocation with agreement and roll-back (M9 to M14).
//!
//! Every PE places a block, registers the memory that its heap has grown into, and says in a barrier whether that went well.
//! The keys of new registrations are exchanged then. If one PE fails, every PE gets an error, and all heaps are unchanged.

use std::ops::BitOr;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use bytemuck::Pod;
use oxshmem_transport::MemoryKind;

use crate::blocks::{Block, OWN};
use crate::error::{Error, Result};
use crate::heap::{ALIGN, Heap, MAX_ALIGN, Placement};
use crate::options::NicAtomics;
use crate::place::placed;
use crate::sym::Sym;
use crate::world::World;
use oxshmem_collectives::signature::CallSignature;
use oxshmem_engine::memory::target::NIC;

const HOST: MemoryKind = MemoryKind::Host;

/// The intended use of a block. Hints change no meaning (OpenSHMEM `shmem_malloc_with_hints`).
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

/// A collective call that gives a block memory.
struct HeapChange<'c> {
    call: &'static str,
    kind: MemoryKind,
    signature: CallSignature,
    /// The signature of the barrier that agrees on the placement.
    agreement: CallSignature,
    words: &'c dyn Fn() -> String,
    /// Bytes that the block is to have; none if the number overflows.
    bytes: Option<u64>,
    /// The heap's limit in bytes.
    limit: u64,
}

impl HeapChange<'_> {
    fn out_of_memory(&self, why: String) -> Error {
        Error::OutOfMemory {
            call: self.call,
            bytes: self.bytes.unwrap_or(u64::MAX),
            limit: self.limit,
            why,
        }
    }

    /// The bytes that the block is to have, if the number does not overflow.
    fn bytes(&self) -> Result<u64> {
        let overflows = || self.out_of_memory("the size in bytes overflows".into());
        self.bytes.ok_or_else(overflows)
    }
}

impl World {
    /// Ends the registrations of an allocation that failed: keeps so many extents, by rail.
    fn deregister_growth(&self, kind: MemoryKind, keep: &[usize]) {
        if self.inner.growth(kind).extents.is_some() {
            self.heap(kind).deregister(&self.worker.engine.rails, keep);
        }
    }

    /// Places a block's memory on every PE, or on none (M13). `fill` gives it its contents before the other PEs use it. On
    /// success the heap is still locked, for the change of the block table. Collective.
    fn place_on_all(
        &self,
        change: &HeapChange<'_>,
        place: impl FnOnce(&mut Heap) -> Result<Placement>,
        fill: impl FnOnce(Placement),
    ) -> Result<(Placement, MutexGuard<'_, Heap>)> {
        let (call, kind, words) = (change.call, change.kind, change.words);
        let registered = self.registered_extents(kind);
        let placed = place(&mut self.heap(kind));
        let (mine, placement) = match placed {
            Ok(placement) => (self.register_growth(kind), Some(placement)),
            Err(error) => (Err(error), None),
        };
        if let Some(placement) = placement {
            fill(placement);
        }
        let agreed = self
            .barrier(call, change.agreement, mine, words)
            .and_then(|()| self.publish_growth(call, kind, change.signature, words));
        let mut heap = self.heap(kind);
        let error = match (agreed, placement) {
            (Ok(()), Some(placement)) => return Ok((placement, heap)),
            (Err(error), _) => error,
            // The PEs agree only if each has placed the block.
            (Ok(()), None) => change.out_of_memory("not placed".into()),
        };
        if let Some(placement) = placement {
            heap.roll_back(placement);
        }
        drop(heap);
        self.deregister_growth(kind, &registered);
        Err(error)
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

    pub(crate) fn allocate<T: Pod>(
        &self,
        kind: MemoryKind,
        call: &'static str,
        len: usize,
        align: usize,
        hints: Hints,
        zero: bool,
    ) -> Result<Sym<T>> {
        let signature = CallSignature::of(call)
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
        let _traced = self.worker.traced(call);
        self.pe.sync_area.record(signature, words);
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        let tag = match kind {
            MemoryKind::Host => self.worker.tag,
            _ => self.gpu_tag(),
        };
        if bytes == Some(0) {
            return Ok(Sym::new(tag, OWN, 0, len));
        }
        let change = HeapChange {
            call,
            kind,
            signature,
            agreement: signature,
            words: &words,
            bytes,
            limit: self.heap(kind).limit() as u64,
        };
        let place = |heap: &mut Heap| {
            check_align(call, align)?;
            let placed = heap.place_block(change.bytes()?, align_for::<T>(align));
            placed.map_err(|why| change.out_of_memory(why))
        };
        let bytes = bytes.unwrap_or(0);
        let fill = |placement: Placement| {
            if zero {
                let block =
                    Sym::<u8>::new(self.worker.tag, OWN, placement.offset(), bytes as usize);
                self.own(block).zero();
            }
        };
        let (placement, mut heap) = self.place_on_all(&change, place, fill)?;
        let nic = kind == HOST && self.in_nic_domain(hints);
        if nic {
            // No order is needed: a thread that is given the block sees this, too, when it looks the block up.
            self.inner.hinted.store(true, Ordering::Relaxed);
        }
        let generation = heap.blocks.next_generation() | if nic { NIC } else { 0 };
        let block = Block {
            bytes,
            align: align as u64,
            generation,
        };
        heap.blocks.insert(placement.offset(), block);
        drop(heap);
        // The block tables are the same on all PEs by now, whether or not this fails.
        self.worker.make_gpu_data_visible()?;
        Ok(Sym::new(tag, generation, placement.offset(), len))
    }

    /// Allocates permanent host memory of the library's own after the PEs share their heaps. Collective.
    pub(crate) fn allocate_own(&self, call: &'static str, bytes: usize) -> Result<Sym<u8>> {
        self.allocate_own_on(HOST, call, bytes)
    }

    /// [`allocate_own`](Self::allocate_own) in memory of another kind.
    pub(crate) fn allocate_own_on(
        &self,
        kind: MemoryKind,
        call: &'static str,
        bytes: usize,
    ) -> Result<Sym<u8>> {
        let block = self.allocate::<u8>(kind, call, bytes, ALIGN as usize, Hints::NONE, false)?;
        self.heap(kind).blocks.end(block.offset());
        Ok(Sym::new(block.tag(), OWN, block.offset(), bytes))
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
        let _traced = self.worker.traced(CALL);
        let signature = CallSignature::of(CALL)
            .and(sym.offset())
            .and(sym.generation().into())
            .and(u64::from(sym.tag() & 1));
        let words = || format!("free({} bytes at {})", sym.bytes(), sym.offset());
        self.pe.sync_area.record(signature, words);
        let kind = self.kind_of(sym);
        if sym.bytes() == 0 && kind.is_some() {
            return Ok(());
        }
        let mine = self.whole_block(CALL, sym).map(drop);
        self.barrier(CALL, signature, mine, &words)?;
        let mut heap = self.heap(kind.unwrap_or(HOST));
        heap.blocks.end(sym.offset());
        heap.free(sym.offset());
        drop(heap);
        Ok(self.worker.make_gpu_data_visible()?)
    }

    /// The live block that `sym` names whole.
    fn whole_block<T: Pod>(&self, call: &'static str, sym: Sym<T>) -> Result<Block> {
        let Some(kind) = self.kind_of(sym) else {
            return Err(Error::Foreign { call });
        };
        self.heap(kind).blocks.get(call, sym)
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
        if sym.bytes() == 0 && sym.tag() == self.worker.tag {
            return self.allocate(HOST, CALL, len, ALIGN as usize, Hints::NONE, false);
        }
        if len.saturating_mul(size_of::<T>()) == 0 {
            self.free(sym)?;
            return Ok(Sym::new(self.worker.tag, OWN, 0, 0));
        }
        let _traced = self.worker.traced(CALL);
        let signature = CallSignature::of(CALL)
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
        self.pe.sync_area.record(signature, words);
        let block = self
            .in_call(CALL)
            .own_in_host_memory(sym)
            .and_then(|_| self.whole_block(CALL, sym));
        let (mine, block) = block.map_or_else(|e| (Err(e), None), |b| (Ok(()), Some(b)));
        // On entry: nobody uses the block any more.
        self.barrier(CALL, signature, mine, &words)?;
        let Some(block) = block else {
            return Err(Error::Stale {
                call: CALL,
                offset: sym.offset(),
            });
        };
        // On exit, by another signature: every PE's block is in place, or none is.
        let change = HeapChange {
            call: CALL,
            kind: HOST,
            signature,
            agreement: signature.and(1),
            words: &words,
            bytes: (len as u64).checked_mul(size_of::<T>() as u64),
            limit: self.heap_limit() as u64,
        };
        let place = |heap: &mut Heap| {
            let bytes = change.bytes()?;
            let placed = heap.place_again(sym.offset(), block, bytes, align_for::<T>(1));
            placed.map_err(|why| change.out_of_memory(why))
        };
        let bytes = change.bytes.unwrap_or(0);
        let fill = |placement: Placement| {
            if let Placement::New(offset) = placement {
                let kept = sym.bytes().min(bytes as usize);
                let to = Sym::<u8>::new(self.worker.tag, OWN, offset, kept);
                let from = Sym::<u8>::new(self.worker.tag, OWN, sym.offset(), kept);
                self.own(to).copy_from_span(self.own(from), kept);
            }
        };
        let (placement, mut heap) = self.place_on_all(&change, place, fill)?;
        let generation = heap.blocks.next_generation() | (sym.generation() & NIC);
        heap.blocks.end(sym.offset());
        if let Placement::New(_) = placement {
            heap.free(sym.offset());
        }
        let block = Block {
            bytes,
            generation,
            ..block
        };
        heap.blocks.insert(placement.offset(), block);
        Ok(Sym::new(
            self.worker.tag,
            generation,
            placement.offset(),
            len,
        ))
    }
}

/// Refuses an alignment that is no power of two, or out of range.
fn check_align(call: &'static str, align: usize) -> Result<()> {
    let fits = (size_of::<usize>()..=MAX_ALIGN).contains(&align);
    if align.is_power_of_two() && fits {
        return Ok(());
    }
    Err(Error::Argument {
        call,
        what: format!(
            "alignment {align} is not a power of two from {} to {MAX_ALIGN} bytes",
            size_of::<usize>()
        ),
    })
}

/// The alignment of a block of `T`s for which `align` is asked.
fn align_for<T>(align: usize) -> u64 {
    (align.max(align_of::<T>()) as u64).max(ALIGN)
}
