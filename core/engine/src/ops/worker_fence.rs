//! Fence and quiet of one worker: processor fences for the stores to mapped peers, and the slow path of lanes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crate::error::Result;
use crate::order::fence_site::FenceSite;
use crate::worker::Worker;

thread_local! {
    /// Whether this thread may have stores of its own in flight, into this PE's own symmetric memory, that no call
    /// completed since its last quiet.
    static OWN_STORES: Cell<bool> = const { Cell::new(false) };
}

impl Worker {
    /// Whether no operation is in flight on any lane: none since the last quiet but those that were complete
    /// when their call returned.
    #[inline(always)]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.state.lanes.is_busy()
    }

    /// Whether a quiet has no store of this CPU to complete.
    #[inline(always)]
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.peers.is_clean()
            && !self.has_untracked_stores()
            && !(self.untracked_stores.is_some() && OWN_STORES.get())
    }

    #[inline(always)]
    fn has_untracked_stores(&self) -> bool {
        let load = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        self.untracked_stores.as_ref().is_some_and(load)
    }

    /// Notes a store by this thread into this PE's own symmetric memory.
    #[inline(always)]
    pub fn note_own_store(&self) {
        OWN_STORES.set(true);
    }

    /// A fence, where lanes have operations in flight (M17).
    ///
    /// # Errors
    ///
    /// The failure of a lane, or the loss of a PE, that operations to be ordered needed.
    pub fn fence_slow(&self) -> Result<()> {
        let _traced = self.traced_order("fence");
        self.yield_point();
        self.simulated_fence();
        self.fence_lanes()
    }

    fn simulated_fence(&self) {
        if let Some(simulation) = &self.engine.simulation {
            simulation.fence(FenceSite::FenceStores);
            // In the ordered model reads are ordered already (M20).
            if !self.ordered {
                simulation.fence(FenceSite::FenceLoads);
            }
        }
    }

    /// A quiet (M19), if no lane has an operation in flight.
    #[inline(always)]
    #[must_use]
    pub fn try_quiet(&self) -> bool {
        let idle = self.is_idle();
        if idle {
            self.complete_stores();
        }
        idle
    }

    /// Completes the stores of this CPU. Gives whether there were any.
    #[inline(always)]
    pub fn complete_stores(&self) -> bool {
        // As in a fence: a clean quiet must still order earlier loads (M21).
        fence(Ordering::AcqRel);
        if self.has_untracked_stores() {
            // Always, since a check of the thread's own flag would cost more.
            fence(Ordering::SeqCst);
            // Peers may stay marked dirty where every quiet is a full fence, unless one was lost.
            if self.peers.liveness().any() {
                self.peers.clear_dirty();
            }
            return true;
        }
        let stored = !self.is_clean();
        if stored {
            self.fence_stores();
            OWN_STORES.set(false);
        }
        stored
    }

    #[inline(always)]
    fn fence_stores(&self) {
        fence(Ordering::SeqCst);
        self.peers.clear_dirty();
    }

    /// The rest of a quiet towards `only` these PEs or all: operations on lanes. `stored` says whether this CPU's stores
    /// had to be completed, too.
    ///
    /// # Errors
    ///
    /// The first failure of a lane, or loss of a PE, that operations in flight needed.
    #[cold]
    pub fn quiet_slow(&self, only: Option<&[usize]>, stored: bool) -> Result<()> {
        self.quiet_with(stored, || self.quiet_lanes(only))
    }

    /// A quiet before this PE arrives at a barrier, if a lane has an operation in flight. The words of earlier collective calls
    /// may stay in flight: no PE leaves this barrier before their receivers have got them, and their completion says nothing more.
    ///
    /// # Errors
    ///
    /// As those of [`quiet_slow`](Self::quiet_slow).
    #[cold]
    pub fn quiet_before_arrival(&self) -> Result<()> {
        self.quiet_with(true, || self.quiet_lanes_before_arrival())
    }

    fn quiet_with(&self, stored: bool, lanes: impl FnOnce() -> Result<()>) -> Result<()> {
        let _traced = self.traced_order("quiet");
        self.yield_point();
        match &self.engine.simulation {
            Some(simulation) if stored => simulation.fence(FenceSite::QuietStores),
            _ => self.simulated_fence(),
        }
        lanes()
    }

    /// A quiet for the operations towards these PEs alone.
    ///
    /// # Errors
    ///
    /// The first failure of a lane, or loss of a PE, that they needed.
    pub fn quiet_towards(&self, pes: &[usize]) -> Result<()> {
        // Peers stay marked dirty: mapped stores to other PEs may be in flight in theory. In fact the fence covers
        // all of them, and a later quiet fences once more at worst.
        let stored = !self.is_clean();
        if stored {
            fence(Ordering::SeqCst);
        }
        if self.is_idle() {
            Ok(())
        } else {
            self.quiet_slow(Some(pes), stored)
        }
    }

    /// A fence of this CPU, real or simulated.
    pub fn cpu_fence(&self, site: FenceSite) {
        fence(site.order());
        if let Some(simulation) = &self.engine.simulation {
            simulation.fence(site);
        }
    }

    /// Whether the order of this site is kept: a mutation check leaves one out.
    #[must_use]
    pub fn inserts(&self, site: FenceSite) -> bool {
        self.engine.inserts(site)
    }

    /// Gives its turn to others, where a transport schedules this PE's thread.
    pub fn yield_point(&self) {
        self.engine.yield_point();
    }
}
