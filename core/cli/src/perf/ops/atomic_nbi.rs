//! Nonblocking atomics of PE 0 on a word of its partner. A window of them completes together.

use std::marker::PhantomData;

use anyhow::ensure;
use oxshmem::{Result, Scope, Sym};

use super::atomic::{self, Call, Value, once};
use crate::perf::fixture::{Fixture, Role, Target, VALUE, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};

/// The nonblocking form of a fetching atomic.
trait Start<T>: Send {
    /// The word's value after `count` operations; the initial one after none.
    fn after(count: u64) -> u64;

    fn start<'s, 'e>(
        scope: &'s Scope<'s, 'e>,
        result: &'e mut T,
        word: Sym<T>,
        pe: usize,
    ) -> Result<()>;
}

macro_rules! starts {
    ($($name:literal $call:ty: $about:literal,
        |$scope:ident, $result:ident, $word:ident, $pe:ident| $do:expr, |$count:ident| $after:expr;)*) => {
        $(impl<T: Value> Start<T> for $call {
            fn after($count: u64) -> u64 {
                $after
            }

            #[inline(always)]
            fn start<'s, 'e>(
                $scope: &'s Scope<'s, 'e>,
                $result: &'e mut T,
                $word: Sym<T>,
                $pe: usize,
            ) -> Result<()> {
                $do
            }
        })*

        pub const OPS: &[Op] = &[$(Op {
            name: $name,
            about: $about,
            span: Span::Values(&[4, 8]),
            metrics: &[Metric::Rate, Metric::Latency],
            who: Who::OneCompleting,
            prepare: |fixture, bytes| match bytes {
                4 => Atomics::<u32, $call>::boxed(fixture),
                _ => Atomics::<u64, $call>::boxed(fixture),
            },
        }),*];
    };
}

/// A compare-and-swap; only the first one of a window swaps, since none waits for the one before.
struct CompareSwap;

/// The word's value after the blocking form of the same atomic.
fn as_blocking<C: Call<u64>>(count: u64) -> u64 {
    C::after(count)
}

starts! {
    "fetch-nbi" atomic::Fetch: "nonblocking atomic, completed in windows; one by one for its latency",
        |scope, result, word, pe| scope.fetch_nbi(result, word, pe),
        |count| as_blocking::<atomic::Fetch>(count);
    "fetch-add-nbi" atomic::FetchAdd: "likewise",
        |scope, result, word, pe| scope.fetch_add_nbi(result, word, T::ONE, pe),
        |count| as_blocking::<atomic::FetchAdd>(count);
    "fetch-inc-nbi" atomic::FetchInc: "likewise",
        |scope, result, word, pe| scope.fetch_inc_nbi(result, word, pe),
        |count| as_blocking::<atomic::FetchInc>(count);
    "fetch-and-nbi" atomic::FetchAnd: "likewise",
        |scope, result, word, pe| scope.fetch_and_nbi(result, word, T::of(VALUE), pe),
        |count| as_blocking::<atomic::FetchAnd>(count);
    "fetch-or-nbi" atomic::FetchOr: "likewise",
        |scope, result, word, pe| scope.fetch_or_nbi(result, word, T::of(VALUE), pe),
        |count| as_blocking::<atomic::FetchOr>(count);
    "fetch-xor-nbi" atomic::FetchXor: "likewise",
        |scope, result, word, pe| scope.fetch_xor_nbi(result, word, T::of(VALUE), pe),
        |count| as_blocking::<atomic::FetchXor>(count);
    "swap-nbi" atomic::Swap: "likewise",
        |scope, result, word, pe| scope.swap_nbi(result, word, T::of(VALUE), pe),
        |count| as_blocking::<atomic::Swap>(count);
    "compare-swap-nbi" CompareSwap: "likewise; the first swaps",
        |scope, result, word, pe| {
            scope.compare_swap_nbi(result, word, T::of(0), T::of(VALUE), pe)
        },
        |count| once(count, 0, VALUE);
}

/// An atomic operation prepared on this PE.
struct Atomics<T, C> {
    /// The results of the last window.
    results: Vec<T>,
    call: PhantomData<C>,
}

impl<T: Value + 'static, C: Start<T> + 'static> Atomics<T, C> {
    fn boxed(fixture: &Fixture<'_>) -> Result<Box<dyn Work>> {
        atomic::fill::<T>(fixture, C::after(0))?;
        Ok(Box::new(Atomics::<T, C> {
            results: Vec::new(),
            call: PhantomData,
        }))
    }
}

impl<T: Value, C: Start<T>> OneSided for Atomics<T, C> {
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()> {
        let word = target.word.cast::<T>()?;
        self.results.resize(count as usize, T::of(0));
        let results = &mut self.results;
        target.context.scope(|scope| {
            let mut each = results.iter_mut();
            each.try_for_each(|result| C::start(scope, result, word, target.pe))
        })
    }
}

impl<T: Value, C: Start<T>> Work for Atomics<T, C> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        self.post(&fixture.target(fixture.world), count)
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        atomic::validate(fixture, role, C::after, &mut |target| {
            self.post(target, 1)?;
            Ok(self.results.first().copied())
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
        if role.acts && total > 0 {
            // They were in flight together: each found the value that one of them left, in any
            // order.
            let mut found: Vec<u64> = self.results.iter().map(|result| result.wide()).collect();
            let first = total.saturating_sub(found.len() as u64);
            let mut expected: Vec<u64> = (first..total).map(after).collect();
            found.sort_unstable();
            expected.sort_unstable();
            ensure!(
                !found.is_empty() && found == expected,
                "the atomics of the last window did not fetch what they should have"
            );
        }
        Ok(())
    }
}
