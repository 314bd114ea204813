//! The declarations of libfabric in `oxshmem-ofi`, compared with the headers and with the library.

use std::ffi::CString;

use oxshmem_references::{FABRIC_CHECKED_IN, FABRIC_FUNCTIONS, libfabric};

#[test]
fn the_bindings_that_are_checked_in_are_current() {
    let checked_in = std::fs::read_to_string(FABRIC_CHECKED_IN).unwrap();
    let made = libfabric().unwrap();
    let mut lines = checked_in.lines().zip(made.lines()).enumerate();
    let first = lines.find(|(_, (checked_in, made))| checked_in != made);
    assert!(
        checked_in == made,
        "{FABRIC_CHECKED_IN} is not what the headers of Debian 12 give: run ci/bindings; the first difference: {first:?}"
    );
}

#[test]
fn the_library_exports_each_function_that_is_looked_up() {
    // SAFETY: a name, and flags; the initializers of libfabric have no precondition.
    let library = unsafe { libc::dlopen(c"libfabric.so.1".as_ptr(), libc::RTLD_NOW) };
    assert!(
        !library.is_null(),
        "libfabric.so.1 is not there: run ci/setup"
    );
    for name in FABRIC_FUNCTIONS {
        let name = CString::new(*name).unwrap();
        // SAFETY: an open library and a C string.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
    }
}
