//! The driver's virtual memory calls, each result owned: a reserved range of addresses, an
//! allocation, and an allocation mapped into a range.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags as Granularity,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationProp_st__bindgen_ty_1 as Flags,
    CUmemAllocationType, CUmemLocation, CUmemLocationType,
};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pointer::DevicePtr;
use crate::table::{RawAllocation, RawPtr, call_optional};

/// How long the handles are that are passed as bytes: fabric handles and those of legacy IPC.
pub const HANDLE_BYTES: usize = 64;

/// No mapping is finer than this, in bytes, whatever the driver would allow.
pub(crate) const LEAST_GRANULE: usize = 2 << 20;

/// Ways to export an allocation, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandleTypes(u32);

impl HandleTypes {
    pub(crate) const NONE: HandleTypes =
        HandleTypes(CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE.0);
    pub(crate) const FD: HandleTypes =
        HandleTypes(CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0);
    pub(crate) const FABRIC: HandleTypes =
        HandleTypes(CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC.0);

    pub(crate) fn and(self, other: HandleTypes) -> Self {
        HandleTypes(self.0 | other.0)
    }

    pub(crate) fn has(self, other: HandleTypes) -> bool {
        self.0 & other.0 != 0
    }
}

/// The properties of an allocation: memory of the context's GPU that can be exported as these types.
fn properties(context: &Context, types: HandleTypes) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CUmemAllocationHandleType(types.0),
        location: location(context),
        win32HandleMetaData: ptr::null_mut(),
        allocFlags: Flags {
            compressionType: 0,
            gpuDirectRDMACapable: u8::from(context.device().has_gpudirect_rdma_with_vmm()),
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn location(context: &Context) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: context.device().raw(),
    }
}

/// The least multiple that allocations and mappings come in, in bytes: a power of two.
pub(crate) fn granularity(context: &Context, types: HandleTypes) -> Result<usize> {
    let _current = context.enter()?;
    let properties = properties(context, types);
    let least = Granularity::CU_MEM_ALLOC_GRANULARITY_MINIMUM as c_int;
    let mut bytes = 0;
    // SAFETY: the pointers are to a live integer and a whole structure.
    unsafe {
        call_optional!(
            context,
            cuMemGetAllocationGranularity(&raw mut bytes, &raw const properties, least)
        )
    }?;
    if !bytes.is_power_of_two() {
        return Err(Error::Invalid {
            what: "asking the driver for its granularity of memory",
            why: format!("it says {bytes} bytes, which is no power of two"),
        });
    }
    Ok(bytes.max(LEAST_GRANULE))
}

/// A range of addresses, given back when dropped. By then nothing is mapped in it.
#[derive(Debug)]
pub(crate) struct Reservation {
    context: Context,
    base: RawPtr,
    len: usize,
}

impl Reservation {
    /// Reserves `len` bytes of addresses, a multiple of `granule`.
    pub(crate) fn new(context: &Context, len: usize, granule: usize) -> Result<Self> {
        let _current = context.enter()?;
        let mut base: RawPtr = 0;
        // SAFETY: the pointer is to a live integer; the address is the driver's to choose; the flags
        // must be zero, and are.
        unsafe {
            call_optional!(
                context,
                cuMemAddressReserve(&raw mut base, len, granule, 0, 0)
            )
        }?;
        Ok(Reservation {
            context: context.clone(),
            base,
            len,
        })
    }

    pub(crate) fn base(&self) -> DevicePtr {
        DevicePtr::from_raw(self.base)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: it is a reservation of this length, freed once.
        let answer = self.context.enter().and_then(|_current| unsafe {
            call_optional!(self.context, cuMemAddressFree(self.base, self.len))
        });
        if let Err(error) = answer {
            tracing::debug!(%error, bytes = self.len, "addresses were not given back");
        }
    }
}

/// Memory without an address, this process's or imported. It lasts until it is dropped, here and in
/// every process that imported it, and until the last mapping of it is gone.
#[derive(Debug)]
pub(crate) struct Allocation {
    context: Context,
    raw: RawAllocation,
}

impl Allocation {
    /// Allocates `len` bytes, a multiple of the granularity.
    pub(crate) fn create(context: &Context, len: usize, types: HandleTypes) -> Result<Self> {
        let _current = context.enter()?;
        let properties = properties(context, types);
        let mut raw: RawAllocation = 0;
        // SAFETY: the pointers are to a live integer and a whole structure; the flags must be zero.
        unsafe {
            call_optional!(
                context,
                cuMemCreate(&raw mut raw, len, &raw const properties, 0)
            )
        }
        .map_err(|error| context.explain("cuMemCreate", len, error))?;
        Ok(Allocation {
            context: context.clone(),
            raw,
        })
    }

