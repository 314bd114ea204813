//! Fence, quiet and visibility, derived from the operations in flight and the guarantees of the routes.
//!
//! Mapped peers need processor fences alone. For the others `crate::lane` derives flushes from
//! each transport's [`Guarantees`](oxshmem_transport::Guarantees), by sets of operation kinds ([`OpSet`]).

use std::sync::atomic::{Ordering, fence};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::place::placed;
use crate::visibility::Visibility;

impl Context<'_> {
    /// Orders this PE's earlier puts, puts-with-signal, atomics and stores to symmetric memory
    /// before its later ones, for each target PE separately (M17). Promises no completion, and does
    /// not order nonblocking operations in the relaxed model (M18).
    ///
    /// In the relaxed model it also orders blocking gets and fetching atomics, towards all PEs
    /// (M21).
    ///
    /// ```
    /// use oxshmem::{Cmp, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let data = world.alloc::<u64>(8)?;
    ///         let flag = world.alloc_zeroed::<u64>(1)?;
    ///         if world.my_pe() == 0 {
    ///             world.put(data, &[7; 8], 1)?;
    ///             world.fence()?; // the data comes before the flag
    ///             world.p(flag, 1, 1)?;
    ///         } else {
    ///             world.wait_until(flag, Cmp::Eq, 1)?;
    ///             assert_eq!(world.g(data.at(7)?, 1)?, 7);
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_fence", "nvshmem_fence"))]
    #[inline]
    #[track_caller]
    pub fn fence(&self) -> Result<()> {
        // Release orders mapped stores; Acquire orders mapped loads for M21. On x86 neither costs
        // an instruction.
        fence(Ordering::AcqRel);
        if self.worker.is_idle() {
            Ok(())
        } else {
            self.fence_slow()
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn fence_slow(&self) -> Result<()> {
        placed(|| Ok(self.worker.in_call("fence").fence_slow()?))
    }

    /// Completes all of this PE's operations, nonblocking ones included: on return they have been
    /// performed and are visible as [`visibility`](Self::visibility) says (M19, M24, M25).
    ///
    /// It is free where nothing was issued since the last one, this thread has not written its PE's own memory,
    /// and no raw pointer into symmetric memory was given out; else it is a full fence, and on lanes a wait for
    /// all completions (M27). After nonblocking gets and fetches from a PE that was lost
    /// it fails with [`PeerLost`](Error::PeerLost), once, though the loss is acknowledged.
    ///
    /// ```
    /// use oxshmem::{Cmp, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let data = world.alloc::<u64>(1)?;
    ///         let done = world.alloc_zeroed::<u64>(1)?;
    ///         if world.my_pe() == 0 {
    ///             world.p(data, 7, 1)?; // to PE 1
    ///             world.quiet()?; // and now it is there
    ///             world.p(done, 1, 2)?; // notifies PE 2
    ///         }
    ///         if world.my_pe() == 2 {
    ///             world.wait_until(done, Cmp::Eq, 1)?;
    ///             assert_eq!(world.g(data, 1)?, 7);
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_quiet", "nvshmem_quiet", "MPI_Win_flush_all"))]
    #[inline(always)]
    #[track_caller]
    pub fn quiet(&self) -> Result<()> {
        if self.worker.try_quiet() {
            return Ok(());
        }
        self.quiet_busy()
    }

    /// A quiet with operations in flight on lanes.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn quiet_busy(&self) -> Result<()> {
        let stored = self.worker.complete_stores();
        self.in_call("quiet").quiet_slow(None, stored)
    }

    /// Completes what kernels had asked of the host (G4).
    #[inline]
    pub(crate) fn quiet_kernels(&self) {
        #[cfg(feature = "cuda")]
        if let Some(streams) = &self.pe.gpu_streams
            && let Some(ring) = streams.ring()
        {
            ring.quiet();
        }
    }

    /// The part of a quiet beyond this CPU's fence. `stored` says whether that was a full one.
    #[cold]
    #[track_caller]
    pub(crate) fn quiet_slow(&self, only: Option<&[usize]>, stored: bool) -> Result<()> {
        // A world with GPU memory always comes here.
        self.quiet_kernels();
        placed(|| Ok(self.worker.quiet_slow(only, stored)?))
    }

    /// [`quiet`](Self::quiet) for the operations towards some PEs only (OpenSHMEM 1.6). An empty
    /// list returns at once.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let data = world.alloc::<u64>(1)?;
    ///         if world.my_pe() == 0 {
    ///             world.p(data, 7, 1)?;
    ///             world.p(data, 8, 2)?;
    ///             world.pe_quiet(&[1])?; // PE 1 has its number; PE 2 perhaps not yet
    ///             assert_eq!(world.g(data, 1)?, 7);
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_pe_quiet", "MPI_Win_flush"))]
    #[track_caller]
    pub fn pe_quiet(&self, pes: &[usize]) -> Result<()> {
        placed(|| self.pe_quiet_inner(pes))
    }

    fn pe_quiet_inner(&self, pes: &[usize]) -> Result<()> {
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
        // Without operations on lanes their numbers do not matter.
        let lanes = if self.worker.is_idle() { &[] } else { pes };
        let all: Vec<usize> = lanes.iter().filter_map(|&pe| self.in_world(pe)).collect();
        Ok(self.worker.in_call("pe_quiet").quiet_towards(&all)?)
    }

    /// The visibility that this job has (M26): global where every PE can load and store every PE's
    /// memory (M24), else local (M25). The same on every PE.
    #[must_use]
    pub fn visibility(&self) -> Visibility {
        self.pe.visibility
    }
}

#[cfg(test)]
mod tests {
    use crate::context::options::ContextOptions;
    use crate::testing::spmd;

    #[test]
    fn m19_own_stores_concern_every_context_but_one_made_without_stores() {
        spmd(1, |world| {
            let x = world.alloc_zeroed::<u64>(2)?;
            let [any, without, other] = [
                ContextOptions::NONE,
                ContextOptions::NOSTORE,
                ContextOptions::SERIALIZED,
            ]
            .map(|options| world.create_context(options));
            let (any, without, other) = (any?, without?, other?);
            any.quiet()?;
            assert!(any.worker.is_clean() && without.worker.is_clean() && other.worker.is_clean());
            world.write(x, &[1, 2])?;
            assert!(!any.worker.is_clean() && without.worker.is_clean());
            // Completed by whichever quiet; and only by one of this thread.
            std::thread::scope(|threads| {
                let elsewhere = threads.spawn(move || {
                    assert!(other.worker.is_clean());
                    other.destroy()
                });
                elsewhere.join().unwrap()
            })?;
            assert!(!any.worker.is_clean());
            any.quiet()?;
            assert!(any.worker.is_clean());
            // A context completes its own operations, whatever it was made for.
            without.write(x.at(0)?, &[1])?;
            assert!(!without.worker.is_clean() && !any.worker.is_clean());
            without.quiet()?;
            assert!(without.worker.is_clean() && any.worker.is_clean());
            // A raw pointer may be used unseen.
            assert!(world.ptr(x, 0).is_some());
            any.quiet()?;
            assert!(!any.worker.is_clean() && without.worker.is_clean());
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn m19_where_a_program_knows_addresses_every_quiet_is_a_full_fence() {
        spmd(1, |world| {
            world.quiet()?;
            assert!(world.worker.is_clean());
            let _ = crate::bindings::addresses(world);
            world.quiet()?;
            assert!(!world.worker.is_clean());
            Ok(())
        })
        .unwrap();
    }
}
