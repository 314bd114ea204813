//! Calls that fold the members' values: reductions, reduce-scatter and scans.
//!
//! Elements are always folded in the team's order, so that every member gets the same bits; but in
//! reductions of a team over several hosts [host by host](super::by_host). Scans stay in one level: what a
//! host's members fold to together serves only the hosts after it, and an order by host is not the team's.
//! So does reduce-scatter, where a member reads but its own block of each other: folded on each host first, a
//! block would have to be at some member there, and take an arrival more, to be read once.

use oxshmem_transport::Fold;

use super::fold::{FoldOps, Folded};
use super::select::{CollectiveAlgorithm, CollectiveKind};
use super::transfer::{Prefetched, TransferPiece};
use super::{Reducible, check_apart, digest_of, place, share};
use crate::place::placed;
use crate::sync_area::CallSignature;
use crate::team::{CollectiveCall, Team};
use crate::{Error, Result, Sym};

/// What a member's destination gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    /// What all members' values fold to.
    All,
    /// What those up to its own do.
    UpToOwn,
    /// What those before its own do.
    BeforeOwn,
}

/// The private memory of one fold.
pub(super) struct FoldBuffers<T: Reducible> {
    folded: Folded<T>,
    pub values: Vec<T>,
}

impl<T: Reducible> FoldBuffers<T> {
    /// For `most` elements at a time.
    fn new(call: &'static str, fold: Fold, most: usize) -> Result<Self> {
        match Folded::new(fold, most) {
            Some(folded) => Ok(FoldBuffers {
                folded,
                values: vec![T::zeroed(); most],
            }),
            None => Err(Error::Argument {
                call,
                what: format!("there is no {} of {}", fold.name(), <T as FoldOps>::NAME),
            }),
        }
    }
}

