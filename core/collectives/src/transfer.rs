//! Copies of a collective call's data: between objects and scratch memory, here and at other PEs, in host memory or on
//! a GPU, by any route; and to or from private memory.
//!
//! Data that are written into this PE's own GPU memory [become visible](Transfer::make_visible) before others are signaled
//! and before the call returns.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;
use oxshmem_engine::lane::endpoint::Endpoint;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::lane::remote::RemoteTarget;
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::memory::simulated::HostSpan;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::ops::copy::{HOST_CHUNK, RemoteRange};
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_transport::Width;

use crate::elements::Elements;
use crate::error::{Error, Result};
use oxshmem_engine::worker::Worker;

/// Bytes that go through a private buffer at a time, as many as a core's first caches hold.
const CHUNK: usize = 16 << 10;
/// The same for folds where some data come by lanes: the wait for a chunk is then short beside its transfer.
const REMOTE_CHUNK: usize = 128 << 10;
/// Bytes of private memory into which other PEs' values come by lanes together, at most.
const MAX_PREFETCHED: usize = 4 << 20;

/// A piece of a call's destination, and its source at a PE.
#[derive(Debug)]
pub struct TransferPiece {
    /// The bytes of the destination.
    pub into: Range<usize>,
    /// The source.
    pub from: Elements<u8>,
    /// The PE that has it.
    pub pe: usize,
}

/// This PE's destination of a call.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    /// The object.
    pub object: Elements<u8>,
    /// PEs of this host that write their destinations at about the same time.
    pub writers: usize,
}

/// Other PEs' values that were fetched by lanes ahead of their use, in private memory.
#[derive(Debug)]
pub struct Prefetched<T> {
    /// The fetched elements.
    pub memory: Vec<T>,
    /// The PEs whose values are there, in the order in which they are wanted.
    pes: Vec<usize>,
    /// Number of them that were consumed.
    consumed: usize,
}

impl<T> Default for Prefetched<T> {
    fn default() -> Self {
        Prefetched {
            memory: Vec::new(),
            pes: Vec::new(),
            consumed: 0,
        }
    }
}

impl<T: Pod> Prefetched<T> {
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

/// The copies of one call on one worker.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'c> {
    /// The worker whose thread makes the call.
    pub worker: &'c Worker,
    /// The call's name, for errors.
    pub call: &'static str,
}

impl<'c> Transfer<'c> {
    /// The copies of a call.
    #[inline]
    pub fn new(worker: &'c Worker, call: &'static str) -> Self {
        Transfer { worker, call }
    }

    /// Elements of these objects that go through a private buffer at a time: more where each time a GPU
    /// copies.
    pub(crate) fn chunk<T: Pod, const N: usize>(self, objects: [Elements<T>; N]) -> usize {
        let on_host = |object: &Elements<T>| self.worker.is_on_host(*object);
        let bytes = if objects.iter().all(on_host) {
            CHUNK
        } else {
            HOST_CHUNK
        };
        (bytes / size_of::<T>().max(1)).max(1)
    }

    /// The same for folds, in a team whose members all load each other's memory or not.
    pub(crate) fn fold_chunk<T: Pod>(self, objects: [Elements<T>; 2], mapped: bool) -> usize {
        let elements = self.chunk(objects);
        if mapped {
            elements
        } else {
            elements.max(REMOTE_CHUNK / size_of::<T>().max(1))
        }
    }

    /// Writes a sync word of PE `to`, after all stores made before. The PE tells of its arrival by what it does in the same or a later call.
    #[inline]
    pub(crate) fn signal(self, slot: Elements<u64>, word: u64, to: usize) -> Result<()> {
        self.put_word(slot, word, to, |worker, via, target| {
            worker.lane_sync_word(via, target, word)
        })
    }

    /// Writes a sync word of PE `to` that nobody answers, after all stores made before.
    pub(crate) fn announce(self, slot: Elements<u64>, word: u64, to: usize) -> Result<()> {
        self.put_word(slot, word, to, |worker, via, target| {
            let word = word.to_ne_bytes();
            // SAFETY: `word` outlives the call.
            unsafe { worker.lane_put(via, target, LocalBuffer::read(&word)) }
        })
    }

