//! Devices: the GPUs that this process sees.

use std::ffi::{c_char, c_int};
use std::fmt;

use cudarc::driver::sys::{
    CUGPUDirectRDMAWritesOrdering as Ordering, CUdevice_P2PAttribute as P2p,
    CUdevice_attribute as Attribute, CUflushGPUDirectRDMAWritesOptions as FlushBits,
};

use crate::driver::{Driver, Feature};
use crate::error::{Error, Result};
use crate::table::{RawDevice, call};

/// A GPU's identity, the same in every process on every host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    /// As nvidia-smi writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU-")?;
        for (place, byte) in self.0.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where on the PCI bus a GPU sits. Its function is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// The domain.
    pub domain: u32,
    /// The bus.
    pub bus: u32,
    /// The device on the bus.
    pub device: u32,
}

impl fmt::Display for PciAddress {
    /// As in /sys/bus/pci/devices.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.0",
            self.domain, self.bus, self.device
        )
    }
}

/// The flushes that can make a NIC's writes to a GPU visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushOptions {
    /// The host, by [`Context::flush_rdma_writes`](crate::Context::flush_rdma_writes).
    pub host: bool,
    /// A wait on a stream that flushes ([`Stream::wait_value64`](crate::Stream::wait_value64)).
    pub stream: bool,
}

/// For whom a NIC's writes to a GPU are in order without a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WritesOrdering {
    /// For none: a flush is needed before the GPU reads.
    None,
    /// For the GPU whose memory it is.
    Owner,
    /// For every GPU.
    AllDevices,
    /// A value of a newer driver; treat it as none.
    Unknown(i32),
}

/// A GPU as this process sees it.
#[derive(Clone)]
pub struct Device {
    driver: &'static Driver,
    raw: RawDevice,
    ordinal: usize,
    name: String,
    uuid: Uuid,
    pci: PciAddress,
    compute_capability: (u32, u32),
    total_memory: usize,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.ordinal)
            .field("name", &self.name)
            .field("uuid", &self.uuid)
            .field("pci", &self.pci)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Device {}

/// A question to the driver that is about a GPU by number.
pub(crate) struct Ask(pub(crate) &'static Driver, pub(crate) usize);

impl Ask {
    pub(crate) fn driver(&self) -> &'static Driver {
        self.0
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.1
    }
}

/// Every GPU that this process sees, in the driver's order.
#[doc(alias = "cuDeviceGetCount")]
pub fn devices() -> Result<Vec<Device>> {
    let driver = Driver::get()?;
    (0..count(driver)?)
        .map(|ordinal| Device::describe(driver, ordinal))
        .collect()
}

fn count(driver: &'static Driver) -> Result<usize> {
    let mut count = 0;
    // SAFETY: the pointer is to a live integer, and the driver is initialised.
    unsafe { call!(Ask(driver, 0), cuDeviceGetCount(&raw mut count)) }?;
    Ok(usize::try_from(count).unwrap_or(0))
}

impl Device {
    /// The GPU with a number, counted from 0 as the driver does (CUDA_VISIBLE_DEVICES reorders).
    #[doc(alias = "cuDeviceGet")]
    pub fn new(ordinal: usize) -> Result<Self> {
        let driver = Driver::get()?;
        let count = count(driver)?;
        if ordinal >= count {
            return Err(Error::BadOrdinal { ordinal, count });
        }
        Self::describe(driver, ordinal)
    }

