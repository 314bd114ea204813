//! The GPU of a world: its context, its kernels, the mappings of every PE's heap for it,
//! and the library's own words in GPU memory.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oxshmem_cuda::{Context, DevicePtr, Pinned, PinnedOptions, Stream, StreamOptions};
use oxshmem_device::{Reductions, Stop};
use oxshmem_device_library::fault::BadCall;
use oxshmem_device_library::layout::{COMPLETE, Fault};
use oxshmem_engine::peer::mapped_table::OnGpu;
use oxshmem_transport::SignalOp;

use crate::device::ring_state::RingQuiet;
use crate::error::{Error, Result};
use crate::gpu::cuda::device::Gpu;
use crate::stream::library_kernels::LibraryKernels;
use crate::sym::Sym;

/// The longest time that a stream whose waits were ended may take for the rest.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// The longest time that the first writes to this PE's own words may take.
const INIT_LIMIT: Duration = Duration::from_secs(20);
/// The longest time that work on streams may take after all PEs have reached the world's end.
pub(super) const FINALIZE_LIMIT: Duration = Duration::from_secs(60);
const WORD: usize = size_of::<u64>();
/// The call that ends a world.
pub(super) const FINALIZE: &str = "finalize";

/// The word that ends the waits of this world's streams and kernels, and behind it the record of a kernel's bad call,
/// in page-locked memory.
#[derive(Debug)]
pub(crate) struct StopWord {
    memory: Pinned,
}

/// The place of the record, behind the word.
const FAULT: usize = 64;

impl StopWord {
    fn new(context: &Context) -> oxshmem_cuda::Result<StopWord> {
        let bytes = FAULT + size_of::<Fault>();
        let memory = Pinned::new(context, bytes, &PinnedOptions::default())?;
        Ok(StopWord { memory })
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the word is aligned to a page, and CPU and GPU access it by atomics.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().cast()) }
    }

    /// The record's address for the GPU.
    pub(crate) fn fault_address(&self) -> DevicePtr {
        self.memory.device_ptr().add(FAULT)
    }

    /// The word's value.
    pub(crate) fn value(&self) -> u32 {
        self.word().load(Ordering::Acquire)
    }

    /// The first bad call of a kernel, if there was one.
    pub(crate) fn bad_call(&self) -> Option<BadCall> {
        let record = self.memory.as_ptr().wrapping_add(FAULT).cast::<Fault>();
        // SAFETY: the record lies in this memory, at a multiple of 64; its first word is accessed by atomics.
        let state = unsafe { AtomicU32::from_ptr(record.cast()) };
        if state.load(Ordering::Acquire) != COMPLETE {
            return None;
        }
        // SAFETY: as above, and nobody writes a record that is complete.
        BadCall::of(unsafe { &*record })
    }

    /// Forgets the bad call, so that another one can be recorded.
    pub(crate) fn forget_bad_call(&self) {
        let record = self.memory.as_ptr().wrapping_add(FAULT);
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(record.cast()) }.store(0, Ordering::Release);
    }

    fn set(&self, value: u32) {
        self.word().store(value, Ordering::Release);
    }

    /// Ends all waits, now and from now on.
    pub(crate) fn end(&self) {
        self.set(1);
    }

    /// Lets waits wait again.
    pub(crate) fn resume(&self) {
        self.set(0);
    }

    pub(crate) fn stop(&self) -> Stop {
        Stop {
            stop: self.memory.device_ptr(),
            // Nobody asks whether a wait was ended: all calls after a loss are refused.
            status: DevicePtr::from_raw(0),
        }
    }
}

/// The library's own words in each PE's GPU heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuSyncWords {
    words: Sym<u8>,
    pes: usize,
}

impl GpuSyncWords {
    /// The bytes that they take in a job of `pes` PEs.
    pub(crate) const fn bytes(pes: usize) -> usize {
        (3 * pes + 1) * WORD
    }

    pub(crate) const fn new(words: Sym<u8>, pes: usize) -> GpuSyncWords {
        GpuSyncWords { words, pes }
    }

