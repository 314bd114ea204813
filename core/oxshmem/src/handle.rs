//! Checks of handles, and this PE's own copy of an object.
//!
//! A handle is valid in the world that made it alone, and names no more elements than its object has. Every slow path checks
//! that here; the fast path's table refuses foreign handles itself. Checked mode, collective calls and `free` also check that
//! the object lives (M35), without a lock if its block was used recently
//! ([`LiveBlockCache`](crate::live_block_cache::LiveBlockCache)).

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use bytemuck::Pod;
use oxshmem_engine::memory::simulated::HostSpan;
use oxshmem_engine::memory::target::Target;
use oxshmem_engine::order::conflict::Access;
use oxshmem_transport::MemoryKind;

use crate::blocks::{is_in, is_permanent};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::live_block_cache::Live;
use crate::pe_state::PeState;
use crate::sym::Sym;

impl Context<'_> {
    /// Refuses foreign handles, PEs that do not exist and ranges that leave the object. Gives the PE's
    /// number in the world, which the slow path uses.
    pub(crate) fn check<T: Pod>(&self, sym: Sym<T>, elements: usize, pe: usize) -> Result<usize> {
        self.pe
            .check_object(self.worker.tag, self.call(), sym, elements)?;
        let Some(in_world) = self.in_world(pe) else {
            return Err(Error::NoSuchPe {
                call: self.call(),
                pe,
                size: self.n_pes(),
            });
        };
        self.worker.yield_point();
        Ok(in_world)
    }

    /// The kind of memory that a handle of this world names, if it is one.
    #[inline]
    pub(crate) fn kind_of<T: Pod>(&self, sym: Sym<T>) -> Option<MemoryKind> {
        sym.kind_in(self.worker.tag)
    }

    /// Checked mode's check of the first `elements` of an object: [`Worker::guard`].
    #[inline]
    pub(crate) fn guard<T: Pod>(
        &self,
        access: Access,
        sym: Sym<T>,
        elements: usize,
        pe: usize,
        in_flight: bool,
    ) -> Result<()> {
        let target = Target::from(sym);
        let accessed = target.part(0, elements * size_of::<T>()).unwrap_or(target);
        Ok(self.worker.guard(access, accessed, pe, in_flight)?)
    }

    /// [`PeState::check_own`], of this context's world.
    pub(crate) fn check_own<T: Pod>(&self, sym: Sym<T>, elements: usize) -> Result<()> {
        self.pe
            .check_own(self.worker.tag, self.call(), sym, elements)
    }

    /// Refuses two objects of one copy unless they have one length, and are the same object or do not overlap.
    #[inline]
    pub(crate) fn check_pair<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
    ) -> Result<()> {
        if dst.len() != src.len() {
            return Err(Error::Argument {
                call,
                what: format!(
                    "destination has {} elements, source {}; make them equal",
                    dst.len(),
                    src.len()
                ),
            });
        }
        let apart = dst.offset().abs_diff(src.offset()) >= dst.bytes() as u64;
        if dst.tag() == src.tag() && dst.offset() != src.offset() && !apart {
            return Err(Error::Argument {
                call,
                what: "destination and source overlap in part; use one object or two apart".into(),
            });
        }
        Ok(())
    }

    /// This PE's own copy. The caller has checked that the object is this world's, in host memory.
    #[inline(always)]
    pub(crate) fn own<T: Pod>(&self, sym: Sym<T>) -> HostSpan<'_> {
        self.worker.own(sym)
    }

    /// [`own`](Self::own), refused in GPU memory, which the host cannot load (M4).
    pub(crate) fn own_in_host_memory<T: Pod>(&self, sym: Sym<T>) -> Result<HostSpan<'_>> {
        match self.kind_of(sym) {
            Some(MemoryKind::Host) => Ok(self.own(sym)),
            Some(_) => Err(on_gpu(self.call(), sym)),
            None => Err(Error::Foreign { call: self.call() }),
        }
    }

    #[inline]
    pub(crate) fn is_on_host<T: Pod>(&self, sym: Sym<T>) -> bool {
        self.worker.is_on_host(sym)
    }
}

