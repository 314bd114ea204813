//! The calls that kernels make: position, barriers, warps, shared memory, waits.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::block::{Fiber, Looks};
use super::grid::Grid;
use super::warp::{ACTIVE, Arrival, Exchange, LANES};
use crate::code::Code;
use crate::kernel::shape::Position;
use crate::race::{self, GridCheck, Thread};

/// The version of the table; the compiler's `support.c` has the same.
const VERSION: u32 = 4;
/// Shared memory of a block, static and dynamic.
const MOST_SHARED: usize = 227 << 10;

thread_local! {
    static CURRENT: Cell<*const Fiber> = const { Cell::new(std::ptr::null()) };
}

/// Makes a fiber the one that runs on this thread.
pub(super) fn enter(fiber: &Fiber) {
    CURRENT.set(fiber);
}

/// Leaves this thread without a fiber. Returns the one that ran last.
pub(super) fn leave<'a>() -> Option<&'a Fiber> {
    let last = current();
    CURRENT.set(std::ptr::null());
    last
}

/// The fiber that runs on this thread.
fn current<'a>() -> Option<&'a Fiber> {
    let fiber = CURRENT.get();
    // SAFETY: null, or set by `enter` to a fiber that lives while it runs.
    unsafe { fiber.as_ref() }
}

impl Fiber {
    fn grid(&self) -> &Grid<'static> {
        // SAFETY: the block lives as long as its fibers, the grid as long as its blocks.
        unsafe { &*(*self.block.get()).grid }
    }

    /// Gives way. `runnable`: no other fiber need arrive for it to go on.
    fn give_way(&self, runnable: bool, fruitless: bool) {
        self.runnable.set(runnable);
        self.fruitless.set(fruitless && !self.went_on.take());
        // SAFETY: set when the coroutine began, and valid while it runs.
        unsafe { (*self.yielder.get()).suspend(()) };
    }

    /// Ends the grid, and this fiber for good.
    fn give_up(&self, code: Code) -> ! {
        self.grid().fail(code);
        loop {
            self.give_way(true, true);
        }
    }

    fn refuse(&self, words: &str) -> ! {
        let Position { block, thread, .. } = self.position;
        eprintln!(
            "softcuda: kernel {}: block {block:?} thread {thread:?}: {words}",
            self.grid().name
        );
        self.give_up(Code::LAUNCH_FAILED)
    }
}

/// The functions that an image calls, in the form in which `support.c` declares them.
#[repr(C)]
pub(crate) struct Calls {
    version: u32,
    size: u32,
    position: unsafe extern "C" fn() -> *const Position,
    shared: unsafe extern "C" fn(*const AtomicUsize, usize, usize) -> *mut u8,
    dynamic_size: unsafe extern "C" fn() -> u32,
    block_barrier: unsafe extern "C" fn(u32) -> u32,
    warp: unsafe extern "C" fn(u32, u32, u64) -> *const Exchange,
    grid_barrier: unsafe extern "C" fn(),
    poll: unsafe extern "C" fn(usize),
    pause: unsafe extern "C" fn(u32),
    trap: unsafe extern "C" fn(u32),
    access: unsafe extern "C" fn(usize, usize, u32, usize),
    atomic: unsafe extern "C" fn(usize, usize, u32, u32, usize),
    fence: unsafe extern "C" fn(u32),
    scope: unsafe extern "C" fn(u32),
    forget: unsafe extern "C" fn(usize, usize),
    operand: unsafe extern "C" fn(usize, usize, u32, usize),
    moves_operands: unsafe extern "C" fn(u32),
    completes: unsafe extern "C" fn(u32),
    space: unsafe extern "C" fn(usize) -> u32,
}

/// The one table.
pub(crate) static CALLS: Calls = Calls {
    version: VERSION,
    size: size_of::<Calls>() as u32,
    position,
    shared,
    dynamic_size,
    block_barrier,
    warp,
    grid_barrier,
    poll,
    pause,
    trap,
    access,
    atomic,
    fence,
    scope,
    forget,
    operand,
    moves_operands,
    completes,
    space,
};

/// The position of code that runs in no kernel.
static NOWHERE: Position = Position {
    thread: [0; 3],
    block: [0; 3],
    threads: [1; 3],
    grid: [1; 3],
};

unsafe extern "C" fn position() -> *const Position {
    current().map_or(&raw const NOWHERE, |fiber| &raw const fiber.position)
}

