//! Counts of operations between two PEs: heap allocations of the calling thread, and on the software NIC the requests,
//! doorbells and completions of this PE. It fails if an operation allocates.
//!
//!     oxshmem run --hosts a:1,b:1 counts      over verbs
//!     oxshmem run -n 2 counts                 over loopback
//!     benches/counts                          over verbs on the software NIC
//!
//! It counts after some operations that may allocate lasting objects. The counts of the software NIC include its quiet
//! at the end of each row.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CStr, c_char};

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

/// The counter of the software NIC by its name, where that is loaded in place of libibverbs.
type Counter = unsafe extern "C" fn(*const c_char) -> u64;

fn software_nic() -> Option<Counter> {
    // SAFETY: C strings. A library that is loaded already is only counted once more, and never unloaded.
    let found = unsafe {
        let library = libc::dlopen(
            c"libibverbs.so.1".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        );
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, c"softnic_counter".as_ptr())
    };
    // SAFETY: the software NIC declares the function so; no other library has one of this name.
    (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Counter>(found) })
}

/// The counters of the software NIC that are shown.
const SHOWN: [&CStr; 3] = [c"requests", c"doorbells", c"completions"];

/// The counts of [`COUNTED`] operations.
struct Counts {
    allocations: u64,
    /// None on another NIC.
    nic: Option<[u64; 3]>,
}

/// The counts while `operation` is done [`COUNTED`] times.
fn counted(world: &World, mut operation: impl FnMut() -> oxshmem::Result<()>) -> Result<Counts> {
    let counter = software_nic();
    // SAFETY: a function of the software NIC, and a C string.
    let read = || counter.map(|counter| SHOWN.map(|name| unsafe { counter(name.as_ptr()) }));
    (0..WARM).try_for_each(|_| operation())?;
    world.quiet()?;
    (0..WARM).try_for_each(|_| operation())?;
    world.quiet()?;
    let (before, made) = (read(), MADE.get());
    (0..COUNTED).try_for_each(|_| operation())?;
    let allocations = MADE.get() - made;
    world.quiet()?;
    let nic = before.zip(read());
    Ok(Counts {
        allocations,
        nic: nic.map(|(before, after)| std::array::from_fn(|at| after[at] - before[at])),
    })
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
        println!(
            "{:<18} {:>11} {:>9} {:>9} {:>11}   for one operation, of {COUNTED}",
            "", "allocations", "requests", "doorbells", "completions"
        );
        let mut row = |name: &str, counts: Counts| {
            let each = |count: u64| format!("{:.3}", count as f64 / COUNTED as f64);
            let [requests, doorbells, completions] = match counts.nic {
                Some(nic) => nic.map(each),
                None => std::array::from_fn(|_| "-".to_owned()),
            };
            let allocations = each(counts.allocations);
            println!("{name:<18} {allocations:>11} {requests:>9} {doorbells:>9} {completions:>11}");
            if counts.allocations > 0 {
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
        let set = || world.put_signal(block, &values[..1], signal, 1, SignalOp::Set, to);
        row("put_signal, set", counted(&world, set)?);
        let add = || world.put_signal(block, &values[..1], signal, 1, SignalOp::Add, to);
        row("put_signal, add", counted(&world, add)?);
        row("g", counted(&world, || world.g(block, to).map(drop))?);
        row(
            "get of 4 KiB",
            counted(&world, || world.get(&mut local, block, to))?,
        );
        row(
            "fetch_add",
            counted(&world, || world.fetch_add(word, 1, to).map(drop))?,
        );
        row("add", counted(&world, || world.add(word, 1, to))?);
        row(
            "p and fence",
            counted(&world, || {
                world.p(block, 7, to)?;
                world.fence()
            })?,
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
