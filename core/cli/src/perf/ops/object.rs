//! Creation and destruction of symmetric objects, contexts and teams.

use anyhow::ensure;
use oxshmem::{ContextOptions, Result, Team};

use crate::perf::ground::{Ground, Room, Seat, VALUE, pattern, same_word};
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
        prepare: |ground, _| {
            ground.world.write(ground.word, &[0])?;
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
        span: Span::bytes(|_, _| Room::default()),
        metrics: METRICS,
        who: Who::All,
        prepare: |_, bytes| Ok(Box::new(Object { bytes })),
    },
];

struct OwnContext;

impl Work for OwnContext {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            let context = ground.world.create_context(ContextOptions::NONE)?;
            context.destroy()?;
        }
        Ok(())
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, _total: u64) -> anyhow::Result<()> {
        if !seat.acts {
            return Ok(());
        }
        let context = ground.world.create_context(ContextOptions::NONE)?;
        context.p(ground.word, VALUE, ground.peer())?;
        context.destroy()?;
        same_word(ground.world.g(ground.word, ground.peer())?, VALUE)
    }
}

struct OwnTeam;

/// A team of all PEs in reverse order.
fn reversed<'w>(ground: &Ground<'w>) -> Result<Option<Team<'w>>> {
    let pes = ground.world.n_pes();
    ground.world.team().split_strided(pes - 1, -1, pes)
}

impl Work for OwnTeam {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            if let Some(team) = reversed(ground)? {
                team.destroy()?;
            }
        }
        Ok(())
    }

    fn check(&self, ground: &Ground<'_>, _: Seat, _total: u64) -> anyhow::Result<()> {
        let team = reversed(ground)?;
        ensure!(
            team.as_ref().is_some_and(|team| {
                let own = team.world_pes().nth(team.my_pe());
                team.my_pe() == ground.world.n_pes() - 1 - ground.world.my_pe()
                    && own == Some(ground.world.my_pe())
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
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            ground.world.free(ground.world.alloc::<u8>(self.bytes)?)?;
        }
        Ok(())
    }

    fn check(&self, ground: &Ground<'_>, _: Seat, _total: u64) -> anyhow::Result<()> {
        let (world, me, pes) = (ground.world, ground.world.my_pe(), ground.world.n_pes());
        let object = world.alloc::<u8>(self.bytes)?;
        let data = pattern::<u8>("alloc", self.bytes);
        world.put(object, &data, (me + 1) % pes)?;
        world.barrier_all()?;
        let right = ground.holds(object, &data);
        world.free(object)?;
        right
    }
}