    /// One word for each PE, which it writes when it arrives.
    fn arrivals(self) -> usize {
        self.words.offset() as usize
    }

    /// The number of barriers that this PE has passed.
    fn epoch(self) -> usize {
        self.arrivals() + self.pes * WORD
    }

    /// The addresses of each PE's arrivals.
    fn arrivals_of(self) -> usize {
        self.epoch() + WORD
    }

    /// The addresses of each PE's heap.
    fn heaps(self) -> usize {
        self.arrivals_of() + self.pes * WORD
    }
}

/// The GPU of a world.
#[derive(Debug)]
pub(crate) struct GpuStreams {
    pub gpu: Gpu,
    pub reductions: Arc<Reductions>,
    pub stop_word: Arc<StopWord>,
    sync_words: GpuSyncWords,
    me: usize,
    /// By PE; none where its memory is not mapped for this GPU.
    heaps: Vec<Option<OnGpu>>,
    /// The reason why collective calls cannot use streams, if they cannot: the same on every PE.
    pub collective: Result<(), String>,
    /// Whether streams may have work that uses it.
    used: AtomicBool,
    /// The device library's kernels for streams, once it is open.
    pub library: OnceLock<LibraryKernels>,
}

impl GpuStreams {
    /// Writes this PE's own words. The caller ensures that all PEs have done so before any goes on.
    pub(crate) fn new(
        gpu: Gpu,
        sync_words: GpuSyncWords,
        me: usize,
        heaps: Vec<Option<OnGpu>>,
    ) -> Result<GpuStreams> {
        Self::make(gpu, sync_words, me, heaps).in_call("init")
    }

    fn make(
        gpu: Gpu,
        sync_words: GpuSyncWords,
        me: usize,
        heaps: Vec<Option<OnGpu>>,
    ) -> oxshmem_cuda::Result<GpuStreams> {
        let streams = GpuStreams {
            reductions: Arc::new(Reductions::load(&gpu.context)?),
            stop_word: Arc::new(StopWord::new(&gpu.context)?),
            gpu,
            sync_words,
            me,
            heaps,
            collective: Ok(()),
            used: AtomicBool::new(false),
            library: OnceLock::new(),
        };
        streams.write_sync_words()?;
        Ok(streams)
    }

    /// Writes 0 to the arrivals and the epoch, and the others' addresses to the tables.
    fn write_sync_words(&self) -> oxshmem_cuda::Result<()> {
        let Some(mine) = self.address(self.me, self.sync_words.arrivals()) else {
            return Ok(());
        };
        let mut words = vec![0_u64; self.sync_words.pes + 1];
        let of_all = |offset: usize| {
            (0..self.sync_words.pes)
                .map(move |pe| self.address(pe, offset).map_or(0, |at| at.as_raw()))
        };
        words.extend(of_all(self.sync_words.arrivals()));
        words.extend(of_all(0));
        let bytes = size_of_val(words.as_slice());
        let stream = Stream::new(&self.gpu.context, &StreamOptions::default())?;
        // SAFETY: as many bytes of this PE's own heap are the library's, from `mine` on, and nobody uses
        // them yet; the words live until the copy is done.
        unsafe { stream.copy(mine, DevicePtr::from_host(words.as_ptr()), bytes)? };
        let done = stream.synchronize_within(INIT_LIMIT);
        if done.is_err() {
            // The copy may still read them.
            std::mem::forget(words);
        }
        done
    }

    /// The address of byte `offset` of a PE's GPU heap for this PE's GPU, if it is mapped.
    #[inline]
    pub(crate) fn address(&self, pe: usize, offset: usize) -> Option<DevicePtr> {
        let heap = self.heaps.get(pe)?.as_ref()?;
        Some(DevicePtr::from_raw(heap.address).add(offset))
    }

    /// The first PE whose memory this GPU does not reach.
    pub(crate) fn unreached(&self) -> Option<usize> {
        self.heaps.iter().position(Option::is_none)
    }

