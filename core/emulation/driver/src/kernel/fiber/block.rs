//! A block in execution: its fibers, its barrier, its shared memory.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

use super::grid::Grid;
use super::warp::{LANES, Met, SYNC, Warp};
use crate::kernel::shape::Position;
use crate::race::{self, Thread, gathered};

/// The byte that fills shared memory, in which a device leaves what was there.
const RUBBISH: u8 = 0xa5;
/// The alignment of dynamic shared memory.
const DYNAMIC_ALIGNMENT: usize = 1024;

pub(super) type Stackful = Coroutine<(), (), (), DefaultStack>;

/// A thread of a block.
pub(super) struct Fiber {
    pub(super) position: Position,
    /// Its number in the block.
    pub(super) thread: u32,
    pub(super) block: Cell<*const Block>,
    pub(super) coroutine: RefCell<Option<Stackful>>,
    pub(super) yielder: Cell<*const Yielder<(), ()>>,
    /// Whether it can run on when it has given way: it waits for no other fiber's arrival.
    pub(super) runnable: Cell<bool>,
    /// Whether it only looked at words when it gave way.
    pub(super) fruitless: Cell<bool>,
    /// Whether a wait of its has ended since it last gave way.
    pub(super) went_on: Cell<bool>,
    /// The result of the block's barrier.
    pub(super) result: Cell<u32>,
    pub(super) looks: Cell<Looks>,
    /// The addresses of its stack.
    pub(super) stack: Cell<(usize, usize)>,
    /// Its clock, where races are looked for.
    pub(super) clock: RefCell<Option<Thread>>,
}

/// The words that a fiber looked at of late.
#[derive(Clone, Copy, Default)]
pub(super) struct Looks {
    words: [usize; 4],
    at: usize,
    /// Looks at these words, and looks at all, since it gave way.
    repeated: u32,
    all: u32,
}

impl Looks {
    /// Looks at the same few words before a fiber gives way, and looks at any.
    const REPEATED: u32 = 16;
    const ALL: u32 = 4096;

    /// Notes a look. Returns whether it is time to give way, and whether the fiber only waits.
    pub(super) fn note(&mut self, word: usize) -> Option<bool> {
        self.all += 1;
        if self.words.contains(&word) {
            self.repeated += 1;
        } else {
            self.words[self.at] = word;
            self.at = (self.at + 1) % self.words.len();
            self.repeated = 0;
        }
        let waits = self.repeated >= Self::REPEATED;
        if waits || self.all >= Self::ALL {
            self.repeated = 0;
            self.all = 0;
            return Some(waits);
        }
        None
    }
}

/// The way in which the block's barrier combines its members' numbers.
#[derive(Default)]
struct Barrier {
    arrived: u32,
    /// How many numbers were not zero.
    set: u32,
    waiting: Vec<u32>,
}

/// A block in execution. Only the thread that runs it uses it.
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) grid: *const Grid<'static>,
    pub(super) fibers: Vec<Fiber>,
    /// Fibers that can run, and those that have not begun.
    pub(super) ready: RefCell<VecDeque<u32>>,
    pub(super) fresh: RefCell<Vec<u32>>,
    live: Cell<u32>,
    /// Whether a fiber has ended since the worker looked.
    pub(super) ended: Cell<bool>,
    barrier: RefCell<Barrier>,
    warps: Vec<Warp>,
    shared: RefCell<Shared>,
}

/// The shared memory of a block.
struct Shared {
    dynamic: Option<Region>,
    statics: Vec<Option<Region>>,
}

/// Bytes of shared memory.
struct Region(*mut u8, Layout);

impl Region {
    fn new(size: usize, alignment: usize) -> Option<Region> {
        let layout = Layout::from_size_align(size.max(1), alignment.max(16)).ok()?;
        // SAFETY: the layout has at least one byte.
        let bytes = unsafe { std::alloc::alloc(layout) };
        if bytes.is_null() {
            return None;
        }
        // SAFETY: as many bytes were just allocated.
        unsafe { bytes.write_bytes(RUBBISH, layout.size()) };
        Some(Region(bytes, layout))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        race::forget(self.0 as usize, self.1.size());
        // SAFETY: `new` allocated it with this layout.
        unsafe { std::alloc::dealloc(self.0, self.1) };
    }
}

