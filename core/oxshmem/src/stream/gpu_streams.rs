//! What a world has for its GPU: the context, the kernels, where every PE's heap is mapped for the GPU,
//! and the library's own words in GPU memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use oxshmem_cuda::{Context, DevicePtr, Pinned, PinnedOptions, Stream, StreamOptions};
use oxshmem_device::{Reductions, Stop};
use oxshmem_transport::SignalOp;

use crate::gpu::cuda::Gpu;
use crate::peer::OnGpu;
use crate::{Error, Result, Sym};

/// How long the first writes to this PE's own words may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long work on streams may take after all PEs have come to the world's end.
const LAST: Duration = Duration::from_secs(60);
const WORD: usize = size_of::<u64>();
/// The call that ends a world.
pub(super) const END: &str = "finalize";

/// The word that ends what waits on this world's streams, in page-locked memory.
#[derive(Debug)]
pub(crate) struct Ending {
    memory: Pinned,
}

impl Ending {
    fn new(context: &Context) -> oxshmem_cuda::Result<Ending> {
        let memory = Pinned::new(context, size_of::<u32>(), &PinnedOptions::default())?;
        Ok(Ending { memory })
    }

    fn set(&self, value: u32) {
        // SAFETY: the word is aligned to a page, and CPU and GPU use it by atomics.
        let word = unsafe { AtomicU32::from_ptr(self.memory.as_ptr().cast()) };
        word.store(value, Ordering::Release);
    }

    /// Ends all waits, now and from now on.
    pub(crate) fn end(&self) {
        self.set(1);
    }

    /// Lets waits wait again.
    pub(crate) fn resume(&self) {
        self.set(0);
    }

    fn stop(&self) -> Stop {
        Stop {
            stop: self.memory.device_ptr(),
            // Whether a wait was ended is asked of nobody: all that follows a loss is refused.
            status: DevicePtr::from_raw(0),
        }
    }
}

/// The library's own words in each PE's GPU heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    words: Sym<u8>,
    pes: usize,
}

impl Own {
    /// Bytes that they take in a job of so many PEs.
    pub(crate) const fn bytes(pes: usize) -> usize {
        (3 * pes + 1) * WORD
    }

    pub(crate) const fn new(words: Sym<u8>, pes: usize) -> Own {
        Own { words, pes }
    }

    /// One word for each PE, which it writes when it arrives.
    fn arrivals(self) -> usize {
        self.words.offset() as usize
    }

    /// How many barriers this PE has passed.
    fn epoch(self) -> usize {
        self.arrivals() + self.pes * WORD
    }

    /// Where each PE's arrivals are.
    fn arrivals_of(self) -> usize {
        self.epoch() + WORD
    }

    /// Where each PE's heap begins.
    fn heaps(self) -> usize {
        self.arrivals_of() + self.pes * WORD
    }
}

/// The GPU of a world.
#[derive(Debug)]
pub(crate) struct GpuStreams {
    pub gpu: Gpu,
    pub reductions: Arc<Reductions>,
    pub ending: Arc<Ending>,
    own: Own,
    me: usize,
    /// By PE; none where its memory is not mapped for this GPU.
    heaps: Vec<Option<OnGpu>>,
    /// Why collective calls cannot go on streams, if they cannot: the same on every PE.
    pub collective: Result<(), String>,
    /// Streams may have work that uses it.
    used: AtomicBool,
}

impl GpuStreams {
    /// Writes this PE's own words. The caller sees to it that all PEs have done so before any goes on.
    pub(crate) fn new(
        gpu: Gpu,
        own: Own,
        me: usize,
        heaps: Vec<Option<OnGpu>>,
    ) -> Result<GpuStreams> {
        Self::make(gpu, own, me, heaps).told("init")
    }

    fn make(
        gpu: Gpu,
        own: Own,
        me: usize,
        heaps: Vec<Option<OnGpu>>,
    ) -> oxshmem_cuda::Result<GpuStreams> {
        let side = GpuStreams {
            reductions: Arc::new(Reductions::load(&gpu.context)?),
            ending: Arc::new(Ending::new(&gpu.context)?),
            gpu,
            own,
            me,
            heaps,
            collective: Ok(()),
            used: AtomicBool::new(false),
        };
        side.write_own()?;
        Ok(side)
    }

