//! Operations on streams: the GPU performs them in the stream's order, when the stream reaches them. The host
//! queues them and goes on.
//!
//! The memory on both sides is GPU memory. A PE is *mapped* if this PE's GPU loads and stores its memory itself (one NVLink or
//! PCIe peer-to-peer domain, or one GPU that several PEs share). Operations towards other PEs are kernels of the
//! [device library](World::device_library), by which a thread of this process carries them out on any route. Unless the library is open,
//! they are refused with [`Error::Unreachable`](crate::Error::Unreachable).
//!
//! # Order and visibility
//!
//! Operations on one stream towards mapped PEs are performed and visible at their targets in the stream's order, before later work on
//! that stream: a fence on a stream would do nothing, and [`quiet_on_stream`](World::quiet_on_stream)
//! has nothing to wait for (M17, M19, M24). Towards a PE that is not mapped they are performed in the stream's order, as if a fence
//! lay between them (M17); nonblocking ones are not. They are complete at a quiet or a barrier on the stream, or at
//! [`synchronize`](World::synchronize) (M19, M25, G4). Two streams are ordered by events. The work of a stream comes
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
//! All of them but [`synchronize`](World::synchronize) and [`g_on_stream`](World::g_on_stream) may be captured into a CUDA graph and replayed, the
//! collective ones included, by as many PEs as often. A graph must not be launched any more once its world
//! has ended, and one with a barrier or a collective call not after a PE was lost.
//!
//! # Failure
//!
//! A PE that is lost ends every wait and barrier on the streams of the others: later work on the stream is
//! done, on data that may be incomplete, and [`synchronize`](World::synchronize) and every later call on a
//! stream give [`Error::PeerLost`](crate::Error::PeerLost). A program that goes on synchronizes every stream, then calls
//! [`acknowledge_lost`](World::acknowledge_lost), after which waits wait again.

pub(crate) mod addressed;
pub(crate) mod collectives;
pub(crate) mod gpu_streams;
pub(crate) mod gpu_teardown;
pub(crate) mod library_kernels;
pub(crate) mod members;
pub(crate) mod reach;
pub(crate) mod slice;
pub(crate) mod values;

use bytemuck::Pod;
use oxshmem_cuda::{Context, DevicePtr, Stream};
use oxshmem_engine::progress::reason::WaitsOn;
use oxshmem_transport::{MemoryKind, SignalOp};

use crate::copies::local_operand::{CopySource, CopyTarget};
use crate::error::Result;
use crate::stream::gpu_streams::InCall;
use crate::stream::library_kernels::AwaitedWords;
use crate::stream::reach::{Reach, compare_number, is_signed};
use crate::sym::Sym;
use crate::wait_until::{Cmp, Waitable};
use crate::world::World;

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
        let to = self.reach_on_stream(CALL, streams, dst, pe)?;
        let CopySource(src) = src.into();
        self.with_local_operand(CALL, streams, dst, src, stream, |from| {
            self.put_by(CALL, stream, to, (from, dst.bytes()), (pe, false))
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
        let from = self.reach_on_stream(CALL, streams, src, pe)?;
        let CopyTarget(dst) = dst.into();
        self.with_local_operand(CALL, streams, src, dst, stream, |to| {
            self.get_by(CALL, stream, (to, src.bytes()), from, (pe, false))
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
        let to = self.reach_on_stream(CALL, streams, dst, pe)?;
        let word = self.word_on_stream(CALL, streams, signal, pe)?;
        let CopySource(src) = src.into();
        let bytes = dst.bytes();
        self.with_local_operand(CALL, streams, dst, src, stream, |from| {
            let put = (to, from, bytes);
            self.put_signal_by(CALL, streams, stream, put, (word, value, op), (pe, false))
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
        self.signal_by(CALL, streams, stream, (word, value, op), pe)
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
        let (Reach::Mapped(at) | Reach::ByHost(_, at)) =
            self.word_on_stream(CALL, streams, word, self.my_pe())?;
        if let Some(library) = streams.library.get() {
            // It performs what other PEs' hosts ask of this GPU meanwhile.
            let awaited = AwaitedWords {
                words: at,
                count: 1,
                status: DevicePtr::from_raw(0),
                compare: compare_number(cmp),
                value: value.bits(),
                values: DevicePtr::from_raw(0),
                width: size_of::<T>() as u32,
                is_signed: is_signed::<T>(),
            };
            // SAFETY: the word lies in this PE's own heap, aligned for its type.
            return unsafe { library.wait_all(stream, awaited) }.in_call(CALL);
        }
        // SAFETY: the word lies in this PE's own heap, aligned for its type; the ending words live while
        // the world does, which waits for its streams before they are freed.
        let queued = unsafe {
            let comparison = (compare_number(cmp), value.bits(), is_signed::<T>());
            streams
                .gpu
                .kernels
                .wait(stream, at, T::WIDTH, comparison, streams.stop())
        };
        queued.in_call(CALL)?;
        self.see_gpu_data_on_stream(CALL, streams, stream)
    }

    /// Completes this PE's operations on this stream, before later work on it (M19). Where all PEs are mapped, stream order does
    /// that, and nothing is queued.
    #[doc(alias = "nvshmemx_quiet_on_stream")]
    pub fn quiet_on_stream(&self, stream: &Stream) -> Result<()> {
        const CALL: &str = "quiet_on_stream";
        let streams = self.gpu_streams_for(CALL, stream)?;
        match streams.library.get() {
            Some(library) => library.quiet(stream).in_call(CALL),
            None => Ok(()),
        }
    }

    /// Waits until all work on the stream is done: the data of this PE's operations on it is visible
    /// at their targets, and data that others' signals announced is visible here.
    ///
    /// # Errors
    ///
    /// [`Error::PeerLost`](crate::Error::PeerLost) if a PE is lost that the stream may be waiting for: the waits on this world's
    /// streams have been ended then. [`Error::Timeout`](crate::Error::Timeout) after `OXSHMEM_TIMEOUT`; the work goes on.
    /// [`Error::Gpu`](crate::Error::Gpu) for a failure of earlier work.
    pub fn synchronize(&self, stream: &Stream) -> Result<()> {
        const CALL: &str = "synchronize";
        let streams = self.gpu_streams_for(CALL, stream)?;
        self.drain_stream(CALL, streams, stream, WaitsOn::AnyPeer)?;
        self.complete_requests(CALL, streams)
    }
}