impl PeState {
    /// Refuses handles of other worlds than the one with this tag, and ranges that leave the object. Gives the
    /// kind of its memory.
    #[inline]
    fn check_object<T: Pod>(
        &self,
        tag: u32,
        call: &'static str,
        sym: Sym<T>,
        elements: usize,
    ) -> Result<MemoryKind> {
        let Some(kind) = sym.kind_in(tag) else {
            return Err(Error::Foreign { call });
        };
        if elements > sym.len() {
            return Err(Error::OutOfRange {
                call,
                start: 0,
                end: elements,
                len: sym.len(),
            });
        }
        if self.config.check {
            self.check_live(kind, call, sym)?;
        }
        Ok(kind)
    }

    /// [`Context::check`] of an object that this PE's CPU has to load or store: it cannot in GPU memory (M4).
    pub(crate) fn check_own<T: Pod>(
        &self,
        tag: u32,
        call: &'static str,
        sym: Sym<T>,
        elements: usize,
    ) -> Result<()> {
        let kind = self.check_object(tag, call, sym, elements)?;
        self.engine.yield_point();
        match kind {
            MemoryKind::Host => Ok(()),
            _ => Err(on_gpu(call, sym)),
        }
    }
}

/// The refusal of an object in GPU memory where the CPU has to load or store it (M4).
#[cold]
pub(crate) fn on_gpu<T: Pod>(call: &'static str, sym: Sym<T>) -> Error {
    Error::GpuMemory {
        call,
        offset: sym.offset(),
    }
}

impl Context<'_> {
    pub(crate) fn heap(&self, kind: MemoryKind) -> MutexGuard<'_, Heap> {
        self.pe.heap(kind)
    }

    /// Refuses handles of other worlds and of freed blocks.
    #[inline]
    pub(crate) fn check_live<T: Pod>(&self, sym: Sym<T>) -> Result<()> {
        let is_known = self.kind_of(sym) == Some(MemoryKind::Host) && {
            let is = |live: &Live| is_in(sym, live);
            is_permanent(sym) || self.block(sym.offset(), is).is_some()
        };
        if is_known {
            Ok(())
        } else {
            self.check_generation(sym)
        }
    }

    #[cold]
    fn check_generation<T: Pod>(&self, sym: Sym<T>) -> Result<()> {
        match self.kind_of(sym) {
            None => Err(Error::Foreign { call: self.call() }),
            Some(kind) => self.pe.check_live(kind, self.call(), sym),
        }
    }

    /// The live block of host memory around an offset, if `is` holds for it. A recently used block is found without a
    /// lock.
    #[inline]
    pub(crate) fn block(&self, offset: u64, is: impl Fn(&Live) -> bool) -> Option<Live> {
        let changes = &self.pe.heap_changes;
        let cache = &self.pe.live_blocks;
        // Calls that end a block are collective: a program that names the block at the same time errs.
        let known = cache.find(changes.load(Ordering::Relaxed), &is);
        known.or_else(|| {
            let heap = self.heap(MemoryKind::Host);
            let live = heap.blocks.around(offset).filter(is)?;
            cache.insert(changes.load(Ordering::Relaxed), live);
            Some(live)
        })
    }
}

impl PeState {
    /// Refuses handles of freed blocks of this kind of memory.
    pub(crate) fn check_live<T: Pod>(
        &self,
        kind: MemoryKind,
        call: &'static str,
        sym: Sym<T>,
    ) -> Result<()> {
        if sym.is_empty() || self.heap(kind).blocks.holds(sym) {
            Ok(())
        } else {
            Err(Error::Stale {
                call,
                offset: sym.offset(),
            })
        }
    }
}
