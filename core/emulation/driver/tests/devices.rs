//! Start, devices, contexts, page-locked memory, and the attributes of addresses.

// Tests pass pointers to their variables, and fail on any error.
#![allow(clippy::borrow_as_ptr, clippy::expect_used)]

mod driver;

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use driver::*;

fn start() {
    load(&[("SOFTCUDA_DEVICES", "3")]);
    enter(0);
}

fn uuid(ordinal: i32) -> String {
    // SAFETY: plain bytes.
    let mut uuid: CUuuid = unsafe { std::mem::zeroed() };
    ok!(cuDeviceGetUuid_v2(&mut uuid, ordinal));
    uuid.bytes
        .iter()
        .map(|byte| format!("{:02x}", *byte as u8))
        .collect()
}

fn attribute(which: CUdevice_attribute, ordinal: i32) -> i32 {
    let mut value = -1;
    ok!(cuDeviceGetAttribute(&mut value, which, ordinal));
    value
}

#[test]
fn nothing_works_before_the_start() {
    const ME: &str = "nothing_works_before_the_start";
    if !is_again(ME) {
        assert_eq!(again(ME, &[("SOFTCUDA_DEVICES", "1")]), Some(0));
        return;
    }
    open(&[]);
    let mut number = 0;
    refused!(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&mut number));
    ok!(cuDriverGetVersion(&mut number));
    assert_eq!(number, 12080);
    refused!(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    ok!(cuInit(0));
    ok!(cuInit(0));
    ok!(cuDeviceGetCount(&mut number));
    assert_eq!(number, 1);
    // Initialised, but no context yet.
    let mut at = 0;
    refused!(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&mut at, 8));
    refused!(
        CUDA_ERROR_INVALID_CONTEXT,
        cuStreamCreate(&mut null_mut(), 0)
    );
}

#[test]
fn settings_decide_what_there_is() {
    const ME: &str = "settings_decide_what_there_is";
    if !is_again(ME) {
        for (settings, wanted) in [
            (
                [("SOFTCUDA_DEVICES", "0"), ("SOFTCUDA_TEST_VERSION", "")],
                "100",
            ),
            (
                [("CUDA_VISIBLE_DEVICES", ""), ("SOFTCUDA_TEST_VERSION", "")],
                "100",
            ),
            (
                [
                    ("SOFTCUDA_WITHOUT", "nothing"),
                    ("SOFTCUDA_TEST_VERSION", ""),
                ],
                "1",
            ),
            (
                [
                    ("SOFTCUDA_DRIVER_VERSION", "11040"),
                    ("SOFTCUDA_TEST_VERSION", "11040"),
                ],
                "0",
            ),
            (
                [
                    ("SOFTCUDA_KERNELS", "/nonexistent.so"),
                    ("SOFTCUDA_TEST_VERSION", ""),
                ],
                "301",
            ),
        ] {
            let settings = [settings[0], settings[1], ("SOFTCUDA_TEST_WANTED", wanted)];
            assert_eq!(again(ME, &settings), Some(0), "{settings:?}");
        }
        return;
    }
    open(&[]);
    // SAFETY: a call without pointers.
    let code = unsafe { cuInit(0) } as u32;
    assert_eq!(
        code.to_string(),
        std::env::var("SOFTCUDA_TEST_WANTED").expect("set")
    );
    if let Ok(version) = std::env::var("SOFTCUDA_TEST_VERSION")
        .expect("set")
        .parse::<i32>()
    {
        let mut found = 0;
        ok!(cuDriverGetVersion(&mut found));
        assert_eq!(found, version);
    }
}

#[test]
fn devices_are_the_same_in_every_process_and_hidden_ones_are_not_seen() {
    const ME: &str = "devices_are_the_same_in_every_process_and_hidden_ones_are_not_seen";
    if is_again(ME) {
        load(&[]);
        let mut count = 0;
        ok!(cuDeviceGetCount(&mut count));
        assert_eq!(count, 2);
        let found = format!("{} {}", uuid(0), uuid(1));
        assert_eq!(found, std::env::var("SOFTCUDA_TEST_UUIDS").expect("set"));
        return;
    }
    start();
    assert_ne!(uuid(0), uuid(1));
    let wanted = format!("{} {}", uuid(2), uuid(0));
    let settings = [
        ("SOFTCUDA_DEVICES", "3"),
        ("CUDA_VISIBLE_DEVICES", "2,0,9,1"),
        ("SOFTCUDA_TEST_UUIDS", &wanted),
    ];
    assert_eq!(again(ME, &settings), Some(0));
}

