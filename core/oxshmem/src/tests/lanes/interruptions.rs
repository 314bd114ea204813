//! Connections that are interrupted, and made again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use oxshmem_engine::am::pending_replies::ReplyReader;
use oxshmem_engine::lane::remote::LanePeer;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{Device, Domain, Error, Job, Pe, Result, Transport, forward};

use crate::tests::am;
use crate::tests::lanes::{
    LIMIT, beside_a_living_pe, beside_living_pes, cut_off, is_lost, watched,
};
use crate::world::World;

fn interruption(pe: u32) -> Error {
    Error::Interrupted {
        transport: "watched",
        pe: Pe(pe),
        why: "the link was down".into(),
    }
}

#[test]
fn an_interrupted_connection_is_made_again_by_the_wait_that_finds_it() {
    beside_a_living_pe(|world, x| {
        world.p(x, 7, 1)?;
        world.quiet()?;
        let asked = watched(world);
        let connects = || asked.connects.load(Ordering::SeqCst);
        for round in 1..=3 {
            asked.fail(interruption(1));
            assert_eq!((world.g(x, 1)?, connects()), (7, round));
        }
        let mut word = 0;
        world.scope(|scope| {
            scope.get_nbi(std::slice::from_mut(&mut word), x, 1)?;
            asked.fail(interruption(1));
            Ok(())
        })?;
        assert_eq!((word, connects()), (7, 4));
        cut_off(world);
        Ok(())
    });
}

#[test]
fn an_interruption_towards_a_pe_that_is_lost_is_its_loss() {
    beside_a_living_pe(|world, x| {
        world.p(x, 7, 1)?;
        let asked = watched(world);
        cut_off(world);
        asked.fail(interruption(1));
        is_lost(world.g(x, 1));
        assert_eq!(asked.connects.load(Ordering::SeqCst), 0);
        Ok(())
    });
}

/// The reply may have been lost with the connection, and nothing would tell.
#[test]
fn a_connection_with_an_unanswered_message_is_not_made_again() {
    let builder = World::builder().transports(vec![Arc::new(Tiny::nic())]);
    beside_living_pes::<u32>(builder, (2, 1), |world, x| {
        world.inc(x, 1)?;
        world.quiet()?;
        let endpoint = am::lane(world, x, 1);
        world
            .worker
            .claim_slot(LanePeer { endpoint, pe: 1 }, ReplyReader::Nobody)?;
        let asked = watched(world);
        asked.fail(interruption(1));
        is_lost(world.inc(x, 1).and_then(|()| world.quiet()));
        assert_eq!(asked.connects.load(Ordering::SeqCst), 0);
        Ok(())
    });
}

/// A transport whose PEs accept no lane, once they are held, before each of the others was asked, too.
#[derive(Clone, Debug, Default)]
struct Together {
    inner: Tiny,
    is_held: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct TogetherDomain {
    together: Together,
    inner: Arc<dyn Domain>,
}

/// The PEs beside PE 0.
const OTHERS: usize = 3;

// SAFETY: every call is forwarded as it is to a transport that keeps the promises.
unsafe impl Transport for Together {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.inner.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Ok(Arc::new(TogetherDomain {
            together: self.clone(),
            inner: self.inner.open(device, job)?,
        }))
    }
}

impl Domain for TogetherDomain {
    forward!(address, capabilities, guarantees, import, lane, peer_lost, reach, register, shutdown => inner);

    fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        let Together { is_held, asked, .. } = &self.together;
        if is_held.load(Ordering::SeqCst) {
            asked.fetch_add(1, Ordering::SeqCst);
            let since = Instant::now();
            while asked.load(Ordering::SeqCst) < OTHERS {
                assert!(since.elapsed() < LIMIT, "not all were asked");
                std::thread::yield_now();
            }
        }
        self.inner.accept(pe, endpoint)
    }
}

/// None of the PEs replies before all were asked, so waits for them one after another would not end.
#[test]
fn connections_with_several_pes_are_made_again_at_one_time() {
    let together = Together::default();
    let transports: Vec<Arc<dyn Transport>> = vec![Arc::new(together.clone())];
    let builder = World::builder().transports(transports);
    beside_living_pes::<u64>(builder, (1 + OTHERS, 1), |world, x| {
        for pe in 1..=OTHERS {
            world.p(x, 7, pe)?;
        }
        world.quiet()?;
        let asked = watched(world);
        together.is_held.store(true, Ordering::SeqCst);
        let mut words = [0; OTHERS];
        world.scope(|scope| {
            for (word, pe) in words.iter_mut().zip(1..) {
                scope.get_nbi(std::slice::from_mut(word), x, pe)?;
                asked.fail(interruption(pe as u32));
            }
            Ok(())
        })?;
        assert_eq!(words, [7; OTHERS]);
        assert_eq!(asked.connects.load(Ordering::SeqCst), OTHERS);
        cut_off(world);
        Ok(())
    });
}
