//! Virtual memory management: valid calls are accepted, and calls that the real driver refuses are
//! refused.

// Tests pass pointers to their variables, and fail on any error.
#![allow(clippy::borrow_as_ptr, clippy::expect_used)]

mod driver;

use driver::*;

fn start() {
    load(&[("SOFTCUDA_DEVICES", "2")]);
    enter(0);
}

#[test]
fn the_unit_is_two_mebibytes_minimum_and_recommended() {
    start();
    use CUmemAllocationGranularity_flags as Which;
    for which in [
        Which::CU_MEM_ALLOC_GRANULARITY_MINIMUM,
        Which::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
    ] {
        let mut unit = 0;
        ok!(cuMemGetAllocationGranularity(
            &mut unit,
            &properties(0),
            which
        ));
        assert_eq!(unit, UNIT);
    }
}

#[test]
fn sizes_offsets_and_flags_must_be_right() {
    start();
    let (mut handle, mut address) = (0, 0);
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemCreate(&mut handle, 0, &properties(0), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemCreate(&mut handle, UNIT / 2, &properties(0), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemCreate(&mut handle, UNIT, &properties(0), 1)
    );
    refused!(
        CUDA_ERROR_INVALID_DEVICE,
        cuMemCreate(&mut handle, UNIT, &properties(2), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemCreate(std::ptr::null_mut(), UNIT, &properties(0), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemCreate(&mut handle, UNIT, std::ptr::null(), 0)
    );
    let mut fabric = properties(0);
    fabric.requestedHandleTypes = CUmemAllocationHandleType(8);
    refused!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuMemCreate(&mut handle, UNIT, &fabric, 0)
    );
    ok!(cuMemCreate(&mut handle, 2 * UNIT, &properties(0), 0));

    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemAddressReserve(&mut address, UNIT + 1, 0, 0, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemAddressReserve(&mut address, UNIT, 3, 0, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemAddressReserve(&mut address, UNIT, 0, 0, 1)
    );
    ok!(cuMemAddressReserve(&mut address, 4 * UNIT, 8 * UNIT, 0, 0));
    assert_eq!(address % (8 * UNIT as u64), 0);

    let unit = UNIT as u64;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address, UNIT, UNIT, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address, UNIT, 0, handle, 1)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address + 4096, UNIT, 0, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address, UNIT / 2, 0, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address, 3 * UNIT, 0, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address + 3 * unit, 2 * UNIT, 0, handle, 0)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address, 2 * UNIT, 0, handle + 1, 0)
    );
    ok!(cuMemMap(address, 2 * UNIT, 0, handle, 0));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemMap(address + unit, UNIT, 0, handle, 0)
    );

    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemSetAccess(address, UNIT, &access(0), 1)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemSetAccess(address, 4 * UNIT, &access(0), 1)
    );
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemSetAccess(address, 2 * UNIT, &access(0), 0)
    );
    refused!(
        CUDA_ERROR_INVALID_DEVICE,
        cuMemSetAccess(address, 2 * UNIT, &access(7), 1)
    );
    ok!(cuMemSetAccess(address, 2 * UNIT, &access(0), 1));

    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemAddressFree(address, 4 * UNIT)
    );
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(address, UNIT));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(address, 4 * UNIT));
    ok!(cuMemUnmap(address, 2 * UNIT));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(address, 2 * UNIT));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(address, UNIT));
    ok!(cuMemAddressFree(address, 4 * UNIT));
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemAddressFree(address, 4 * UNIT)
    );
    ok!(cuMemRelease(handle));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
}

#[test]
fn memory_is_used_only_where_access_is_set() {
    start();
    let (mut handle, mut address) = (0, 0);
    ok!(cuMemCreate(&mut handle, UNIT, &properties(0), 0));
    ok!(cuMemAddressReserve(&mut address, UNIT, 0, 0, 0));
    refused!(CUDA_ERROR_INVALID_VALUE, put(address, &[1]));
    ok!(cuMemMap(address, UNIT, 0, handle, 0));
    refused!(CUDA_ERROR_INVALID_VALUE, put(address, &[2]));
    // Another device's access is not this one's.
    ok!(cuMemSetAccess(address, UNIT, &access(1), 1));
    refused!(CUDA_ERROR_INVALID_VALUE, put(address, &[3]));
    let mut reader = access(0);
    reader.flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ;
    ok!(cuMemSetAccess(address, UNIT, &reader, 1));
    refused!(CUDA_ERROR_INVALID_VALUE, put(address, &[4]));
    assert_eq!(words(address, 1), [0]);
    ok!(cuMemSetAccess(address, UNIT, &access(0), 1));
    ok!(put(address, &[9]));
    assert_eq!(words(address, 1), [9]);
    ok!(cuMemUnmap(address, UNIT));
    let mut gone = [0u64];
    let at = gone.as_mut_ptr().cast();
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(at, address, 8));
    ok!(cuMemRelease(handle));
    ok!(cuMemAddressFree(address, UNIT));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(at, address, 8));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemcpy(at as u64, address, 8));
}

