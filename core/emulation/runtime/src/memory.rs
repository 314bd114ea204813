//! Memory of devices, of the host, and of both.

use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::driver;
use crate::error::{Error, Outcome, get, set};
use crate::primary;

/// Managed memory: page-locked memory of the host, which kernels reach at the same address.
static MANAGED: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

fn managed<T>(body: impl FnOnce(&mut HashSet<usize>) -> T) -> T {
    let mut managed = MANAGED.lock().unwrap_or_else(PoisonError::into_inner);
    body(managed.get_or_insert_default())
}

/// `cudaHostAllocPortable | cudaHostAllocMapped`.
const PORTABLE_MAPPED: u32 = 3;
/// Attributes of pointers: kind of memory, host address, ordinal of the device.
const KIND: u32 = 2;
const ORDINAL: u32 = 9;

/// `cudaPointerAttributes`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PointerAttributes {
    kind: u32,
    device: i32,
    device_pointer: u64,
    host_pointer: u64,
}

fn attributes(address: u64) -> Outcome<PointerAttributes> {
    let of = |number| {
        get::<u32>(|out| driver::cuPointerGetAttribute(out.cast(), number, address)).unwrap_or(0)
    };
    if managed(|all| all.contains(&(address as usize))) {
        return Ok(PointerAttributes {
            kind: 3,
            device: of(ORDINAL) as i32,
            device_pointer: address,
            host_pointer: address,
        });
    }
    Ok(match of(KIND) {
        // The driver's numbers: 1 host, 2 device.
        1 => PointerAttributes {
            kind: 1,
            device: of(ORDINAL) as i32,
            device_pointer: address,
            host_pointer: address,
        },
        2 => PointerAttributes {
            kind: 2,
            device: of(ORDINAL) as i32,
            device_pointer: address,
            host_pointer: 0,
        },
        // Memory that CUDA does not know.
        _ => PointerAttributes {
            kind: 0,
            device: -2,
            device_pointer: 0,
            host_pointer: address,
        },
    })
}

fn host_memory(out: *mut *mut c_void, bytes: usize, flags: u32) -> Outcome {
    primary::ensure()?;
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    if bytes == 0 {
        return set(out, std::ptr::null_mut());
    }
    driver::cuMemHostAlloc(out, bytes, flags)
}

