//! Contexts of GPUs.

use std::ffi::c_int;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    CUflushGPUDirectRDMAWritesScope as Scope, CUflushGPUDirectRDMAWritesTarget as Target,
    CUstreamCaptureMode as CaptureMode,
};

use crate::device::{Ask, Device};
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::table::{Code, Raw, call, call_optional};

/// A context of a GPU: the primary one, which cudarc, the CUDA runtime and PyTorch use too, or, by [`current`](Context::current), one of the
/// program's own.
///
/// A clone is the same context. It is given back to the driver when the last one, and all that was
/// made from it, is dropped.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    device: Device,
    raw: Raw,
    /// Whether it is the primary context, retained by this; else the program's own.
    is_retained: bool,
}

// SAFETY: a CUcontext may be used from any thread, also from several at once (CUDA's manual); the
// rest is plain data.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_retained {
            return;
        }
        // SAFETY: it was retained once when this was made, and is released once.
        let answer = unsafe { call!(self.device, cuDevicePrimaryCtxRelease_v2(self.device.raw())) };
        if let Err(error) = answer {
            tracing::debug!(%error, "a context was not released");
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("device", &self.0.device)
            .finish_non_exhaustive()
    }
}

/// A GPU's memory, in bytes, all processes counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes not in use.
    pub free: usize,
    /// Bytes that there are.
    pub total: usize,
}

/// To whom a NIC's writes are to become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushScope {
    /// To the GPU that owns the memory.
    Owner,
    /// To every GPU that can read it.
    AllDevices,
}

impl Context {
    /// Retains the primary context of a GPU, making it if this is the process's first (about a
    /// quarter of a second, and some hundred MiB of the GPU's memory).
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    pub fn new(device: &Device) -> Result<Self> {
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer, the device is the driver's.
        unsafe { call!(device, cuDevicePrimaryCtxRetain(&raw mut raw, device.raw())) }?;
        Ok(Context(Arc::new(Inner {
            device: device.clone(),
            raw,
            is_retained: true,
        })))
    }

    /// The context that is current in this thread: the primary one, as the CUDA runtime makes it, or one of the program's own. None where
    /// no context is.
    ///
    /// # Safety
    ///
    /// A context of the program's own is destroyed after the last clone of this one, and all that was made from it, is dropped.
    #[doc(alias("cuCtxGetCurrent", "cuCtxGetDevice"))]
    pub unsafe fn current() -> Result<Option<Self>> {
        let ask = Ask(Driver::get()?, 0);
        let mut current: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { call!(ask, cuCtxGetCurrent(&raw mut current)) }?;
        if current.is_null() {
            return Ok(None);
        }
        let mut number = 0;
        // SAFETY: a context is current; the pointer is to a live integer.
        unsafe { call!(ask, cuCtxGetDevice(&raw mut number)) }?;
        let context = Self::new(&Device::new(usize::try_from(number).unwrap_or(usize::MAX))?)?;
        if context.0.raw != current {
            let inner = Inner {
                device: context.0.device.clone(),
                raw: current,
                is_retained: false,
            };
            return Ok(Some(Context(Arc::new(inner))));
        }
        Ok(Some(context))
    }

    /// Whether it is the calling thread's current context.
    pub fn is_current(&self) -> Result<bool> {
        let mut current: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { call!(self, cuCtxGetCurrent(&raw mut current)) }?;
        Ok(current == self.0.raw)
    }

