//! Fence and quiet.

use std::hint::black_box;

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

/// Without operations between, save one before the first.
struct Idle<F> {
    call: F,
    begun: bool,
}

impl<F: Fn(&Ground<'_>) -> Result<()> + 'static> Idle<F> {
    fn boxed(ground: &Ground<'_>, call: F) -> Result<Box<dyn Work>> {
        ground.world.write(ground.word, &[0])?;
        let begun = false;
        Ok(Box::new(Idle { call, begun }))
    }
}

impl<F: Fn(&Ground<'_>) -> Result<()>> Work for Idle<F> {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        if !self.begun {
            ground.world.p(ground.word, VALUE, ground.peer())?;
            ground.world.quiet()?;
            self.begun = true;
        }
        (0..count).try_for_each(|_| (self.call)(ground))
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, _total: u64) -> anyhow::Result<()> {
        arrived(ground, seat)
    }
}

/// After a p each.
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
