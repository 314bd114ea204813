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

/// Adds one to a number.
unsafe extern "C" fn count(number: *mut std::ffi::c_void) {
    // SAFETY: the test gives a number of its own, which it reads when the stream is done.
    unsafe { *number.cast::<u64>() += 1 };
}

/// A copy of rows of words, in planes, between device memory of two pitches: of one word of the second row of each plane.
fn second_rows(from: CUdeviceptr, to: CUdeviceptr) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: 8,
        srcY: 1,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: null_mut(),
        srcDevice: from,
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: 16,
        srcHeight: 2,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: to,
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: 8,
        dstHeight: 1,
        WidthInBytes: 8,
        Height: 1,
        Depth: 3,
    }
}

#[test]
fn a_graph_of_nodes_keeps_their_dependencies_whatever_the_order_they_were_made_in() {
    let _alone = start();
    let context = enter(0);
    let stream = stream();
    // Three planes of two rows of two words, and one word of each.
    let at = device_words(12);
    let to = device_words(3);
    ok!(put(at, &(100..112).collect::<Vec<u64>>()));
    ok!(cuStreamSynchronize(null_mut()));
    let mut graph = null_mut();
    refused!(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&mut graph, 1));
    ok!(cuGraphCreate(&mut graph, 0));
    let copy = second_rows(at, to);
    let fill = |dst, value| CUDA_MEMSET_NODE_PARAMS {
        dst,
        pitch: 0,
        value,
        elementSize: 4,
        width: 1,
        height: 1,
    };
    let (mut late, mut early, mut copied, mut called, mut joint) =
        (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
    let mut calls = 0u64;
    let call = CUDA_HOST_NODE_PARAMS {
        fn_: Some(count),
        userData: (&raw mut calls).cast(),
    };
    // The last word is set behind the copy, and the word that it copies before it.
    let (last, word) = (fill(to + 16, 5), fill(at + 24, 7));
    ok!(cuGraphAddMemsetNode(
        &mut late,
        graph,
        null_mut(),
        0,
        &last,
        context
    ));
    ok!(cuGraphAddHostNode(&mut called, graph, &late, 1, &call));
    ok!(cuGraphAddMemcpyNode(
        &mut copied,
        graph,
        null_mut(),
        0,
        &copy,
        context
    ));
    ok!(cuGraphAddEmptyNode(&mut joint, graph, &copied, 1));
    ok!(cuGraphAddMemsetNode(
        &mut early,
        graph,
        null_mut(),
        0,
        &word,
        context
    ));
    ok!(cuGraphAddDependencies(
        graph,
        [joint, early].as_ptr(),
        [late, copied].as_ptr(),
        2
    ));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuGraphAddDependencies(graph, &early, &copied, 1)
    );
    let mut executable = null_mut();
    ok!(cuGraphInstantiateWithFlags(&mut executable, graph, 0));
    for launches in 1..=2 {
        ok!(cuGraphLaunch(executable, stream));
        ok!(cuStreamSynchronize(stream));
        assert_eq!(words(to, 3), [7, 107, 5]);
        assert_eq!(calls, launches);
    }
    // A launch does what was asked of it before the change.
    let nine = fill(at + 24, 9);
    ok!(cuGraphLaunch(executable, stream));
    ok!(cuGraphExecMemsetNodeSetParams(
        executable, early, &nine, context
    ));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(to, 1), [7]);
    ok!(cuGraphLaunch(executable, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(to, 1), [9]);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuGraphExecMemsetNodeSetParams(executable, copied, &nine, context)
    );

    let mut clone = null_mut();
    let mut own = null_mut();
    ok!(cuGraphClone(&mut clone, graph));
    ok!(cuGraphNodeFindInClone(&mut own, late, clone));
    assert_ne!(own, late);
    ok!(cuGraphDestroyNode(own));
    refused!(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(own));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuGraphNodeFindInClone(&mut own, late, clone)
    );
    let mut nodes = 0;
    ok!(cuGraphGetNodes(clone, null_mut(), &mut nodes));
    assert_eq!(nodes, 4);

    // A circle, and a node of another graph.
    ok!(cuGraphAddDependencies(graph, &called, &early, 1));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuGraphInstantiateWithFlags(&mut executable, graph, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuGraphAddEmptyNode(&mut own, clone, &late, 1)
    );
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphDestroy(clone));
}

#[test]
fn a_child_graph_is_what_it_was_when_it_was_added_and_its_events_are_recorded_at_each_launch() {
    let _alone = start();
    let context = enter(0);
    let (stream, other) = (stream(), stream());
    let at = device_words(1);
    let (mut outer, mut inner, mut node, mut event) =
        (null_mut(), null_mut(), null_mut(), null_mut());
    ok!(cuGraphCreate(&mut outer, 0));
    ok!(cuGraphCreate(&mut inner, 0));
    ok!(cuEventCreate(&mut event, 2));
    let fill = |value| CUDA_MEMSET_NODE_PARAMS {
        dst: at,
        pitch: 0,
        value,
        elementSize: 4,
        width: 2,
        height: 1,
    };
    ok!(cuGraphAddMemsetNode(
        &mut node,
        inner,
        null_mut(),
        0,
        &fill(1),
        context
    ));
    ok!(cuGraphAddEventRecordNode(&mut node, inner, &node, 1, event));
    let mut child = null_mut();
    ok!(cuGraphAddChildGraphNode(
        &mut child,
        outer,
        null_mut(),
        0,
        inner
    ));
    ok!(cuGraphAddEventWaitNode(&mut node, outer, &child, 1, event));
    ok!(cuGraphDestroy(inner));
    let mut executable = null_mut();
    ok!(cuGraphInstantiateWithFlags(&mut executable, outer, 0));
    for _ in 0..2 {
        ok!(put(at, &[0]));
        ok!(cuStreamSynchronize(null_mut()));
        ok!(cuGraphLaunch(executable, stream));
        ok!(cuStreamSynchronize(stream));
        ok!(cuEventQuery(event));
        ok!(cuStreamWaitEvent(other, event, 0));
        ok!(cuStreamSynchronize(other));
        assert_eq!(words(at, 1), [(1 << 32) + 1]);
    }
    ok!(cuGraphExecDestroy(executable));
    ok!(cuGraphDestroy(outer));
}

#[test]
fn planes_are_copied_by_their_own_pitches_and_heights() {
    let _alone = start();
    let at = device_words(12);
    let to = device_words(3);
    ok!(put(at, &(100..112).collect::<Vec<u64>>()));
    ok!(cuStreamSynchronize(null_mut()));
    let mut copy = second_rows(at, to);
    ok!(cuMemcpy3D_v2(&copy));
    ok!(cuStreamSynchronize(null_mut()));
    assert_eq!(words(to, 3), [103, 107, 111]);
    copy.dstZ = 1;
    copy.Depth = 2;
    let stream = stream();
    ok!(cuMemcpy3DAsync_v2(&copy, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(to, 3), [103, 103, 107]);
    (copy.Height, copy.srcY) = (2, 0);
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&copy));
}
