//! The pool over a lane that completes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use oxshmem_transport::{Posted, RegionId, Remote};

use super::*;

/// The test takes each step.
#[derive(Debug)]
struct Directed;

impl Choices for Directed {
    fn choose(&self, _: usize) -> usize {
        0
    }

    fn mode(&self, _: Pe) -> Mode {
        Mode::Directed
    }
}

/// Takes all and completes nothing; counts the calls by which it may learn of a loss.
#[derive(Debug, Default)]
struct Slow {
    calls: Arc<AtomicUsize>,
    counters: Counters,
}

impl Lane for Slow {
    fn endpoint(&mut self, _: Pe) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn connect(&mut self, _: Pe, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn post(&mut self, _: Pe, ops: &[Op]) -> Posted {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.counters.posted += ops.len() as u64;
        Posted::all(ops.len())
    }

    fn progress(&mut self) -> Result<()> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn counters(&self, _: Pe) -> Counters {
        self.counters
    }
}

#[test]
fn a_copied_source_is_kept_until_the_wrapped_lane_was_called_after_a_loss() {
    let choices = Arc::new(Directed);
    let pool = Pool::new("test", Pe(0), Settings::worst(0), choices, None, true);
    let slow = Slow::default();
    let calls = Arc::clone(&slow.calls);
    let lane = pool.add_lane(Box::new(slow));
    let mut bytes = [7_u8; 8];
    let put = Op::Put {
        from: Local {
            addr: bytes.as_mut_ptr(),
            len: bytes.len(),
            key: None,
        },
        to: Remote {
            region: RegionId(0),
            offset: 0,
        },
    };
    // SAFETY: the bytes outlive the pool's use of them: they are copied.
    let posted = unsafe { pool.post(lane, Pe(1), put) };
    assert!(matches!(posted, Status::All));
    // The lane has it from here on.
    pool.step(0);
    let before = calls.load(Ordering::SeqCst);
    assert!(before > 0);
    pool.cancel(Pe(1));
    assert!(calls.load(Ordering::SeqCst) > before);
    assert!(pool.lock().pending.is_empty());
}
