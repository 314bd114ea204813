//! A thread of the host that runs blocks of a grid, one fiber after the other.

use corosensei::stack::Stack;
use corosensei::{Coroutine, CoroutineResult};

use super::block::{Block, Fiber, Stackful};
use super::calls;
use super::grid::{Grid, Next};
use super::stack;
use super::standing::Standing;
use crate::call::Outcome;
use crate::code::Code;

/// Rounds in which no block ends after which one more begins, whatever the others do: they may wait for what it does by steps
/// that look like progress, such as a barrier in their loop.
const ROUNDS: u32 = 64;

/// Threads of a worker at least: a thread of the host more is not worth its start for fewer.
const THREADS_OF_A_WORKER: u64 = 2048;

/// Runs all threads of a grid. Returns the first error of one.
pub(crate) fn run(grid: &Grid<'_>) -> Outcome {
    let threads = grid.shape.blocks() * u64::from(grid.shape.block_threads());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let workers = match grid.seed {
        // With one worker a seed gives one order.
        Some(_) => 1,
        // The race detector has one lock.
        None if grid.check.is_some() => 1,
        None => cores
            .min(grid.shape.blocks())
            .min(threads / THREADS_OF_A_WORKER + 1),
    };
    if grid.is_cooperative {
        let mut standing = Standing::new(grid);
        while !grid.room.take(grid.shape.blocks()) {
            if grid.stopped() {
                return grid.result();
            }
            standing.idle(grid);
        }
    }
    std::thread::scope(|scope| {
        for number in 1..workers {
            let more = std::thread::Builder::new().name("softcuda-blocks".to_owned());
            // Without it the others do all the work.
            let _ = more.spawn_scoped(scope, move || work(grid, number));
        }
        work(grid, 0);
    });
    if grid.is_cooperative {
        // Of those that a failed grid has not begun.
        grid.room.give_back(grid.shape.blocks() - grid.begun());
    }
    grid.result()
}

struct Worker<'a> {
    grid: &'a Grid<'a>,
    // Boxed: fibers have their block's address.
    #[allow(clippy::vec_box)]
    blocks: Vec<Box<Block>>,
    random: Option<u64>,
    /// Rounds since a block began or ended.
    rounds: u32,
    standing: Standing,
}

/// Runs blocks until no more are left.
fn work(grid: &Grid<'_>, number: u64) {
    let mut worker = Worker {
        grid,
        blocks: Vec::new(),
        random: grid
            .seed
            .map(|seed| (seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1),
        rounds: 0,
        standing: Standing::new(grid),
    };
    while !grid.stopped() {
        if worker.blocks.is_empty() {
            match worker.admit() {
                Admitted::Yes => {}
                Admitted::NoneLeft => return,
                Admitted::NoRoom => {
                    worker.standing.idle(grid);
                    continue;
                }
            }
        }
        let progress = worker.round();
        let is_long = worker.rounds >= ROUNDS;
        if (!progress || is_long) && worker.admit() == Admitted::Yes {
            continue;
        }
        if progress {
            worker.standing.fruitless = 0;
            grid.room.moved();
            if is_long {
                // Another thread of the host may have to do what these wait for.
                worker.rounds = 0;
                std::thread::yield_now();
                worker.standing.note_blocks(grid);
            }
            continue;
        }
        if !worker.blocks.iter().any(|block| block.can_run()) {
            worker.report_standstill();
            break;
        }
        worker.standing.idle(grid);
    }
    worker.abandon();
}

/// Whether a block was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admitted {
    Yes,
    NoRoom,
    NoneLeft,
}

