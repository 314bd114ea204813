//! Operations on streams: the GPU performs them when the stream comes to them, in its order. The host
//! queues them and goes on.
//!
//! Both sides are GPU memory, of PEs whose memory this PE's GPU loads and stores itself (one NVLink or
//! PCIe peer-to-peer domain, or one GPU that several PEs share); towards others they are refused with
//! [`Error::Unreachable`], and the calls without a stream, which go by any route, serve.
//!
//! # Order and visibility
//!
//! What is on one stream is performed and visible at its target in the stream's order, before what comes
//! later on that stream: on a stream a fence is nothing, and [`quiet_on_stream`](World::quiet_on_stream)
//! has nothing to wait for (M17, M19, M24). Two streams are ordered by events. What a stream does comes
//! before what the host does after [`synchronize`](World::synchronize), and what the host has put before
//! what it then queues once it has called [`quiet`](crate::Context::quiet), which knows nothing of streams
//! otherwise. A wait on a stream acquires: what comes later on the stream sees what the writer ordered
//! before the word (M23).
//!
//! Atomics, signals and waits on a word are exclusive against each other, as the calls without a stream
//! are, for the GPU performs both (M28, M29). Put-with-signal of up to 4 KiB, collective calls' folds and
//! signals are kernels, which store each aligned word of up to 8 bytes whole; other data go by copy
//! engines, of which CUDA does not promise it: set a flag that others look at by a signal.
//!
//! # Graphs
//!
//! All of them but [`synchronize`](World::synchronize) may be captured into a CUDA graph and replayed, the
//! collective ones included, by as many PEs as often. A graph must not be launched any more once its world
//! has ended, and one with a barrier or a collective call not after a PE was lost.
//!
//! # Failure
//!
//! A PE that is lost ends every wait and barrier on the streams of the others: what follows on the stream is
//! done, on data that may be incomplete, and [`synchronize`](World::synchronize) and every later call on a
//! stream give [`Error::PeerLost`]. Who goes on synchronizes every stream, then calls
//! [`acknowledge_lost`](World::acknowledge_lost), after which waits wait again.

mod collectives;
pub(crate) mod gpu_streams;
pub(crate) mod gpu_teardown;
mod slice;

use std::time::Duration;

use bytemuck::Pod;
use oxshmem_cuda::{Compare, Context, DevicePtr, Stream};
use oxshmem_transport::{MemoryKind, SignalOp};

pub use self::collectives::GpuNumber;
use self::gpu_streams::{GpuStreams, Told};
pub use self::slice::GpuView;
use crate::atomics::Word;
use crate::hang::WaitedFor;
use crate::wait::{WaitReason, WaitsOn};
use crate::wait_until::Waitable;
use crate::{Cmp, CopySource, CopyTarget, Error, Result, Sym, World};

/// How long a stream whose waits were ended may take for the rest.
pub(crate) const RUN_OUT: Duration = Duration::from_secs(30);
/// Up to this many bytes a put and its signal are one kernel; beyond, the copy engine is faster.
const ONE_LAUNCH: usize = 4096;

impl World {
    /// The context of this PE's GPU; none if it has no CUDA heap.
    #[must_use]
    pub fn gpu_context(&self) -> Option<&Context> {
        self.shared
            .gpu_streams
            .as_ref()
            .map(|side| &side.gpu.context)
    }

    /// Where this PE's GPU loads and stores an object of `pe` itself, for kernels (M8); none if it cannot.
    /// The address is good for `sym.len()` elements, until the world ends, and is no symmetric address.
    #[doc(alias = "nvshmem_ptr")]
    #[must_use]
    pub fn gpu_ptr<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<DevicePtr> {
        if self.kind_of(sym) != Some(MemoryKind::Cuda) {
            return None;
        }
        let side = self.shared.gpu_streams.as_ref()?;
        side.address(pe, sym.offset() as usize)
    }

