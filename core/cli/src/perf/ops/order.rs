//! Fence and quiet.

use std::hint::black_box;

use anyhow::ensure;
use oxshmem::Result;

use crate::perf::ground::{Ground, Seat, VALUE, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

const METRICS: &[Metric] = &[Metric::Latency];

pub const OPS: &[Op] = &[
    Op {
        name: "fence",
        about: "with nothing to order",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::One,
        prepare: |ground, _| Idle::boxed(ground, |ground| ground.world.fence()),
    },
    Op {
        name: "quiet",
        about: "with nothing to complete",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |ground, _| Idle::boxed(ground, |ground| ground.world.quiet()),
    },
    Op {
        name: "pe-quiet",
        about: "likewise, towards the partner alone",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |ground, _| Idle::boxed(ground, pe_quiet),
    },
    Op {
        name: "p-fence",
        about: "p and fence",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::One,
        prepare: |ground, _| {
            ground.world.write(ground.word, &[0])?;
            Ok(Box::new(AfterP(|ground: &Ground<'_>| ground.world.fence())))
        },
    },
    Op {
        name: "p-quiet",
        about: "p and quiet",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |ground, _| {
            ground.world.write(ground.word, &[0])?;
            Ok(Box::new(AfterP(|ground: &Ground<'_>| ground.world.quiet())))
        },
    },
    Op {
        name: "p-pe-quiet",
        about: "p and pe_quiet",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |ground, _| {
            ground.world.write(ground.word, &[0])?;
            Ok(Box::new(AfterP(pe_quiet)))
        },
    },
];

fn pe_quiet(ground: &Ground<'_>) -> Result<()> {
    ground.world.pe_quiet(&[ground.peer()])
}

/// A call with no operations before it, and the number of calls.
struct Idle<F> {
    call: F,
    called: u64,
}

impl<F: Fn(&Ground<'_>) -> Result<()> + 'static> Idle<F> {
    fn boxed(ground: &Ground<'_>, call: F) -> Result<Box<dyn Work>> {
        ground.world.write(ground.word, &[0])?;
        ground.world.barrier_all()?;
        // After the first operation the context is no longer clean, even if all has completed.
        if ground.leads() {
            ground.world.p(ground.word, VALUE, ground.peer())?;
            ground.world.quiet()?;
        }
        let called = 0;
        Ok(Box::new(Idle { call, called }))
    }
}

impl<F: Fn(&Ground<'_>) -> Result<()>> Work for Idle<F> {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        self.called += count;
        (0..count).try_for_each(|_| (self.call)(ground))
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()> {
        let called = self.called;
        ensure!(
            !seat.acts || called == total,
            "it was called {called} times of {total}"
        );
        arrived(ground, seat)
    }
}

/// A call after one `p` each.
struct AfterP<F>(F);

impl<F: Fn(&Ground<'_>) -> Result<()>> Work for AfterP<F> {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        let to = ground.peer();
        (0..count).try_for_each(|_| {
            ground.world.p(ground.word, black_box(VALUE), to)?;
            (self.0)(ground)
        })
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, _total: u64) -> anyhow::Result<()> {
        arrived(ground, seat)
    }
}

fn arrived(ground: &Ground<'_>, seat: Seat) -> anyhow::Result<()> {
    if !seat.receives {
        return Ok(());
    }
    same_word(ground.world.g(ground.word, ground.world.my_pe())?, VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem::testing::spmd;

    use crate::perf::ground::Room;

    #[test]
    fn what_there_is_before_nothing_is_not_timed() {
        spmd(2, |world| {
            let ground = Ground::new(world, None, Room::default(), 1)?;
            for op in OPS.iter().filter(|op| matches!(op.span, Span::Nothing)) {
                let mut work = (op.prepare)(&ground, 0)?;
                world.barrier_all()?;
                let own = || world.g(ground.word, world.my_pe());
                assert_eq!(own()? == VALUE, ground.answers(), "{}", op.name);
                world.write(ground.word, &[0])?;
                world.barrier_all()?;
                if ground.leads() {
                    work.run(&ground, 5)?;
                    world.quiet()?;
                }
                world.barrier_all()?;
                assert_eq!(own()?, 0, "{}", op.name);
                world.barrier_all()?;
            }
            ground.free()
        })
        .unwrap();
    }
}
