//! Collective operations of a team, without [folds](super::fold).

use anyhow::Context;
use oxshmem::{Result, Sym, Team, World};

use crate::perf::fixture::{Fixture, Footprint, Role, pattern, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};
use crate::perf::validate::{self, Place};

pub(super) const METRICS: &[Metric] = &[Metric::Latency];

/// The stride between elements of a strided exchange.
const STRIDE: usize = 2;

/// Defines a collective that moves words. From a member's rank and the number of members, `$mine`
/// gives the words that it sends and `$gets` those that it should receive: words of a pattern, so
/// many times, block after block.
macro_rules! exchange {
    ($name:literal, $about:literal, $footprint:expr, $call:expr,
        |$me:ident, $members:ident| $mine:expr, $gets:expr) => {
        exchange!(
            $name,
            $about,
            $footprint,
            $call,
            1,
            |$me, $members| $mine,
            $gets
        )
    };
    ($name:literal, $about:literal, $footprint:expr, $call:expr, $stride:expr,
        |$me:ident, $members:ident| $mine:expr, $gets:expr) => {
        Op {
            name: $name,
            about: $about,
            span: Span::words($footprint),
            metrics: METRICS,
            who: Who::Team,
            prepare: |fixture, bytes| {
                let Some(team) = fixture.team else {
                    return Ok(Box::new(Absent));
                };
                let ($me, $members) = (team.my_pe() as u64, team.n_pes() as u64);
                let words = pattern::<u64>($name, bytes);
                let mine = times(&words, $mine, $stride);
                let gets = times(&words, $gets, $stride);
                Exchange::boxed(fixture, &mine, gets, $call)
            },
        }
    };
}

pub const OPS: &[Op] = &[
    Op {
        name: "barrier",
        about: "barrier of all PEs, or of the --team's",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::Team,
        prepare: |fixture, _| Meeting::boxed(fixture, World::barrier_all, |team| team.barrier()),
    },
    Op {
        name: "sync",
        about: "sync, likewise",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::Team,
        prepare: |fixture, _| Meeting::boxed(fixture, World::sync_all, |team| team.sync()),
    },
    exchange!(
        "broadcast",
        "from PE 0 to all PEs of the team",
        both,
        |team, to, from| team.broadcast(to, from, 0),
        |me, _members| [u64::from(me == 0)],
        [1]
    ),
    exchange!(
        "collect",
        "every PE's words, on all PEs; lengths could differ",
        gathered,
        |team, to, from| team.collect(to, from).map(drop),
        |me, members| [me + 1],
        1..=members
    ),
    exchange!(
        "fcollect",
        "every PE's words, on all PEs",
        gathered,
        |team, to, from| team.fcollect(to, from),
        |me, members| [me + 1],
        1..=members
    ),
    exchange!(
        "alltoall",
        "from every PE to every PE, so much each",
        exchanged,
        |team, to, from| team.alltoall(to, from),
        |me, members| (0..members).map(|to| me * members + to + 1),
        (0..members).map(|from| from * members + me + 1)
    ),
    exchange!(
        "alltoalls",
        "likewise, every second word of both objects",
        |bytes, pes| exchanged(STRIDE * bytes, pes),
        |team, to, from| {
            let count = from.len() / STRIDE / team.n_pes();
            team.alltoalls(to, from, STRIDE, STRIDE, count)
        },
        STRIDE,
        |me, members| (0..members).map(|to| me * members + to + 1),
        (0..members).map(|from| from * members + me + 1)
    ),
];

pub(super) fn both(bytes: usize, _pes: usize) -> Footprint {
    Footprint {
        block: bytes,
        source: bytes,
    }
}

/// The footprint if every member receives the data of all.
pub(super) fn gathered(bytes: usize, pes: usize) -> Footprint {
    Footprint {
        block: bytes.saturating_mul(pes),
        source: bytes,
    }
}

/// The footprint if every member sends to all and receives from all.
pub(super) fn exchanged(bytes: usize, pes: usize) -> Footprint {
    both(bytes.saturating_mul(pes), pes)
}

/// The footprint if every member sends to all.
pub(super) fn scattered(bytes: usize, pes: usize) -> Footprint {
    Footprint {
        block: bytes,
        source: bytes.saturating_mul(pes),
    }
}

/// The words times each of the factors, so far apart.
pub(super) fn times(
    words: &[u64],
    factors: impl IntoIterator<Item = u64>,
    stride: usize,
) -> Vec<u64> {
    let mut made = Vec::new();
    for factor in factors {
        for word in words {
            made.push(word.wrapping_mul(factor));
            made.resize(made.len() + stride - 1, 0);
        }
    }
    made
}

/// The part of a PE that is not in the team.
pub(super) struct Absent;

impl Work for Absent {
    fn run(&mut self, _: &Fixture<'_>, _: u64) -> Result<()> {
        Ok(())
    }