    /// The GPU's side, where the stream is its.
    fn side(&self, call: &'static str, stream: &Stream) -> Result<&GpuStreams> {
        let side = self.gpu_side(call)?;
        if stream.context() != &side.gpu.context {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the stream is GPU {}'s, this PE's heap lies on GPU {}; make the stream with \
                     World::gpu_context",
                    stream.context().device().ordinal(),
                    side.gpu.context.device().ordinal()
                ),
            });
        }
        side.note_used();
        Ok(side)
    }

    /// [`side`](Self::side), for a call that queues something: not after a loss, when waits before it may
    /// have been ended.
    fn queueing_side(&self, call: &'static str, stream: &Stream) -> Result<&GpuStreams> {
        let side = self.side(call, stream)?;
        self.refuse_after_loss(call, WaitsOn::AnyPeer)?;
        Ok(side)
    }

    /// Where an object of a PE is, for this PE's GPU.
    fn on_stream<T: Pod>(
        &self,
        call: &'static str,
        side: &GpuStreams,
        sym: Sym<T>,
        pe: usize,
    ) -> Result<DevicePtr> {
        self.check(call, sym, sym.len(), pe)?;
        if self.kind_of(sym) != Some(MemoryKind::Cuda) {
            return Err(Error::Argument {
                call,
                what: "the object lies in host memory; on streams both sides are GPU memory: \
                       allocate it by alloc_on(MemoryKind::Cuda, ..)"
                    .into(),
            });
        }
        if self.shared.liveness.is_lost(pe) {
            return Err(Error::PeerLost { call, pe });
        }
        match side.address(pe, sym.offset() as usize) {
            Some(at) => Ok(at),
            None => Err(self.not_mapped(call, pe)),
        }
    }

    #[cold]
    fn not_mapped(&self, call: &'static str, pe: usize) -> Error {
        let route = self.shared.routes.explain(pe).and_then(|told| told.gpu);
        let why = route.map(|route| route.refusals()).unwrap_or_default();
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
        side: &GpuStreams,
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
        self.on_stream(call, side, word, pe)
    }

    /// Puts `src`, of this PE's GPU, to `dst` on PE `pe`, when the stream comes to it. `src` is a
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
        let side = self.queueing_side(CALL, stream)?;
        let to = self.on_stream(CALL, side, dst, pe)?;
        let CopySource(src) = src.into();
        self.with_near(CALL, side, dst, src, stream, |from| {
            self.copy_on_stream(CALL, to, from, dst.bytes(), stream)
        })
    }

    /// Gets `src` of PE `pe` into `dst`, of this PE's GPU, when the stream comes to it (M16). `dst` is a
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
        let side = self.queueing_side(CALL, stream)?;
        let from = self.on_stream(CALL, side, src, pe)?;
        let CopyTarget(dst) = dst.into();
        self.with_near(CALL, side, src, dst, stream, |to| {
            self.copy_on_stream(CALL, to, from, src.bytes(), stream)
        })
    }

    /// Puts `src` to `dst` on PE `pe`, then updates the signal word there: who sees its new value sees the
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
        let side = self.queueing_side(CALL, stream)?;
        let to = self.on_stream(CALL, side, dst, pe)?;
        let word = self.word_on_stream(CALL, side, signal, pe)?;
        let CopySource(src) = src.into();
        let bytes = dst.bytes();
        self.with_near(CALL, side, dst, src, stream, |from| {
            if bytes == 0 || bytes > ONE_LAUNCH || to == from {
                self.copy_on_stream(CALL, to, from, bytes, stream)?;
                return side.signal(CALL, stream, word, value, op);
            }
            let copy = (to, from, bytes);
            // SAFETY: both ranges and the word are mapped for the GPU while the world lives, or a slice's,
            // which is freed in the order of its own stream; what the program does to them meanwhile is
            // as with any put.
            let queued = unsafe {
                side.gpu
                    .kernels
                    .copy_signal(stream, copy, word, (value, op))
            };
            queued.told(CALL)
        })
    }

    /// Updates the signal word at PE `pe` when the stream comes to it: who sees its new value sees what this
    /// PE put to that PE on this stream before.
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
        let side = self.queueing_side(CALL, stream)?;
        let word = self.word_on_stream(CALL, side, signal, pe)?;
        side.signal(CALL, stream, word, value, op)
    }

    /// Lets the stream go on when this PE's own word compares with `value` as wanted; a signal word, too.
    /// What follows on the stream sees what the writer ordered before (M23).
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
        let side = self.queueing_side(CALL, stream)?;
        let at = self.word_on_stream(CALL, side, word, self.my_pe())?;
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
            side.gpu
                .kernels
                .wait(stream, at, T::WIDTH, comparison, side.stop())
        };
        queued.told(CALL)?;
        self.see_gpu_data_on_stream(CALL, side, stream)
    }

    /// Behind a wait: what NICs have placed before is visible to what follows, where that needs a flush
    /// (M27).
    fn see_gpu_data_on_stream(
        &self,
        call: &'static str,
        side: &GpuStreams,
        stream: &Stream,
    ) -> Result<()> {
        if !self.shared.gpu_flushes.are_needed() {
            return Ok(());
        }
        let Some((_, epoch)) = side.barrier_words() else {
            return Ok(());
        };
        // SAFETY: a word of the library's in this PE's heap, which is mapped while the world lives. A
        // count is never below 0, so that the wait ends at once, and flushes.
        let queued = unsafe { stream.wait_value64(epoch, Compare::Geq, 0, true) };
        queued.told(call)
    }

    /// Completes what this PE has put on this stream, before what follows on it (M19). Stream order does
    /// that, so that nothing is queued: it is here for programs that want to say so.
    #[doc(alias = "nvshmemx_quiet_on_stream")]
    pub fn quiet_on_stream(&self, stream: &Stream) -> Result<()> {
        self.side("quiet_on_stream", stream).map(drop)
    }

    /// Waits until all work on the stream is done: what this PE's operations on it have placed is visible
    /// to their targets, what others' signals announced is visible here.
    ///
    /// # Errors
    ///
    /// [`Error::PeerLost`] if a PE is lost that the stream may be waiting for: the waits on this world's
    /// streams have been ended then. [`Error::Timeout`] after `OXSHMEM_TIMEOUT`; the work goes on.
    /// [`Error::Gpu`] for what earlier work has done wrong.
    pub fn synchronize(&self, stream: &Stream) -> Result<()> {
        const CALL: &str = "synchronize";
        let side = self.side(CALL, stream)?;
        self.run_out(CALL, side, stream, WaitsOn::AnyPeer)
    }

    /// Queues a copy between places of mapped heaps and buffers.
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
        queued.told(call)
    }
}

