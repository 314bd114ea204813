//! Waits and tests whose condition already holds, on PE 0's own words.

use std::hint::black_box;

use anyhow::ensure;
use oxshmem::{Cmp, Result, Sym};

use crate::perf::ground::{Ground, SEVERAL as WORDS, Seat, VALUE};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

const METRICS: &[Metric] = &[Metric::Latency];

macro_rules! several {
    ($($name:literal $call:ident $about:literal $values:expr, $right:expr;)*) => {
        /// Waits and tests of several words.
        pub const SEVERAL: &[Op] = &[$(Op {
            name: $name,
            about: $about,
            span: Span::Values(&[WORDS * size_of::<u64>()]),
            metrics: METRICS,
            who: Who::One,
            prepare: |ground, _| {
                let words = ground.several;
                Looks::at(ground, words, move |ground| {
                    let found = ground.world.$call(words, None, Cmp::Eq, $values)?;
                    Ok($right(found))
                })
            },
        }),*];
    };
}

several! {
    "wait-until-all" wait_until_all "on own words that all have the value" VALUE, |()| true;
    "wait-until-any" wait_until_any "likewise" VALUE, is_one;
    "wait-until-some" wait_until_some "likewise" VALUE, are_all;
    "test-all" test_all "likewise" VALUE, |all| all;
    "test-any" test_any "likewise" VALUE, is_one;
    "test-some" test_some "likewise" VALUE, are_all;
    "wait-until-all-vector" wait_until_all_vector "likewise, a value for each word" VALUES, |()| true;
    "wait-until-any-vector" wait_until_any_vector "likewise" VALUES, is_one;
    "wait-until-some-vector" wait_until_some_vector "likewise" VALUES, are_all;
    "test-all-vector" test_all_vector "likewise" VALUES, |all| all;
    "test-any-vector" test_any_vector "likewise" VALUES, is_one;
    "test-some-vector" test_some_vector "likewise" VALUES, are_all;
}

const VALUES: &[u64] = &[VALUE; WORDS];

fn is_one(found: Option<usize>) -> bool {
    found.is_some_and(|index| index < WORDS)
}

fn are_all(found: Vec<usize>) -> bool {
    found.len() == WORDS
}

/// Waits and tests of one word.
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

/// A test of an own word, and how often its condition held.
struct Looks<F> {
    look: F,
    held: u64,
}

impl<F: Fn(&Ground<'_>) -> Result<bool> + 'static> Looks<F> {
    /// A test of the word or the signal.
    fn boxed(ground: &Ground<'_>, look: F) -> Result<Box<dyn Work>> {
        ground.world.write(ground.signal, &[0])?;
        let looks = Looks::at(ground, ground.word, look);
        if ground.answers() {
            ground
                .world
                .signal_set(ground.signal, VALUE, ground.peer())?;
        }
        looks
    }

    /// A test of these words.
    fn at(ground: &Ground<'_>, words: Sym<u64>, look: F) -> Result<Box<dyn Work>> {
        ground.world.write(words, &vec![0; words.len()])?;
        ground.world.barrier_all()?;
        // The partner puts the value, since waits are for remote data.
        if ground.answers() {
            for word in 0..words.len() {
                ground.world.set(words.at(word)?, VALUE, ground.peer())?;
            }
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
