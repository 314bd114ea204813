//! How a collective call's data get from one place to another: objects and scratch memory, here and at
//! other PEs, in host memory or on a GPU, by whatever route there is; and private memory.
//!
//! What is written into this PE's own GPU memory [settles](Context::settle_own) before others are told of it
//! and before the call returns.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;

use crate::copies::HOST_CHUNK;
use crate::lane::{AccessPath, LocalBuffer};
use crate::mapped::HostMemory;
use crate::order::OpKind;
use crate::simulated::HostSpan;
use crate::{Context, Result, Sym};

/// Bytes that go through a private buffer at a time: what a core's first caches hold.
const CHUNK: usize = 16 << 10;
/// The same of what is folded where some comes by lanes: to wait for it is little beside its way here.
const FAR_CHUNK: usize = 128 << 10;
/// Bytes of private memory into which other PEs' values come by lanes together, at most.
const UNDER_WAY: usize = 4 << 20;

/// A piece of a call's destination, and where at a PE it comes from.
pub(super) struct TransferPiece {
    /// Which bytes of the destination.
    pub into: Range<usize>,
    pub from: Sym<u8>,
    pub pe: usize,
}

/// Private memory of other PEs' values that came by lanes, before they are wanted.
pub(super) struct Prefetched<T> {
    memory: Vec<T>,
    /// The PEs whose values are there, in the order in which they are wanted.
    pes: Vec<usize>,
    /// How many of them have been taken.
    taken: usize,
}

impl<T: Pod> Prefetched<T> {
    /// Of nobody.
    pub(super) fn new() -> Self {
        Prefetched {
            memory: Vec::new(),
            pes: Vec::new(),
            taken: 0,
        }
    }

    /// Gives the next values of so many elements, if they are this PE's.
    fn take(&mut self, pe: usize, len: usize) -> Option<&[T]> {
        let at = self.taken;
        if self.pes.get(at) != Some(&pe) {
            return None;
        }
        self.taken += 1;
        self.memory.get(at * len..(at + 1) * len)
    }
}

