//! Plain allocations: `cuMemAlloc` and its stream-ordered form.

use std::sync::Arc;

use super::{Memory, Origin, Physical};
use crate::call::{Out, Outcome};
use crate::code::Code;
use crate::context::{Context, current};
use crate::driver::{driver, running};
use crate::stream::stream;
use crate::sync::{read, write};

/// The unit of plain allocations.
const PAGE: u64 = 4096;
/// The alignment of `cuMemAllocPitch`'s rows.
const PITCH: usize = 512;

/// Makes an allocation of exactly so many usable bytes.
pub(crate) fn allocate(context: &Context, bytes: u64, pool: bool) -> Outcome<u64> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let size = bytes
        .checked_next_multiple_of(PAGE)
        .ok_or(Code::OUT_OF_MEMORY)?;
    let physical = Physical::create(context.ordinal, size, 0)?;
    let origin = Origin::Allocated {
        context: context.handle,
        pool,
    };
    write(&driver()?.memory).map_anywhere(Arc::new(physical), bytes, origin)
}

impl Memory {
    /// Frees a plain allocation; any other address is refused.
    pub(super) fn free(&mut self, address: u64) -> Outcome {
        match self.mappings.get(&address).map(|mapping| mapping.origin) {
            Some(Origin::Allocated { .. }) => self.unmap_whole(address),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn is_allocated(&self, address: u64) -> bool {
        let origin = self.mappings.get(&address).map(|mapping| mapping.origin);
        matches!(origin, Some(Origin::Allocated { .. }))
    }
}

driver_calls! {
    /// Free and total memory of the current context's device.
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let context = current()?;
        let (available, all) = driver()?.devices[context.ordinal].space();
        free.set(available as usize)?;
        total.set(all as usize)
    }

    /// Memory of the current context's device.
    fn cuMemAlloc_v2(out: Out<u64>, bytes: usize) {
        let context = current()?;
        out.check()?;
        crate::graph::refuse_unsafe()?;
        out.set(allocate(&context, bytes as u64, false)?)
    }

    /// Memory for rows, each at an aligned address.
    fn cuMemAllocPitch_v2(out: Out<u64>, pitch: Out<usize>, width: usize, rows: usize, element: u32) {
        let context = current()?;
        out.check()?;
        pitch.check()?;
        if ![4, 8, 16].contains(&element) || width == 0 || rows == 0 {
            return Err(Code::INVALID_VALUE);
        }
        crate::graph::refuse_unsafe()?;
        let row = width.checked_next_multiple_of(PITCH).ok_or(Code::INVALID_VALUE)?;
        let bytes = row.checked_mul(rows).ok_or(Code::OUT_OF_MEMORY)?;
        out.set(allocate(&context, bytes as u64, false)?)?;
        pitch.set(row)
    }

    /// Managed memory, which is not supported.
    fn cuMemAllocManaged(out: Out<u64>, bytes: usize, flags: u32) {
        current()?;
        out.check()?;
        let _ = (bytes, flags);
        Err(Code::NOT_SUPPORTED)
    }

    /// Frees an allocation; waits for all work of the context first, as the real driver does.
    fn cuMemFree_v2(address: u64) {
        let context = current()?;
        if address == 0 {
            return Ok(());
        }
        let driver = driver()?;
        if !read(&driver.memory).is_allocated(address) {
            return Err(Code::INVALID_VALUE);
        }
        crate::graph::refuse_unsafe()?;
        context.synchronize()?;
        write(&driver.memory).free(address)
    }

    /// Memory of the stream's device, usable by work given to the stream from now on.
    fn cuMemAllocAsync(out: Out<u64>, bytes: usize, handle: u64) {
        let stream = stream(handle)?;
        out.check()?;
        stream.refuse_while_capturing()?;
        out.set(allocate(&stream.context, bytes as u64, true)?)
    }

    /// Frees an allocation in stream order.
    fn cuMemFreeAsync(address: u64, handle: u64) {
        let stream = stream(handle)?;
        stream.refuse_while_capturing()?;
        if !read(&driver()?.memory).is_allocated(address) {
            return Err(Code::INVALID_VALUE);
        }
        stream.give(Arc::new(move |_| write(&running()?.memory).free(address)))?;
        Ok(())
    }

    /// Start and size of the allocation that an address lies in.
    fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) {
        current()?;
        let driver = driver()?;
        let memory = read(&driver.memory);
        let (start, length) = memory.range_of(address).ok_or(Code::INVALID_VALUE)?;
        base.set_if_wanted(start);
        size.set_if_wanted(length as usize);
        Ok(())
    }
}