    #[inline]
    fn put_word(
        self,
        slot: Elements<u64>,
        word: u64,
        to: usize,
        by_lane: impl FnOnce(&Worker, &Endpoint, RemoteTarget) -> oxshmem_engine::error::Result<()>,
    ) -> Result<()> {
        let Transfer { worker, call } = self;
        if let Some(span) = worker.peers.span(slot, to) {
            span.store_word(Width::W64, word, FenceSite::Arrive);
            return Ok(());
        }
        worker.yield_point();
        match worker.access_path(OpKind::Put, slot, to)? {
            AccessPath::Mapped(span) => {
                span.store_word(Width::W64, word, FenceSite::Arrive);
                Ok(())
            }
            AccessPath::Lane(via, target) => Ok(by_lane(worker, via, target)?),
            AccessPath::Staged(_) => Err(Error::GpuMemory {
                call,
                offset: slot.offset(),
            }),
        }
    }

    /// Copies from a PE's memory to private memory. The caller has checked both.
    #[inline]
    pub(crate) fn get_bytes<T: Pod>(
        self,
        into: &mut [T],
        from: Elements<T>,
        pe: usize,
    ) -> Result<()> {
        let into = bytemuck::cast_slice_mut(into);
        match self.worker.peers.span(from, pe) {
            Some(span) => {
                span.copy_to(into);
                Ok(())
            }
            None => Ok(self.worker.get_bytes(into, from, pe)?),
        }
    }

