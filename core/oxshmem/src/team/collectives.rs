//! The collective calls of a team: their documentation, and the checks of their arguments.

use bytemuck::Pod;
use oxshmem_transport::Fold;

use super::Team;
use crate::collectives::algorithm::alltoalls::Strided;
use crate::collectives::algorithm::broadcast::Broadcast;
use crate::collectives::algorithm::reduce::{FoldBuffers, Scan};
use crate::collectives::args::{check_apart, describe, memory_suffix};
use crate::collectives::call::{CallInfo, CollectiveCall};
use crate::collectives::fold::{FoldOps, Reducible};
use crate::collectives::signature::CallSignature;
use crate::collectives::transfer::Transfer;
use crate::error::{Error, Result};
use crate::place::placed;
use crate::sym::Sym;

const BROADCAST: &str = "broadcast";

impl Team<'_> {
    /// Waits until all members are here; their earlier stores are visible, their operations on lanes
    /// need not be complete.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let (row, column) = world.team().split_2d(2)?; // PEs 0 1, and below them 2 3
    ///         row.sync()?; // with one other
    ///         column.sync()?; // with another
    ///         row.destroy()?;
    ///         column.destroy()
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_team_sync", "shmem_sync", "nvshmem_team_sync"))]
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        placed(|| {
            const CALL: &str = "team sync";
            self.begin(CALL, const { CallSignature::of(CALL) }, &|| {
                "team sync()".into()
            })
            .arrive(Ok(()))
        })
    }

    /// Completes this PE's operations ([`quiet`](crate::Context::quiet)), then waits until all members are here.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let count = world.alloc_zeroed::<u64>(1)?;
    ///         if let Some(first) = world.team().split_strided(0, 1, 2)? {
    ///             world.inc(count, 3)?;
    ///             first.barrier()?; // PEs 0 and 1 have counted on PE 3
    ///             assert_eq!(world.g(count, 3)?, 2);
    ///             first.destroy()?;
    ///         }
    ///         world.barrier_all()
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("nvshmem_barrier", "shmem_barrier", "MPI_Barrier"))]
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        placed(|| {
            const CALL: &str = "team barrier";
            let quieted = self.context.quiet();
            self.begin(CALL, const { CallSignature::of(CALL) }, &|| {
                "team barrier()".into()
            })
            .arrive(quieted)?;
            self.context.see_gpu_data()
        })
    }

    /// Copies `src` of PE `root` of this team to `dst` of every member, the root included. Both have the
    /// same length; they are the same object or do not overlap.
    ///
    /// On return `dst` is updated here and `src` may be reused; other members may still be under way. Where all
    /// members load each other's memory and the data are few, a root waits for the others in one call of
    /// some tens only: nothing follows from its return about where they are, and where arguments differ (M36)
    /// a member may get the error from its next call of the team instead. If that does not come within 5 s, the members that
    /// know return, and the team's collective calls are over. Roots that differ so that each member waits for another are
    /// found after 5 s.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (from, to) = (world.alloc::<u64>(2)?, world.alloc::<u64>(2)?);
    ///         if world.my_pe() == 1 {
    ///             world.write(from, &[5, 6])?;
    ///         }
    ///         world.team().broadcast(to, from, 1)?;
    ///         assert_eq!(world.g(to.at(1)?, world.my_pe())?, 6);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As of every collective call: arguments that make no sense fail on every member, those that differ
    /// are told to all (M36), and a member that is lost or gives up ends it for all. After an error that only this PE may
    /// have, the loss of one or a time limit, the root may still be writing `dst`.
    #[doc(alias("shmem_broadcastmem", "shmem_broadcast", "nvshmem_broadcast"))]
    #[doc(alias("nvshmem_broadcastmem", "MPI_Bcast"))]
    #[track_caller]
    pub fn broadcast<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.broadcast_placed(dst, src, root, true)
    }

    /// [`broadcast`](Self::broadcast) that leaves the root's own `dst` as it is: that of OpenSHMEM's active sets.
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias = "shmem_broadcast64")]
    #[track_caller]
    pub fn broadcast_to_others<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
        self.broadcast_placed(dst, src, root, false)
    }

    #[inline]
    #[track_caller]
    fn broadcast_placed<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        root: usize,
        to_root: bool,
    ) -> Result<()> {
        placed(|| self.broadcast_checked(dst, src, root, to_root))
    }

    #[inline]
    fn broadcast_checked<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        root: usize,
        to_root: bool,
    ) -> Result<()> {
        let mut valid = self.check_pair(BROADCAST, dst, src);
        if root >= self.n_pes() {
            valid = valid.and(Err(Error::NoSuchPe {
                call: BROADCAST,
                pe: root,
                size: self.n_pes(),
            }));
        }
        let (dst, src) = (dst.to_bytes(), src.to_bytes());
        let args = Broadcast {
            dst,
            src,
            root,
            to_root,
        };
        self.broadcast_bytes(args, valid)
    }

    /// One function for all types: the cost of few bytes is the call's own work.
    fn broadcast_bytes(&self, args: Broadcast, valid: Result<()>) -> Result<()> {
        let Broadcast { dst, src, root, .. } = args;
        let words = || {
            let (dst, src) = (describe(dst), describe(src));
            format!("broadcast({dst}, {src}, root {root})")
        };
        let signature = const { CallSignature::of(BROADCAST) }
            .and(root as u64)
            .and(args.to_root.into())
            .and_objects([dst, src]);
        self.begin(BROADCAST, signature, &words)
            .broadcast(args, valid)
    }

    /// Gives the `i`-th of as many equal blocks of `src` as there are members to member `i`, where it is
    /// the block of `dst` with this PE's number. Both have the same length, and do not overlap. `dst` is written from this
    /// PE's call on, others may not have begun theirs; where the call fails, some of it may have been.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (me, n) = (world.my_pe() as u64, world.n_pes());
    ///         let (from, to) = (world.alloc::<u64>(n)?, world.alloc::<u64>(n)?);
    ///         world.write(from, &[10 * me, 10 * me + 1, 10 * me + 2])?; // one for each PE
    ///         world.team().alltoall(to, from)?;
    ///         let mut seen = [0; 3];
    ///         world.read(&mut seen, to)?;
    ///         assert_eq!(seen, [me, 10 + me, 20 + me]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias(
        "shmem_alltoallmem",
        "shmem_alltoall",
        "nvshmem_alltoall",
        "nvshmem_alltoallmem"
    ))]
    #[doc(alias = "MPI_Alltoall")]
    #[track_caller]
    pub fn alltoall<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        placed(|| self.alltoall_inner(dst, src))
    }

    fn alltoall_inner<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        const CALL: &str = "alltoall";
        let words = || format!("alltoall({}, {})", describe(dst), describe(src));
        let signature = const { CallSignature::of(CALL) }.and_objects([dst, src]);
        let valid = self
            .check_apart(CALL, dst, src)
            .and_then(|()| self.check_blocks(CALL, src, src.len() / self.n_pes()))
            .and_then(|()| self.context.check_pair(CALL, dst, src));
        self.begin(CALL, signature, &words)
            .alltoall(dst, src, valid)
    }

    /// As [`alltoall`](Self::alltoall) of blocks of `count` elements that lie apart: element `i` of the
    /// block for or of member `m` is element `(m * count + i) * stride` of the object, with `dst_stride` in
    /// `dst` and `src_stride` in `src`. Strides are in elements and at least 1. What lies between them in
    /// `dst` stays as it is.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let me = world.my_pe() as u64;
    ///         let (from, to) = (world.alloc::<u64>(4)?, world.alloc::<u64>(2)?);
    ///         world.write(from, &[10 * me, 0, 10 * me + 1, 0])?; // every second one
    ///         world.team().alltoalls(to, from, 1, 2, 1)?;
    ///         let mut seen = [0; 2];
    ///         world.read(&mut seen, to)?;
    ///         assert_eq!(seen, [me, 10 + me]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast); objects that are shorter than that.
    #[doc(alias("shmem_alltoallsmem", "shmem_alltoalls"))]
    #[track_caller]
    pub fn alltoalls<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
    ) -> Result<()> {
        let strided = |object, stride| Strided { object, stride };
        let (dst, src) = (strided(dst, dst_stride), strided(src, src_stride));
        placed(|| self.alltoalls_inner(dst, src, count))
    }

    fn alltoalls_inner<T: Pod>(
        &self,
        dst: Strided<T>,
        src: Strided<T>,
        count: usize,
    ) -> Result<()> {
        const CALL: &str = "alltoalls";
        let words = || {
            let objects = [dst, src].map(|of| describe(of.object)).join(", ");
            let (dst_stride, src_stride) = (dst.stride, src.stride);
            format!("alltoalls({objects}, strides {dst_stride} and {src_stride}, {count} elements)")
        };
        let signature = const { CallSignature::of(CALL) }
            .and_objects([dst.object, src.object])
            .and(dst.stride as u64)
            .and(src.stride as u64)
            .and(size_of::<T>() as u64)
            .and(count as u64);
        let members = self.n_pes();
        let valid = self
            .check_apart(CALL, dst.object, src.object)
            .and_then(|()| dst.check(CALL, count, members))
            .and_then(|()| src.check(CALL, count, members));
        self.begin(CALL, signature, &words)
            .alltoalls(dst, src, count, valid)
    }

    /// Puts every member's `src`, one behind the other in the team's order, into `dst` of every member,
    /// which is as many times as long. They do not overlap. `dst` is written as that of an
    /// [`alltoall`](Self::alltoall).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let me = world.my_pe() as u64;
    ///         let (mine, all) = (world.alloc::<u64>(2)?, world.alloc::<u64>(6)?);
    ///         world.write(mine, &[me, 10 + me])?;
    ///         world.team().fcollect(all, mine)?;
    ///         let mut seen = [0; 6];
    ///         world.read(&mut seen, all)?;
    ///         assert_eq!(seen, [0, 10, 1, 11, 2, 12]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias(
        "shmem_fcollectmem",
        "shmem_fcollect",
        "nvshmem_fcollect",
        "nvshmem_fcollectmem"
    ))]
    #[doc(alias = "MPI_Allgather")]
    #[track_caller]
    pub fn fcollect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        placed(|| self.fcollect_inner(dst, src))
    }

    fn fcollect_inner<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        const CALL: &str = "fcollect";
        let words = || format!("fcollect({}, {})", describe(dst), describe(src));
        let signature = const { CallSignature::of(CALL) }.and_objects([dst, src]);
        let valid = self
            .check_apart(CALL, dst, src)
            .and_then(|()| self.check_blocks(CALL, dst, src.len()));
        self.begin(CALL, signature, &words)
            .fcollect(dst, src, valid)
    }

    /// As [`fcollect`](Self::fcollect) of objects whose lengths may differ, 0 included, and which may be at
    /// different places. Gives how many elements of `dst`, which has room for them, there are now.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let me = world.my_pe();
    ///         let (mine, all) = (world.alloc::<u64>(2)?, world.alloc::<u64>(6)?);
    ///         world.write(mine, &[me as u64; 2])?;
    ///         // PE 0 gives nothing, PE 1 one number, PE 2 two.
    ///         let n = world.team().collect(all, mine.range(..me)?)?;
    ///         let mut seen = vec![0; n];
    ///         world.read(&mut seen, all)?;
    ///         assert_eq!(seen, [1, 2, 2]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast); where there are more elements than `dst` has room for.
    #[doc(alias("shmem_collectmem", "shmem_collect", "MPI_Allgatherv"))]
    #[track_caller]
    pub fn collect<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        placed(|| self.collect_checked(dst, src, self.check_apart("collect", dst, src)))
    }

    /// [`collect`](Self::collect) into the beginning of `dst`, of which `src` may be a later part: only what comes has
    /// to lie apart from it. For callers who know where their destination begins and not where it ends.
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect).
    #[track_caller]
    pub fn collect_into_rest<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        placed(|| {
            let valid = self
                .context
                .check_live("collect", dst)
                .and_then(|()| self.context.check_live("collect", src));
            self.collect_checked(dst, src, valid)
        })
    }

    fn collect_checked<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        valid: Result<()>,
    ) -> Result<usize> {
        const CALL: &str = "collect";
        // The sources may differ, but for their kind of memory; the destinations may not.
        let words = || {
            let (dst, len, on) = (describe(dst), src.len(), memory_suffix(src));
            format!("collect({dst}, {len} elements{on})")
        };
        let signature = const { CallSignature::of(CALL) }
            .and_objects([dst])
            .and(size_of::<T>() as u64)
            .and(src.is_on_gpu().into());
        self.begin(CALL, signature, &words).collect(dst, src, valid)
    }

    /// Folds `src` of all members, element by element, into `dst` of every member. Both have the same
    /// length; they are the same object or do not overlap.
    ///
    /// Every member gets the same bits, floats included: elements are folded in the team's order. Where the
    /// team spans hosts, some of them with several members, and both objects are in host memory, what each
    /// host's members have is folded in the team's order, and then what comes of that, in the order of the
    /// hosts; of 32 hosts or more, and few bytes, by rows of hosts first, so that teams of other sizes, and longer
    /// objects, may round otherwise.
    ///
    /// ```
    /// use oxshmem::{Complex, Fold, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let x = world.alloc::<Complex<f64>>(1)?;
    ///         world.write(x, &[Complex::new(0.0, 1.0)])?;
    ///         world.team().reduce(x, x, Fold::Prod)?;
    ///         assert_eq!(world.g(x, world.my_pe())?, Complex::new(0.0, -1.0));
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`broadcast`](Self::broadcast); where the type has no such fold.
    #[doc(alias(
        "shmem_int_sum_reduce",
        "shmem_and_reduce",
        "shmem_or_reduce",
        "shmem_xor_reduce"
    ))]
    #[doc(alias(
        "shmem_max_reduce",
        "shmem_min_reduce",
        "shmem_sum_reduce",
        "shmem_prod_reduce"
    ))]
    #[doc(alias(
        "shmem_and_to_all",
        "shmem_or_to_all",
        "shmem_xor_to_all",
        "shmem_max_to_all"
    ))]
    #[doc(alias(
        "shmem_min_to_all",
        "shmem_sum_to_all",
        "shmem_prod_to_all",
        "nvshmem_and_reduce"
    ))]
    #[doc(alias("nvshmem_or_reduce", "nvshmem_xor_reduce", "nvshmem_max_reduce"))]
    #[doc(alias("nvshmem_min_reduce", "nvshmem_sum_reduce", "nvshmem_prod_reduce"))]
    #[doc(alias = "MPI_Allreduce")]
    #[track_caller]
    pub fn reduce<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.reduce_placed("reduce", dst, src, fold, Scan::All)
    }

    /// Folds `src` of this PE and of the members before it, element by element, into `dst`: an inclusive
    /// scan. Otherwise as [`reduce`](Self::reduce).
    ///
    /// ```
    /// use oxshmem::{Fold, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (x, sums) = (world.alloc::<u64>(1)?, world.alloc::<u64>(1)?);
    ///         world.write(x, &[world.my_pe() as u64 + 1])?;
    ///         world.team().inscan(sums, x, Fold::Sum)?;
    ///         assert_eq!(world.g(sums, world.my_pe())?, [1, 3, 6][world.my_pe()]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`reduce`](Self::reduce).
    #[doc(alias("shmem_int_sum_inscan", "shmem_sum_inscan", "MPI_Scan"))]
    #[track_caller]
    pub fn inscan<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.reduce_placed("inscan", dst, src, fold, Scan::UpToOwn)
    }

    /// Folds `src` of the members before this PE, element by element, into `dst`: an exclusive scan. The
    /// first member gets what a fold of nothing is: 0 of a sum, 1 of a product, the greatest value of a
    /// minimum. Otherwise as [`reduce`](Self::reduce).
    ///
    /// ```
    /// use oxshmem::{Fold, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (x, sums) = (world.alloc::<u64>(1)?, world.alloc::<u64>(1)?);
    ///         world.write(x, &[world.my_pe() as u64 + 1])?;
    ///         world.team().exscan(sums, x, Fold::Sum)?;
    ///         assert_eq!(world.g(sums, world.my_pe())?, [0, 1, 3][world.my_pe()]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`reduce`](Self::reduce).
    #[doc(alias("shmem_int_sum_exscan", "shmem_sum_exscan", "MPI_Exscan"))]
    #[track_caller]
    pub fn exscan<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        self.reduce_placed("exscan", dst, src, fold, Scan::BeforeOwn)
    }

    #[track_caller]
    fn reduce_placed<T: Reducible>(
        &self,
        name: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        scan: Scan,
    ) -> Result<()> {
        placed(|| self.reduce_checked(name, dst, src, fold, scan))
    }

    fn reduce_checked<T: Reducible>(
        &self,
        name: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        scan: Scan,
    ) -> Result<()> {
        let words = || fold_words(name, dst, src, fold);
        let signature = fold_signature::<T>(name, fold).and_objects([dst, src]);
        let transfer = Transfer::new(self.context, name);
        let buffers = FoldBuffers::new(transfer, fold, [dst, src], self.state().mapped);
        let ready = buffers.and_then(|buffers| self.check_pair(name, dst, src).map(|()| buffers));
        self.begin(name, signature, &words)
            .reduce(dst, src, scan, ready)
    }

    /// Folds the block of `src` with each member's number of all members, element by element, into `dst` of
    /// that member. `src` is as many times as long as `dst`, and they do not overlap; or, in place, `dst` is a
    /// block of `src`: the first, as in MPI, or that with this member's number, as in NCCL. Either will do on
    /// each member. The other blocks stay as they were.
    ///
    /// ```
    /// use oxshmem::{Fold, Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let x = world.alloc::<u64>(3)?;
    ///         world.write(x, &[1, 10, 100])?;
    ///         let mine = x.at(world.my_pe())?;
    ///         world.team().reduce_scatter(mine, x, Fold::Sum)?;
    ///         assert_eq!(world.g(mine, world.my_pe())?, [3, 30, 300][world.my_pe()]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`reduce`](Self::reduce).
    #[doc(alias("nvshmem_int_sum_reducescatter", "nvshmem_sum_reducescatter"))]
    #[doc(alias = "MPI_Reduce_scatter_block")]
    #[track_caller]
    pub fn reduce_scatter<T: Reducible>(&self, dst: Sym<T>, src: Sym<T>, fold: Fold) -> Result<()> {
        placed(|| self.reduce_scatter_inner(dst, src, fold))
    }

    fn reduce_scatter_inner<T: Reducible>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
    ) -> Result<()> {
        const CALL: &str = "reduce_scatter";
        let (len, me) = (dst.len(), self.my_pe());
        let block = |member: usize| {
            let start = |member: usize| len.saturating_mul(member);
            src.range(start(member)..start(member + 1))
        };
        // In place. On the first member both are one block, so that they count as the same argument.
        let in_place = match (block(0), block(me)) {
            (Ok(first), Ok(own)) if dst.is_where(first) || dst.is_where(own) => Some(first),
            _ => None,
        };
        let words = || fold_words(CALL, dst, src, fold);
        let objects = [in_place.unwrap_or(dst), src];
        let signature = fold_signature::<T>(CALL, fold).and_objects(objects);
        let transfer = Transfer::new(self.context, CALL);
        let buffers = FoldBuffers::new(transfer, fold, [dst, src], self.state().mapped);
        let ready = buffers.and_then(|buffers| {
            self.context.check_live(CALL, dst)?;
            self.context.check_live(CALL, src)?;
            self.check_blocks(CALL, src, len)?;
            if in_place.is_none() {
                check_apart(CALL, dst, src)?;
            }
            Ok(buffers)
        });
        self.begin(CALL, signature, &words)
            .reduce_scatter(dst, src, in_place.is_some(), ready)
    }

    /// Takes the place of a collective call in which this PE cannot do its part for a reason that its caller alone
    /// knows, such as an address in another language. The call fails on every member as one in which they do not agree
    /// (M36), and `why` is what the others are told; of a [`broadcast`](Self::broadcast) some hear by their next call.
    ///
    /// # Errors
    ///
    /// Always.
    #[track_caller]
    pub fn refuse(&self, call: &'static str, why: String) -> Result<()> {
        placed(|| {
            let refused = Err(Error::Argument { call, what: why });
            self.begin(call, const { CallSignature::of("refuse") }, &|| call.into())
                .arrive(refused)
        })
    }

    #[inline]
    fn begin<'t>(
        &'t self,
        name: &'static str,
        signature: CallSignature,
        words: &'t dyn Fn() -> String,
    ) -> CollectiveCall<'t> {
        let info = CallInfo {
            name,
            signature,
            words,
        };
        let span = self.context.traced(name);
        let area = &self.context.shared.sync_area;
        area.begin(self.context, self.state(), info, span)
    }

    /// Checks that two objects are live and of one length, and the same or apart.
    #[inline]
    fn check_pair<T: Pod>(&self, call: &'static str, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.context.check_live(call, dst)?;
        self.context.check_live(call, src)?;
        self.context.check_pair(call, dst, src)
    }

    /// Checks that two objects are live, and do not overlap.
    fn check_apart<T: Pod>(&self, call: &'static str, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.context.check_live(call, dst)?;
        self.context.check_live(call, src)?;
        check_apart(call, dst, src)
    }

    /// Checks that one object has `each` elements for every member.
    pub(crate) fn check_blocks<T: Pod>(
        &self,
        call: &'static str,
        of: Sym<T>,
        each: usize,
    ) -> Result<()> {
        if each.checked_mul(self.n_pes()) == Some(of.len()) {
            return Ok(());
        }
        Err(Error::Argument {
            call,
            what: format!(
                "an object of {} elements cannot be {each} for each of {} PEs",
                of.len(),
                self.n_pes()
            ),
        })
    }
}

/// The signature of a fold of one type of values: objects of another may be as long.
fn fold_signature<T: Reducible>(call: &'static str, fold: Fold) -> CallSignature {
    let of = CallSignature::of(<T as FoldOps>::NAME).value();
    CallSignature::of(call).and(fold as u64).and(of)
}

fn fold_words<T: Reducible>(call: &'static str, dst: Sym<T>, src: Sym<T>, fold: Fold) -> String {
    let (dst, src) = (describe(dst), describe(src));
    let (fold, of) = (fold.name(), <T as FoldOps>::NAME);
    format!("{call}({dst}, {src}, {fold} of {of})")
}
