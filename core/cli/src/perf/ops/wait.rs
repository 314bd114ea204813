//! Waits and tests whose condition already holds, on PE 0's own words.

use std::hint::black_box;

use anyhow::ensure;
use oxshmem::{Cmp, Result, Sym};

use crate::perf::fixture::{Fixture, Role, SEVERAL as WORDS, VALUE};
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
            prepare: |fixture, _| {
                let words = fixture.several;
                Polls::at(fixture, words, move |fixture| {
                    let found = fixture.world.$call(words, None, Cmp::Eq, $values)?;
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
        prepare: |fixture, _| {
            Polls::boxed(fixture, |fixture| {
                fixture.world.wait_until(fixture.word, Cmp::Eq, VALUE)?;
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
        prepare: |fixture, _| {
            Polls::boxed(fixture, |fixture| {
                fixture.world.test(fixture.word, Cmp::Eq, VALUE)
            })
        },
    },
    Op {
        name: "signal-fetch",
        about: "reads an own signal word",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::One,
        prepare: |fixture, _| {
            Polls::boxed(fixture, |fixture| {
                Ok(fixture.world.signal_fetch(fixture.signal)? == VALUE)
            })
        },
    },
];

/// A test of an own word, and how often its condition held.
struct Polls<F> {
    poll: F,
    held: u64,
}

impl<F: Fn(&Fixture<'_>) -> Result<bool> + 'static> Polls<F> {
    /// A test of the word or the signal.
    fn boxed(fixture: &Fixture<'_>, poll: F) -> Result<Box<dyn Work>> {
        fixture.world.write(fixture.signal, &[0])?;
        let polls = Polls::at(fixture, fixture.word, poll);
        if fixture.answers() {
            fixture
                .world
                .signal_set(fixture.signal, VALUE, fixture.peer())?;
        }
        polls
    }

    /// A test of these words.
    fn at(fixture: &Fixture<'_>, words: Sym<u64>, poll: F) -> Result<Box<dyn Work>> {
        fixture.world.write(words, &vec![0; words.len()])?;
        fixture.world.barrier_all()?;
        // The partner puts the value, since waits are for remote data.
        if fixture.answers() {
            for word in 0..words.len() {
                fixture.world.set(words.at(word)?, VALUE, fixture.peer())?;
            }
        }
        let held = 0;
        Ok(Box::new(Polls { poll, held }))
    }
}

impl<F: Fn(&Fixture<'_>) -> Result<bool>> Work for Polls<F> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        for _ in 0..count {
            self.held += u64::from(black_box((self.poll)(fixture)?));
        }
        Ok(())
    }

    fn check(&self, _: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()> {
        ensure!(
            !role.acts || self.held == total,
            "the word had its value {} times of {total}",
            self.held
        );
        Ok(())
    }
}
