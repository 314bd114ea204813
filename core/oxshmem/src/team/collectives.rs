//! The collective calls of a team, but for [reductions](super::reductions): their documentation, and the checks of their
//! arguments.

use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::place::placed;
use crate::sym::Sym;
use crate::team::Team;
use oxshmem_collectives::algorithm::alltoalls::Strided;
use oxshmem_collectives::algorithm::broadcast::Broadcast;
use oxshmem_collectives::args::{check_apart, describe, memory_suffix};
use oxshmem_collectives::call::{CallInfo, CollectiveCall};
use oxshmem_collectives::error::Error as CollectiveError;
use oxshmem_collectives::signature::CallSignature;

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
            let words = || "team sync()".into();
            let signature = const { CallSignature::of(CALL) };
            Ok(self.begin(CALL, signature, &words).arrive(Ok(()))?)
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
            .arrive(quieted.map_err(CollectiveError::from))?;
            Ok(self.context.worker.make_gpu_data_visible()?)
        })
    }

    /// Copies `src` of PE `root` of this team to `dst` of every member, the root included. Both have the
    /// same length; they are the same object or do not overlap.
    ///
    /// On return `dst` is updated here and `src` may be reused; other members may still be in the call. Where all
    /// members load each other's memory and the data are few, a root waits for the others in one call of
    /// some tens only: its return says nothing about the others' progress, and where arguments differ (M36)
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
    /// are told to all (M36), and a member that is lost or aborts ends it for all. After an error that only this PE may
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
            dst: dst.into(),
            src: src.into(),
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
        let valid = valid.map_err(CollectiveError::from);
        Ok(self
            .begin(BROADCAST, signature, &words)
            .broadcast(args, valid)?)
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
        let words = || {
            format!(
                "alltoall({}, {})",
                describe(dst.into()),
                describe(src.into())
            )
        };
        let signature = const { CallSignature::of(CALL) }.and_objects([dst.into(), src.into()]);
        let valid = self
            .check_apart(CALL, dst, src)
            .and_then(|()| self.check_blocks(CALL, src, src.len() / self.n_pes()))
            .and_then(|()| self.context.check_pair(CALL, dst, src))
            .map_err(CollectiveError::from);
        Ok(self
            .begin(CALL, signature, &words)
            .alltoall(dst.into(), src.into(), valid)?)
    }

    /// As [`alltoall`](Self::alltoall) of blocks of `count` elements that lie apart: element `i` of the
    /// block for or of member `m` is element `(m * count + i) * stride` of the object, with `dst_stride` in
    /// `dst` and `src_stride` in `src`. Strides are in elements and at least 1. The elements between them in
    /// `dst` stay as they are.
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
        placed(|| {
            let apart = self.check_apart("alltoalls", dst, src);
            let strided = |object: Sym<T>, stride| Strided {
                object: object.into(),
                stride,
            };
            let (dst, src) = (strided(dst, dst_stride), strided(src, src_stride));
            self.alltoalls_inner(dst, src, count, apart)
        })
    }

    fn alltoalls_inner<T: Pod>(
        &self,
        dst: Strided<T>,
        src: Strided<T>,
        count: usize,
        apart: Result<()>,
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
        let valid = apart
            .map_err(CollectiveError::from)
            .and_then(|()| dst.check(CALL, count, members))
            .and_then(|()| src.check(CALL, count, members));
        Ok(self
            .begin(CALL, signature, &words)
            .alltoalls(dst, src, count, valid)?)
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
        let words = || {
            format!(
                "fcollect({}, {})",
                describe(dst.into()),
                describe(src.into())
            )
        };
        let signature = const { CallSignature::of(CALL) }.and_objects([dst.into(), src.into()]);
        let valid = self
            .check_apart(CALL, dst, src)
            .and_then(|()| self.check_blocks(CALL, dst, src.len()))
            .map_err(CollectiveError::from);
        Ok(self
            .begin(CALL, signature, &words)
            .fcollect(dst.into(), src.into(), valid)?)
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

    /// [`collect`](Self::collect) into the beginning of `dst`, of which `src` may be a later part: only the result has
    /// to lie apart from it. For callers who know the beginning of their destination and not its end.
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect).
    #[track_caller]
    pub fn collect_into_rest<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> Result<usize> {
        placed(|| {
            let valid = self
                .context
                .in_call("collect")
                .check_live(dst)
                .and_then(|()| self.context.in_call("collect").check_live(src));
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
            let (dst, len, on) = (describe(dst.into()), src.len(), memory_suffix(src.into()));
            format!("collect({dst}, {len} elements{on})")
        };
        let signature = const { CallSignature::of(CALL) }
            .and_objects([dst.into()])
            .and(size_of::<T>() as u64)
            .and(src.is_on_gpu().into());
        let valid = valid.map_err(CollectiveError::from);
        Ok(self
            .begin(CALL, signature, &words)
            .collect(dst.into(), src.into(), valid)?)
    }

    /// Takes the place of a collective call in which this PE cannot do its part for a reason that its caller alone
    /// knows, such as an address in another language. The call fails on every member as one in which they do not agree
    /// (M36), and `why` is the reason that the others get; for a [`broadcast`](Self::broadcast) some get it from their next
    /// call.
    ///
    /// # Errors
    ///
    /// Always.
    #[track_caller]
    pub fn refuse(&self, call: &'static str, why: String) -> Result<()> {
        placed(|| {
            let refused = Err(CollectiveError::Argument { call, what: why });
            let signature = const { CallSignature::of("refuse") };
            Ok(self
                .begin(call, signature, &|| call.into())
                .arrive(refused)?)
        })
    }

    /// Begins a collective call, with a span of its own in a trace.
    #[inline]
    pub(super) fn begin<'t>(
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
        let span = self.context.worker.traced(name);
        let area = &self.context.pe.sync_area;
        area.begin(&self.context.worker, self.state(), info, span)
    }

    /// Checks that two objects are live and of one length, and the same or apart.
    #[inline]
    pub(super) fn check_pair<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
    ) -> Result<()> {
        self.context.in_call(call).check_live(dst)?;
        self.context.in_call(call).check_live(src)?;
        self.context.check_pair(call, dst, src)
    }

    /// Checks that two objects are live, and do not overlap.
    fn check_apart<T: Pod>(&self, call: &'static str, dst: Sym<T>, src: Sym<T>) -> Result<()> {
        self.context.in_call(call).check_live(dst)?;
        self.context.in_call(call).check_live(src)?;
        Ok(check_apart(call, dst.into(), src.into())?)
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
