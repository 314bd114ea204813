//! Stream capture and graphs.

// Tests pass pointers to their variables, and fail on any error.
#![allow(clippy::borrow_as_ptr, clippy::expect_used)]

mod driver;

use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use CUstreamCaptureMode_enum as Mode;
use CUstreamCaptureStatus_enum as Status;
use driver::*;

/// A capture in global mode affects calls of all threads, so only one test runs at a time.
fn start() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    load(&[]);
    enter(0);
    alone
}

fn begin(stream: CUstream) {
    ok!(cuStreamBeginCapture_v2(
        stream,
        Mode::CU_STREAM_CAPTURE_MODE_GLOBAL
    ));
}

fn status(stream: CUstream) -> Status {
    let mut status = Status::CU_STREAM_CAPTURE_STATUS_NONE;
    ok!(cuStreamIsCapturing(stream, &mut status));
    status
}

fn end_invalid(stream: CUstream) {
    let mut graph = null_mut();
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        cuStreamEndCapture(stream, &mut graph)
    );
    assert!(graph.is_null());
    assert_eq!(status(stream), Status::CU_STREAM_CAPTURE_STATUS_NONE);
}

fn device_words(count: usize) -> CUdeviceptr {
    let mut at = 0;
    ok!(cuMemAlloc_v2(&mut at, count * 8));
    ok!(put(at, &vec![0; count]));
    ok!(cuStreamSynchronize(null_mut()));
    at
}

#[test]
fn a_graph_does_what_was_captured_each_time_it_is_launched() {
    let _alone = start();
    let (one, two) = (stream(), stream());
    let at = device_words(3);
    let pinned = pinned_words(1);
    let (mut forked, mut joined) = (null_mut(), null_mut());
    ok!(cuEventCreate(&mut forked, 2));
    ok!(cuEventCreate(&mut joined, 2));
    begin(one);
    assert_eq!(status(one), Status::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ok!(cuMemcpyHtoDAsync_v2(at, pinned.cast(), 8, one));
    ok!(cuEventRecord(forked, one));
    ok!(cuStreamWaitEvent(two, forked, 0));
    assert_eq!(status(two), Status::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ok!(cuMemcpyDtoDAsync_v2(at + 8, at, 8, two));
    ok!(cuEventRecord(joined, two));
    ok!(cuStreamWaitEvent(one, joined, 0));
    ok!(cuStreamWriteValue64_v2(one, at + 16, 9, 0));
    let mut graph = null_mut();
    ok!(cuStreamEndCapture(one, &mut graph));
    assert_eq!(status(two), Status::CU_STREAM_CAPTURE_STATUS_NONE);
    assert_eq!(words(at, 3), [0; 3], "capturing does nothing");
    let mut nodes = 0;
    ok!(cuGraphGetNodes(graph, null_mut(), &mut nodes));
    assert_eq!(nodes, 3);
    let mut executable = null_mut();
    ok!(cuGraphInstantiateWithFlags(&mut executable, graph, 0));
    ok!(cuGraphDestroy(graph));
    for value in [5, 6] {
        // SAFETY: page-locked memory of this test, no work in progress.
        unsafe { pinned.write(value) };
        ok!(cuGraphLaunch(executable, one));
        ok!(cuStreamSynchronize(one));
        assert_eq!(words(at, 3), [value, value, 9]);
    }
    ok!(cuGraphExecDestroy(executable));
    refused!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, one));
}

