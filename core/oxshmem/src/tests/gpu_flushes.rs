//! Flushes of GPUs that a quiet asks other PEs for (M27), over a transport with messages and over one without.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};

use oxshmem_engine::am::pending_replies::{ReplyReader, SLOTS};
use oxshmem_engine::lane::remote::LanePeer;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{
    Capabilities, Device, Domain, GpuFlush, Guarantees, Job, MemoryKind, Transport, forward,
};
use oxshmem_weak::simulated_gpu_memory;

use crate::config::MemoryModel;
use crate::context::options::ContextOptions;
use crate::error::{Error, Result};
use crate::sym::Sym;
use crate::testing::spmd_with;
use crate::tests::lanes::LIMIT;
use crate::world::World;

const PES: usize = 4;
const MIB: usize = 1 << 20;

/// The flushes of all PEs' GPUs.
#[derive(Debug, Default)]
struct Flushes {
    /// By PE.
    made: [AtomicUsize; PES],
    /// How many flushes must be under way before one ends.
    together: AtomicUsize,
    under_way: Mutex<usize>,
    begun: Condvar,
    fails: AtomicBool,
}

impl Flushes {
    fn made(&self) -> [usize; PES] {
        std::array::from_fn(|pe| self.made[pe].load(Ordering::SeqCst))
    }

    /// One flush, which ends when as many as must be are under way; gives whether they came.
    fn make(&self, pe: usize) -> bool {
        self.made[pe].fetch_add(1, Ordering::SeqCst);
        let together = self.together.load(Ordering::SeqCst);
        let mut under_way = self.under_way.lock().unwrap();
        *under_way += 1;
        self.begun.notify_all();
        let waited = self
            .begun
            .wait_timeout_while(under_way, LIMIT / 4, |under_way| *under_way < together);
        let (_guard, waited) = waited.unwrap();
        !waited.timed_out() && !self.fails.load(Ordering::SeqCst)
    }
}

/// A transport whose data in a GPU's memory need a flush there.
#[derive(Clone, Debug)]
struct Flushed {
    inner: Tiny,
    messages: bool,
    flushes: Arc<Flushes>,
}

// SAFETY: it hands on what it was given, as it was given.
unsafe impl Transport for Flushed {
    fn name(&self) -> &'static str {
        "flushed"
    }

    fn probe(&self) -> oxshmem_transport::Result<Vec<Device>> {
        self.inner.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> oxshmem_transport::Result<Arc<dyn Domain>> {
        let inner = self.inner.open(device, job)?;
        let mut capabilities = inner.capabilities().clone();
        if !self.messages {
            capabilities.message = 0;
        }
        Ok(Arc::new(FlushedDomain {
            inner,
            capabilities,
            pe: job.me.index(),
            flushes: Arc::clone(&self.flushes),
        }))
    }
}

#[derive(Debug)]
struct FlushedDomain {
    inner: Arc<dyn Domain>,
    capabilities: Capabilities,
    pe: usize,
    flushes: Arc<Flushes>,
}

impl Domain for FlushedDomain {
    forward!(accept, address, explain, import, inbox, lane => inner);
    forward!(peer_lost, reach, register, register_local, schedule, shutdown, wants_descriptor => inner);

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        let mut promised = self.inner.guarantees(kind)?;
        if kind == MemoryKind::Cuda {
            promised.gpu_flush = GpuFlush::Target;
        }
        Some(promised)
    }

    fn make_visible(&self, _: MemoryKind) -> oxshmem_transport::Result<()> {
        match self.flushes.make(self.pe) {
            true => Ok(()),
            false => Err(oxshmem_transport::Error::Unsupported {
                transport: "flushed",
                what: "a flush of a GPU that is to fail".into(),
            }),
        }
    }
}

/// Objects of all PEs.
#[derive(Clone, Copy)]
struct Objects {
    /// In GPU memory.
    x: Sym<u64>,
    /// In host memory; messages perform its atomics.
    word: Sym<u32>,
}

/// Runs PE 0 beside PEs that make no call meanwhile. All have connected with each other.
fn beside_silent_pes(
    messages: bool,
    model: MemoryModel,
    first: impl Fn(&World, Objects, &Flushes) -> Result<()> + Sync,
) {
    let flushes = Arc::new(Flushes::default());
    let transport = Flushed {
        inner: Tiny::nic(),
        messages,
        flushes: Arc::clone(&flushes),
    };
    let builder = World::builder()
        .transports(vec![Arc::new(transport)])
        .model(model)
        .timeout(LIMIT)
        .heap_limit(MIB)
        .gpu_memory(|_| match simulated_gpu_memory(MIB) {
            Some(memory) => Ok(Box::new(memory)),
            None => Err("no memory".into()),
        });
    let silence = Barrier::new(PES);
    let ended = spmd_with(builder, PES, |world| {
        let x = world.alloc_on::<u64>(MemoryKind::Cuda, 8)?;
        let word = world.alloc_zeroed(1)?;
        for pe in 0..PES {
            world.p(x.at(0)?, 1, pe)?;
        }
        world.barrier_all()?;
        silence.wait();
        let done = match world.my_pe() {
            0 => first(world, Objects { x, word }, &flushes),
            _ => Ok(()),
        };
        silence.wait();
        done?;
        world.free(word)?;
        world.free(x)
    });
    assert!(ended.is_ok(), "{ended:?}");
}

/// The requests that a PE has sent by its bootstrap.
fn requests(world: &World) -> u64 {
    world.worker.engine.requests.made()
}

