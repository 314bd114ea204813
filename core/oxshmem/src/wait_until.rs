//! Waiting for, and testing, words of this PE's own symmetric memory that others change (M23).
//!
//! Comparisons are typed. A call that returns with success has acquired: later reads see what the
//! writer ordered before the word. Tests, reads of signals, and waits that do not find their word at once, make
//! progress.

use std::cell::Cell;

use bytemuck::Pod;

use crate::atomics::AtomicInt;
use crate::atomics::Word;
use crate::call_waiter::{CallWaiter, next_random};
use crate::context::Context;
use crate::context::threads::SharedContext;
use crate::error::{Error, Result};
use crate::pe_state::PeState;
use crate::place::placed;
use crate::sym::Sym;
use oxshmem_engine::engine::Engine;
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::reason::{WaitReason, WaitsOn};
use oxshmem_engine::progress::wait::Waiter;
use oxshmem_engine::progress::wait::spin;
use oxshmem_engine::progress::wait::wait_longer;
use oxshmem_engine::worker::Worker;

/// A comparison of a word with a value: `word CMP value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cmp {
    /// Equal.
    #[doc(alias("SHMEM_CMP_EQ", "NVSHMEM_CMP_EQ"))]
    Eq,
    /// Not equal.
    #[doc(alias("SHMEM_CMP_NE", "NVSHMEM_CMP_NE"))]
    Ne,
    /// Greater.
    #[doc(alias("SHMEM_CMP_GT", "NVSHMEM_CMP_GT"))]
    Gt,
    /// Greater or equal.
    #[doc(alias("SHMEM_CMP_GE", "NVSHMEM_CMP_GE"))]
    Ge,
    /// Less.
    #[doc(alias("SHMEM_CMP_LT", "NVSHMEM_CMP_LT"))]
    Lt,
    /// Less or equal.
    #[doc(alias("SHMEM_CMP_LE", "NVSHMEM_CMP_LE"))]
    Le,
}

impl Cmp {
    /// Whether `word CMP value` holds.
    #[inline]
    #[must_use]
    pub fn holds<T: PartialOrd>(self, word: T, value: T) -> bool {
        match self {
            Cmp::Eq => word == value,
            Cmp::Ne => word != value,
            Cmp::Gt => word > value,
            Cmp::Ge => word >= value,
            Cmp::Lt => word < value,
            Cmp::Le => word <= value,
        }
    }
}

/// A type whose words can be waited for (M30's standard set).
pub trait Waitable: AtomicInt + PartialOrd + std::fmt::Debug {}
impl<T: AtomicInt + PartialOrd + std::fmt::Debug> Waitable for T {}

impl CallWaiter for Context<'_> {
    type Waiter = Worker;

    #[inline(always)]
    fn waiter(&self) -> &Worker {
        &self.worker
    }

    #[inline(always)]
    fn pe(&self) -> &PeState {
        &self.pe
    }

    #[inline(always)]
    fn tag(&self) -> u32 {
        self.worker.tag
    }

    /// The next of a simple sequence (xorshift).
    fn random(&self) -> u64 {
        let next = next_random(self.random_state().get());
        self.random_state().set(next);
        next >> 32
    }
}

/// [`wait`] as a public call for itself: its report and its error name the place of the call.
#[inline]
#[track_caller]
pub(crate) fn wait_in_call<R>(
    of: &impl Waiter,
    reason: &WaitReason<'_>,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<R> {
    match spin(of.engine(), &mut ready) {
        Some(value) => Ok(value),
        None => wait_placed(of, reason, &mut ready),
    }
}

#[cold]
#[track_caller]
fn wait_placed<R>(
    of: &dyn Waiter,
    reason: &WaitReason<'_>,
    ready: &mut dyn FnMut() -> Option<R>,
) -> Result<R> {
    placed(|| Ok(wait_longer(of, reason, None, ready)?))
}