    /// [`get_bytes`](Self::get_bytes) from a PE, and later from the rest of `pes`, of which it is the first: transfers
    /// from them by lanes are in flight together, within limits.
    #[inline]
    pub fn get_next<T: Pod>(
        self,
        into: &mut [T],
        from: Elements<T>,
        (pe, pes): (usize, impl Iterator<Item = usize>),
        prefetched: &mut Prefetched<T>,
    ) -> Result<()> {
        match self.worker.peers.span(from, pe) {
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
        from: Elements<T>,
        (pe, pes): (usize, impl Iterator<Item = usize>),
        prefetched: &mut Prefetched<T>,
    ) -> Result<()> {
        let worker = self.worker;
        let by_lane = |pe: &usize| {
            worker.peers.span(from, *pe).is_none()
                && matches!(
                    worker.access_path(OpKind::Put, from, *pe),
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
                Ok(worker.get_bytes(into, from, pe)?)
            }
        }
    }

    /// Gets an object of each of the prefetched PEs, all of which are reached by lanes.
    fn get_together<T: Pod>(self, from: Elements<T>, prefetched: &mut Prefetched<T>) -> Result<()> {
        let worker = self.worker;
        let Prefetched { memory, pes, .. } = prefetched;
        memory.resize(pes.len() * from.len(), T::zeroed());
        let from = from.cast::<u8>()?;
        let slots = bytemuck::cast_slice_mut::<T, u8>(memory).chunks_mut(from.len());
        let begun = pes.iter().zip(slots).try_for_each(|(pe, slot)| {
            let AccessPath::Lane(via, _) = worker.access_path(OpKind::Put, from, *pe)? else {
                return Ok(worker.get_bytes(slot, from, *pe)?);
            };
            // A piece that the transport accepts without registration need not be waited for at once.
            let piece = usize::try_from(via.caps.get.unregistered).unwrap_or(usize::MAX);
            let piece = piece.max(CHUNK);
            slot.chunks_mut(piece)
                .enumerate()
                .try_for_each(|(i, part)| {
                    let from = from.range(i * piece..i * piece + part.len())?;
                    match worker.access_path(OpKind::Put, from, *pe)? {
                        // SAFETY: the memory is lent to this function, which ends only when the gets have
                        // completed or were cancelled.
                        AccessPath::Lane(via, target) => unsafe {
                            let part = LocalBuffer::at(part.as_mut_ptr(), part.len());
                            Ok(worker.lane_get_nbi(via, target, part)?)
                        },
                        _ => Ok(worker.get_bytes(part, from, *pe)?),
                    }
                })
        });
        // Also where one could not be begun: others may be in flight.
        let completed = begun.and(worker.quiet_lanes(Some(pes)).map_err(Error::from));
        if let Err(error) = &completed {
            // The memory may be freed (M37).
            worker.abandon_lanes(error, Some(pes));
            pes.clear();
        }
        // The next loads come after the data's arrival.
        fence(Ordering::Acquire);
        completed
    }

    /// Copies from private memory to this PE's, or to that of one that it maps. The caller has checked both.
    #[inline]
    pub(crate) fn put_bytes<T: Pod>(self, to: Elements<T>, from: &[T], pe: usize) -> Result<()> {
        let from = bytemuck::cast_slice(from);
        match self.worker.peers.span(to, pe) {
            Some(span) => {
                span.copy_from(from);
                Ok(())
            }
            None => Ok(self.worker.put_bytes(to, from, pe)?),
        }
    }

    /// Makes data that were [put](Self::put_bytes) into an object of this PE's visible, to its GPU and to others.
    pub(crate) fn make_visible<T: Pod>(self, own: Elements<T>) -> Result<()> {
        if self.worker.is_on_host(own) {
            Ok(())
        } else {
            Ok(self.worker.make_own_gpu_visible()?)
        }
    }

    /// Copies an object from a PE's memory to this PE's own, where it is when this returns. The caller has
    /// checked both.
    #[inline]
    pub(crate) fn copy_from<T: Pod>(
        self,
        dst: Elements<T>,
        src: Elements<T>,
        pe: usize,
    ) -> Result<()> {
        let worker = self.worker;
        if src.is_empty() || (pe == worker.engine.me && dst.is_where(src)) {
            return Ok(());
        }
        let path = match worker.peers.span(src, pe) {
            Some(span) => AccessPath::Mapped(HostSpan::Mapped(span)),
            None => worker.access_path(OpKind::Put, src, pe)?,
        };
        match path {
            AccessPath::Mapped(span) if worker.is_on_host(dst) => {
                worker.own(dst).copy_from_span(span, src.bytes());
                Ok(())
            }
            path => {
                let from = RemoteRange {
                    target: src.into(),
                    pe,
                };
                Ok(worker.copy_by_path(path, dst.into(), from, false)?)
            }
        }
    }

    /// Copies a part of this PE's object to that of a PE that it maps, as a part of `whole` bytes that are copied at about
    /// the same time. The caller has checked both.
    pub(crate) fn copy_to(
        self,
        dst: Elements<u8>,
        src: Elements<u8>,
        pe: usize,
        whole: usize,
    ) -> Result<()> {
        let own = self.worker.own(src);
        if let Some(span) = self.worker.peers.span(dst, pe) {
            HostSpan::Mapped(span).copy_chunk_from_span(own, src.len(), whole);
            return Ok(());
        }
        let mut bytes = vec![0; src.len()];
        own.copy_to(&mut bytes);
        self.put_bytes(dst, &bytes, pe)
    }

    /// Copies pieces that do not overlap to this PE's own object. Transfers by lanes are in flight together.
    pub fn copy_pieces(
        self,
        dst: Destination,
        pieces: impl Iterator<Item = Result<TransferPiece>>,
    ) -> Result<()> {
        let (worker, object) = (self.worker, dst.object);
        if worker.is_on_host(object) || object.len() > HOST_CHUNK {
            return self.copy_each(dst, pieces);
        }
        // Few bytes that are all of an object on a GPU get there at once.
        let pieces: Vec<TransferPiece> = pieces.collect::<Result<_>>()?;
        let all: usize = pieces.iter().map(|piece| piece.into.len()).sum();
        if all < object.len() || !pieces.iter().all(|piece| worker.is_on_host(piece.from)) {
            return self.copy_each(dst, pieces.into_iter().map(Ok));
        }
        let mut bytes = vec![0; all];
        for piece in pieces {
            if let Some(part) = bytes.get_mut(piece.into) {
                self.get_bytes(part, piece.from, piece.pe)?;
            }
        }
        self.put_bytes(object, &bytes, worker.engine.me)?;
        self.make_visible(object)
    }

    /// The same, each piece to its place by itself.
    fn copy_each(
        self,
        dst: Destination,
        mut pieces: impl Iterator<Item = Result<TransferPiece>>,
    ) -> Result<()> {
        let worker = self.worker;
        let (on_host, me) = (worker.is_on_host(dst.object), worker.engine.me);
        let whole = dst.object.len().saturating_mul(dst.writers);
        let mut by_lanes = Vec::new();
        let begun = pieces.try_for_each(|piece| {
            let TransferPiece { into, from, pe } = piece?;
            let dst = dst.object.range(into)?;
            if from.is_empty() {
                return Ok(());
            }
            if let Some(span) = worker.peers.span(from, pe).filter(|_| on_host) {
                worker
                    .own(dst)
                    .copy_chunk_from_span(HostSpan::Mapped(span), from.len(), whole);
                return Ok(());
            }
            match worker.access_path(OpKind::Put, from, pe)? {
                path @ AccessPath::Lane(via, _) if on_host || (pe != me && via.carries_gpu()) => {
                    by_lanes.push(pe);
                    worker
                        .copy_by_path(
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
            begun.and(worker.quiet_lanes(Some(&by_lanes)).map_err(Error::from))
        };
        completed.inspect_err(|error| worker.abandon_lanes(error, Some(&by_lanes)))
    }
}
