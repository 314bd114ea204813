//! A process's copies between host memory and its own GPU's: by a stream of its own, through
//! page-locked memory, one call at a time.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use oxshmem_cuda::{Context, DevicePtr, Event, Pinned, PinnedOptions, Stream, StreamOptions};
use oxshmem_device::Kernels;
use oxshmem_transport::{AtomicRequest, Width};

/// Bytes of each half of the page-locked memory: one is filled while the other is copied.
pub(super) const HALF: usize = 256 << 10;
/// The time limit of a copy or an atomic: much longer than any takes, but where the GPU has failed or is
/// held by kernels that fill it. Then the call fails, and so do those after it until the stream is idle
/// again: the cancelled work may still be done till then.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A process's copies to and from one GPU.
pub(crate) struct Engine {
    /// Dropped before the memory that its work uses.
    pub(super) stream: Stream,
    kernels: Arc<Kernels>,
    /// Both halves; atomics' results are at its start.
    pinned: Pinned,
    /// The time limit of its work.
    pub(super) patience: Duration,
    /// The reason why cancelled work may still run: it holds the memory until the stream is idle.
    cancelled: Option<String>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("behind", &self.cancelled)
            .finish_non_exhaustive()
    }
}

/// The pieces of a copy: each one's offset and length.
fn pieces(len: usize) -> impl Iterator<Item = (usize, usize)> {
    let starts = (0..len).step_by(HALF);
    starts.map(move |at| (at, HALF.min(len - at)))
}

impl Engine {
    pub(super) fn new(context: &Context, kernels: &Arc<Kernels>) -> oxshmem_cuda::Result<Engine> {
        Ok(Engine {
            stream: Stream::new(context, &StreamOptions::default())?,
            kernels: Arc::clone(kernels),
            pinned: Pinned::new(context, 2 * HALF, &PinnedOptions::default())?,
            patience: PATIENCE,
            cancelled: None,
        })
    }

    /// Runs work, once no cancelled work is left. A GPU that has failed stays so.
    fn run<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R, String>) -> Result<R, String> {
        let context = self.stream.context().clone();
        // The program's other threads may be capturing.
        context.beside_captures(|| {
            self.await_cancelled()?;
            work(self)
        })
    }

    fn await_cancelled(&mut self) -> Result<(), String> {
        let Some(why) = &self.cancelled else {
            return Ok(());
        };
        match self.stream.is_idle() {
            Ok(true) => {
                self.cancelled = None;
                Ok(())
            }
            Ok(false) => Err(format!(
                "its GPU has not done yet what an earlier call gave up ({why}); try again when the \
                 kernels that fill that GPU have ended"
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits for the queued work.
    fn drain(&mut self, queued: oxshmem_cuda::Result<()>) -> Result<(), String> {
        let done = queued.and_then(|()| self.stream.synchronize_within(self.patience));
        done.map_err(|error| {
            let why = error.to_string();
            self.cancelled.insert(why).clone()
        })
    }

    /// The host's and the GPU's addresses of a half.
    fn half(&self, index: usize) -> (*mut u8, DevicePtr) {
        let at = (index % 2) * HALF;
        let host = self.pinned.as_ptr().wrapping_add(at);
        (host, self.pinned.device_ptr().add(at))
    }

    /// Copies bytes into GPU memory; they are in place when it returns.
    ///
    /// # Safety
    ///
    /// `from` is readable for `len` bytes, and `to` names as many of GPU memory, which stay the caller's
    /// until this returns; if it fails, until the stream has [gone by](Self::before).
    pub(crate) unsafe fn write(
        &mut self,
        to: DevicePtr,
        from: *const u8,
        len: usize,
    ) -> Result<(), String> {
        self.run(|engine| {
            for (index, (at, piece)) in pieces(len).enumerate() {
                let (host, device) = engine.half(index);
                // Of the copies before, the last but one has this half.
                if index >= 2 {
                    engine.drain(Ok(()))?;
                }
                // SAFETY: the source is the caller's promise; the half is as long, and no copy uses it.
                unsafe { oxshmem_heap::copy::copy(host, from.wrapping_add(at), piece) };
                // SAFETY: the GPU's bytes are the caller's promise, and the half is filled again only
                // when this is done.
                let queued = unsafe { engine.stream.copy(to.add(at), device, piece) };
                if queued.is_err() {
                    engine.drain(queued)?;
                }
            }
            engine.drain(Ok(()))
        })
    }

    /// Copies bytes out of GPU memory.
    ///
    /// # Safety
    ///
    /// As [`write`](Self::write), the other way: `to` is writable.
    pub(crate) unsafe fn read(
        &mut self,
        to: *mut u8,
        from: DevicePtr,
        len: usize,
    ) -> Result<(), String> {
        self.run(|engine| {
            for (at, piece) in pieces(len) {
                let (host, device) = engine.half(0);
                // SAFETY: the GPU's bytes are the caller's promise, and the half is read only when this
                // is done.
                let queued = unsafe { engine.stream.copy(device, from.add(at), piece) };
                engine.drain(queued)?;
                // SAFETY: the destination is the caller's promise; the half is as long.
                unsafe { oxshmem_heap::copy::copy(to.wrapping_add(at), host, piece) };
            }
            Ok(())
        })
    }

    /// Performs an atomic on a word, and gives its old value.
    ///
    /// # Safety
    ///
    /// `word` names a word of that width in GPU memory, aligned to it, which stays one as
    /// [`write`](Self::write)'s bytes do.
    pub(super) unsafe fn atomic(
        &mut self,
        word: DevicePtr,
        request: AtomicRequest,
    ) -> Result<u64, String> {
        self.run(|engine| {
            let (host, device) = engine.half(0);
            // SAFETY: the word is the caller's promise; the result's is aligned to a page, and read only
            // when this is done.
            let queued = unsafe {
                let (kernels, stream) = (&engine.kernels, &engine.stream);
                kernels.atomic(stream, request, word, device)
            };
            engine.drain(queued)?;
            let host = NonNull::new(host).ok_or("page-locked memory at no address")?;
            // SAFETY: page-locked memory is mapped, aligned, and nothing writes it any more.
            Ok(unsafe {
                match request.width {
                    Width::W32 => oxshmem_heap::copy::load(host.as_ptr().cast::<u32>()).into(),
                    Width::W64 => oxshmem_heap::copy::load(host.as_ptr().cast::<u64>()),
                }
            })
        })
    }

    /// Lets a stream go on only after this one's work, done or cancelled.
    pub(crate) fn before(&self, stream: &Stream) -> oxshmem_cuda::Result<()> {
        let event = Event::new(stream.context())?;
        self.stream.record(&event)?;
        stream.wait(&event)
    }
}
