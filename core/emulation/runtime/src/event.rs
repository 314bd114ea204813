//! Events.

use crate::driver;
use crate::error::{Error, Outcome, own_stream};
use crate::primary;

fn create(out: *mut u64, flags: u32) -> Outcome {
    primary::ensure()?;
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    driver::cuEventCreate(out, flags)
}

fn record(event: u64, stream: u64, flags: u32) -> Outcome {
    primary::ensure()?;
    driver::cuEventRecordWithFlags(event, stream, flags)
}

runtime_calls! {
    /// Makes an event.
    fn cudaEventCreate(out: *mut u64) {
        create(out, 0)
    }

    /// Makes an event.
    fn cudaEventCreateWithFlags(out: *mut u64, flags: u32) {
        create(out, flags)
    }

    /// Destroys an event.
    fn cudaEventDestroy(event: u64) {
        driver::cuEventDestroy_v2(event)
    }

    /// Whether an event has come.
    fn cudaEventQuery(event: u64) {
        driver::cuEventQuery(event)
    }

    /// Waits for an event.
    fn cudaEventSynchronize(event: u64) {
        driver::cuEventSynchronize(event)
    }

    /// Milliseconds between two events.
    fn cudaEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64) {
        driver::cuEventElapsedTime(milliseconds, start, end)
    }

    /// Milliseconds between two events.
    fn cudaEventElapsedTime_v2(milliseconds: *mut f32, start: u64, end: u64) {
        driver::cuEventElapsedTime(milliseconds, start, end)
    }

    /// Marks a stream's present position.
    fn cudaEventRecord(event: u64, stream: u64) {
        record(event, stream, 0)
    }

    /// Marks a stream's present position.
    fn cudaEventRecord_ptsz(event: u64, stream: u64) {
        record(event, own_stream(stream), 0)
    }

    /// Marks a stream's present position.
    fn cudaEventRecordWithFlags(event: u64, stream: u64, flags: u32) {
        record(event, stream, flags)
    }

    /// Marks a stream's present position.
    fn cudaEventRecordWithFlags_ptsz(event: u64, stream: u64, flags: u32) {
        record(event, own_stream(stream), flags)
    }
}