/// Refuses an object that this PE's CPU cannot load, or with too few elements.
#[inline]
#[track_caller]
pub(crate) fn check_word<T: Pod>(
    of: &impl CallWaiter,
    call: &'static str,
    word: Sym<T>,
    elements: usize,
) -> Result<()> {
    match of.pe().check_own(of.tag(), call, word, elements) {
        Ok(()) => Ok(()),
        Err(error) => Err(error.here()),
    }
}

/// Values to compare with: one for all words, or one for each.
#[derive(Clone, Copy)]
enum Values<'a, T> {
    One(T),
    Each(&'a [T]),
}

impl<T: Copy> Values<'_, T> {
    #[inline]
    fn of(&self, index: usize) -> Option<T> {
        match self {
            Values::One(value) => Some(*value),
            Values::Each(values) => values.get(index).copied(),
        }
    }
}

/// The words of a call: those whose status is `false` (or all), each with its value.
struct Set<'a, T> {
    call: &'static str,
    words: Sym<T>,
    skip: Option<&'a [bool]>,
    cmp: Cmp,
    values: Values<'a, T>,
    /// The state of the sequence that says where the next search for any word begins; never 0.
    start: Cell<u64>,
}

impl<T: Waitable> Set<'_, T> {
    /// The indices that count.
    fn members(&self) -> impl Iterator<Item = usize> + use<'_, T> {
        let skip = |i: usize| self.skip.and_then(|s| s.get(i).copied()).unwrap_or(false);
        (0..self.words.len()).filter(move |&i| !skip(i))
    }

    fn holds(&self, at: &Engine, index: usize) -> bool {
        match (self.words.at(index), self.values.of(index)) {
            (Ok(word), Some(value)) => self.cmp.holds(load_acquire(at, word), value),
            _ => false,
        }
    }

    fn all(&self, at: &Engine) -> bool {
        self.members().all(|i| self.holds(at, i))
    }

    fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// A word that holds. The search begins anywhere, so that no word starves.
    fn any(&self, at: &Engine) -> Option<usize> {
        self.start.set(next_random(self.start.get()));
        let start = (self.start.get() >> 32) as usize % self.words.len().max(1);
        let holds = |i: &usize| self.holds(at, *i);
        self.members()
            .filter(|i| *i >= start)
            .find(holds)
            .or_else(|| self.members().take_while(|i| *i < start).find(holds))
    }

    /// Every word that holds.
    fn some(&self, at: &Engine) -> Vec<usize> {
        self.members().filter(|&i| self.holds(at, i)).collect()
    }

    fn reason_words(&self) -> (WaitedFor, String) {
        let (len, at) = (self.words.len(), self.words.offset());
        (
            WaitedFor::Any,
            format!("{len} words at offset {at} to become {:?}", self.cmp),
        )
    }
}

