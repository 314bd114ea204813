//! The meaning of addresses: device memory, page-locked host memory, or neither.

mod allocation;
mod arena;
mod host;
mod identity;
mod ipc;
mod physical;
mod pointer;
mod pool;
mod vmm;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::call::Outcome;
use crate::code::Code;
use crate::context::Context;
use crate::driver::fresh;
use arena::{Arena, HostAccess};
use physical::Physical;

pub(crate) use allocation::allocate;
use arena::GRANULARITY;

/// `CU_MEM_ACCESS_FLAGS_PROT_READ` and `..._READWRITE`.
const READ: u8 = 1;
const READ_WRITE: u8 = 3;

/// The call that created a mapping; it decides which call may remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// `cuMemMap`.
    Mapped,
    /// `cuMemAlloc` or `cuMemAllocAsync` (`pool`) in a context.
    Allocated { context: u64, pool: bool },
    /// `cuIpcOpenMemHandle` in a context, so many times.
    Opened { context: u64, times: usize },
}

/// Device memory at an address.
#[derive(Debug)]
struct Mapping {
    /// Mapped bytes, and usable bytes of them.
    length: u64,
    usable: u64,
    physical: Arc<Physical>,
    origin: Origin,
    /// The access of each device.
    access: Vec<u8>,
    id: u64,
    sync_memops: bool,
}

/// Page-locked host memory.
#[derive(Debug, Clone)]
struct HostRange {
    length: u64,
    flags: u32,
    /// Whether the driver allocated it, and so unmaps it; else the user registered it.
    allocated: bool,
    context: u64,
    ordinal: usize,
    id: u64,
    sync_memops: bool,
}

/// A module's variable in the host build of the kernels.
#[derive(Debug)]
struct Global {
    length: u64,
    context: u64,
    ordinal: usize,
    id: u64,
}

#[derive(Debug)]
struct Handle {
    physical: Arc<Physical>,
    uses: usize,
}

/// All memory that the driver knows in this process.
#[derive(Debug)]
pub(crate) struct Memory {
    arena: Arena,
    /// Reserved ranges, by address.
    reservations: BTreeMap<u64, u64>,
    mappings: BTreeMap<u64, Mapping>,
    host: BTreeMap<u64, HostRange>,
    globals: BTreeMap<u64, Global>,
    handles: HashMap<u64, Handle>,
}

/// The kind of memory at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Memory of a device.
    Device,
    /// Page-locked host memory.
    Pinned,
    /// Any other host memory.
    Pageable,
}

/// The requirements on a range.
#[derive(Clone, Copy)]
pub(crate) struct Want<'a> {
    pub(crate) context: &'a Context,
    pub(crate) write: bool,
    /// Whether the device itself loads and stores. Plain allocations of another device then need
    /// peer access; copies do not.
    pub(crate) direct: bool,
}

/// A range of memory: the driver's pointer to its bytes, valid while the memory is held, and its
/// kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) bytes: *mut u8,
    pub(crate) place: Place,
    /// Whether the user asked that synchronous calls on it are always synchronous.
    pub(crate) sync_memops: bool,
}

impl Found {
    /// Tells the race detector of an access of a stream's work. The program's own accesses to pageable memory are not seen, so
    /// nothing there is compared.
    pub(crate) fn accessed(&self, at: u64, len: u64, writes: bool, pc: usize) {
        if self.place != Place::Pageable {
            let (at, len) = (at as usize, len as usize);
            let place = crate::race::Place { at, len, pc };
            crate::race::piece_accesses(place, writes, self.place != Place::Device);
        }
    }
}

impl Memory {
    pub(crate) fn new(kernels: bool) -> Outcome<Memory> {
        Ok(Memory {
            arena: Arena::new(kernels)?,
            reservations: BTreeMap::new(),
            mappings: BTreeMap::new(),
            host: BTreeMap::new(),
            globals: BTreeMap::new(),
            handles: HashMap::new(),
        })
    }

    /// Whether an address lies in page-locked memory of the host.
    pub(crate) fn is_page_locked(&self, address: u64) -> bool {
        !self.arena.contains(address) && below(&self.host, address, |range| range.length).is_some()
    }

    /// Finds `length` bytes at an address, all of one kind and all permitted.
    pub(crate) fn find(&self, address: u64, length: u64, want: Want<'_>) -> Outcome<Found> {
        let end = address.checked_add(length).ok_or(Code::INVALID_VALUE)?;
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if self.arena.contains(address) {
            let sync_memops = self.covered(address, end, want)?;
            let bytes = self.arena.bytes_of(address);
            return Ok(Found {
                bytes,
                place: Place::Device,
                sync_memops,
            });
        }
        let bytes = address as *mut u8;
        if let Some((start, global)) = below(&self.globals, address, |global| global.length) {
            let inside = end <= start + global.length;
            return if inside && (!want.direct || want.context.reaches(global.context)) {
                Ok(Found {
                    bytes,
                    place: Place::Device,
                    sync_memops: false,
                })
            } else {
                Err(Code::INVALID_VALUE)
            };
        }
        match below(&self.host, address, |range| range.length) {
            Some((start, range)) if end <= start + range.length => Ok(Found {
                bytes,
                place: Place::Pinned,
                sync_memops: range.sync_memops,
            }),
            // A range that is locked in part is an error of the program.
            Some(_) => Err(Code::INVALID_VALUE),
            None => Ok(Found {
                bytes,
                place: Place::Pageable,
                sync_memops: false,
            }),
        }
    }

