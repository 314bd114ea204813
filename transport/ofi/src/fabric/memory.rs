//! Registered memory.

use std::ffi::c_void;
use std::sync::Arc;

use oxshmem_transport::Result;

use super::open::{OpenDomain, close};
use super::sys;

/// A registration. Ends when dropped, which happens under the transport's lock.
#[derive(Debug)]
pub(crate) struct MemoryRegion {
    mr: *mut sys::fid_mr,
    domain: Arc<OpenDomain>,
}

// SAFETY: as for `OpenDomain`.
unsafe impl Send for MemoryRegion {}

/// The wishes of a provider about registrations, and the use of the memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    /// The key that is asked for, unless the provider chooses it.
    pub key: u64,
    pub access: u64,
    /// The number of the GPU whose memory it is; none of the CPU's.
    pub gpu: Option<i32>,
    /// The endpoint that it is bound to, where the provider wants that.
    pub endpoint: Option<*mut sys::fid_ep>,
}

const MISSING: i32 = -(sys::FI_ENOSYS as i32);

/// # Safety
///
/// As [`MemoryRegion::new`], without an endpoint.
unsafe fn of_cpu(
    domain: &OpenDomain,
    addr: *const u8,
    len: usize,
    how: Registration,
    mr: &mut *mut sys::fid_mr,
) -> i32 {
    let open = domain.domain();
    // SAFETY: the caller's promise.
    unsafe {
        (*(*open).mr).reg.map_or(MISSING, |register| {
            register(
                &raw mut (*open).fid,
                addr.cast::<c_void>(),
                len,
                how.access,
                0,
                how.key,
                0,
                mr,
                std::ptr::null_mut(),
            )
        })
    }
}

/// # Safety
///
/// As [`MemoryRegion::new`], without an endpoint, of memory of this GPU.
unsafe fn of_gpu(
    domain: &OpenDomain,
    (addr, len): (*const u8, usize),
    how: Registration,
    gpu: i32,
    mr: &mut *mut sys::fid_mr,
) -> i32 {
    let open = domain.domain();
    let place = libc::iovec {
        iov_base: addr.cast_mut().cast(),
        iov_len: len,
    };
    let attributes = sys::fi_mr_attr {
        mr_iov: &raw const place,
        iov_count: 1,
        access: how.access,
        offset: 0,
        requested_key: how.key,
        context: std::ptr::null_mut(),
        auth_key_size: 0,
        auth_key: std::ptr::null_mut(),
        iface: sys::fi_hmem_iface::FI_HMEM_CUDA,
        // The other bytes of the number are zero.
        device: gpu_of(gpu),
    };
    // SAFETY: the caller's promise; the attributes and the place live during the call.
    unsafe {
        (*(*open).mr).regattr.map_or(MISSING, |register| {
            register(&raw mut (*open).fid, &raw const attributes, 0, mr)
        })
    }
}

fn gpu_of(number: i32) -> sys::fi_mr_attr__bindgen_ty_1 {
    let mut device = sys::fi_mr_attr__bindgen_ty_1 { reserved: 0 };
    device.cuda = number;
    device
}

impl MemoryRegion {
    /// Registers `len` bytes.
    ///
    /// # Safety
    ///
    /// They stay mapped while the registration lives. The endpoint is open and enabled, and outlives it.
    pub(crate) unsafe fn new(
        domain: &Arc<OpenDomain>,
        addr: *const u8,
        len: usize,
        how: Registration,
    ) -> Result<MemoryRegion> {
        let library = domain.library();
        let failed = |call: &str, code: i32| {
            library.failed(format!("{call} of {len} bytes at {addr:p}"), code as isize)
        };
        let mut mr = std::ptr::null_mut();
        // SAFETY: the domain is open; the bytes are mapped, by the caller's promise.
        let (call, code) = unsafe {
            match how.gpu {
                None => ("fi_mr_reg", of_cpu(domain, addr, len, how, &mut mr)),
                Some(gpu) => (
                    "fi_mr_regattr for CUDA",
                    of_gpu(domain, (addr, len), how, gpu, &mut mr),
                ),
            }
        };
        if code != 0 {
            return Err(failed(call, code));
        }
        let region = MemoryRegion {
            mr,
            domain: Arc::clone(domain),
        };
        let Some(endpoint) = how.endpoint else {
            return Ok(region);
        };
        // SAFETY: both objects are open.
        let (bound, enabled) = unsafe {
            let fid = &raw mut (*mr).fid;
            let ops = (*fid).ops;
            let bind = (*ops)
                .bind
                .map(|bind| bind(fid, &raw mut (*endpoint).fid, 0));
            let control = (*ops).control.filter(|_| bind == Some(0));
            let enable = sys::_bindgen_ty_7::FI_ENABLE as i32;
            let enabled = control.map(|control| control(fid, enable, std::ptr::null_mut()));
            (bind, enabled)
        };
        match (bound, enabled) {
            (Some(0), Some(0)) => Ok(region),
            (Some(0), code) => Err(failed("fi_mr_enable", code.unwrap_or(-38))),
            (code, _) => Err(failed("fi_mr_bind", code.unwrap_or(-38))),
        }
    }

