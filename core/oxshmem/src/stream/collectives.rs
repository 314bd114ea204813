//! Collective calls on streams, over all PEs or over a team.
//!
//! Every member queues the same calls in the same order, on streams of its choice that are ordered among each other. That is not
//! checked (M36), since the host has gone on when they run.

use bytemuck::Pod;
use oxshmem_collectives::args::check_apart;
use oxshmem_cuda::Stream;
use oxshmem_transport::Fold;

use crate::error::{Error, Result};
use crate::stream::members::MembersOnStream;
use crate::sym::Sym;
use crate::team::Team;
use crate::world::World;

mod sealed {
    pub trait Named {
        const NAME: &'static str;
        const INTEGER: bool;
    }
}

/// A type that [`Team::reduce_on_stream`] takes: integers of 8 to 64 bits, `half::f16` and `half::bf16`,
/// `f32` and `f64`.
pub trait GpuNumber: Pod + sealed::Named {}

macro_rules! numbers {
    ($($type:ty: $name:literal, $integer:literal;)*) => {$(
        impl sealed::Named for $type {
            const NAME: &'static str = $name;
            const INTEGER: bool = $integer;
        }
        impl GpuNumber for $type {}
    )*};
}
numbers! {
    i8: "i8", true; i16: "i16", true; i32: "i32", true; i64: "i64", true;
    u8: "u8", true; u16: "u16", true; u32: "u32", true; u64: "u64", true;
    half::f16: "f16", false; half::bf16: "bf16", false; f32: "f32", false; f64: "f64", false;
}

/// Collective calls on streams. Where a PE of the job does not map the GPU memory of another one, and for teams other than those that are
/// always there, they need the [device library](World::device_library), which has to know the team
/// ([`DeviceLibrary::add_team`](crate::DeviceLibrary::add_team)). Synchronize the streams that have a team's calls, and launch its graphs no
/// more, before it is destroyed.
///
/// # Errors
///
/// [`Error::Argument`] if it does not, or for objects that do not fit; [`Error::Unreachable`] where the library is missing;
/// [`Error::PeerLost`] once a member is lost.
impl Team<'_> {
    /// Completes this PE's puts on this stream; later work on it begins when all members' streams have arrived (M24, M25).
    #[doc(alias = "nvshmemx_barrier_on_stream")]
    pub fn barrier_on_stream(&self, stream: &Stream) -> Result<()> {
        MembersOnStream::new("barrier_on_stream", self, stream)?.arrive()
    }

    /// As [`barrier_on_stream`](Self::barrier_on_stream): on a stream there is little that a barrier would have to complete beyond it.
    #[doc(alias("nvshmemx_sync_on_stream", "nvshmemx_team_sync_on_stream"))]
    pub fn sync_on_stream(&self, stream: &Stream) -> Result<()> {
        MembersOnStream::new("sync_on_stream", self, stream)?.arrive()
    }

    /// Copies `src` of member `root` to `dst` of every member, the root included. Both have the same length; they
    /// are the same object or do not overlap.
    #[doc(alias = "nvshmemx_broadcastmem_on_stream")]
    pub fn broadcast_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "broadcast_on_stream";
        let members = MembersOnStream::new(CALL, self, stream)?;
        self.context().check_pair(CALL, dst, src)?;
        // The root's number, too, is checked on every member.
        let Some(root) = self.world_pes().nth(root) else {
            return Err(Error::NoSuchPe {
                call: CALL,
                pe: root,
                size: self.n_pes(),
            });
        };
        let get = members.get(dst, src, root)?;
        members.between_arrivals(|| members.queue(get))
    }

    /// Puts every member's `src`, one behind the other in the team's order, into `dst` of every member, which
    /// is as many times as long. They do not overlap, or `src` is this PE's own part of `dst`.
    #[doc(alias = "nvshmemx_fcollectmem_on_stream")]
    pub fn fcollect_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "fcollect_on_stream";
        let members = MembersOnStream::new(CALL, self, stream)?;
        let each = src.len();
        self.check_blocks(CALL, dst, each)?;
        let mine = self.my_pe() * each;
        let place = dst.range(mine..mine + each)?;
        if place != src {
            check_apart(CALL, dst.into(), src.into())?;
        }
        members.give(|_| Ok((place, src)))
    }

    /// Puts the `i`-th of as many equal parts of `src` as there are members to member `i`, where it is the part of
    /// `dst` with this PE's number in the team. Both have the same length, and do not overlap.
    #[doc(alias = "nvshmemx_alltoallmem_on_stream")]
    pub fn alltoall_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "alltoall_on_stream";
        let members = MembersOnStream::new(CALL, self, stream)?;
        self.context().check_pair(CALL, dst, src)?;
        check_apart(CALL, dst.into(), src.into())?;
        let each = src.len() / self.n_pes();
        self.check_blocks(CALL, dst, each)?;
        let mine = self.my_pe() * each;
        let place = dst.range(mine..mine + each)?;
        members.give(|member| Ok((place, src.range(member * each..(member + 1) * each)?)))
    }

    /// Folds `src` of all members, element by element, into `dst` of every member. Both have the same length; they
    /// are the same object or do not overlap.
    ///
    /// Elements are folded in the team's order, each by one member, so every member gets the same bits. Integers
    /// wrap; `f16` and `bf16` are folded in `f32` and rounded once. `And`, `Or` and `Xor` are of integers, and
    /// refused for other types.
    #[doc(alias = "nvshmemx_int_sum_reduce_on_stream")]
    pub fn reduce_on_stream<T: GpuNumber>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "reduce_on_stream";
        let members = MembersOnStream::new(CALL, self, stream)?;
        self.context().check_pair(CALL, dst, src)?;
        check_fold::<T>(CALL, fold)?;
        // Each member folds one part, and puts it to all: nobody else reads or writes the source of this member's part,
        // so that it may be the destination.
        let (all, me) = (self.n_pes(), self.my_pe());
        let cut = |member: usize| (src.len() as u128 * member as u128 / all as u128) as usize;
        let (start, end) = (cut(me), cut(me + 1));
        let (mine, source) = (dst.range(start..end)?, src.range(start..end)?);
        members.fold_and((fold, T::NAME), mine, source, || {
            members.put_to_all(|_| Ok((mine, mine)))
        })
    }

    /// Folds the members' `src`, element by element, and gives each member its part of the result in `dst`: the `i`-th of as many equal
    /// parts as there are members to member `i`. `src` is as many times as long as `dst`; they do not overlap. Otherwise as
    /// [`reduce_on_stream`](Self::reduce_on_stream).
    #[doc(alias = "nvshmemx_int_sum_reducescatter_on_stream")]
    pub fn reduce_scatter_on_stream<T: GpuNumber>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "reduce_scatter_on_stream";
        let members = MembersOnStream::new(CALL, self, stream)?;
        let each = dst.len();
        self.check_blocks(CALL, src, each)?;
        check_apart(CALL, dst.into(), src.into())?;
        check_fold::<T>(CALL, fold)?;
        let mine = self.my_pe() * each;
        let source = src.range(mine..mine + each)?;
        members.fold_and((fold, T::NAME), dst, source, || Ok(()))
    }
}

