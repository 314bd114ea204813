//! PEs that leave while others wait for the completion of their last operation towards them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{Device, Domain, Error, Job, Pe, Result, Transport, forward};

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
