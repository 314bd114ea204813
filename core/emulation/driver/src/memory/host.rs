//! Page-locked host memory: allocated by the driver, or the user's own, registered.
//!
//! Devices see it at its host address, as with the real driver's unified addressing.

use super::{HostRange, Memory, below};
use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::context::{Context, current};
use crate::driver::{driver, fresh};
use crate::sync::{read, write};

const PAGE: u64 = 4096;
/// Flags of `cuMemHostAlloc`: portable, device-mapped, write-combined.
const ALLOC_FLAGS: u32 = 0x7;
/// Flags of `cuMemHostRegister`: portable, device-mapped, I/O memory, read-only.
const REGISTER_FLAGS: u32 = 0xf;
/// `CU_MEMHOSTREGISTER_IOMEMORY`: there is no I/O memory that a device could reach.
const IO_MEMORY: u32 = 0x4;

fn range(context: &Context, length: u64, flags: u32, allocated: bool) -> HostRange {
    HostRange {
        length,
        flags,
        allocated,
        context: context.handle,
        ordinal: context.ordinal,
        id: fresh(),
        sync_memops: false,
    }
}

fn allocate(context: &Context, bytes: u64, flags: u32) -> Outcome<u64> {
    if bytes == 0 || flags & !ALLOC_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let length = bytes
        .checked_next_multiple_of(PAGE)
        .ok_or(Code::OUT_OF_MEMORY)?;
    // SAFETY: a new mapping at an address chosen by the kernel. Shared, so that a fork does not
    // redirect writes.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(Code::OUT_OF_MEMORY);
    }
    write(&driver()?.memory)
        .host
        .insert(at as u64, range(context, bytes, flags, true));
    Ok(at as u64)
}

/// Whether each page of a range is mapped.
fn mapped(address: u64, bytes: u64) -> bool {
    let start = address & !(PAGE - 1);
    let Some(end) = address
        .checked_add(bytes)
        .and_then(|end| end.checked_next_multiple_of(PAGE))
    else {
        return false;
    };
    let pages = ((end - start) / PAGE) as usize;
    let mut resident = vec![0u8; pages];
    // SAFETY: mincore only reads the page tables; it fails if a page is not mapped.
    unsafe {
        libc::mincore(
            start as *mut libc::c_void,
            pages * PAGE as usize,
            resident.as_mut_ptr(),
        ) == 0
    }
}

impl Memory {
    /// Unlocks memory, and unmaps it if the driver allocated it.
    pub(super) fn unlock_host(&mut self, address: u64) -> Outcome {
        let range = self.host.remove(&address).ok_or(Code::INVALID_VALUE)?;
        if range.allocated {
            let length = range.length.next_multiple_of(PAGE) as usize;
            crate::race::unmapped(address as usize, length);
            // SAFETY: the driver mapped it, the memory is held for writing, so no copy uses it, and
            // the user gave it back.
            unsafe { libc::munmap(address as *mut libc::c_void, length) };
        } else {
            crate::race::released(address as usize);
        }
        Ok(())
    }

    fn register(&mut self, address: u64, range: HostRange) -> Outcome {
        let end = address + range.length;
        let before = self.host.range(..end).next_back();
        if before.is_some_and(|(start, other)| start + other.length > address) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        crate::race::page_locked(address as usize, range.length as usize);
        self.host.insert(address, range);
        Ok(())
    }
}

driver_calls! {
    /// Page-locked memory.
    fn cuMemHostAlloc(out: Out<u64>, bytes: usize, flags: u32) {
        let context = current()?;
        out.check()?;
        crate::graph::refuse_unsafe()?;
        out.set(allocate(&context, bytes as u64, flags)?)
    }

    /// Page-locked memory.
    fn cuMemAllocHost_v2(out: Out<u64>, bytes: usize) {
        let context = current()?;
        out.check()?;
        crate::graph::refuse_unsafe()?;
        out.set(allocate(&context, bytes as u64, 0)?)
    }

    /// Frees page-locked memory; waits for all work of the context first.
    fn cuMemFreeHost(address: u64) {
        let context = current()?;
        let driver = driver()?;
        if !read(&driver.memory).host.get(&address).is_some_and(|range| range.allocated) {
            return Err(Code::INVALID_VALUE);
        }
        crate::graph::refuse_unsafe()?;
        context.synchronize()?;
        write(&driver.memory).unlock_host(address)
    }

    /// Page-locks the user's memory, and makes it known to the devices.
    fn cuMemHostRegister_v2(address: u64, bytes: usize, flags: u32) {
        let context = current()?;
        let driver = driver()?;
        if address == 0 || bytes == 0 || flags & !REGISTER_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if flags & IO_MEMORY != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        crate::graph::refuse_unsafe()?;
        let mut memory = write(&driver.memory);
        if memory.arena.contains(address) || !mapped(address, bytes as u64) {
            return Err(Code::INVALID_VALUE);
        }
        memory.register(address, range(&context, bytes as u64, flags, false))
    }

    /// Unlocks it; waits for all work of the context first.
    fn cuMemHostUnregister(address: u64) {
        let context = current()?;
        let driver = driver()?;
        match read(&driver.memory).host.get(&address) {
            Some(range) if range.allocated => return Err(Code::INVALID_VALUE),
            Some(_) => {}
            None => return Err(Code::HOST_MEMORY_NOT_REGISTERED),
        }
        crate::graph::refuse_unsafe()?;
        context.synchronize()?;
        write(&driver.memory).unlock_host(address)
    }

    /// The address at which devices see page-locked memory.
    fn cuMemHostGetDevicePointer_v2(out: Out<u64>, address: u64, flags: u32) {
        current()?;
        let driver = driver()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let memory = read(&driver.memory);
        below(&memory.host, address, |range| range.length).ok_or(Code::INVALID_VALUE)?;
        out.set(address)
    }

    /// The flags that page-locked memory was created with.
    fn cuMemHostGetFlags(out: Out<u32>, address: u64) {
        current()?;
        let driver = driver()?;
        let memory = read(&driver.memory);
        let (_, range) =
            below(&memory.host, address, |range| range.length).ok_or(Code::INVALID_VALUE)?;
        out.set(range.flags)
    }
}
