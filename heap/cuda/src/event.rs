//! Events of streams.

use std::ffi::c_uint;
use std::fmt;
use std::ptr;
use std::time::Duration;

use cudarc::driver::sys::CUevent_flags;

use crate::context::Context;
use crate::error::Result;
use crate::poll::poll;
use crate::table::{Code, Raw, call};

/// A point in a stream's work, to await or to look back at.
pub struct Event {
    context: Context,
    raw: Raw,
}

// SAFETY: a CUevent may be used from any thread, also from several at once (CUDA's manual).
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl Event {
    /// An event that keeps no time, which is cheaper.
    #[doc(alias = "cuEventCreate")]
    pub fn new(context: &Context) -> Result<Self> {
        Self::create(context, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// An event that keeps the time at which it happened.
    pub fn timed(context: &Context) -> Result<Self> {
        Self::create(context, CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn create(context: &Context, flags: CUevent_flags) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { call!(context, cuEventCreate(&raw mut raw, flags as c_uint)) }?;
        Ok(Event {
            context: context.clone(),
            raw,
        })
    }

    /// Whether it has happened since it was last recorded. One that was never recorded has.
    #[doc(alias = "cuEventQuery")]
    pub fn has_happened(&self) -> Result<bool> {
        let _current = self.context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { call!(self.context, cuEventQuery(self.raw)) } {
            Ok(()) => Ok(true),
            Err(error) if error.is(Code::NOT_READY) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until it has happened, but no longer than `patience`.
    pub fn synchronize_within(&self, patience: Duration) -> Result<()> {
        poll(patience, "an event", &self.context, || self.has_happened())
    }

    /// The time from another event to this one, to about half a microsecond. Both are timed and have
    /// happened.
    #[doc(alias = "cuEventElapsedTime")]
    pub fn since(&self, earlier: &Event) -> Result<Duration> {
        let _current = self.context.enter()?;
        let mut milliseconds = 0_f32;
        // SAFETY: the pointer is to a live number, both events are alive.
        unsafe {
            call!(
                self.context,
                cuEventElapsedTime(&raw mut milliseconds, earlier.raw, self.raw)
            )
        }?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }

    pub(crate) fn raw(&self) -> Raw {
        self.raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it was created once and is destroyed once; the driver keeps what streams wait for.
        let answer = self
            .context
            .enter()
            .and_then(|_current| unsafe { call!(self.context, cuEventDestroy_v2(self.raw)) });
        if let Err(error) = answer {
            tracing::debug!(%error, "an event was not destroyed");
        }
    }
}
