//! Variables of modules and libraries that a program has loaded itself, by the driver's handles.

use std::ffi::{CStr, c_void};

use crate::context::Context;
use crate::error::Result;
use crate::pointer::DevicePtr;
use crate::table::{RawPtr, call, call_optional};

/// The address and the bytes of a variable of a CUmodule.
///
/// # Errors
///
/// [`Error::Driver`](crate::Error) where the module has no such variable.
///
/// # Safety
///
/// The handle is a module's that is loaded in this context.
#[doc(alias = "cuModuleGetGlobal")]
pub unsafe fn of_module(
    context: &Context,
    module: *mut c_void,
    name: &CStr,
) -> Result<(DevicePtr, usize)> {
    let _current = context.enter()?;
    let (mut address, mut len): (RawPtr, usize) = (0, 0);
    // SAFETY: the pointers are to live integers and a string that ends; the caller promises the module.
    unsafe {
        call!(
            context,
            cuModuleGetGlobal_v2(&raw mut address, &raw mut len, module, name.as_ptr())
        )
    }?;
    Ok((DevicePtr::from_raw(address), len))
}

/// The address and the bytes of a variable of a CUlibrary.
///
/// # Errors
///
/// As [`of_module`], and where the driver has no such libraries.
///
/// # Safety
///
/// The handle is a library's that is loaded.
#[doc(alias = "cuLibraryGetGlobal")]
pub unsafe fn of_library(
    context: &Context,
    library: *mut c_void,
    name: &CStr,
) -> Result<(DevicePtr, usize)> {
    let _current = context.enter()?;
    let (mut address, mut len): (RawPtr, usize) = (0, 0);
    // SAFETY: the pointers are to live integers and a string that ends; the caller promises the library.
    unsafe {
        call_optional!(
            context,
            cuLibraryGetGlobal(&raw mut address, &raw mut len, library, name.as_ptr())
        )
    }?;
    Ok((DevicePtr::from_raw(address), len))
}
