//! Waiting for, and testing, words of this PE's own symmetric memory that others change (M23).
//!
//! Comparisons are typed. A call that returns with success has acquired: later reads see what the
//! writer ordered before the word. All of them drive progress.

use crate::atomics::{AtomicInt, Word};
use crate::mapped::Bytes;
use crate::order::Inserted;
use crate::wait::{Needs, Reason};
use crate::{Error, Result, Sym, World};

/// How the word is compared with the value: `word CMP value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
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

/// The words a call looks at: those whose status is `false` (or all), each with its value.
struct Set<'a, T> {
    call: &'static str,
    words: Sym<T>,
    skip: Option<&'a [bool]>,
    cmp: Cmp,
    values: Values<'a, T>,
}

impl<T: Waitable> Set<'_, T> {
    /// The indices that count.
    fn members(&self) -> impl Iterator<Item = usize> + use<'_, T> {
        let skip = |i: usize| self.skip.and_then(|s| s.get(i).copied()).unwrap_or(false);
        (0..self.words.len()).filter(move |&i| !skip(i))
    }

    fn holds(&self, world: &World, index: usize) -> bool {
        match (self.words.at(index), self.values.of(index)) {
            (Ok(word), Some(value)) => self.cmp.holds(world.look(word), value),
            _ => false,
        }
    }

    fn all(&self, world: &World) -> bool {
        self.members().all(|i| self.holds(world, i))
    }

    fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// One that holds; begins to look anywhere, so that none starves.
    fn any(&self, world: &World) -> Option<usize> {
        let start = world.random() as usize % self.words.len().max(1);
        let holds = |i: &usize| self.holds(world, *i);
        self.members()
            .filter(|i| *i >= start)
            .find(holds)
            .or_else(|| self.members().take_while(|i| *i < start).find(holds))
    }

    /// Every one that holds.
    fn some(&self, world: &World) -> Vec<usize> {
        self.members().filter(|&i| self.holds(world, i)).collect()
    }

    fn reason_words(&self) -> (String, String) {
        let (len, at) = (self.words.len(), self.words.offset());
        (
            "some PE".into(),
            format!("{len} words at offset {at} to become {:?}", self.cmp),
        )
    }
}

