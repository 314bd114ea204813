//! The collective calls of all PEs: those of the [team](World::team) that has them all.

use bytemuck::Pod;

use super::Reducible;
use crate::{Fold, Result, Sym, World};

impl World {
    /// [`Team::broadcast`](crate::Team::broadcast) of the [team of all PEs](Self::team).
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.team().broadcast(dst, src, root)
    }

    /// [`Team::broadcast_to_others`](crate::Team::broadcast_to_others) of the [team of all PEs](Self::team).
    pub fn broadcast_to_others<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.team().broadcast_to_others(dst, src, root)
    }

    /// [`Team::fcollect`](crate::Team::fcollect) of the [team of all PEs](Self::team).
    pub fn fcollect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.team().fcollect(dst, src)
    }

    /// [`Team::collect`](crate::Team::collect) of the [team of all PEs](Self::team).
    pub fn collect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        self.team().collect(dst, src)
    }

    /// [`Team::alltoall`](crate::Team::alltoall) of the [team of all PEs](Self::team).
    pub fn alltoall<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.team().alltoall(dst, src)
    }

    /// [`Team::alltoalls`](crate::Team::alltoalls) of the [team of all PEs](Self::team).
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
    pub fn reduce<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().reduce(dst, src, fold)
    }

    /// [`reduce`](Self::reduce) with [`Fold::Sum`].
    pub fn sum_reduce<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.reduce(dst, src, Fold::Sum)
    }

    /// [`Team::reduce_scatter`](crate::Team::reduce_scatter) of the [team of all PEs](Self::team).
    pub fn reduce_scatter<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().reduce_scatter(dst, src, fold)
    }

    /// [`Team::inscan`](crate::Team::inscan) of the [team of all PEs](Self::team).
    pub fn inscan<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().inscan(dst, src, fold)
    }

    /// [`Team::exscan`](crate::Team::exscan) of the [team of all PEs](Self::team).
    pub fn exscan<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.team().exscan(dst, src, fold)
    }
}
