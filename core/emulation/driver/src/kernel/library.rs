//! The host build of the kernels: a shared library made from the same source.
//!
//! Its exports:
//!
//! * for each kernel `NAME`, `void NAME__packed(void **arguments)`, which is one thread's run. It
//!   reads the arguments through the pointers, and writes none;
//! * `void softcuda_thread(bx, by, bz, tx, ty, tz, gx, gy, gz, dx, dy, dz)`, twelve `unsigned`,
//!   which sets the calling thread's position in the grid;
//! * optional: `void (*softcuda_syncthreads)(void)`, `void (*softcuda_pause)(unsigned nanoseconds)` and `softcuda_warp`, which the
//!   driver fills in: the block's barrier, the call with which a thread that waits gives way, and meetings of lanes;
//! * the modules' variables under their own names.

use std::ffi::c_void;
use std::path::Path;

use super::fiber::{pause, syncthreads, warp};
use super::shape::{Packed, Position};
use super::shared_object::SharedObject;

type Place = unsafe extern "C" fn(u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32);

/// The library.
pub(crate) struct HostLibrary {
    object: SharedObject,
    place: Place,
}

impl HostLibrary {
    /// Opens a library that lies in memory.
    pub(crate) fn from_bytes(library: &[u8]) -> Result<HostLibrary, String> {
        HostLibrary::of(SharedObject::from_bytes(library)?)
    }

    /// Opens a library that lies in a file.
    pub(crate) fn open(path: &Path) -> Result<HostLibrary, String> {
        let refuse = |words| format!("{}: {words}", path.display());
        HostLibrary::of(SharedObject::open(path)?).map_err(refuse)
    }

    fn of(object: SharedObject) -> Result<HostLibrary, String> {
        let place = object
            .symbol("softcuda_thread")
            .ok_or("exports no softcuda_thread, so is no host build of kernels")?;
        let hooks: [(&str, *const c_void); 3] = [
            ("softcuda_syncthreads", syncthreads as *const c_void),
            ("softcuda_pause", pause as *const c_void),
            ("softcuda_warp", warp as *const c_void),
        ];
        for (name, function) in hooks {
            if let Some(slot) = object.symbol(name) {
                // SAFETY: by the agreement above, a variable that holds a pointer to a function of that type.
                unsafe { slot.cast::<*const c_void>().write(function) };
            }
        }
        // SAFETY: by the agreement above, a function of that type.
        let place = unsafe { std::mem::transmute::<*mut c_void, Place>(place) };
        Ok(HostLibrary { object, place })
    }

    /// The code of a kernel.
    pub(crate) fn kernel(&self, name: &str) -> Option<Packed> {
        let address = self.object.symbol(&format!("{name}__packed"))?;
        // SAFETY: by the agreement above, a function of that type.
        Some(unsafe { std::mem::transmute::<*mut c_void, Packed>(address) })
    }

    /// The address of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<u64> {
        self.object.symbol(name).map(|address| address as u64)
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
