//! Streams, events, memory operations and copies: asynchronous calls return at once, and waits
//! wait.

// Tests pass pointers to their variables, and fail on any error.
#![allow(clippy::borrow_as_ptr, clippy::expect_used)]

mod driver;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use driver::*;

fn start() {
    load(&[("SOFTCUDA_DEVICES", "2"), ("SOFTCUDA_JITTER", "11")]);
    enter(0);
}

/// A new context of the first device, current on this thread.
fn own_context() -> CUcontext {
    let mut context = null_mut();
    ok!(cuCtxCreate_v2(&mut context, 0, 1));
    context
}

fn device_words(count: usize) -> CUdeviceptr {
    let mut at = 0;
    ok!(cuMemAlloc_v2(&mut at, count * 8));
    ok!(cuMemsetD8_v2(at, 0, count * 8));
    ok!(cuStreamSynchronize(null_mut()));
    at
}

/// Holds a stream until the word in page-locked memory is set.
struct Gate(*mut u64);

impl Gate {
    fn close(stream: CUstream) -> Gate {
        let word = pinned_words(1);
        let equal = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ as u32;
        ok!(cuStreamWaitValue64_v2(stream, word as u64, 1, equal));
        Gate(word)
    }

    fn open(&self) {
        // SAFETY: page-locked memory of this test, aligned.
        unsafe { AtomicU64::from_ptr(self.0) }.store(1, Ordering::Release);
    }
}

fn blocking_stream() -> CUstream {
    let mut stream = null_mut();
    ok!(cuStreamCreate(&mut stream, 0));
    stream
}

#[test]
fn work_is_done_later_and_in_order() {
    start();
    let stream = stream();
    let at = device_words(2);
    let gate = Gate::close(stream);
    ok!(cuStreamWriteValue64_v2(stream, at, 5, 0));
    ok!(cuMemcpyDtoDAsync_v2(at + 8, at, 8, stream));
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    let other = driver::stream();
    let seen = pinned_words(2);
    ok!(cuMemcpyAsync(seen as u64, at, 16, other));
    ok!(cuStreamSynchronize(other));
    // SAFETY: two words, written by a stream that has ended its work.
    assert_eq!(unsafe { (*seen, *seen.add(1)) }, (0, 0));
    gate.open();
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamQuery(stream));
    assert_eq!(words(at, 2), [5, 5]);
    ok!(cuStreamDestroy_v2(stream));
    refused!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    ok!(cuStreamDestroy_v2(other));
    ok!(cuMemFree_v2(at));
}

#[test]
fn the_default_stream_waits_for_blocking_streams_and_they_for_it() {
    start();
    let (one, two) = (blocking_stream(), blocking_stream());
    let at = device_words(3);
    let gate = Gate::close(one);
    ok!(cuStreamWriteValue64_v2(one, at, 1, 0));
    // Copies the data of the blocking stream's earlier write, which has not happened yet.
    ok!(cuMemcpyDtoDAsync_v2(at + 8, at, 8, null_mut()));
    ok!(cuMemcpyDtoDAsync_v2(at + 16, at + 8, 8, two));
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(null_mut()));
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(two));
    gate.open();
    ok!(cuStreamSynchronize(two));
    assert_eq!(words(at, 3), [1, 1, 1]);
    ok!(cuStreamDestroy_v2(one));
    ok!(cuStreamDestroy_v2(two));
}

#[test]
fn the_default_stream_does_not_wait_for_other_streams() {
    start();
    let held = stream();
    let at = device_words(1);
    let gate = Gate::close(held);
    ok!(put(at, &[3]));
    assert_eq!(words(at, 1), [3]);
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
    gate.open();
    ok!(cuStreamSynchronize(held));
}

