//! Attributes of addresses: host memory, a GPU's, managed, or unknown to the driver.

use std::ffi::{c_int, c_void};
use std::fmt;

use cudarc::driver::sys::{CUmemorytype as Kind, CUpointer_attribute as Attribute};

use crate::context::Context;
use crate::error::Result;
use crate::table::{Code, RawPtr, call, call_optional};

/// An address in the one space that CUDA gives host and GPU memory. It can't be dereferenced here,
/// and nothing says that it is (still) valid: the calls that read or write through it are `unsafe`.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(u64);

impl DevicePtr {
    /// From a CUdeviceptr.
    #[must_use]
    pub const fn from_raw(address: u64) -> Self {
        DevicePtr(address)
    }

    /// Host memory's address. Page-locked memory may be used in every call; other host memory in
    /// copies only, which then may wait for the GPU.
    #[must_use]
    pub fn from_host<T>(pointer: *const T) -> Self {
        DevicePtr(pointer.addr() as u64)
    }

    /// The CUdeviceptr.
    #[must_use]
    pub const fn as_raw(self) -> u64 {
        self.0
    }

    /// The address so many bytes on. Wraps at the end of the address space, where nothing lies.
    #[must_use]
    pub const fn add(self, bytes: usize) -> Self {
        DevicePtr(self.0.wrapping_add(bytes as u64))
    }

    /// Whether it is a multiple of `bytes`.
    #[must_use]
    pub const fn is_aligned_to(self, bytes: u64) -> bool {
        bytes != 0 && self.0.is_multiple_of(bytes)
    }
}

impl fmt::Debug for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePtr({:#x})", self.0)
    }
}

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Memory {
    /// Host memory that the driver knows: page-locked.
    Host,
    /// A GPU's.
    Device,
    /// Managed: it moves between host and GPUs.
    Managed,
    /// Host memory that the driver does not know, or no memory at all.
    Unregistered,
}

/// The driver's attributes of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The type of its memory.
    pub memory: Memory,
    /// The number of the GPU that it lies on, or whose context registered it.
    pub device: Option<usize>,
    /// The start and length in bytes of the allocation or mapping around it, where the driver tells.
    pub range: Option<(DevicePtr, usize)>,
    /// Where the kernels of the context that asked have it, if they reach it at all.
    pub reached: Option<DevicePtr>,
}

/// Asks the driver about an address. Any may be asked about.
#[doc(alias = "cuPointerGetAttribute")]
pub fn attributes(context: &Context, address: DevicePtr) -> Result<Attributes> {
    const HOST: u32 = Kind::CU_MEMORYTYPE_HOST as u32;
    const DEVICE: u32 = Kind::CU_MEMORYTYPE_DEVICE as u32;
    const UNIFIED: u32 = Kind::CU_MEMORYTYPE_UNIFIED as u32;
    let _current = context.enter()?;
    let ask = |attribute| Question { context, address }.number::<u32>(attribute);
    let kind = match ask(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        Ok(kind) => kind,
        Err(error) if error.is(Code::INVALID_VALUE) => 0,
        Err(error) => return Err(error),
    };
    let managed = kind != 0
        && ask(Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED).is_ok_and(|flag| flag & 0xff != 0);
    let memory = match kind {
        HOST | DEVICE | UNIFIED if managed => Memory::Managed,
        HOST => Memory::Host,
        DEVICE => Memory::Device,
        UNIFIED => Memory::Managed,
        _ => Memory::Unregistered,
    };
    if memory == Memory::Unregistered {
        return Ok(Attributes {
            memory,
            device: None,
            range: None,
            reached: None,
        });
    }
    let wide = |attribute| Question { context, address }.number::<u64>(attribute).ok();
    let device = ask(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL).ok();
    let start = wide(Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
    let length = wide(Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE);
    let range = start.zip(length.and_then(|bytes| usize::try_from(bytes).ok()));
    Ok(Attributes {
        memory,
        // The driver says -1 or -2 of memory that is no GPU's.
        device: device
            .filter(|ordinal| *ordinal <= i32::MAX as u32)
            .map(|ordinal| ordinal as usize),
        range: range.map(|(start, bytes)| (DevicePtr(start), bytes)),
        reached: wide(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER).map(DevicePtr),
    })
}

/// One question about an address.
struct Question<'a> {
    context: &'a Context,
    address: DevicePtr,
}

/// A number that an attribute is written as. No attribute queried here is longer than eight bytes.
trait Number: Copy {
    fn from_low_bytes(bytes: u64) -> Self;
}

impl Number for u32 {
    fn from_low_bytes(bytes: u64) -> Self {
        bytes as u32
    }
}

impl Number for u64 {
    fn from_low_bytes(bytes: u64) -> Self {
        bytes
    }
}

impl Question<'_> {
    fn number<T: Number>(&self, attribute: Attribute) -> Result<T> {
        let mut value = 0_u64;
        let out = (&raw mut value).cast::<c_void>();
        // SAFETY: the attributes asked for are at most eight bytes, and so is the place; any address
        // may be asked about.
        unsafe {
            call!(
                self.context,
                cuPointerGetAttribute(out, attribute as c_int, self.address.0)
            )
        }?;
        Ok(T::from_low_bytes(value))
    }
}

/// Makes the driver's synchronous copies to and from an allocation synchronous in every case, which
/// a NIC that reaches it through a peer-memory module relies on.
#[doc(alias = "cuPointerSetAttribute")]
pub fn set_sync_memops(context: &Context, address: DevicePtr) -> Result<()> {
    let _current = context.enter()?;
    let on: u32 = 1;
    let attribute = Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS as c_int;
    let address: RawPtr = address.0;
    // SAFETY: the value of this attribute is a number of 32 bits, read during the call.
    unsafe {
        call_optional!(
            context,
            cuPointerSetAttribute((&raw const on).cast(), attribute, address)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_add_and_align() {
        let base = DevicePtr::from_raw(0x7f00_0000_0000);
        assert_eq!(base.add(24).as_raw(), 0x7f00_0000_0018);
        assert!(base.add(24).is_aligned_to(8) && !base.add(24).is_aligned_to(16));
        assert!(!base.is_aligned_to(0));
    }
}