/// Refuses bitwise folds of floating-point numbers.
fn check_fold<T: GpuNumber>(call: &'static str, fold: Fold) -> Result<()> {
    match fold.is_bitwise() && !T::INTEGER {
        true => Err(Error::Argument {
            call,
            what: format!("{fold:?} is of integers, and {} is none", T::NAME),
        }),
        false => Ok(()),
    }
}

/// Collective calls of all PEs on streams: those of [`World::team`], described at [`Team`].
impl World {
    /// [`Team::barrier_on_stream`] of all PEs.
    #[doc(alias = "nvshmemx_barrier_all_on_stream")]
    pub fn barrier_all_on_stream(&self, stream: &Stream) -> Result<()> {
        self.team().barrier_on_stream(stream)
    }

    /// [`Team::sync_on_stream`] of all PEs.
    #[doc(alias = "nvshmemx_sync_all_on_stream")]
    pub fn sync_all_on_stream(&self, stream: &Stream) -> Result<()> {
        self.team().sync_on_stream(stream)
    }

    /// [`Team::broadcast_on_stream`] of all PEs.
    pub fn broadcast_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        self.team().broadcast_on_stream(dst, src, root, stream)
    }

    /// [`Team::fcollect_on_stream`] of all PEs.
    pub fn fcollect_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.team().fcollect_on_stream(dst, src, stream)
    }

    /// [`Team::alltoall_on_stream`] of all PEs.
    pub fn alltoall_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.team().alltoall_on_stream(dst, src, stream)
    }

    /// [`Team::reduce_on_stream`] of all PEs.
    pub fn reduce_on_stream<T: GpuNumber>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        stream: &Stream,
    ) -> Result<()> {
        self.team().reduce_on_stream(dst, src, fold, stream)
    }

    /// [`Team::reduce_scatter_on_stream`] of all PEs.
    pub fn reduce_scatter_on_stream<T: GpuNumber>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        stream: &Stream,
    ) -> Result<()> {
        self.team().reduce_scatter_on_stream(dst, src, fold, stream)
    }
}
