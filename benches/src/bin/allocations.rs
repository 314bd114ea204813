//! A count of the heap allocations of operations between two PEs; it fails if one allocates.
//!
//!     oxshmem run --hosts a:1,b:1 allocations          over verbs
//!     oxshmem run -n 2 allocations                     over loopback
//!
//! It counts those of the calling thread, after some operations that may allocate lasting objects.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use anyhow::{Result, ensure};
use oxshmem::{Hints, SignalOp, World};

/// The system's allocator, with a counter.
struct Counting;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    // The counter is gone while the thread ends.
    let _ = MADE.try_with(|made| made.set(made.get() + 1));
}

// SAFETY: all calls are passed on to the system's allocator unchanged; counting neither allocates
// nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Operations before the count, which may allocate memory that stays, and operations within it.
const WARM: u64 = 300;
const COUNTED: u64 = 1000;

/// Allocations while `operation` is done [`COUNTED`] times.
fn counted(world: &World, mut operation: impl FnMut() -> oxshmem::Result<()>) -> Result<u64> {
    (0..WARM).try_for_each(|_| operation())?;
    world.quiet()?;
    (0..WARM).try_for_each(|_| operation())?;
    let before = MADE.get();
    (0..COUNTED).try_for_each(|_| operation())?;
    let made = MADE.get() - before;
    world.quiet()?;
    Ok(made)
}

fn main() -> Result<()> {
    let before = MADE.get();
    let boxed = std::hint::black_box(Box::new(1_u64));
    ensure!(MADE.get() == before + 1, "allocations are not counted");
    drop(boxed);

    let world = World::init()?;
    let block = world.alloc_zeroed::<u64>(512)?;
    let signal = world.alloc_zeroed::<u64>(1)?;
    let word = world.alloc_with_hints::<u64>(1, Hints::ATOMICS_REMOTE)?;
    world.write(word, &[0])?;
    world.barrier_all()?;
    let mut failed = Vec::new();
    if world.my_pe() == 0 {
        let to = world.n_pes() - 1;
        let mut local = vec![7_u64; 512];
        let values = local.clone();
        let mut row = |name: &str, made: u64| {
            println!("{name:<18} {made:>6} allocations in {COUNTED} operations");
            if made > 0 {
                failed.push(name.to_owned());
            }
        };
        row("p", counted(&world, || world.p(block, 7, to))?);
        row(
            "put of 8 B",
            counted(&world, || world.put(block, &values[..1], to))?,
        );
        row(
            "put of 4 KiB",
            counted(&world, || world.put(block, &values, to))?,
        );
        // SAFETY: the values outlive the world's last quiet, and are not changed.
        let nbi = || unsafe { world.put_nbi(block, values.as_ptr(), 1, to) };
        row("put_nbi of 8 B", counted(&world, nbi)?);
        let put_signal = || world.put_signal(block, &values[..1], signal, 1, SignalOp::Set, to);
        row("put_signal of 8 B", counted(&world, put_signal)?);
        row("g", counted(&world, || world.g(block, to).map(drop))?);
        row(
            "get of 4 KiB",
            counted(&world, || world.get(&mut local, block, to))?,
        );
        row(
            "fetch_add",
            counted(&world, || world.fetch_add(word, 1, to).map(drop))?,
        );
        row(
            "p and quiet",
            counted(&world, || {
                world.p(block, 7, to)?;
                world.quiet()
            })?,
        );
    }
    world.barrier_all()?;
    world.free(word)?;
    world.free(signal)?;
    world.free(block)?;
    world.finalize()?;
    ensure!(
        failed.is_empty(),
        "operations allocate: {}",
        failed.join(", ")
    );
    Ok(())
}
