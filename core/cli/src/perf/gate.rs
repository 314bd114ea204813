//! A start that several threads make together, or not at all.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

const SHUT: u8 = 0;
const OPEN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The gate that threads wait at.
#[derive(Debug, Default)]
pub struct Gate {
    waiting: AtomicUsize,
    state: AtomicU8,
}

/// The right to open the gate. If it is dropped unused, all waiting and later threads are turned
/// away.
#[derive(Debug)]
pub struct Opening<'g>(&'g Gate);

impl Gate {
    pub fn opening(&self) -> Opening<'_> {
        Opening(self)
    }

    /// Waits, and yields the processor to others. Returns whether the gate was opened.
    pub fn pass(&self) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        loop {
            // Acquire: pairs with the Release in `open`; everything before the opening is visible.
            match self.state.load(Ordering::Acquire) {
                SHUT => std::thread::yield_now(),
                state => return state == OPEN,
            }
        }
    }
}

impl Opening<'_> {
    /// Waits until so many threads are at the gate. They must have been started.
    pub fn expect(&self, threads: usize) {
        while self.0.waiting.load(Ordering::Relaxed) < threads {
            std::thread::yield_now();
        }
    }

    pub fn open(self) {
        // Release: pairs with the Acquire in `pass`.
        self.0.state.store(OPEN, Ordering::Release);
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        // No effect if it is already open.
        let shut = self.0.state.load(Ordering::Relaxed) == SHUT;
        if shut {
            self.0.state.store(GIVEN_UP, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(start: impl FnOnce(Opening<'_>)) -> Vec<bool> {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let opening = gate.opening();
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| gate.pass())).collect();
            start(opening);
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        })
    }

    #[test]
    fn all_pass_when_it_opens() {
        let opened = passed(|opening| {
            opening.expect(3);
            opening.open();
        });
        assert_eq!(opened, [true; 3]);
    }

    #[test]
    fn nobody_waits_for_ever_where_it_is_given_up() {
        assert_eq!(passed(|opening| drop(opening)), [false; 3]);
    }
}
