//! Functions of the host that a stream calls.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Stream;
use crate::error::{Error, Result};
use crate::table::{HostFunction, call};

impl Stream {
    /// Calls a function on a thread of the driver's when all earlier work is done; later work waits
    /// for its return. It makes no CUDA call and waits for nothing that the GPU does. A panic in it
    /// ends there and is logged. If the GPU's context dies first it is neither called nor dropped.
    ///
    /// Refused while the stream is captured, since a graph may run more than once: use
    /// [`host_func_raw`](Self::host_func_raw) there.
    #[doc(alias = "cuLaunchHostFunc")]
    pub fn host_func(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        unsafe extern "C" fn run(data: *mut c_void) {
            // SAFETY: it is the box that host_func made, given to one call.
            let function = unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) };
            if catch_unwind(AssertUnwindSafe(function)).is_err() {
                tracing::error!("a function called by a stream panicked");
            }
        }
        if self.is_capturing()? {
            return Err(Error::Invalid {
                what: "calling a function from a stream",
                why: "the stream is being captured, and the function can be called once only"
                    .into(),
            });
        }
        let function: Box<Box<dyn FnOnce() + Send>> = Box::new(Box::new(function));
        let data = Box::into_raw(function).cast::<c_void>();
        // SAFETY: `run` wants exactly this box, and never unwinds.
        let answer = unsafe { self.host_func_raw(run, data) };
        if answer.is_err() {
            // SAFETY: the driver refused, so it will not call.
            drop(unsafe { Box::from_raw(data.cast::<Box<dyn FnOnce() + Send>>()) });
        }
        answer
    }

    /// As [`host_func`](Self::host_func), by a pointer and its argument; in a captured stream, once
    /// for every run of the graph.
    ///
    /// # Safety
    ///
    /// `function` doesn't unwind, makes no CUDA call, and may be called with `data` on any thread, as
    /// often as the work is done.
    pub unsafe fn host_func_raw(
        &self,
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) -> Result<()> {
        let function: HostFunction = function;
        let _current = self.context.enter()?;
        // SAFETY: the caller answers for function and data.
        unsafe { call!(self, cuLaunchHostFunc(self.raw, function, data)) }
    }
}
