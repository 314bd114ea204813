//! Streams.

use std::ffi::c_void;

use crate::driver;
use crate::error::{Error, Outcome};
use crate::primary;

fn create(out: *mut u64, flags: u32, priority: i32) -> Outcome {
    primary::ensure()?;
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    driver::cuStreamCreateWithPriority(out, flags, priority)
}

runtime_calls! {
    /// Makes a stream.
    fn cudaStreamCreate(out: *mut u64) {
        create(out, 0, 0)
    }

    /// Makes a stream.
    fn cudaStreamCreateWithFlags(out: *mut u64, flags: u32) {
        create(out, flags, 0)
    }

    /// Makes a stream with a priority.
    fn cudaStreamCreateWithPriority(out: *mut u64, flags: u32, priority: i32) {
        create(out, flags, priority)
    }

    /// Destroys a stream; its work is still done.
    fn cudaStreamDestroy(stream: u64) {
        driver::cuStreamDestroy_v2(stream)
    }

    /// Lowest and highest priority.
    fn cudaDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) {
        primary::ensure()?;
        driver::cuCtxGetStreamPriorityRange(least, greatest)
    }

    /// Changes how captures of this thread treat other calls.
    fn cudaThreadExchangeStreamCaptureMode(mode: *mut u32) {
        primary::ensure()?;
        driver::cuThreadExchangeStreamCaptureMode(mode)
    }
}

/// Calls whose first argument is the stream.
macro_rules! of_stream {
    ($($(#[$meta:meta])* fn $name:ident, $own:ident => $call:ident($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// As the CUDA runtime API says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(stream: u64, $($arg: $ty),*) -> u32 {
            crate::error::guarded(move || {
                primary::ensure()?;
                driver::$call(stream, $($arg),*)
            })
        }

        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// As above.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $own(stream: u64, $($arg: $ty),*) -> u32 {
            crate::error::guarded(move || {
                primary::ensure()?;
                driver::$call(if stream == 0 { 2 } else { stream }, $($arg),*)
            })
        }
    )*};
}

of_stream! {
    /// Waits for all work of a stream.
    fn cudaStreamSynchronize, cudaStreamSynchronize_ptsz => cuStreamSynchronize();
    /// Whether a stream has done all its work.
    fn cudaStreamQuery, cudaStreamQuery_ptsz => cuStreamQuery();
    /// Has a stream wait for an event.
    fn cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz => cuStreamWaitEvent(event: u64, flags: u32);
    /// The stream's priority.
    fn cudaStreamGetPriority, cudaStreamGetPriority_ptsz => cuStreamGetPriority(priority: *mut i32);
    /// The flags that the stream was made with.
    fn cudaStreamGetFlags, cudaStreamGetFlags_ptsz => cuStreamGetFlags(flags: *mut u32);
    /// A number that no other stream has.
    fn cudaStreamGetId, cudaStreamGetId_ptsz => cuStreamGetId(id: *mut u64);
    /// The stream's device.
    fn cudaStreamGetDevice, cudaStreamGetDevice_ptsz => cuStreamGetDevice(device: *mut i32);
    /// Calls a function of the host when the stream gets there.
    fn cudaStreamAddCallback, cudaStreamAddCallback_ptsz => cuStreamAddCallback(function: *const c_void, data: *mut c_void, flags: u32);
    /// Calls a function of the host as work of the stream.
    fn cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz => cuLaunchHostFunc(function: *const c_void, data: *mut c_void);
    /// Begins to record the stream's work.
    fn cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz => cuStreamBeginCapture_v2(mode: u32);
    /// Ends the recording.
    fn cudaStreamEndCapture, cudaStreamEndCapture_ptsz => cuStreamEndCapture(graph: *mut u64);
    /// Whether the stream's work is recorded.
    fn cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz => cuStreamIsCapturing(status: *mut u32);
}
