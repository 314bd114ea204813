//! libhwloc, opened at run time: the functions that export the running machine as XML, and the only
//! unsafe code of this package. No structure of hwloc is touched.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_NOW};

/// The library's name since hwloc 2.0.
const NAME: &str = "libhwloc.so.15";
/// Its major version, as `hwloc_get_api_version() >> 16` gives it.
const VERSION: c_uint = 2;
/// `HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED`.
const INCLUDE_DISALLOWED: c_ulong = 1;

/// The filter of devices that hwloc keeps: values of `enum hwloc_type_filter_e`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Devices {
    /// `HWLOC_TYPE_FILTER_KEEP_NONE`.
    None = 1,
    /// `HWLOC_TYPE_FILTER_KEEP_IMPORTANT`.
    Important = 3,
}

/// `hwloc_topology_t`.
type Raw = *mut c_void;

/// The functions of libhwloc, as hwloc.h and hwloc/export.h declare them.
#[derive(Debug)]
pub(super) struct Library {
    init: unsafe extern "C" fn(*mut Raw) -> c_int,
    set_flags: unsafe extern "C" fn(Raw, c_ulong) -> c_int,
    set_io_types_filter: unsafe extern "C" fn(Raw, c_uint) -> c_int,
    load: unsafe extern "C" fn(Raw) -> c_int,
    is_thissystem: unsafe extern "C" fn(Raw) -> c_int,
    export_xmlbuffer: unsafe extern "C" fn(Raw, *mut *mut c_char, *mut c_int, c_ulong) -> c_int,
    free_xmlbuffer: unsafe extern "C" fn(Raw, *mut c_char),
    destroy: unsafe extern "C" fn(Raw),
}

impl Library {
    /// The library, opened at the first call; it stays open as long as the process lives.
    pub(super) fn get() -> Result<&'static Library, String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| Library::open(NAME))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn open(name: &str) -> Result<Library, String> {
        // hwloc's plugins find the library's functions among the global symbols alone.
        // SAFETY: the initializers of libhwloc have no precondition.
        let opened = unsafe { Handle::open(Some(name), RTLD_NOW | RTLD_GLOBAL) };
        let handle =
            opened.map_err(|error| format!("{error}; it is optional (Debian: libhwloc15)"))?;
        // SAFETY: each type is that of the function in hwloc.h and hwloc/export.h of version 2,
        // which `version` is asked for before any other function is called.
        let library = unsafe {
            let version: unsafe extern "C" fn() -> c_uint =
                find(&handle, c"hwloc_get_api_version")?;
            let found = version() >> 16;
            if found != VERSION {
                return Err(format!("{name} is of version {found}, not {VERSION}"));
            }
            Library {
                init: find(&handle, c"hwloc_topology_init")?,
                set_flags: find(&handle, c"hwloc_topology_set_flags")?,
                set_io_types_filter: find(&handle, c"hwloc_topology_set_io_types_filter")?,
                load: find(&handle, c"hwloc_topology_load")?,
                is_thissystem: find(&handle, c"hwloc_topology_is_thissystem")?,
                export_xmlbuffer: find(&handle, c"hwloc_topology_export_xmlbuffer")?,
                free_xmlbuffer: find(&handle, c"hwloc_free_xmlbuffer")?,
                destroy: find(&handle, c"hwloc_topology_destroy")?,
            }
        };
        // Never closed: the functions must stay.
        std::mem::forget(handle);
        Ok(library)
    }

    /// Has hwloc look at the running machine, CPUs that this process may not use included.
    pub(super) fn topology(&self, devices: Devices) -> Result<Loaded<'_>, String> {
        let mut raw = null_mut();
        // SAFETY: one pointer is written.
        succeeded("hwloc_topology_init", unsafe { (self.init)(&raw mut raw) })?;
        let raw = NonNull::new(raw).ok_or("hwloc_topology_init gave no topology")?;
        let loaded = Loaded { library: self, raw };
        // SAFETY: a topology that was made, and is not loaded yet.
        succeeded("hwloc_topology_set_flags", unsafe {
            (self.set_flags)(raw.as_ptr(), INCLUDE_DISALLOWED)
        })?;
        // SAFETY: as above; the number is one of the enum's.
        succeeded("hwloc_topology_set_io_types_filter", unsafe {
            (self.set_io_types_filter)(raw.as_ptr(), devices as c_uint)
        })?;
        // SAFETY: as above.
        succeeded("hwloc_topology_load", unsafe { (self.load)(raw.as_ptr()) })?;
        Ok(loaded)
    }
}

