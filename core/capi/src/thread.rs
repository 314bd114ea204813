//! Identities of this process's threads.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::without_provenance;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A thread. Rust's own identifier cannot be had any more while a process exits, and the system reuses its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread(u64);

impl Thread {
    pub(crate) fn current() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static OWN: Cell<u64> = const { Cell::new(0) };
        }
        if OWN.get() == 0 {
            OWN.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        Thread(OWN.get())
    }

    /// The same, and its [end](Self::has_ended) is noted. One thread at a time is watched: the last.
    pub(crate) fn current_and_watched() -> Self {
        /// The key by which the C library calls `note_end` at a thread's end; none if there are no more keys.
        static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
        let thread = Thread::current();
        WATCHED.store(thread.0, Ordering::Relaxed);
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: writes a key to a variable. The library stays loaded for as long as it is in use.
            let status = unsafe { libc::pthread_key_create(&raw mut key, Some(note_end)) };
            (status == 0).then_some(key)
        });
        if let Some(key) = key {
            // A number, not null. Where it cannot be kept the thread counts as alive.
            let number = without_provenance::<c_void>(thread.0 as usize);
            // SAFETY: the key was made.
            unsafe { libc::pthread_setspecific(*key, number) };
        }
        thread
    }

    /// Whether this thread, which was watched last, has ended. The main thread, too, ends by `pthread_exit`, though the
    /// system still has its number.
    pub(crate) fn has_ended(self) -> bool {
        // Acquire: the thread's last stores are seen.
        WATCHED.load(Ordering::Acquire) != self.0
    }
}

/// The number of the watched thread, until it ends.
static WATCHED: AtomicU64 = AtomicU64::new(0);

/// Called at the end of a thread that was watched once.
unsafe extern "C" fn note_end(number: *mut c_void) {
    let number = number.addr() as u64;
    // Release: pairs with `has_ended`. A thread that is watched no more does not matter.
    let _ = WATCHED.compare_exchange(number, 0, Ordering::Release, Ordering::Relaxed);
}
