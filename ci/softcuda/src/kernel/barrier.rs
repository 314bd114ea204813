//! `__syncthreads` among the threads of a block.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::sync::lock;

#[derive(Default)]
struct Count {
    members: usize,
    arrived: usize,
    round: u64,
}

/// A barrier whose members may leave for good: a thread that ends counts as arrived from then on.
pub(crate) struct BlockBarrier {
    count: Mutex<Count>,
    changed: Condvar,
}

impl BlockBarrier {
    pub(crate) fn new(members: usize) -> BlockBarrier {
        let count = Mutex::new(Count {
            members,
            ..Count::default()
        });
        BlockBarrier {
            count,
            changed: Condvar::new(),
        }
    }

    fn wait(&self) {
        let mut count = lock(&self.count);
        count.arrived += 1;
        if count.arrived == count.members {
            self.next_round(&mut count);
            return;
        }
        let round = count.round;
        while count.round == round {
            count = self
                .changed
                .wait(count)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn leave(&self) {
        let mut count = lock(&self.count);
        count.members -= 1;
        if count.arrived > 0 && count.arrived == count.members {
            self.next_round(&mut count);
        }
    }

    fn next_round(&self, count: &mut Count) {
        count.arrived = 0;
        count.round += 1;
        self.changed.notify_all();
    }
}

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<Arc<BlockBarrier>>> = const { RefCell::new(None) };
}

/// Sets the block that the calling thread belongs to.
pub(crate) fn enter(barrier: Option<Arc<BlockBarrier>>) {
    OF_THIS_THREAD.set(barrier);
}

/// The kernels' `__syncthreads`. Without a block it returns at once.
pub(crate) extern "C" fn syncthreads() {
    let barrier = OF_THIS_THREAD.with_borrow(Clone::clone);
    if let Some(barrier) = barrier {
        barrier.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn nobody_passes_before_all_have_come_and_who_left_is_not_awaited() {
        const THREADS: usize = 8;
        let barrier = Arc::new(BlockBarrier::new(THREADS));
        let came = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (barrier, came) = (&barrier, &came);
                scope.spawn(move || {
                    if thread > 0 {
                        for round in 1..=20 {
                            came.fetch_add(1, Ordering::SeqCst);
                            barrier.wait();
                            assert!(came.load(Ordering::SeqCst) >= round * (THREADS - 1));
                            barrier.wait();
                        }
                    }
                    barrier.leave();
                });
            }
        });
        assert_eq!(came.load(Ordering::SeqCst), 20 * (THREADS - 1));
    }
}
