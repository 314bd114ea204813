//! Steps that algorithms share: the exposure of each member's source, and the copies from all members.

use std::ops::Range;

use bytemuck::Pod;

use crate::collectives::call::CollectiveCall;
use crate::collectives::select::{CollectiveAlgorithm, CollectiveKind, Payload, select};
use crate::collectives::transfer::{Destination, TransferPiece};
use crate::error::Result;
use crate::sym::Sym;

/// The part of a member's data that this PE copies.
pub(crate) struct Part {
    /// The bytes of the destination.
    pub into: Range<usize>,
    pub from: Sym<u8>,
}

impl CollectiveCall<'_> {
    /// The algorithm of a call in which each member's source is `src`.
    pub(super) fn algorithm<T: Pod>(
        &self,
        kind: CollectiveKind,
        src: Sym<T>,
    ) -> CollectiveAlgorithm {
        let payload = Payload {
            bytes: src.bytes(),
            on_gpu: src.is_on_gpu(),
        };
        self.algorithm_of(kind, payload)
    }

    pub(super) fn algorithm_of(
        &self,
        kind: CollectiveKind,
        payload: Payload,
    ) -> CollectiveAlgorithm {
        select(self.area.choices, kind, self.team, payload)
    }

    /// Copies a part of each member's source, which is `src` or its copy in scratch memory, into a part of
    /// `dst`: a whole call. `part` gives the two by the member's rank.
    pub(super) fn gather_parts<T: Pod>(
        &mut self,
        algorithm: CollectiveAlgorithm,
        dst: Sym<T>,
        src: Sym<T>,
        valid: Result<()>,
        part: impl Fn(usize, Sym<u8>) -> Result<Part>,
    ) -> Result<()> {
        let (team, transfer) = (self.team, self.transfer());
        let into = self.destination(dst.cast()?);
        let piece = |rank: usize, source: Sym<u8>| {
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
    pub(super) fn destination(&self, object: Sym<u8>) -> Destination {
        Destination {
            object,
            writers: self.team.members_on_host(),
        }
    }

    /// Whether members can read each member's source as soon as that one is here.
    pub(super) fn reads_on_arrival<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> bool {
        self.team.has_one_round() && self.are_on_host(dst, src)
    }

    /// Whether both objects are in host memory.
    pub(super) fn are_on_host<T: Pod>(&self, dst: Sym<T>, src: Sym<T>) -> bool {
        self.context.is_on_host(dst) && self.context.is_on_host(src)
    }

    /// Arrives; then every member's `src`, whose length is the same on all, can be read where this says: in their
    /// scratch memory, or where it was. After that a call [finishes](Self::finish).
    pub(super) fn expose<T: Pod>(
        &mut self,
        algorithm: CollectiveAlgorithm,
        src: Sym<T>,
        valid: Result<()>,
    ) -> Result<Sym<u8>> {
        let source = match algorithm {
            CollectiveAlgorithm::Eager => self.scratch()?.range(..src.bytes())?,
            CollectiveAlgorithm::Direct => src.cast()?,
        };
        let copied = match algorithm {
            CollectiveAlgorithm::Eager => valid.and_then(|()| {
                let me = self.context.my_pe();
                self.transfer().copy_from(source, src.cast()?, me)
            }),
            CollectiveAlgorithm::Direct => valid,
        };
        self.arrive(copied)?;
        Ok(source)
    }

    /// Ends a call: where members read each other's objects, when all have.
    pub(super) fn finish(
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
    pub(super) fn ring_order(&self) -> impl Iterator<Item = usize> + use<> {
        let (members, me) = (self.team.members.len(), self.team.members.me());
        (0..members).map(move |step| (me + step) % members)
    }
}
