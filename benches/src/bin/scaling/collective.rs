//! The cost of a collective call: time, and context switches of the PEs' threads.

use std::time::{Duration, Instant};

use oxshmem::{Result, Sym, World};
use serde::{Deserialize, Serialize};

/// The cost of one call.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The median of batches, in seconds.
    pub seconds: f64,
    /// The best batch, which is the least disturbed.
    pub best: f64,
    /// Switches of a PE's thread away from its CPU.
    pub switches: f64,
}

/// The least duration of a batch.
const BATCH: Duration = Duration::from_millis(3);
const BATCHES: usize = 21;
/// Batches of a length that must all be long enough: a single one may have been disturbed.
const TRIALS: usize = 3;

/// The search for the number of calls in a batch, and the batches' times.
struct Batches {
    calls: u64,
    /// Batches of the present length in a row that took long enough; then the length is kept.
    long_enough: usize,
    /// Seconds of a call, for each batch.
    times: Vec<f64>,
}

impl Batches {
    fn new() -> Self {
        Batches {
            calls: 1,
            long_enough: 0,
            times: Vec::new(),
        }
    }

    /// Calls of the next batch; 0 after the last.
    fn next(&self) -> u64 {
        if self.times.len() < BATCHES {
            self.calls
        } else {
            0
        }
    }

    fn done(&mut self, took: Duration) {
        if self.long_enough == TRIALS {
            self.times.push(took.as_secs_f64() / self.calls as f64);
        } else if took < BATCH {
            self.calls *= 2;
            self.long_enough = 0;
        } else {
            self.long_enough += 1;
        }
    }
}

/// A timer with which PE 0 announces the number of calls in a batch.
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

    /// Frees the memory. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.switches)?;
        self.world.free(self.order)
    }

    /// Measures a call. Collective; the cost is the same on every PE except for its own clock: PE
    /// 0's counts.
    pub fn measure(&self, call: &dyn Fn() -> Result<()>) -> Result<Cost> {
        let world = self.world;
        let leads = world.my_pe() == 0;
        let mut batches = Batches::new();
        let mut switched = 0;
        let mut done = 0;
        loop {
            world.write(self.order, &[batches.next()])?;
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
            if leads {
                batches.done(took);
            }
        }
        world.write(self.switches, &[switched])?;
        world.sum_reduce(self.switches, self.switches)?;
        let all = world.g(self.switches, world.my_pe())?;
        let mut times = batches.times;
        times.sort_by(f64::total_cmp);
        Ok(Cost {
            seconds: times.get(times.len() / 2).copied().unwrap_or_default(),
            best: times.first().copied().unwrap_or_default(),
            switches: all as f64 / done as f64 / world.n_pes() as f64,
        })
    }
}

/// The number of times that this thread has yielded its CPU, or lost it.
fn switches() -> u64 {
    // SAFETY: all-zero bytes are a valid struct, and the call writes nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_was_disturbed_does_not_make_the_others_short() {
        // A call of a microsecond; one of these batches takes a thousand times as long.
        for disturbed in 0..12 {
            let mut batches = Batches::new();
            for at in 0.. {
                let calls = batches.next();
                if calls == 0 {
                    break;
                }
                let times = if at == disturbed { 1000 } else { 1 };
                batches.done(Duration::from_micros(calls * times));
            }
            assert_eq!(
                batches.calls, 4096,
                "the disturbed one is number {disturbed}"
            );
            assert_eq!(batches.times.len(), BATCHES);
            let undisturbed = batches.times.iter().filter(|time| **time < 2e-6);
            assert_eq!(undisturbed.count(), BATCHES);
        }
    }
}