    /// Whether device memory covers a range without a gap. Several adjacent mappings may do so
    /// together, but not several plain allocations.
    fn covered(&self, address: u64, end: u64, want: Want<'_>) -> Outcome<bool> {
        let mut at = address;
        let mut sync_memops = false;
        while at < end {
            let (start, mapping) =
                below(&self.mappings, at, |mapping| mapping.usable).ok_or(Code::INVALID_VALUE)?;
            let needed = if want.write { READ_WRITE } else { READ };
            let permitted = match mapping.origin {
                Origin::Mapped => mapping
                    .access
                    .get(want.context.ordinal)
                    .is_some_and(|a| a & needed == needed),
                Origin::Allocated { context, .. } | Origin::Opened { context, .. } => {
                    if at != address {
                        return Err(Code::INVALID_VALUE);
                    }
                    !want.direct
                        || mapping.physical.ordinal == want.context.ordinal
                        || want.context.reaches(context)
                }
            };
            if !permitted {
                return Err(Code::INVALID_VALUE);
            }
            sync_memops |= mapping.sync_memops;
            at = start + mapping.usable;
        }
        Ok(sync_memops)
    }

    /// Maps memory at a new address, with `usable` usable bytes.
    fn map_anywhere(
        &mut self,
        physical: Arc<Physical>,
        usable: u64,
        origin: Origin,
    ) -> Outcome<u64> {
        let length = physical.size;
        let reserved = length.next_multiple_of(GRANULARITY);
        let address = self
            .arena
            .place(reserved, GRANULARITY, &self.reservations)?;
        self.arena.show(address, length, physical.file())?;
        self.arena
            .allow(address, length, physical.file(), HostAccess::Kernels)?;
        self.reservations.insert(address, reserved);
        let mapping = Mapping {
            length,
            usable,
            physical,
            origin,
            access: Vec::new(),
            id: fresh(),
            sync_memops: false,
        };
        self.mappings.insert(address, mapping);
        Ok(address)
    }

    /// Removes such a mapping and its address.
    fn unmap_whole(&mut self, address: u64) -> Outcome {
        let mapping = self.mappings.remove(&address).ok_or(Code::INVALID_VALUE)?;
        self.reservations.remove(&address);
        self.arena.hide(address, mapping.length)
    }

    /// Frees a context's allocations when it is destroyed.
    pub(crate) fn forget(&mut self, context: u64) {
        let owned = |mapping: &Mapping| match mapping.origin {
            Origin::Allocated { context: owner, .. } | Origin::Opened { context: owner, .. } => {
                owner == context
            }
            Origin::Mapped => false,
        };
        let gone: Vec<u64> = self
            .mappings
            .iter()
            .filter(|(_, m)| owned(m))
            .map(|(at, _)| *at)
            .collect();
        for address in gone {
            let _ = self.unmap_whole(address);
        }
        let locked: Vec<u64> = self
            .host
            .iter()
            .filter(|(_, r)| r.context == context)
            .map(|(at, _)| *at)
            .collect();
        for address in locked {
            let _ = self.unlock_host(address);
        }
        self.globals.retain(|address, global| {
            if global.context == context {
                crate::race::forget(*address as usize, global.length as usize);
            }
            global.context != context
        });
    }

    /// Removes a module's variable, and frees it if it had memory of its own.
    pub(crate) fn remove_variable(&mut self, address: u64) {
        match self.globals.remove(&address) {
            Some(global) => crate::race::forget(address as usize, global.length as usize),
            None => {
                let _ = self.free(address);
            }
        }
    }

    /// Makes a module's variable known as device memory.
    pub(crate) fn add_global(&mut self, address: u64, length: u64, context: &Context) {
        let (context, ordinal) = (context.handle, context.ordinal);
        self.globals.insert(
            address,
            Global {
                length,
                context,
                ordinal,
                id: fresh(),
            },
        );
    }
}

/// The entry of a range map that an address lies in.
fn below<T>(map: &BTreeMap<u64, T>, address: u64, length: impl Fn(&T) -> u64) -> Option<(u64, &T)> {
    map.range(..=address)
        .next_back()
        .filter(|(start, entry)| address - **start < length(entry))
        .map(|(start, entry)| (*start, entry))
}
