//! Two searches at once, since only one thread of a machine runs at a time.

use std::sync::Mutex;
use std::thread;

/// Calls `each` with all of `work`, on two threads.
pub fn two_at_once<T: Send>(work: Vec<T>, each: impl Fn(T) + Sync) {
    let left = Mutex::new(work.into_iter());
    let next = || left.lock().ok()?.next();
    let some = || {
        while let Some(piece) = next() {
            each(piece);
        }
    };
    thread::scope(|scope| {
        scope.spawn(some);
        some();
    });
}
