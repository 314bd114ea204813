//! The way of a stream to a PE's GPU memory: by its addresses, where it is mapped, or by the device library, whose kernels ask the host.

use bytemuck::Pod;
use oxshmem_cuda::{Compare, DevicePtr, Stream};
use oxshmem_engine::error::Error as EngineError;
use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::reason::{WaitReason, WaitsOn};
use oxshmem_engine::route::table::refusals;
use oxshmem_transport::{MemoryKind, SignalOp};

use crate::atomics::Word;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::stream::gpu_streams::{DRAIN_LIMIT, FINALIZE_LIMIT, GpuStreams, InCall};
use crate::stream::library_kernels::{Copy, LibraryKernels};
use crate::sym::Sym;
use crate::wait_until::{Cmp, Waitable};

/// Up to this many bytes a put and its signal are one kernel; beyond, the copy engine is faster.
const ONE_LAUNCH: usize = 4096;

/// A symmetric object of a PE, as a stream of this PE reaches it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reach<'a> {
    /// By its address: it is mapped for this PE's GPU.
    Mapped(DevicePtr),
    /// By kernels of the device library. The address is that of this PE's own copy.
    ByHost(&'a LibraryKernels, DevicePtr),
}

impl Context<'_> {
    /// The GPU of this world, if the stream belongs to it.
    pub(super) fn gpu_streams_for(
        &self,
        call: &'static str,
        stream: &Stream,
    ) -> Result<&GpuStreams> {
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
    pub(super) fn gpu_streams_to_queue(
        &self,
        call: &'static str,
        stream: &Stream,
    ) -> Result<&GpuStreams> {
        let streams = self.gpu_streams_for(call, stream)?;
        self.refuse_after_loss(call, WaitsOn::AnyPeer)?;
        self.refuse_ended_waits(call, streams)?;
        Ok(streams)
    }

    /// The way to a PE's object.
    pub(super) fn reach_on_stream<'a, T: Pod>(
        &self,
        call: &'static str,
        streams: &'a GpuStreams,
        sym: Sym<T>,
        pe: usize,
    ) -> Result<Reach<'a>> {
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
        if let Some(at) = streams.address(pe, sym.offset() as usize) {
            return Ok(Reach::Mapped(at));
        }
        match streams.library.get() {
            Some(library) => Ok(Reach::ByHost(library, library.own(sym.offset()))),
            None => Err(self.not_mapped(call, pe)),
        }
    }

    /// The address of this PE's own object.
    pub(super) fn own_on_stream<T: Pod>(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        sym: Sym<T>,
    ) -> Result<DevicePtr> {
        match self.reach_on_stream(call, streams, sym, self.my_pe())? {
            Reach::Mapped(at) | Reach::ByHost(_, at) => Ok(at),
        }
    }

    /// The way to one word of a PE, for a signal or a wait.
    pub(super) fn word_on_stream<'a, T: Pod>(
        &self,
        call: &'static str,
        streams: &'a GpuStreams,
        word: Sym<T>,
        pe: usize,
    ) -> Result<Reach<'a>> {
        if word.len() != 1 {
            return Err(Error::Argument {
                call,
                what: format!(
                    "the word is given as {} elements; give one, by Sym::at",
                    word.len()
                ),
            });
        }
        self.reach_on_stream(call, streams, word, pe)
    }

    /// The kernels of the device library, for calls that need them whatever the paths are.
    pub(super) fn library_kernels<'a>(
        &self,
        call: &'static str,
        streams: &'a GpuStreams,
    ) -> Result<&'a LibraryKernels> {
        streams.library.get().ok_or_else(|| Error::Argument {
            call,
            what: "this call is a kernel of the device library; open World::device_library before, on all PEs".into(),
        })
    }

    /// Queues a put of `bytes` bytes.
    pub(super) fn put_by(
        &self,
        call: &'static str,
        stream: &Stream,
        to: Reach<'_>,
        (from, bytes): (DevicePtr, usize),
        (pe, is_nonblocking): (usize, bool),
    ) -> Result<()> {
        let (library, to) = match to {
            Reach::Mapped(to) => return self.copy_on_stream(call, to, from, bytes, stream),
            Reach::ByHost(library, to) => (library, to),
        };
        let copy = match is_nonblocking {
            true => Copy::PutNbi,
            false => Copy::Put,
        };
        // SAFETY: the object was checked; the source is this PE's memory for the GPU, which the program leaves until the put is done.
        let queued = unsafe { library.copy(stream, copy, (to, from, bytes), pe) };
        queued.in_call(call)
    }

    /// Queues a get of `bytes` bytes.
    pub(super) fn get_by(
        &self,
        call: &'static str,
        stream: &Stream,
        (to, bytes): (DevicePtr, usize),
        from: Reach<'_>,
        (pe, is_nonblocking): (usize, bool),
    ) -> Result<()> {
        let (library, from) = match from {
            Reach::Mapped(from) => return self.copy_on_stream(call, to, from, bytes, stream),
            Reach::ByHost(library, from) => (library, from),
        };
        let copy = match is_nonblocking {
            true => Copy::GetNbi,
            false => Copy::Get,
        };
        // SAFETY: the object was checked; the destination is this PE's memory for the GPU, which the program leaves until the get is done.
        let queued = unsafe { library.copy(stream, copy, (to, from, bytes), pe) };
        queued.in_call(call)
    }

    #[cold]
    pub(super) fn not_mapped(&self, call: &'static str, pe: usize) -> Error {
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
                "its memory is not mapped for this PE's GPU ({why}); open World::device_library on all PEs, or use the calls without a stream"
            ),
        }
    }

    /// Queued after a wait: makes earlier data of NICs visible to later work, where that needs a flush
    /// (M27).
    pub(super) fn see_gpu_data_on_stream(
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

    /// Queues a copy between addresses of mapped heaps and buffers.
    pub(super) fn copy_on_stream(
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

    /// The GPU of this world, if it has one.
    pub(crate) fn gpu_streams(&self, call: &'static str) -> Result<&GpuStreams> {
        self.pe.gpu_streams.as_deref().ok_or_else(|| Error::Argument {
            call,
            what: match &self.pe.no_gpu_heap {
                Some(why) => format!("this world has no CUDA heap: {why}"),
                None => "this world has no CUDA heap; set OXSHMEM_CUDA_SYMMETRIC_SIZE, or join with Builder::gpu".into(),
            },
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
            // Its waits have been ended, so the rest finishes. What it has asked of the host uses no memory from here on.
            stream.synchronize_within(DRAIN_LIMIT).in_call(call)?;
            if let Some(ring) = streams.ring() {
                ring.quiet();
            }
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

    /// Queues a put of `bytes` bytes, and the signal behind it.
    pub(super) fn put_signal_by(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        stream: &Stream,
        (to, from, bytes): (Reach<'_>, DevicePtr, usize),
        signal: (Reach<'_>, u64, SignalOp),
        (pe, is_nonblocking): (usize, bool),
    ) -> Result<()> {
        let (word, value, op) = signal;
        let queued = match (to, word) {
            (Reach::Mapped(to), Reach::Mapped(_))
                if bytes == 0 || bytes > ONE_LAUNCH || to == from =>
            {
                self.copy_on_stream(call, to, from, bytes, stream)?;
                return self.signal_by(call, streams, stream, signal, pe);
            }
            (Reach::Mapped(to), Reach::Mapped(word)) => {
                let copy = (to, from, bytes);
                // SAFETY: both ranges and the word are mapped for the GPU while the world lives, or belong to a slice,
                // which is freed in the order of its own stream; the program's accesses to them meanwhile are
                // as with any put.
                unsafe {
                    streams
                        .gpu
                        .kernels
                        .copy_signal(stream, copy, word, (value, op))
                }
            }
            (Reach::ByHost(library, to), Reach::ByHost(_, word)) => {
                let (copy, signal) = ((to, from, bytes), (word, value, op));
                // SAFETY: the objects were checked; the source is this PE's memory for the GPU, which the program leaves until the put
                // is done.
                unsafe { library.put_signal(stream, copy, signal, pe, is_nonblocking) }
            }
            // Both are objects of one PE.
            _ => return Err(self.not_mapped(call, pe)),
        };
        queued.in_call(call)
    }

    /// Queues a signal's update.
    pub(super) fn signal_by(
        &self,
        call: &'static str,
        streams: &GpuStreams,
        stream: &Stream,
        (word, value, op): (Reach<'_>, u64, SignalOp),
        pe: usize,
    ) -> Result<()> {
        match word {
            Reach::Mapped(word) => streams.signal(call, stream, word, value, op),
            Reach::ByHost(library, word) => {
                // SAFETY: the word was checked.
                unsafe { library.signal(stream, (word, value, op), pe) }.in_call(call)
            }
        }
    }

    /// Completes what this GPU's finished work has asked of the host.
    ///
    /// # Errors
    ///
    /// The first failure of a request.
    pub(super) fn complete_requests(&self, call: &'static str, streams: &GpuStreams) -> Result<()> {
        let Some(ring) = streams.ring() else {
            return self.refuse_ended_waits(call, streams);
        };
        let quiet = ring.ask();
        let describe = || (WaitedFor::Any, "operations of kernels by the host".into());
        let reason = WaitReason {
            call,
            needs: WaitsOn::AnyPeer,
            describe: &describe,
        };
        let poll = || ring.is_quiet(quiet).then_some(());
        let waited = self.worker.wait(&reason, None, poll);
        if let Some(why) = ring.failure() {
            self.refuse_after_loss(call, WaitsOn::AnyPeer)?;
            return Err(Error::Gpu { call, why });
        }
        waited?;
        self.refuse_ended_waits(call, streams)
    }

    /// Refuses where waits of streams and kernels were ended, and no PE is lost: by a kernel's bad call or deadline, or a request that
    /// failed.
    fn refuse_ended_waits(&self, call: &'static str, streams: &GpuStreams) -> Result<()> {
        if streams.stop_word.value() == 0 {
            return Ok(());
        }
        self.refuse_after_loss(call, WaitsOn::AnyPeer)?;
        Err(Error::Gpu {
            call,
            why: "the waits of this PE's kernels and streams were ended: DeviceLibrary::check has the cause; they wait again after \
                  DeviceLibrary::resume"
                .into(),
        })
    }

    /// Completes what streams ask of the host before the end of the world: waits for their work, as long as that may take.
    pub(crate) fn drain_requests(&self, call: &'static str, streams: &GpuStreams) -> Result<()> {
        let Some(ring) = streams.ring().filter(|_| streams.is_used()) else {
            return Ok(());
        };
        streams.drained_within(call, FINALIZE_LIMIT)?;
        ring.quiet();
        match ring.failure() {
            Some(why) => Err(Error::Gpu { call, why }),
            None => Ok(()),
        }
    }
}

/// A comparison's number for kernels.
pub(super) fn compare_number(cmp: Cmp) -> u32 {
    match cmp {
        Cmp::Eq => 0,
        Cmp::Ne => 1,
        Cmp::Gt => 2,
        Cmp::Ge => 3,
        Cmp::Lt => 4,
        Cmp::Le => 5,
    }
}

/// Whether kernels compare a type's words as signed numbers.
pub(super) fn is_signed<T: Waitable>() -> bool {
    <T as Word>::NAME.starts_with('i')
}
