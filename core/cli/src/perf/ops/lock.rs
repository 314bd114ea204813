//! Locks.

use anyhow::ensure;
use oxshmem::{Result, Sym, World};

use crate::perf::ground::{Ground, Seat};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

const METRICS: &[Metric] = &[Metric::Latency];

pub const OPS: &[Op] = &[
    Op {
        name: "lock",
        about: "set_lock and clear_lock of PE 0, which nobody else wants",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::One,
        prepare: |ground, _| Lock::boxed(ground, |world, lock| world.set_lock(lock)),
    },
    Op {
        name: "test-lock",
        about: "the same with test_lock",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::One,
        prepare: |ground, _| Lock::boxed(ground, |world, lock| world.test_lock(lock).map(drop)),
    },
    Op {
        name: "lock-all",
        about: "the same of all PEs at once, each waiting for its turn: one turn of PE 0",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, _| Lock::boxed(ground, |world, lock| world.set_lock(lock)),
    },
];

/// The lock that is taken so.
struct Lock(fn(&World, Sym<u64>) -> Result<()>);

impl Lock {
    fn boxed(
        ground: &Ground<'_>,
        take: fn(&World, Sym<u64>) -> Result<()>,
    ) -> Result<Box<dyn Work>> {
        ground.world.write(ground.word, &[0])?;
        Ok(Box::new(Lock(take)))
    }
}

impl Work for Lock {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            (self.0)(ground.world, ground.word)?;
            ground.world.clear_lock(ground.word)?;
        }
        Ok(())
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, _total: u64) -> anyhow::Result<()> {
        let world = ground.world;
        if seat.acts && ground.leads() {
            ensure!(world.test_lock(ground.word)?, "the lock is not free");
            world.clear_lock(ground.word)?;
        }
        Ok(())
    }
}
