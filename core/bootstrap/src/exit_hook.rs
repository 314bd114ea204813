//! Callbacks at this process's end, by which process managers are told of it.
//!
//! A callback runs once for each end: at a normal one (its status counts as 0), or from [`notify`] before `_exit`. It runs on
//! whatever thread ends the process, while others may hold any lock. So nothing here waits for a lock, nor may a callback.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process whose end is told; its children's are not. 0 while no callback is registered.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The callbacks, in the order in which they are called.
static CALLBACKS: [OnceLock<fn(i32)>; 2] = [const { OnceLock::new() }; 2];

/// An interface to a process manager. Each has one callback.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interface {
    Pmi,
    Pmix,
}

/// Has `callback` called with the status when this process exits. A later one of the same interface changes nothing.
pub(crate) fn register(interface: Interface, callback: fn(i32)) {
    if let Some(slot) = CALLBACKS.get(interface as usize) {
        let _ = slot.set(callback);
    }
    // Relaxed: the sessions that callbacks end lie behind locks of their own.
    if PROCESS.swap(std::process::id(), Ordering::Relaxed) == 0 {
        // SAFETY: the function may be called at any exit. If it cannot be, the manager tells of an improper end.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    notify(0);
}

/// Calls the callbacks: this process ends with this status.
pub(crate) fn notify(status: i32) {
    if PROCESS.load(Ordering::Relaxed) == std::process::id() {
        CALLBACKS
            .iter()
            .filter_map(OnceLock::get)
            .for_each(|callback| callback(status));
    }
}
