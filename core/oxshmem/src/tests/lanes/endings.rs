//! PEs that leave while others wait for the completion of their last operation towards them, or while this one is busy
//! with another PE's connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{Device, Domain, Error, Job, Pe, Result, Transport, forward};

use crate::context::options::ContextOptions;
use crate::testing::spmd_with;
use crate::tests::lanes::{Asked, Fate, LIMIT, watched};
use crate::world::World;

/// Longer than all waits for the bootstrap's report together, and finite.
const SLOW: Duration = Duration::from_millis(2500);

/// A transport that takes long to end the paths to a PE, while its lanes report already that it does not answer.
#[derive(Clone, Debug)]
struct Slow {
    inner: Tiny,
    lanes: Arc<Mutex<Vec<Arc<Asked>>>>,
}

#[derive(Debug)]
struct SlowDomain {
    slow: Slow,
    inner: Arc<dyn Domain>,
}

// SAFETY: every call is forwarded as it is to a transport that keeps the promises.
unsafe impl Transport for Slow {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.inner.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Ok(Arc::new(SlowDomain {
            slow: self.clone(),
            inner: self.inner.open(device, job)?,
        }))
    }
}

impl Domain for SlowDomain {
    forward!(accept, address, capabilities, guarantees, import, lane, reach, register, shutdown => inner);

    fn peer_lost(&self, pe: Pe) {
        let lanes = std::mem::take(&mut *self.slow.lanes.lock().unwrap());
        for lane in &lanes {
            lane.fail(Error::PeerLost {
                transport: "slow",
                pe,
            });
        }
        if !lanes.is_empty() {
            std::thread::sleep(SLOW);
        }
        self.inner.peer_lost(pe);
    }
}

/// The bootstrap has reported that it left in order; the paths to it take a while to end.
#[test]
fn a_pe_that_leaves_is_none_that_died_while_the_ways_to_it_end() {
    let slow = Slow {
        inner: Tiny::default(),
        lanes: Arc::default(),
    };
    let transports: Vec<Arc<dyn Transport>> = vec![Arc::new(slow.clone())];
    let builder = World::builder().transports(transports).timeout(LIMIT);
    spmd_with(builder, 2, |world| {
        world.barrier_all()?;
        if world.my_pe() == 0 {
            let asked = watched(world);
            asked.decide(|_, _| Fate::Unanswered);
            slow.lanes.lock().unwrap().push(asked);
        }
        Ok(())
    })
    .unwrap();
    assert!(slow.lanes.lock().unwrap().is_empty(), "nobody left before");
}

/// A transport whose accepting of lanes lasts for as long as the test says.
#[derive(Clone, Debug)]
struct Held {
    inner: Tiny,
    accepting: Arc<Accepting>,
}

#[derive(Debug, Default)]
struct Accepting {
    /// Whether the lanes of PE 1 are held.
    is_held: AtomicBool,
    /// Whether one is.
    has_begun: AtomicBool,
}

#[derive(Debug)]
struct HeldDomain {
    accepting: Arc<Accepting>,
    inner: Arc<dyn Domain>,
}

// SAFETY: every call is forwarded as it is to a transport that keeps the promises.
unsafe impl Transport for Held {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.inner.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Ok(Arc::new(HeldDomain {
            accepting: Arc::clone(&self.accepting),
            inner: self.inner.open(device, job)?,
        }))
    }
}

impl Domain for HeldDomain {
    forward!(address, capabilities, guarantees, import, lane, peer_lost, reach, register, shutdown => inner);

    fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        let since = Instant::now();
        while pe == Pe(1) && self.accepting.is_held.load(Ordering::SeqCst) {
            self.accepting.has_begun.store(true, Ordering::SeqCst);
            assert!(since.elapsed() < LIMIT, "held for ever");
            std::thread::yield_now();
        }
        self.inner.accept(pe, endpoint)
    }
}

/// A device that takes long to connect keeps nobody from news.
#[test]
fn an_exit_is_heard_of_while_a_lane_is_being_accepted() {
    let held = Held {
        inner: Tiny::default(),
        accepting: Arc::default(),
    };
    let accepting = &held.accepting;
    let transports: Vec<Arc<dyn Transport>> = vec![Arc::new(held.clone())];
    let builder = World::builder().transports(transports).timeout(LIMIT);
    let heard = AtomicBool::new(false);
    let ended = spmd_with(builder, 3, |world| {
        let words = world.alloc::<u64>(1)?;
        world.barrier_all()?;
        accepting.is_held.store(true, Ordering::SeqCst);
        world.worker.engine.bootstrap.barrier()?;
        let until = |ready: &dyn Fn() -> bool| {
            let since = Instant::now();
            while !ready() && since.elapsed() < LIMIT / 2 {
                std::thread::yield_now();
            }
            ready()
        };
        match world.my_pe() {
            0 => {
                let is_lost = || world.worker.engine.liveness.is_lost(2);
                heard.store(until(&is_lost), Ordering::SeqCst);
                accepting.is_held.store(false, Ordering::SeqCst);
            }
            1 => {
                let context = world.create_context(ContextOptions::NONE)?;
                context.put(words, &[7], 0)?;
                context.quiet()?;
            }
            _ => assert!(until(&|| accepting.has_begun.load(Ordering::SeqCst))),
        }
        if world.my_pe() == 2 {
            // It leaves out of order.
            return Err(crate::error::Error::PeerLost {
                call: "test",
                pe: 2,
            });
        }
        Ok(())
    });
    assert!(ended.is_err());
    assert!(heard.load(Ordering::SeqCst), "the exit waited for the lane");
}
