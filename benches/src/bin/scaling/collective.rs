//! What a collective call costs: time, and how often the PEs' threads gave a CPU up.

use std::time::{Duration, Instant};

use oxshmem::{Result, Sym, World};
use serde::{Deserialize, Serialize};

/// Of one call.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The median of batches, in seconds.
    pub seconds: f64,
    /// The best batch: what disturbs the machine counts least there.
    pub best: f64,
    /// Switches of a PE's thread away from its CPU.
    pub switches: f64,
}

/// A batch takes at least this.
const BATCH: Duration = Duration::from_millis(3);
const BATCHES: usize = 21;

/// PE 0 tells the others how many calls a batch has.
pub struct Timer<'w> {
    world: &'w World,
    order: Sym<u64>,
    switches: Sym<u64>,
}

impl<'w> Timer<'w> {
    /// Collective.
    pub fn new(world: &'w World) -> Result<Self> {
        Ok(Timer {
            world,
            order: world.alloc_zeroed(1)?,
            switches: world.alloc_zeroed(1)?,
        })
    }

    /// Gives the memory back. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.switches)?;
        self.world.free(self.order)
    }

    /// Collective; the cost is the same on every PE but for its own clock: PE 0's counts.
    pub fn measure(&self, call: &dyn Fn() -> Result<()>) -> Result<Cost> {
        let world = self.world;
        let leads = world.my_pe() == 0;
        let mut calls = 1;
        let mut times = Vec::new();
        let mut switched = 0;
        let mut done = 0;
        loop {
            // 0 ends it.
            let next = if times.len() < BATCHES { calls } else { 0 };
            world.write(self.order, &[next])?;
            world.broadcast(self.order, self.order, 0)?;
            let count = world.g(self.order, world.my_pe())?;
            if count == 0 {
                break;
            }
            let (before, start) = (switches(), Instant::now());
            (0..count).try_for_each(|_| call())?;
            let took = start.elapsed();
            switched += switches() - before;
            done += count;
            if !leads {
                continue;
            }
            if took < BATCH && times.is_empty() {
                calls *= 2;
            } else {
                times.push(took.as_secs_f64() / count as f64);
            }
        }
        world.write(self.switches, &[switched])?;
        world.sum_reduce(self.switches, self.switches)?;
        let all = world.g(self.switches, world.my_pe())?;
        times.sort_by(f64::total_cmp);
        Ok(Cost {
            seconds: times.get(times.len() / 2).copied().unwrap_or_default(),
            best: times.first().copied().unwrap_or_default(),
            switches: all as f64 / done as f64 / world.n_pes() as f64,
        })
    }
}

/// How often this thread has given its CPU up, or lost it.
fn switches() -> u64 {
    // SAFETY: all bytes zero are such a struct, and the call writes nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}
