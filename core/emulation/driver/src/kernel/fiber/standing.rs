//! Waiting where nothing can be done, and its end where no GPU would end it either: blocks that wait for one that has no room.

use std::time::{Duration, Instant};

use super::grid::Grid;
use crate::code::Code;

/// Rounds without progress after which the thread sleeps between rounds: another process may need
/// the core to do what is awaited here.
const PATIENCE: u32 = 1024;
const NAP: Duration = Duration::from_micros(50);

/// The time in which nothing moves on a device.
pub(super) struct Standing {
    /// Rounds without progress.
    pub(super) fruitless: u32,
    moves: u64,
    since: Instant,
    /// Since when no block of the worker's has begun or ended, and whether that was told.
    blocks_since: Instant,
    is_told: bool,
}

/// Whether blocks of a grid are still to begin.
fn has_more(grid: &Grid<'_>) -> bool {
    grid.begun() < grid.shape.blocks()
}

impl Standing {
    pub(super) fn new(grid: &Grid<'_>) -> Standing {
        let now = Instant::now();
        Standing {
            fruitless: 0,
            moves: grid.room.moves(),
            since: now,
            blocks_since: now,
            is_told: false,
        }
    }

    /// A block has begun or ended.
    pub(super) fn block_changed(&mut self, grid: &Grid<'_>) {
        self.fruitless = 0;
        self.blocks_since = Instant::now();
        grid.room.moved();
    }

    /// Lets others run: nothing can be done here. If nobody on the device does more than wait while blocks of the grid have no room, these
    /// may be what is awaited.
    pub(super) fn idle(&mut self, grid: &Grid<'_>) {
        self.fruitless += 1;
        if self.fruitless < PATIENCE {
            std::thread::yield_now();
            return;
        }
        std::thread::sleep(NAP);
        let moves = grid.room.moves();
        if moves != self.moves || !has_more(grid) {
            self.moves = moves;
            self.since = Instant::now();
        }
        let is_over = |patience| self.since.elapsed() > patience;
        if grid.patience.is_some_and(is_over) {
            eprintln!("softcuda: {}", no_room(grid));
            grid.fail(Code::LAUNCH_TIMEOUT);
        }
    }

    /// Says once that blocks look busy for a long time while others have no room: they may wait for these.
    pub(super) fn note_blocks(&mut self, grid: &Grid<'_>) {
        let is_over = |patience| self.blocks_since.elapsed() > patience;
        if self.is_told || !has_more(grid) || !grid.patience.is_some_and(is_over) {
            return;
        }
        self.is_told = true;
        eprintln!(
            "softcuda: kernel {}: {} of its {} blocks fit on the device at once, and none has ended for long. If they wait for one that has not \
             begun, they never end",
            grid.name,
            grid.room.most,
            grid.shape.blocks()
        );
    }
}

/// The words on a grid whose blocks do not have room at once.
fn no_room(grid: &Grid<'_>) -> String {
    let (name, blocks, most) = (grid.name, grid.shape.blocks(), grid.room.most);
    let seconds = grid.patience.map_or(0, |patience| patience.as_secs());
    let variable = "SOFTCUDA_PATIENCE sets the seconds, 0 for no end";
    if grid.begun() == 0 {
        return format!(
            "kernel {name} can not begin: other kernels of this process fill the device, and have only waited for {seconds} s. If they wait \
             for this one, no GPU ends them: launch fewer blocks ({variable})"
        );
    }
    format!(
        "kernel {name}: {most} of its {blocks} blocks of {} threads fit on the device at once; {} have begun, and those that are not over have only \
         waited for {seconds} s. If they wait for one that has not begun, no GPU ends them: launch no more than {most}, or cooperatively \
         (cudaLaunchCooperativeKernel), which refuses more ({variable})",
        grid.shape.block_threads(),
        grid.begun()
    )
}