macro_rules! families {
    ($($(#[$doc:meta])* $wait:ident $wait_vector:ident $test:ident $test_vector:ident
       -> $wait_out:ty, $test_out:ty, $look:expr, $empty:expr, $test_of:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// `skip[i]` leaves word i out. Waits.
        pub fn $wait<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, value: T,
        ) -> Result<$wait_out> {
            let set = self.word_set(stringify!($wait), words, skip, cmp, Values::One(value))?;
            if set.is_empty() { return Ok($empty) }
            self.wait_set(&set, $look)
        }

        $(#[$doc])*
        ///
        /// Each word has its own value. Waits.
        pub fn $wait_vector<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, values: &[T],
        ) -> Result<$wait_out> {
            let set = self.word_set(stringify!($wait_vector), words, skip, cmp, Values::Each(values))?;
            if set.is_empty() { return Ok($empty) }
            self.wait_set(&set, $look)
        }

        $(#[$doc])*
        ///
        /// `skip[i]` leaves word i out. Looks once.
        pub fn $test<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, value: T,
        ) -> Result<$test_out> {
            let set = self.word_set(stringify!($test), words, skip, cmp, Values::One(value))?;
            self.test_set(&set, $test_of)
        }

        $(#[$doc])*
        ///
        /// Each word has its own value. Looks once.
        pub fn $test_vector<T: Waitable>(
            &self, words: Sym<T>, skip: Option<&[bool]>, cmp: Cmp, values: &[T],
        ) -> Result<$test_out> {
            let set = self.word_set(stringify!($test_vector), words, skip, cmp, Values::Each(values))?;
            self.test_set(&set, $test_of)
        }
    )*};
}

impl World {
    /// Waits until the first word of `word`, in this PE's own memory, compares as asked (M23).
    ///
    /// ```
    /// use oxshmem::{Cmp, testing::spmd};
    /// spmd(2, |world| {
    ///     let flag = world.alloc_zeroed::<u64>(1)?;
    ///     let data = world.alloc::<u64>(8)?;
    ///     if world.my_pe() == 0 {
    ///         world.put(data, &[7; 8], 1)?;
    ///         world.fence()?;
    ///         world.set(flag, 1, 1)?;
    ///     } else {
    ///         world.wait_until(flag, Cmp::Eq, 1)?;
    ///         assert_eq!(world.g(data.at(7)?, 1)?, 7);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), oxshmem::Error>(())
    /// ```
    #[doc(alias = "shmem_wait_until")]
    #[inline]
    pub fn wait_until<T: Waitable>(&self, word: Sym<T>, cmp: Cmp, value: T) -> Result<()> {
        self.wait_word("wait_until", word, cmp, value).map(drop)
    }

    /// Whether the first word of `word`, in this PE's own memory, compares as asked (M23).
    #[doc(alias = "shmem_test")]
    #[inline]
    pub fn test<T: Waitable>(&self, word: Sym<T>, cmp: Cmp, value: T) -> Result<bool> {
        self.check_own("test", word, 1)?;
        self.progress();
        let holds = cmp.holds(self.look(word), value);
        self.see_gpu_data()?;
        Ok(holds)
    }

    families! {
        /// All of the words compare as asked; so do none at all.
        #[doc(alias = "shmem_wait_until_all")]
        wait_until_all wait_until_all_vector test_all test_all_vector
            -> (), bool,
            |set, world| set.all(world).then_some(()), (),
            |set: &Set<'_, T>, world: &World| set.all(world);
        /// The index of a word that compares as asked, picked at random; none for no words (or, when
        /// testing, where none does).
        #[doc(alias = "shmem_wait_until_any")]
        wait_until_any wait_until_any_vector test_any test_any_vector
            -> Option<usize>, Option<usize>,
            |set, world| set.any(world).map(Some), None,
            |set: &Set<'_, T>, world: &World| set.any(world);
        /// The indices of the words that compare as asked, at least one when waiting; empty for no
        /// words.
        #[doc(alias = "shmem_wait_until_some")]
        wait_until_some wait_until_some_vector test_some test_some_vector
            -> Vec<usize>, Vec<usize>,
            |set, world| Some(set.some(world)).filter(|s| !s.is_empty()), Vec::new(),
            |set: &Set<'_, T>, world: &World| set.some(world);
    }

    /// A number of a simple random sequence (xorshift).
    fn random(&self) -> u64 {
        let mut x = self.inner.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.inner.random.set(x);
        x >> 32
    }

    fn word_set<'a, T: Waitable>(
        &self,
        call: &'static str,
        words: Sym<T>,
        skip: Option<&'a [bool]>,
        cmp: Cmp,
        values: Values<'a, T>,
    ) -> Result<Set<'a, T>> {
        self.check_own(call, words, 0)?;
        let short = |len| Error::BufferTooSmall {
            call,
            len,
            needed: words.len(),
        };
        match (skip, values) {
            (Some(skip), _) if skip.len() < words.len() => Err(short(skip.len())),
            (_, Values::Each(values)) if values.len() < words.len() => Err(short(values.len())),
            _ => Ok(Set {
                call,
                words,
                skip,
                cmp,
                values,
            }),
        }
    }

    fn wait_set<T: Waitable, R>(
        &self,
        set: &Set<'_, T>,
        look: impl Fn(&Set<'_, T>, &World) -> Option<R>,
    ) -> Result<R> {
        let tell = || set.reason_words();
        let reason = Reason {
            call: set.call,
            needs: Needs::AnyLiving,
            tell: &tell,
        };
        let found = self.wait(&reason, None, || look(set, self))?;
        self.see_gpu_data()?;
        Ok(found)
    }

    fn test_set<T: Waitable, R>(
        &self,
        set: &Set<'_, T>,
        test: impl Fn(&Set<'_, T>, &World) -> R,
    ) -> Result<R> {
        self.progress();
        let found = test(set, self);
        self.see_gpu_data()?;
        Ok(found)
    }

    /// Waits for one word; gives the value that satisfied the comparison.
    #[inline]
    pub(crate) fn wait_word<T: Waitable>(
        &self,
        call: &'static str,
        word: Sym<T>,
        cmp: Cmp,
        value: T,
    ) -> Result<T> {
        self.check_own(call, word, 1)?;
        let tell = || {
            let now = self.look(word);
            let at = word.offset();
            (
                "some PE".into(),
                format!("the word at offset {at} ({now:?}) to be {cmp:?} {value:?}"),
            )
        };
        let reason = Reason {
            call,
            needs: Needs::AnyLiving,
            tell: &tell,
        };
        let found = self.wait(&reason, None, || {
            let now = self.look(word);
            cmp.holds(now, value).then_some(now)
        })?;
        self.see_gpu_data()?;
        Ok(found)
    }

    /// This PE's own word, acquired. The caller has checked that the object is this world's.
    #[inline(always)]
    fn look<T: Word>(&self, word: Sym<T>) -> T {
        T::of_bits(self.own(word).look(T::WIDTH, Inserted::Wait))
    }
}
