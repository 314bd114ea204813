//! Operations on streams: the GPU performs them in the stream's order, when the stream reaches them. The host
//! queues them and goes on.
//!
//! The memory on both sides is GPU memory, of PEs whose memory this PE's GPU loads and stores itself (one NVLink or
//! PCIe peer-to-peer domain, or one GPU that several PEs share); towards others they are refused with
//! [`Error::Unreachable`]; the calls without a stream, which use any route, work there.
//!
//! # Order and visibility
//!
//! Operations on one stream are performed and visible at their targets in the stream's order, before later work on
//! that stream: a fence on a stream would do nothing, and [`quiet_on_stream`](World::quiet_on_stream)
//! has nothing to wait for (M17, M19, M24). Two streams are ordered by events. The work of a stream comes
//! before the host's operations after [`synchronize`](World::synchronize). The host's earlier puts come before
//! the work that it queues after a [`quiet`](crate::context::Context::quiet), which knows nothing of streams
//! otherwise. A wait on a stream acquires: later work on the stream sees the stores that the writer ordered
//! before the word (M23).
//!
//! Atomics, signals and waits on a word are exclusive against each other, and against the calls without a stream,
//! for the GPU performs both (M28, M29). Put-with-signal of up to 4 KiB, collective calls' folds and
//! signals are kernels, which store each aligned word of up to 8 bytes whole; copy engines move other data,
//! and CUDA does not promise that of them: set a flag that others read by a signal.
//!
//! # Graphs
//!
//! All of them but [`synchronize`](World::synchronize) may be captured into a CUDA graph and replayed, the
//! collective ones included, by as many PEs as often. A graph must not be launched any more once its world
//! has ended, and one with a barrier or a collective call not after a PE was lost.
//!
//! # Failure
//!
//! A PE that is lost ends every wait and barrier on the streams of the others: later work on the stream is
//! done, on data that may be incomplete, and [`synchronize`](World::synchronize) and every later call on a
//! stream give [`Error::PeerLost`]. A program that goes on synchronizes every stream, then calls
//! [`acknowledge_lost`](World::acknowledge_lost), after which waits wait again.

pub(crate) mod collectives;
pub(crate) mod gpu_streams;
pub(crate) mod gpu_teardown;
pub(crate) mod slice;

use bytemuck::Pod;
use oxshmem_cuda::{Compare, Context, DevicePtr, Stream};
use oxshmem_engine::error::Error as EngineError;
use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::reason::{WaitReason, WaitsOn};
use oxshmem_engine::route::table::refusals;
use oxshmem_transport::{MemoryKind, SignalOp};

use crate::atomics::Word;
use crate::copies::local_operand::{CopySource, CopyTarget};
use crate::error::{Error, Result};
use crate::stream::gpu_streams::{DRAIN_LIMIT, GpuStreams, InCall};
use crate::sym::Sym;
use crate::wait_until::{Cmp, Waitable};
use crate::world::World;

/// Up to this many bytes a put and its signal are one kernel; beyond, the copy engine is faster.
const ONE_LAUNCH: usize = 4096;

impl World {
    /// The context of this PE's GPU; none if it has no CUDA heap.
    #[doc(alias = "shmemx_cuda_device")]
    #[must_use]
    pub fn gpu_context(&self) -> Option<&Context> {
        self.pe
            .gpu_streams
            .as_ref()
            .map(|streams| &streams.gpu.context)
    }

    /// The address at which this PE's GPU loads and stores an object of `pe` itself, for kernels (M8); none if it cannot.
    /// The address is good for `sym.len()` elements, until the world ends, and is no symmetric address.
    #[doc(alias("nvshmem_ptr", "shmemx_cuda_ptr"))]
    #[must_use]
    pub fn gpu_ptr<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<DevicePtr> {
        if self.kind_of(sym) != Some(MemoryKind::Cuda) {
            return None;
        }
        let streams = self.pe.gpu_streams.as_ref()?;
        if pe == self.my_pe() {
            let own = self.worker.local_address(sym.into());
            return Some(DevicePtr::from_raw(own as u64));
        }
        streams.address(pe, sym.offset() as usize)
    }

