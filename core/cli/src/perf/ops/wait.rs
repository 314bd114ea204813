//! Waits and tests that find what they wait for, on PE 0's own word.

use std::hint::black_box;

use anyhow::ensure;
use oxshmem::{Cmp, Result};

use crate::perf::ground::{Ground, Seat, VALUE};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

const METRICS: &[Metric] = &[Metric::Latency];

pub const OPS: &[Op] = &[
    Op {
        name: "wait-until",
        about: "on an own word that has the value",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::One,
        prepare: |ground, _| {
            Looks::boxed(ground, |ground| {
                ground.world.wait_until(ground.word, Cmp::Eq, VALUE)?;
                Ok(true)
            })
        },
    },
    Op {
        name: "test",
        about: "likewise",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::One,
        prepare: |ground, _| {
            Looks::boxed(ground, |ground| {
                ground.world.test(ground.word, Cmp::Eq, VALUE)
            })
        },
    },
    Op {
        name: "signal-fetch",
        about: "reads an own signal word",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::One,
        prepare: |ground, _| {
            Looks::boxed(ground, |ground| {
                Ok(ground.world.signal_fetch(ground.signal)? == VALUE)
            })
        },
    },
];

/// Looks at an own word, and how often it had the value.
struct Looks<F> {
    look: F,
    held: u64,
}

impl<F: Fn(&Ground<'_>) -> Result<bool> + 'static> Looks<F> {
    fn boxed(ground: &Ground<'_>, look: F) -> Result<Box<dyn Work>> {
        ground.world.write(ground.word, &[0])?;
        ground.world.write(ground.signal, &[0])?;
        ground.world.barrier_all()?;
        // From afar, as what is waited for comes.
        if ground.answers() {
            ground.world.set(ground.word, VALUE, 0)?;
            ground.world.signal_set(ground.signal, VALUE, 0)?;
        }
        let held = 0;
        Ok(Box::new(Looks { look, held }))
    }
}

impl<F: Fn(&Ground<'_>) -> Result<bool>> Work for Looks<F> {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            self.held += u64::from(black_box((self.look)(ground)?));
        }
        Ok(())
    }

    fn check(&self, _: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()> {
        ensure!(
            !seat.acts || self.held == total,
            "the word had its value {} times of {total}",
            self.held
        );
        Ok(())
    }
}