impl Worker<'_> {
    /// Begins one more block, if there is one and it has room.
    fn admit(&mut self) -> Admitted {
        let number = match self.grid.next_block() {
            Next::Block(number) => number,
            Next::NoRoom => return Admitted::NoRoom,
            Next::NoneLeft => return Admitted::NoneLeft,
        };
        let block = Block::new(self.grid, number);
        if let Some(random) = &mut self.random {
            let mut fresh = block.fresh.borrow_mut();
            for at in (1..fresh.len()).rev() {
                fresh.swap(at, below(random, at + 1));
            }
        }
        self.blocks.push(block);
        self.block_changed();
        Admitted::Yes
    }

    /// Runs each fiber that can run once. Returns whether one did more than look at words.
    fn round(&mut self) -> bool {
        let mut progress = false;
        for at in 0..self.blocks.len() {
            let turns = self.blocks[at].ready.borrow().len() + self.blocks[at].fresh.borrow().len();
            for _ in 0..turns {
                let Some((thread, begins)) = self.pick(at) else {
                    break;
                };
                progress |= self.turn(&self.blocks[at], thread) || begins;
                if self.grid.stopped() {
                    return true;
                }
            }
        }
        let before = self.blocks.len();
        let grid = self.grid;
        self.blocks.retain(|block| {
            let done = block.is_done();
            if done {
                grid.block_ended();
            }
            !done
        });
        if self.blocks.len() < before {
            self.block_changed();
            return true;
        }
        self.rounds += 1;
        progress
    }

    /// A block has begun or ended.
    fn block_changed(&mut self) {
        self.rounds = 0;
        self.standing.block_changed(self.grid);
    }

    /// The fiber that runs next, and whether it begins.
    fn pick(&mut self, at: usize) -> Option<(u32, bool)> {
        let block = &self.blocks[at];
        let mut ready = block.ready.borrow_mut();
        if let Some(random) = &mut self.random
            && !ready.is_empty()
        {
            let begins = block.fresh.borrow().len();
            let chosen = below(random, ready.len() + begins);
            if chosen < ready.len() {
                return ready.swap_remove_back(chosen).map(|thread| (thread, false));
            }
        }
        if let Some(thread) = block.fresh.borrow_mut().pop() {
            return Some((thread, true));
        }
        ready.pop_front().map(|thread| (thread, false))
    }

    /// Runs a fiber until it gives way or ends. Returns whether one did more than look at words.
    ///
    /// A fiber that ends has those that are still to begin run behind it, on its stack: most kernels
    /// wait for nothing, and need no more than one.
    fn turn(&self, block: &Block, thread: u32) -> bool {
        let fiber = &block.fibers[thread as usize];
        let waiting = fiber.coroutine.borrow_mut().take();
        let in_order = self.random.is_none();
        let Some(mut coroutine) = waiting.or_else(|| begin(self.grid, block, fiber, in_order))
        else {
            eprintln!(
                "softcuda: kernel {}: no memory for the stack of a thread",
                self.grid.name
            );
            self.grid.fail(Code::LAUNCH_OUT_OF_RESOURCES);
            return true;
        };
        take_place(self.grid, fiber);
        let result = coroutine.resume(());
        let last = calls::leave();
        match (result, last) {
            (CoroutineResult::Yield(()), Some(last)) => {
                *last.coroutine.borrow_mut() = Some(coroutine);
                // Else another fiber's arrival makes it ready.
                if last.runnable.get() {
                    block.ready.borrow_mut().push_back(last.thread);
                }
                block.ended.take() || !last.fruitless.get()
            }
            _ => {
                stack::give_back(coroutine.into_stack());
                block.ended.take()
            }
        }
    }

    /// Ends a grid whose fibers all wait for each other, and says so.
    fn report_standstill(&self) {
        let waits: Vec<String> = self.blocks.iter().take(4).map(|b| b.waits()).collect();
        eprintln!(
            "softcuda: kernel {} can not go on, all its threads wait for each other: {}",
            self.grid.name,
            waits.join("; ")
        );
        self.grid.fail(Code::LAUNCH_FAILED);
    }

    /// Gives up the fibers of a grid that has stopped, wherever they are.
    fn abandon(&mut self) {
        for block in self.blocks.drain(..) {
            for fiber in &block.fibers {
                if let Some(mut coroutine) = fiber.coroutine.borrow_mut().take() {
                    // SAFETY: the frames are of kernel code, which owns nothing that must be
                    // dropped, and of calls that own nothing where they give way.
                    unsafe { coroutine.force_reset() };
                    stack::give_back(coroutine.into_stack());
                }
            }
            self.grid.block_ended();
        }
    }
}

/// Makes a fiber the one that runs, at its position.
fn take_place(grid: &Grid<'_>, fiber: &Fiber) {
    if let Some(place) = grid.place {
        place(fiber.position);
    }
    fiber.runnable.set(true);
    fiber.fruitless.set(false);
    calls::enter(fiber);
}

fn begin(grid: &Grid<'_>, block: &Block, fiber: &Fiber, in_order: bool) -> Option<Stackful> {
    let grid = std::ptr::from_ref(grid).cast::<Grid<'static>>();
    let (block, fiber) = (std::ptr::from_ref(block), std::ptr::from_ref(fiber));
    let stack = stack::take()?;
    let addresses = stack.limit().get()..stack.base().get();
    let run = Coroutine::with_stack(stack, move |yielder: &corosensei::Yielder<(), ()>, ()| {
        // SAFETY: grid and block live longer than this coroutine, which the worker drops first.
        let (grid, block) = unsafe { (&*grid, &*block) };
        // SAFETY: the fiber is of that block.
        let mut fiber = unsafe { &*fiber };
        loop {
            fiber.yielder.set(yielder);
            fiber.stack.set((addresses.start, addresses.end));
            // SAFETY: the agreement with the builder of the kernel: it reads one pointer for each
            // parameter, and through each as many bytes as the parameter has.
            unsafe { (grid.code)(grid.arguments) };
            block.leave(fiber.thread);
            if !in_order || grid.stopped() {
                return;
            }
            let Some(next) = block.fresh.borrow_mut().pop() else {
                return;
            };
            fiber = &block.fibers[next as usize];
            take_place(grid, fiber);
        }
    });
    Some(run)
}

/// A random number below `limit`.
fn below(state: &mut u64, limit: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    ((*state >> 11) % limit as u64) as usize
}
