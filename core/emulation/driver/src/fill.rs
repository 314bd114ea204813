//! Memory set to a value of one, two or four bytes.

use std::sync::Arc;

use crate::call::Outcome;
use crate::code::Code;
use crate::context::{Context, current};
use crate::copy::Rows;
use crate::driver::{driver, running};
use crate::memory::{Found, Memory, Place, Want};
use crate::race;
use crate::stream::{Work, stream};
use crate::sync::read;

/// A repeated value.
#[derive(Clone, Copy, Debug)]
struct Fill {
    at: u64,
    value: u32,
    /// Bytes of the value.
    size: u64,
    rows: Rows,
}

impl Fill {
    fn new(at: u64, value: u32, size: u64, count: usize) -> Outcome<Fill> {
        Fill::rows(at, 0, value, size, (count, 1))
    }

    fn rows(at: u64, pitch: usize, value: u32, size: u64, extent: (usize, usize)) -> Outcome<Fill> {
        let (count, height) = extent;
        let width = (count as u64)
            .checked_mul(size)
            .ok_or(Code::INVALID_VALUE)?;
        let pitch = pitch as u64;
        let bad_pitch = height > 1 && (pitch < width || !pitch.is_multiple_of(size));
        if !at.is_multiple_of(size) || bad_pitch {
            return Err(Code::INVALID_VALUE);
        }
        let rows = Rows {
            width,
            height: height as u64,
            to_pitch: pitch,
            from_pitch: pitch,
        };
        Ok(Fill {
            at,
            value,
            size,
            rows,
        })
    }

    fn find(&self, memory: &Memory, context: &Context) -> Outcome<Found> {
        let want = Want {
            context,
            write: true,
            direct: false,
        };
        memory.find(self.at, self.rows.extent(self.rows.to_pitch)?, want)
    }

    fn run(&self, context: &Context) -> Outcome {
        let memory = read(&running()?.memory);
        let found = self
            .find(&memory, context)
            .map_err(|_| Code::ILLEGAL_ADDRESS)?;
        for row in 0..self.rows.height {
            let at = self.at + row * self.rows.to_pitch;
            found.accessed(at, self.rows.width, true, race::FILL);
            // SAFETY: the memory is held for reading, so the range, found just now, stays mapped;
            // the address is aligned to the value, as checked when the call was made.
            unsafe {
                let start = found.bytes.add((row * self.rows.to_pitch) as usize);
                let count = (self.rows.width / self.size) as usize;
                match self.size {
                    1 => start.write_bytes(self.value as u8, count),
                    2 => std::slice::from_raw_parts_mut(start.cast::<u16>(), count)
                        .fill(self.value as u16),
                    _ => {
                        std::slice::from_raw_parts_mut(start.cast::<u32>(), count).fill(self.value)
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives the work to a stream; only page-locked memory makes a synchronous call wait.
    fn give(self, handle: Option<u64>) -> Outcome {
        let context = current()?;
        if self.rows.width == 0 || self.rows.height == 0 {
            return Ok(());
        }
        let stream = match handle {
            Some(handle) => stream(handle)?,
            None => {
                crate::graph::refuse_unsafe()?;
                context.legacy_stream()?
            }
        };
        let found = self.find(&read(&driver()?.memory), &stream.context)?;
        if found.place == Place::Pageable {
            return Err(Code::INVALID_VALUE);
        }
        let ticket = stream.give(Arc::new(move |context| self.run(context)))?;
        let waits = handle.is_none() && (found.place == Place::Pinned || found.sync_memops);
        if waits { stream.finish(ticket) } else { Ok(()) }
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`: a memory set in a graph.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FillNode {
    at: u64,
    pitch: usize,
    value: u32,
    size: u32,
    width: usize,
    height: usize,
}

impl FillNode {
    /// The memory set as work of a graph.
    pub(crate) fn work(&self, context: &Context) -> Outcome<Work> {
        if !matches!(self.size, 1 | 2 | 4) || self.width == 0 || self.height == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let extent = (self.width, self.height);
        let fill = Fill::rows(self.at, self.pitch, self.value, self.size.into(), extent)?;
        let found = fill.find(&read(&driver()?.memory), context)?;
        if found.place == Place::Pageable {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Arc::new(move |context| fill.run(context)))
    }
}

driver_calls! {
    /// Sets bytes.
    fn cuMemsetD8_v2(at: u64, value: u8, count: usize) {
        Fill::new(at, value.into(), 1, count)?.give(None)
    }

    /// Sets bytes.
    fn cuMemsetD8Async(at: u64, value: u8, count: usize, handle: u64) {
        Fill::new(at, value.into(), 1, count)?.give(Some(handle))
    }

    /// Sets 16-bit words.
    fn cuMemsetD16_v2(at: u64, value: u16, count: usize) {
        Fill::new(at, value.into(), 2, count)?.give(None)
    }

    /// Sets 16-bit words.
    fn cuMemsetD16Async(at: u64, value: u16, count: usize, handle: u64) {
        Fill::new(at, value.into(), 2, count)?.give(Some(handle))
    }

    /// Sets 32-bit words.
    fn cuMemsetD32_v2(at: u64, value: u32, count: usize) {
        Fill::new(at, value, 4, count)?.give(None)
    }

    /// Sets 32-bit words.
    fn cuMemsetD32Async(at: u64, value: u32, count: usize, handle: u64) {
        Fill::new(at, value, 4, count)?.give(Some(handle))
    }

    /// Sets rows of bytes.
    fn cuMemsetD2D8_v2(at: u64, pitch: usize, value: u8, width: usize, height: usize) {
        Fill::rows(at, pitch, value.into(), 1, (width, height))?.give(None)
    }

    /// Sets rows of bytes.
    fn cuMemsetD2D8Async(at: u64, pitch: usize, value: u8, width: usize, height: usize, handle: u64) {
        Fill::rows(at, pitch, value.into(), 1, (width, height))?.give(Some(handle))
    }

    /// Sets rows of 32-bit words.
    fn cuMemsetD2D32_v2(at: u64, pitch: usize, value: u32, width: usize, height: usize) {
        Fill::rows(at, pitch, value, 4, (width, height))?.give(None)
    }

    /// Sets rows of 32-bit words.
    fn cuMemsetD2D32Async(at: u64, pitch: usize, value: u32, width: usize, height: usize, handle: u64) {
        Fill::rows(at, pitch, value, 4, (width, height))?.give(Some(handle))
    }
}