#[test]
fn the_context_waits_for_all_streams() {
    start();
    // In a context of its own, so that other tests' streams have no effect.
    let context = own_context();
    let held = stream();
    let at = device_words(1);
    ok!(cuStreamSynchronize(null_mut()));
    let gate = Gate::close(held);
    ok!(cuStreamWriteValue64_v2(held, at, 8, 0));
    std::thread::scope(|scope| {
        scope.spawn(|| gate_later(&gate));
        ok!(cuCtxSynchronize());
    });
    ok!(cuStreamQuery(held));
    assert_eq!(words(at, 1), [8]);
    ok!(cuCtxDestroy_v2(context));
    refused!(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(held));
}

fn gate_later(gate: &Gate) {
    std::thread::yield_now();
    gate.open();
}

// SAFETY: the gate is one word used by atomics.
unsafe impl Sync for Gate {}

#[test]
fn events_order_streams_and_tell_time() {
    start();
    let (one, two) = (stream(), stream());
    let (mut first, mut second, mut timeless) = (null_mut(), null_mut(), null_mut());
    ok!(cuEventCreate(&mut first, 0));
    ok!(cuEventCreate(&mut second, 0));
    ok!(cuEventCreate(&mut timeless, 2));
    ok!(cuEventQuery(first));
    let at = device_words(2);
    let mut milliseconds = 0f32;
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        cuEventElapsedTime(&mut milliseconds, first, second)
    );
    ok!(cuEventRecord(first, one));
    let gate = Gate::close(one);
    ok!(cuStreamWriteValue64_v2(one, at, 4, 0));
    ok!(cuEventRecord(second, one));
    ok!(cuEventRecord(timeless, one));
    ok!(cuStreamWaitEvent(two, second, 0));
    ok!(cuMemcpyDtoDAsync_v2(at + 8, at, 8, two));
    refused!(CUDA_ERROR_NOT_READY, cuEventQuery(second));
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(two));
    ok!(cuEventSynchronize(first));
    refused!(
        CUDA_ERROR_NOT_READY,
        cuEventElapsedTime(&mut milliseconds, first, second)
    );
    gate.open();
    ok!(cuEventSynchronize(second));
    ok!(cuStreamSynchronize(two));
    assert_eq!(words(at, 2), [4, 4]);
    ok!(cuEventElapsedTime(&mut milliseconds, first, second));
    assert!(milliseconds > 0.0);
    refused!(
        CUDA_ERROR_INVALID_HANDLE,
        cuEventElapsedTime(&mut milliseconds, first, timeless)
    );
    // An event of one context is not recorded in another's stream.
    enter(1);
    let foreign = stream();
    refused!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(first, foreign));
    ok!(cuStreamWaitEvent(foreign, first, 0));
    ok!(cuStreamSynchronize(foreign));
    enter(0);
    ok!(cuEventDestroy_v2(first));
    refused!(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(first));
    refused!(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&mut first, 8));
}

#[test]
fn memory_operations_want_aligned_known_memory() {
    start();
    let stream = stream();
    let at = device_words(1);
    let mut pageable = 0u64;
    let host = &raw mut pageable as u64;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWriteValue64_v2(stream, at + 4, 1, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWriteValue32_v2(stream, at + 2, 1, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWriteValue64_v2(stream, host, 1, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWriteValue64_v2(stream, at + 8, 1, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWriteValue64_v2(stream, at, 1, 2)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWaitValue64_v2(stream, at, 1, 4)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWaitValue64_v2(stream, host, 1, 0)
    );
    // The high half of a word is its own 32-bit word; a flush may be asked for.
    ok!(cuStreamWriteValue32_v2(stream, at + 4, 6, 1));
    ok!(cuStreamWaitValue64_v2(stream, at, 6 << 32, 1 | 1 << 30));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(at, 1), [6 << 32]);
}

#[test]
fn a_batch_of_memory_operations_is_done_in_order() {
    start();
    let (one, two) = (stream(), stream());
    let at = device_words(2);
    use CUstreamBatchMemOpType_enum as Kind;
    // SAFETY: all zeroes is valid for plain data, the operation being set below.
    let mut entries: [CUstreamBatchMemOpParams; 3] = unsafe { std::mem::zeroed() };
    entries[0].waitValue.operation = Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64;
    entries[0].waitValue.address = at;
    entries[0].waitValue.__bindgen_anon_1.value64 = 1;
    entries[1].writeValue.operation = Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64;
    entries[1].writeValue.address = at + 8;
    entries[1].writeValue.__bindgen_anon_1.value64 = 2;
    entries[2].flushRemoteWrites.operation = Kind::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamBatchMemOp_v2(one, 3, entries.as_mut_ptr(), 1)
    );
    ok!(cuStreamBatchMemOp_v2(one, 3, entries.as_mut_ptr(), 0));
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(one));
    ok!(cuStreamWriteValue64_v2(two, at, 1, 0));
    ok!(cuStreamSynchronize(one));
    assert_eq!(words(at, 2), [1, 2]);
}

