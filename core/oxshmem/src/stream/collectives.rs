//! Collective calls on streams, over all PEs.
//!
//! Every PE queues the same calls in the same order, on streams of its choice that are ordered among each other. That is not
//! checked (M36), since the host has gone on when they run.

use bytemuck::Pod;
use oxshmem_cuda::{DevicePtr, Stream};
use oxshmem_engine::progress::reason::WaitsOn;

use crate::error::{Error, Result};
use crate::stream::gpu_streams::{GpuStreams, InCall};
use crate::sym::Sym;
use crate::world::World;
use oxshmem_collectives::args::check_apart;
use oxshmem_transport::Fold;

mod sealed {
    pub trait Named {
        const NAME: &'static str;
        const INTEGER: bool;
    }
}

/// A type that [`World::reduce_on_stream`] takes: integers of 8 to 64 bits, `half::f16` and `half::bf16`,
/// `f32` and `f64`.
pub trait GpuNumber: Pod + sealed::Named {}

macro_rules! numbers {
    ($($type:ty: $name:literal, $integer:literal;)*) => {$(
        impl sealed::Named for $type {
            const NAME: &'static str = $name;
            const INTEGER: bool = $integer;
        }
        impl GpuNumber for $type {}
    )*};
}
numbers! {
    i8: "i8", true; i16: "i16", true; i32: "i32", true; i64: "i64", true;
    u8: "u8", true; u16: "u16", true; u32: "u32", true; u64: "u64", true;
    half::f16: "f16", false; half::bf16: "bf16", false; f32: "f32", false; f64: "f64", false;
}
impl World {
    /// Completes this PE's puts on this stream; later work on it begins when all PEs' streams have arrived
    /// (M24).
    #[doc(alias = "nvshmemx_barrier_all_on_stream")]
    pub fn barrier_all_on_stream(&self, stream: &Stream) -> Result<()> {
        self.barrier_on_stream("barrier_all_on_stream", stream)
    }

    /// As [`barrier_all_on_stream`](Self::barrier_all_on_stream): on one stream there is nothing that a
    /// barrier would have to complete beyond it.
    #[doc(alias = "nvshmemx_sync_all_on_stream")]
    pub fn sync_all_on_stream(&self, stream: &Stream) -> Result<()> {
        self.barrier_on_stream("sync_all_on_stream", stream)
    }

    fn barrier_on_stream(&self, call: &'static str, stream: &Stream) -> Result<()> {
        let streams = self.gpu_streams_of_all(call, stream)?;
        self.arrive_on_stream(call, streams, stream)
    }