#[test]
fn a_device_says_what_it_is() {
    start();
    use CUdevice_attribute as A;
    let mut count = 0;
    ok!(cuDeviceGetCount(&mut count));
    assert_eq!(count, 3);
    let mut device = 0;
    refused!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, 3));
    refused!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, -1));
    refused!(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(null_mut(), 0));
    assert_eq!(
        attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1),
        9
    );
    assert_eq!(attribute(A::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0), 0);
    assert_eq!(
        attribute(
            A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
            0
        ),
        1
    );
    let mut text = [0 as c_char; 20];
    ok!(cuDeviceGetPCIBusId(text.as_mut_ptr(), 20, 2));
    let mut found = -1;
    ok!(cuDeviceGetByPCIBusId(&mut found, text.as_ptr()));
    assert_eq!(found, 2);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceGetPCIBusId(text.as_mut_ptr(), 5, 2)
    );
    // A name is cut to the size of the buffer.
    ok!(cuDeviceGetName(text.as_mut_ptr(), 9, 0));
    // SAFETY: the driver ends the name.
    assert_eq!(unsafe { CStr::from_ptr(text.as_ptr()) }, c"Software");
}

#[test]
fn peers_reach_each_other_unless_that_is_switched_off() {
    const ME: &str = "peers_reach_each_other_unless_that_is_switched_off";
    use CUdevice_P2PAttribute as A;
    let off = is_again(ME);
    if off {
        load(&[]);
        enter(0);
    } else {
        start();
        let settings = [("SOFTCUDA_DEVICES", "3"), ("SOFTCUDA_WITHOUT", "p2p")];
        assert_eq!(again(ME, &settings), Some(0));
    }
    let (mut can, mut same, mut atomics) = (-1, -1, -1);
    ok!(cuDeviceCanAccessPeer(&mut can, 0, 1));
    ok!(cuDeviceCanAccessPeer(&mut same, 1, 1));
    let native = A::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    ok!(cuDeviceGetP2PAttribute(&mut atomics, native, 0, 1));
    let yes = i32::from(!off);
    assert_eq!((can, same, atomics), (yes, 0, yes));
    refused!(
        CUDA_ERROR_INVALID_DEVICE,
        cuDeviceGetP2PAttribute(&mut atomics, native, 1, 1)
    );
    let there = enter(1);
    let mut remote = 0;
    ok!(cuMemAlloc_v2(&mut remote, 8));
    enter(0);
    let stream = stream();
    // Copies work in any case; the device's own stores need peer access.
    ok!(cuMemsetD8Async(remote, 0, 8, stream));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuStreamWriteValue64_v2(stream, remote, 1, 0)
    );
    let (mapped_there, _) = mapped(1, UNIT);
    if off {
        refused!(
            CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
            cuCtxEnablePeerAccess(there, 0)
        );
        refused!(
            CUDA_ERROR_INVALID_DEVICE,
            cuMemSetAccess(mapped_there, UNIT, &access(0), 1)
        );
    } else {
        ok!(cuCtxEnablePeerAccess(there, 0));
        refused!(
            CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
            cuCtxEnablePeerAccess(there, 0)
        );
        ok!(cuStreamWriteValue64_v2(stream, remote, 5, 0));
        ok!(cuStreamSynchronize(stream));
        assert_eq!(words(remote, 1), [5]);
        ok!(cuCtxDisablePeerAccess(there));
        refused!(
            CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
            cuCtxDisablePeerAccess(there)
        );
        ok!(cuMemSetAccess(mapped_there, UNIT, &access(0), 1));
        ok!(put(mapped_there, &[6]));
    }
}