/// The block's copy of a shared variable. `index` is the variable's number, 0 before it has one.
/// A size of 0 asks for the dynamic shared memory.
unsafe extern "C" fn shared(index: *const AtomicUsize, size: usize, alignment: usize) -> *mut u8 {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let Some(fiber) = current() else {
        return std::ptr::null_mut();
    };
    // SAFETY: the block lives as long as its fibers.
    let block = unsafe { &*fiber.block.get() };
    let bytes = if size == 0 {
        block.dynamic(fiber.grid().shared)
    } else if size > MOST_SHARED {
        fiber.refuse("a shared variable is larger than a device's shared memory")
    } else {
        // SAFETY: a word of the image that only this function uses.
        let word = unsafe { &*index };
        let mut number = word.load(Ordering::Relaxed);
        if number == 0 {
            let fresh = NEXT.fetch_add(1, Ordering::Relaxed);
            number = word
                .compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|other| other, |_| fresh);
        }
        block.variable(number, size, alignment)
    };
    bytes.unwrap_or_else(|| fiber.refuse("no memory for shared memory"))
}

unsafe extern "C" fn dynamic_size() -> u32 {
    current().map_or(0, |fiber| fiber.grid().shared)
}

/// The space of an address: 1 for the block's shared memory, 2 for the thread's stack, 0 for the rest.
unsafe extern "C" fn space(at: usize) -> u32 {
    let Some(fiber) = current() else { return 0 };
    // SAFETY: the block lives as long as its fibers.
    let block = unsafe { &*fiber.block.get() };
    let (start, end) = fiber.stack.get();
    match () {
        () if block.shares(at) => 1,
        () if (start..end).contains(&at) => 2,
        () => 0,
    }
}

/// The block's barrier. Returns how many threads gave a number other than zero.
unsafe extern "C" fn block_barrier(number: u32) -> u32 {
    let Some(fiber) = current() else { return 0 };
    // SAFETY: the block lives as long as its fibers.
    let block = unsafe { &*fiber.block.get() };
    if !block.arrive(fiber, number) {
        fiber.give_way(false, false);
    }
    fiber.result.get()
}

/// The lanes that are at one place of the code at once. With a seed they gather there by chance; without, each is alone.
fn active(fiber: &Fiber, place: u64) -> *const Exchange {
    // SAFETY: the block lives as long as its fibers.
    let warp = unsafe { &*fiber.block.get() }.warp(fiber.thread);
    let lane = fiber.thread % LANES;
    warp.gather(lane, place);
    if fiber.grid().seed.is_some() {
        fiber.give_way(true, false);
    }
    warp.gathered(lane)
}

/// A meeting of the lanes of `mask`, each with a value. `kind` is the operation.
pub(crate) unsafe extern "C" fn warp(mask: u32, kind: u32, value: u64) -> *const Exchange {
    let Some(fiber) = current() else {
        return std::ptr::null();
    };
    if kind == ACTIVE {
        return active(fiber, value);
    }
    let lane = fiber.thread % LANES;
    if mask & (1 << lane) == 0 {
        fiber.refuse(&format!(
            "a warp operation with the mask {mask:#010x}, in which lane {lane} is not"
        ));
    }
    // SAFETY: the block lives as long as its fibers.
    let block = unsafe { &*fiber.block.get() };
    let (arrival, exchange) = block.warp(fiber.thread).arrive(lane, mask, kind, value);
    match arrival {
        Arrival::Complete(met) => {
            block.lanes_met(fiber.thread, met);
            block.wake_lanes(fiber.thread, met.lanes & !(1 << lane));
        }
        Arrival::Early => fiber.give_way(false, false),
        Arrival::Mismatch => fiber.refuse(&format!(
            "lanes of the mask {mask:#010x} are in different warp operations at once"
        )),
    }
    exchange
}

/// The grid's barrier, for one thread of each block.
unsafe extern "C" fn grid_barrier() {
    let Some(fiber) = current() else { return };
    if !fiber.grid().is_cooperative {
        fiber.refuse(
            "this_grid().sync() in a kernel that was not launched cooperatively (cudaLaunchCooperativeKernel)",
        );
    }
    let check = fiber.grid().check.as_ref();
    let checked = |note: fn(&GridCheck, &mut Thread)| {
        if let (Some(check), Some(clock)) = (check, &mut *fiber.clock.borrow_mut()) {
            note(check, clock);
        }
    };
    checked(GridCheck::arrive);
    let round = fiber.grid().arrive();
    while !fiber.grid().passed(round) {
        fiber.give_way(true, true);
    }
    checked(GridCheck::pass);
}

