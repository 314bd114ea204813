//! Callbacks at this process's end, by which process managers are told of it.
//!
//! Callbacks run at a normal end, which counts as status 0, or from [`notify`] before `_exit`. They run on whatever thread ends
//! the process, while other threads may hold any lock: neither this file nor a callback waits for one. Two threads may
//! end the process at the same time, so a callback must do nothing when it is called again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// This process's callbacks.
static HOOK: ExitHook = ExitHook::new();

/// An interface to a process manager. Each has one callback; they are called in this order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interface {
    Pmi,
    Pmix,
}

/// Has `callback` called with the status when this process ends. A later one of the same interface changes nothing.
pub(crate) fn register(interface: Interface, callback: fn(i32)) {
    if HOOK.add(interface, callback, std::process::id()) {
        // SAFETY: the function may be called at any exit. If it cannot be, the manager tells of an improper end.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    notify(0);
}

/// Calls the callbacks: this process ends with this status.
pub(crate) fn notify(status: i32) {
    HOOK.call(status, std::process::id());
}

/// The callbacks of one process. Its children inherit them, and call none.
struct ExitHook {
    /// The process that registered last. 0 before the first.
    process: AtomicU32,
    callbacks: [OnceLock<fn(i32)>; 2],
}

impl ExitHook {
    const fn new() -> ExitHook {
        ExitHook {
            process: AtomicU32::new(0),
            callbacks: [const { OnceLock::new() }; 2],
        }
    }

    /// Adds a callback; true for the first of all.
    fn add(&self, interface: Interface, callback: fn(i32), process: u32) -> bool {
        if let Some(slot) = self.callbacks.get(interface as usize) {
            let _ = slot.set(callback);
        }
        // Relaxed: the sessions that callbacks end lie behind locks of their own.
        self.process.swap(process, Ordering::Relaxed) == 0
    }

    fn call(&self, status: i32, process: u32) {
        if self.process.load(Ordering::Relaxed) == process {
            self.callbacks
                .iter()
                .filter_map(OnceLock::get)
                .for_each(|callback| callback(status));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn interfaces_are_told_in_order_and_a_child_tells_none() {
        static CALLS: Mutex<Vec<(&str, i32)>> = Mutex::new(Vec::new());
        fn other(_: i32) {
            panic!("a second callback of one interface");
        }
        let calls = || std::mem::take(&mut *CALLS.lock().unwrap());
        let pmi = |status: i32| CALLS.lock().unwrap().push(("PMI", status));
        let pmix = |status: i32| CALLS.lock().unwrap().push(("PMIx", status));
        let (parent, child) = (7, 8);

        let hook = ExitHook::new();
        hook.call(1, parent);
        assert!(calls().is_empty());
        assert!(hook.add(Interface::Pmix, pmix, parent));
        hook.call(0, parent);
        assert_eq!(calls(), [("PMIx", 0)]);
        assert!(!hook.add(Interface::Pmi, pmi, parent));
        assert!(!hook.add(Interface::Pmix, other, parent));
        hook.call(3, parent);
        assert_eq!(calls(), [("PMI", 3), ("PMIx", 3)]);

        hook.call(0, child);
        assert!(calls().is_empty());
        // A child that joins a job of its own inherited the handler of the exit, too.
        assert!(!hook.add(Interface::Pmi, other, child));
        hook.call(0, child);
        assert_eq!(calls(), [("PMI", 0), ("PMIx", 0)]);
    }
}
