//! What a world has for its GPU: the context, the kernels, where every PE's heap is mapped for the GPU,
//! and the library's own words in GPU memory.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oxshmem_cuda::{Context, DevicePtr, Pinned, PinnedOptions, Stream, StreamOptions};
use oxshmem_device::{Kernels, Reductions, Stop};

use crate::peers::OnGpu;
use crate::{Error, Result, Sym};

/// How long the first writes to this PE's own words may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long work on streams may take after all PEs have come to the world's end.
const LAST: Duration = Duration::from_secs(60);
const WORD: usize = size_of::<u64>();

/// Words that end what waits on this world's streams, in page-locked memory.
#[derive(Debug)]
pub(crate) struct Ending {
    memory: Pinned,
}

impl Ending {
    fn new(context: &Context) -> oxshmem_cuda::Result<Ending> {
        let memory = Pinned::new(context, 2 * size_of::<u32>(), &PinnedOptions::default())?;
        Ok(Ending { memory })
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        let at = self.memory.as_ptr().cast::<u32>().wrapping_add(index);
        // SAFETY: two words lie in the memory, aligned to a page; CPU and GPU use them by atomics.
        unsafe { AtomicU32::from_ptr(at) }
    }

    /// Ends all waits, now and from now on.
    pub(crate) fn end(&self) {
        self.word(0).store(1, Ordering::Release);
    }

    /// Lets waits wait again.
    pub(crate) fn resume(&self) {
        self.word(0).store(0, Ordering::Release);
        self.word(1).store(0, Ordering::Release);
    }

    fn stop(&self) -> Stop {
        let start = self.memory.device_ptr();
        Stop {
            stop: start,
            status: start.add(size_of::<u32>()),
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
pub(crate) struct GpuSide {
    pub context: Context,
    pub kernels: Arc<Kernels>,
    pub reductions: Arc<Reductions>,
    pub ending: Arc<Ending>,
    own: Own,
    me: usize,
    /// By PE; none where its memory is not mapped for this GPU.
    heaps: Vec<Option<OnGpu>>,
    /// Why collective calls cannot go on streams, if they cannot: the same on every PE.
    pub collective: Result<(), String>,
    /// Streams may have work that uses it.
    used: Cell<bool>,
}

impl GpuSide {
    /// Writes this PE's own words. The caller sees to it that all PEs have done so before any goes on.
    pub(crate) fn new(
        context: Context,
        own: Own,
        me: usize,
        heaps: Vec<Option<OnGpu>>,
    ) -> Result<GpuSide> {
        let made = Self::make(context, own, me, heaps);
        made.map_err(|error| failed("init", &error))
    }

    fn make(
        context: Context,
        own: Own,
        me: usize,
        heaps: Vec<Option<OnGpu>>,
    ) -> oxshmem_cuda::Result<GpuSide> {
        let side = GpuSide {
            kernels: Arc::new(Kernels::load(&context)?),
            reductions: Arc::new(Reductions::load(&context)?),
            ending: Arc::new(Ending::new(&context)?),
            context,
            own,
            me,
            heaps,
            collective: Ok(()),
            used: Cell::new(false),
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
        let stream = Stream::new(&self.context, &StreamOptions::default())?;
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

    /// Waits for all that is queued, and ends what waits on streams if that takes too long. For the end of
    /// the world, which every PE has come to.
    pub(crate) fn end(&self) -> Result<()> {
        const CALL: &str = "finalize";
        if !self.used.get() {
            return Ok(());
        }
        if self.runs_out()? {
            self.used.set(false);
            return Ok(());
        }
        self.ending.end();
        let ended = self.runs_out()?;
        self.used.set(!ended);
        Err(Error::Gpu {
            call: CALL,
            why: format!(
                "work on this PE's streams was not done within {LAST:?} after all PEs had come to the \
                 end: its waits were ended; call World::synchronize on every stream before"
            ),
        })
    }

    /// Waits until the context's streams are done, for a while at most.
    fn runs_out(&self) -> Result<bool> {
        let (told, heard) = std::sync::mpsc::channel();
        let context = self.context.clone();
        // The driver's call has no deadline; a thread that it keeps is left behind.
        let waiting = std::thread::Builder::new().spawn(move || {
            let done = context.beside_captures(|| context.synchronize());
            let _ = told.send(done);
        });
        waiting.map_err(|error| Error::Gpu {
            call: "finalize",
            why: format!("no thread to wait for the GPU: {error}"),
        })?;
        match heard.recv_timeout(LAST) {
            Ok(done) => done
                .map(|()| true)
                .map_err(|error| failed("finalize", &error)),
            Err(_) => Ok(false),
        }
    }

    /// A stream is given work.
    pub(crate) fn note_used(&self) {
        self.used.set(true);
    }
}

impl Drop for GpuSide {
    /// A world that is given up may have work on streams yet: what that uses stays, until the process ends.
    fn drop(&mut self) {
        if self.used.get() {
            self.ending.end();
            let heaps = std::mem::take(&mut self.heaps);
            let kernels = (Arc::clone(&self.kernels), Arc::clone(&self.reductions));
            std::mem::forget((Arc::clone(&self.ending), heaps, kernels));
        }
    }
}

/// The driver's error in a call.
#[cold]
pub(crate) fn failed(call: &'static str, error: &oxshmem_cuda::Error) -> Error {
    Error::Gpu {
        call,
        why: error.to_string(),
    }
}