#[test]
fn a_pageable_source_may_be_reused_at_once_and_a_pinned_one_may_not() {
    start();
    let stream = stream();
    let at = device_words(2);
    let pinned = pinned_words(1);
    let mut pageable = [1u64];
    // SAFETY: page-locked memory of this test.
    unsafe { pinned.write(1) };
    let gate = Gate::close(stream);
    ok!(cuMemcpyHtoDAsync_v2(
        at,
        pageable.as_ptr().cast(),
        8,
        stream
    ));
    ok!(cuMemcpyHtoDAsync_v2(at + 8, pinned.cast(), 8, stream));
    pageable[0] = 2;
    // SAFETY: as above; the stream has not yet read it.
    unsafe { AtomicU64::from_ptr(pinned) }.store(2, Ordering::Release);
    gate.open();
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(at, 2), [1, pageable[0]]);
}

#[test]
fn a_copy_to_pageable_memory_is_there_when_the_call_returns() {
    start();
    let stream = stream();
    let at = device_words(1);
    ok!(cuStreamWriteValue64_v2(stream, at, 77, 0));
    let mut word = [0u64];
    ok!(cuMemcpyDtoHAsync_v2(
        word.as_mut_ptr().cast(),
        at,
        8,
        stream
    ));
    assert_eq!(word, [77]);
}

#[test]
fn the_two_ends_of_a_copy_must_be_what_the_call_says() {
    start();
    let at = device_words(1);
    let mut host = [0u64; 2];
    let address = host.as_mut_ptr();
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyHtoD_v2(address as u64, address.cast(), 8)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyHtoD_v2(at, at as *const c_void, 8)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyDtoD_v2(at, address as u64, 8)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyDtoH_v2(address.cast(), at, 16)
    );
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(null_mut(), at, 8));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(at + 2, 0, 1));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemsetD8_v2(address as u64, 0, 8)
    );
    ok!(cuMemcpyDtoH_v2(address.cast(), at, 0));
    ok!(cuMemFree_v2(at));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyDtoH_v2(address.cast(), at, 8)
    );
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(at));
}

#[test]
fn rows_are_copied_and_set_with_their_pitches() {
    start();
    let stream = stream();
    let at = device_words(64);
    ok!(cuMemsetD2D8Async(at, 32, 7, 3, 4, stream));
    ok!(cuStreamSynchronize(stream));
    let mut back = [0u8; 12];
    // SAFETY: all zeroes is valid but for the two kinds, set below.
    let mut copy: CUDA_MEMCPY2D = unsafe {
        let mut copy = std::mem::MaybeUninit::<CUDA_MEMCPY2D>::zeroed();
        (*copy.as_mut_ptr()).srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
        (*copy.as_mut_ptr()).dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
        copy.assume_init()
    };
    copy.srcDevice = at;
    copy.srcPitch = 32;
    copy.srcXInBytes = 1;
    copy.dstHost = back.as_mut_ptr().cast();
    copy.dstPitch = 3;
    copy.WidthInBytes = 3;
    copy.Height = 4;
    ok!(cuMemcpy2D_v2(&copy));
    assert_eq!(back, [7, 7, 0, 7, 7, 0, 7, 7, 0, 7, 7, 0]);
    copy.dstPitch = 2;
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2(&copy, stream));
    copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
    copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
    copy.dstPitch = 16;
    copy.dstDevice = at + 256;
    copy.srcXInBytes = 0;
    ok!(cuMemcpy2DAsync_v2(&copy, stream));
    ok!(cuStreamSynchronize(stream));
    let three = 0x07_0707;
    assert_eq!(words(at + 256, 7), [three, 0, three, 0, three, 0, three]);
}

