//! The file of this library.

use std::ffi::{CStr, c_void};

/// The file that this library was loaded from, as the loader names it.
pub(crate) fn own_file() -> Option<&'static CStr> {
    // SAFETY: all zeroes is a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr looks up a code address, of this library's own code.
    let found = unsafe { libc::dladdr(own_file as *const c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name ends, and lives as long as the library.
    Some(unsafe { CStr::from_ptr(info.dli_fname) })
}
