//! The counters of one PE: operations and bytes by path, and waits by call. State only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oxshmem_engine::engine::WaitObserver;
use serde::{Deserialize, Serialize};

/// The destination of the statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// PE 0's standard error.
    Stderr,
    /// A file that PE 0 writes.
    File(PathBuf),
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Get,
    PutSignal,
    Atomic,
}

pub(super) const KINDS: usize = 4;
/// Index of the path to this PE's own memory.
pub(super) const OWN_MEMORY: usize = 0;
/// Index of the path to GPU memory that is staged through host memory.
pub(super) const STAGED: usize = 1;
/// Index of the first transport's path; the others follow.
pub(super) const FIRST_TRANSPORT: usize = 2;

/// Counts of one PE.
pub(crate) struct Stats {
    pub(super) target: Target,
    /// Operations and bytes of each kind, by path.
    pub(super) paths: Box<[[Count; KINDS]]>,
    /// Waits, by call.
    pub(super) waits: Mutex<BTreeMap<&'static str, Waits>>,
}

#[derive(Default)]
pub(super) struct Count {
    pub(super) operations: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// Waits in one call.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Waits {
    pub(super) count: u64,
    pub(super) nanos: u64,
    pub(super) longest: u64,
}

impl Waits {
    pub(super) fn add(&mut self, other: Waits) {
        self.count += other.count;
        self.nanos += other.nanos;
        self.longest = self.longest.max(other.longest);
    }
}

impl Stats {
    pub(crate) fn new(target: Target, transports: usize) -> Self {
        Stats {
            target,
            paths: (0..FIRST_TRANSPORT + transports)
                .map(|_| Default::default())
                .collect(),
            waits: Mutex::default(),
        }
    }

    pub(super) fn count(&self, path: usize, kind: Kind, bytes: usize) {
        let path = self.paths.get(path);
        if let Some(count) = path.and_then(|path| path.get(kind as usize)) {
            count.operations.fetch_add(1, Ordering::Relaxed);
            count.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// The observer that counts waits which were not over at once.
    pub(crate) fn wait_observer(stats: Arc<Stats>) -> WaitObserver {
        Arc::new(move |call, lasted| stats.waited(call, lasted))
    }

    fn waited(&self, call: &'static str, lasted: Duration) {
        let nanos = u64::try_from(lasted.as_nanos()).unwrap_or(u64::MAX);
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.entry(call).or_default().add(Waits {
            count: 1,
            nanos,
            longest: nanos,
        });
    }
}
