//! Streams.

mod host_func;
mod words;

use std::any::Any;
use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUmemorytype, CUstream_flags, CUstreamCaptureStatus_enum as Status,
};

use crate::context::Context;
use crate::driver::{Driver, Feature};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::pointer::DevicePtr;
use crate::poll::poll;
use crate::table::{Code, Raw, call, call_optional};

pub use words::Compare;

/// How to make a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether its kernels go before those of other streams, as far as the GPU does such.
    pub urgent: bool,
}

/// A queue of work for a GPU, which does it in order.
///
/// Its own streams don't wait for the default stream nor make it wait. The calls that queue work are
/// `unsafe`, since the work is done later, with memory that the caller answers for; see each. They
/// return before it is done, and may be used while the stream is captured into a graph, but for
/// [`host_func`](Self::host_func).
///
/// Dropping a stream doesn't wait: work that was queued is still done.
pub struct Stream {
    context: Context,
    raw: Raw,
    memops: bool,
    flush: bool,
    owner: Owner,
}

/// The owner of a stream.
enum Owner {
    /// Destroyed with the [`Stream`].
    This,
    /// The caller's, who promised that it lives long enough.
    Caller,
    /// A cudarc stream's, which is kept.
    Kept(#[allow(dead_code, reason = "it is there to live as long")] Arc<dyn Any + Send + Sync>),
}

// SAFETY: a CUstream may be used from any thread, also from several at once (CUDA's manual), each
// call with the context current, which every method sees to; what is kept is Send and Sync.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

/// Whether a stream's work is done or recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It is done.
    None,
    /// It is recorded into a graph.
    Active,
    /// It was being recorded until something forbade it; the capture must be ended.
    Invalidated,
}

/// A copy of `rows` runs of `width` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy2d {
    /// Where the first run goes.
    pub dst: DevicePtr,
    /// Bytes from a run's start to the next one's, where it goes.
    pub dst_pitch: usize,
    /// Where the first run is.
    pub src: DevicePtr,
    /// Bytes from a run's start to the next one's, where it is.
    pub src_pitch: usize,
    /// Bytes of a run; at most either pitch.
    pub width: usize,
    /// How many runs.
    pub rows: usize,
}

impl Stream {
    /// A stream of this crate's own, non-blocking.
    #[doc(alias = "cuStreamCreateWithPriority")]
    pub fn new(context: &Context, options: &StreamOptions) -> Result<Self> {
        let _current = context.enter()?;
        let mut priority = 0;
        if options.urgent && context.driver().has(Feature::StreamPriority) {
            let mut least: c_int = 0;
            // SAFETY: both pointers are to live integers.
            unsafe {
                call_optional!(
                    context,
                    cuCtxGetStreamPriorityRange(&raw mut least, &raw mut priority)
                )
            }?;
        }
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe {
            call!(
                context,
                cuStreamCreateWithPriority(&raw mut raw, flags, priority)
            )
        }?;
        Ok(Self::of(context, raw, Owner::This))
    }

