//! The return values of verbs calls as results. There are two conventions: calls that create an object give
//! a null pointer and set `errno`; the others return the error's number and need not set `errno`.

use std::ffi::c_int;
use std::io;
use std::ptr::NonNull;

use oxshmem_transport::{Error, Result};

use crate::limits::NAME;

/// The remedy for an error of this number, after a call that needs resources or permission.
fn mend(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            " (permission: the user must be able to open /dev/infiniband/uverbs*; \
             add them to the group that owns it, or pass the devices to the container)"
        }
        Some(libc::ENOMEM) => {
            " (out of memory, or of what `ulimit -l` lets a process lock: raise it, \
             in /etc/security/limits.conf or the service's LimitMEMLOCK=infinity)"
        }
        _ => "",
    }
}

#[cold]
pub(crate) fn failed(call: &str, source: io::Error) -> Error {
    Error::Os {
        transport: NAME,
        call: format!("{call}{}", mend(&source)),
        source,
    }
}

/// For calls that give null and set `errno`.
pub(crate) fn created<T>(call: &str, pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(|| failed(call, io::Error::last_os_error()))
}

/// For calls that return 0 or the error's number. A few providers return -1 and set `errno`.
pub(crate) fn returned(call: &str, code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        -1 => Err(failed(call, io::Error::last_os_error())),
        code => Err(failed(call, io::Error::from_raw_os_error(code.abs()))),
    }
}

/// As [`returned`], where nothing can be done about it: destructors log, and leak.
pub(crate) fn ended(call: &'static str, code: c_int) {
    if let Err(error) = returned(call, code) {
        tracing::warn!(%error, "a verbs object could not be destroyed and is leaked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_number_is_the_error_and_errno_is_not() {
        let error = returned("ibv_modify_qp", libc::EINVAL).unwrap_err();
        assert!(
            matches!(&error, Error::Os { source, .. } if source.raw_os_error() == Some(libc::EINVAL)),
            "{error}"
        );
        assert!(returned("ibv_modify_qp", 0).is_ok());
    }

    #[test]
    fn a_lack_of_lockable_memory_names_the_limit() {
        let error = returned("ibv_reg_mr", libc::ENOMEM)
            .unwrap_err()
            .to_string();
        assert!(error.contains("ulimit -l"), "{error}");
    }

    #[test]
    fn a_lack_of_permission_names_the_device_files() {
        let error = returned("ibv_open_device", libc::EACCES)
            .unwrap_err()
            .to_string();
        assert!(error.contains("/dev/infiniband/uverbs"), "{error}");
    }
}