#[test]
fn contexts_are_stacked_and_gone_when_released() {
    start();
    let mut current = null_mut();
    let (mut one, mut two) = (null_mut(), null_mut());
    ok!(cuCtxCreate_v2(&mut one, 0, 2));
    ok!(cuCtxCreate_v2(&mut two, 0, 2));
    ok!(cuCtxPopCurrent_v2(&mut current));
    assert_eq!(current, two);
    ok!(cuCtxGetCurrent(&mut current));
    assert_eq!(current, one);
    ok!(cuCtxPushCurrent_v2(two));
    let (mut at, mut device) = (0, -1);
    ok!(cuCtxGetDevice(&mut device));
    assert_eq!(device, 2);
    ok!(cuMemAlloc_v2(&mut at, 8));
    ok!(cuCtxDestroy_v2(two));
    ok!(cuCtxGetCurrent(&mut current));
    assert_eq!(current, one);
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(at));
    refused!(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(two));
    ok!(cuCtxDestroy_v2(one));

    // The last release of a primary context destroys it, even where it is current.
    let mut primary = null_mut();
    ok!(cuDevicePrimaryCtxRetain(&mut primary, 2));
    ok!(cuDevicePrimaryCtxRetain(&mut primary, 2));
    refused!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(primary));
    ok!(cuCtxSetCurrent(primary));
    ok!(cuDevicePrimaryCtxRelease_v2(2));
    ok!(cuMemAlloc_v2(&mut at, 8));
    ok!(cuDevicePrimaryCtxRelease_v2(2));
    refused!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&mut at, 8));
    refused!(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(2));
    ok!(cuCtxSetCurrent(null_mut()));
    refused!(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
}

#[test]
fn nothing_works_in_a_forked_child() {
    start();
    // SAFETY: the child makes one call and exits.
    let status = unsafe {
        match libc::fork() {
            0 => {
                let mut count = 0;
                libc::_exit(cuDeviceGetCount(&mut count) as i32)
            }
            child => {
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                status
            }
        }
    };
    assert!(libc::WIFEXITED(status));
    assert_eq!(
        libc::WEXITSTATUS(status),
        CUresult::CUDA_ERROR_NOT_INITIALIZED as i32
    );
}

#[test]
fn page_locked_memory_is_known_by_its_address() {
    start();
    let at = pinned_words(512);
    let mut seen = 0;
    // SAFETY: within the allocation.
    let inside = unsafe { at.add(5) };
    ok!(cuMemHostGetDevicePointer_v2(&mut seen, inside.cast(), 0));
    assert_eq!(seen, inside as u64);
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(at.cast()));
    ok!(cuMemFreeHost(at.cast()));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(at.cast()));

    let own = vec![0u64; 1000];
    let own_at = own.as_ptr() as *mut c_void;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemHostGetDevicePointer_v2(&mut seen, own_at, 0)
    );
    refused!(
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        cuMemHostUnregister(own_at)
    );
    ok!(cuMemHostRegister_v2(own_at, 8000, 0));
    refused!(
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        cuMemHostRegister_v2(own_at, 8, 0)
    );
    ok!(cuMemHostGetDevicePointer_v2(&mut seen, own_at, 0));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(own_at));
    // A copy must not leave the registered range.
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemsetD8_v2(own_at as u64, 1, 8001)
    );
    ok!(cuMemsetD8_v2(own_at as u64, 1, 8000));
    ok!(cuMemHostUnregister(own_at));
    // Memory that is not mapped, and memory of a device, is not host memory.
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemHostRegister_v2(4096 as *mut c_void, 4096, 0)
    );
    let (device, _) = mapped(0, UNIT);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemHostRegister_v2(device as *mut c_void, 4096, 0)
    );
    assert_eq!(own[999], 0x0101_0101_0101_0101);
}

#[test]
fn addresses_have_attributes() {
    start();
    use CUpointer_attribute as A;
    let ask = |which, at| {
        let mut value = 0u64;
        // SAFETY: no attribute asked for is larger.
        let code = unsafe { cuPointerGetAttribute((&raw mut value).cast(), which, at) };
        if code == CUresult::CUDA_SUCCESS {
            Ok(value)
        } else {
            Err(code)
        }
    };
    let mut plain = 0;
    ok!(cuMemAlloc_v2(&mut plain, 1000));
    let mut context = null_mut();
    ok!(cuCtxGetCurrent(&mut context));
    assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain + 999), Ok(2));
    assert_eq!(
        ask(A::CU_POINTER_ATTRIBUTE_CONTEXT, plain),
        Ok(context as u64)
    );
    assert_eq!(
        ask(A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, plain + 999),
        Ok(plain)
    );
    assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_RANGE_SIZE, plain), Ok(1000));
    let invalid = Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain + 1000),
        invalid
    );
    assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_HOST_POINTER, plain), invalid);
    let pinned = pinned_words(1) as u64;
    assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pinned), Ok(1));
    assert_eq!(
        ask(A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pinned),
        Ok(pinned)
    );
    let (on_one, _) = mapped(1, UNIT);
    assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, on_one), Ok(1));
    // The current context's kernels cannot reach that.
    assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, on_one), invalid);
    assert_eq!(
        ask(A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, plain),
        Ok(plain)
    );
    let local = 0u64;
    let pageable = &raw const local as u64;
    assert_eq!(ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pageable), invalid);
    // The form for several attributes returns zero where the driver knows nothing.
    let mut kind = 9u32;
    let mut outs = [(&raw mut kind).cast::<c_void>()];
    let mut which = [A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE];
    ok!(cuPointerGetAttributes(
        1,
        which.as_mut_ptr(),
        outs.as_mut_ptr(),
        pageable
    ));
    assert_eq!(kind, 0);
    let on = 1u32;
    let sync = A::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    ok!(cuPointerSetAttribute((&raw const on).cast(), sync, plain));
    assert_eq!(ask(sync, plain), Ok(1));
    let mut descriptor = -1i32;
    let dma_buf = CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    let out = (&raw mut descriptor).cast();
    refused!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuMemGetHandleForAddressRange(out, on_one, UNIT, dma_buf, 0)
    );
}

