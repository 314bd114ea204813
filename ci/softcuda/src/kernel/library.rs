//! The host build of the kernels: a shared library made from the same source.
//!
//! Its exports:
//!
//! * for each kernel `NAME`, `void NAME__packed(void **arguments)`, which is one thread's run. It
//!   reads the arguments through the pointers, and writes none;
//! * `void softcuda_thread(bx, by, bz, tx, ty, tz, gx, gy, gz, dx, dy, dz)`, twelve `unsigned`,
//!   which sets the calling thread's position in the grid;
//! * optional: `void (*softcuda_syncthreads)(void)` and `void (*softcuda_pause)(void)`, which the driver
//!   fills in: the block's barrier, and the call with which a thread that waits gives way;
//! * the modules' variables under their own names.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

use super::fiber::{pause, syncthreads};
use super::memory_file::memory_file;
use super::shape::{Packed, Position};

type Place = unsafe extern "C" fn(u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32);

/// The library, open as long as the process lives.
pub(crate) struct HostLibrary {
    handle: *mut c_void,
    place: Place,
}

// SAFETY: the handle is only given to dlsym, and the function is called, which any thread may do.
unsafe impl Send for HostLibrary {}
// SAFETY: as above.
unsafe impl Sync for HostLibrary {}

fn last_error(path: &Path) -> String {
    // SAFETY: dlerror gives null or a string that lives until the next call on this thread.
    let words = unsafe {
        let words = libc::dlerror();
        if words.is_null() {
            None
        } else {
            Some(CStr::from_ptr(words).to_string_lossy().into_owned())
        }
    };
    words.unwrap_or_else(|| format!("{}: can not be loaded", path.display()))
}

impl HostLibrary {
    /// Opens a library that lies in memory.
    pub(crate) fn from_bytes(library: &[u8]) -> Result<HostLibrary, String> {
        let (_file, path) = memory_file(library).map_err(|error| error.to_string())?;
        HostLibrary::open(&path)
    }

    pub(crate) fn open(path: &Path) -> Result<HostLibrary, String> {
        use std::os::unix::ffi::OsStrExt;
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the user names a library of kernels; its initialisers are theirs to vouch for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(last_error(path));
        }
        let place = symbol(handle, "softcuda_thread").ok_or_else(|| {
            format!(
                "{}: exports no softcuda_thread, so is no host build of kernels",
                path.display()
            )
        })?;
        let hooks: [(&str, unsafe extern "C" fn()); 2] = [
            ("softcuda_syncthreads", syncthreads),
            ("softcuda_pause", pause),
        ];
        for (name, function) in hooks {
            if let Some(slot) = symbol(handle, name) {
                // SAFETY: by the agreement above, a variable that holds a function pointer.
                unsafe { slot.cast::<unsafe extern "C" fn()>().write(function) };
            }
        }
        // SAFETY: by the agreement above, a function of that type.
        let place = unsafe { std::mem::transmute::<*mut c_void, Place>(place) };
        Ok(HostLibrary { handle, place })
    }

    /// The code of a kernel.
    pub(crate) fn kernel(&self, name: &str) -> Option<Packed> {
        let address = symbol(self.handle, &format!("{name}__packed"))?;
        // SAFETY: by the agreement above, a function of that type.
        Some(unsafe { std::mem::transmute::<*mut c_void, Packed>(address) })
    }

    /// The address of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<u64> {
        symbol(self.handle, name).map(|address| address as u64)
    }

    /// Tells the library the calling thread's position.
    pub(crate) fn place(&self, at: Position) {
        let [b, t, g, d] = [at.block, at.thread, at.grid, at.threads];
        // SAFETY: by the agreement above, stores twelve numbers in thread-local variables.
        unsafe {
            (self.place)(
                b[0], b[1], b[2], t[0], t[1], t[2], g[0], g[1], g[2], d[0], d[1], d[2],
            );
        }
    }
}

fn symbol(library: *mut c_void, name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: an open library and a string that ends.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}
