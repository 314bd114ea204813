//! Reductions and scans, with the fold and the type that are asked for.

use std::ops::Range;

use anyhow::Context;
use oxshmem::{Complex, Result, Sym, Team, bf16, f16};

use super::collective::{Absent, METRICS, both, scattered};
use crate::perf::fixture::{Fixture, Role};
use crate::perf::number::{Number, Value, Words};
use crate::perf::op::{Op, Span, Who, Work};
use crate::perf::validate::{self, Place};

/// The kind of call.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    Reduce,
    ReduceScatter,
    Inscan,
    Exscan,
}

macro_rules! fold {
    ($name:literal, $about:literal, $footprint:expr, $call:expr) => {
        Op {
            name: $name,
            about: $about,
            span: Span::words($footprint),
            metrics: METRICS,
            who: Who::Team,
            prepare: |fixture, bytes| prepare(fixture, $call, bytes),
        }
    };
}

pub const OPS: &[Op] = &[
    fold!(
        "reduce",
        "a fold of all PEs' elements, on all PEs (--fold, --type)",
        both,
        Call::Reduce
    ),
    fold!(
        "reduce-scatter",
        "likewise, to each PE its part",
        scattered,
        Call::ReduceScatter
    ),
    fold!(
        "inscan",
        "a fold of this PE's elements and those of the PEs before it",
        both,
        Call::Inscan
    ),
    fold!(
        "exscan",
        "a fold of the elements of the PEs before this one",
        both,
        Call::Exscan
    ),
];

fn prepare(fixture: &Fixture<'_>, call: Call, bytes: usize) -> Result<Box<dyn Work>> {
    let make = match fixture.folds.1 {
        Number::I32 => Folding::<i32>::boxed,
        Number::I64 => Folding::<i64>::boxed,
        Number::U8 => Folding::<u8>::boxed,
        Number::U64 => Folding::<u64>::boxed,
        Number::F16 => Folding::<f16>::boxed,
        Number::Bf16 => Folding::<bf16>::boxed,
        Number::F32 => Folding::<f32>::boxed,
        Number::F64 => Folding::<f64>::boxed,
        Number::Complex => Folding::<Complex<f32>>::boxed,
    };
    match fixture.team {
        Some(team) => make(fixture, team, call, bytes),
        None => Ok(Box::new(Absent)),
    }
}

/// A call in which members contribute words of a seed.
struct Folding<T> {
    call: Call,
    words: Words,
    me: usize,
    block: Sym<T>,
    source: Sym<T>,
}

impl<T: Value> Folding<T> {
    fn boxed(
        fixture: &Fixture<'_>,
        team: &Team<'_>,
        call: Call,
        bytes: usize,
    ) -> Result<Box<dyn Work>> {
        let (me, members, len) = (team.my_pe(), team.n_pes(), bytes / size_of::<T>());
        let given = match call {
            Call::ReduceScatter => len * members,
            _ => len,
        };
        let folding = Folding {
            call,
            words: Words {
                fold: fixture.folds.0,
                members,
                seed: bytes as u64,
            },
            me,
            block: fixture.block.cast()?.range(..len)?,
            source: fixture.source.cast()?.range(..given)?,
        };
        fixture.world.write(folding.source, &folding.given())?;
        fixture
            .world
            .write(folding.block, &vec![T::zeroed(); len])?;
        Ok(Box::new(folding))
    }

    fn given(&self) -> Vec<T> {
        let elements = 0..self.source.len();
        elements.map(|i| self.words.given(self.me, i)).collect()
    }

    fn expected(&self) -> Vec<T> {
        let (first, folded): (usize, Range<usize>) = match self.call {
            Call::Reduce => (0, 0..self.words.members),
            Call::ReduceScatter => (self.me * self.block.len(), 0..self.words.members),
            Call::Inscan => (0, 0..self.me + 1),
            Call::Exscan => (0, 0..self.me),
        };
        let elements = first..first + self.block.len();
        elements
            .map(|i| self.words.expected(folded.clone(), i))
            .collect()
    }

    fn go(&self, team: &Team<'_>, block: Sym<T>, source: Sym<T>) -> Result<()> {
        let fold = self.words.fold;
        match self.call {
            Call::Reduce => team.reduce(block, source, fold),
            Call::ReduceScatter => team.reduce_scatter(block, source, fold),
            Call::Inscan => team.inscan(block, source, fold),
            Call::Exscan => team.exscan(block, source, fold),
        }
    }
}

impl<T: Value> Work for Folding<T> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        let Some(team) = fixture.team else {
            return Ok(());
        };
        (0..count).try_for_each(|_| self.go(team, self.block, self.source))
    }

    fn validate(&mut self, fixture: &Fixture<'_>, _: Role) -> anyhow::Result<()> {
        let Some(team) = fixture.team else {
            return Ok(());
        };
        let mut calls = Vec::with_capacity(validate::SLOTS);
        for number in 0..validate::SLOTS {
            self.words.seed += 1 << 32;
            let block = Place::of(fixture.block, self.block.len() * size_of::<T>(), number)?;
            let source = Place::of(fixture.source, self.source.len() * size_of::<T>(), number)?;
            source.fill(fixture, &self.given())?;
            block.fill::<T>(fixture, &[])?;
            calls.push((block, source, self.expected()));
        }
        team.barrier()?;
        for (number, (block, source, expected)) in calls.iter().enumerate() {
            self.go(team, block.data.cast()?, source.data.cast()?)?;
            block
                .holds(fixture, expected)
                .with_context(|| validate::of(number))?;
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, _: Role, _total: u64) -> anyhow::Result<()> {
        fixture.holds(self.block, &self.expected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use oxshmem::Fold;
    use oxshmem::testing::spmd;

    const BYTES: usize = 200;

    #[test]
    fn every_fold_of_every_type_is_as_the_serial_one() {
        spmd(3, |world| {
            let team = world.team();
            let footprint = scattered(BYTES, 3).of_slots();
            let mut fixture = Fixture::new(world, Some(&team), footprint, 1)?;
            for (op, number) in OPS
                .iter()
                .flat_map(|op| Number::value_variants().iter().map(move |n| (op, *n)))
            {
                for fold in Fold::ALL.into_iter().filter(|fold| number.has(*fold)) {
                    fixture.folds = (fold, number);
                    let mut work = (op.prepare)(&fixture, BYTES)?;
                    world.barrier_all()?;
                    let what = format!("{} of {fold:?}, {number:?}", op.name);
                    // An empty fold may leave 0.
                    let nothing = op.name == "exscan" && world.my_pe() == 0;
                    assert!(
                        nothing || work.check(&fixture, Role::BOTH, 0).is_err(),
                        "{what}"
                    );
                    work.run(&fixture, 2)?;
                    work.check(&fixture, Role::BOTH, 2).expect(&what);
                    work.validate(&fixture, Role::BOTH).expect(&what);
                    world.barrier_all()?;
                }
            }
            fixture.free()
        })
        .unwrap();
    }
}
