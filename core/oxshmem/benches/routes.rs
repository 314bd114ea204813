//! The cost of discovery and of the choice of routes to a PE: time and memory, for 1,024 simulated PEs on
//! 128 hosts. `cargo bench -p oxshmem --bench routes`

#[path = "../tests/scale/crowd.rs"]
mod crowd;
#[path = "../tests/scale/stand_in.rs"]
mod stand_in;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oxshmem_topo::{Topology, fixtures};

/// Counts the bytes that are allocated now.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ROUNDS: usize = 21;

/// The median time to join, and the bytes that a joined world holds (the heap, which is mapped, not
/// among them).
fn measure(size: u32, host: &Topology) -> oxshmem::Result<(Duration, usize)> {
    let transports = crowd::transports(host);
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let before = LIVE.load(Ordering::Relaxed);
        let start = Instant::now();
        let world = crowd::join(crowd::Crowd::of(size), &transports)?;
        times.push(start.elapsed());
        bytes = LIVE.load(Ordering::Relaxed) - before;
        drop(world);
    }
    times.sort();
    Ok((times[ROUNDS / 2], bytes))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../topo/fixtures/eight-gpus-eight-nics.xml"
    );
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("OXSHMEM_TOPOLOGY", file) };
    let host = Topology::from_xml(fixtures::EIGHT_GPUS_EIGHT_NICS)?;
    let (least, few) = measure(8, &host)?;
    let (time, many) = measure(1024, &host)?;
    println!("join with topology, cards and routes, median of {ROUNDS}, other PEs' part left out:");
    println!(
        "     8 PEs on   1 host:  {:8.2} ms",
        least.as_secs_f64() * 1e3
    );
    println!(
        "  1024 PEs on 128 hosts: {:8.2} ms a PE (target 50)",
        time.as_secs_f64() * 1e3
    );
    let each = (many - few) as f64 / (1024.0 - 8.0);
    println!("bytes a peer that the whole world holds: {each:.0} (target 256)");
    Ok(())
}