#[test]
fn a_released_handle_lives_as_long_as_its_mapping() {
    start();
    let (address, handle) = mapped(0, UNIT);
    ok!(cuMemRelease(handle));
    refused!(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    ok!(cuMemsetD8_v2(address, 5, UNIT));
    ok!(cuCtxSynchronize());
    let mut again = 0;
    ok!(cuMemRetainAllocationHandle(
        &mut again,
        (address + 12) as *mut _
    ));
    assert_eq!(again, handle);
    ok!(cuMemUnmap(address, UNIT));
    // The same memory at another address still holds the written data.
    let mut other = 0;
    ok!(cuMemAddressReserve(&mut other, UNIT, 0, 0, 0));
    ok!(cuMemMap(other, UNIT, 0, again, 0));
    ok!(cuMemSetAccess(other, UNIT, &access(0), 1));
    let mut byte = 0u8;
    ok!(cuMemcpyDtoH_v2(
        (&raw mut byte).cast(),
        other + UNIT as u64 - 1,
        1
    ));
    assert_eq!(byte, 5);
    ok!(cuMemUnmap(other, UNIT));
    ok!(cuMemRelease(again));
    ok!(cuMemAddressFree(other, UNIT));
    ok!(cuMemAddressFree(address, UNIT));
}

#[test]
fn a_copy_may_cross_neighbouring_mappings_but_not_leave_them() {
    start();
    let mut address = 0;
    ok!(cuMemAddressReserve(&mut address, 3 * UNIT, 0, 0, 0));
    let mut handles = [0; 2];
    for (index, handle) in handles.iter_mut().enumerate() {
        ok!(cuMemCreate(handle, UNIT, &properties(0), 0));
        ok!(cuMemMap(
            address + (index * UNIT) as u64,
            UNIT,
            0,
            *handle,
            0
        ));
    }
    ok!(cuMemSetAccess(address, 2 * UNIT, &access(0), 1));
    let source: Vec<u8> = (0..100u8).collect();
    let mut back = vec![0u8; 100];
    let middle = address + UNIT as u64 - 50;
    ok!(cuMemcpyHtoD_v2(middle, source.as_ptr().cast(), 100));
    ok!(cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), middle, 100));
    assert_eq!(back, source);
    let end = address + 2 * UNIT as u64 - 50;
    refused!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyHtoD_v2(end, source.as_ptr().cast(), 100)
    );
    ok!(cuMemUnmap(address, 2 * UNIT));
    ok!(cuMemAddressFree(address, 3 * UNIT));
    for handle in handles {
        ok!(cuMemRelease(handle));
    }
}

#[test]
fn memory_beyond_the_devices_is_refused_and_comes_back_when_freed() {
    const ME: &str = "memory_beyond_the_devices_is_refused_and_comes_back_when_freed";
    if !is_again(ME) {
        let settings = [("SOFTCUDA_MEMORY", "8388608"), ("SOFTCUDA_DEVICES", "2")];
        assert_eq!(again(ME, &settings), Some(0));
        return;
    }
    load(&[]);
    enter(0);
    let free = || {
        let (mut free, mut total) = (0, 0);
        ok!(cuMemGetInfo_v2(&mut free, &mut total));
        assert_eq!(total, 4 * UNIT);
        free
    };
    assert_eq!(free(), 4 * UNIT);
    let (address, handle) = mapped(0, 3 * UNIT);
    assert_eq!(free(), UNIT);
    let (mut other, mut plain) = (0, 0);
    refused!(
        CUDA_ERROR_OUT_OF_MEMORY,
        cuMemCreate(&mut other, 2 * UNIT, &properties(0), 0)
    );
    refused!(
        CUDA_ERROR_OUT_OF_MEMORY,
        cuMemAlloc_v2(&mut plain, UNIT + 1)
    );
    // Another device has its own memory.
    ok!(cuMemCreate(&mut other, 4 * UNIT, &properties(1), 0));
    ok!(cuMemRelease(other));
    ok!(cuMemRelease(handle));
    assert_eq!(free(), UNIT, "still mapped");
    ok!(cuMemUnmap(address, 3 * UNIT));
    assert_eq!(free(), 4 * UNIT);
}

#[test]
fn the_host_can_not_touch_device_memory() {
    start();
    let (address, _) = mapped(0, UNIT);
    let mut plain = 0;
    ok!(cuMemAlloc_v2(&mut plain, 100));
    for at in [address, plain] {
        // SAFETY: the child only reads one byte and exits; it takes no lock and runs no handler.
        let status = unsafe {
            match libc::fork() {
                0 => {
                    libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                    std::ptr::read_volatile(at as *const u8);
                    libc::_exit(0)
                }
                child => {
                    let mut status = 0;
                    libc::waitpid(child, &mut status, 0);
                    status
                }
            }
        };
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV);
    }
}

#[test]
fn without_the_feature_the_calls_are_not_supported() {
    const ME: &str = "without_the_feature_the_calls_are_not_supported";
    if !is_again(ME) {
        assert_eq!(again(ME, &[("SOFTCUDA_WITHOUT", "vmm,posix-fd")]), Some(0));
        return;
    }
    load(&[]);
    enter(0);
    let mut value = 9;
    let vmm = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    ok!(cuDeviceGetAttribute(&mut value, vmm, 0));
    assert_eq!(value, 0);
    let mut handle = 0;
    refused!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuMemCreate(&mut handle, UNIT, &properties(0), 0)
    );
}
