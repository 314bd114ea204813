//! State published by a domain to its lanes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// State that a domain changes rarely and its lanes read with every operation. Lanes work on private copies. A
/// generation, which grows with each change, tells them when their copy is old: one load, no lock.
#[derive(Debug, Default)]
pub struct Published<S> {
    generation: AtomicU64,
    state: Mutex<S>,
}

impl<S: Clone> Published<S> {
    /// Publishes the first state.
    pub fn new(state: S) -> Published<S> {
        Published {
            generation: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, S> {
        // No change unwinds halfway, so poison means nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of changes so far.
    #[inline]
    pub fn generation(&self) -> u64 {
        // Acquire: a reader that sees a change's generation sees all that happened before it, as the
        // caller of `Domain::import` expects of the lanes that it uses next.
        self.generation.load(Ordering::Acquire)
    }

    /// A copy of the state, with its generation.
    pub fn copy(&self) -> (u64, S) {
        let state = self.lock();
        (self.generation(), state.clone())
    }

    /// Reads the state, under its lock.
    pub fn read<R>(&self, read: impl FnOnce(&S) -> R) -> R {
        read(&self.lock())
    }

    /// Changes the state. `change` does not panic.
    pub fn change(&self, change: impl FnOnce(&mut S)) {
        let mut state = self.lock();
        change(&mut state);
        // Release: pairs with the load in `generation`. The state itself is behind the lock.
        self.generation.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_its_number_and_a_copy_stays_as_it_was() {
        let published = Published::new(vec![1]);
        let (number, copy) = published.copy();
        assert_eq!(published.generation(), number);
        published.change(|state| state.push(2));
        assert_ne!(published.generation(), number);
        assert_eq!(copy, [1]);
        assert_eq!(published.copy().1, [1, 2]);
        assert_eq!(published.read(Vec::len), 2);
    }
}