    /// The GPU of this world, if the stream belongs to it.
    fn gpu_streams_for(&self, call: &'static str, stream: &Stream) -> Result<&GpuStreams> {
        let streams = self.gpu_streams(call)?;
        if stream.context() != &streams.gpu.context {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the stream is GPU {}'s, this PE's heap lies on GPU {}; make the stream with \
                     World::gpu_context",
                    stream.context().device().ordinal(),
                    streams.gpu.context.device().ordinal()
                ),
            });
        }
        streams.note_used();
        Ok(streams)
    }

    /// [`gpu_streams_for`](Self::gpu_streams_for) a call that queues work: refused after a loss, when earlier waits may
    /// have been ended.
    fn gpu_streams_to_queue(&self, call: &'static str, stream: &Stream) -> Result<&GpuStreams> {
        let streams = self.gpu_streams_for(call, stream)?;
        self.refuse_after_loss(call, WaitsOn::AnyPeer)?;
        Ok(streams)
    }

    /// The address of a PE's object for this PE's GPU.
    fn on_stream<T: Pod>(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        sym: Sym<T>,
        pe: usize,
    ) -> Result<DevicePtr> {
        self.in_call(call).check(sym, sym.len(), pe)?;
        if self.kind_of(sym) != Some(MemoryKind::Cuda) {
            return Err(Error::Argument {
                call,
                what: "the object lies in host memory; on streams both sides are GPU memory: \
                       allocate it by alloc_on(MemoryKind::Cuda, ..)"
                    .into(),
            });
        }
        if self.worker.engine.liveness.is_lost(pe) {
            return Err(Error::PeerLost { call, pe });
        }
        match streams.address(pe, sym.offset() as usize) {
            Some(at) => Ok(at),
            None => Err(self.not_mapped(call, pe)),
        }
    }

    #[cold]
    fn not_mapped(&self, call: &'static str, pe: usize) -> Error {
        let route = self
            .worker
            .engine
            .routes
            .explain(pe)
            .and_then(|routes| routes.gpu);
        let why = route.as_ref().map(refusals).unwrap_or_default();
        Error::Unreachable {
            call,
            from: self.my_pe(),
            pe,
            why: format!(
                "its memory is not mapped for this PE's GPU ({why}); use the calls without a stream"
            ),
        }
    }

    /// One word of a PE, for a signal or a wait.
    fn word_on_stream<T: Pod>(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        word: Sym<T>,
        pe: usize,
    ) -> Result<DevicePtr> {
        if word.len() != 1 {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the word is given as {} elements; give one, by Sym::at",
                    word.len()
                ),
            });
        }
        self.on_stream(call, streams, word, pe)
    }

    /// Puts `src`, of this PE's GPU, to `dst` on PE `pe`, when the stream reaches it. `src` is a
    /// [`Sym`], or a slice of cudarc's, as long as `dst`; it is not changed before that (M15).
    #[doc(alias = "nvshmemx_putmem_on_stream")]
    pub fn put_on_stream<'a, T: Pod>(
        &self,
        dst: Sym<T>,
        src: impl Into<CopySource<'a, T>>,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "put_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        let to = self.on_stream(CALL, streams, dst, pe)?;
        let CopySource(src) = src.into();
        self.with_local_operand(CALL, streams, dst, src, stream, |from| {
            self.copy_on_stream(CALL, to, from, dst.bytes(), stream)
        })
    }

    /// Gets `src` of PE `pe` into `dst`, of this PE's GPU, when the stream reaches it (M16). `dst` is a
    /// [`Sym`], or a slice of cudarc's, as long as `src`.
    #[doc(alias = "nvshmemx_getmem_on_stream")]
    pub fn get_on_stream<'a, T: Pod>(
        &self,
        dst: impl Into<CopyTarget<'a, T>>,
        src: Sym<T>,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "get_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        let from = self.on_stream(CALL, streams, src, pe)?;
        let CopyTarget(dst) = dst.into();
        self.with_local_operand(CALL, streams, src, dst, stream, |to| {
            self.copy_on_stream(CALL, to, from, src.bytes(), stream)
        })
    }

    /// Puts `src` to `dst` on PE `pe`, then updates the signal word there: a PE that sees its new value sees the
    /// data (M22). `signal` names one word, apart from `dst`.
    #[doc(alias = "nvshmemx_putmem_signal_on_stream")]
    #[expect(clippy::too_many_arguments, reason = "NVSHMEM's has these")]
    pub fn put_signal_on_stream<'a, T: Pod>(
        &self,
        dst: Sym<T>,
        src: impl Into<CopySource<'a, T>>,
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "put_signal_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        let to = self.on_stream(CALL, streams, dst, pe)?;
        let word = self.word_on_stream(CALL, streams, signal, pe)?;
        let CopySource(src) = src.into();
        let bytes = dst.bytes();
        self.with_local_operand(CALL, streams, dst, src, stream, |from| {
            if bytes == 0 || bytes > ONE_LAUNCH || to == from {
                self.copy_on_stream(CALL, to, from, bytes, stream)?;
                return streams.signal(CALL, stream, word, value, op);
            }
            let copy = (to, from, bytes);
            // SAFETY: both ranges and the word are mapped for the GPU while the world lives, or belong to a slice,
            // which is freed in the order of its own stream; the program's accesses to them meanwhile are
            // as with any put.
            let queued = unsafe {
                streams
                    .gpu
                    .kernels
                    .copy_signal(stream, copy, word, (value, op))
            };
            queued.in_call(CALL)
        })
    }

    /// Updates the signal word at PE `pe` when the stream reaches it: a PE that sees its new value sees this
    /// PE's earlier puts to that PE on this stream.
    #[doc(alias = "nvshmemx_signal_op_on_stream")]
    pub fn signal_on_stream(
        &self,
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "signal_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        let word = self.word_on_stream(CALL, streams, signal, pe)?;
        streams.signal(CALL, stream, word, value, op)
    }

    /// Lets the stream go on when this PE's own word compares with `value` as wanted; a signal word, too.
    /// Later work on the stream sees the stores that the writer ordered before (M23).
    #[doc(alias = "nvshmemx_int_wait_until_on_stream")]
    #[doc(alias = "nvshmemx_signal_wait_until_on_stream")]
    pub fn wait_until_on_stream<T: Waitable>(
        &self,
        word: Sym<T>,
        cmp: Cmp,
        value: T,
        stream: &Stream,
    ) -> Result<()> {
        const CALL: &str = "wait_until_on_stream";
        let streams = self.gpu_streams_to_queue(CALL, stream)?;
        let at = self.word_on_stream(CALL, streams, word, self.my_pe())?;
        let compare = match cmp {
            Cmp::Eq => 0,
            Cmp::Ne => 1,
            Cmp::Gt => 2,
            Cmp::Ge => 3,
            Cmp::Lt => 4,
            Cmp::Le => 5,
        };
        let signed = <T as Word>::NAME.starts_with('i');
        // SAFETY: the word lies in this PE's own heap, aligned for its type; the ending words live while
        // the world does, which waits for its streams before they are freed.
        let queued = unsafe {
            let comparison = (compare, value.bits(), signed);
            streams
                .gpu
                .kernels
                .wait(stream, at, T::WIDTH, comparison, streams.stop())
        };
        queued.in_call(CALL)?;
        self.see_gpu_data_on_stream(CALL, streams, stream)
    }

    /// Queued after a wait: makes earlier data of NICs visible to later work, where that needs a flush
    /// (M27).
    fn see_gpu_data_on_stream(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        stream: &Stream,
    ) -> Result<()> {
        if !self.worker.engine.gpu_flushes.are_needed() {
            return Ok(());
        }
        let Some((_, epoch)) = streams.barrier_words() else {
            return Ok(());
        };
        // SAFETY: a word of the library's in this PE's heap, which is mapped while the world lives. A
        // count is never below 0, so that the wait ends at once, and flushes.
        let queued = unsafe { stream.wait_value64(epoch, Compare::Geq, 0, true) };
        queued.in_call(call)
    }

    /// Completes this PE's puts on this stream, before later work on it (M19). Stream order does
    /// that, so that nothing is queued: the call is for programs that want to say so.
    #[doc(alias = "nvshmemx_quiet_on_stream")]
    pub fn quiet_on_stream(&self, stream: &Stream) -> Result<()> {
        self.gpu_streams_for("quiet_on_stream", stream).map(drop)
    }

    /// Waits until all work on the stream is done: the data of this PE's operations on it is visible
    /// at their targets, and data that others' signals announced is visible here.
    ///
    /// # Errors
    ///
    /// [`Error::PeerLost`] if a PE is lost that the stream may be waiting for: the waits on this world's
    /// streams have been ended then. [`Error::Timeout`] after `OXSHMEM_TIMEOUT`; the work goes on.
    /// [`Error::Gpu`] for a failure of earlier work.
    pub fn synchronize(&self, stream: &Stream) -> Result<()> {
        const CALL: &str = "synchronize";
        let streams = self.gpu_streams_for(CALL, stream)?;
        self.drain_stream(CALL, streams, stream, WaitsOn::AnyPeer)
    }

    /// Queues a copy between addresses of mapped heaps and buffers.
    fn copy_on_stream(
        &self,
        call: &'static str,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
        stream: &Stream,
    ) -> Result<()> {
        if to == from {
            return Ok(());
        }
        // SAFETY: both ranges lie in heaps that are mapped for the GPU while the world lives, or in a
        // buffer that is freed in the order of its own stream; ranges of one heap are the same or apart.
        let queued = unsafe { stream.copy(to, from, bytes) };
        queued.in_call(call)
    }
}

