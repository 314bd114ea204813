//! A grid in execution: its blocks that are still to run, and its end.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::room::Room;
use crate::call::Outcome;
use crate::code::Code;
use crate::kernel::shape::{Packed, Position, Shape};
use crate::race::GridCheck;

/// A grid in execution.
pub(crate) struct Grid<'a> {
    pub(crate) name: &'a str,
    pub(crate) code: Packed,
    pub(crate) shape: Shape,
    /// Addresses of the arguments.
    pub(crate) arguments: *mut *mut c_void,
    /// Tells a host build of kernels the position of the thread that runs on, if the kernel is of one.
    pub(crate) place: Option<&'a (dyn Fn(Position) + Sync)>,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    /// Whether the context can do no more work.
    pub(crate) over: &'a (dyn Fn() -> bool + Sync),
    /// The room on its device.
    pub(crate) room: Room,
    /// Whether it was launched as one whose blocks are all there at once.
    pub(crate) is_cooperative: bool,
    /// The time in which its blocks may only wait while others have no room; `None`: for ever.
    pub(crate) patience: Option<Duration>,
    /// The seed of the order in which fibers run.
    pub(crate) seed: Option<u64>,
    /// The check for races, if the kernel was built for it.
    pub(crate) check: Option<GridCheck>,
    pub(crate) progress: Progress,
}

// SAFETY: the arguments are only read, and live longer than the grid (`Grid::run` borrows it).
unsafe impl Sync for Grid<'_> {}

/// The changing part of a grid.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    next_block: AtomicU64,
    failed: AtomicU32,
    /// Blocks that have come to the grid's barrier in this round.
    arrived: AtomicU64,
    round: AtomicU64,
}

/// The next block of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Block(u64),
    NoRoom,
    NoneLeft,
}

impl Grid<'_> {
    /// The first error of a thread.
    pub(super) fn result(&self) -> Outcome {
        match self.progress.failed.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    /// Blocks that have begun.
    pub(super) fn begun(&self) -> u64 {
        let begun = self.progress.next_block.load(Ordering::Relaxed);
        begun.min(self.shape.blocks())
    }

    /// The next block, if it has room. A cooperative grid has taken room for all.
    pub(super) fn next_block(&self) -> Next {
        if self.begun() == self.shape.blocks() {
            return Next::NoneLeft;
        }
        if !self.is_cooperative && !self.room.take(1) {
            return Next::NoRoom;
        }
        let block = self.progress.next_block.fetch_add(1, Ordering::Relaxed);
        if block < self.shape.blocks() {
            return Next::Block(block);
        }
        if !self.is_cooperative {
            self.room.give_back(1);
        }
        Next::NoneLeft
    }

    /// Notes that a block has ended.
    pub(super) fn block_ended(&self) {
        self.room.give_back(1);
    }

    /// Ends the grid with an error.
    pub(super) fn fail(&self, code: Code) {
        let _ =
            self.progress
                .failed
                .compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether the grid goes on no more: a thread has failed, or the context has.
    pub(super) fn stopped(&self) -> bool {
        self.progress.failed.load(Ordering::Acquire) != 0 || (self.over)()
    }

    /// Comes to the grid's barrier for one block. Returns the round that it waits for the end of.
    pub(super) fn arrive(&self) -> u64 {
        let progress = &self.progress;
        let round = progress.round.load(Ordering::Acquire);
        if progress.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.shape.blocks() {
            self.check.iter().for_each(GridCheck::open);
            progress.arrived.store(0, Ordering::Relaxed);
            progress.round.fetch_add(1, Ordering::AcqRel);
        }
        round
    }

    /// Whether a round of the grid's barrier has ended.
    pub(super) fn passed(&self, round: u64) -> bool {
        self.progress.round.load(Ordering::Acquire) != round
    }
}
