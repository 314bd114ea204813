//! Runs of a few operations under many schedules.

use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};

use oxshmem::testing::spmd_with;
use oxshmem::{Error, MemoryKind, Result, Sym, World};
use oxshmem_transport::{Pe, Schedule};
use oxshmem_weak::{Machine, Plan};

use crate::path::Setup;

/// A PE's observation in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No information about the order.
    Nothing,
    /// The two effects in the right order.
    Held,
    /// The two effects in the wrong order.
    Broken,
}

impl Seen {
    pub fn held(holds: bool) -> Seen {
        if holds { Seen::Held } else { Seen::Broken }
    }
}

/// The observations of many runs.
#[derive(Debug, Default)]
pub struct Found {
    /// Runs in which some PE saw the right order.
    pub held: u64,
    /// The first run with a wrong order, in words.
    pub broken: Option<String>,
}

/// Words of each kind of memory.
pub const WORDS: usize = 4;

/// One PE in a run.
pub struct At<'w> {
    pub world: &'w World,
    pub me: usize,
    /// The run's number, from 1.
    pub run: u64,
    host: Sym<u64>,
    gpu: Option<Sym<u64>>,
    machine: &'w Machine,
    gpu_base: usize,
    schedule: Arc<dyn Schedule>,
}

impl At<'_> {
    /// A word of memory of this kind.
    pub fn word(&self, kind: MemoryKind, index: usize) -> Result<Sym<u64>> {
        match (kind, self.gpu) {
            (MemoryKind::Host, _) => self.host.at(index),
            (_, gpu) => gpu.unwrap().at(index),
        }
    }

    /// Several words of memory of this kind.
    pub fn words(&self, kind: MemoryKind, which: std::ops::Range<usize>) -> Result<Sym<u64>> {
        match (kind, self.gpu) {
            (MemoryKind::Host, _) => self.host.range(which),
            (_, gpu) => gpu.unwrap().range(which),
        }
    }

    /// A load of a word of its memory by this PE's GPU.
    pub fn gpu_reads(&self, word: Sym<u64>) -> u64 {
        let (me, addr) = (Pe(self.me as u32), self.gpu_base + word.offset() as usize);
        let (storage, at) = self.machine.registered(me, addr, 8).unwrap();
        let mut bytes = [0; 8];
        self.machine.load(me, &storage, at, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Polls a few times, until the condition holds.
    pub fn in_a_few_polls(&self, poll: impl Fn() -> Result<bool>) -> Result<bool> {
        for _ in 0..4 {
            if poll()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets other PEs run.
    pub fn pause(&self) {
        self.schedule.yield_point();
    }

    /// Sets this PE's words to 0.
    fn clear(&self) -> Result<()> {
        self.world.write(self.host, &[0; WORDS])?;
        if let Some(gpu) = self.gpu {
            self.world.put(gpu, &[0; WORDS], self.me)?;
        }
        self.world.quiet()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` on every PE under up to `runs` schedules, until one shows a wrong order. `confirm`
/// checks each PE's world before.
pub fn explore(
    setup: &Setup,
    runs: u64,
    confirm: impl Fn(&World) + Sync,
    body: impl Fn(&At<'_>) -> Result<Seen> + Sync,
) -> Found {
    let built = setup.build();
    let together = Barrier::new(setup.pes);
    let shared: Mutex<(Found, Option<Error>)> = Mutex::default();
    let one_pe = |world: &World| -> Result<()> {
        confirm(world);
        let mut at = At {
            world,
            me: world.my_pe(),
            run: 0,
            host: world.alloc_zeroed(WORDS)?,
            gpu: if setup.has_gpus() {
                Some(world.alloc_on(MemoryKind::Cuda, WORDS)?)
            } else {
                None
            },
            machine: &built.machine,
            gpu_base: built.gpu_base,
            schedule: built.scheduler.schedule(Pe(world.my_pe() as u32)),
        };
        for seed in 0..runs {
            at.run = seed + 1;
            let cleared = at.clear();
            if at.me == 0 {
                built.scheduler.plan(Plan::Random(seed));
            }
            together.wait();
            let seen = cleared.and_then(|()| {
                let _turn = built.scheduler.enter(at.me);
                body(&at)
            });
            together.wait();
            match seen {
                Ok(Seen::Nothing) => {}
                Ok(Seen::Held) => held(&shared).0.held += 1,
                Ok(Seen::Broken) => {
                    let steps = built.scheduler.trace().steps.join("\n  ");
                    let words = format!("seed {seed}, PE {}:\n  {steps}", at.me);
                    held(&shared).0.broken.get_or_insert(words);
                }
                Err(error) => {
                    held(&shared).1.get_or_insert(error);
                }
            }
            together.wait();
            let shared = held(&shared);
            if shared.1.is_some() || shared.0.broken.is_some() {
                break;
            }
        }
        Ok(())
    };
    let ended = spmd_with(built.builder.clone(), setup.pes, one_pe);
    let (mut found, error) = shared.into_inner().unwrap();
    if let Some(error) = error.or(ended.err()) {
        // The library may itself notice that a needed order is missing.
        assert!(setup.omit.is_some(), "{setup:?}: {error}");
        found.broken.get_or_insert(error.to_string());
    }
    found
}
