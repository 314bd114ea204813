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
    /// The endpoint that it is bound to, where the provider wants that.
    pub endpoint: Option<*mut sys::fid_ep>,
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
        let code = unsafe {
            let open = domain.domain();
            match (*(*open).mr).reg {
                Some(register) => register(
                    &raw mut (*open).fid,
                    addr.cast::<c_void>(),
                    len,
                    how.access,
                    0,
                    how.key,
                    0,
                    &raw mut mr,
                    std::ptr::null_mut(),
                ),
                None => -(sys::FI_ENOSYS as i32),
            }
        };
        if code != 0 {
            return Err(failed("fi_mr_reg", code));
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
