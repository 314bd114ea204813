//! Reductions, reduce-scatter and scans: folds of the members' values.
//!
//! Elements are always folded in the team's order, so that every member gets the same bits. Reductions of a team over
//! several hosts go [host by host](super::reduce_hierarchical) instead. Scans stay in one level: the fold of a
//! host's members serves only the hosts after it, and an order by host is not the team's.
//! Reduce-scatter stays in one level, too: a member reads one block of each other member. Folds on each host first
//! would cost one more arrival for results that are read once.

use std::fmt;

use oxshmem_transport::Fold;

use crate::args::share;
use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::fold::{FoldOps, Folded, Reducible};
use crate::select::{CollectiveAlgorithm, CollectiveKind};
use crate::transfer::{Prefetched, Transfer, TransferPiece};

/// The members whose values a member's destination gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// All members.
    All,
    /// Those up to its own rank.
    UpToOwn,
    /// Those before its own rank.
    BeforeOwn,
}

/// The private memory of one fold.
pub struct FoldBuffers<T: Reducible> {
    folded: Folded<T>,
    /// The values so far of one chunk.
    pub values: Vec<T>,
}

impl<T: Reducible> fmt::Debug for FoldBuffers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoldBuffers")
            .field("elements", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl<T: Reducible> FoldBuffers<T> {
    /// Buffers for a fold into the first of these objects, in a team whose members all load each other's memory or not.
    pub fn new(
        transfer: Transfer<'_>,
        fold: Fold,
        objects: [Elements<T>; 2],
        mapped: bool,
    ) -> Result<Self> {
        let [dst, _] = objects;
        let max = transfer.fold_chunk(objects, mapped).min(dst.len());
        match Folded::new(fold, max) {
            Some(folded) => Ok(FoldBuffers {
                folded,
                values: vec![T::zeroed(); max],
            }),
            None => Err(Error::Argument {
                call: transfer.call,
                what: format!("there is no {} of {}", fold.name(), <T as FoldOps>::NAME),
            }),
        }
    }

    /// Folds an object of these PEs into this PE's own.
    pub(crate) fn fold_into_own(
        &mut self,
        transfer: Transfer<'_>,
        into: Elements<T>,
        from: Elements<T>,
        pes: impl Iterator<Item = usize> + Clone,
    ) -> Result<()> {
        let me = transfer.worker.engine.me;
        self.fold_each(transfer, from, pes, |at, values| {
            transfer.put_bytes(into.range(at..at + values.len())?, values, me)
        })?;
        transfer.make_visible(into)
    }

    /// Folds an object of these PEs, in this order, some elements at a time. `write` gets each result
    /// with the index of its first element. For no PEs that is the result of a fold of nothing.
    pub(crate) fn fold_each(
        &mut self,
        transfer: Transfer<'_>,
        from: Elements<T>,
        pes: impl Iterator<Item = usize> + Clone,
        mut write: impl FnMut(usize, &[T]) -> Result<()>,
    ) -> Result<()> {
        let max = self.values.len().max(1);
        let mut prefetched = Prefetched::default();
        for at in (0..from.len()).step_by(max) {
            let end = from.len().min(at + max);
            let part = from.range(at..end)?;
            let Some(values) = self.values.get_mut(..end - at) else {
                break;
            };
            let mut pes = pes.clone();
            let mut first = true;
            while let (rest, Some(pe)) = (pes.clone(), pes.next()) {
                transfer.get_next(values, part, (pe, rest), &mut prefetched)?;
                if std::mem::take(&mut first) {
                    self.folded.start(values);
                } else {
                    self.folded.add(values);
                }
            }
            if first {
                self.folded.start_empty();
            }
            self.folded.write_to(values);
            write(at, values)?;
        }
        Ok(())
    }
}

impl CollectiveCall<'_> {
    /// Folds block `i` of all sources into member `i`'s destination. If it is `in_place`, the destination is a block of
    /// the source.
    pub fn reduce_scatter<T: Reducible>(
        &mut self,
        dst: Elements<T>,
        src: Elements<T>,
        in_place: bool,
        ready: Result<FoldBuffers<T>>,
    ) -> Result<()> {
        let (buffers, valid) = split(ready);
        let team = self.team;
        let me = team.members.me();
        // A member reads no more than its own blocks: as in an alltoall.
        let algorithm = self.algorithm(CollectiveKind::Alltoall, src);
        let source = self.expose(algorithm, src, valid)?;
        // Without buffers the arrival has failed.
        let Some(mut buffers) = buffers else {
            return Ok(());
        };
        let mine = source
            .range(dst.bytes() * me..dst.bytes() * (me + 1))?
            .cast()?;
        let all = team.members.pes();
        // Nobody else reads this member's own block, but the first member reads its first one.
        if algorithm == CollectiveAlgorithm::Direct && in_place && !dst.is_where(mine) {
            return self.fold_then_write(&mut buffers, dst, mine, all);
        }
        let folded = buffers.fold_into_own(self.transfer(), dst, mine, all);
        self.finish(algorithm, folded)
    }

    /// Folds sources into every member's destination: a reduction or a scan.
    pub fn reduce<T: Reducible>(
        &mut self,
        dst: Elements<T>,
        src: Elements<T>,
        scan: Scan,
        ready: Result<FoldBuffers<T>>,
    ) -> Result<()> {
        let team = self.team;
        let on_host = self.are_on_host(dst, src);
        if let Some(hosts) = &team.hosts
            && on_host
            && scan == Scan::All
        {
            return self.reduce_by_host(hosts, dst, src, ready);
        }
        let kind = match scan {
            Scan::All => CollectiveKind::Reduce,
            _ => CollectiveKind::Scan,
        };
        let (buffers, valid) = split(ready);
        let algorithm = self.algorithm(kind, src);
        let source = self.expose(algorithm, src, valid)?;
        // Without buffers the arrival has failed.
        let Some(mut buffers) = buffers else {
            return Ok(());
        };
        let me = team.members.me();
        let read = match scan {
            Scan::All => 0..team.members.len(),
            Scan::UpToOwn => 0..me + 1,
            Scan::BeforeOwn => 0..me,
        };
        let read = read.map(|rank| team.members.pe(rank));
        match algorithm {
            CollectiveAlgorithm::Direct if team.mapped && on_host => {
                let written = self.fold_share(&mut buffers, dst, src, scan);
                self.arrive(written)
            }
            CollectiveAlgorithm::Direct if scan == Scan::All => {
                self.reduce_shares(&mut buffers, dst, src)
            }
            CollectiveAlgorithm::Direct if dst.is_where(src) => {
                self.fold_then_write(&mut buffers, dst, src, read)
            }
            _ => {
                let folded = buffers.fold_into_own(self.transfer(), dst, source.cast()?, read);
                self.finish(algorithm, folded)
            }
        }
    }

    /// The rest of a direct reduction: folds this member's share of the elements into its destination, then gets the other
    /// members' shares from theirs.
    fn reduce_shares<T: Reducible>(
        &mut self,
        buffers: &mut FoldBuffers<T>,
        dst: Elements<T>,
        src: Elements<T>,
    ) -> Result<()> {
        let team = self.team;
        let (members, me) = (team.members.len(), team.members.me());
        // Nobody else reads or writes the source of this member's share, so that it may be the
        // destination.
        let part = share::<T>(src.len(), me, members);
        let (into, from) = (dst.range(part.clone())?, src.range(part)?);
        let folded = buffers.fold_into_own(self.transfer(), into, from, team.members.pes());
        self.arrive(folded)?;
        let bytes: Elements<u8> = dst.cast()?;
        let pieces = self.ring_order().skip(1).map(|rank| {
            let part = share::<T>(src.len(), rank, members);
            let part = part.start * size_of::<T>()..part.end * size_of::<T>();
            Ok(TransferPiece {
                from: bytes.range(part.clone())?,
                into: part,
                pe: team.members.pe(rank),
            })
        });
        let into = self.destination(bytes);
        let gathered = self.transfer().copy_pieces(into, pieces);
        // Everyone has read this member's share.
        self.arrive(gathered)
    }

    /// [Folds](FoldBuffers::fold_into_own) into an object that others read: arrives when it has folded, which ends the
    /// call, and then writes.
    fn fold_then_write<T: Reducible>(
        &mut self,
        buffers: &mut FoldBuffers<T>,
        into: Elements<T>,
        from: Elements<T>,
        pes: impl Iterator<Item = usize> + Clone,
    ) -> Result<()> {
        let (transfer, me) = (self.transfer(), self.worker.engine.me);
        let mut result = Vec::new();
        let folded = buffers.fold_each(transfer, from, pes, |_, values| {
            result.extend_from_slice(values);
            Ok(())
        });
        self.arrive(folded)?;
        transfer.put_bytes(into, &result, me)?;
        transfer.make_visible(into)
    }

    /// Folds this member's share of the elements and writes each member's part of the result, where
    /// all are mapped. Nobody else reads or writes any member's elements of a share, so that the destination
    /// may be the source: of each chunk a member's elements are read before any are written to it.
    fn fold_share<T: Reducible>(
        &self,
        buffers: &mut FoldBuffers<T>,
        dst: Elements<T>,
        src: Elements<T>,
        scan: Scan,
    ) -> Result<()> {
        let (members, transfer) = (&self.team.members, self.transfer());
        let part = share::<T>(src.len(), members.me(), members.len());
        let (dst, src) = (dst.range(part.clone())?, src.range(part)?);
        if scan == Scan::All {
            return buffers.fold_each(transfer, src, members.pes(), |at, values| {
                let into = dst.range(at..at + values.len())?;
                self.ring_order()
                    .try_for_each(|to| transfer.put_bytes(into, values, members.pe(to)))
            });
        }
        let max = buffers.values.len().max(1);
        let mut results = buffers.values.clone();
        for at in (0..src.len()).step_by(max) {
            let end = src.len().min(at + max);
            let (into, from) = (dst.range(at..end)?, src.range(at..end)?);
            let chunk = ..end - at;
            let values = buffers.values.get_mut(chunk);
            let (Some(values), Some(result)) = (values, results.get_mut(chunk)) else {
                break;
            };
            buffers.folded.start_empty();
            for rank in 0..members.len() {
                let pe = members.pe(rank);
                transfer.get_bytes(values, from, pe)?;
                if scan == Scan::BeforeOwn {
                    buffers.folded.write_to(result);
                }
                match rank {
                    0 => buffers.folded.start(values),
                    _ => buffers.folded.add(values),
                }
                if scan == Scan::UpToOwn {
                    buffers.folded.write_to(result);
                }
                transfer.put_bytes(into, result, pe)?;
            }
        }
        Ok(())
    }
}

/// A value, if there is one, and whether there is.
pub(crate) fn split<R>(ready: Result<R>) -> (Option<R>, Result<()>) {
    match ready {
        Ok(value) => (Some(value), Ok(())),
        Err(error) => (None, Err(error)),
    }
}
