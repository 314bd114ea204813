//! The extents of a grid and its blocks, and the position of a thread in them.

use std::ffi::c_void;

use crate::call::Outcome;
use crate::code::Code;

/// Threads of a block, at most.
pub(crate) const MOST_THREADS: u32 = 1024;

/// One thread's run of a kernel, from the addresses of the arguments.
pub(crate) type Packed = unsafe extern "C" fn(*mut *mut c_void);

/// A thread's position: its block and its index in it, and the extents of the grid and the block.
/// Kernels of images read it in this form.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Position {
    pub(crate) thread: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) threads: [u32; 3],
    pub(crate) grid: [u32; 3],
}

/// Extents of grid and block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) threads: [u32; 3],
}

impl Shape {
    /// Refuses extents that no device has.
    pub(crate) fn check(self) -> Outcome {
        let [gx, gy, gz] = self.grid;
        let [tx, ty, tz] = self.threads;
        let grid = gx > 0
            && gx <= i32::MAX as u32
            && (1..=65535).contains(&gy)
            && (1..=65535).contains(&gz);
        let block = (1..=1024).contains(&tx)
            && (1..=1024).contains(&ty)
            && (1..=64).contains(&tz)
            && self.block_threads() <= MOST_THREADS;
        if grid && block {
            Ok(())
        } else {
            Err(Code::INVALID_VALUE)
        }
    }

    pub(crate) fn block_threads(self) -> u32 {
        self.threads.iter().product()
    }

    pub(crate) fn blocks(self) -> u64 {
        self.grid.iter().map(|extent| u64::from(*extent)).product()
    }

    pub(crate) fn position(self, block: u64, thread: u32) -> Position {
        let split = |index: u64, extent: [u32; 3]| {
            let [x, y] = [u64::from(extent[0]), u64::from(extent[1])];
            [
                (index % x) as u32,
                (index / x % y) as u32,
                (index / x / y) as u32,
            ]
        };
        Position {
            block: split(block, self.grid),
            thread: split(thread.into(), self.threads),
            grid: self.grid,
            threads: self.threads,
        }
    }
}
