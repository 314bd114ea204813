//! Blocking atomics of PE 0 on a word of its partner.

use std::hint::black_box;
use std::marker::PhantomData;

use anyhow::Context as _;
use oxshmem::{AtomicBits, Context, Result, Sym};

use crate::perf::fixture::{Fixture, Role, Target, VALUE, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};
use crate::perf::validate;

/// A word's type.
pub(super) trait Value: AtomicBits + Send {
    const ONE: Self;

    /// The value of the low bits.
    fn of(value: u64) -> Self;

    fn wide(self) -> u64;
}

impl Value for u32 {
    const ONE: u32 = 1;

    fn of(value: u64) -> u32 {
        value as u32
    }

    fn wide(self) -> u64 {
        self.into()
    }
}

impl Value for u64 {
    const ONE: u64 = 1;

    fn of(value: u64) -> u64 {
        value
    }

    fn wide(self) -> u64 {
        self
    }
}

/// An atomic operation.
pub(super) trait Call<T>: Send {
    /// Whether it returns the word's former value.
    const FETCHES: bool;

    /// The word's value after `count` operations; the initial one after none.
    fn after(count: u64) -> u64;

    /// Does the operation, after `done` others.
    fn call(context: &Context<'_>, word: Sym<T>, done: T, pe: usize) -> Result<T>;
}

macro_rules! calls {
    ($($name:literal $call:ident $fetches:literal $about:literal:
        |$world:ident, $word:ident, $done:ident, $pe:ident| $do:expr, |$count:ident| $after:expr;)*) => {
        $(pub(super) struct $call;

        impl<T: Value> Call<T> for $call {
            const FETCHES: bool = $fetches;

            #[inline(always)]
            fn after($count: u64) -> u64 {
                $after
            }

            #[inline(always)]
            fn call($world: &Context<'_>, $word: Sym<T>, $done: T, $pe: usize) -> Result<T> {
                $do
            }
        })*

        pub const OPS: &[Op] = &[$(Op {
            name: $name,
            about: $about,
            span: Span::Values(&[4, 8]),
            metrics: &[Metric::Latency, Metric::Rate],
            who: Who::One,
            prepare: |fixture, bytes| match bytes {
                4 => Atomic::<u32, $call>::boxed(fixture),
                _ => Atomic::<u64, $call>::boxed(fixture),
            },
        }),*];
    };
}

/// The result of an operation without one: zero.
fn nothing<T: Value>(done: Result<()>) -> Result<T> {
    done.map(|()| T::of(0))
}

/// A value that is `before` at first, and `after` from the first operation on.
pub(super) fn once(count: u64, before: u64, after: u64) -> u64 {
    if count == 0 { before } else { after }
}

calls! {
    "add" Add false "atomic, back to back; a batch ends with a quiet":
        |world, word, _done, pe| nothing(world.add(word, T::ONE, pe)), |count| count;
    "inc" Inc false "likewise":
        |world, word, _done, pe| nothing(world.inc(word, pe)), |count| count;
    "set" Set false "likewise":
        |world, word, _done, pe| nothing(world.set(word, T::of(VALUE), pe)),
        |count| once(count, 0, VALUE);
    "and" And false "likewise":
        |world, word, _done, pe| nothing(world.and(word, T::of(VALUE), pe)),
        |count| once(count, u64::MAX, VALUE);
    "or" Or false "likewise":
        |world, word, _done, pe| nothing(world.or(word, T::of(VALUE), pe)),
        |count| once(count, 0, VALUE);
    "xor" Xor false "likewise":
        |world, word, _done, pe| nothing(world.xor(word, T::of(VALUE), pe)),
        |count| once(count % 2, 0, VALUE);
    "fetch" Fetch true "atomic, back to back, each waiting for its result":
        |world, word, _done, pe| world.fetch(word, pe), |_count| VALUE;
    "fetch-add" FetchAdd true "likewise":
        |world, word, _done, pe| world.fetch_add(word, T::ONE, pe), |count| count;
    "fetch-inc" FetchInc true "likewise":
        |world, word, _done, pe| world.fetch_inc(word, pe), |count| count;
    "fetch-and" FetchAnd true "likewise":
        |world, word, _done, pe| world.fetch_and(word, T::of(VALUE), pe),
        |count| once(count, u64::MAX, VALUE);
    "fetch-or" FetchOr true "likewise":
        |world, word, _done, pe| world.fetch_or(word, T::of(VALUE), pe),
        |count| once(count, 0, VALUE);
    "fetch-xor" FetchXor true "likewise":
        |world, word, _done, pe| world.fetch_xor(word, T::of(VALUE), pe),
        |count| once(count % 2, 0, VALUE);
    "swap" Swap true "likewise":
        |world, word, _done, pe| world.swap(word, T::of(VALUE), pe),
        |count| once(count, 0, VALUE);
    "compare-swap" CompareSwap true "likewise; each swaps":
        |world, word, done, pe| world.compare_swap(word, done, T::of(done.wide() + 1), pe),
        |count| count;
}

/// Sets this PE's word to a value of this type.
pub(super) fn fill<T: Value>(fixture: &Fixture<'_>, value: u64) -> Result<()> {
    fixture.world.write(fixture.word, &[0])?;
    fixture
        .world
        .write(fixture.word.cast::<T>()?, &[T::of(value)])
}

/// Does a few operations on PE 0, one by one. Resets the word before each, and checks the word and
/// the result after it.
pub(super) fn validate<T: Value>(
    fixture: &Fixture<'_>,
    role: Role,
    after: fn(u64) -> u64,
    one: &mut dyn FnMut(&Target<'_, '_>) -> Result<Option<T>>,
) -> anyhow::Result<()> {
    if !role.acts {
        return Ok(());
    }
    let target = fixture.target(fixture.world);
    let (context, word) = (target.context, target.word.cast::<T>()?);
    let [before, left] = [0, 1].map(|count| T::of(after(count)));
    for number in 0..validate::SLOTS {
        context.set(word, before, target.pe)?;
        context.quiet()?;
        let gives = one(&target)?;
        context.quiet()?;
        let leaves = context.fetch(word, target.pe)?;
        same_word(leaves.wide(), left.wide()).with_context(|| validate::of(number))?;
        if let Some(gives) = gives {
            same_word(gives.wide(), before.wide()).with_context(|| validate::of(number))?;
        }
    }
    Ok(())
}

/// An atomic operation prepared on this PE.
struct Atomic<T, C> {
    /// Operations done so far.
    done: u64,
    /// The last result.
    last: T,
    call: PhantomData<C>,
}

impl<T: Value + 'static, C: Call<T> + 'static> Atomic<T, C> {
    fn boxed(fixture: &Fixture<'_>) -> Result<Box<dyn Work>> {
        fill::<T>(fixture, C::after(0))?;
        Ok(Box::new(Atomic::<T, C> {
            done: 0,
            last: T::of(0),
            call: PhantomData,
        }))
    }
}

impl<T: Value, C: Call<T>> OneSided for Atomic<T, C> {
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()> {
        let word = target.word.cast::<T>()?;
        for done in self.done..self.done + count {
            self.last = black_box(C::call(target.context, word, T::of(done), target.pe)?);
        }
        self.done += count;
        Ok(())
    }
}

impl<T: Value, C: Call<T>> Work for Atomic<T, C> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        self.post(&fixture.target(fixture.world), count)
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        validate(fixture, role, C::after, &mut |target| {
            let word = target.word.cast::<T>()?;
            let gives = C::call(target.context, word, T::of(0), target.pe)?;
            Ok(C::FETCHES.then_some(gives))
        })
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()> {
        let after = |count| T::of(C::after(count)).wide();
        if role.receives {
            let word = fixture.word.cast::<T>()?;
            let found = fixture.world.g(word, fixture.world.my_pe())?;
            same_word(found.wide(), after(total))?;
        }
        if role.acts && C::FETCHES && total > 0 {
            same_word(self.last.wide(), after(total - 1))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::fixture::Footprint;
    use oxshmem::testing::spmd;

    #[test]
    fn an_atomic_that_is_lost_or_done_twice_or_gives_another_value_is_found() {
        spmd(1, |world| {
            let fixture = Fixture::new(world, None, Footprint::default(), 1)?;
            let found_right = |times: u64, gives: Option<u64>| {
                let mut one = |target: &Target<'_, '_>| {
                    target.context.add(target.word, times, target.pe)?;
                    Ok(gives)
                };
                validate::<u64>(&fixture, Role::BOTH, |count| count, &mut one).is_ok()
            };
            assert!(found_right(1, None) && found_right(1, Some(0)));
            assert!(!found_right(0, None), "lost");
            assert!(!found_right(2, None), "twice");
            assert!(!found_right(1, Some(1)), "another value");
            fixture.free()
        })
        .unwrap();
    }
}
