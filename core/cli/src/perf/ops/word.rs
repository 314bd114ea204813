//! Puts and gets of single values by PE 0.

use std::hint::black_box;

use oxshmem::{Pod, Result};

use crate::perf::fixture::{Fixture, Role, Target, VALUE, low, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};
use crate::perf::validate::{self, Destination, Shape};

const SIZES: Span = Span::Values(&[1, 2, 4, 8]);
const METRICS: &[Metric] = &[Metric::Latency, Metric::Rate];

pub const OPS: &[Op] = &[
    Op {
        name: "p",
        about: "puts one value, back to back; a batch ends with a quiet",
        span: SIZES,
        metrics: METRICS,
        who: Who::One,
        prepare: |fixture, bytes| {
            fixture.world.write(fixture.word, &[0])?;
            Ok(match bytes {
                1 => Box::new(P(VALUE as u8)),
                2 => Box::new(P(VALUE as u16)),
                4 => Box::new(P(VALUE as u32)),
                _ => Box::new(P(VALUE)),
            })
        },
    },
    Op {
        name: "g",
        about: "gets one value, back to back",
        span: SIZES,
        metrics: METRICS,
        who: Who::One,
        prepare: |fixture, bytes| {
            fixture.world.write(fixture.word, &[VALUE])?;
            Ok(match bytes {
                1 => Box::new(G(0_u8)),
                2 => Box::new(G(0_u16)),
                4 => Box::new(G(0_u32)),
                _ => Box::new(G(0_u64)),
            })
        },
    },
];

/// Puts of a value.
struct P<T>(T);

impl<T: Pod + Send> OneSided for P<T> {
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()> {
        let word = target.word.cast::<T>()?;
        for _ in 0..count {
            target.context.p(word, black_box(self.0), target.pe)?;
        }
        Ok(())
    }
}

impl<T: Pod + Send> Work for P<T> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        self.post(&fixture.target(fixture.world), count)
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        let shape = Shape::new("p", size_of::<T>(), Destination::Peer);
        validate::transfers(fixture, role, &shape, &mut |slots| {
            slots.iter_mut().try_for_each(|slot| {
                let word = slot.block.cast()?;
                let mut values = slot.local().iter();
                values.try_for_each(|value: &T| fixture.world.p(word, *value, fixture.peer()))
            })
        })
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, _total: u64) -> anyhow::Result<()> {
        if !role.receives {
            return Ok(());
        }
        let found = fixture.world.g(fixture.word, fixture.world.my_pe())?;
        same_word(found, low(VALUE, size_of::<T>()))
    }
}

/// Gets of a value, and the last one received.
struct G<T>(T);

impl<T: Pod + Send> OneSided for G<T> {
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()> {
        let word = target.word.cast::<T>()?;
        for _ in 0..count {
            self.0 = black_box(target.context.g(word, target.pe)?);
        }
        Ok(())
    }
}

impl<T: Pod + Send> Work for G<T> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        self.post(&fixture.target(fixture.world), count)
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        let shape = Shape::new("g", size_of::<T>(), Destination::Private);
        validate::transfers(fixture, role, &shape, &mut |slots| {
            for slot in slots {
                let word = slot.block.cast::<T>()?;
                for value in slot.local() {
                    *value = fixture.world.g(word, fixture.peer())?;
                }
            }
            Ok(())
        })
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn check(&self, _: &Fixture<'_>, role: Role, _total: u64) -> anyhow::Result<()> {
        if !role.acts {
            return Ok(());
        }
        let got: T = self.0;
        let mut first = [0; 8];
        let bytes = bytemuck::bytes_of(&got);
        first
            .iter_mut()
            .zip(bytes)
            .for_each(|(first, byte)| *first = *byte);
        same_word(u64::from_ne_bytes(first), low(VALUE, size_of::<T>()))
    }
}