fn put_to_all(world: &World, x: Sym<u64>, value: u64) -> Result<()> {
    (1..PES).try_for_each(|pe| world.p(x.at(1)?, value, pe))
}

#[test]
fn m27_a_quiet_asks_all_gpus_by_messages_and_waits_then() {
    beside_silent_pes(
        true,
        MemoryModel::Ordered,
        |world, Objects { x, .. }, flushes| {
            let (before, asked) = (flushes.made(), requests(world));
            flushes.together.store(PES - 1, Ordering::SeqCst);
            *flushes.under_way.lock().unwrap() = 0;
            put_to_all(world, x, 7)?;
            assert_eq!(flushes.made(), before);
            world.quiet()?;
            let expected = [before[0], before[1] + 1, before[2] + 1, before[3] + 1];
            assert_eq!(flushes.made(), expected);
            assert_eq!(requests(world), asked, "requests by the bootstrap");
            // Nothing is due any more.
            world.quiet()?;
            assert_eq!(flushes.made(), expected);
            Ok(())
        },
    );
}

#[test]
fn m27_a_quiet_towards_some_pes_leaves_the_other_gpus_due() {
    beside_silent_pes(
        true,
        MemoryModel::Ordered,
        |world, Objects { x, .. }, flushes| {
            let (mut expected, asked) = (flushes.made(), requests(world));
            put_to_all(world, x, 7)?;
            for pe in [2, 1, 3] {
                world.pe_quiet(&[pe])?;
                expected[pe] += 1;
                assert_eq!(flushes.made(), expected);
            }
            assert_eq!(requests(world), asked, "requests by the bootstrap");
            Ok(())
        },
    );
}

#[test]
fn m27_where_a_transport_has_no_messages_the_bootstrap_asks() {
    beside_silent_pes(
        false,
        MemoryModel::Ordered,
        |world, Objects { x, .. }, flushes| {
            let (before, asked) = (flushes.made(), requests(world));
            put_to_all(world, x, 7)?;
            world.quiet()?;
            let expected = [before[0], before[1] + 1, before[2] + 1, before[3] + 1];
            assert_eq!(flushes.made(), expected);
            assert_eq!(requests(world), asked + 3);
            Ok(())
        },
    );
}

#[test]
fn m27_in_the_relaxed_model_a_quiet_asks_no_gpu() {
    beside_silent_pes(
        true,
        MemoryModel::Relaxed,
        |world, Objects { x, .. }, flushes| {
            let (before, asked) = (flushes.made(), requests(world));
            put_to_all(world, x, 7)?;
            world.quiet()?;
            assert_eq!(flushes.made(), before);
            assert_eq!(requests(world), asked);
            Ok(())
        },
    );
}

#[test]
fn m27_a_gpu_that_cannot_be_flushed_fails_the_quiet_until_it_can() {
    for messages in [true, false] {
        beside_silent_pes(
            messages,
            MemoryModel::Ordered,
            |world, Objects { x, .. }, flushes| {
                let before = flushes.made();
                put_to_all(world, x, 7)?;
                flushes.fails.store(true, Ordering::SeqCst);
                let error = world.quiet().unwrap_err();
                assert!(
                    matches!(error, Error::FailedElsewhere { pe: 1, .. }),
                    "{error}"
                );
                let asked = [before[0], before[1] + 1, before[2] + 1, before[3] + 1];
                assert_eq!(flushes.made(), asked);
                flushes.fails.store(false, Ordering::SeqCst);
                world.quiet()?;
                let again = [asked[0], asked[1] + 1, asked[2] + 1, asked[3] + 1];
                assert_eq!(flushes.made(), again);
                Ok(())
            },
        );
    }
}

/// Other contexts' messages leave room for one: the requests go one after the other.
#[test]
fn m27_a_quiet_with_room_for_one_message_asks_all_gpus() {
    beside_silent_pes(
        true,
        MemoryModel::Ordered,
        |world, Objects { x, .. }, flushes| {
            let before = flushes.made();
            let other = world.create_context(ContextOptions::NONE)?;
            let index = world.worker.engine.routes.paths_to(1).gpu.transport();
            let endpoint = &other.worker.state.lanes.endpoints[index.unwrap()];
            for _ in 1..SLOTS {
                let peer = LanePeer { endpoint, pe: 1 };
                other.worker.claim_slot(peer, ReplyReader::Call)?;
            }
            put_to_all(world, x, 7)?;
            world.quiet()?;
            let expected = [before[0], before[1] + 1, before[2] + 1, before[3] + 1];
            assert_eq!(flushes.made(), expected);
            drop(other);
            Ok(())
        },
    );
}

/// Replies to messages of one context's atomics and flushes, each of which takes its own.
#[test]
fn m27_atomics_and_flushes_take_their_own_replies() {
    beside_silent_pes(
        true,
        MemoryModel::Ordered,
        |world, Objects { x, word }, flushes| {
            let before = flushes.made();
            let mut sum = 0;
            for round in 0..100_u64 {
                put_to_all(world, x, round)?;
                for pe in 1..PES {
                    world.add(word, 1, pe)?;
                    sum += world.fetch_add(word, 1, pe)?;
                }
                world.quiet()?;
            }
            // The old values are 1, 3, 5 and so on, at each of three PEs.
            assert_eq!(sum, 3 * 100 * 100);
            let expected = [before[0], before[1] + 100, before[2] + 100, before[3] + 100];
            assert_eq!(flushes.made(), expected);
            Ok(())
        },
    );
}
