//! Page-locked host memory.

use std::ffi::{c_uint, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use cudarc::driver::sys;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pointer::DevicePtr;
use crate::table::{RawPtr, call};

/// How to lock host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinnedOptions {
    /// The CPU writes it in bursts and never reads it (reading is very slow then).
    pub write_combined: bool,
}

/// Page-locked host memory that every GPU of the process reaches, zeroed. Freed when dropped; work
/// that uses it is done by then, as the calls that queue work demand.
pub struct Pinned {
    context: Context,
    start: NonNull<u8>,
    device: DevicePtr,
    len: usize,
}

impl Pinned {
    /// Allocates `len` bytes, aligned to a page.
    #[doc(alias = "cuMemHostAlloc")]
    pub fn new(context: &Context, len: usize, options: &PinnedOptions) -> Result<Self> {
        if len == 0 {
            return Err(bad("0 bytes".into()));
        }
        let mut flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        if options.write_combined {
            flags |= sys::CU_MEMHOSTALLOC_WRITECOMBINED;
        }
        let _current = context.enter()?;
        let mut start: *mut c_void = ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { call!(context, cuMemHostAlloc(&raw mut start, len, flags)) }
            .map_err(|error| no_host_memory(len, error))?;
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(bad(format!("the driver gave no memory for {len} bytes")));
        };
        let mut memory = Pinned {
            context: context.clone(),
            start,
            device: DevicePtr::from_raw(0),
            len,
        };
        memory.device = device_address(context, start)?;
        // SAFETY: the driver gave `len` bytes, and nobody else knows them yet.
        unsafe { start.write_bytes(0, len) };
        Ok(memory)
    }
}

/// The program's own host memory, page-locked for GPUs while this lives. It must be registered only
/// once at a time: a second registration of the same pages is an error.
pub struct Registered {
    context: Context,
    start: NonNull<u8>,
    device: DevicePtr,
    len: usize,
}

impl Registered {
    /// Registers `len` bytes.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped, at that address, until this is dropped (or the process ends).
    #[doc(alias = "cuMemHostRegister")]
    pub unsafe fn new(context: &Context, start: *mut u8, len: usize) -> Result<Self> {
        let Some(start) = NonNull::new(start) else {
            return Err(bad("a null pointer".into()));
        };
        if len == 0 {
            return Err(bad("0 bytes".into()));
        }
        let flags: c_uint = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        let _current = context.enter()?;
        // SAFETY: the caller answers for the range.
        unsafe {
            call!(
                context,
                cuMemHostRegister_v2(start.as_ptr().cast(), len, flags)
            )
        }
        .map_err(|error| no_host_memory(len, error))?;
        let mut memory = Registered {
            context: context.clone(),
            start,
            device: DevicePtr::from_raw(0),
            len,
        };
        memory.device = device_address(context, start)?;
        Ok(memory)
    }
}

/// The common part of both kinds of page-locked memory: a range for the CPU and for GPUs, until it ends.
macro_rules! page_locked {
    ($name:ident, $end:ident, $failed:literal) => {
        // SAFETY: it is memory, which only raw pointers lead to.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("len", &self.len)
                    .finish_non_exhaustive()
            }
        }

        impl $name {
            /// Its start for the CPU. A GPU may write it at any time: read it by atomics or raw pointers.
            #[must_use]
            pub fn as_ptr(&self) -> *mut u8 {
                self.start.as_ptr()
            }

            /// Its start for GPUs.
            #[must_use]
            pub fn device_ptr(&self) -> DevicePtr {
                self.device
            }

            /// Its length in bytes.
            #[must_use]
            #[allow(
                clippy::len_without_is_empty,
                reason = "it never is: 0 bytes are refused"
            )]
            pub fn len(&self) -> usize {
                self.len
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                let start = self.start.as_ptr().cast::<c_void>();
                let answer = self.context.enter().and_then(|_current| {
                    // SAFETY: it was locked once, and ends once.
                    unsafe { call!(self.context, $end(start)) }
                });
                if let Err(error) = answer {
                    tracing::debug!(%error, bytes = self.len, $failed);
                }
            }
        }
    };
}
page_locked!(Pinned, cuMemFreeHost, "page-locked memory was not freed");
page_locked!(Registered, cuMemHostUnregister, "memory stays page-locked");

/// Where GPUs see page-locked memory. The context is current.
fn device_address(context: &Context, start: NonNull<u8>) -> Result<DevicePtr> {
    let mut address: RawPtr = 0;
    let start = start.as_ptr().cast::<c_void>();
    // SAFETY: the pointer is to a live integer; the driver checks that the memory is its own; the
    // flags must be zero, and are.
    unsafe {
        call!(
            context,
            cuMemHostGetDevicePointer_v2(&raw mut address, start, 0)
        )
    }?;
    Ok(DevicePtr::from_raw(address))
}

/// It is the host that lacks memory, whatever the GPU has.
fn no_host_memory(len: usize, error: Error) -> Error {
    if error.is(crate::table::Code::OUT_OF_MEMORY) {
        return bad(format!(
            "no {len} bytes can be locked ({error}); raise ulimit -l or the container's memory"
        ));
    }
    error
}

fn bad(why: String) -> Error {
    Error::Invalid {
        what: "locking host memory for a GPU",
        why,
    }
}
