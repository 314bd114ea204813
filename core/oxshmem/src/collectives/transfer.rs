//! Copies of a collective call's data: between objects and scratch memory, here and at other PEs, in host memory or on
//! a GPU, by any route; and to or from private memory.
//!
//! Data that are written into this PE's own GPU memory [become visible](Transfer::make_visible) before others are signaled
//! and before the call returns.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::memory::simulated::HostSpan;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::ops::copy::{HOST_CHUNK, RemoteRange};
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_transport::Width;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::handle::on_gpu;
use crate::sym::Sym;

/// Bytes that go through a private buffer at a time, as many as a core's first caches hold.
const CHUNK: usize = 16 << 10;
/// The same for folds where some data come by lanes: to wait for it is little beside its way here.
const REMOTE_CHUNK: usize = 128 << 10;
/// Bytes of private memory into which other PEs' values come by lanes together, at most.
const MAX_PREFETCHED: usize = 4 << 20;

/// A piece of a call's destination, and its source at a PE.
pub(crate) struct TransferPiece {
    /// The bytes of the destination.
    pub into: Range<usize>,
    pub from: Sym<u8>,
    pub pe: usize,
}

/// This PE's destination of a call.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    pub object: Sym<u8>,
    /// PEs of this host that write their destinations at about the same time.
    pub writers: usize,
}

/// Private memory with other PEs' values that came by lanes before they are wanted.
pub(crate) struct Prefetched<T> {
    memory: Vec<T>,
    /// The PEs whose values are there, in the order in which they are wanted.
    pes: Vec<usize>,
    /// Number of them that were consumed.
    consumed: usize,
}

impl<T: Pod> Prefetched<T> {
    /// No values.
    pub(crate) fn new() -> Self {
        Prefetched {
            memory: Vec::new(),
            pes: Vec::new(),
            consumed: 0,
        }
    }

    /// The next values, `len` elements, if they are this PE's.
    fn next_of(&mut self, pe: usize, len: usize) -> Option<&[T]> {
        let at = self.consumed;
        if self.pes.get(at) != Some(&pe) {
            return None;
        }
        self.consumed += 1;
        self.memory.get(at * len..(at + 1) * len)
    }
}

/// The copies of one call on one context.
#[derive(Clone, Copy)]
pub(crate) struct Transfer<'c> {
    pub context: &'c Context<'c>,
    /// The call's name, for errors.
    pub call: &'static str,
}

impl<'c> Transfer<'c> {
    #[inline]
    pub(crate) fn new(context: &'c Context<'c>, call: &'static str) -> Self {
        Transfer { context, call }
    }

    /// Elements of these objects that go through a private buffer at a time: more where each time a GPU
    /// copies.
    pub(crate) fn chunk<T: Pod, const N: usize>(self, objects: [Sym<T>; N]) -> usize {
        let on_host = |object: &Sym<T>| self.context.is_on_host(*object);
        let bytes = if objects.iter().all(on_host) {
            CHUNK
        } else {
            HOST_CHUNK
        };
        (bytes / size_of::<T>().max(1)).max(1)
    }

    /// The same for folds, in a team whose members all load each other's memory or not.
    pub(crate) fn fold_chunk<T: Pod>(self, objects: [Sym<T>; 2], mapped: bool) -> usize {
        let elements = self.chunk(objects);
        if mapped {
            elements
        } else {
            elements.max(REMOTE_CHUNK / size_of::<T>().max(1))
        }
    }

    /// Writes a sync word of PE `to`, after all stores made before.
    pub(crate) fn signal(self, slot: Sym<u64>, word: u64, to: usize) -> Result<()> {
        let Transfer { context, call } = self;
        if let Some(span) = context.worker.peers.span(slot, to) {
            span.store_word(Width::W64, word, FenceSite::Arrive);
            return Ok(());
        }
        context.worker.yield_point();
        match context.worker.access_path(call, OpKind::Put, slot, to)? {
            AccessPath::Mapped(span) => {
                span.store_word(Width::W64, word, FenceSite::Arrive);
                Ok(())
            }
            AccessPath::Lane(via, target) => {
                let word = word.to_ne_bytes();
                // SAFETY: `word` outlives the call.
                unsafe {
                    Ok(context
                        .worker
                        .lane_put(call, via, target, LocalBuffer::read(&word))?)
                }
            }
            AccessPath::Staged(_) => Err(on_gpu(call, slot)),
        }
    }

