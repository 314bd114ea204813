//! A range of GPU memory as a descriptor that a NIC's driver can register.

use std::ffi::{c_int, c_void};
use std::os::fd::{FromRawFd, OwnedFd};

use cudarc::driver::sys::CUmemRangeHandleType;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pointer::DevicePtr;
use crate::table::call_optional;

/// GPU memory for another device.
#[derive(Debug)]
pub struct DmaBuf {
    /// The descriptor, of whole pages.
    pub fd: OwnedFd,
    /// Bytes from its start to the range that was asked for.
    pub offset: usize,
    /// The length in bytes that was asked for.
    pub len: usize,
}

/// A descriptor of `len` bytes of this context's GPU. The range lies in one allocation or extent;
/// the pages around it are in the descriptor too.
///
/// Memory of a VMM segment needs [`Device::has_gpudirect_rdma_with_vmm`] besides.
///
/// [`Device::has_gpudirect_rdma_with_vmm`]: crate::Device::has_gpudirect_rdma_with_vmm
#[doc(alias = "cuMemGetHandleForAddressRange")]
pub fn export(context: &Context, start: DevicePtr, len: usize) -> Result<DmaBuf> {
    if !context.device().has_dma_buf() {
        return Err(Error::Unsupported {
            device: context.ordinal(),
            what: "memory as a dma-buf",
            mend: "it needs the open NVIDIA kernel modules and Linux 5.12; load nvidia-peermem, or \
                   let transfers be staged",
        });
    }
    let page = page_size();
    let offset = (start.as_raw() % page as u64) as usize;
    let whole = offset
        .checked_add(len)
        .and_then(|bytes| bytes.checked_next_multiple_of(page));
    let Some(whole) = whole.filter(|_| len > 0) else {
        return Err(Error::Invalid {
            what: "exporting GPU memory as a dma-buf",
            why: format!("{len} bytes at {start:?}"),
        });
    };
    let first = start.as_raw() - offset as u64;
    let kind = CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD as c_int;
    let mut descriptor: c_int = -1;
    let _current = context.enter()?;
    // SAFETY: for this type of handle the driver writes a descriptor, an int; it checks the range.
    unsafe {
        let out = (&raw mut descriptor).cast::<c_void>();
        call_optional!(
            context,
            cuMemGetHandleForAddressRange(out, first, whole, kind, 0)
        )
    }?;
    Ok(DmaBuf {
        // SAFETY: the driver opened it for the caller to own.
        fd: unsafe { OwnedFd::from_raw_fd(descriptor) },
        offset,
        len,
    })
}

fn page_size() -> usize {
    // SAFETY: it asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .unwrap_or(4096)
}