macro_rules! families {
    ($($(#[$doc:meta])* { $(#[$example:meta])* } $wait:ident $wait_vector:ident $test:ident $test_vector:ident
       -> $wait_out:ty, $test_out:ty, $poll:expr, $empty:expr, $test_of:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// `skip[i]` leaves word i out. Waits.
        ///
        $(#[$example])*
        #[track_caller]
        pub fn $wait<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, value: T,
        ) -> Result<$wait_out> {
            let set = word_set(self, stringify!($wait), words, skip, cmp, Values::One(value))?;
            if set.is_empty() { return Ok($empty) }
            wait_set(self, &set, $poll)
        }

        $(#[$doc])*
        ///
        /// Each word has its own value. Waits.
        #[track_caller]
        pub fn $wait_vector<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, values: &[T],
        ) -> Result<$wait_out> {
            let set = word_set(self, stringify!($wait_vector), words, skip, cmp, Values::Each(values))?;
            if set.is_empty() { return Ok($empty) }
            wait_set(self, &set, $poll)
        }

        $(#[$doc])*
        ///
        /// `skip[i]` leaves word i out. Polls once.
        #[track_caller]
        pub fn $test<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, value: T,
        ) -> Result<$test_out> {
            let set = word_set(self, stringify!($test), words, skip, cmp, Values::One(value))?;
            test_set(self, &set, $test_of)
        }

        $(#[$doc])*
        ///
        /// Each word has its own value. Polls once.
        #[track_caller]
        pub fn $test_vector<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, values: &[T],
        ) -> Result<$test_out> {
            let set = word_set(self, stringify!($test_vector), words, skip, cmp, Values::Each(values))?;
            test_set(self, &set, $test_of)
        }
    )*};
}

/// The calls of both kinds of context.
macro_rules! calls {
    () => {
        /// Waits until the first word of `word`, in this PE's own memory, compares as asked (M23).
        ///
        /// ```
        /// use oxshmem::{Cmp, Result, testing::spmd};
        ///
        /// fn main() -> Result<()> {
        ///     spmd(2, |world| {
        ///         let data = world.alloc::<u64>(8)?;
        ///         let flag = world.alloc_zeroed::<u64>(1)?;
        ///         if world.my_pe() == 0 {
        ///             world.put(data, &[7; 8], 1)?;
        ///             world.fence()?;
        ///             world.set(flag, 1, 1)?;
        ///         } else {
        ///             world.wait_until(flag, Cmp::Eq, 1)?;
        ///             assert_eq!(world.g(data.at(7)?, 1)?, 7);
        ///         }
        ///         Ok(())
        ///     })?;
        ///     Ok(())
        /// }
        /// ```
        #[doc(alias("shmem_wait_until", "shmem_wait", "nvshmem_wait_until"))]
        #[inline]
        #[track_caller]
        pub fn wait_until<T: Waitable>(&self, word: Sym<T>, cmp: Cmp, value: T) -> Result<()> {
            wait_word(self, "wait_until", word, cmp, value).map(drop)
        }

        /// Whether the first word of `word`, in this PE's own memory, compares as asked (M23).
        ///
        /// ```
        /// use oxshmem::{Cmp, Result, testing::spmd};
        ///
        /// fn main() -> Result<()> {
        ///     spmd(2, |world| {
        ///         let flag = world.alloc_zeroed::<u64>(1)?;
        ///         world.set(flag, 1, 1 - world.my_pe())?;
        ///         let mut rounds = 0_u64;
        ///         while !world.test(flag, Cmp::Eq, 1)? {
        ///             rounds += 1; // other work
        ///             std::thread::yield_now();
        ///         }
        ///         println!("PE {} did {rounds} rounds of other work", world.my_pe());
        ///         Ok(())
        ///     })?;
        ///     Ok(())
        /// }
        /// ```
        #[doc(alias("shmem_test", "nvshmem_test"))]
        #[inline]
        #[track_caller]
        pub fn test<T: Waitable>(&self, word: Sym<T>, cmp: Cmp, value: T) -> Result<bool> {
            check_word(self, "test", word, 1)?;
            CallWaiter::waiter(self).progress();
            CallWaiter::waiter(self).engine().run_progress_hook("test")?;
            let holds = cmp.holds(load_acquire(CallWaiter::waiter(self).engine(), word), value);
            CallWaiter::waiter(self).engine().make_gpu_data_visible()?;
            Ok(holds)
        }

        /// Waits until this PE's own signal word compares as asked; gives the value that did (M23).
        ///
        /// ```
        /// use oxshmem::{Cmp, Result, testing::spmd};
        ///
        /// fn main() -> Result<()> {
        ///     spmd(3, |world| {
        ///         let signal = world.alloc_zeroed::<u64>(1)?;
        ///         world.signal_add(signal, 1, 0)?; // each PE signals PE 0
        ///         if world.my_pe() == 0 {
        ///             assert_eq!(world.signal_wait_until(signal, Cmp::Ge, 3)?, 3);
        ///         }
        ///         Ok(())
        ///     })?;
        ///     Ok(())
        /// }
        /// ```
        #[doc(alias("shmem_signal_wait_until", "nvshmem_signal_wait_until"))]
        #[inline]
        #[track_caller]
        pub fn signal_wait_until(&self, signal: Sym<u64>, cmp: Cmp, value: u64) -> Result<u64> {
            wait_word(self, "signal_wait_until", signal, cmp, value)
        }

        /// Reads this PE's own signal word (M22).
        ///
        /// ```
        /// use oxshmem::{Result, testing::spmd};
        ///
        /// fn main() -> Result<()> {
        ///     spmd(2, |world| {
        ///         let signal = world.alloc_zeroed::<u64>(1)?;
        ///         world.signal_set(signal, 5, 1 - world.my_pe())?;
        ///         world.barrier_all()?;
        ///         assert_eq!(world.signal_fetch(signal)?, 5);
        ///         Ok(())
        ///     })?;
        ///     Ok(())
        /// }
        /// ```
        #[doc(alias("shmem_signal_fetch", "nvshmem_signal_fetch"))]
        #[inline]
        #[track_caller]
        pub fn signal_fetch(&self, signal: Sym<u64>) -> Result<u64> {
            check_word(self, "signal_fetch", signal, 1)?;
            CallWaiter::waiter(self).progress();
            CallWaiter::waiter(self).engine().run_progress_hook("signal_fetch")?;
            let value = load_acquire(CallWaiter::waiter(self).engine(), signal);
            CallWaiter::waiter(self).engine().make_gpu_data_visible()?;
            Ok(value)
        }

        families! {
            /// All of the words compare as asked; so do none at all.
            #[doc(alias("shmem_wait_until_all", "shmem_wait_until_all_vector", "nvshmem_wait_until_all"))]
            #[doc(alias("shmem_test_all", "shmem_test_all_vector", "nvshmem_test_all"))]
            {
                /// ```
                /// use oxshmem::{Cmp, Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(3, |world| {
                ///         let flags = world.alloc_zeroed::<u64>(3)?;
                ///         for pe in 0..3 {
                ///             world.set(flags.at(world.my_pe())?, 1, pe)?;
                ///         }
                ///         world.wait_until_all(flags, None, Cmp::Eq, 1)?; // all three have arrived
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
            }
            wait_until_all wait_until_all_vector test_all test_all_vector
                -> (), bool,
                |set, at| set.all(at).then_some(()), (),
                |set: &Set<'_, T>, at: &Engine| set.all(at);
            /// The index of a word that compares as asked, picked at random; none for no words (or, when
            /// testing, where none does).
            #[doc(alias("shmem_wait_until_any", "shmem_wait_until_any_vector", "nvshmem_wait_until_any"))]
            #[doc(alias("shmem_test_any", "shmem_test_any_vector", "nvshmem_test_any"))]
            {
                /// ```
                /// use oxshmem::{Cmp, Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(3, |world| {
                ///         let flags = world.alloc_zeroed::<u64>(3)?;
                ///         for pe in 0..3 {
                ///             world.set(flags.at(world.my_pe())?, 1, pe)?;
                ///         }
                ///         let mut seen = [false; 3];
                ///         while let Some(first) = world.wait_until_any(flags, Some(&seen), Cmp::Eq, 1)? {
                ///             seen[first] = true; // one more has arrived
                ///         }
                ///         assert_eq!(seen, [true; 3]);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
            }
            wait_until_any wait_until_any_vector test_any test_any_vector
                -> Option<usize>, Option<usize>,
                |set, at| set.any(at).map(Some), None,
                |set: &Set<'_, T>, at: &Engine| set.any(at);
            /// The indices of the words that compare as asked, at least one when waiting; empty for no
            /// words.
            #[doc(alias("shmem_wait_until_some", "shmem_wait_until_some_vector", "nvshmem_wait_until_some"))]
            #[doc(alias("shmem_test_some", "shmem_test_some_vector", "nvshmem_test_some"))]
            {
                /// ```
                /// use oxshmem::{Cmp, Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(3, |world| {
                ///         let flags = world.alloc_zeroed::<u64>(3)?;
                ///         for pe in 0..3 {
                ///             world.set(flags.at(world.my_pe())?, 1, pe)?;
                ///         }
                ///         let mut seen = [false; 3];
                ///         while !seen.iter().all(|seen| *seen) {
                ///             for pe in world.wait_until_some(flags, Some(&seen), Cmp::Eq, 1)? {
                ///                 seen[pe] = true; // this one has arrived
                ///             }
                ///         }
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
            }
            wait_until_some wait_until_some_vector test_some test_some_vector
                -> Vec<usize>, Vec<usize>,
                |set, at| Some(set.some(at)).filter(|s| !s.is_empty()), Vec::new(),
                |set: &Set<'_, T>, at: &Engine| set.some(at);
        }
    };
}

impl Context<'_> {
    calls!();
}