impl Team<'_> {
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
        self.fold("reduce", dst, src, fold, Scan::All)
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
        self.fold("inscan", dst, src, fold, Scan::UpToOwn)
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
        self.fold("exscan", dst, src, fold, Scan::BeforeOwn)
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
        let (world, len, me) = (self.world, dst.len(), self.my_pe());
        let block = |member: usize| {
            let start = |member: usize| len.saturating_mul(member);
            src.range(start(member)..start(member + 1))
        };
        // In place. On the first member both are one block, so that they count as the same argument.
        let in_place = match (block(0), block(me)) {
            (Ok(first), Ok(own)) if dst.is_where(first) || dst.is_where(own) => Some(first),
            _ => None,
        };
        let words = || words(CALL, dst, src, fold);
        let objects = [in_place.unwrap_or(dst), src];
        let digest = digest_of(fold_digest::<T>(CALL, fold), objects);
        let most = world
            .folded_at_a_time([dst, src], self.core().mapped)
            .min(len);
        let (bench, valid) = split(FoldBuffers::new(CALL, fold, most));
        let valid = valid
            .and_then(|()| world.check_live(CALL, dst))
            .and_then(|()| world.check_live(CALL, src))
            .and_then(|()| self.check_blocks(CALL, src, len))
            .and_then(|()| match in_place {
                Some(_) => Ok(()),
                None => check_apart(CALL, dst, src),
            });
        let mut turn = self.turn(CALL, digest, &words);
        // A member reads no more than its own blocks: as of all to all.
        let way = self.way(CollectiveKind::Alltoall, src);
        let given = self.give(&mut turn, way, src, valid)?;
        let Some(mut bench) = bench else {
            return Ok(());
        };
        let mine = given
            .range(dst.bytes() * me..dst.bytes() * (me + 1))?
            .cast()?;
        let all = self.core().members.pes();
        // Nobody else reads this member's own block, but the first member reads its first one.
        if way == CollectiveAlgorithm::Direct && in_place.is_some() && !dst.is_where(mine) {
            return self.fold_when_read(&mut turn, &mut bench, dst, mine, all);
        }
        let folded = self.fold_own(CALL, &mut bench, dst, mine, all);
        Self::end(&mut turn, way, folded)
    }

    /// Reductions and scans.
    #[track_caller]
    fn fold<T: Reducible>(
        &self,
        name: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        gives: Scan,
    ) -> Result<()> {
        placed(|| self.fold_inner(name, dst, src, fold, gives))
    }

    fn fold_inner<T: Reducible>(
        &self,
        name: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        gives: Scan,
    ) -> Result<()> {
        let (world, core) = (self.world, self.core());
        let words = || words(name, dst, src, fold);
        let digest = digest_of(fold_digest::<T>(name, fold), [dst, src]);
        let most = world
            .folded_at_a_time([dst, src], core.mapped)
            .min(dst.len());
        let (bench, valid) = split(FoldBuffers::new(name, fold, most));
        let valid = valid.and_then(|()| self.check_pair(name, dst, src));
        let mut turn = self.turn(name, digest, &words);
        let on_host = self.on_host(dst, src);
        let kind = match gives {
            Scan::All => CollectiveKind::Reduce,
            _ => CollectiveKind::Scan,
        };
        if let Some(hosts) = core
            .hosts
            .as_ref()
            .filter(|_| on_host && gives == Scan::All)
        {
            return self.reduce_by_host(&mut turn, hosts, bench, (dst, src), valid);
        }
        let way = self.way(kind, src);
        let given = self.give(&mut turn, way, src, valid)?;
        // Nobody comes here without.
        let Some(mut bench) = bench else {
            return Ok(());
        };
        let (members, me) = (self.n_pes(), self.my_pe());
        let read = match gives {
            Scan::All => 0..members,
            Scan::UpToOwn => 0..me + 1,
            Scan::BeforeOwn => 0..me,
        };
        let read = read.map(|place| core.members.pe(place));
        match way {
            CollectiveAlgorithm::Direct if core.mapped && on_host => {
                let given = self.fold_share(name, &turn, &mut bench, (dst, src), gives);
                turn.arrive(given)
            }
            CollectiveAlgorithm::Direct if gives == Scan::All => {
                // Of this member's share nobody else reads or writes the source, so that it may be the
                // destination.
                let part = share::<T>(src.len(), me, members);
                let (into, from) = (dst.range(part.clone())?, src.range(part)?);
                let folded = self.fold_own(name, &mut bench, into, from, read);
                turn.arrive(folded)?;
                let bytes: Sym<u8> = dst.cast()?;
                let pieces = self.around().skip(1).map(|from| {
                    let part = share::<T>(src.len(), from, members);
                    let part = part.start * size_of::<T>()..part.end * size_of::<T>();
                    Ok(TransferPiece {
                        from: bytes.range(part.clone())?,
                        into: part,
                        pe: turn.pe(from),
                    })
                });
                let gathered = world.copy_pieces(name, (bytes, core.near()), pieces);
                // Everyone has read this member's share.
                turn.arrive(gathered)
            }
            CollectiveAlgorithm::Direct if dst.is_where(src) => {
                self.fold_when_read(&mut turn, &mut bench, dst, src, read)
            }
            way => {
                let folded = self.fold_own(name, &mut bench, dst, given.cast()?, read);
                Self::end(&mut turn, way, folded)
            }
        }
    }

    /// Folds an object of these PEs into this PE's own.
    pub(super) fn fold_own<T: Reducible>(
        &self,
        call: &'static str,
        bench: &mut FoldBuffers<T>,
        into: Sym<T>,
        from: Sym<T>,
        pes: impl Iterator<Item = usize> + Clone,
    ) -> Result<()> {
        let (world, me) = (self.world, self.world.my_pe());
        self.fold_each(call, bench, from, pes, |at, values| {
            world.put_bytes(call, into.range(at..at + values.len())?, values, me)
        })?;
        world.make_visible(call, into)
    }

    /// [`fold_own`](Self::fold_own) into what others read of this PE: arrives when it has folded, which ends the
    /// call, and then writes.
    fn fold_when_read<T: Reducible>(
        &self,
        turn: &mut CollectiveCall<'_>,
        bench: &mut FoldBuffers<T>,
        into: Sym<T>,
        from: Sym<T>,
        pes: impl Iterator<Item = usize> + Clone,
    ) -> Result<()> {
        let (world, call) = (self.world, turn.name());
        let mut kept = Vec::new();
        let folded = self.fold_each(call, bench, from, pes, |_, values| {
            kept.extend_from_slice(values);
            Ok(())
        });
        turn.arrive(folded)?;
        world.put_bytes(call, into, &kept, world.my_pe())?;
        world.make_visible(call, into)
    }

    /// Folds an object of these PEs, in this order, some elements at a time, each of which is given to `take`
    /// with the number of its first element. Of no PEs that is what a fold of nothing is.
    pub(super) fn fold_each<T: Reducible>(
        &self,
        call: &'static str,
        bench: &mut FoldBuffers<T>,
        from: Sym<T>,
        pes: impl Iterator<Item = usize> + Clone,
        mut take: impl FnMut(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let most = bench.values.len().max(1);
        let mut fetched = Prefetched::new();
        for at in (0..from.len()).step_by(most) {
            let end = from.len().min(at + most);
            let part = from.range(at..end)?;
            let Some(values) = bench.values.get_mut(..end - at) else {
                break;
            };
            let mut pes = pes.clone();
            let mut first = true;
            while let (rest, Some(pe)) = (pes.clone(), pes.next()) {
                self.world
                    .pull_first(call, values, part, (pe, rest), &mut fetched)?;
                match std::mem::take(&mut first) {
                    true => bench.folded.start(values),
                    false => bench.folded.add(values),
                }
            }
            if first {
                bench.folded.start_empty();
            }
            bench.folded.give(values);
            take(at, values)?;
        }
        Ok(())
    }

    /// Folds this member's share of the elements and gives each member its part of what comes of it, where
    /// all are mapped. Of a share nobody else reads or writes any member's elements, so that the destination
    /// may be the source: of each chunk a member's elements are read before any are written to it.
    fn fold_share<T: Reducible>(
        &self,
        call: &'static str,
        turn: &CollectiveCall<'_>,
        bench: &mut FoldBuffers<T>,
        (dst, src): (Sym<T>, Sym<T>),
        gives: Scan,
    ) -> Result<()> {
        let (world, members, me) = (self.world, self.n_pes(), self.my_pe());
        let part = share::<T>(src.len(), me, members);
        let (dst, src) = (dst.range(part.clone())?, src.range(part)?);
        if gives == Scan::All {
            return self.fold_each(call, bench, src, self.core().members.pes(), |at, values| {
                let into = dst.range(at..at + values.len())?;
                self.around()
                    .try_for_each(|to| world.put_bytes(call, into, values, turn.pe(to)))
            });
        }
        let most = bench.values.len().max(1);
        let mut given = bench.values.clone();
        for at in (0..src.len()).step_by(most) {
            let end = src.len().min(at + most);
            let (into, from) = (dst.range(at..end)?, src.range(at..end)?);
            let some = ..end - at;
            let (Some(values), Some(given)) = (bench.values.get_mut(some), given.get_mut(some))
            else {
                break;
            };
            bench.folded.start_empty();
            for place in 0..members {
                let pe = turn.pe(place);
                world.get_bytes(call, values, from, pe)?;
                if gives == Scan::BeforeOwn {
                    bench.folded.give(given);
                }
                match place {
                    0 => bench.folded.start(values),
                    _ => bench.folded.add(values),
                }
                if gives == Scan::UpToOwn {
                    bench.folded.give(given);
                }
                world.put_bytes(call, into, given, pe)?;
            }
        }
        Ok(())
    }
}

/// A fold of one type of values: objects of another may be as long.
fn fold_digest<T: Reducible>(call: &'static str, fold: Fold) -> CallSignature {
    let of = CallSignature::of(<T as FoldOps>::NAME).value();
    CallSignature::of(call).and(fold as u64).and(of)
}

fn words<T: Reducible>(call: &'static str, dst: Sym<T>, src: Sym<T>, fold: Fold) -> String {
    let (dst, src, fold, of) = (place(dst), place(src), fold.name(), <T as FoldOps>::NAME);
    format!("{call}({dst}, {src}, {fold} of {of})")
}

/// What was made, and whether it was.
fn split<R>(made: Result<R>) -> (Option<R>, Result<()>) {
    match made {
        Ok(made) => (Some(made), Ok(())),
        Err(error) => (None, Err(error)),
    }
}