    /// A user's stream, by its CUstream; null is the default stream. It is not destroyed with this.
    /// Refused if it belongs to another context.
    ///
    /// # Safety
    ///
    /// It is a stream of the driver's, and is not destroyed while this value, or work queued through
    /// it, exists.
    #[doc(alias = "cuStreamGetCtx")]
    pub unsafe fn borrow(context: &Context, raw: *mut c_void) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::checked(context, raw, Owner::Caller) }
    }

    /// As [`borrow`](Self::borrow), keeping what keeps the stream alive.
    ///
    /// # Safety
    ///
    /// It is a stream of the driver's, and `keep` keeps it from being destroyed.
    pub(crate) unsafe fn kept(
        context: &Context,
        raw: Raw,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::checked(context, raw, Owner::Kept(keep)) }
    }

    /// # Safety
    ///
    /// It is a stream of the driver's, alive.
    unsafe fn checked(context: &Context, raw: Raw, owner: Owner) -> Result<Self> {
        // 0, 1 and 2 are names: the default stream of whatever context is current.
        if raw.addr() > 2 && context.driver().has(Feature::StreamContext) {
            let _current = context.enter()?;
            let mut of: Raw = ptr::null_mut();
            // SAFETY: the stream is alive, as the caller promises; the pointer is to a live pointer.
            match unsafe { call_optional!(context, cuStreamGetCtx(raw, &raw mut of)) } {
                Ok(()) if of != context.as_raw() => {
                    return Err(Error::Invalid {
                        what: "taking a stream",
                        why: format!(
                            "it belongs to another context than the primary one of GPU {}",
                            context.ordinal()
                        ),
                    });
                }
                Ok(()) => {}
                Err(error) if error.is(Code::NOT_SUPPORTED) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::of(context, raw, owner))
    }

    fn of(context: &Context, raw: Raw, owner: Owner) -> Self {
        Stream {
            memops: context.device().has_stream_memops_64(),
            flush: context.device().flush_options().stream,
            context: context.clone(),
            raw,
            owner,
        }
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The CUstream. It lives as long as `self`.
    #[must_use]
    pub fn as_raw(&self) -> *mut c_void {
        self.raw
    }

    /// Whether all work is done. An error of earlier work comes out here. While the stream is being
    /// captured this is an error, and spoils the capture.
    #[doc(alias = "cuStreamQuery")]
    pub fn is_idle(&self) -> Result<bool> {
        let _current = self.context.enter()?;
        // SAFETY: the stream is alive.
        match unsafe { call!(self, cuStreamQuery(self.raw)) } {
            Ok(()) => Ok(true),
            Err(error) if error.is(Code::NOT_READY) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until all work is done, however long that takes: use it only where nothing queued waits
    /// for a peer.
    #[doc(alias = "cuStreamSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the stream is alive.
        unsafe { call!(self, cuStreamSynchronize(self.raw)) }
    }

    /// Waits until all work is done, but no longer than `patience`.
    pub fn synchronize_within(&self, patience: Duration) -> Result<()> {
        poll(patience, "a stream's work", &self.context, || {
            self.is_idle()
        })
    }

    /// Copies `len` bytes, between host and GPUs in any combination. Source and destination don't
    /// overlap. From ordinary (not page-locked) host memory the call returns when that may be reused;
    /// into such memory, when the copy is done.
    ///
    /// # Safety
    ///
    /// Until the copy is done both ranges stay allocated and mapped, and nothing else writes to the
    /// source or touches the destination, except where both sides use whole-word atomics.
    #[doc(alias = "cuMemcpyAsync")]
    pub unsafe fn copy(&self, dst: DevicePtr, src: DevicePtr, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the caller answers for the ranges.
        unsafe {
            call!(
                self,
                cuMemcpyAsync(dst.as_raw(), src.as_raw(), len, self.raw)
            )
        }
    }

    /// Copies runs of bytes at equal distances. A pitch has a limit, of about 2 GiB.
    ///
    /// # Safety
    ///
    /// As for [`copy`](Self::copy), for every run.
    #[doc(alias = "cuMemcpy2DAsync")]
    pub unsafe fn copy_2d(&self, copy: &Copy2d) -> Result<()> {
        if copy.width == 0 || copy.rows == 0 {
            return Ok(());
        }
        let anywhere = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
        let plan = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: anywhere,
            srcHost: ptr::null(),
            srcDevice: copy.src.as_raw(),
            srcArray: ptr::null_mut(),
            srcPitch: copy.src_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: anywhere,
            dstHost: ptr::null_mut(),
            dstDevice: copy.dst.as_raw(),
            dstArray: ptr::null_mut(),
            dstPitch: copy.dst_pitch,
            WidthInBytes: copy.width,
            Height: copy.rows,
        };
        let _current = self.context.enter()?;
        // SAFETY: the structure is whole and read during the call; the caller answers for the runs.
        unsafe { call!(self, cuMemcpy2DAsync_v2(&raw const plan, self.raw)) }
    }

    /// Sets `len` bytes.
    ///
    /// # Safety
    ///
    /// Until it is done the range stays allocated and mapped for the GPU (GPU memory, or page-locked
    /// host memory), and nothing else touches it.
    #[doc(alias = "cuMemsetD8Async")]
    pub unsafe fn fill(&self, dst: DevicePtr, byte: u8, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the caller answers for the range.
        unsafe { call!(self, cuMemsetD8Async(dst.as_raw(), byte, len, self.raw)) }
    }

    /// Lets an event happen when all work queued so far is done.
    #[doc(alias = "cuEventRecord")]
    pub fn record(&self, event: &Event) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: stream and event are alive.
        unsafe { call!(self, cuEventRecord(event.raw(), self.raw)) }
    }

    /// Lets no later work begin before an event has happened, as it was last recorded; one that was
    /// never recorded has. The event may be another GPU's.
    #[doc(alias = "cuStreamWaitEvent")]
    pub fn wait(&self, event: &Event) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: stream and event are alive; the flags must be zero, and are.
        unsafe { call!(self, cuStreamWaitEvent(self.raw, event.raw(), 0)) }
    }

    /// Whether its work is recorded instead of done.
    #[doc(alias = "cuStreamIsCapturing")]
    pub fn capture_status(&self) -> Result<Capture> {
        const ACTIVE: c_int = Status::CU_STREAM_CAPTURE_STATUS_ACTIVE as c_int;
        const NONE: c_int = Status::CU_STREAM_CAPTURE_STATUS_NONE as c_int;
        let _current = self.context.enter()?;
        let mut status: c_int = 0;
        // SAFETY: the stream is alive, the pointer is to a live integer.
        unsafe { call!(self, cuStreamIsCapturing(self.raw, &raw mut status)) }?;
        Ok(match status {
            NONE => Capture::None,
            ACTIVE => Capture::Active,
            _ => Capture::Invalidated,
        })
    }

    /// Whether it is being captured, or was until that was spoilt.
    pub fn is_capturing(&self) -> Result<bool> {
        Ok(self.capture_status()? != Capture::None)
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.context.driver()
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.context.ordinal()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !matches!(self.owner, Owner::This) {
            return;
        }
        // SAFETY: it was created by this crate and is destroyed once.
        let answer = self
            .context
            .enter()
            .and_then(|_current| unsafe { call!(self, cuStreamDestroy_v2(self.raw)) });
        if let Err(error) = answer {
            tracing::debug!(%error, "a stream was not destroyed");
        }
    }
}