    /// Copies from a PE's memory to private memory. The caller has checked both.
    #[inline]
    pub(crate) fn get_bytes<T: Pod>(self, into: &mut [T], from: Sym<T>, pe: usize) -> Result<()> {
        let into = bytemuck::cast_slice_mut(into);
        match self.context.worker.peers.span(from, pe) {
            Some(span) => {
                span.copy_to(into);
                Ok(())
            }
            None => Ok(self.context.worker.get_bytes(self.call, into, from, pe)?),
        }
    }

    /// [`get_bytes`](Self::get_bytes) from a PE, and later from the rest of `pes`, of which it is the first: transfers
    /// from them by lanes are in flight together, within limits.
    #[inline]
    pub(crate) fn get_next<T: Pod>(
        self,
        into: &mut [T],
        from: Sym<T>,
        (pe, pes): (usize, impl Iterator<Item = usize>),
        prefetched: &mut Prefetched<T>,
    ) -> Result<()> {
        match self.context.worker.peers.span(from, pe) {
            Some(span) => {
                span.copy_to(bytemuck::cast_slice_mut(into));
                Ok(())
            }
            None => self.get_prefetched(into, from, (pe, pes), prefetched),
        }
    }

    fn get_prefetched<T: Pod>(
        self,
        into: &mut [T],
        from: Sym<T>,
        (pe, pes): (usize, impl Iterator<Item = usize>),
        prefetched: &mut Prefetched<T>,
    ) -> Result<()> {
        let Transfer { context, call } = self;
        let by_lane = |pe: &usize| {
            context.worker.peers.span(from, *pe).is_none()
                && matches!(
                    context.worker.access_path(call, OpKind::Put, from, *pe),
                    Ok(AccessPath::Lane(..))
                )
        };
        let is_there = prefetched.pes.get(prefetched.consumed) == Some(&pe);
        if !is_there && by_lane(&pe) && !into.is_empty() {
            let bytes = size_of_val(into);
            prefetched.pes.clear();
            prefetched.consumed = 0;
            prefetched
                .pes
                .extend(pes.filter(by_lane).take((MAX_PREFETCHED / bytes).max(1)));
            match prefetched.pes.len() {
                // One operation.
                1 if bytes <= CHUNK => prefetched.pes.clear(),
                _ => self.get_together(from, prefetched)?,
            }
        }
        match prefetched.next_of(pe, into.len()) {
            Some(values) => {
                into.copy_from_slice(values);
                Ok(())
            }
            None => {
                let into = bytemuck::cast_slice_mut(into);
                Ok(context.worker.get_bytes(call, into, from, pe)?)
            }
        }
    }

