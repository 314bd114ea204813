//! Calls of the software NIC that libibverbs does not have.

use std::ffi::{CString, c_char, c_int};

/// A call of the library that the transport opens, by its name.
///
/// # Safety
///
/// It has the type.
unsafe fn call<T: Copy>(name: &str) -> T {
    // SAFETY: the library's initializers have no precondition. It is never closed.
    let library = unsafe { libloading::os::unix::Library::new("libibverbs.so.1") }.unwrap();
    // SAFETY: the caller's promise.
    let call = *unsafe { library.get::<T>(name.as_bytes()) }
        .unwrap_or_else(|error| panic!("not the software NIC: {error}"));
    std::mem::forget(library);
    call
}

/// Carries out a command of ci/softnic/README.md.
pub fn control(command: &str) {
    let text = CString::new(command).unwrap();
    // SAFETY: declared so; a C string.
    let code = unsafe {
        call::<unsafe extern "C" fn(*const c_char) -> c_int>("softnic_control")(text.as_ptr())
    };
    assert_eq!(code, 0, "{command}");
}

/// A count of ci/softnic/README.md.
pub fn counter(name: &str) -> u64 {
    let text = CString::new(name).unwrap();
    // SAFETY: declared so; a C string.
    unsafe { call::<unsafe extern "C" fn(*const c_char) -> u64>("softnic_counter")(text.as_ptr()) }
}
