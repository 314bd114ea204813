//! The reductions and scans of a team: their documentation, and the checks of their arguments.

use oxshmem_transport::Fold;

use crate::error::Result;
use crate::place::placed;
use crate::sym::Sym;
use crate::team::Team;
use oxshmem_collectives::algorithm::reduce::{FoldBuffers, Scan};
use oxshmem_collectives::args::{check_apart, describe};
use oxshmem_collectives::elements::Elements;
use oxshmem_collectives::fold::{FoldOps, Reducible};
use oxshmem_collectives::signature::CallSignature;
use oxshmem_collectives::transfer::Transfer;

impl Team<'_> {
    /// Folds `src` of all members, element by element, into `dst` of every member. Both have the same
    /// length; they are the same object or do not overlap.
    ///
    /// Every member gets the same bits, floats included: elements are folded in the team's order. Where the
    /// team spans hosts, some of them with several members, and both objects are in host memory, the values of each
    /// host's members are folded in the team's order, and then the hosts' results, in the order of the
    /// hosts; with 32 hosts or more, and few bytes, by rows of hosts first. So teams of other sizes, and longer
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
    /// first member gets the result of a fold of nothing: 0 of a sum, 1 of a product, the greatest value of a
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
        let signature = fold_signature::<T>(name, fold).and_objects([dst.into(), src.into()]);
        let transfer = Transfer::new(&self.context.worker, name);
        let buffers = FoldBuffers::new(
            transfer,
            fold,
            [dst.into(), src.into()],
            self.state().mapped,
        );
        let ready = buffers.and_then(|buffers| {
            self.check_pair(name, dst, src)?;
            Ok(buffers)
        });
        Ok(self
            .begin(name, signature, &words)
            .reduce(dst.into(), src.into(), scan, ready)?)
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
        let signature = fold_signature::<T>(CALL, fold).and_objects(objects.map(Elements::from));
        let transfer = Transfer::new(&self.context.worker, CALL);
        let buffers = FoldBuffers::new(
            transfer,
            fold,
            [dst.into(), src.into()],
            self.state().mapped,
        );
        let ready = buffers.and_then(|buffers| {
            self.context.in_call(CALL).check_live(dst)?;
            self.context.in_call(CALL).check_live(src)?;
            self.check_blocks(CALL, src, len)?;
            if in_place.is_none() {
                check_apart(CALL, dst.into(), src.into())?;
            }
            Ok(buffers)
        });
        Ok(self.begin(CALL, signature, &words).reduce_scatter(
            dst.into(),
            src.into(),
            in_place.is_some(),
            ready,
        )?)
    }
}

/// The signature of a fold of one type of values: objects of another may be as long.
fn fold_signature<T: Reducible>(call: &'static str, fold: Fold) -> CallSignature {
    let of = CallSignature::of(<T as FoldOps>::NAME).value();
    CallSignature::of(call).and(fold as u64).and(of)
}

fn fold_words<T: Reducible>(call: &'static str, dst: Sym<T>, src: Sym<T>, fold: Fold) -> String {
    let (dst, src) = (describe(dst.into()), describe(src.into()));
    let (fold, of) = (fold.name(), <T as FoldOps>::NAME);
    format!("{call}({dst}, {src}, {fold} of {of})")
}