    /// The arrivals and the epoch are 0, the tables say where the others are.
    fn write_own(&self) -> oxshmem_cuda::Result<()> {
        let Some(mine) = self.address(self.me, self.own.arrivals()) else {
            return Ok(());
        };
        let mut words = vec![0_u64; self.own.pes + 1];
        let of_all = |offset: usize| {
            (0..self.own.pes).map(move |pe| self.address(pe, offset).map_or(0, |at| at.as_raw()))
        };
        words.extend(of_all(self.own.arrivals()));
        words.extend(of_all(0));
        let bytes = size_of_val(words.as_slice());
        let stream = Stream::new(&self.gpu.context, &StreamOptions::default())?;
        // SAFETY: as many bytes of this PE's own heap are the library's, from `mine` on, and nobody uses
        // them yet; the words live until the copy is done.
        unsafe { stream.copy(mine, DevicePtr::from_host(words.as_ptr()), bytes)? };
        let done = stream.synchronize_within(PATIENCE);
        if done.is_err() {
            // The copy may still read them.
            std::mem::forget(words);
        }
        done
    }

    /// Where byte `offset` of a PE's GPU heap is, as this PE's GPU has it, if it has.
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
        self.ending.stop()
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
        queued.told(call)
    }

    /// The tables and words of the barrier: every PE's arrivals, and this PE's epoch. This PE's heap is
    /// mapped where collective calls are possible.
    pub(crate) fn barrier_words(&self) -> Option<(DevicePtr, DevicePtr)> {
        let table = self.address(self.me, self.own.arrivals_of())?;
        Some((table, self.address(self.me, self.own.epoch())?))
    }

    /// The table of every PE's heap.
    pub(crate) fn heaps_table(&self) -> Option<DevicePtr> {
        self.address(self.me, self.own.heaps())
    }

    /// Waits for all that is queued, and ends what waits on streams if that takes too long: then nothing waits on them
    /// any more until [`Ending::resume`]. For the end of the world, which every PE has come to.
    pub(crate) fn end(&self) -> Result<()> {
        if !self.used.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.runs_out(END, LAST)? {
            self.used.store(false, Ordering::Relaxed);
            return Ok(());
        }
        self.ending.end();
        let ended = self.runs_out(END, LAST)?;
        self.used.store(!ended, Ordering::Relaxed);
        Err(Error::Gpu {
            call: END,
            why: format!(
                "work on this PE's streams was not done within {LAST:?} after all PEs had come to the \
                 end: its waits were ended; call World::synchronize on every stream before"
            ),
        })
    }

    /// Waits until all of the context's streams are done, so long at most; gives whether they are.
    pub(crate) fn runs_out(&self, call: &'static str, within: Duration) -> Result<bool> {
        let (told, heard) = std::sync::mpsc::channel();
        let context = self.gpu.context.clone();
        // The driver's call has no deadline; a thread that it keeps is left behind.
        let waiting = std::thread::Builder::new().spawn(move || {
            let done = context.beside_captures(|| context.synchronize());
            let _ = told.send(done);
        });
        waiting.map_err(|error| Error::Gpu {
            call,
            why: format!("no thread to wait for the GPU: {error}"),
        })?;
        match heard.recv_timeout(within) {
            Ok(done) => done.map(|()| true).told(call),
            Err(_) => Ok(false),
        }
    }

    /// Whether streams were given work that may not be done.
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// A stream is given work.
    pub(crate) fn note_used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }
}

impl Drop for GpuStreams {
    /// A world that is given up may have work on streams yet: what that uses stays, until the process ends.
    fn drop(&mut self) {
        if self.used.load(Ordering::Relaxed) {
            self.ending.end();
            let heaps = std::mem::take(&mut self.heaps);
            let kernels = (self.gpu.clone(), Arc::clone(&self.reductions));
            std::mem::forget((Arc::clone(&self.ending), heaps, kernels));
        }
    }
}

/// What the driver says, as a call tells it.
pub(crate) trait Told<R> {
    /// In the words of this call.
    fn told(self, call: &'static str) -> Result<R>;
}

impl<R> Told<R> for oxshmem_cuda::Result<R> {
    fn told(self, call: &'static str) -> Result<R> {
        self.map_err(|error| Error::Gpu {
            call,
            why: error.to_string(),
        })
    }
}
