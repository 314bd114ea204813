//! Virtual memory management: addresses separate from memory, and memory shared by descriptor.

use std::os::fd::{IntoRawFd, RawFd};
use std::sync::Arc;

use super::arena::HostAccess;
use super::{GRANULARITY, Handle, Mapping, Memory, Origin, Physical};
use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::config::Feature;
use crate::driver::{Driver, driver, fresh};
use crate::sync::{read, write};

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const POSIX_FD: u32 = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`, and `CU_MEM_ALLOCATION_TYPE_PINNED`.
const DEVICE: i32 = 1;
const PINNED: i32 = 1;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    kind: i32,
    id: i32,
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    kind: i32,
    handle_types: u32,
    location: Location,
    windows: u64,
    compression: u8,
    rdma_capable: u8,
    usage: u16,
    reserved: [u8; 4],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessOf {
    location: Location,
    flags: u32,
}

const _: () = assert!(size_of::<Properties>() == 32 && size_of::<AccessOf>() == 12);

fn vmm() -> Outcome<&'static Driver> {
    let driver = driver()?;
    if driver.config.has(Feature::Vmm) {
        Ok(driver)
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

fn whole(number: u64) -> Outcome {
    if number == 0 || !number.is_multiple_of(GRANULARITY) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// The device that properties name. Refuses properties that are not supported.
fn check_properties(driver: &Driver, properties: &Properties) -> Outcome<usize> {
    if properties.kind != PINNED || properties.location.kind != DEVICE {
        return Err(Code::INVALID_VALUE);
    }
    driver.device(properties.location.id)?;
    let posix = driver.config.has(Feature::PosixFd);
    match properties.handle_types {
        0 => {}
        POSIX_FD if posix => {}
        // Fabric handles (8) need an NVLink fabric; the others are Windows's.
        POSIX_FD | 2 | 4 | 8 => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    }
    if properties.compression != 0 || properties.reserved != [0; 4] {
        return Err(Code::INVALID_VALUE);
    }
    // No NIC reaches this memory.
    if properties.rdma_capable != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(properties.location.id as usize)
}

impl Memory {
    fn reserve(&mut self, size: u64, alignment: u64, hint: u64) -> Outcome<u64> {
        whole(size)?;
        if alignment != 0 && !alignment.is_power_of_two() {
            return Err(Code::INVALID_VALUE);
        }
        let alignment = alignment.max(GRANULARITY);
        // The hint is ignored: addresses come from the arena.
        let _ = hint;
        let address = self.arena.place(size, alignment, &self.reservations)?;
        self.reservations.insert(address, size);
        Ok(address)
    }

    fn unreserve(&mut self, address: u64, size: u64) -> Outcome {
        // Only a range of cuMemAddressReserve, whole, and with nothing mapped in it.
        if self.reservations.get(&address) != Some(&size)
            || self
                .mappings
                .range(address..address + size)
                .next()
                .is_some()
        {
            return Err(Code::INVALID_VALUE);
        }
        self.reservations.remove(&address);
        Ok(())
    }

    fn add_handle(&mut self, physical: Physical) -> u64 {
        let id = physical.id;
        self.handles.insert(
            id,
            Handle {
                physical: Arc::new(physical),
                uses: 1,
            },
        );
        id
    }

    fn release(&mut self, handle: u64) -> Outcome {
        let entry = self.handles.get_mut(&handle).ok_or(Code::INVALID_VALUE)?;
        entry.uses -= 1;
        if entry.uses == 0 {
            self.handles.remove(&handle);
        }
        Ok(())
    }

    fn map(&mut self, address: u64, size: u64, handle: u64, devices: usize) -> Outcome {
        whole(size)?;
        if !address.is_multiple_of(GRANULARITY) {
            return Err(Code::INVALID_VALUE);
        }
        let end = address.checked_add(size).ok_or(Code::INVALID_VALUE)?;
        let physical = self
            .handles
            .get(&handle)
            .ok_or(Code::INVALID_VALUE)?
            .physical
            .clone();
        let reserved = super::below(&self.reservations, address, |length| *length);
        if size > physical.size || reserved.is_none_or(|(start, length)| end > start + length) {
            return Err(Code::INVALID_VALUE);
        }
        let before = self.mappings.range(..end).next_back();
        if before.is_some_and(|(start, mapping)| start + mapping.length > address) {
            return Err(Code::INVALID_VALUE);
        }
        self.arena.show(address, size, physical.file())?;
        let mapping = Mapping {
            length: size,
            usable: size,
            physical,
            origin: Origin::Mapped,
            access: vec![0; devices],
            id: fresh(),
            sync_memops: false,
        };
        self.mappings.insert(address, mapping);
        Ok(())
    }

    /// The mappings that make up a range exactly; else refused.
    fn exactly(&self, address: u64, size: u64) -> Outcome<Vec<u64>> {
        whole(size)?;
        let end = address.checked_add(size).ok_or(Code::INVALID_VALUE)?;
        let mut at = address;
        let mut found = Vec::new();
        while at < end {
            let mapping = self.mappings.get(&at).ok_or(Code::INVALID_VALUE)?;
            if mapping.origin != Origin::Mapped {
                return Err(Code::INVALID_VALUE);
            }
            found.push(at);
            at += mapping.length;
        }
        if at == end {
            Ok(found)
        } else {
            Err(Code::INVALID_VALUE)
        }
    }

    fn unmap(&mut self, address: u64, size: u64) -> Outcome {
        for at in self.exactly(address, size)? {
            if let Some(mapping) = self.mappings.remove(&at) {
                self.arena.hide(at, mapping.length)?;
            }
        }
        Ok(())
    }

    fn set_access(&mut self, driver: &Driver, address: u64, size: u64, of: &[AccessOf]) -> Outcome {
        let mappings = self.exactly(address, size)?;
        for access in of {
            if access.location.kind != DEVICE || ![0, 1, 3].contains(&access.flags) {
                return Err(Code::INVALID_VALUE);
            }
            driver.device(access.location.id)?;
            let accessor = access.location.id as usize;
            let foreign = |at: &u64| {
                self.mappings.get(at).is_some_and(|mapping| {
                    let owner = mapping.physical.ordinal;
                    accessor != owner && !driver.peers(accessor, owner)
                })
            };
            if access.flags != 0 && mappings.iter().any(foreign) {
                return Err(Code::INVALID_DEVICE);
            }
        }
        for at in mappings {
            let Some(mapping) = self.mappings.get_mut(&at) else {
                continue;
            };
            for access in of {
                if let Some(slot) = mapping.access.get_mut(access.location.id as usize) {
                    *slot = access.flags as u8;
                }
            }
            let any = mapping.access.iter().any(|flags| *flags != 0);
            let host = if any {
                HostAccess::Kernels
            } else {
                HostAccess::None
            };
            self.arena
                .allow(at, mapping.length, mapping.physical.file(), host)?;
        }
        Ok(())
    }
}

driver_calls! {
    /// The unit of sizes and addresses; minimum and recommended are the same here.
    fn cuMemGetAllocationGranularity(out: Out<usize>, properties: In<Properties>, option: u32) {
        let driver = vmm()?;
        check_properties(driver, &properties.get()?)?;
        if option > 1 {
            return Err(Code::INVALID_VALUE);
        }
        out.set(GRANULARITY as usize)
    }

    /// Allocates memory, mapped nowhere yet.
    fn cuMemCreate(out: Out<u64>, size: usize, properties: In<Properties>, flags: u64) {
        let driver = vmm()?;
        out.check()?;
        let properties = properties.get()?;
        let ordinal = check_properties(driver, &properties)?;
        whole(size as u64)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        crate::graph::refuse_unsafe()?;
        let physical = Physical::create(ordinal, size as u64, properties.handle_types)?;
        let handle = write(&driver.memory).add_handle(physical);
        out.set(handle)
    }

    /// Releases a handle; the memory lives on while it is mapped.
    fn cuMemRelease(handle: u64) {
        write(&vmm()?.memory).release(handle)
    }

    /// Reserves addresses.
    fn cuMemAddressReserve(out: Out<u64>, size: usize, alignment: usize, hint: u64, flags: u64) {
        let driver = vmm()?;
        out.check()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let address = write(&driver.memory).reserve(size as u64, alignment as u64, hint)?;
        out.set(address)
    }

    /// Frees addresses, as they were reserved.
    fn cuMemAddressFree(address: u64, size: usize) {
        write(&vmm()?.memory).unreserve(address, size as u64)
    }

    /// Maps memory at reserved addresses; it is not accessible before `cuMemSetAccess`.
    fn cuMemMap(address: u64, size: usize, offset: usize, handle: u64, flags: u64) {
        let driver = vmm()?;
        if offset != 0 || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        write(&driver.memory).map(address, size as u64, handle, driver.devices.len())
    }

    /// Removes whole mappings. Work in progress that uses them fails from then on.
    fn cuMemUnmap(address: u64, size: usize) {
        let driver = vmm()?;
        crate::graph::refuse_unsafe()?;
        write(&driver.memory).unmap(address, size as u64)
    }

    /// Sets the devices that may use whole mappings.
    fn cuMemSetAccess(address: u64, size: usize, of: In<AccessOf>, count: usize) {
        let driver = vmm()?;
        if count == 0 || of.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let of = of.list(count)?;
        write(&driver.memory).set_access(driver, address, size as u64, &of)
    }

    /// A device's access at an address.
    fn cuMemGetAccess(flags: Out<u64>, location: In<Location>, address: u64) {
        let driver = vmm()?;
        let location = location.get()?;
        if location.kind != DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        driver.device(location.id)?;
        let memory = read(&driver.memory);
        let (_, mapping) = super::below(&memory.mappings, address, |mapping| mapping.length)
            .ok_or(Code::INVALID_VALUE)?;
        let access = mapping.access.get(location.id as usize).ok_or(Code::INVALID_VALUE)?;
        flags.set(u64::from(*access))
    }

    /// A descriptor of memory, for another process.
    fn cuMemExportToShareableHandle(out: Out<u8>, handle: u64, kind: u32, flags: u64) {
        let driver = vmm()?;
        out.check()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let memory = read(&driver.memory);
        let physical = &memory.handles.get(&handle).ok_or(Code::INVALID_VALUE)?.physical;
        if kind != POSIX_FD || !driver.config.has(Feature::PosixFd) {
            return Err(Code::NOT_SUPPORTED);
        }
        // Memory that was not created for it cannot be exported.
        if physical.handle_types & POSIX_FD == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let descriptor = physical.export()?.into_raw_fd();
        out.cast::<RawFd>().set(descriptor)
    }

    /// Memory of another process, by its descriptor, which stays the caller's.
    fn cuMemImportFromShareableHandle(out: Out<u64>, descriptor: usize, kind: u32) {
        let driver = vmm()?;
        out.check()?;
        if kind != POSIX_FD || !driver.config.has(Feature::PosixFd) {
            return Err(Code::NOT_SUPPORTED);
        }
        let descriptor = RawFd::try_from(descriptor).map_err(|_| Code::INVALID_VALUE)?;
        let physical = Physical::import(descriptor)?;
        let handle = write(&driver.memory).add_handle(physical);
        out.set(handle)
    }

    /// The handle of the memory mapped at an address, with one more reference.
    fn cuMemRetainAllocationHandle(out: Out<u64>, address: u64) {
        let driver = vmm()?;
        out.check()?;
        let mut memory = write(&driver.memory);
        let physical = super::below(&memory.mappings, address, |mapping| mapping.length)
            .filter(|(_, mapping)| mapping.origin == Origin::Mapped)
            .map(|(_, mapping)| mapping.physical.clone())
            .ok_or(Code::INVALID_VALUE)?;
        let id = physical.id;
        memory.handles.entry(id).or_insert(Handle { physical, uses: 0 }).uses += 1;
        out.set(id)
    }

    /// The properties that memory was created with.
    fn cuMemGetAllocationPropertiesFromHandle(out: Out<Properties>, handle: u64) {
        let driver = vmm()?;
        let memory = read(&driver.memory);
        let physical = &memory.handles.get(&handle).ok_or(Code::INVALID_VALUE)?.physical;
        out.set(Properties {
            kind: PINNED,
            handle_types: physical.handle_types,
            location: Location { kind: DEVICE, id: physical.ordinal as i32 },
            windows: 0,
            compression: 0,
            rdma_capable: 0,
            usage: 0,
            reserved: [0; 4],
        })
    }
}
