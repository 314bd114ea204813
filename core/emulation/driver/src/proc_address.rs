//! `cuGetProcAddress`: the driver's own symbols, by the names that CUDA's headers use.

use std::ffi::{CString, c_void};
use std::sync::OnceLock;

use crate::call::{In, Out};
use crate::code::Code;
use crate::own_file::own_file;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`: such variants are not there.
const PER_THREAD: u64 = 2;
/// Values of the status: found, or no such symbol.
const FOUND: u32 = 0;
const NO_SYMBOL: u32 = 1;

/// This library, as the loader knows it.
fn own_handle() -> Option<usize> {
    static HANDLE: OnceLock<Option<usize>> = OnceLock::new();
    *HANDLE.get_or_init(|| {
        let file = own_file()?.as_ptr();
        // SAFETY: the loader is asked only for what is loaded already.
        let handle = unsafe { libc::dlopen(file, libc::RTLD_NOW | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then_some(handle as usize)
    })
}

fn find(name: &str) -> Option<*mut c_void> {
    let handle = own_handle()? as *mut c_void;
    // The newest form first, which is what a name without a version means.
    [format!("{name}_v2"), name.to_owned()]
        .into_iter()
        .find_map(|name| {
            let name = CString::new(name).ok()?;
            // SAFETY: an open library and a string that ends.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        })
}

driver_calls! {
    /// The address of a driver call.
    fn cuGetProcAddress_v2(
        name: In<u8>,
        address: Out<*mut c_void>,
        version: i32,
        flags: u64,
        status: Out<u32>,
    ) {
        address.check()?;
        let _ = version;
        let name = name.text()?;
        let found = if name.starts_with("cu") && flags & PER_THREAD == 0 { find(&name) } else { None };
        address.set(found.unwrap_or(std::ptr::null_mut()))?;
        status.set_if_wanted(if found.is_some() { FOUND } else { NO_SYMBOL });
        found.map(|_| ()).ok_or(Code::NOT_FOUND)
    }
}