    /// Copies `src` of PE `root` to `dst` of every PE, the root included. Both have the same length; they
    /// are the same object or do not overlap.
    #[doc(alias = "nvshmemx_broadcastmem_on_stream")]
    pub fn broadcast_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        root: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "broadcast_on_stream";
        let streams = self.gpu_streams_of_all(CALL, stream)?;
        self.check_pair(CALL, dst, src)?;
        // The root's number, too, is checked on every PE.
        let from = self.on_stream(CALL, streams, src, root)?;
        let to = self.on_stream(CALL, streams, dst, self.my_pe())?;
        self.between_arrivals(CALL, streams, stream, || {
            self.copy_on_stream(CALL, to, from, dst.bytes(), stream)
        })
    }

    /// Puts every PE's `src`, one behind the other in the order of the PEs, into `dst` of every PE, which
    /// is as many times as long. They do not overlap.
    #[doc(alias = "nvshmemx_fcollectmem_on_stream")]
    pub fn fcollect_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "fcollect_on_stream";
        let streams = self.gpu_streams_of_all(CALL, stream)?;
        let each = src.len();
        self.team().check_blocks(CALL, dst, each)?;
        check_apart(CALL, dst.into(), src.into())?;
        let from = self.on_stream(CALL, streams, src, self.my_pe())?;
        let mine = self.my_pe() * each;
        let place = dst.range(mine..mine + each)?;
        self.between_arrivals(CALL, streams, stream, || {
            self.give_on_stream(CALL, streams, stream, |_| Ok((place, from)))
        })
    }

    /// Puts the `i`-th of as many equal parts of `src` as there are PEs to PE `i`, where it is the part of
    /// `dst` with this PE's number. Both have the same length, and do not overlap.
    #[doc(alias = "nvshmemx_alltoallmem_on_stream")]
    pub fn alltoall_on_stream<T: Pod>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "alltoall_on_stream";
        let streams = self.gpu_streams_of_all(CALL, stream)?;
        self.check_pair(CALL, dst, src)?;
        check_apart(CALL, dst.into(), src.into())?;
        let each = src.len() / self.n_pes();
        self.team().check_blocks(CALL, dst, each)?;
        let mine = self.my_pe() * each;
        let place = dst.range(mine..mine + each)?;
        self.between_arrivals(CALL, streams, stream, || {
            self.give_on_stream(CALL, streams, stream, |pe| {
                let part = src.range(pe * each..(pe + 1) * each)?;
                Ok((place, self.on_stream(CALL, streams, part, self.my_pe())?))
            })
        })
    }

    /// Folds `src` of all PEs, element by element, into `dst` of every PE. Both have the same length; they
    /// are the same object or do not overlap.
    ///
    /// Elements are folded in the order of the PEs, each by one PE, so every PE gets the same bits. Integers
    /// wrap; `f16` and `bf16` are folded in `f32` and rounded once. `And`, `Or` and `Xor` are of integers, and
    /// refused for other types.
    #[doc(alias = "nvshmemx_int_sum_reduce_on_stream")]
    pub fn reduce_on_stream<T: GpuNumber>(
        &self,
        dst: Sym<T>,
        src: Sym<T>,
        fold: Fold,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "reduce_on_stream";
        let streams = self.gpu_streams_of_all(CALL, stream)?;
        self.check_pair(CALL, dst, src)?;
        if !T::INTEGER && fold.is_bitwise() {
            return Err(Error::Argument {
                call: CALL,
                what: format!("{fold:?} is of integers, and {} is none", T::NAME),
            });
        }
        self.on_stream(CALL, streams, src, self.my_pe())?;
        // Each PE folds one part, and puts it to all: nobody else reads or writes the source of this PE's part,
        // so that it may be the destination.
        let (pes, me) = (self.n_pes(), self.my_pe());
        let cut = |pe: usize| (src.len() as u128 * pe as u128 / pes as u128) as usize;
        let (start, end) = (cut(me), cut(me + 1));
        let (mine, source) = (dst.range(start..end)?, src.range(start..end)?);
        let out = self.on_stream(CALL, streams, mine, me)?;
        let Some(heaps) = streams.heaps_table() else {
            return Err(self.not_mapped(CALL, me));
        };
        self.between_arrivals(CALL, streams, stream, || {
            if start < end {
                let sources = (heaps, pes as u32, source.offset());
                let elements = (end - start) as u64;
                // SAFETY: the table and all heaps are mapped for the GPU while the world lives; the places
                // are aligned for the type, and `out` is a source or apart, as was checked.
                let queued = unsafe {
                    streams
                        .reductions
                        .reduce(stream, (fold, T::NAME), out, sources, elements)
                };
                queued.in_call(CALL)?;
            }
            self.give_on_stream(CALL, streams, stream, |_| Ok((mine, out)))
        })
    }

    /// The GPU of this world, if all PEs' GPUs reach each other and all PEs live.
    fn gpu_streams_of_all(&self, call: &'static str, stream: &Stream) -> Result<&GpuStreams> {
        let streams = self.gpu_streams_for(call, stream)?;
        if let Err(why) = &streams.collective {
            return Err(Error::Unreachable {
                call,
                from: self.my_pe(),
                pe: streams.unreached().unwrap_or(self.my_pe()),
                why: format!("{why}; use the calls without a stream"),
            });
        }
        // Acknowledged or not: it would be waited for.
        self.refuse_after_loss(call, WaitsOn::Everyone)?;
        Ok(streams)
    }

    /// Queues an arrival: the stream goes on when all PEs' streams have arrived.
    fn arrive_on_stream(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        stream: &Stream,
    ) -> Result<()> {
        let Some((table, epoch)) = streams.barrier_words() else {
            return Err(self.not_mapped(call, self.my_pe()));
        };
        let members = (self.n_pes() as u32, self.my_pe() as u32);
        // SAFETY: the table, the words it names and the epoch are the library's own in heaps that are
        // mapped for the GPU while the world lives; the ending words live as long, and the world waits for
        // its streams before they are freed.
        let queued = unsafe {
            streams
                .gpu
                .kernels
                .barrier(stream, table, members, epoch, streams.stop())
        };
        queued.in_call(call)
    }

    /// Queues work between two arrivals: all have arrived before it, and none goes on before it is done.
    fn between_arrivals(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        stream: &Stream,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.arrive_on_stream(call, streams, stream)?;
        queue()?;
        self.arrive_on_stream(call, streams, stream)
    }

    /// Puts to each PE the object that `part` gives, from the address that it gives.
    /// It begins with the next PE, so that not all put to one at the same time.
    fn give_on_stream<T: Pod>(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        stream: &Stream,
        part: impl Fn(usize) -> Result<(Sym<T>, DevicePtr)>,
    ) -> Result<()> {
        let (pes, me) = (self.n_pes(), self.my_pe());
        for pe in (1..=pes).map(|step| (me + step) % pes) {
            let (place, from) = part(pe)?;
            let to = self.on_stream(call, streams, place, pe)?;
            self.copy_on_stream(call, to, from, place.bytes(), stream)?;
        }
        Ok(())
    }
}