    /// The key by which others' reads and writes name it.
    pub(crate) fn key(&self) -> u64 {
        // SAFETY: the registration is open.
        unsafe { (*self.mr).key }
    }

    /// The descriptor of local buffers in it.
    pub(crate) fn descriptor(&self) -> *mut c_void {
        // SAFETY: the registration is open.
        unsafe { (*self.mr).mem_desc }
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        let library = self.domain.library();
        // SAFETY: open; the domain, which this holds, lives.
        unsafe {
            close(
                library,
                "fi_close of a registration",
                &raw mut (*self.mr).fid,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::fabric::library::Library;

    /// A registration: first byte, length, access, key, interface, and the GPU.
    type Seen = (usize, usize, u64, u64, u32, i32);

    thread_local! {
        /// The last one.
        static SEEN: Cell<Option<Seen>> = const { Cell::new(None) };
        static CLOSED: Cell<u32> = const { Cell::new(0) };
    }

    unsafe extern "C" fn close(_: *mut sys::fid) -> i32 {
        CLOSED.set(CLOSED.get() + 1);
        0
    }

    unsafe extern "C" fn register(
        _: *mut sys::fid,
        attributes: *const sys::fi_mr_attr,
        _: u64,
        mr: *mut *mut sys::fid_mr,
    ) -> i32 {
        // SAFETY: the caller's attributes, with one place; the GPU's number is what CUDA's interface reads.
        let (a, place, gpu) = unsafe {
            let a = &*attributes;
            (a, &*a.mr_iov, a.device.cuda)
        };
        assert_eq!((a.iov_count, a.offset, a.auth_key_size), (1, 0, 0));
        SEEN.set(Some((
            place.iov_base.addr(),
            place.iov_len,
            a.access,
            a.requested_key,
            a.iface,
            gpu,
        )));
        // SAFETY: the registration that the test has put there.
        unsafe { (*mr) = REGISTERED.get() };
        0
    }

    thread_local! {
        static REGISTERED: Cell<*mut sys::fid_mr> = const { Cell::new(std::ptr::null_mut()) };
    }

    #[test]
    fn gpu_memory_is_registered_as_cudas_with_the_number_of_its_gpu() {
        // SAFETY: zero is a value of every field: no operation.
        let mut ops: sys::fi_ops = unsafe { std::mem::zeroed() };
        ops.close = Some(close);
        // SAFETY: as above.
        let mut mr_ops: sys::fi_ops_mr = unsafe { std::mem::zeroed() };
        mr_ops.regattr = Some(register);
        let fid = sys::fid {
            fclass: 0,
            context: std::ptr::null_mut(),
            ops: &raw mut ops,
        };
        // SAFETY: as above.
        let (mut domain, mut fabric): (sys::fid_domain, sys::fid_fabric) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        (domain.fid, domain.mr, fabric.fid) = (fid, &raw mut mr_ops, fid);
        let mut registered = sys::fid_mr {
            fid,
            mem_desc: std::ptr::without_provenance_mut(0x77),
            key: 99,
        };
        REGISTERED.set(&raw mut registered);
        let library = Library::get().unwrap();
        let open = Arc::new(OpenDomain::of(library, &raw mut fabric, &raw mut domain));
        let how = |gpu| Registration {
            key: 5,
            access: 3,
            gpu,
            endpoint: None,
        };
        let at = std::ptr::without_provenance(0x7000_0000);
        // SAFETY: nothing here reads the memory.
        let region = unsafe { MemoryRegion::new(&open, at, 4096, how(Some(6))) }.unwrap();
        let cuda = sys::fi_hmem_iface::FI_HMEM_CUDA;
        assert_eq!(SEEN.get(), Some((0x7000_0000, 4096, 3, 5, cuda, 6)));
        assert_eq!((region.key(), region.descriptor().addr()), (99, 0x77));
        drop(region);
        assert_eq!(CLOSED.get(), 1);
        // A provider without the call is an error of it.
        // SAFETY: as above.
        let error = unsafe { MemoryRegion::new(&open, at, 4096, how(None)) }.unwrap_err();
        assert!(error.to_string().contains("fi_mr_reg"), "{error}");
        drop(open);
        assert_eq!(CLOSED.get(), 3, "domain and fabric");
    }
}
