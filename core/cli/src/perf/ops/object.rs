//! Creation and destruction of symmetric objects, contexts and teams.

use anyhow::ensure;
use oxshmem::{ContextOptions, Result, Team};

use crate::perf::fixture::{Fixture, Footprint, Role, VALUE, pattern, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

const METRICS: &[Metric] = &[Metric::Latency];

pub const OPS: &[Op] = &[
    Op {
        name: "context",
        about: "create_context and destroy of PE 0",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::One,
        prepare: |fixture, _| {
            fixture.world.write(fixture.word, &[0])?;
            Ok(Box::new(OwnContext))
        },
    },
    Op {
        name: "team-split",
        about: "split_strided into a team of all PEs, and destroy",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |_, _| Ok(Box::new(OwnTeam)),
    },
    Op {
        name: "alloc",
        about: "alloc and free of all PEs",
        span: Span::bytes(|_, _| Footprint::default()),
        metrics: METRICS,
        who: Who::All,
        prepare: |_, bytes| Ok(Box::new(Object { bytes })),
    },
];

struct OwnContext;

impl Work for OwnContext {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            let context = fixture.world.create_context(ContextOptions::NONE)?;
            context.destroy()?;
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, _total: u64) -> anyhow::Result<()> {
        if !role.acts {
            return Ok(());
        }
        let context = fixture.world.create_context(ContextOptions::NONE)?;
        context.p(fixture.word, VALUE, fixture.peer())?;
        context.destroy()?;
        same_word(fixture.world.g(fixture.word, fixture.peer())?, VALUE)
    }
}

struct OwnTeam;

/// A team of all PEs in reverse order.
fn reversed<'w>(fixture: &Fixture<'w>) -> Result<Option<Team<'w>>> {
    let pes = fixture.world.n_pes();
    fixture.world.team().split_strided(pes - 1, -1, pes)
}

impl Work for OwnTeam {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            if let Some(team) = reversed(fixture)? {
                team.destroy()?;
            }
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, _: Role, _total: u64) -> anyhow::Result<()> {
        let team = reversed(fixture)?;
        ensure!(
            team.as_ref().is_some_and(|team| {
                let own = team.world_pes().nth(team.my_pe());
                team.my_pe() == fixture.world.n_pes() - 1 - fixture.world.my_pe()
                    && own == Some(fixture.world.my_pe())
            }),
            "the team has not the PEs that it should have"
        );
        if let Some(team) = team {
            team.sync()?;
            team.destroy()?;
        }
        Ok(())
    }
}

struct Object {
    bytes: usize,
}

impl Work for Object {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            fixture.world.free(fixture.world.alloc::<u8>(self.bytes)?)?;
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, _: Role, _total: u64) -> anyhow::Result<()> {
        let (world, me, pes) = (fixture.world, fixture.world.my_pe(), fixture.world.n_pes());
        let object = world.alloc::<u8>(self.bytes)?;
        let data = pattern::<u8>("alloc", self.bytes);
        world.put(object, &data, (me + 1) % pes)?;
        world.barrier_all()?;
        let right = fixture.holds(object, &data);
        world.free(object)?;
        right
    }
}