impl crate::context::Context<'_> {
    /// The GPU of this world, if it has one.
    pub(crate) fn gpu_streams(&self, call: &'static str) -> Result<&GpuStreams> {
        self.pe.gpu_streams.as_deref().ok_or_else(|| Error::Argument {
            call,
            what: "this world has no CUDA heap; set OXSHMEM_CUDA_SYMMETRIC_SIZE, or join with Builder::gpu"
                .into(),
        })
    }

    /// Waits until all work on a stream is done. That work may wait for the PEs that `needs` names.
    pub(crate) fn drain_stream(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        stream: &Stream,
        needs: WaitsOn,
    ) -> Result<()> {
        let poll = || {
            let idle = streams.gpu.context.beside_captures(|| stream.is_idle());
            match idle.in_call(call) {
                Ok(false) => None,
                done => Some(done.map(drop)),
            }
        };
        let describe = || (WaitedFor::Any, "the work on a stream".into());
        let reason = WaitReason {
            call,
            needs,
            describe: &describe,
        };
        let waited = self.worker.wait(&reason, None, poll);
        if let Err(EngineError::PeerLost { .. }) = &waited {
            // Its waits have been ended, so the rest finishes.
            stream.synchronize_within(DRAIN_LIMIT).in_call(call)?;
        }
        waited??;
        // It may have finished before this call polled.
        self.refuse_after_loss(call, needs)
    }

    /// Refuses where a loss may have ended waits on streams, or would be waited for.
    pub(crate) fn refuse_after_loss(&self, call: &'static str, needs: WaitsOn) -> Result<()> {
        match self.worker.engine.lost_among(needs) {
            Some(pe) => Err(Error::PeerLost { call, pe }),
            None => Ok(()),
        }
    }
}
