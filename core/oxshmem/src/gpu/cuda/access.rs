//! How a process copies to and from its own GPU's memory: by a stream of its own, through page-locked
//! memory, one call at a time.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oxshmem_cuda::{DevicePtr, Pinned, PinnedOptions, Segment, Stream, StreamOptions};
use oxshmem_device::Kernels;
use oxshmem_transport::{AtomicOp, Width};

use crate::GpuAccess;

/// Bytes of each half of the page-locked memory: one is filled while the other is copied.
const HALF: usize = 256 << 10;
/// How long a copy or an atomic may take: much longer than any does, but where the GPU has failed or is
/// held by kernels that fill it. Then the call fails, and so do those after it until the stream is idle
/// again: what was given up may still be done till then.
const PATIENCE: Duration = Duration::from_secs(30);

/// A GPU heap's memory, as its process gets at it.
#[derive(Debug)]
pub(crate) struct CudaAccess {
    /// Locked after the engine. While it is, what is committed stays.
    segment: Arc<Mutex<Segment>>,
    engine: Mutex<Engine>,
}

#[derive(Debug)]
struct Engine {
    /// Dropped before the memory that its work uses.
    stream: Stream,
    kernels: Kernels,
    /// Both halves; atomics' results are at its start.
    pinned: Pinned,
    /// How long it waits for its work.
    patience: Duration,
    /// Why work may be under way that nobody waits for: it has the memory until the stream is idle.
    behind: Option<String>,
}

/// The addresses of bytes of the heap.
struct Committed<'a> {
    start: DevicePtr,
    _kept: MutexGuard<'a, Segment>,
}

fn words(error: oxshmem_cuda::Error) -> String {
    error.to_string()
}

impl Engine {
    /// Waits for what is queued.
    fn settle(&mut self, queued: oxshmem_cuda::Result<()>) -> Result<(), String> {
        let done = queued.and_then(|()| self.stream.synchronize_within(self.patience));
        done.map_err(|error| {
            let why = error.to_string();
            self.behind.insert(why).clone()
        })
    }

    /// Refuses while work that was given up is under way. A GPU that has failed stays so.
    fn catch_up(&mut self) -> Result<(), String> {
        let Some(why) = &self.behind else {
            return Ok(());
        };
        match self.stream.is_idle() {
            Ok(true) => {
                self.behind = None;
                Ok(())
            }
            Ok(false) => Err(format!(
                "its GPU has not done yet what an earlier call gave up ({why}); try again when the \
                 kernels that fill that GPU have ended"
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The host's and the GPU's addresses of a half.
    fn half(&self, index: usize) -> (*mut u8, DevicePtr) {
        let at = (index % 2) * HALF;
        let host = self.pinned.as_ptr().wrapping_add(at);
        (host, self.pinned.device_ptr().add(at))
    }
}

/// The pieces of a copy: each one's place and length.
fn pieces(len: usize) -> impl Iterator<Item = (usize, usize)> {
    let starts = (0..len).step_by(HALF);
    starts.map(move |at| (at, HALF.min(len - at)))
}

impl CudaAccess {
    pub(crate) fn new(segment: &Arc<Mutex<Segment>>) -> Result<CudaAccess, String> {
        let context = {
            let segment = segment.lock().unwrap_or_else(PoisonError::into_inner);
            segment.context().clone()
        };
        let engine = Engine {
            stream: Stream::new(&context, &StreamOptions::default()).map_err(words)?,
            kernels: Kernels::load(&context).map_err(words)?,
            pinned: Pinned::new(&context, 2 * HALF, &PinnedOptions::default()).map_err(words)?,
            patience: PATIENCE,
            behind: None,
        };
        Ok(CudaAccess {
            segment: Arc::clone(segment),
            engine: Mutex::new(engine),
        })
    }

    fn committed(&self, offset: u64, len: usize) -> Result<Committed<'_>, String> {
        let segment = self.segment.lock();
        let segment = segment.unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(len));
        match (start, end) {
            (Some(start), Some(end)) if end <= segment.committed() => Ok(Committed {
                start: segment.base().add(start),
                _kept: segment,
            }),
            _ => Err(format!(
                "{len} bytes from {offset} on leave the {} of its GPU heap",
                segment.committed()
            )),
        }
    }

    /// Runs work on memory of the heap, one call at a time.
    fn run<R>(
        &self,
        offset: u64,
        len: usize,
        work: impl FnOnce(&mut Engine, DevicePtr) -> Result<R, String>,
    ) -> Result<R, String> {
        let engine = self.engine.lock();
        let mut engine = engine.unwrap_or_else(PoisonError::into_inner);
        let committed = self.committed(offset, len)?;
        let context = engine.stream.context().clone();
        // The program's other threads may be capturing.
        context.beside_captures(|| {
            engine.catch_up()?;
            work(&mut engine, committed.start)
        })
    }
}

impl GpuAccess for CudaAccess {
    unsafe fn write(&self, offset: u64, source: *const u8, len: usize) -> Result<(), String> {
        self.run(offset, len, |engine, gpu| {
            for (index, (at, piece)) in pieces(len).enumerate() {
                let (host, device) = engine.half(index);
                // Of the copies before, the last but one has this half.
                if index >= 2 {
                    engine.settle(Ok(()))?;
                }
                // SAFETY: the source is the caller's promise; the half is as long, and no copy uses it.
                unsafe { oxshmem_heap::copy::copy(host, source.wrapping_add(at), piece) };
                // SAFETY: the heap's bytes stay committed while they are locked, and the half is filled
                // again only when this is done.
                let queued = unsafe { engine.stream.copy(gpu.add(at), device, piece) };
                if queued.is_err() {
                    engine.settle(queued)?;
                }
            }
            engine.settle(Ok(()))
        })
    }

    unsafe fn read(&self, offset: u64, destination: *mut u8, len: usize) -> Result<(), String> {
        self.run(offset, len, |engine, gpu| {
            for (at, piece) in pieces(len) {
                let (host, device) = engine.half(0);
                // SAFETY: the heap's bytes stay committed while they are locked, and the half is read only
                // when this is done.
                let queued = unsafe { engine.stream.copy(device, gpu.add(at), piece) };
                engine.settle(queued)?;
                // SAFETY: the destination is the caller's promise; the half is as long.
                unsafe { oxshmem_heap::copy::copy(destination.wrapping_add(at), host, piece) };
            }
            Ok(())
        })
    }

    fn atomic(
        &self,
        offset: u64,
        op: AtomicOp,
        width: Width,
        operands: (u64, u64),
    ) -> Result<u64, String> {
        if !offset.is_multiple_of(width.bytes() as u64) {
            return Err(format!("no word of {width} bits is at byte {offset}"));
        }
        self.run(offset, width.bytes(), |engine, word| {
            let (host, device) = engine.half(0);
            // SAFETY: the word is aligned and stays committed while it is locked; the result's is aligned
            // to a page, and read only when this is done.
            let queued = unsafe {
                let (kernels, stream) = (&engine.kernels, &engine.stream);
                kernels.atomic(stream, (op, width), word, operands, device)
            };
            engine.settle(queued)?;
            let host = NonNull::new(host).ok_or("page-locked memory at no address")?;
            // SAFETY: page-locked memory is mapped, aligned, and nothing writes it any more.
            Ok(unsafe {
                match width {
                    Width::W32 => oxshmem_heap::copy::load(host.as_ptr().cast::<u32>()).into(),
                    Width::W64 => oxshmem_heap::copy::load(host.as_ptr().cast::<u64>()),
                }
            })
        })
    }
}

#[cfg(test)]
mod tests;