impl crate::Context<'_> {
    /// The GPU's side, if there is one.
    pub(crate) fn gpu_side(&self, call: &'static str) -> Result<&GpuStreams> {
        self.shared.gpu_streams.as_deref().ok_or_else(|| Error::Argument {
            call,
            what: "this world has no CUDA heap; set OXSHMEM_CUDA_SYMMETRIC_SIZE, or join with Builder::gpu"
                .into(),
        })
    }

    /// Waits until all work on a stream is done, which may wait for what `needs` says.
    pub(crate) fn run_out(
        &self,
        call: &'static str,
        side: &GpuStreams,
        stream: &Stream,
        needs: WaitsOn,
    ) -> Result<()> {
        let look = || {
            let idle = side.gpu.context.beside_captures(|| stream.is_idle());
            match idle.told(call) {
                Ok(false) => None,
                done => Some(done.map(drop)),
            }
        };
        let tell = || (WaitedFor::Any, "the work on a stream".into());
        let reason = WaitReason {
            call,
            needs,
            describe: &tell,
        };
        let waited = self.wait(&reason, None, look);
        if let Err(Error::PeerLost { .. }) = &waited {
            // Its waits have been ended: it runs out.
            stream.synchronize_within(RUN_OUT).told(call)?;
        }
        waited??;
        // It had run out before this call looked.
        self.refuse_after_loss(call, needs)
    }

    /// Refuses where a loss may have ended waits on streams, or would be waited for.
    fn refuse_after_loss(&self, call: &'static str, needs: WaitsOn) -> Result<()> {
        match self.shared.lost_among(needs) {
            Some(pe) => Err(Error::PeerLost { call, pe }),
            None => Ok(()),
        }
    }
}