impl SharedContext<'_> {
    calls!();
}

#[track_caller]
fn word_set<'a, T: Waitable>(
    of: &impl CallWaiter,
    call: &'static str,
    words: Sym<T>,
    skip: Option<&'a [bool]>,
    cmp: Cmp,
    values: Values<'a, T>,
) -> Result<Set<'a, T>> {
    check_word(of, call, words, 0)?;
    let short = |len| Error::BufferTooSmall {
        call,
        len,
        needed: words.len(),
    };
    match (skip, values) {
        (Some(skip), _) if skip.len() < words.len() => Err(short(skip.len()).here()),
        (_, Values::Each(values)) if values.len() < words.len() => Err(short(values.len()).here()),
        _ => Ok(Set {
            call,
            words,
            skip,
            cmp,
            values,
            start: Cell::new(of.random() | 1),
        }),
    }
}

#[track_caller]
fn wait_set<T: Waitable, R>(
    of: &impl CallWaiter,
    set: &Set<'_, T>,
    poll: impl Fn(&Set<'_, T>, &Engine) -> Option<R>,
) -> Result<R> {
    let describe = || set.reason_words();
    let reason = WaitReason {
        call: set.call,
        needs: WaitsOn::AnyPeer,
        describe: &describe,
    };
    let found = wait_in_call(of.waiter(), &reason, || poll(set, of.waiter().engine()))?;
    of.waiter().engine().make_gpu_data_visible()?;
    Ok(found)
}

fn test_set<T: Waitable, R>(
    of: &impl CallWaiter,
    set: &Set<'_, T>,
    test: impl Fn(&Set<'_, T>, &Engine) -> R,
) -> Result<R> {
    of.waiter().progress();
    of.waiter().engine().run_progress_hook(set.call)?;
    let found = test(set, of.waiter().engine());
    of.waiter().engine().make_gpu_data_visible()?;
    Ok(found)
}

/// Waits for one word; gives the value that satisfied the comparison.
#[inline]
#[track_caller]
pub(crate) fn wait_word<T: Waitable>(
    of: &impl CallWaiter,
    call: &'static str,
    word: Sym<T>,
    cmp: Cmp,
    value: T,
) -> Result<T> {
    check_word(of, call, word, 1)?;
    let describe = || {
        let now = load_acquire(of.waiter().engine(), word);
        let at = word.offset();
        (
            WaitedFor::Any,
            format!("the word at offset {at} ({now:?}) to be {cmp:?} {value:?}"),
        )
    };
    let reason = WaitReason {
        call,
        needs: WaitsOn::AnyPeer,
        describe: &describe,
    };
    let found = wait_in_call(of.waiter(), &reason, || {
        let now = load_acquire(of.waiter().engine(), word);
        cmp.holds(now, value).then_some(now)
    })?;
    of.waiter().engine().make_gpu_data_visible()?;
    Ok(found)
}

/// Loads this PE's own word with acquire order. The caller has checked that the object is this world's.
#[inline(always)]
fn load_acquire<T: Word>(at: &Engine, word: Sym<T>) -> T {
    T::of_bits(at.own(word).load_word(T::WIDTH, FenceSite::Wait))
}