    fn describe(driver: &'static Driver, ordinal: usize) -> Result<Self> {
        let ask = Ask(driver, ordinal);
        let mut raw: RawDevice = 0;
        let mut name = [0_u8; 256];
        let mut uuid = [0_u8; 16];
        let mut total_memory = 0_usize;
        // SAFETY: the pointers are to live integers and buffers, with the name's length given.
        unsafe {
            call!(ask, cuDeviceGet(&raw mut raw, ordinal as c_int))?;
            let buffer = name.as_mut_ptr().cast::<c_char>();
            call!(ask, cuDeviceGetName(buffer, name.len() as c_int, raw))?;
            call!(ask, cuDeviceGetUuid_v2(&raw mut uuid, raw))?;
            call!(ask, cuDeviceTotalMem_v2(&raw mut total_memory, raw))?;
        }
        let end = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        let mut device = Device {
            driver,
            raw,
            ordinal,
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
            uuid: Uuid(uuid),
            pci: PciAddress {
                domain: 0,
                bus: 0,
                device: 0,
            },
            compute_capability: (0, 0),
            total_memory,
        };
        let number = |attribute| -> u32 { device.attribute(attribute).try_into().unwrap_or(0) };
        let pci = PciAddress {
            domain: number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
            bus: number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
            device: number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
        };
        let capability = (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        );
        device.pci = pci;
        device.compute_capability = capability;
        Ok(device)
    }

    /// Its number in this process. Processes may number GPUs differently: compare [`uuid`](Self::uuid).
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Its name, as "NVIDIA H200".
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its identity.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Its place on the PCI bus.
    #[must_use]
    pub fn pci(&self) -> PciAddress {
        self.pci
    }

    /// Major and minor: (9, 0) is sm_90.
    #[must_use]
    pub fn compute_capability(&self) -> (u32, u32) {
        self.compute_capability
    }

    /// Bytes of memory that it has.
    #[must_use]
    pub fn total_memory(&self) -> usize {
        self.total_memory
    }

    /// Whether memory can be reserved, created and mapped apart.
    #[must_use]
    pub fn has_vmm(&self) -> bool {
        self.driver.has(Feature::Vmm)
            && self.is(Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED)
    }

    /// Whether memory can be passed to another process of this host as a file descriptor.
    #[must_use]
    pub fn has_posix_fd(&self) -> bool {
        self.has_vmm()
            && self.is(Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)
    }

    /// Whether memory can be passed to another host of the same NVLink domain as 64 bytes. The
    /// machine's set-up (IMEX) may still forbid it: a [`Segment`](crate::Segment) tries.
    #[must_use]
    pub fn has_fabric(&self) -> bool {
        self.has_vmm() && self.is(Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)
    }

    /// Whether a stream can write and await 32-bit words.
    #[must_use]
    pub fn has_stream_memops(&self) -> bool {
        // Since CUDA 12.0 every GPU has them, unless the 64-bit ones are missing.
        self.has_stream_memops_64()
    }

    /// Whether a stream can write and await 64-bit words.
    #[must_use]
    pub fn has_stream_memops_64(&self) -> bool {
        self.driver.has(Feature::StreamMemops)
            && self.is(Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
    }

    /// Whether [`Compare::Nor`](crate::Compare::Nor) works.
    #[must_use]
    pub fn has_wait_nor(&self) -> bool {
        self.is(Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR)
    }

    /// Whether NICs can read and write its memory.
    #[must_use]
    pub fn has_gpudirect_rdma(&self) -> bool {
        self.is(Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED)
    }

    /// Whether NICs can read and write memory of a VMM segment.
    #[must_use]
    pub fn has_gpudirect_rdma_with_vmm(&self) -> bool {
        self.is(Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)
    }

    /// How a NIC's writes can be flushed.
    #[must_use]
    pub fn flush_options(&self) -> FlushOptions {
        let bits =
            self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
        let has = |bit: FlushBits| bits & bit as c_int != 0;
        FlushOptions {
            host: has(FlushBits::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST)
                && self.driver.has(Feature::FlushRdmaWrites),
            stream: has(FlushBits::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_MEMOPS)
                && self.has_stream_memops_64(),
        }
    }

    /// For whom a NIC's writes need no flush.
    #[must_use]
    pub fn writes_ordering(&self) -> WritesOrdering {
        const NONE: i32 = Ordering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE as i32;
        const OWNER: i32 = Ordering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER as i32;
        const ALL: i32 = Ordering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES as i32;
        match self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING) {
            NONE => WritesOrdering::None,
            OWNER => WritesOrdering::Owner,
            ALL => WritesOrdering::AllDevices,
            other => WritesOrdering::Unknown(other),
        }
    }

