//! Locks.

use anyhow::ensure;
use oxshmem::Result;

use crate::perf::ground::{Ground, Seat};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

pub const OPS: &[Op] = &[
    Op {
        name: "lock",
        about: "set_lock and clear_lock of PE 0, which nobody else wants",
        span: Span::Nothing,
        metrics: &[Metric::Latency],
        who: Who::One,
        prepare: |ground, _| {
            ground.world.write(ground.word, &[0])?;
            Ok(Box::new(Lock))
        },
    },
    Op {
        name: "lock-all",
        about: "the same of all PEs at once, each waiting for its turn: one turn of PE 0",
        span: Span::Nothing,
        metrics: &[Metric::Latency],
        who: Who::All,
        prepare: |ground, _| {
            ground.world.write(ground.word, &[0])?;
            Ok(Box::new(Lock))
        },
    },
];

struct Lock;

impl Work for Lock {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            ground.world.set_lock(ground.word)?;
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