runtime_calls! {
    /// Allocates memory of the device.
    fn cudaMalloc(out: *mut u64, bytes: usize) {
        primary::ensure()?;
        if out.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        if bytes == 0 { set(out, 0) } else { driver::cuMemAlloc_v2(out, bytes) }
    }

    /// Allocates memory that the host and all devices reach.
    fn cudaMallocManaged(out: *mut *mut c_void, bytes: usize, _flags: u32) {
        if bytes == 0 {
            return Err(Error::INVALID_VALUE);
        }
        host_memory(out, bytes, PORTABLE_MAPPED)?;
        // SAFETY: the call above has checked the place and filled it.
        let address = unsafe { *out };
        managed(|all| all.insert(address as usize));
        Ok(())
    }

    /// Allocates rows.
    fn cudaMallocPitch(out: *mut u64, pitch: *mut usize, width: usize, height: usize) {
        primary::ensure()?;
        if out.is_null() || pitch.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        driver::cuMemAllocPitch_v2(out, pitch, width, height, 4)
    }

    /// Frees memory of the device, or managed memory.
    fn cudaFree(address: u64) {
        primary::ensure()?;
        if address == 0 {
            return Ok(());
        }
        if managed(|all| all.remove(&(address as usize))) {
            return driver::cuMemFreeHost(address as *mut c_void);
        }
        driver::cuMemFree_v2(address)
    }

    /// Allocates page-locked memory of the host.
    fn cudaHostAlloc(out: *mut *mut c_void, bytes: usize, flags: u32) {
        host_memory(out, bytes, flags)
    }

    /// Allocates page-locked memory of the host.
    fn cudaMallocHost(out: *mut *mut c_void, bytes: usize) {
        host_memory(out, bytes, 0)
    }

    /// Frees page-locked memory of the host.
    fn cudaFreeHost(address: *mut c_void) {
        primary::ensure()?;
        if address.is_null() { Ok(()) } else { driver::cuMemFreeHost(address) }
    }

    /// Locks memory of the host.
    fn cudaHostRegister(address: *mut c_void, bytes: usize, flags: u32) {
        primary::ensure()?;
        driver::cuMemHostRegister_v2(address, bytes, flags)
    }

    /// Unlocks memory of the host.
    fn cudaHostUnregister(address: *mut c_void) {
        primary::ensure()?;
        driver::cuMemHostUnregister(address)
    }

    /// The device's address of host memory.
    fn cudaHostGetDevicePointer(out: *mut u64, address: *mut c_void, flags: u32) {
        primary::ensure()?;
        driver::cuMemHostGetDevicePointer_v2(out, address, flags)
    }

    /// The flags that host memory was allocated with.
    fn cudaHostGetFlags(out: *mut u32, address: *mut c_void) {
        primary::ensure()?;
        driver::cuMemHostGetFlags(out, address)
    }

    /// Free and total bytes of the device.
    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        primary::ensure()?;
        driver::cuMemGetInfo_v2(free, total)
    }

    /// The kind of memory at an address.
    fn cudaPointerGetAttributes(out: *mut PointerAttributes, address: u64) {
        primary::ensure()?;
        set(out, attributes(address)?)
    }

    /// A hint about managed memory, which has no effect here.
    fn cudaMemAdvise(_address: u64, _bytes: usize, _advice: u32, _device: i32) {
        primary::ensure().map(|_| ())
    }

    /// The device's pool of memory.
    fn cudaDeviceGetDefaultMemPool(out: *mut u64, device: i32) {
        driver::start()?;
        driver::cuDeviceGetDefaultMemPool(out, device)
    }

    /// Sets an attribute of a pool.
    fn cudaMemPoolSetAttribute(pool: u64, attribute: u32, value: *mut c_void) {
        driver::cuMemPoolSetAttribute(pool, attribute, value)
    }

    /// An attribute of a pool.
    fn cudaMemPoolGetAttribute(pool: u64, attribute: u32, value: *mut c_void) {
        driver::cuMemPoolGetAttribute(pool, attribute, value)
    }

    /// Gives unused memory of a pool back.
    fn cudaMemPoolTrimTo(pool: u64, keep: usize) {
        driver::cuMemPoolTrimTo(pool, keep)
    }

    /// A handle of memory for other processes.
    fn cudaIpcGetMemHandle(handle: *mut c_void, address: u64) {
        primary::ensure()?;
        driver::cuIpcGetMemHandle(handle, address)
    }

    /// Closes memory of another process.
    fn cudaIpcCloseMemHandle(address: u64) {
        primary::ensure()?;
        driver::cuIpcCloseMemHandle(address)
    }
}

stream_calls! {
    /// Allocates memory in a stream's order.
    fn cudaMallocAsync, cudaMallocAsync_ptsz(out: *mut u64, bytes: usize; stream) {
        primary::ensure()?;
        driver::cuMemAllocAsync(out, bytes, stream)
    }

    /// Allocates memory of a pool in a stream's order.
    fn cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz(out: *mut u64, bytes: usize, pool: u64; stream) {
        primary::ensure()?;
        driver::cuMemAllocFromPoolAsync(out, bytes, pool, stream)
    }

    /// Frees memory in a stream's order.
    fn cudaFreeAsync, cudaFreeAsync_ptsz(address: u64; stream) {
        primary::ensure()?;
        driver::cuMemFreeAsync(address, stream)
    }

    /// A hint about managed memory, which has no effect here.
    fn cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz(_address: u64, _bytes: usize, _device: i32; _stream) {
        primary::ensure().map(|_| ())
    }
}

/// A handle of memory of another process.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct IpcHandle([u8; 64]);

runtime_calls! {
    /// Opens memory of another process.
    fn cudaIpcOpenMemHandle(out: *mut u64, handle: IpcHandle, flags: u32) {
        primary::ensure()?;
        type Open = unsafe extern "C" fn(*mut u64, IpcHandle, u32) -> u32;
        let open = driver::symbol(c"cuIpcOpenMemHandle_v2").ok_or(Error::NOT_SUPPORTED)?;
        // SAFETY: the driver's function of that name has this type.
        match unsafe { std::mem::transmute::<usize, Open>(open)(out, handle, flags) } {
            0 => Ok(()),
            code => Err(Error(code)),
        }
    }
}