    /// Gets an object of each of the prefetched PEs, all of which are reached by lanes.
    fn get_together<T: Pod>(self, from: Sym<T>, prefetched: &mut Prefetched<T>) -> Result<()> {
        let Transfer { context, call } = self;
        let Prefetched { memory, pes, .. } = prefetched;
        memory.resize(pes.len() * from.len(), T::zeroed());
        let from = from.cast::<u8>()?;
        let slots = bytemuck::cast_slice_mut::<T, u8>(memory).chunks_mut(from.len());
        let begun = pes.iter().zip(slots).try_for_each(|(pe, slot)| {
            let AccessPath::Lane(via, _) =
                context.worker.access_path(call, OpKind::Put, from, *pe)?
            else {
                return Ok(context.worker.get_bytes(call, slot, from, *pe)?);
            };
            // A piece that the transport accepts without registration need not be waited for at once.
            let piece = usize::try_from(via.caps.get.unregistered).unwrap_or(usize::MAX);
            let piece = piece.max(CHUNK);
            slot.chunks_mut(piece)
                .enumerate()
                .try_for_each(|(i, part)| {
                    let from = from.range(i * piece..i * piece + part.len())?;
                    match context.worker.access_path(call, OpKind::Put, from, *pe)? {
                        // SAFETY: the memory is lent to this function, which ends only when the gets have
                        // completed or were cancelled.
                        AccessPath::Lane(via, target) => unsafe {
                            let part = LocalBuffer::at(part.as_mut_ptr(), part.len());
                            Ok(context.worker.lane_get_nbi(call, via, target, part)?)
                        },
                        _ => Ok(context.worker.get_bytes(call, part, from, *pe)?),
                    }
                })
        });
        // Also where one could not be begun: others may be in flight.
        let completed = begun.and(
            context
                .worker
                .quiet_lanes(call, Some(pes))
                .map_err(Error::from),
        );
        if let Err(error) = &completed {
            // The memory may be freed (M37).
            context.worker.abandon_lanes(error, Some(pes));
            pes.clear();
        }
        // The next loads come after the data's arrival.
        fence(Ordering::Acquire);
        completed
    }

    /// Copies from private memory to this PE's, or to that of one that it maps. The caller has checked both.
    #[inline]
    pub(crate) fn put_bytes<T: Pod>(self, to: Sym<T>, from: &[T], pe: usize) -> Result<()> {
        let from = bytemuck::cast_slice(from);
        match self.context.worker.peers.span(to, pe) {
            Some(span) => {
                span.copy_from(from);
                Ok(())
            }
            None => Ok(self.context.worker.put_bytes(self.call, to, from, pe)?),
        }
    }

    /// Makes data that were [put](Self::put_bytes) into an object of this PE's visible, to its GPU and to others.
    pub(crate) fn make_visible<T: Pod>(self, own: Sym<T>) -> Result<()> {
        if self.context.is_on_host(own) {
            Ok(())
        } else {
            Ok(self.context.worker.make_own_gpu_visible(self.call)?)
        }
    }

    /// Copies an object from a PE's memory to this PE's own, where it is when this returns. The caller has
    /// checked both.
    #[inline]
    pub(crate) fn copy_from<T: Pod>(self, dst: Sym<T>, src: Sym<T>, pe: usize) -> Result<()> {
        let Transfer { context, call } = self;
        if src.is_empty() || (pe == context.my_pe() && dst.is_where(src)) {
            return Ok(());
        }
        let path = match context.worker.peers.span(src, pe) {
            Some(span) => AccessPath::Mapped(HostSpan::Mapped(span)),
            None => context.worker.access_path(call, OpKind::Put, src, pe)?,
        };
        match path {
            AccessPath::Mapped(span) if context.is_on_host(dst) => {
                context.own(dst).copy_from_span(span, src.bytes());
                Ok(())
            }
            path => {
                let from = RemoteRange {
                    target: src.into(),
                    pe,
                };
                Ok(context
                    .worker
                    .copy_by_path(call, path, dst.into(), from, false)?)
            }
        }
    }

    /// Copies a part of this PE's object to that of a PE that it maps, as a part of `whole` bytes that are copied at about
    /// the same time. The caller has checked both.
    pub(crate) fn copy_to(self, dst: Sym<u8>, src: Sym<u8>, pe: usize, whole: usize) -> Result<()> {
        let own = self.context.own(src);
        if let Some(span) = self.context.worker.peers.span(dst, pe) {
            HostSpan::Mapped(span).copy_chunk_from_span(own, src.len(), whole);
            return Ok(());
        }
        let mut bytes = vec![0; src.len()];
        own.copy_to(&mut bytes);
        self.put_bytes(dst, &bytes, pe)
    }

