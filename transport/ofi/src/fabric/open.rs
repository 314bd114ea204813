//! An opened domain of libfabric, with its fabric.

use std::sync::Arc;

use oxshmem_transport::Result;

use super::info::Info;
use super::library::Library;
use super::sys;

/// A fabric and its domain. All objects that hang on the domain hold this.
#[derive(Debug)]
pub(crate) struct OpenDomain {
    library: &'static Library,
    fabric: *mut sys::fid_fabric,
    domain: *mut sys::fid_domain,
}

// SAFETY: libfabric's objects are bound to no thread; the transport's lock serializes their use.
unsafe impl Send for OpenDomain {}
// SAFETY: as for Send. It is opened before others know it, and closed by its last owner.
unsafe impl Sync for OpenDomain {}

/// Closes an object. Gives whether the provider did so.
///
/// # Safety
///
/// `fid` is open, and is not used any more.
pub(super) unsafe fn close(library: &Library, what: &str, fid: *mut sys::fid) -> bool {
    // SAFETY: an open object has its operations.
    let code = unsafe { (*(*fid).ops).close.map(|close| close(fid)) };
    let failed = code.filter(|code| *code != 0);
    if let Some(code) = failed {
        let error = library.failed(what, code as isize);
        tracing::warn!("{error}");
    }
    failed.is_none()
}

impl OpenDomain {
    pub(crate) fn open(info: &Info) -> Result<Arc<OpenDomain>> {
        let library = info.library();
        let facts = info.facts();
        let name = format!("{} on {}", facts.provider, facts.domain);
        let mut fabric = std::ptr::null_mut();
        // SAFETY: a description by fi_getinfo, which lives during the call.
        let code = unsafe {
            let attributes = (*info.raw()).fabric_attr;
            library.fi_fabric(attributes, &raw mut fabric, std::ptr::null_mut())
        };
        if code != 0 {
            return Err(library.failed(format!("fi_fabric of {name}"), code as isize));
        }
        let mut domain = std::ptr::null_mut();
        // SAFETY: the fabric is open; the description lives during the call.
        let code = unsafe {
            match (*(*fabric).ops).domain {
                Some(open) => open(fabric, info.raw(), &raw mut domain, std::ptr::null_mut()),
                None => -(sys::FI_ENOSYS as i32),
            }
        };
        if code != 0 {
            // SAFETY: open, and used no more.
            unsafe { close(library, "fi_close of a fabric", &raw mut (*fabric).fid) };
            return Err(library.failed(format!("fi_domain of {name}"), code as isize));
        }
        Ok(Arc::new(OpenDomain {
            library,
            fabric,
            domain,
        }))
    }

    /// The same around objects of a test.
    #[cfg(test)]
    pub(super) fn of(
        library: &'static Library,
        fabric: *mut sys::fid_fabric,
        domain: *mut sys::fid_domain,
    ) -> OpenDomain {
        OpenDomain {
            library,
            fabric,
            domain,
        }
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    pub(super) fn fabric(&self) -> *mut sys::fid_fabric {
        self.fabric
    }

    pub(super) fn domain(&self) -> *mut sys::fid_domain {
        self.domain
    }
}

impl Drop for OpenDomain {
    fn drop(&mut self) {
        // SAFETY: both are open; all that hangs on them held this object and is gone.
        unsafe {
            close(
                self.library,
                "fi_close of a domain",
                &raw mut (*self.domain).fid,
            );
            close(
                self.library,
                "fi_close of a fabric",
                &raw mut (*self.fabric).fid,
            );
        }
    }
}
