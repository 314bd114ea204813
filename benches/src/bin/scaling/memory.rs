//! The memory of a process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// The system's allocator, with a counter of allocated bytes.
#[derive(Debug)]
pub struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged; counting neither allocates
// nor unwinds.
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

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size, Ordering::Relaxed);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// A process's memory in bytes, and its descriptors and threads.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Footprint {
    /// Bytes allocated by the program and the library.
    pub allocated: f64,
    /// Resident bytes.
    pub rss: f64,
    /// Resident bytes, with shared pages counted in parts.
    pub pss: f64,
    pub descriptors: f64,
    pub threads: f64,
}

impl Footprint {
    /// The footprint of this process.
    pub fn now() -> anyhow::Result<Self> {
        let allocated = LIVE.load(Ordering::Relaxed) as f64;
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
        let of = |name: &str| -> anyhow::Result<f64> {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            Ok(kib.with_context(|| format!("no {name} in smaps_rollup"))? * 1024.0)
        };
        let entries = |folder| std::fs::read_dir(folder).map(|entries| entries.count() as f64);
        Ok(Footprint {
            allocated,
            rss: of("Rss:")?,
            pss: of("Pss:")?,
            // Without the descriptor that is open for counting.
            descriptors: entries("/proc/self/fd")? - 1.0,
            threads: entries("/proc/self/task")?,
        })
    }

    /// The growth since `before`, for one PE of so many.
    pub fn since(self, before: Footprint, pes: usize) -> Footprint {
        let before = before.to_array();
        let mut since = self.to_array();
        for (since, before) in since.iter_mut().zip(before) {
            *since -= before;
        }
        Footprint::from_array(since).share(pes)
    }

    /// One of so many equal parts.
    pub fn share(self, parts: usize) -> Footprint {
        Footprint::from_array(self.to_array().map(|all| all / parts as f64))
    }

    pub fn to_array(self) -> [f64; 5] {
        let Footprint {
            allocated,
            rss,
            pss,
            descriptors,
            threads,
        } = self;
        [allocated, rss, pss, descriptors, threads]
    }

    pub fn from_array([allocated, rss, pss, descriptors, threads]: [f64; 5]) -> Footprint {
        Footprint {
            allocated,
            rss,
            pss,
            descriptors,
            threads,
        }
    }
}
