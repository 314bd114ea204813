//! Fence, quiet and visibility, derived from what is outstanding and what the routes guarantee.
//!
//! Mapped peers need processor fences alone. For the others [`crate::wire`] derives flushes from
//! each transport's [`Guarantees`](oxshmem_transport::Guarantees), by [`classes`] of operations.

mod classes;
mod inserted;

use std::sync::atomic::{Ordering, fence};

pub(crate) use self::classes::{Class, Classes, keeps};
pub use self::inserted::Inserted;
use crate::shared::Shared;
use crate::{Context, Error, Result};

/// How far an update reaches when `barrier`, `quiet`, `wait_until*` or `test*` return (M26).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// What was completed is visible to every PE: all routes of the job are load/store mapped (M24).
    Global,
    /// Only updates to the calling PE's own objects are promised: some route crosses a network
    /// (M25).
    Local,
}

impl Context<'_> {
    /// Whether no mapped store can be outstanding: none was noted, and no raw pointer was handed
    /// out through which one could be made unseen.
    #[inline(always)]
    fn is_clean(&self) -> bool {
        self.peers.is_clean() && !self.sticky.load(Ordering::Relaxed)
    }

    /// Orders this PE's earlier puts, puts-with-signal, atomics and stores to symmetric memory
    /// before its later ones, for each target PE separately (M17). Promises no completion, and does
    /// not order nonblocking operations in the relaxed model (M18).
    ///
    /// In the relaxed model it also orders blocking gets and fetching atomics, towards all PEs
    /// (M21).
    #[inline]
    pub fn fence(&self) -> Result<()> {
        // Release orders mapped stores; Acquire orders mapped loads for M21. On x86 neither costs
        // an instruction.
        fence(Ordering::AcqRel);
        if self.is_idle() {
            Ok(())
        } else {
            self.fence_slow()
        }
    }

    #[cold]
    fn fence_slow(&self) -> Result<()> {
        let _traced = self.traced_order("fence");
        self.point();
        if let Some(simulation) = &self.shared.simulation {
            simulation.fence(Inserted::FenceStores);
            // In the ordered model reads are ordered already (M20).
            if !self.ordered {
                simulation.fence(Inserted::FenceLoads);
            }
        }
        self.wire_fence("fence")
    }

    /// Completes all of this PE's operations, nonblocking ones included: on return they have been
    /// performed and are visible as [`visibility`](Self::visibility) says (M19, M24, M25).
    ///
    /// Free where nothing was issued since the last one and no raw pointer into symmetric memory
    /// was handed out; else a full fence, and on lanes a wait for all completions (M27).
    #[inline]
    pub fn quiet(&self) -> Result<()> {
        // As `fence`, for what a clean quiet must still order: earlier loads (M21).
        fence(Ordering::AcqRel);
        if !self.is_clean() {
            fence(Ordering::SeqCst);
            self.peers.take_notes();
        }
        if self.is_idle() {
            Ok(())
        } else {
            self.quiet_slow("quiet", None)
        }
    }

    #[cold]
    pub(crate) fn quiet_slow(&self, call: &'static str, only: Option<&[usize]>) -> Result<()> {
        let _traced = self.traced_order("quiet");
        self.point();
        if let Some(simulation) = &self.shared.simulation {
            simulation.fence(Inserted::QuietStores);
        }
        self.wire_quiet(call, only)
    }

    /// [`quiet`](Self::quiet) for the operations towards some PEs only (OpenSHMEM 1.6). An empty
    /// list returns at once.
    pub fn pe_quiet(&self, pes: &[usize]) -> Result<()> {
        if let Some(&pe) = pes.iter().find(|&&pe| pe >= self.n_pes()) {
            return Err(Error::NoSuchPe {
                call: "pe_quiet",
                pe,
                size: self.n_pes(),
            });
        }
        if pes.is_empty() {
            return Ok(());
        }
        // The note stays: mapped stores to other PEs may be outstanding in theory. The fence covers
        // all of them in fact, and a later quiet fences once more at worst.
        if !self.is_clean() {
            fence(Ordering::SeqCst);
        }
        if self.is_idle() {
            Ok(())
        } else {
            let all: Vec<usize> = pes.iter().filter_map(|&pe| self.in_world(pe)).collect();
            self.quiet_slow("pe_quiet", Some(&all))
        }
    }

    /// Which visibility this job has (M26): global where every PE can load and store every PE's
    /// memory (M24), else local (M25). The same on every PE.
    #[must_use]
    pub fn visibility(&self) -> Visibility {
        self.shared.visibility
    }

    /// A fence of this PE's CPU, real or simulated.
    pub(crate) fn cpu_fence(&self, inserted: Inserted) {
        fence(inserted.order());
        if let Some(simulation) = &self.shared.simulation {
            simulation.fence(inserted);
        }
    }

    pub(crate) fn inserts(&self, inserted: Inserted) -> bool {
        self.shared.inserts(inserted)
    }

    /// A place where a simulated machine may let others run.
    pub(crate) fn point(&self) {
        if let Some(schedule) = &self.shared.schedule {
            schedule.point();
        }
    }
}

impl Shared {
    /// Whether this order is inserted: always, but in a mutation check.
    pub(crate) fn inserts(&self, inserted: Inserted) -> bool {
        self.omitted != Some(inserted)
    }
}
