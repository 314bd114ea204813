//! A grid in execution: its blocks that are still to run, and its end.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::worker;
use crate::call::Outcome;
use crate::code::Code;
use crate::context::Context;
use crate::kernel::library::{HostLibrary, Packed};
use crate::kernel::shape::Shape;

/// Threads of a worker at least: a thread of the host more is not worth its start for fewer.
const THREADS_OF_A_WORKER: u64 = 512;

/// A grid in execution.
pub(crate) struct Grid<'a> {
    pub(crate) name: &'a str,
    pub(crate) code: Packed,
    pub(crate) shape: Shape,
    /// Addresses of the arguments.
    pub(crate) arguments: *mut *mut c_void,
    /// The host build that must be told each thread's position, if the kernel is of one.
    pub(crate) library: Option<&'a HostLibrary>,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    pub(crate) context: &'a Context,
    /// Threads that may be there at once.
    pub(crate) most_resident: u64,
    /// The seed of the order in which fibers run.
    pub(crate) seed: Option<u64>,
    pub(crate) progress: Progress,
}

// SAFETY: the arguments are only read, and live longer than the grid (`Grid::run` borrows it).
unsafe impl Sync for Grid<'_> {}

/// The changing part of a grid.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    next_block: AtomicU64,
    resident: AtomicU64,
    failed: AtomicU32,
    /// Blocks that have come to the grid's barrier in this round.
    arrived: AtomicU64,
    round: AtomicU64,
}

impl Grid<'_> {
    /// Runs all threads. Returns the first error of one.
    pub(crate) fn run(&self) -> Outcome {
        let threads = self.shape.blocks() * u64::from(self.shape.block_threads());
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
        let workers = match self.seed {
            // With one worker a seed gives one order.
            Some(_) => 1,
            None => cores
                .min(self.shape.blocks())
                .min(threads / THREADS_OF_A_WORKER + 1),
        };
        std::thread::scope(|scope| {
            for number in 1..workers {
                let more = std::thread::Builder::new().name("softcuda-blocks".to_owned());
                // Without it the others do all the work.
                let _ = more.spawn_scoped(scope, move || worker::work(self, number));
            }
            worker::work(self, 0);
        });
        match self.progress.failed.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    /// The next block, if its threads have room. `needed`: the worker has no other block.
    pub(super) fn next_block(&self, needed: bool) -> Option<u64> {
        let progress = &self.progress;
        let threads = u64::from(self.shape.block_threads());
        if progress.next_block.load(Ordering::Relaxed) >= self.shape.blocks() {
            return None;
        }
        let before = progress.resident.fetch_add(threads, Ordering::Relaxed);
        if needed || before + threads <= self.most_resident {
            let block = progress.next_block.fetch_add(1, Ordering::Relaxed);
            if block < self.shape.blocks() {
                return Some(block);
            }
        }
        progress.resident.fetch_sub(threads, Ordering::Relaxed);
        None
    }

    /// Notes that a block has ended.
    pub(super) fn block_ended(&self) {
        let threads = u64::from(self.shape.block_threads());
        self.progress.resident.fetch_sub(threads, Ordering::Relaxed);
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
        self.progress.failed.load(Ordering::Acquire) != 0 || self.context.check().is_err()
    }

    /// Comes to the grid's barrier for one block. Returns the round that it waits for the end of.
    pub(super) fn arrive(&self) -> u64 {
        let progress = &self.progress;
        let round = progress.round.load(Ordering::Acquire);
        if progress.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.shape.blocks() {
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