#[test]
fn each_thread_has_a_default_stream_of_its_own() {
    start();
    // In a context of its own: these streams and the legacy one wait for each other, so that
    // another test's work in the legacy stream would come between the two below.
    let context = own_context();
    let own = 2 as CUstream;
    let at = device_words(1);
    let gate = Gate::close(own);
    let handle = context as usize;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            ok!(cuCtxSetCurrent(handle as CUcontext));
            let own = 2 as CUstream;
            ok!(cuStreamWriteValue64_v2(own, at, 3, 0));
            ok!(cuStreamSynchronize(own));
        });
    });
    refused!(CUDA_ERROR_NOT_READY, cuStreamQuery(own));
    gate.open();
    ok!(cuStreamSynchronize(own));
    assert_eq!(words(at, 1), [3]);
    ok!(cuCtxDestroy_v2(context));
}

static CALLED: AtomicU32 = AtomicU32::new(0);
static ANSWER: AtomicU32 = AtomicU32::new(u32::MAX);

unsafe extern "C" fn host_function(data: *mut c_void) {
    CALLED.fetch_add(data as u32, Ordering::SeqCst);
    let mut count = 0;
    // SAFETY: a place for the answer.
    ANSWER.store(
        unsafe { cuDeviceGetCount(&mut count) } as u32,
        Ordering::SeqCst,
    );
}

#[test]
fn a_host_function_is_called_and_must_not_call_the_driver() {
    start();
    let stream = stream();
    ok!(cuLaunchHostFunc(
        stream,
        Some(host_function),
        41 as *mut c_void
    ));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(CALLED.load(Ordering::SeqCst), 41);
    assert_eq!(
        ANSWER.load(Ordering::SeqCst),
        CUresult::CUDA_ERROR_NOT_PERMITTED as u32
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuLaunchHostFunc(stream, None, null_mut())
    );
}

#[test]
fn stream_ordered_memory_is_freed_in_order() {
    start();
    let stream = stream();
    let mut at = 0;
    ok!(cuMemAllocAsync(&mut at, 64, stream));
    let gate = Gate::close(stream);
    ok!(cuMemsetD8Async(at, 1, 64, stream));
    ok!(cuMemFreeAsync(at, stream));
    gate.open();
    ok!(cuStreamSynchronize(stream));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(at, 1, 64, stream));
}

#[test]
fn memory_unmapped_under_work_spoils_the_context() {
    const ME: &str = "memory_unmapped_under_work_spoils_the_context";
    if !is_again(ME) {
        assert_eq!(again(ME, &[]), Some(0));
        return;
    }
    load(&[]);
    enter(0);
    let stream = stream();
    let (at, _) = mapped(0, UNIT);
    let gate = Gate::close(stream);
    ok!(cuMemsetD8Async(at, 1, 64, stream));
    ok!(cuMemUnmap(at, UNIT));
    gate.open();
    refused!(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    let mut plain = 0;
    refused!(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&mut plain, 64));
    refused!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

#[test]
fn without_the_feature_memory_operations_are_not_supported() {
    const ME: &str = "without_the_feature_memory_operations_are_not_supported";
    if !is_again(ME) {
        assert_eq!(again(ME, &[("SOFTCUDA_WITHOUT", "memops")]), Some(0));
        return;
    }
    load(&[]);
    enter(0);
    let at = device_words(1);
    refused!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuStreamWriteValue64_v2(stream(), at, 1, 0)
    );
    let mut value = 1;
    ok!(cuDeviceGetAttribute(
        &mut value,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
        0
    ));
    assert_eq!(value, 0);
}