    pub(crate) fn stop(&self) -> Stop {
        self.stop_word.stop()
    }

    /// Queues a signal's update of a word in a heap that is mapped for this GPU.
    pub(crate) fn signal(
        &self,
        call: &'static str,
        stream: &Stream,
        word: DevicePtr,
        value: u64,
        op: SignalOp,
    ) -> Result<()> {
        // SAFETY: the word lies in a heap that is mapped for the GPU while the world lives.
        let queued = unsafe { self.gpu.kernels.signal(stream, word, value, op) };
        queued.in_call(call)
    }

    /// The tables and words of the barrier: every PE's arrivals, and this PE's epoch. This PE's heap is
    /// mapped where collective calls are possible.
    pub(crate) fn barrier_words(&self) -> Option<(DevicePtr, DevicePtr)> {
        let table = self.address(self.me, self.sync_words.arrivals_of())?;
        Some((table, self.address(self.me, self.sync_words.epoch())?))
    }

    /// The table of every PE's heap.
    pub(crate) fn heaps_table(&self) -> Option<DevicePtr> {
        self.address(self.me, self.sync_words.heaps())
    }

    /// Waits for all queued work, and ends the waits on streams if that takes too long: then nothing waits on them
    /// any more until [`StopWord::resume`]. For the end of the world, once every PE has reached it.
    pub(crate) fn end(&self) -> Result<()> {
        if !self.used.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.drained_within(FINALIZE, FINALIZE_LIMIT)? {
            self.used.store(false, Ordering::Relaxed);
            return Ok(());
        }
        self.stop_word.end();
        let ended = self.drained_within(FINALIZE, FINALIZE_LIMIT)?;
        self.used.store(!ended, Ordering::Relaxed);
        Err(Error::Gpu {
            call: FINALIZE,
            why: format!(
                "work on this PE's streams was not done within {FINALIZE_LIMIT:?} after all PEs had come to the \
                 end: its waits were ended; call World::synchronize on every stream before"
            ),
        })
    }

    /// Waits until all of the context's streams are done, for at most `within`. Gives whether they are.
    pub(crate) fn drained_within(&self, call: &'static str, within: Duration) -> Result<bool> {
        let (done, is_done) = std::sync::mpsc::channel();
        let context = self.gpu.context.clone();
        // The driver's call has no deadline; a thread that it blocks is left behind.
        let waiting = std::thread::Builder::new().spawn(move || {
            let _ = done.send(context.beside_captures(|| context.synchronize()));
        });
        waiting.map_err(|error| Error::Gpu {
            call,
            why: format!("no thread to wait for the GPU: {error}"),
        })?;
        match is_done.recv_timeout(within) {
            Ok(done) => done.map(|()| true).in_call(call),
            Err(_) => Ok(false),
        }
    }

    /// Where requests of kernels to the host may be in flight.
    pub(crate) fn ring(&self) -> Option<&RingQuiet> {
        self.library.get()?.ring.as_ref()
    }

    /// Whether streams were given work that may not be done.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Notes that a stream gets work.
    pub(crate) fn note_used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }
}

impl Drop for GpuStreams {
    /// A world that was not finalized may still have work on streams: the memory that it uses stays, until the process ends.
    fn drop(&mut self) {
        if self.used.load(Ordering::Relaxed) {
            self.stop_word.end();
            let heaps = std::mem::take(&mut self.heaps);
            let kernels = (
                self.gpu.clone(),
                Arc::clone(&self.reductions),
                self.library.take(),
            );
            std::mem::forget((Arc::clone(&self.stop_word), heaps, kernels));
        }
    }
}

/// The driver's errors as those of a call.
pub(crate) trait InCall<R> {
    /// The same result; its error names the call.
    fn in_call(self, call: &'static str) -> Result<R>;
}

impl<R> InCall<R> for oxshmem_cuda::Result<R> {
    fn in_call(self, call: &'static str) -> Result<R> {
        self.map_err(|error| Error::Gpu {
            call,
            why: error.to_string(),
        })
    }
}