/// The function of this name.
///
/// # Safety
///
/// `F` is the type of a function pointer, and the one that the library has under that name.
unsafe fn find<F: Copy>(handle: &Handle, name: &CStr) -> Result<F, String> {
    // SAFETY: the type is the caller's promise.
    match unsafe { handle.get::<F>(name.to_bytes_with_nul()) } {
        Ok(function) => Ok(*function),
        Err(error) => Err(format!("{error}; install hwloc 2")),
    }
}

/// The result of a call that returns -1 and sets `errno` where it fails.
fn succeeded(call: &str, code: c_int) -> Result<(), String> {
    match code {
        0 => Ok(()),
        _ => Err(format!("{call}: {}", io::Error::last_os_error())),
    }
}

/// A topology that hwloc has loaded.
pub(super) struct Loaded<'a> {
    library: &'a Library,
    raw: NonNull<c_void>,
}

impl Loaded<'_> {
    /// Whether it is the running machine's.
    pub(super) fn is_this_system(&self) -> bool {
        // SAFETY: the topology lives and is loaded.
        unsafe { (self.library.is_thissystem)(self.raw.as_ptr()) == 1 }
    }

    /// It as XML of hwloc 2.
    pub(super) fn xml(&self) -> Result<Xml<'_>, String> {
        let (mut text, mut length) = (null_mut(), 0);
        // SAFETY: the topology lives and is loaded; a pointer and an int are written.
        succeeded("hwloc_topology_export_xmlbuffer", unsafe {
            (self.library.export_xmlbuffer)(self.raw.as_ptr(), &raw mut text, &raw mut length, 0)
        })?;
        let text = NonNull::new(text).ok_or("hwloc_topology_export_xmlbuffer gave no text")?;
        Ok(Xml {
            topology: self,
            text,
        })
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once; texts made from it borrow it.
        unsafe { (self.library.destroy)(self.raw.as_ptr()) }
    }
}

/// A text in memory of hwloc's.
pub(super) struct Xml<'a> {
    topology: &'a Loaded<'a>,
    text: NonNull<c_char>,
}

impl Xml<'_> {
    pub(super) fn as_str(&self) -> Result<&str, String> {
        // SAFETY: hwloc gave a C string, which lives and does not change until it is freed.
        let text = unsafe { CStr::from_ptr(self.text.as_ptr()) };
        text.to_str()
            .map_err(|error| format!("its XML is no UTF-8: {error}"))
    }
}

impl Drop for Xml<'_> {
    fn drop(&mut self) {
        // SAFETY: a text of this topology, freed once.
        unsafe {
            (self.topology.library.free_xmlbuffer)(self.topology.raw.as_ptr(), self.text.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_its_package() {
        let error = Library::open("libhwloc-of-nobody.so.15").unwrap_err();
        for word in ["libhwloc-of-nobody.so.15", "libhwloc15"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn plugins_find_the_functions_among_the_global_symbols() {
        Library::get().unwrap();
        // SAFETY: hwloc.h declares it so.
        let found =
            unsafe { find::<unsafe extern "C" fn()>(&Handle::this(), c"hwloc_topology_init") };
        found.unwrap();
    }

    #[test]
    fn a_library_without_the_functions_is_refused_by_the_first_of_them() {
        let error = Library::open("libc.so.6").unwrap_err();
        for word in ["libc.so.6", "hwloc_get_api_version"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