impl Context<'_> {
    /// Elements of these objects that go through a private buffer at a time: more where each time a GPU
    /// copies.
    pub(super) fn at_a_time<T: Pod, const N: usize>(&self, objects: [Sym<T>; N]) -> usize {
        let bytes = match objects.iter().all(|object| self.is_on_host(*object)) {
            true => CHUNK,
            false => HOST_CHUNK,
        };
        (bytes / size_of::<T>().max(1)).max(1)
    }

    /// The same of what is folded, in a team whose members all load each other's memory or not.
    pub(super) fn folded_at_a_time<T: Pod>(&self, objects: [Sym<T>; 2], mapped: bool) -> usize {
        let elements = self.at_a_time(objects);
        match mapped {
            true => elements,
            false => elements.max(FAR_CHUNK / size_of::<T>().max(1)),
        }
    }

    /// Copies from a PE's memory to private memory. The caller has checked both.
    #[inline]
    pub(crate) fn get_bytes<T: Pod>(
        &self,
        call: &'static str,
        into: &mut [T],
        from: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        let into = bytemuck::cast_slice_mut(into);
        match self.peers.span(from, pe) {
            Some(span) => {
                span.copy_to(into);
                Ok(())
            }
            None => self.get_by_path(call, into, from, pe),
        }
    }

    /// [`pull`](Self::pull) from a PE, and then from the rest of `pes`, of which it is the first: what comes
    /// from them by lanes is under way together, as much of it as there may be.
    #[inline]
    pub(super) fn pull_first<T: Pod>(
        &self,
        call: &'static str,
        into: &mut [T],
        from: Sym<T>,
        (pe, pes): (usize, impl Iterator<Item = usize>),
        ahead: &mut Prefetched<T>,
    ) -> Result<()> {
        match self.peers.span(from, pe) {
            Some(span) => {
                span.copy_to(bytemuck::cast_slice_mut(into));
                Ok(())
            }
            None => self.pull_ahead(call, into, from, (pe, pes), ahead),
        }
    }

    fn pull_ahead<T: Pod>(
        &self,
        call: &'static str,
        into: &mut [T],
        from: Sym<T>,
        (pe, pes): (usize, impl Iterator<Item = usize>),
        ahead: &mut Prefetched<T>,
    ) -> Result<()> {
        let by_lane = |pe: &usize| {
            self.peers.span(from, *pe).is_none()
                && matches!(
                    self.path(call, OpKind::Put, from, *pe),
                    Ok(AccessPath::Lane(..))
                )
        };
        if ahead.pes.get(ahead.taken) != Some(&pe) && by_lane(&pe) && !into.is_empty() {
            let bytes = size_of_val(into);
            ahead.pes.clear();
            ahead.taken = 0;
            ahead
                .pes
                .extend(pes.filter(by_lane).take((UNDER_WAY / bytes).max(1)));
            match ahead.pes.len() {
                // One operation.
                1 if bytes <= CHUNK => ahead.pes.clear(),
                _ => self.get_together(call, from, ahead)?,
            }
        }
        match ahead.take(pe, into.len()) {
            Some(values) => {
                into.copy_from_slice(values);
                Ok(())
            }
            None => self.get_by_path(call, bytemuck::cast_slice_mut(into), from, pe),
        }
    }

    /// Gets an object of each of the PEs ahead, all of which are reached by lanes.
    fn get_together<T: Pod>(
        &self,
        call: &'static str,
        from: Sym<T>,
        ahead: &mut Prefetched<T>,
    ) -> Result<()> {
        let Prefetched { memory, pes, .. } = ahead;
        memory.resize(pes.len() * from.len(), T::zeroed());
        let from = from.cast::<u8>()?;
        let slots = bytemuck::cast_slice_mut::<T, u8>(memory).chunks_mut(from.len());
        let begun = pes.iter().zip(slots).try_for_each(|(pe, slot)| {
            let AccessPath::Lane(via, _) = self.path(call, OpKind::Put, from, *pe)? else {
                return self.get_by_path(call, slot, from, *pe);
            };
            // What a transport takes without registration need not be waited for at once.
            let piece = usize::try_from(via.caps.get.unregistered).unwrap_or(usize::MAX);
            let piece = piece.max(CHUNK);
            slot.chunks_mut(piece)
                .enumerate()
                .try_for_each(|(i, part)| {
                    let from = from.range(i * piece..i * piece + part.len())?;
                    match self.path(call, OpKind::Put, from, *pe)? {
                        // SAFETY: the memory is lent to this function, which ends only when the gets have
                        // completed or were given up.
                        AccessPath::Lane(via, far) => unsafe {
                            self.lane_get_nbi(
                                call,
                                via,
                                far,
                                LocalBuffer::at(part.as_mut_ptr(), part.len()),
                            )
                        },
                        _ => self.get_by_path(call, part, from, *pe),
                    }
                })
        });
        // Also where one could not be begun: others may be under way.
        let come = begun.and(self.quiet_lanes(call, Some(pes)));
        if let Err(error) = &come {
            // The memory may be freed (M37).
            self.abandon_lanes(error, Some(pes));
            pes.clear();
        }
        // What is read next comes after the data's arrival.
        fence(Ordering::Acquire);
        come
    }

    /// Copies from private memory to this PE's, or to that of one that it maps. The caller has checked both.
    #[inline]
    pub(crate) fn put_bytes<T: Pod>(
        &self,
        call: &'static str,
        to: Sym<T>,
        from: &[T],
        pe: usize,
    ) -> Result<()> {
        let from = bytemuck::cast_slice(from);
        match self.peers.span(to, pe) {
            Some(span) => {
                span.copy_from(from);
                Ok(())
            }
            None => self.put_by_path(call, to, from, pe),
        }
    }

    /// Has what was [pushed](Self::push) into an object of this PE's be there, for its GPU and for others.
    pub(super) fn make_visible<T: Pod>(&self, call: &'static str, own: Sym<T>) -> Result<()> {
        match self.is_on_host(own) {
            true => Ok(()),
            false => self.settle_own_gpu(call),
        }
    }

    /// Copies an object from a PE's memory to this PE's own, where it is when this returns. The caller has
    /// checked both.
    #[inline]
    pub(super) fn copy_between<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        src: Sym<T>,
        from: usize,
    ) -> Result<()> {
        if src.is_empty() || (from == self.my_pe() && dst.is_where(src)) {
            return Ok(());
        }
        let path = match self.peers.span(src, from) {
            Some(span) => AccessPath::Mapped(HostSpan::Mapped(span)),
            None => self.path(call, OpKind::Put, src, from)?,
        };
        match path {
            AccessPath::Mapped(place) if self.is_on_host(dst) => {
                self.own(dst).copy_from_place(place, src.bytes());
                Ok(())
            }
            path => self.get_by(call, path, dst, (src, from), false),
        }
    }

    /// Copies a part of this PE's object to that of a PE that it maps, as a part of `whole` bytes that are copied at about
    /// the same time. The caller has checked both.
    pub(super) fn copy_part_out(
        &self,
        call: &'static str,
        dst: Sym<u8>,
        src: Sym<u8>,
        (pe, whole): (usize, usize),
    ) -> Result<()> {
        if let Some(span) = self.peers.span(dst, pe) {
            HostSpan::Mapped(span).copy_part_from_place(self.own(src), src.len(), whole);
            return Ok(());
        }
        let mut bytes = vec![0; src.len()];
        self.own(src).copy_to(&mut bytes);
        self.put_bytes(call, dst, &bytes, pe)
    }

    /// Copies pieces that do not overlap to this PE's own object, as `near` PEs of this host do at about the
    /// same time. What comes by lanes is under way together.
    pub(super) fn copy_pieces(
        &self,
        call: &'static str,
        (dst, near): (Sym<u8>, usize),
        pieces: impl Iterator<Item = Result<TransferPiece>>,
    ) -> Result<()> {
        if self.is_on_host(dst) || dst.len() > HOST_CHUNK {
            return self.copy_each(call, (dst, near), pieces);
        }
        // What is all of an object on a GPU, and little, gets there at once.
        let pieces: Vec<TransferPiece> = pieces.collect::<Result<_>>()?;
        let all: usize = pieces.iter().map(|piece| piece.into.len()).sum();
        if all < dst.len() || !pieces.iter().all(|piece| self.is_on_host(piece.from)) {
            return self.copy_each(call, (dst, near), pieces.into_iter().map(Ok));
        }
        let mut bytes = vec![0; all];
        for piece in pieces {
            if let Some(part) = bytes.get_mut(piece.into) {
                self.get_bytes(call, part, piece.from, piece.pe)?;
            }
        }
        self.put_bytes(call, dst, &bytes, self.my_pe())?;
        self.make_visible(call, dst)
    }

    /// The same, each piece to its place by itself.
    fn copy_each(
        &self,
        call: &'static str,
        (dst, near): (Sym<u8>, usize),
        mut pieces: impl Iterator<Item = Result<TransferPiece>>,
    ) -> Result<()> {
        let (on_host, me) = (self.is_on_host(dst), self.my_pe());
        let whole = dst.len().saturating_mul(near);
        let mut far = Vec::new();
        let begun = pieces.try_for_each(|piece| {
            let TransferPiece { into, from, pe } = piece?;
            let dst = dst.range(into)?;
            if from.is_empty() {
                return Ok(());
            }
            if let Some(span) = self.peers.span(from, pe).filter(|_| on_host) {
                self.own(dst)
                    .copy_part_from_place(HostSpan::Mapped(span), from.len(), whole);
                return Ok(());
            }
            match self.path(call, OpKind::Put, from, pe)? {
                path @ AccessPath::Lane(via, _) if on_host || (pe != me && via.carries_gpu()) => {
                    far.push(pe);
                    self.get_by(call, path, dst, (from, pe), true)
                }
                _ => self.copy_between(call, dst, from, pe),
            }
        });
        // Also where one could not be begun: others may be under way.
        let come = match far.is_empty() {
            true => begun,
            false => begun.and(self.quiet_lanes(call, Some(&far))),
        };
        come.inspect_err(|error| self.abandon_lanes(error, Some(&far)))
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
    use crate::lane::tests::{Asked, Fate, LIMIT, beside, is_loss_of, watched};
    use crate::testing::spmd_with;
    use crate::{Error, World};

    const PES: usize = 4;
    const LEN: usize = 100;

    /// PE 0's part, the others of which it reaches by lanes that do nothing before they are driven.
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
            let (mut values, mut ahead) = ([0; LEN], Prefetched::new());
            for times in 1..3 {
                for pe in 0..PES {
                    world.pull_first("test", &mut values, x, (pe, pe..PES), &mut ahead)?;
                    assert_eq!(values, [pe as u64; LEN]);
                }
                let operations = asked.operations.load(Ordering::SeqCst);
                assert_eq!(operations, times * (PES - 1));
            }
            let calls = at_all.load(Ordering::SeqCst);
            assert!(calls < PES, "driven between them: {calls} calls");
            (world.shared.report_lost)(1);
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
                world.copy_pieces("test", (into, 1), pieces)?;
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
                let (lose, calls) = (Arc::clone(&world.shared.report_lost), Arc::clone(asked));
                let at_loss = Arc::new(AtomicUsize::new(usize::MAX));
                let seen = Arc::clone(&at_loss);
                asked.after(operations, move || {
                    lose(2);
                    seen.store(calls.calls(), Ordering::SeqCst);
                });
                let (mut values, mut ahead) = ([77; LEN], Prefetched::new());
                let pulled = world.pull_first("test", &mut values, x, (1, 1..PES), &mut ahead);
                is_loss_of(2, pulled);
                assert_eq!(values, [77; LEN]);
                let driven = asked.calls() > at_loss.load(Ordering::SeqCst);
                assert!(driven, "the lane may still write");
                // What the other PEs had is not under way either.
                ahead.memory.fill(55);
                (0..100).for_each(|_| world.progress());
                assert!(ahead.memory.iter().all(|value| *value == 55));
                let next = world.pull_first("test", &mut values, x, (3, 3..PES), &mut ahead);
                next.map(|()| assert_eq!(values, [3; LEN]))
            });
        }
    }

    /// What was put off, to be posted together, waits for room when time is up.
    #[test]
    fn m37_a_wait_that_takes_too_long_leaves_nothing_that_writes_either() {
        beside_others_by(Tiny::nic(), Duration::from_secs(2), |world, x, asked| {
            asked.fill_after(Some(0));
            let (mut values, mut ahead) = ([77; LEN], Prefetched::new());
            let pulled = world.pull_first("test", &mut values, x, (1, 1..PES), &mut ahead);
            assert!(matches!(pulled, Err(Error::Timeout { .. })), "{pulled:?}");
            asked.fill_after(None);
            ahead.memory.fill(55);
            (0..100).for_each(|_| world.progress());
            assert!(ahead.memory.iter().all(|value| *value == 55));
            (world.shared.report_lost)(1);
            Ok(())
        });
    }

    /// The same of what comes into an object.
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
            let copied = world.copy_pieces("test", (bytes, 1), pieces.into_iter());
            assert!(matches!(copied, Err(Error::Timeout { .. })), "{copied:?}");
            asked.fill_after(None);
            world.write(x, &[55; LEN])?;
            (0..100).for_each(|_| world.progress());
            let mut own = [0; LEN];
            world.read(&mut own, x)?;
            assert_eq!(own, [55; LEN]);
            (world.shared.report_lost)(1);
            Ok(())
        });
    }

    /// It is none of that call's business.
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
                let copied = world.copy_pieces("test", (bytes, 1), pieces.into_iter());
                assert!(matches!(copied, Err(Error::Timeout { .. })), "{copied:?}");
                Ok(())
            });
            assert!(matches!(ended, Err(Error::LaneFailed { .. })), "{ended:?}");
            (world.shared.report_lost)(1);
            Ok(())
        });
    }
}
