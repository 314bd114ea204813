//! What memory a process has.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// The system's allocator, counting the bytes that are allocated now.
#[derive(Debug)]
pub struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came; counting neither allocates nor unwinds.
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

/// What a process has, in bytes, and its descriptors and threads.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Footprint {
    /// Allocated by the program and the library.
    pub allocated: f64,
    /// Resident.
    pub rss: f64,
    /// Resident, what it shares counted in parts.
    pub pss: f64,
    pub descriptors: f64,
    pub threads: f64,
}

impl Footprint {
    /// This process's.
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
            // But the one that is open for counting.
            descriptors: entries("/proc/self/fd")? - 1.0,
            threads: entries("/proc/self/task")?,
        })
    }

    /// What has come since `before`, of one PE of so many.
    pub fn since(self, before: Footprint, pes: usize) -> Footprint {
        let before = before.to_array();
        let mut since = self.to_array();
        for (since, before) in since.iter_mut().zip(before) {
            *since -= before;
        }
        Footprint::from_array(since).share(pes)
    }

    /// One part of so many.
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
