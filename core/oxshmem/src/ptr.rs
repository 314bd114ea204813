//! Direct access to a mapped peer's memory (M8).

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use bytemuck::Pod;
use oxshmem_engine::memory::mapped::Span;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::sym::Sym;

/// A symmetric object of a peer that this process can load and store (M8). It is no symmetric
/// address: no call takes it as one (M34). It lives as long as the world it came from.
#[derive(Clone, Copy, Debug)]
pub struct PeerPtr<'w, T> {
    span: Span<'w>,
    len: usize,
    marker: PhantomData<fn() -> T>,
}

impl<T: Pod> PeerPtr<'_, T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first element's address, valid while the world lives. Other PEs may write the memory at
    /// any time, so it must not be turned into a reference; use atomic or volatile accesses.
    #[must_use]
    pub fn as_ptr(&self) -> *mut T {
        self.span.as_ptr().cast()
    }

    /// Loads an element; in one access if it has 1, 2, 4 or 8 bytes.
    #[inline]
    #[track_caller]
    pub fn load(&self, index: usize) -> Result<T> {
        Ok(self.element("PeerPtr::load", index)?.load())
    }

    /// Stores an element; in one access if it has 1, 2, 4 or 8 bytes. [`Context::fence`] orders it
    /// with later puts and stores (M17), [`Context::quiet`] completes it (M19).
    #[inline]
    #[track_caller]
    pub fn store(&self, index: usize, value: T) -> Result<()> {
        self.element("PeerPtr::store", index)?.store(value);
        Ok(())
    }

    #[inline]
    #[track_caller]
    fn element(&self, call: &'static str, index: usize) -> Result<Span<'_>> {
        if index >= self.len {
            let end = index.saturating_add(1);
            let outside = Error::OutOfRange {
                call,
                start: index,
                end,
                len: self.len,
            };
            return Err(outside.here());
        }
        Ok(self.span.part(index * size_of::<T>(), size_of::<T>()))
    }
}

impl Context<'_> {
    /// PE `pe`'s copy of an object for direct loads and stores, if this process can reach it so:
    /// none across a network, for a lost or unknown PE, for a foreign handle, and in checked mode.
    ///
    /// From the first call on, every [`quiet`](Self::quiet) of this world is a full fence.
    #[doc(alias("shmem_ptr", "shmem_team_ptr", "nvshmem_ptr", "MPI_Win_shared_query"))]
    #[must_use]
    pub fn ptr<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<PeerPtr<'_, T>> {
        let span = self.worker.peers.span(sym, pe);
        let span = span.or_else(|| self.worker.peers.span_counted(sym, self.in_world(pe)?))?;
        self.worker
            .engine
            .untracked_stores
            .store(true, Ordering::Relaxed);
        Some(PeerPtr {
            span,
            len: sym.len(),
            marker: PhantomData,
        })
    }

    /// Whether `pe` is a PE of this job that can be reached (M8b).
    #[doc(alias = "shmem_pe_accessible")]
    #[must_use]
    pub fn pe_accessible(&self, pe: usize) -> bool {
        let Some(pe) = self.in_world(pe) else {
            return false;
        };
        let route = self.worker.engine.routes.get(pe);
        route.is_some_and(|route| route.transport.is_some())
            && !self.worker.engine.liveness.is_lost(pe)
    }

    /// Whether the object is a live one of this world, reachable at `pe` (M8b).
    #[doc(alias = "shmem_addr_accessible")]
    #[must_use]
    pub fn addr_accessible<T: Pod>(&self, sym: Sym<T>, pe: usize) -> bool {
        self.pe_accessible(pe) && self.in_call("addr_accessible").check_live(sym).is_ok()
    }
}
