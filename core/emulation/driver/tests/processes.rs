//! Memory shared between processes: by descriptor, and by legacy IPC.

// Tests pass pointers to their variables, and fail on any error.
#![allow(clippy::borrow_as_ptr, clippy::expect_used)]

mod driver;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command};
use std::ptr::null_mut;

use driver::*;

fn start() {
    load(&[("SOFTCUDA_DEVICES", "2")]);
    enter(0);
}

/// A second process, which runs the same test with a message.
fn second(test: &str, message: &str) -> Child {
    Command::new(std::env::current_exe().expect("a test knows its own path"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("SOFTCUDA_TEST_AGAIN", test)
        .env("SOFTCUDA_TEST_MESSAGE", message)
        .spawn()
        .expect("the test program starts")
}

fn message() -> String {
    std::env::var("SOFTCUDA_TEST_MESSAGE").expect("the first process says something")
}

fn export(handle: CUmemGenericAllocationHandle) -> OwnedFd {
    let mut descriptor = -1i32;
    let kind = CUmemAllocationHandleType(1);
    ok!(cuMemExportToShareableHandle(
        (&raw mut descriptor).cast(),
        handle,
        kind,
        0
    ));
    // SAFETY: the driver gave a descriptor of our own.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn import(descriptor: i32) -> Result<CUmemGenericAllocationHandle, CUresult> {
    let mut handle = 0;
    // SAFETY: a place for the answer; the driver only reads the number.
    let code = unsafe {
        cuMemImportFromShareableHandle(
            &mut handle,
            descriptor as usize as *mut _,
            CUmemAllocationHandleType(1),
        )
    };
    if code == CUresult::CUDA_SUCCESS {
        Ok(handle)
    } else {
        Err(code)
    }
}

#[test]
fn memory_is_shared_by_descriptor_and_signals_pass_through_it() {
    const ME: &str = "memory_is_shared_by_descriptor_and_signals_pass_through_it";
    start();
    if is_again(ME) {
        let handle = import(message().parse().expect("a descriptor")).expect("memory");
        let mut found = properties(1);
        ok!(cuMemGetAllocationPropertiesFromHandle(&mut found, handle));
        assert_eq!(found.location.id, 0);
        let (mut free, mut total, mut at) = (0, 0, 0);
        ok!(cuMemGetInfo_v2(&mut free, &mut total));
        assert_eq!(free, total, "imported memory is its maker's");
        ok!(cuMemAddressReserve(&mut at, 2 * UNIT, 0, 0, 0));
        refused!(
            CUDA_ERROR_INVALID_VALUE,
            cuMemMap(at, 2 * UNIT, 0, handle, 0)
        );
        ok!(cuMemMap(at, UNIT, 0, handle, 0));
        ok!(cuMemSetAccess(at, UNIT, &access(0), 1));
        ok!(cuMemRelease(handle));
        assert_eq!(words(at, 2), [0, 41]);
        let stream = stream();
        let answer = pinned_words(1);
        // SAFETY: page-locked memory of this test.
        unsafe { answer.write(42) };
        ok!(cuMemcpyAsync(at + 16, answer as u64, 8, stream));
        ok!(cuStreamWriteValue64_v2(stream, at, 1, 0));
        ok!(cuStreamSynchronize(stream));
        return;
    }
    let (at, handle) = mapped(0, UNIT);
    ok!(put(at, &[0, 41]));
    ok!(cuCtxSynchronize());
    let descriptor = export(handle);
    // SAFETY: a descriptor of our own; the second process inherits it.
    unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) };
    let mut child = second(ME, &descriptor.as_raw_fd().to_string());
    let stream = stream();
    ok!(cuStreamWaitValue64_v2(stream, at, 1, 0));
    assert!(child.wait().expect("the second process ends").success());
    ok!(cuStreamSynchronize(stream));
    assert_eq!(words(at, 3), [1, 41, 42]);
}