    fn check(&self, _: &Fixture<'_>, _: Role, _: u64) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A call that moves no data.
struct Meeting {
    of_all: fn(&World) -> Result<()>,
    of_team: fn(&Team<'_>) -> Result<()>,
}

impl Meeting {
    fn boxed(
        fixture: &Fixture<'_>,
        of_all: fn(&World) -> Result<()>,
        of_team: fn(&Team<'_>) -> Result<()>,
    ) -> Result<Box<dyn Work>> {
        fixture.world.write(fixture.word, &[0])?;
        Ok(Box::new(Meeting { of_all, of_team }))
    }
}

impl Work for Meeting {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        match fixture.team {
            None => Ok(()),
            Some(team) if *team == fixture.world.team() => {
                (0..count).try_for_each(|_| (self.of_all)(fixture.world))
            }
            Some(team) => (0..count).try_for_each(|_| (self.of_team)(team)),
        }
    }

    fn check(&self, fixture: &Fixture<'_>, _: Role, _total: u64) -> anyhow::Result<()> {
        let (world, Some(team)) = (fixture.world, fixture.team) else {
            return Ok(());
        };
        // Events before the call at one PE happen before those after it at the others.
        let (me, members) = (team.my_pe(), team.n_pes());
        let (next, before) = ((me + 1) % members, (me + members - 1) % members);
        let to = team.translate(next, &world.team()).unwrap_or(usize::MAX);
        world.p(fixture.word, me as u64 + 1, to)?;
        world.quiet()?;
        if *team == world.team() {
            (self.of_all)(world)?
        } else {
            (self.of_team)(team)?
        }
        same_word(world.g(fixture.word, world.my_pe())?, before as u64 + 1)
    }
}

type Call = fn(&Team<'_>, Sym<u64>, Sym<u64>) -> Result<()>;

/// A call that moves data from all members' sources to every member's block.
struct Exchange {
    source: Sym<u64>,
    block: Sym<u64>,
    /// The expected content of the block.
    expected: Vec<u64>,
    call: Call,
}

impl Exchange {
    /// `call` takes the block, then the source.
    fn boxed(
        fixture: &Fixture<'_>,
        mine: &[u64],
        expected: Vec<u64>,
        call: Call,
    ) -> Result<Box<dyn Work>> {
        let source = fixture.source.cast()?.range(..mine.len())?;
        let block = fixture.block.cast()?.range(..expected.len())?;
        fixture.world.write(source, mine)?;
        fixture.world.write(block, &vec![0; expected.len()])?;
        Ok(Box::new(Exchange {
            source,
            block,
            expected,
            call,
        }))
    }
}

impl Work for Exchange {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        let Some(team) = fixture.team else {
            return Ok(());
        };
        (0..count).try_for_each(|_| (self.call)(team, self.block, self.source))
    }

    fn validate(&mut self, fixture: &Fixture<'_>, _: Role) -> anyhow::Result<()> {
        let Some(team) = fixture.team else {
            return Ok(());
        };
        let mut mine = vec![0; self.source.len()];
        fixture.world.read(&mut mine, self.source)?;
        // All of them move words: three times the words give three times the result.
        let mut calls = Vec::with_capacity(validate::SLOTS);
        for number in 0..validate::SLOTS {
            let [source, block] = [
                (fixture.source, &mut mine),
                (fixture.block, &mut self.expected),
            ]
            .map(|(memory, words)| {
                words
                    .iter_mut()
                    .for_each(|word| *word = word.wrapping_mul(3));
                Place::of(memory, size_of_val(words.as_slice()), number)
            });
            let (source, block) = (source?, block?);
            source.fill(fixture, &mine)?;
            block.fill::<u64>(fixture, &[])?;
            calls.push((source, block, self.expected.clone()));
        }
        team.barrier()?;
        for (number, (source, block, expected)) in calls.iter().enumerate() {
            (self.call)(team, block.data.cast()?, source.data.cast()?)?;
            block
                .holds(fixture, expected)
                .with_context(|| validate::of(number))?;
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, _: Role, _total: u64) -> anyhow::Result<()> {
        fixture.holds(self.block, &self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem::testing::spmd;

    #[test]
    fn a_call_that_brings_nothing_is_found() {
        let calls: [(Call, bool); 2] = [
            (|team, to, from| team.fcollect(to, from), true),
            (|_, _, _| Ok(()), false),
        ];
        for (call, right) in calls {
            spmd(2, |world| {
                let team = world.team();
                let fixture = Fixture::new(world, Some(&team), gathered(32, 2).of_slots(), 1)?;
                let words = [me(world), 2, 3, 4];
                let expected = vec![1, 2, 3, 4, 2, 2, 3, 4];
                let mut work = Exchange::boxed(&fixture, &words, expected, call)?;
                world.barrier_all()?;
                let role = Role {
                    acts: true,
                    receives: true,
                };
                assert_eq!(work.validate(&fixture, role).is_ok(), right);
                world.barrier_all()?;
                fixture.free()
            })
            .unwrap();
        }
    }

    fn me(world: &World) -> u64 {
        world.my_pe() as u64 + 1
    }
}
