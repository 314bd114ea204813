//! Teams and collective calls of all PEs, on the world.

use bytemuck::Pod;
use oxshmem_transport::Fold;

use crate::error::Result;
use crate::options::NicAtomics;
use crate::place::placed;
use crate::sym::Sym;
use crate::team::Team;
use crate::world::World;
use oxshmem_collectives::algorithm::world_barrier::barrier;
use oxshmem_collectives::call::CallInfo;
use oxshmem_collectives::error::Error as CollectiveError;
use oxshmem_collectives::fold::Reducible;
use oxshmem_collectives::select::{CollectiveChoice, algorithms_of};
use oxshmem_collectives::signature::CallSignature;

impl World {
    /// The team of all PEs, with their numbers in the world.
    #[doc(alias("SHMEM_TEAM_WORLD", "NVSHMEM_TEAM_WORLD", "MPI_COMM_WORLD"))]
    #[must_use]
    pub fn team(&self) -> Team<'_> {
        Team::permanent(self, &self.pe.sync_area.all)
    }

    /// The team of the PEs whose memory this PE loads and stores, and they its (M8), in ascending order:
    /// those of its host, or this one alone where one of them does not map another, and in checked mode.
    #[doc(alias("SHMEM_TEAM_SHARED", "NVSHMEM_TEAM_SHARED", "NVSHMEMX_TEAM_NODE"))]
    #[doc(alias = "MPI_Comm_split_type")]
    #[must_use]
    pub fn shared_team(&self) -> Team<'_> {
        Team::permanent(self, &self.pe.sync_area.shared)
    }

    /// [`bindings::team_room`](crate::bindings::team_room).
    pub(crate) fn team_room(&self) -> usize {
        self.pe.sync_area.pool.budget().splits().len()
    }

    /// Completes this PE's operations ([`quiet`](crate::Context::quiet)), then waits until all PEs are here
    /// (OpenSHMEM `shmem_barrier_all`).
    ///
    /// Fails on every PE if the PEs call different collectives (M36), and if a PE is lost.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let sum = world.alloc_zeroed::<u64>(1)?;
    ///         world.add(sum, world.my_pe() as u64, 0)?;
    ///         world.barrier_all()?; // all PEs have added
    ///         assert_eq!(world.g(sum, 0)?, 6);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_barrier_all",
        "nvshmem_barrier_all",
        "MPI_Barrier",
        "MPI_Win_fence"
    ))]
    #[inline]
    #[track_caller]
    pub fn barrier_all(&self) -> Result<()> {
        placed(|| {
            const SIGNATURE: CallSignature = CallSignature::of("barrier_all");
            let _span = self.worker.traced("barrier_all");
            self.barrier("barrier_all", SIGNATURE, Ok(()), &|| "barrier_all()".into())?;
            Ok(self.worker.make_gpu_data_visible()?)
        })
    }

    /// Waits until all PEs are here; their earlier stores are visible, their operations on lanes
    /// need not be complete (OpenSHMEM `shmem_sync_all`).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let own = world.alloc::<u64>(1)?;
    ///         world.write(own, &[1])?;
    ///         world.sync_all()?; // all PEs have written
    ///         let right = (world.my_pe() + 1) % world.n_pes();
    ///         assert_eq!(world.g(own, right)?, 1);
    ///         world.sync_all()?; // all have read: it may be written again
    ///         world.write(own, &[2])
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_sync_all", "nvshmem_sync_all"))]
    #[inline]
    #[track_caller]
    pub fn sync_all(&self) -> Result<()> {
        placed(|| {
            const SIGNATURE: CallSignature = CallSignature::of("sync_all");
            let _span = self.worker.traced("sync_all");
            self.arrive("sync_all", SIGNATURE, Ok(()), &|| "sync_all()".into())
        })
    }

    /// Quiet and arrival, for calls that contain a barrier. `mine` is the result of this PE's part of the call so far.
    #[inline]
    pub(crate) fn barrier(
        &self,
        name: &'static str,
        signature: CallSignature,
        mine: Result<()>,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        let info = CallInfo {
            name,
            signature,
            words,
        };
        self.quiet_kernels();
        let mine = mine.map_err(CollectiveError::from);
        Ok(barrier(&self.worker, &self.pe.sync_area, info, mine)?)
    }

    /// Arrives in a collective call and waits for all PEs. Stores made before are visible to every PE
    /// that returns from it (mapped) or as far as earlier quiets made them (lanes).
    ///
    /// `mine` is the result of this PE's part of the call so far; the call fails on every PE if it failed
    /// on one. `words` describes the call and its arguments if the PEs turn out to disagree.
    #[inline]
    pub(crate) fn arrive(
        &self,
        name: &'static str,
        signature: CallSignature,
        mine: Result<()>,
        words: &dyn Fn() -> String,
    ) -> Result<()> {
        let info = CallInfo {
            name,
            signature,
            words,
        };
        let area = &self.pe.sync_area;
        let mut call = area.begin(&self.worker, &area.all, info, None);
        Ok(call.arrive(mine.map_err(CollectiveError::from))?)
    }

    /// Arrives in finalize, after which PEs leave.
    pub(crate) fn arrive_in_finalize(&self, mine: Result<()>) -> Result<()> {
        let info = CallInfo {
            name: "finalize",
            signature: const { CallSignature::of("finalize") },
            words: &|| "finalize()".into(),
        };
        let area = &self.pe.sync_area;
        let mut call = area.begin(&self.worker, &area.all, info, None).finalizing();
        Ok(call.arrive(mine.map_err(CollectiveError::from))?)
    }

    /// [`bindings::all_say`](crate::bindings::all_say).
    pub(crate) fn all_say(&self, yes: bool) -> Result<bool> {
        const CALL: &str = "all_say";
        let info = CallInfo {
            name: CALL,
            signature: const { CallSignature::of(CALL) },
            words: &|| "all_say()".into(),
        };
        let area = &self.pe.sync_area;
        let mut call = area.begin(&self.worker, &area.all, info, None);
        Ok(call.all_say(yes)?)
    }

    /// The algorithms of collective calls of all PEs, by kind.
    #[must_use]
    pub fn collective_choices(&self) -> Vec<CollectiveChoice> {
        let area = &self.pe.sync_area;
        algorithms_of(&area.all, area.choices)
    }

    /// Whether [checked mode](crate::Builder::check) is on.
    pub(crate) fn is_checked(&self) -> bool {
        self.pe.config.check
    }

    /// [`bindings::uses_lanes`](crate::bindings::uses_lanes).
    pub(crate) fn uses_lanes(&self) -> bool {
        let all_mapped = (0..self.n_pes()).all(|pe| self.maps(pe));
        !all_mapped
            || self.worker.engine.fences_always_slow
            || self.inner.nic_atomics != NicAtomics::Never
    }

    /// [`Team::broadcast`](crate::Team::broadcast) of the [team of all PEs](Self::team).
    #[doc(alias(
        "MPI_Bcast",
        "shmem_broadcast",
        "shmem_broadcastmem",
        "nvshmem_broadcast"
    ))]
    #[doc(alias = "nvshmem_broadcastmem")]
    #[track_caller]
    pub fn broadcast<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.team().broadcast(dst, src, root)
    }

    /// [`Team::broadcast_to_others`](crate::Team::broadcast_to_others) of the [team of all PEs](Self::team).
    #[doc(alias = "shmem_broadcast64")]
    #[track_caller]
    pub fn broadcast_to_others<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.team().broadcast_to_others(dst, src, root)
    }

    /// [`Team::fcollect`](crate::Team::fcollect) of the [team of all PEs](Self::team).
    #[doc(alias(
        "shmem_fcollect",
        "shmem_fcollectmem",
        "nvshmem_fcollect",
        "nvshmem_fcollectmem"
    ))]
    #[doc(alias = "MPI_Allgather")]
    #[track_caller]
    pub fn fcollect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.team().fcollect(dst, src)
    }

    /// [`Team::collect`](crate::Team::collect) of the [team of all PEs](Self::team).
    #[doc(alias("shmem_collect", "shmem_collectmem", "MPI_Allgatherv"))]
    #[track_caller]
    pub fn collect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        self.team().collect(dst, src)
    }

    /// [`Team::alltoall`](crate::Team::alltoall) of the [team of all PEs](Self::team).
    #[doc(alias(
        "shmem_alltoall",
        "shmem_alltoallmem",
        "nvshmem_alltoall",
        "nvshmem_alltoallmem"
    ))]
    #[doc(alias = "MPI_Alltoall")]
    #[track_caller]
    pub fn alltoall<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.team().alltoall(dst, src)
    }

    /// [`Team::alltoalls`](crate::Team::alltoalls) of the [team of all PEs](Self::team).
    #[doc(alias("shmem_alltoalls", "shmem_alltoallsmem"))]
    #[track_caller]
    pub fn alltoalls<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
    ) -> Result<()> {
        self.team()
            .alltoalls(dst, src, dst_stride, src_stride, count)
    }

    /// [`Team::reduce`](crate::Team::reduce) of the [team of all PEs](Self::team).
    ///
    /// ```
    /// use oxshmem::{Fold, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (x, greatest) = (world.alloc::<f64>(2)?, world.alloc::<f64>(2)?);
    ///         world.write(x, &[world.my_pe() as f64, 0.5])?;
    ///         world.reduce(greatest, x, Fold::Max)?;
    ///         let mut seen = [0.0; 2];
    ///         world.read(&mut seen, greatest)?;
    ///         assert_eq!(seen, [2.0, 0.5]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_and_reduce",
        "shmem_or_reduce",
        "shmem_xor_reduce",
        "shmem_max_reduce"
    ))]
    #[doc(alias(
        "shmem_min_reduce",
        "shmem_sum_reduce",
        "shmem_prod_reduce",
        "shmem_and_to_all"
    ))]
    #[doc(alias(
        "shmem_or_to_all",
        "shmem_xor_to_all",
        "shmem_max_to_all",
        "shmem_min_to_all"
    ))]
    #[doc(alias("shmem_sum_to_all", "shmem_prod_to_all", "nvshmem_and_reduce"))]
    #[doc(alias("nvshmem_or_reduce", "nvshmem_xor_reduce", "nvshmem_max_reduce"))]
    #[doc(alias("nvshmem_min_reduce", "nvshmem_sum_reduce", "nvshmem_prod_reduce"))]
    #[doc(alias = "MPI_Allreduce")]
    #[track_caller]
    pub fn reduce<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().reduce(dst, src, fold)
    }

    /// [`reduce`](Self::reduce) with [`Fold::Sum`].
    #[doc(alias = "shmem_sum_reduce")]
    #[track_caller]
    pub fn sum_reduce<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.reduce(dst, src, Fold::Sum)
    }

    /// [`Team::reduce_scatter`](crate::Team::reduce_scatter) of the [team of all PEs](Self::team).
    #[doc(alias("nvshmem_sum_reducescatter", "MPI_Reduce_scatter_block"))]
    #[track_caller]
    pub fn reduce_scatter<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().reduce_scatter(dst, src, fold)
    }

    /// [`Team::inscan`](crate::Team::inscan) of the [team of all PEs](Self::team).
    #[doc(alias("shmem_sum_inscan", "MPI_Scan"))]
    #[track_caller]
    pub fn inscan<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().inscan(dst, src, fold)
    }

    /// [`Team::exscan`](crate::Team::exscan) of the [team of all PEs](Self::team).
    #[doc(alias("shmem_sum_exscan", "MPI_Exscan"))]
    #[track_caller]
    pub fn exscan<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().exscan(dst, src, fold)
    }
}
