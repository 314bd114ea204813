//! Graphs: recorded work of a stream.

use std::ffi::c_int;
use std::fmt;
use std::ptr;

use cudarc::driver::sys::CUstreamCaptureMode;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::stream::Stream;
use crate::table::{Raw, call_optional};

/// Work that was recorded from a stream, to be done as often as wanted by one call.
pub struct Graph {
    context: Context,
    executable: Raw,
}

// SAFETY: a CUgraphExec may move between threads; `launch` takes `&mut self`, so that no two threads
// launch it at once, which the driver forbids.
unsafe impl Send for Graph {}
// SAFETY: a shared reference allows nothing but its description.
unsafe impl Sync for Graph {}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl Graph {
    /// Records what `record` queues on a stream, instead of doing it. If it fails, or queues what
    /// can't be recorded, that is the error, and the stream is as it was.
    #[doc(alias = "cuStreamBeginCapture")]
    pub fn capture<E: From<Error>>(
        stream: &Stream,
        record: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        let context = stream.context();
        let _current = context.enter()?;
        // Other threads' calls don't spoil the recording; this one's may.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL as c_int;
        // SAFETY: the stream is alive.
        unsafe { call_optional!(context, cuStreamBeginCapture_v2(stream.as_raw(), mode)) }?;
        let recording = Recording { stream, on: true };
        record(stream)?;
        let plan = recording.end()?;
        let mut executable: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer; the plan is alive; no flag is set.
        unsafe {
            call_optional!(
                context,
                cuGraphInstantiateWithFlags(&raw mut executable, plan.raw, 0)
            )
        }?;
        Ok(Graph {
            context: context.clone(),
            executable,
        })
    }

    /// Queues the recorded work on a stream.
    ///
    /// # Safety
    ///
    /// The demands of the calls that recorded it hold for this run as well.
    #[doc(alias = "cuGraphLaunch")]
    pub unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        if stream.context() != &self.context {
            return Err(Error::Invalid {
                what: "launching a graph",
                why: "the stream is of another context".into(),
            });
        }
        let _current = self.context.enter()?;
        // SAFETY: graph and stream are alive; the caller answers for the work.
        unsafe {
            call_optional!(
                self.context,
                cuGraphLaunch(self.executable, stream.as_raw())
            )
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it was made once and is destroyed once; a run in progress goes on.
        let answer = self.context.enter().and_then(|_current| unsafe {
            call_optional!(self.context, cuGraphExecDestroy(self.executable))
        });
        if let Err(error) = answer {
            tracing::debug!(%error, "a graph was not destroyed");
        }
    }
}

/// A capture in progress, ended also when recording fails or panics.
struct Recording<'a> {
    stream: &'a Stream,
    on: bool,
}

impl<'a> Recording<'a> {
    fn end(mut self) -> Result<Plan<'a>> {
        self.on = false;
        self.stop()
    }

    fn stop(&self) -> Result<Plan<'a>> {
        let context = self.stream.context();
        let mut raw: Raw = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer; this thread began the capture.
        unsafe {
            call_optional!(
                context,
                cuStreamEndCapture(self.stream.as_raw(), &raw mut raw)
            )
        }?;
        Ok(Plan { context, raw })
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if self.on
            && let Err(error) = self.stop()
        {
            tracing::debug!(%error, "a failed capture");
        }
    }
}

/// A CUgraph, destroyed when dropped.
struct Plan<'a> {
    context: &'a Context,
    raw: Raw,
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        // SAFETY: it was made once and is destroyed once.
        if let Err(error) = unsafe { call_optional!(self.context, cuGraphDestroy(self.raw)) } {
            tracing::debug!(%error, "a graph's plan was not destroyed");
        }
    }
}
