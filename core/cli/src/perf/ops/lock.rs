//! Locks: acquired and released, with and without contention.

use anyhow::ensure;
use oxshmem::{Result, Sym, World};

use crate::perf::fixture::{Fixture, Role};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

const METRICS: &[Metric] = &[Metric::Latency];

/// Turns of each PE in the check of mutual exclusion.
const TURNS: u64 = 32;

pub const OPS: &[Op] = &[
    Op {
        name: "lock",
        about: "set_lock and clear_lock of PE 0, which nobody else wants",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::One,
        prepare: |fixture, _| Lock::boxed(fixture, 1, |world, lock| world.set_lock(lock)),
    },
    Op {
        name: "test-lock",
        about: "the same with test_lock",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::One,
        prepare: |fixture, _| {
            Lock::boxed(fixture, 1, |world, lock| world.test_lock(lock).map(drop))
        },
    },
    Op {
        name: "lock-all",
        about: "the same of all PEs at once, each waiting for its turn: one turn of PE 0",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |fixture, _| {
            Lock::boxed(fixture, fixture.world.n_pes(), |world, lock| {
                world.set_lock(lock)
            })
        },
    },
];

/// A lock and the number of PEs that acquire it.
struct Lock {
    word: Sym<u64>,
    wanted_by: usize,
    take: fn(&World, Sym<u64>) -> Result<()>,
}

impl Lock {
    fn boxed(
        fixture: &Fixture<'_>,
        wanted_by: usize,
        take: fn(&World, Sym<u64>) -> Result<()>,
    ) -> Result<Box<dyn Work>> {
        let word = fixture.word;
        fixture.world.write(word, &[0])?;
        Ok(Box::new(Lock {
            word,
            wanted_by,
            take,
        }))
    }
}

impl Work for Lock {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            (self.take)(fixture.world, self.word)?;
            fixture.world.clear_lock(self.word)?;
        }
        Ok(())
    }

    /// Increments PE 0's word by a separate load and store: two holders at once would lose
    /// increments.
    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        let (world, turns) = (fixture.world, fixture.signal);
        world.write(turns, &[0])?;
        world.barrier_all()?;
        if role.acts {
            for _ in 0..TURNS {
                (self.take)(world, self.word)?;
                let before = world.g(turns, 0)?;
                std::thread::yield_now();
                world.p(turns, before + 1, 0)?;
                world.quiet()?;
                world.clear_lock(self.word)?;
            }
        }
        world.barrier_all()?;
        if fixture.leads() {
            let (found, all) = (world.g(turns, 0)?, TURNS * self.wanted_by as u64);
            ensure!(
                found == all,
                "{found} of {all} turns were counted: several PEs had the lock at once"
            );
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, _total: u64) -> anyhow::Result<()> {
        let world = fixture.world;
        if role.acts && fixture.leads() {
            ensure!(world.test_lock(self.word)?, "the lock is not free");
            world.clear_lock(self.word)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::fixture::Footprint;
    use oxshmem::testing::spmd;

    /// Whether PE 0 finds no error in so many validations, where `number` maps a PE to the lock
    /// that it acquires.
    fn validations(number: fn(usize) -> usize, count: usize) -> bool {
        let found = spmd(3, move |world| {
            let fixture = Fixture::new(world, None, Footprint::default(), 1)?;
            fixture.world.write(fixture.several, &[0; 3])?;
            let mut lock = Lock {
                word: fixture.several.at(number(world.my_pe()))?,
                wanted_by: 3,
                take: |world, lock| world.set_lock(lock),
            };
            let mut right = true;
            for _ in 0..count {
                // The others find no error.
                right &= lock.validate(&fixture, Role::BOTH).is_ok();
                world.barrier_all()?;
            }
            fixture.free()?;
            Ok(right)
        });
        found.unwrap()[0]
    }

    #[test]
    fn a_lock_that_is_not_one_does_not_pass() {
        assert!(validations(|_| 0, 10));
        assert!(!validations(|me| me, 100));
    }
}
