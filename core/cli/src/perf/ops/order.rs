//! Fence and quiet.

use std::hint::black_box;

use anyhow::ensure;
use oxshmem::Result;

use crate::perf::fixture::{Fixture, Role, VALUE, same_word};
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
        prepare: |fixture, _| Idle::boxed(fixture, |fixture| fixture.world.fence()),
    },
    Op {
        name: "quiet",
        about: "with nothing to complete",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |fixture, _| Idle::boxed(fixture, |fixture| fixture.world.quiet()),
    },
    Op {
        name: "pe-quiet",
        about: "likewise, towards the partner alone",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |fixture, _| Idle::boxed(fixture, pe_quiet),
    },
    Op {
        name: "p-fence",
        about: "p and fence",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::One,
        prepare: |fixture, _| {
            fixture.world.write(fixture.word, &[0])?;
            Ok(Box::new(AfterP(|fixture: &Fixture<'_>| {
                fixture.world.fence()
            })))
        },
    },
    Op {
        name: "p-quiet",
        about: "p and quiet",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |fixture, _| {
            fixture.world.write(fixture.word, &[0])?;
            Ok(Box::new(AfterP(|fixture: &Fixture<'_>| {
                fixture.world.quiet()
            })))
        },
    },
    Op {
        name: "p-pe-quiet",
        about: "p and pe_quiet",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::OneCompleting,
        prepare: |fixture, _| {
            fixture.world.write(fixture.word, &[0])?;
            Ok(Box::new(AfterP(pe_quiet)))
        },
    },
];

fn pe_quiet(fixture: &Fixture<'_>) -> Result<()> {
    fixture.world.pe_quiet(&[fixture.peer()])
}

/// A call with no operations before it, and the number of calls.
struct Idle<F> {
    call: F,
    called: u64,
}

impl<F: Fn(&Fixture<'_>) -> Result<()> + 'static> Idle<F> {
    fn boxed(fixture: &Fixture<'_>, call: F) -> Result<Box<dyn Work>> {
        fixture.world.write(fixture.word, &[0])?;
        fixture.world.barrier_all()?;
        // After the first operation the context is no longer clean, even if all has completed.
        if fixture.leads() {
            fixture.world.p(fixture.word, VALUE, fixture.peer())?;
            fixture.world.quiet()?;
        }
        let called = 0;
        Ok(Box::new(Idle { call, called }))
    }
}

impl<F: Fn(&Fixture<'_>) -> Result<()>> Work for Idle<F> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        self.called += count;
        (0..count).try_for_each(|_| (self.call)(fixture))
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()> {
        let called = self.called;
        ensure!(
            !role.acts || called == total,
            "it was called {called} times of {total}"
        );
        arrived(fixture, role)
    }
}

/// A call after one `p` each.
struct AfterP<F>(F);

impl<F: Fn(&Fixture<'_>) -> Result<()>> Work for AfterP<F> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        let to = fixture.peer();
        (0..count).try_for_each(|_| {
            fixture.world.p(fixture.word, black_box(VALUE), to)?;
            (self.0)(fixture)
        })
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, _total: u64) -> anyhow::Result<()> {
        arrived(fixture, role)
    }
}

fn arrived(fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
    if !role.receives {
        return Ok(());
    }
    same_word(fixture.world.g(fixture.word, fixture.world.my_pe())?, VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem::testing::spmd;

    use crate::perf::fixture::Footprint;

    #[test]
    fn what_there_is_before_nothing_is_not_timed() {
        spmd(2, |world| {
            let fixture = Fixture::new(world, None, Footprint::default(), 1)?;
            for op in OPS.iter().filter(|op| matches!(op.span, Span::Nothing)) {
                let mut work = (op.prepare)(&fixture, 0)?;
                world.barrier_all()?;
                let own = || world.g(fixture.word, world.my_pe());
                assert_eq!(own()? == VALUE, fixture.answers(), "{}", op.name);
                world.write(fixture.word, &[0])?;
                world.barrier_all()?;
                if fixture.leads() {
                    work.run(&fixture, 5)?;
                    world.quiet()?;
                }
                world.barrier_all()?;
                assert_eq!(own()?, 0, "{}", op.name);
                world.barrier_all()?;
            }
            fixture.free()
        })
        .unwrap();
    }
}