    /// A descriptor that another process of this host can import. Closed on exec.
    pub(crate) fn export_fd(&self) -> Result<OwnedFd> {
        let _current = self.context.enter()?;
        let mut descriptor: c_int = -1;
        // SAFETY: for this type of handle the driver writes a descriptor, an int.
        unsafe {
            let out = (&raw mut descriptor).cast::<c_void>();
            let kind = HandleTypes::FD.0 as c_int;
            call_optional!(
                self.context,
                cuMemExportToShareableHandle(out, self.raw, kind, 0)
            )
        }?;
        // SAFETY: the driver opened it for the caller to own.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: it is an open descriptor; the call sets a flag of it.
        let set = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        if set != 0 {
            tracing::debug!("an exported descriptor stays open across exec");
        }
        Ok(descriptor)
    }

    /// Bytes that another host of the NVLink domain can import.
    pub(crate) fn export_fabric(&self) -> Result<[u8; HANDLE_BYTES]> {
        let _current = self.context.enter()?;
        let mut handle = [0_u8; HANDLE_BYTES];
        // SAFETY: for this type of handle the driver writes 64 bytes.
        unsafe {
            let out = (&raw mut handle).cast::<c_void>();
            let kind = HandleTypes::FABRIC.0 as c_int;
            call_optional!(
                self.context,
                cuMemExportToShareableHandle(out, self.raw, kind, 0)
            )
        }?;
        Ok(handle)
    }

    /// Imports memory that another process exported. The descriptor may be closed afterwards.
    pub(crate) fn import_fd(context: &Context, descriptor: BorrowedFd<'_>) -> Result<Self> {
        let handle = ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
        // SAFETY: for this type of handle the argument is the descriptor itself, which is open.
        unsafe { Self::import(context, handle, HandleTypes::FD) }
    }

    /// Imports memory that another host exported.
    pub(crate) fn import_fabric(context: &Context, handle: &[u8; HANDLE_BYTES]) -> Result<Self> {
        let mut handle = *handle;
        // SAFETY: for this type of handle the argument points to its 64 bytes, which live.
        unsafe { Self::import(context, (&raw mut handle).cast(), HandleTypes::FABRIC) }
    }

    /// # Safety
    ///
    /// `handle` is what cuMemImportFromShareableHandle wants for that type.
    unsafe fn import(context: &Context, handle: *mut c_void, kind: HandleTypes) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw: RawAllocation = 0;
        // SAFETY: the first pointer is to a live integer, the second as the caller promises.
        unsafe {
            call_optional!(
                context,
                cuMemImportFromShareableHandle(&raw mut raw, handle, kind.0 as c_int)
            )
        }?;
        Ok(Allocation {
            context: context.clone(),
            raw,
        })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: it was created or imported once, and is released once.
        let answer = self
            .context
            .enter()
            .and_then(|_current| unsafe { call_optional!(self.context, cuMemRelease(self.raw)) });
        if let Err(error) = answer {
            tracing::debug!(%error, "GPU memory was not released");
        }
    }
}

/// An allocation at an address, readable and writable by the context's GPU. Unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapped {
    at: RawPtr,
    len: usize,
    /// Dropped after the unmapping.
    allocation: Allocation,
}

impl Mapped {
    /// Maps the first `len` bytes of an allocation `offset` bytes into a reservation. Where that
    /// range is not free, or the allocation is shorter, the driver refuses.
    pub(crate) fn new(
        reservation: &Reservation,
        offset: usize,
        len: usize,
        allocation: Allocation,
    ) -> Result<Self> {
        let context = &reservation.context;
        let _current = context.enter()?;
        let at = reservation.base().add(offset).as_raw();
        // SAFETY: the driver checks that the range is reserved and free and that the allocation is
        // long enough; offset and flags must be zero, and are.
        unsafe { call_optional!(context, cuMemMap(at, len, 0, allocation.raw, 0)) }?;
        // From here on dropping it unmaps.
        let mapped = Mapped {
            at,
            len,
            allocation,
        };
        let access = CUmemAccessDesc {
            location: location(context),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the range was mapped just now; the pointer is to one whole structure.
        unsafe { call_optional!(context, cuMemSetAccess(at, len, &raw const access, 1)) }?;
        Ok(mapped)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn allocation(&self) -> &Allocation {
        &self.allocation
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let context = &self.allocation.context;
        // SAFETY: it is mapped, with this length; that no work uses it is the rule of who drops it.
        let answer = context
            .enter()
            .and_then(|_current| unsafe { call_optional!(context, cuMemUnmap(self.at, self.len)) });
        if let Err(error) = answer {
            tracing::debug!(%error, bytes = self.len, "GPU memory was not unmapped");
        }
    }
}