#[test]
fn only_descriptors_of_device_memory_are_imported_and_only_exportable_memory_exported() {
    start();
    let null = std::fs::File::open("/dev/null").expect("there is /dev/null");
    assert_eq!(
        import(null.as_raw_fd()),
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    assert_eq!(import(987_654), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
    // SAFETY: a name that ends.
    let foreign = unsafe { libc::memfd_create(c"softcuda-no".as_ptr(), libc::MFD_CLOEXEC) };
    assert_eq!(import(foreign), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
    let mut plain = properties(0);
    plain.requestedHandleTypes = CUmemAllocationHandleType(0);
    let (mut handle, mut descriptor) = (0, -1i32);
    ok!(cuMemCreate(&mut handle, UNIT, &plain, 0));
    let out = (&raw mut descriptor).cast();
    let kind = CUmemAllocationHandleType(1);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemExportToShareableHandle(out, handle, kind, 0)
    );
    ok!(cuMemRelease(handle));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemExportToShareableHandle(out, handle, kind, 0)
    );
}

fn hexadecimal(handle: &CUipcMemHandle) -> String {
    handle
        .reserved
        .iter()
        .map(|byte| format!("{:02x}", *byte as u8))
        .collect()
}

fn from_hexadecimal(text: &str) -> CUipcMemHandle {
    // SAFETY: plain bytes.
    let mut handle: CUipcMemHandle = unsafe { std::mem::zeroed() };
    for (index, byte) in handle.reserved.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).expect("digits") as _;
    }
    handle
}

#[test]
fn plain_allocations_are_shared_by_legacy_ipc() {
    const ME: &str = "plain_allocations_are_shared_by_legacy_ipc";
    start();
    if is_again(ME) {
        let handle = from_hexadecimal(&message());
        let (mut at, mut again) = (0, 0);
        refused!(
            CUDA_ERROR_INVALID_VALUE,
            cuIpcOpenMemHandle_v2(&mut at, handle, 0)
        );
        ok!(cuIpcOpenMemHandle_v2(&mut at, handle, 1));
        ok!(cuIpcOpenMemHandle_v2(&mut again, handle, 1));
        assert_eq!(at, again);
        assert_eq!(words(at, 2), [7, 8]);
        ok!(put(at, &[9]));
        let mut over = [0u64; 3];
        let out = over.as_mut_ptr().cast();
        refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(out, at, 24));
        refused!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(at));
        ok!(cuIpcCloseMemHandle(at));
        assert_eq!(words(at, 1), [9]);
        ok!(cuIpcCloseMemHandle(at));
        refused!(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(at));
        refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(out, at, 8));
        return;
    }
    let mut at = 0;
    ok!(cuMemAlloc_v2(&mut at, 16));
    ok!(put(at, &[7, 8]));
    ok!(cuCtxSynchronize());
    // SAFETY: plain bytes.
    let mut handle: CUipcMemHandle = unsafe { std::mem::zeroed() };
    // An address inside an allocation gives the whole allocation.
    ok!(cuIpcGetMemHandle(&mut handle, at + 8));
    let mut here = 0;
    refused!(
        CUDA_ERROR_INVALID_CONTEXT,
        cuIpcOpenMemHandle_v2(&mut here, handle, 1)
    );
    let mut child = second(ME, &hexadecimal(&handle));
    assert!(child.wait().expect("the second process ends").success());
    assert_eq!(words(at, 2), [9, 8]);
    let (virtual_memory, _) = mapped(0, UNIT);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuIpcGetMemHandle(&mut handle, virtual_memory)
    );
    let mut pooled = 0;
    ok!(cuMemAllocAsync(&mut pooled, 16, null_mut()));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuIpcGetMemHandle(&mut handle, pooled)
    );
}

#[test]
fn without_the_features_sharing_is_not_supported() {
    const ME: &str = "without_the_features_sharing_is_not_supported";
    if !is_again(ME) {
        assert_eq!(again(ME, &[("SOFTCUDA_WITHOUT", "ipc,posix-fd")]), Some(0));
        return;
    }
    load(&[]);
    enter(0);
    let (mut at, mut handle) = (0, 0);
    ok!(cuMemAlloc_v2(&mut at, 16));
    // SAFETY: plain bytes.
    let mut bytes: CUipcMemHandle = unsafe { std::mem::zeroed() };
    refused!(CUDA_ERROR_NOT_SUPPORTED, cuIpcGetMemHandle(&mut bytes, at));
    refused!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuMemCreate(&mut handle, UNIT, &properties(0), 0)
    );
    let mut value = 1;
    let posix = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    ok!(cuDeviceGetAttribute(&mut value, posix, 0));
    assert_eq!(value, 0);
}