#[test]
fn calls_that_a_capture_forbids_spoil_it() {
    let _alone = start();
    let stream = stream();
    let at = device_words(1);
    let pinned = pinned_words(1);
    let mut other = 0;
    let forbidden: [&dyn Fn(&mut u64) -> CUresult; 7] = [
        // SAFETY: valid handles and places for answers.
        &|_| unsafe { cuStreamSynchronize(stream) },
        // SAFETY: as above.
        &|_| unsafe { cuStreamQuery(stream) },
        // SAFETY: as above.
        &|_| unsafe { cuCtxSynchronize() },
        // SAFETY: as above.
        &|other| unsafe { cuMemAlloc_v2(other, 8) },
        // SAFETY: as above.
        &|_| unsafe { cuMemFree_v2(at) },
        // SAFETY: as above.
        &|_| unsafe { cuMemFreeHost(pinned.cast()) },
        // SAFETY: as above.
        &|_| unsafe { cuMemsetD8_v2(at, 0, 8) },
    ];
    for call in forbidden {
        begin(stream);
        assert_eq!(
            call(&mut other),
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        );
        assert_eq!(status(stream), Status::CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        refused!(
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
            cuMemsetD8Async(at, 0, 8, stream)
        );
        end_invalid(stream);
    }
}

#[test]
fn a_relaxed_thread_may_allocate_while_work_is_captured() {
    let _alone = start();
    let stream = stream();
    let mut mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
    ok!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, Mode::CU_STREAM_CAPTURE_MODE_GLOBAL);
    begin(stream);
    let mut at = 0;
    ok!(cuMemAlloc_v2(&mut at, 8));
    ok!(cuMemsetD8Async(at, 3, 8, stream));
    let mut graph = null_mut();
    ok!(cuStreamEndCapture(stream, &mut graph));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn captures_end_where_they_began_and_with_all_joined() {
    let _alone = start();
    let (one, two) = (stream(), stream());
    let (mut event, mut graph) = (null_mut(), null_mut());
    ok!(cuEventCreate(&mut event, 2));
    begin(one);
    ok!(cuEventRecord(event, one));
    ok!(cuStreamWaitEvent(two, event, 0));
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
        cuStreamEndCapture(two, &mut graph)
    );
    end_invalid(one);

    begin(one);
    ok!(cuEventRecord(event, one));
    ok!(cuStreamWaitEvent(two, event, 0));
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        cuStreamEndCapture(one, &mut graph)
    );
    assert_eq!(status(two), Status::CU_STREAM_CAPTURE_STATUS_NONE);

    begin(one);
    let address = one as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            enter(0);
            let mut graph = null_mut();
            let one = address as CUstream;
            refused!(
                CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                cuStreamEndCapture(one, &mut graph)
            );
        });
    });
    ok!(cuStreamEndCapture(one, &mut graph));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamEndCapture(one, &mut graph)
    );
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        cuStreamBeginCapture_v2(null_mut(), Mode::CU_STREAM_CAPTURE_MODE_GLOBAL)
    );
}

#[test]
fn captured_events_and_foreign_ones_are_refused() {
    let _alone = start();
    let (one, other) = (stream(), stream());
    let (mut inside, mut outside) = (null_mut(), null_mut());
    ok!(cuEventCreate(&mut inside, 2));
    ok!(cuEventCreate(&mut outside, 2));
    begin(one);
    ok!(cuEventRecord(inside, one));
    refused!(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(inside));
    end_invalid(one);
    ok!(cuEventRecord(outside, other));
    begin(one);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        cuStreamWaitEvent(one, outside, 0)
    );
    end_invalid(one);
}

/// A rule for threads that query events, also on the real driver.
#[test]
fn events_beside_a_capture_are_asked_by_relaxed_threads_only() {
    let _alone = start();
    let (one, other) = (stream(), stream());
    let mut event = null_mut();
    ok!(cuEventCreate(&mut event, 2));
    ok!(cuEventRecord(event, other));
    ok!(cuEventSynchronize(event));
    for asked in [cuEventQuery, cuEventSynchronize] {
        begin(one);
        // SAFETY: a valid event.
        let answer = unsafe { asked(event) };
        assert_eq!(answer, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        end_invalid(one);
    }
    begin(one);
    let mut mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
    ok!(cuThreadExchangeStreamCaptureMode(&mut mode));
    ok!(cuEventQuery(event));
    ok!(cuEventSynchronize(event));
    ok!(cuThreadExchangeStreamCaptureMode(&mut mode));
    let mut graph = null_mut();
    ok!(cuStreamEndCapture(one, &mut graph));
    ok!(cuGraphDestroy(graph));

    // In any mode: an event that is in the capture has no answer, then or later.
    ok!(cuThreadExchangeStreamCaptureMode(&mut mode));
    begin(one);
    ok!(cuEventRecord(event, one));
    refused!(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event));
    end_invalid(one);
    refused!(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event));
    ok!(cuThreadExchangeStreamCaptureMode(&mut mode));
}

#[test]
fn the_default_stream_may_not_wait_for_a_capture() {
    let _alone = start();
    let mut blocking = null_mut();
    ok!(cuStreamCreate(&mut blocking, 0));
    let at = device_words(1);
    begin(blocking);
    refused!(
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        cuMemsetD8Async(at, 0, 8, null_mut())
    );
    end_invalid(blocking);
}