#[test]
fn calls_are_found_by_name_and_codes_have_words() {
    start();
    let mut address = null_mut();
    let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    let name = c"cuMemAlloc".as_ptr();
    ok!(cuGetProcAddress_v2(
        name,
        &mut address,
        12080,
        0,
        &mut status
    ));
    assert!(!address.is_null());
    let name = c"cuNoSuchCall".as_ptr();
    refused!(
        CUDA_ERROR_NOT_FOUND,
        cuGetProcAddress_v2(name, &mut address, 12080, 0, &mut status)
    );
    assert!(address.is_null());
    let said = |code: CUresult, call: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut words = std::ptr::null();
        ok!(call(code, &mut words));
        // SAFETY: the driver's own string, which lives as long as the process.
        unsafe { CStr::from_ptr(words) }
    };
    let illegal = said(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, cuGetErrorName);
    assert_eq!(illegal, c"CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(said(CUresult::CUDA_SUCCESS, cuGetErrorString), c"no error");
}

#[test]
fn what_is_given_back_leaves_no_descriptor_mapping_or_thread() {
    const ME: &str = "what_is_given_back_leaves_no_descriptor_mapping_or_thread";
    if !is_again(ME) {
        assert_eq!(again(ME, &[("SOFTCUDA_DEVICES", "1")]), Some(0));
        return;
    }
    load(&[]);
    enter(0);
    let entries = |of: &str| std::fs::read_dir(of).expect("there is /proc").count();
    let files = || {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("there is /proc");
        (
            entries("/proc/self/fd"),
            maps.matches("memfd:softcuda").count(),
        )
    };
    let use_everything = || {
        let (at, handle) = mapped(0, UNIT);
        let (mut plain, mut descriptor) = (0, -1i32);
        let kind = CUmemAllocationHandleType(1);
        ok!(cuMemExportToShareableHandle(
            (&raw mut descriptor).cast(),
            handle,
            kind,
            0
        ));
        // SAFETY: the descriptor is this test's own.
        unsafe { libc::close(descriptor) };
        let stream = stream();
        ok!(cuMemAlloc_v2(&mut plain, 100));
        ok!(cuMemcpyDtoDAsync_v2(at, plain, 100, stream));
        ok!(cuStreamSynchronize(stream));
        ok!(cuStreamDestroy_v2(stream));
        ok!(cuMemFree_v2(plain));
        ok!(cuMemUnmap(at, UNIT));
        ok!(cuMemRelease(handle));
        ok!(cuMemAddressFree(at, UNIT));
    };
    use_everything();
    let (before, threads) = (files(), entries("/proc/self/task"));
    for _ in 0..50 {
        use_everything();
    }
    assert_eq!(files(), before);
    assert_eq!(before.1, 0);
    // A stream's thread ends soon after the stream is destroyed.
    let patience = std::time::Instant::now();
    while entries("/proc/self/task") > threads {
        assert!(patience.elapsed().as_secs() < 60, "threads stay");
        std::thread::yield_now();
    }
}

#[test]
fn cudarc_runs_on_it() {
    start();
    let context = cudarc::driver::CudaContext::new(1).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let on_device = stream.clone_htod(&[1u32, 2, 3]).expect("memory");
    let mut zeroes = stream.alloc_zeros::<u32>(3).expect("memory");
    stream.memcpy_dtod(&on_device, &mut zeroes).expect("a copy");
    assert_eq!(stream.clone_dtoh(&zeroes).expect("a copy"), [1, 2, 3]);
    let event = stream.record_event(None).expect("an event");
    event.synchronize().expect("it is reached");
}