impl Drop for Block {
    /// Kernels read their positions, and what warps exchange. The next owner of that memory has nothing to do with them.
    fn drop(&mut self) {
        race::forget(
            self.fibers.as_ptr() as usize,
            size_of_val(self.fibers.as_slice()),
        );
        self.warps.iter().for_each(Warp::forget);
    }
}

impl Block {
    /// A block whose fibers begin in the order of their numbers.
    pub(super) fn new(grid: &Grid<'_>, number: u64) -> Box<Block> {
        let threads = grid.shape.block_threads();
        let fiber = |thread| Fiber {
            position: grid.shape.position(number, thread),
            thread,
            block: Cell::new(std::ptr::null()),
            coroutine: RefCell::new(None),
            yielder: Cell::new(std::ptr::null()),
            runnable: Cell::new(true),
            fruitless: Cell::new(false),
            went_on: Cell::new(false),
            result: Cell::new(0),
            looks: Cell::default(),
            stack: Cell::default(),
            clock: RefCell::new((grid.check.as_ref()).map(|check| check.thread(number, thread))),
        };
        let block = Box::new(Block {
            number,
            grid: std::ptr::from_ref(grid).cast(),
            fibers: (0..threads).map(fiber).collect(),
            ready: RefCell::default(),
            fresh: RefCell::new((0..threads).rev().collect()),
            live: Cell::new(threads),
            ended: Cell::new(false),
            barrier: RefCell::default(),
            warps: (0..threads.div_ceil(LANES))
                .map(|warp| Warp::new(threads - warp * LANES))
                .collect(),
            shared: RefCell::new(Shared {
                dynamic: None,
                statics: Vec::new(),
            }),
        });
        for fiber in &block.fibers {
            fiber.block.set(&raw const *block);
        }
        block
    }

    pub(super) fn is_done(&self) -> bool {
        self.live.get() == 0
    }

    /// Whether a fiber of it can run.
    pub(super) fn can_run(&self) -> bool {
        !self.ready.borrow().is_empty() || !self.fresh.borrow().is_empty()
    }

    pub(super) fn warp(&self, thread: u32) -> &Warp {
        &self.warps[(thread / LANES) as usize]
    }

    /// Lets the lanes of a thread's warp go on.
    pub(super) fn wake_lanes(&self, thread: u32, lanes: u32) {
        let first = thread / LANES * LANES;
        let awake = (0..LANES).filter(|lane| lanes & (1 << lane) != 0);
        self.ready
            .borrow_mut()
            .extend(awake.map(|lane| first + lane));
    }

    /// Comes to the barrier with a number. True: all have come, and the result is in the fiber.
    pub(super) fn arrive(&self, fiber: &Fiber, number: u32) -> bool {
        let mut barrier = self.barrier.borrow_mut();
        barrier.arrived += 1;
        barrier.set += u32::from(number != 0);
        if barrier.arrived == self.live.get() {
            fiber.result.set(barrier.set);
            barrier.waiting.push(fiber.thread);
            self.open(&mut barrier, Some(fiber.thread));
            return true;
        }
        barrier.waiting.push(fiber.thread);
        false
    }

    /// Lets all go on but `last`, which has not given way.
    fn open(&self, barrier: &mut Barrier, last: Option<u32>) {
        for thread in &barrier.waiting {
            self.fibers[*thread as usize].result.set(barrier.set);
        }
        // Those that are over count as having come.
        self.order(0..self.fibers.len() as u32, &barrier.waiting);
        let waiting = barrier.waiting.drain(..);
        let others = waiting.filter(|thread| Some(*thread) != last);
        self.ready.borrow_mut().extend(others);
        barrier.arrived = 0;
        barrier.set = 0;
    }