    /// Copies pieces that do not overlap to this PE's own object. Transfers by lanes are in flight together.
    pub(crate) fn copy_pieces(
        self,
        dst: Destination,
        pieces: impl Iterator<Item = Result<TransferPiece>>,
    ) -> Result<()> {
        let (context, object) = (self.context, dst.object);
        if context.is_on_host(object) || object.len() > HOST_CHUNK {
            return self.copy_each(dst, pieces);
        }
        // Few bytes that are all of an object on a GPU get there at once.
        let pieces: Vec<TransferPiece> = pieces.collect::<Result<_>>()?;
        let all: usize = pieces.iter().map(|piece| piece.into.len()).sum();
        if all < object.len() || !pieces.iter().all(|piece| context.is_on_host(piece.from)) {
            return self.copy_each(dst, pieces.into_iter().map(Ok));
        }
        let mut bytes = vec![0; all];
        for piece in pieces {
            if let Some(part) = bytes.get_mut(piece.into) {
                self.get_bytes(part, piece.from, piece.pe)?;
            }
        }
        self.put_bytes(object, &bytes, context.my_pe())?;
        self.make_visible(object)
    }

    /// The same, each piece to its place by itself.
    fn copy_each(
        self,
        dst: Destination,
        mut pieces: impl Iterator<Item = Result<TransferPiece>>,
    ) -> Result<()> {
        let Transfer { context, call } = self;
        let (on_host, me) = (context.is_on_host(dst.object), context.my_pe());
        let whole = dst.object.len().saturating_mul(dst.writers);
        let mut by_lanes = Vec::new();
        let begun = pieces.try_for_each(|piece| {
            let TransferPiece { into, from, pe } = piece?;
            let dst = dst.object.range(into)?;
            if from.is_empty() {
                return Ok(());
            }
            if let Some(span) = context.worker.peers.span(from, pe).filter(|_| on_host) {
                context
                    .own(dst)
                    .copy_chunk_from_span(HostSpan::Mapped(span), from.len(), whole);
                return Ok(());
            }
            match context.worker.access_path(call, OpKind::Put, from, pe)? {
                path @ AccessPath::Lane(via, _) if on_host || (pe != me && via.carries_gpu()) => {
                    by_lanes.push(pe);
                    context
                        .worker
                        .copy_by_path(
                            call,
                            path,
                            dst.into(),
                            RemoteRange {
                                target: from.into(),
                                pe,
                            },
                            true,
                        )
                        .map_err(Error::from)
                }
                _ => self.copy_from(dst, from, pe),
            }
        });
        // Also where one could not be begun: others may be in flight.
        let completed = if by_lanes.is_empty() {
            begun
        } else {
            begun.and(
                context
                    .worker
                    .quiet_lanes(call, Some(&by_lanes))
                    .map_err(Error::from),
            )
        };
        completed.inspect_err(|error| context.worker.abandon_lanes(error, Some(&by_lanes)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use oxshmem_example_tiny_transport::Tiny;
    use oxshmem_heap::{Segment, SegmentOptions};
    use oxshmem_transport::{Memory, MemoryKind, Op};

    use super::*;
    use crate::error::Error;
    use crate::testing::spmd_with;
    use crate::tests::lanes::{Asked, Fate, LIMIT, beside, is_loss_of, watched};
    use crate::world::World;

    const PES: usize = 4;
    const LEN: usize = 100;

    fn to_one(object: Sym<u8>) -> Destination {
        Destination { object, writers: 1 }
    }

    /// PE 0's part. It reaches the others by lanes that do nothing before they are driven.
    fn beside_others(first: impl Fn(&World, Sym<u64>, &Arc<Asked>) -> Result<()> + Sync) {
        beside_others_by(Tiny::default(), LIMIT, first);
    }

    /// The same, where no wait is longer than that.
    fn beside_others_by(
        tiny: Tiny,
        limit: Duration,
        first: impl Fn(&World, Sym<u64>, &Arc<Asked>) -> Result<()> + Sync,
    ) {
        let tiny = World::builder().transports(vec![Arc::new(tiny)]);
        beside(tiny.timeout(limit), (PES, LEN), |world, x: Sym<u64>| {
            for pe in 1..PES {
                world.put(x, &[pe as u64; LEN], pe)?;
            }
            world.quiet()?;
            first(world, x, &watched(world))
        });
    }

    #[test]
    fn values_that_come_by_lanes_are_under_way_together() {
        beside_others(|world, x, asked| {
            let at_all = Arc::new(AtomicUsize::new(0));
            let (seen, calls) = (Arc::clone(&at_all), Arc::clone(asked));
            asked.after(PES - 1, move || seen.store(calls.calls(), Ordering::SeqCst));
            let (mut values, mut prefetched) = ([0; LEN], Prefetched::new());
            for times in 1..3 {
                for pe in 0..PES {
                    Transfer::new(world, "test").get_next(
                        &mut values,
                        x,
                        (pe, pe..PES),
                        &mut prefetched,
                    )?;
                    assert_eq!(values, [pe as u64; LEN]);
                }
                let operations = asked.operations.load(Ordering::SeqCst);
                assert_eq!(operations, times * (PES - 1));
            }
            let calls = at_all.load(Ordering::SeqCst);
            assert!(calls < PES, "driven between them: {calls} calls");
            (world.worker.engine.report_lost)(1);
            Ok(())
        });
    }

    /// Host memory that a transport takes for a GPU's.
    fn gpu_memory() -> Memory {
        let mut segment = Segment::create(1 << 20, &SegmentOptions::default()).unwrap();
        segment.commit(1 << 20).unwrap();
        let mapping = Arc::clone(segment.mapping());
        // SAFETY: committed, and mapped as long as its owner lives; used by the transport alone.
        unsafe { Memory::new(mapping.base(), 1 << 20, MemoryKind::Cuda, None, mapping) }
    }

    #[test]
    fn pieces_that_come_into_gpu_memory_by_lanes_are_under_way_together() {
        let tiny = World::builder().transports(vec![Arc::new(Tiny::nic())]);
        let tiny = tiny.gpu_memory(|_| Ok(Box::new(gpu_memory())));
        let ended = spmd_with(tiny.timeout(LIMIT), PES, |world| {
            let object = || world.alloc_on::<u64>(MemoryKind::Cuda, PES * LEN);
            let [dst, src] = [object()?, object()?];
            world.write(src, &[world.my_pe() as u64; PES * LEN])?;
            world.write(dst, &[77; PES * LEN])?;
            world.barrier_all()?;
            if world.my_pe() == 0 {
                let asked = watched(world);
                let begun = Arc::new(Mutex::new(Vec::new()));
                let (calls, at) = (Arc::clone(&asked), Arc::clone(&begun));
                asked.decide(move |_, op| {
                    if matches!(op, Op::Get { .. }) {
                        at.lock().unwrap().push(calls.calls());
                    }
                    Fate::Perform
                });
                let (into, from) = (dst.cast::<u8>()?, src.cast()?);
                let pieces = (1..PES).map(|pe| {
                    let into = pe * LEN * 8..(pe + 1) * LEN * 8;
                    let from = from.range(into.clone())?;
                    Ok(TransferPiece { into, from, pe })
                });
                Transfer::new(world, "test").copy_pieces(to_one(into), pieces)?;
                let begun = std::mem::take(&mut *begun.lock().unwrap());
                assert!(begun.len() >= PES - 1, "{begun:?}");
                assert!(
                    begun[PES - 2] - begun[0] < PES,
                    "driven between them: {begun:?}"
                );
                let mut found = [0; PES * LEN];
                world.read(&mut found, dst)?;
                let (own, others) = found.split_at(LEN);
                assert_eq!(own, [77; LEN]);
                for (pe, part) in (1..).zip(others.chunks(LEN)) {
                    assert_eq!(part, [pe; LEN]);
                }
            }
            world.barrier_all()?;
            world.free(src)?;
            world.free(dst)
        });
        ended.unwrap();
    }

    /// Each operation in turn is the last before the loss.
    #[test]
    fn m37_a_loss_leaves_nothing_that_writes_to_the_memory_of_what_was_to_come() {
        for operations in 1..PES {
            beside_others(|world, x, asked| {
                let (lose, calls) = (
                    Arc::clone(&world.worker.engine.report_lost),
                    Arc::clone(asked),
                );
                let at_loss = Arc::new(AtomicUsize::new(usize::MAX));
                let seen = Arc::clone(&at_loss);
                asked.after(operations, move || {
                    lose(2);
                    seen.store(calls.calls(), Ordering::SeqCst);
                });
                let (mut values, mut prefetched) = ([77; LEN], Prefetched::new());
                let pulled = Transfer::new(world, "test").get_next(
                    &mut values,
                    x,
                    (1, 1..PES),
                    &mut prefetched,
                );
                is_loss_of(2, pulled);
                assert_eq!(values, [77; LEN]);
                let driven = asked.calls() > at_loss.load(Ordering::SeqCst);
                assert!(driven, "the lane may still write");
                // The other PEs' values are not in flight either.
                prefetched.memory.fill(55);
                (0..100).for_each(|_| world.progress());
                assert!(prefetched.memory.iter().all(|value| *value == 55));
                let next = Transfer::new(world, "test").get_next(
                    &mut values,
                    x,
                    (3, 3..PES),
                    &mut prefetched,
                );
                next.map(|()| assert_eq!(values, [3; LEN]))
            });
        }
    }

    /// Operations that were put off, to be posted together, wait for credits when time is up.
    #[test]
    fn m37_a_wait_that_takes_too_long_leaves_nothing_that_writes_either() {
        beside_others_by(Tiny::nic(), Duration::from_secs(2), |world, x, asked| {
            asked.fill_after(Some(0));
            let (mut values, mut prefetched) = ([77; LEN], Prefetched::new());
            let pulled =
                Transfer::new(world, "test").get_next(&mut values, x, (1, 1..PES), &mut prefetched);
            assert!(matches!(pulled, Err(Error::Timeout { .. })), "{pulled:?}");
            asked.fill_after(None);
            prefetched.memory.fill(55);
            (0..100).for_each(|_| world.progress());
            assert!(prefetched.memory.iter().all(|value| *value == 55));
            (world.worker.engine.report_lost)(1);
            Ok(())
        });
    }

    /// The same for data that come into an object.
    #[test]
    fn m37_pieces_that_take_too_long_are_not_under_way_when_the_call_has_failed() {
        beside_others_by(Tiny::nic(), Duration::from_secs(2), |world, x, asked| {
            asked.fill_after(Some(0));
            let bytes = x.cast::<u8>()?;
            let pieces = [0..8, 8..16].map(|into| {
                Ok(TransferPiece {
                    from: bytes.range(into.clone())?,
                    into,
                    pe: 1,
                })
            });
            let copied =
                Transfer::new(world, "test").copy_pieces(to_one(bytes), pieces.into_iter());
            assert!(matches!(copied, Err(Error::Timeout { .. })), "{copied:?}");
            asked.fill_after(None);
            world.write(x, &[55; LEN])?;
            (0..100).for_each(|_| world.progress());
            let mut own = [0; LEN];
            world.read(&mut own, x)?;
            assert_eq!(own, [55; LEN]);
            (world.worker.engine.report_lost)(1);
            Ok(())
        });
    }

    /// The operation to PE 2 is not the call's.
    #[test]
    fn m19_what_a_call_drops_with_its_lane_of_the_way_to_others_the_next_quiet_tells() {
        beside_others_by(Tiny::nic(), Duration::from_secs(2), |world, x, asked| {
            asked.decide(|_, _| Fate::Keep);
            let ended = world.scope(|scope| {
                scope.put_nbi(x, &[55], 2)?;
                let bytes = x.cast::<u8>()?;
                let pieces = [(0..8, 1), (8..16, 3)].map(|(into, pe)| {
                    Ok(TransferPiece {
                        from: bytes.range(into.clone())?,
                        into,
                        pe,
                    })
                });
                let copied =
                    Transfer::new(world, "test").copy_pieces(to_one(bytes), pieces.into_iter());
                assert!(matches!(copied, Err(Error::Timeout { .. })), "{copied:?}");
                Ok(())
            });
            assert!(matches!(ended, Err(Error::LaneFailed { .. })), "{ended:?}");
            (world.worker.engine.report_lost)(1);
            Ok(())
        });
    }
}
