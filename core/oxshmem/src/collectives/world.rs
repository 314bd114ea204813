//! The collective calls of all PEs: those of the [team](World::team) that has them all.

use bytemuck::Pod;

use super::Reducible;
use crate::{Fold, Result, Sym, World};

impl World {
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