    /// Notes that a fiber has ended: from then on nobody waits for it.
    pub(super) fn leave(&self, thread: u32) {
        self.live.set(self.live.get() - 1);
        self.ended.set(true);
        self.note_end(thread);
        for met in self.warp(thread).leave(thread % LANES) {
            self.lanes_met(thread, met);
            self.wake_lanes(thread, met.lanes);
        }
        let mut barrier = self.barrier.borrow_mut();
        if barrier.arrived > 0 && barrier.arrived == self.live.get() {
            self.open(&mut barrier, None);
        }
    }

    /// Notes that a thread is over, where races are looked for.
    fn note_end(&self, thread: u32) {
        if let Some(clock) = &*self.fibers[thread as usize].clock.borrow() {
            // SAFETY: the grid lives as long as its blocks.
            let grid = unsafe { &*self.grid };
            grid.check.iter().for_each(|check| check.leave(clock));
        }
    }

    /// Orders what `before` have done before what `waiting` do from now on, where races are looked for.
    fn order(&self, before: impl Iterator<Item = u32>, waiting: &[u32]) {
        let clock = |thread: u32| &self.fibers[thread as usize].clock;
        if waiting
            .first()
            .is_none_or(|first| clock(*first).borrow().is_none())
        {
            return;
        }
        let known: Vec<_> = before.map(|thread| clock(thread).borrow()).collect();
        let all = gathered(known.iter().filter_map(|clock| clock.as_ref()));
        drop(known);
        for thread in waiting {
            let mut clock = clock(*thread).borrow_mut();
            clock.iter_mut().for_each(|clock| clock.pass(&all));
        }
    }

    /// The lanes of a thread's warp have met. `__syncwarp` orders memory; shuffles and votes do not.
    pub(super) fn lanes_met(&self, thread: u32, met: Met) {
        if met.kind != SYNC {
            return;
        }
        let first = thread / LANES * LANES;
        let lanes = (0..LANES).filter(|lane| met.lanes & (1 << lane) != 0);
        let threads: Vec<u32> = lanes.map(|lane| first + lane).collect();
        self.order(threads.iter().copied(), &threads);
    }

    /// The block's dynamic shared memory.
    pub(super) fn dynamic(&self, bytes: u32) -> Option<*mut u8> {
        let mut shared = self.shared.borrow_mut();
        if shared.dynamic.is_none() {
            shared.dynamic = Region::new(bytes as usize, DYNAMIC_ALIGNMENT);
        }
        shared.dynamic.as_ref().map(|region| region.0)
    }

    /// The block's copy of a shared variable.
    pub(super) fn variable(&self, index: usize, size: usize, alignment: usize) -> Option<*mut u8> {
        let mut shared = self.shared.borrow_mut();
        if shared.statics.len() <= index {
            shared.statics.resize_with(index + 1, || None);
        }
        if shared.statics[index].is_none() {
            shared.statics[index] = Region::new(size, alignment);
        }
        shared.statics[index].as_ref().map(|region| region.0)
    }

    /// Whether an address is in the block's shared memory.
    pub(super) fn shares(&self, at: usize) -> bool {
        let shared = self.shared.borrow();
        let regions = shared.statics.iter().chain([&shared.dynamic]).flatten();
        regions
            .map(|Region(bytes, layout)| *bytes as usize..*bytes as usize + layout.size())
            .any(|region| region.contains(&at))
    }

    /// A line on the waits of a block that cannot go on.
    pub(super) fn waits(&self) -> String {
        let mut words = Vec::new();
        let barrier = self.barrier.borrow();
        if barrier.arrived > 0 {
            let live = self.live.get();
            words.push(format!(
                "{} of {live} threads at the block's barrier",
                barrier.arrived
            ));
        }
        for (number, warp) in self.warps.iter().enumerate() {
            for (mask, lanes) in warp.waiting() {
                words.push(format!(
                    "warp {number}: lanes {lanes:#010x} of {mask:#010x} at a warp operation"
                ));
            }
        }
        format!("block {}: {}", self.number, words.join("; "))
    }
}
