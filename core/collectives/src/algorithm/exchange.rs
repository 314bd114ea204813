//! Steps that algorithms share: the exposure of each member's source, and the copies from all members.

use std::ops::Range;

use bytemuck::Pod;

use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::Result;
use crate::select::{CollectiveAlgorithm, CollectiveKind, Payload, select};
use crate::transfer::{Destination, TransferPiece};

/// The part of a member's data that this PE copies.
pub(crate) struct Part {
    /// The bytes of the destination.
    pub into: Range<usize>,
    pub from: Elements<u8>,
}

impl CollectiveCall<'_> {
    /// The algorithm of a call in which each member's source is `src`.
    pub(crate) fn algorithm<T: Pod>(
        &self,
        kind: CollectiveKind,
        src: Elements<T>,
    ) -> CollectiveAlgorithm {
        let payload = Payload {
            bytes: src.bytes(),
            on_gpu: src.is_on_gpu(),
        };
        self.algorithm_of(kind, payload)
    }

    #[inline]
    pub(crate) fn algorithm_of(
        &self,
        kind: CollectiveKind,
        payload: Payload,
    ) -> CollectiveAlgorithm {
        select(self.area.choices, kind, self.team, payload)
    }

    /// Copies a part of each member's source, which is `src` or its copy in scratch memory, into a part of
    /// `dst`: a whole call. `part` gives the two by the member's rank.
    pub(crate) fn gather_parts<T: Pod>(
        &mut self,
        algorithm: CollectiveAlgorithm,
        dst: Elements<T>,
        src: Elements<T>,
        valid: Result<()>,
        part: impl Fn(usize, Elements<u8>) -> Result<Part>,
    ) -> Result<()> {
        let (team, transfer) = (self.team, self.transfer());
        let into = self.destination(dst.cast()?);
        let piece = |rank: usize, source: Elements<u8>| {
            let Part { into, from } = part(rank, source)?;
            let pe = team.members.pe(rank);
            Ok(TransferPiece { into, from, pe })
        };
        if algorithm == CollectiveAlgorithm::Direct && self.reads_on_arrival(dst, src) {
            let source = src.cast()?;
            return self.arrive_reading(valid, &mut |rank| {
                transfer.copy_pieces(into, std::iter::once(piece(rank, source)))
            });
        }
        let source = self.expose(algorithm, src, valid)?;
        let pieces = self.ring_order().map(|rank| piece(rank, source));
        let copied = transfer.copy_pieces(into, pieces);
        self.finish(algorithm, copied)
    }

    /// This PE's destination, which all members on this host write at about the same time.
    pub(crate) fn destination(&self, object: Elements<u8>) -> Destination {
        Destination {
            object,
            writers: self.team.members_on_host(),
        }
    }

    /// Whether members can read each member's source as soon as that member has arrived.
    pub(crate) fn reads_on_arrival<T: Pod>(&self, dst: Elements<T>, src: Elements<T>) -> bool {
        self.team.has_one_round() && self.are_on_host(dst, src)
    }

    /// Whether both objects are in host memory.
    pub(crate) fn are_on_host<T: Pod>(&self, dst: Elements<T>, src: Elements<T>) -> bool {
        self.worker.is_on_host(dst) && self.worker.is_on_host(src)
    }

    /// Arrives, and gives where every member's `src`, of the same length on all, can then be read: in its scratch
    /// memory, or in the object itself. After that a call [finishes](Self::finish).
    pub(crate) fn expose<T: Pod>(
        &mut self,
        algorithm: CollectiveAlgorithm,
        src: Elements<T>,
        valid: Result<()>,
    ) -> Result<Elements<u8>> {
        let source = match algorithm {
            CollectiveAlgorithm::Eager => self.scratch()?.range(..src.bytes())?,
            CollectiveAlgorithm::Direct => src.cast()?,
        };
        let copied = match algorithm {
            CollectiveAlgorithm::Eager => valid.and_then(|()| {
                let me = self.worker.engine.me;
                self.transfer().copy_from(source, src.cast()?, me)
            }),
            CollectiveAlgorithm::Direct => valid,
        };
        self.arrive(copied)?;
        Ok(source)
    }

    /// Ends a call: where members read each other's objects, it waits until all have read.
    pub(crate) fn finish(
        &mut self,
        algorithm: CollectiveAlgorithm,
        read: Result<()>,
    ) -> Result<()> {
        match algorithm {
            CollectiveAlgorithm::Eager => read,
            CollectiveAlgorithm::Direct => self.arrive(read),
        }
    }

    /// All members by rank, from this one on, so that not all read one at the same time.
    pub(crate) fn ring_order(&self) -> impl Iterator<Item = usize> + use<> {
        let (members, me) = (self.team.members.len(), self.team.members.me());
        (0..members).map(move |step| (me + step) % members)
    }
}
