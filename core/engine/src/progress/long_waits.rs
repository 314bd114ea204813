//! Long waits: the PEs that they are for, and the list of them for the launcher. State only.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use oxshmem_bootstrap::{Awaited, Waiting};

/// The PE that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// This PE's program, by its number in the world.
    Pe(usize),
    /// A lane to it, or a service of its process, whatever its program does.
    Lane(usize),
    /// Any PE may end the wait.
    Any,
    /// Another thread, or a lane, of the PE that waits.
    Me,
}

impl fmt::Display for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitedFor::Pe(pe) | WaitedFor::Lane(pe) => write!(f, "PE {pe}"),
            WaitedFor::Any => f.write_str("any PE"),
            WaitedFor::Me => f.write_str("this PE"),
        }
    }
}

/// The waits of this PE's threads that have lasted for a while. Any thread may read them.
#[derive(Clone, Debug, Default)]
pub struct LongWaits(Arc<Mutex<Vec<Entry>>>);

/// One of them.
#[derive(Debug)]
struct Entry {
    call: &'static str,
    whom: WaitedFor,
    what: String,
    since: Instant,
    thread: std::thread::ThreadId,
}

impl LongWaits {
    fn list(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, for the launcher.
    pub fn all(&self) -> Vec<Waiting> {
        let list = self.list();
        let as_waiting = |entry: &Entry| Waiting {
            call: entry.call.into(),
            whom: match entry.whom {
                WaitedFor::Pe(pe) => Awaited::Rank(pe as u32),
                WaitedFor::Lane(pe) => Awaited::Lane(pe as u32),
                WaitedFor::Any => Awaited::Any,
                WaitedFor::Me => Awaited::Itself,
            },
            what: entry.what.clone(),
            lasted: entry.since.elapsed(),
        };
        list.iter().map(as_waiting).collect()
    }

    /// Adds a wait of this thread.
    pub(crate) fn add(&self, call: &'static str, whom: WaitedFor, what: String, since: Instant) {
        let thread = std::thread::current().id();
        self.list().push(Entry {
            call,
            whom,
            what,
            since,
            thread,
        });
    }

    /// Removes the last wait of this thread: a wait within a wait ends first.
    pub(crate) fn remove(&self) {
        let me = std::thread::current().id();
        let mut list = self.list();
        if let Some(at) = list.iter().rposition(|entry| entry.thread == me) {
            list.remove(at);
        }
    }
}