    /// Whether [`dma_buf::export`](crate::dma_buf::export) works.
    #[must_use]
    pub fn has_dma_buf(&self) -> bool {
        self.driver.has(Feature::DmaBuf)
            && self.is(Attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)
    }

    /// Whether its atomics on host memory are atomic towards the CPU (NVLink-C2C, not PCIe).
    #[must_use]
    pub fn has_host_native_atomics(&self) -> bool {
        self.is(Attribute::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED)
    }

    /// Whether managed memory can be allocated.
    #[must_use]
    pub fn has_managed_memory(&self) -> bool {
        self.is(Attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)
    }

    /// Whether it reaches ordinary host memory without registration.
    #[must_use]
    pub fn has_pageable_access(&self) -> bool {
        self.is(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)
    }

    /// Whether kernels can be launched with all blocks running at once.
    #[must_use]
    pub fn has_cooperative_launch(&self) -> bool {
        self.driver.has(Feature::CooperativeLaunch)
            && self.is(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)
    }

    /// How many multiprocessors it has.
    #[must_use]
    pub fn multiprocessors(&self) -> u32 {
        self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .try_into()
            .unwrap_or(0)
    }

    /// Whether contexts of this GPU go through an MPS server, so that several processes' kernels run
    /// at the same time.
    #[must_use]
    pub fn under_mps(&self) -> bool {
        self.is(Attribute::CU_DEVICE_ATTRIBUTE_MPS_ENABLED)
    }

    /// Whether this GPU can load and store another one's memory. A GPU can its own.
    #[doc(alias = "cuDeviceCanAccessPeer")]
    pub fn can_access(&self, other: &Device) -> Result<bool> {
        if self == other {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: the pointer is to a live integer, both devices are the driver's.
        unsafe {
            call!(
                self,
                cuDeviceCanAccessPeer(&raw mut can, self.raw, other.raw)
            )
        }?;
        Ok(can != 0)
    }

    /// Whether all atomics of this GPU on another one's memory are atomic. On its own they are.
    #[doc(alias = "cuDeviceGetP2PAttribute")]
    pub fn native_atomics_to(&self, other: &Device) -> Result<bool> {
        if self == other {
            return Ok(true);
        }
        let attribute = P2p::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED as c_int;
        let mut has = 0;
        // SAFETY: the pointer is to a live integer, both devices are the driver's.
        unsafe {
            call!(
                self,
                cuDeviceGetP2PAttribute(&raw mut has, attribute, self.raw, other.raw)
            )
        }?;
        Ok(has != 0)
    }

    fn is(&self, attribute: Attribute) -> bool {
        self.attribute(attribute) != 0
    }

    /// An attribute; 0 where the driver doesn't know it.
    fn attribute(&self, attribute: Attribute) -> c_int {
        let mut value = 0;
        // SAFETY: the pointer is to a live integer; a driver refuses an attribute it doesn't know.
        let answer = unsafe {
            call!(
                self,
                cuDeviceGetAttribute(&raw mut value, attribute as c_int, self.raw)
            )
        };
        if let Err(error) = answer {
            tracing::debug!(?attribute, %error, "an attribute that the driver does not tell");
            return 0;
        }
        value
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(crate) fn raw(&self) -> RawDevice {
        self.raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_print_as_the_tools_write_them() {
        let uuid = Uuid(std::array::from_fn(|place| place as u8));
        assert_eq!(uuid.to_string(), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
        let pci = PciAddress {
            domain: 0,
            bus: 0xad,
            device: 3,
        };
        assert_eq!(pci.to_string(), "0000:ad:03.0");
    }
}