/// Comes before each read of a word that others may change. Now and then it gives way.
unsafe extern "C" fn poll(word: usize) {
    let Some(fiber) = current() else { return };
    let mut looks = fiber.looks.get();
    let due = looks.note(word);
    fiber.looks.set(looks);
    if let Some(waits) = due {
        fiber.give_way(true, waits);
    }
}

/// A sleep: gives way. One of no time says that the wait is over in which the fiber has slept.
pub(crate) unsafe extern "C" fn pause(nanoseconds: u32) {
    let Some(fiber) = current() else { return };
    if nanoseconds == 0 {
        fiber.went_on.set(true);
    } else {
        // Looks between two sleeps are few.
        fiber.looks.set(Looks::default());
        fiber.give_way(true, true);
    }
}

/// Ends the grid with an error.
unsafe extern "C" fn trap(code: u32) {
    if let Some(fiber) = current() {
        fiber.give_up(Code(code));
    }
}

/// Calls the race detector for the fiber that runs, if it has a clock.
fn check(note: impl FnOnce(&Fiber, &mut Thread)) {
    if let Some(fiber) = current()
        && let Some(clock) = &mut *fiber.clock.borrow_mut()
    {
        note(fiber, clock);
    }
}

/// A plain or volatile access to memory. `kind`: 1 if it writes, and 2 more if it is volatile.
unsafe extern "C" fn access(at: usize, len: usize, kind: u32, pc: usize) {
    check(|fiber, clock| {
        let (start, end) = fiber.stack.get();
        // Nobody else knows a thread's own variables.
        if !(start..end).contains(&at) {
            let place = race::Place { at, len, pc };
            race::access(clock, place, kind & 1 != 0, kind & 2 != 0);
        }
    });
}

/// An atomic operation: `step` is 0 for a load and 1 for a store that is about to be done, 2 for the first and 3 for the second half of
/// one that reads and writes, and 4 for a load that was done.
unsafe extern "C" fn atomic(at: usize, len: usize, step: u32, order: u32, pc: usize) {
    check(|fiber, clock| {
        let place = race::Place { at, len, pc };
        let (start, end) = fiber.stack.get();
        if (start..end).contains(&at) {
            return clock.end_scope();
        }
        match step {
            0 => race::before_atomic(clock, place, race::Atomic::Load, order),
            1 => {
                race::before_atomic(clock, place, race::Atomic::Store, order);
                race::after_atomic(clock, at, race::Atomic::Store, order);
            }
            2 => race::before_atomic(clock, place, race::Atomic::ReadModifyWrite, order),
            3 => race::after_atomic(clock, at, race::Atomic::ReadModifyWrite, order),
            _ => race::after_atomic(clock, at, race::Atomic::Load, order),
        }
    });
}

/// A fence.
unsafe extern "C" fn fence(order: u32) {
    check(|_, clock| race::fence(clock, order));
}

/// Names the scope of the next atomic operation or fence: 0 for the block, 1 for the device, 2 for the system.
unsafe extern "C" fn scope(number: u32) {
    check(|_, clock| clock.name_scope(race::Scope::of(number)));
}

/// Bytes that a thread has freed.
unsafe extern "C" fn forget(at: usize, len: usize) {
    race::forget(at, len);
}

/// Bytes that a nonblocking call is for. `kind`: the operand's number, 8 more if it is written, and 16 more if a copy of the host's moves it.
unsafe extern "C" fn operand(at: usize, len: usize, kind: u32, pc: usize) {
    check(|fiber, clock| {
        let (start, end) = fiber.stack.get();
        if !(start..end).contains(&at) {
            let (place, which) = (race::Place { at, len, pc }, race::Operand::of(kind & 7));
            race::operand(clock, place, which, (kind & 8 != 0, kind & 16 != 0));
        }
    });
}

/// The thread begins or ends the moving of such bytes.
unsafe extern "C" fn moves_operands(moves: u32) {
    check(|_, clock| clock.set_moves_operands(moves != 0));
}

/// A call that completes nonblocking ones: 0 for a flush, 1 for a fence, 2 for a quiet.
unsafe extern "C" fn completes(by: u32) {
    check(|_, clock| race::completes(clock, race::Completes::of(by)));
}

/// The block's barrier of a host build of kernels.
pub(crate) unsafe extern "C" fn syncthreads() {
    // SAFETY: it has no conditions.
    unsafe { block_barrier(0) };
}