    /// Its GPU.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Makes it the calling thread's current context until the guard is dropped, which puts back
    /// what was. The types of this crate do so themselves: this is for calls that users make.
    #[doc(alias = "cuCtxSetCurrent")]
    pub fn enter(&self) -> Result<Current<'_>> {
        let mut before: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { call!(self, cuCtxGetCurrent(&raw mut before)) }?;
        let changed = before != self.0.raw;
        if changed {
            // SAFETY: this context is retained while `self` lives.
            unsafe { call!(self, cuCtxSetCurrent(self.0.raw)) }?;
        }
        Ok(Current {
            context: self,
            before: changed.then_some(before),
            thread: PhantomData,
        })
    }

    /// Runs a function with this context current for the calling thread.
    pub fn with<T>(&self, run: impl FnOnce() -> T) -> Result<T> {
        let _current = self.enter()?;
        Ok(run())
    }

    /// Waits until all work on all streams of the context is done, whoever's it is, however long that
    /// takes.
    #[doc(alias = "cuCtxSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: a context is current.
        unsafe { call!(self, cuCtxSynchronize()) }
    }

    /// The GPU's memory as of now.
    #[doc(alias = "cuMemGetInfo")]
    pub fn memory(&self) -> Result<MemoryInfo> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are to live integers.
        unsafe { call!(self, cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok(MemoryInfo { free, total })
    }

    /// Lets this context's kernels and copies reach memory that another one's GPU allocated by
    /// cuMemAlloc (a legacy [`Segment`](crate::Segment), a user's slice) in this process. Done twice
    /// it is nothing. VMM memory needs no such call.
    #[doc(alias = "cuCtxEnablePeerAccess")]
    pub fn enable_peer_access(&self, peer: &Context) -> Result<()> {
        if self.device() == peer.device() {
            return Ok(());
        }
        if !self.device().can_access(peer.device())? {
            return Err(Error::Unsupported {
                device: self.ordinal(),
                what: "peer access to another GPU's memory",
                mend: "nvidia-smi topo -p2p r shows which GPUs can; transfers are staged by the host",
            });
        }
        let _current = self.enter()?;
        // SAFETY: both contexts are retained; the flags must be zero, and are.
        match unsafe { call!(self, cuCtxEnablePeerAccess(peer.0.raw, 0)) } {
            Err(error) if error.is(Code::PEER_ACCESS_ALREADY_ENABLED) => Ok(()),
            other => other,
        }
    }

    /// Makes what a NIC has written to this GPU's memory before this call visible (M27).
    #[doc(alias = "cuFlushGPUDirectRDMAWrites")]
    pub fn flush_rdma_writes(&self, scope: FlushScope) -> Result<()> {
        if !self.device().flush_options().host {
            return Err(Error::Unsupported {
                device: self.ordinal(),
                what: "flushing a NIC's writes from the host",
                mend: "flush by a wait on a stream, or by a read over the NIC",
            });
        }
        let target = Target::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX as c_int;
        let scope = match scope {
            FlushScope::Owner => Scope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER,
            FlushScope::AllDevices => Scope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES,
        };
        let _current = self.enter()?;
        // SAFETY: it takes two numbers of cuda.h.
        unsafe { call_optional!(self, cuFlushGPUDirectRDMAWrites(target, scope as c_int)) }
    }

    /// Runs a function while this thread's calls neither fail because another thread captures a
    /// stream into a graph, nor spoil that capture. For threads that drive transfers unseen. Where
    /// the driver hasn't the call, the function simply runs.
    #[doc(alias = "cuThreadExchangeStreamCaptureMode")]
    pub fn beside_captures<T>(&self, run: impl FnOnce() -> T) -> T {
        struct Restore<'a>(&'a Context, c_int);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.exchange_capture_mode(self.1);
            }
        }
        let relaxed = CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as c_int;
        let before = self.exchange_capture_mode(relaxed);
        let _restore = before.map(|mode| Restore(self, mode));
        run()
    }

    /// Sets the thread's mode and gives what it was; none where it can't be set.
    fn exchange_capture_mode(&self, mode: c_int) -> Option<c_int> {
        self.driver().table().cuThreadExchangeStreamCaptureMode?;
        let mut mode = mode;
        // SAFETY: the pointer is to a live integer with a mode of cuda.h.
        let answer =
            unsafe { call_optional!(self, cuThreadExchangeStreamCaptureMode(&raw mut mode)) };
        match answer {
            Ok(()) => Some(mode),
            Err(error) => {
                tracing::debug!(%error, "the thread's capture mode stays");
                None
            }
        }
    }

    /// The CUcontext, for calls that this crate lacks. It lives as long as `self`.
    #[must_use]
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        self.0.raw
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.0.device.driver()
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.0.device.ordinal()
    }

    /// Says more about a lack of memory than the driver does.
    #[cold]
    pub(crate) fn explain(&self, call: &'static str, wanted: usize, error: Error) -> Error {
        if !error.is(Code::OUT_OF_MEMORY) {
            return error;
        }
        match self.memory() {
            Ok(MemoryInfo { free, total }) => Error::OutOfMemory {
                call,
                device: self.ordinal(),
                wanted,
                free,
                total,
            },
            Err(_) => error,
        }
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.0.raw == other.0.raw
    }
}

impl Eq for Context {}

/// Keeps a context current for this thread. Guards are dropped in the reverse order of their making.
#[derive(Debug)]
#[must_use = "the context is current until this is dropped"]
pub struct Current<'a> {
    context: &'a Context,
    /// The context that was current before, if it was another.
    before: Option<Raw>,
    /// A current context is a thread's own: the guard stays on it.
    thread: PhantomData<*mut ()>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        // SAFETY: it was this thread's current context, or none.
        if let Err(error) = unsafe { call!(self.context, cuCtxSetCurrent(before)) } {
            tracing::debug!(%error, "the thread's earlier context was not put back");
        }
    }
}

/// ```compile_fail
/// fn to_another_thread(current: oxshmem_cuda::Current<'static>) {
///     std::thread::spawn(move || drop(current));
/// }
/// ```
#[cfg(doctest)]
struct TheGuardStaysOnItsThread;
