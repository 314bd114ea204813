//! Waiting for, and testing, words of this PE's own memory.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt::Debug;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
};
use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;
use oxshmem::{Cmp, bindings};
use oxshmem_heap::copy::copy;

use crate::failure::{CResult, Failure, or_abort_job};
use crate::library::{self, Library};
use crate::objects::not_null;

/// A type of words.
pub(crate) trait Word: Pod + PartialOrd + Debug {
    /// Loads a word, with acquire order.
    ///
    /// # Safety
    ///
    /// The address is that of an aligned word that others write atomically.
    unsafe fn load(at: *mut Self) -> Self;
}

macro_rules! words {
    ($($t:ty, $atomic:ident;)*) => {$(
        impl Word for $t {
            #[inline(always)]
            unsafe fn load(at: *mut Self) -> Self {
                // SAFETY: the caller promises an aligned word of this type that others write atomically. Acquire: stores that
                // the word's writer ordered before it are seen.
                unsafe { $atomic::from_ptr(at) }.load(Ordering::Acquire)
            }
        }
    )*};
}
words! {
    i16, AtomicI16; u16, AtomicU16;
    i32, AtomicI32; u32, AtomicU32;
    i64, AtomicI64; u64, AtomicU64;
    isize, AtomicIsize; usize, AtomicUsize;
}

fn comparison(cmp: c_int) -> CResult<Cmp> {
    Ok(match cmp {
        1 => Cmp::Eq,
        2 => Cmp::Ne,
        3 => Cmp::Gt,
        4 => Cmp::Ge,
        5 => Cmp::Lt,
        6 => Cmp::Le,
        _ => {
            let what = format!("{cmp} is none of SHMEM_CMP_EQ, NE, GT, GE, LT and LE");
            return Err(Failure::argument("cmp", what));
        }
    })
}

/// Waits for one word. Gives the value that compares as asked.
#[inline]
pub(crate) unsafe fn word<T: Word>(
    call: &'static str,
    name: &'static str,
    at: *mut T,
    cmp: c_int,
    value: T,
) -> CResult<T> {
    let library = library::get()?;
    let load = loader(library, name, at)?;
    let cmp = comparison(cmp)?;
    let what = || format!("the word at {at:p} ({:?}) to be {cmp:?} {value:?}", load());
    library.wait(call, &what, || {
        let now = load();
        cmp.holds(now, value).then_some(now)
    })
}

/// The function that loads a word of symmetric memory whole. Unless checks are on (M38) the word need not be aligned:
/// programs for processors that do not need alignment have such words.
#[inline(always)]
fn loader<T: Word>(
    library: &'static Library,
    name: &'static str,
    at: *mut T,
) -> CResult<impl Fn() -> T> {
    let aligned = at.is_aligned() || bindings::is_checked(&library.world);
    if aligned {
        library.object_on_host(name, at, 1)?;
    } else {
        library.object_on_host(name, at.cast::<u8>(), size_of::<T>())?;
    }
    Ok(move || {
        if aligned {
            // SAFETY: `object_on_host` found an aligned word of symmetric memory.
            unsafe { T::load(at) }
        } else {
            // SAFETY: `object_on_host` found its bytes in symmetric memory.
            unsafe { load_unaligned(at) }
        }
    })
}

/// Loads a word that is not aligned, until two loads agree. A word within a cache line is seen whole; one that lies in two is
/// less likely to be seen half written.
///
/// # Safety
///
/// The word's bytes are symmetric memory.
#[cold]
unsafe fn load_unaligned<T: Word>(at: *mut T) -> T {
    let load = || {
        let mut value = T::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut value);
        // SAFETY: the caller promises symmetric memory; the destination is a local variable.
        unsafe { copy(bytes.as_mut_ptr(), at.cast(), bytes.len()) };
        // Stores that the word's writer ordered before it are seen.
        fence(Ordering::Acquire);
        value
    };
    let mut seen = load();
    loop {
        let again = load();
        if bytemuck::bytes_of(&seen) == bytemuck::bytes_of(&again) {
            return seen;
        }
        seen = again;
    }
}

pub(crate) unsafe fn wait_until<T: Word>(call: &'static str, ivar: *mut T, cmp: c_int, value: T) {
    // SAFETY: the caller's promise.
    or_abort_job(call, unsafe { word(call, "ivar", ivar, cmp, value) });
}

/// The oldest form: until the word is not the value.
pub(crate) unsafe fn wait<T: Word>(call: &'static str, ivar: *mut T, value: T) {
    const NE: c_int = 2;
    // SAFETY: the caller's promise.
    or_abort_job(call, unsafe { word(call, "ivar", ivar, NE, value) });
}

pub(crate) unsafe fn test<T: Word>(
    call: &'static str,
    ivar: *mut T,
    cmp: c_int,
    value: T,
) -> c_int {
    or_abort_job(
        call,
        || -> CResult<bool> {
            let library = library::get()?;
            let load = loader(library, "ivar", ivar)?;
            let cmp = comparison(cmp)?;
            library.poll_once(|| cmp.holds(load(), value))
        }(),
    )
    .into()
}

/// The words of a call, each with its value.
struct WordSet<T> {
    library: &'static Library,
    ivars: *mut T,
    nelems: usize,
    /// Where it is not 0 the word does not count; null where all do.
    status: *const c_int,
    cmp: Cmp,
    values: Values<T>,
}

/// One value for all words, or one for each.
#[derive(Clone, Copy)]
pub(crate) enum Values<T> {
    One(T),
    Each(*const T),
}

impl<T: Word> WordSet<T> {
    /// # Safety
    ///
    /// The arrays have `nelems` elements, as long as the set is used.
    unsafe fn new(
        ivars: *mut T,
        nelems: usize,
        status: *const c_int,
        cmp: c_int,
        values: Values<T>,
    ) -> CResult<Self> {
        let library = library::get()?;
        library.object_on_host("ivars", ivars, nelems)?;
        let set = WordSet {
            library,
            ivars,
            nelems,
            status,
            cmp: comparison(cmp)?,
            values,
        };
        if let Values::Each(values) = set.values {
            set.check_array("cmp_values", values)?;
        }
        Ok(set)
    }

    /// Refuses null for an array of which elements are read or written.
    fn check_array<U>(&self, name: &'static str, array: *const U) -> CResult {
        if array.is_null() && !self.is_empty() {
            not_null(name, array, self.nelems)
        } else {
            Ok(())
        }
    }

    fn counts(&self, i: usize) -> bool {
        // SAFETY: the array has as many elements (`new`).
        self.status.is_null() || unsafe { self.status.add(i).read() } == 0
    }

    fn holds(&self, i: usize) -> bool {
        let value = match self.values {
            Values::One(value) => value,
            // SAFETY: as above.
            Values::Each(values) => unsafe { values.add(i).read() },
        };
        // SAFETY: the word is an aligned one of symmetric memory.
        self.cmp.holds(unsafe { T::load(self.ivars.add(i)) }, value)
    }

    fn members(&self) -> impl Iterator<Item = usize> {
        (0..self.nelems).filter(|i| self.counts(*i))
    }

    fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    fn all(&self) -> bool {
        self.members().all(|i| self.holds(i))
    }

    /// A word that holds. The search begins anywhere, so that no word starves, whatever is polled in between.
    fn any(&self) -> Option<usize> {
        let start = random() % self.nelems.max(1);
        let holds = |i: &usize| self.counts(*i) && self.holds(*i);
        (start..self.nelems)
            .find(holds)
            .or_else(|| (0..start).find(holds))
    }

    /// Writes the index of every word that holds. Gives their number.
    ///
    /// # Safety
    ///
    /// `indices` is writable for `nelems` elements.
    unsafe fn some(&self, indices: *mut usize) -> usize {
        let holding = self.members().filter(|i| self.holds(*i));
        let mut count = 0;
        for i in holding {
            // SAFETY: the caller's promise.
            unsafe { indices.add(count).write(i) };
            count += 1;
        }
        count
    }

    fn wait<R>(&self, call: &'static str, poll: impl FnMut() -> Option<R>) -> CResult<R> {
        let what = || {
            let (nelems, ivars, cmp) = (self.nelems, self.ivars, self.cmp);
            format!("{nelems} words at {ivars:p} to become {cmp:?}")
        };
        self.library.wait(call, &what, poll)
    }

    fn test<R>(&self, poll: impl FnOnce() -> R) -> CResult<R> {
        self.library.poll_once(poll)
    }
}

/// The next number of the thread's random sequence (xorshift).
fn random() -> usize {
    thread_local! {
        /// Never 0.
        static LAST: Cell<usize> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
    }
    LAST.with(|last| {
        let mut x = last.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        last.set(x);
        x >> 32
    })
}

/// The index that `any` gives where no word holds.
const NONE: usize = usize::MAX;

macro_rules! families {
    ($($name:ident $vector:ident ($($indices:ident)?) -> $returns:ty: $do:expr;)*) => {$(
        pub(crate) unsafe fn $name<T: Word>(
            call: &'static str, ivars: *mut T, nelems: usize, $($indices: *mut usize,)?
            status: *const c_int, cmp: c_int, value: T,
        ) -> $returns {
            let act: fn(&'static str, &WordSet<T>, *mut usize) -> CResult<$returns> = $do;
            // SAFETY: the caller's promise.
            let set = unsafe { WordSet::new(ivars, nelems, status, cmp, Values::One(value)) };
            or_abort_job(call, set.and_then(|set| act(call, &set, families!(@ $($indices)?))))
        }

        pub(crate) unsafe fn $vector<T: Word>(
            call: &'static str, ivars: *mut T, nelems: usize, $($indices: *mut usize,)?
            status: *const c_int, cmp: c_int, values: *const T,
        ) -> $returns {
            let act: fn(&'static str, &WordSet<T>, *mut usize) -> CResult<$returns> = $do;
            // SAFETY: the caller's promise.
            let set = unsafe { WordSet::new(ivars, nelems, status, cmp, Values::Each(values)) };
            or_abort_job(call, set.and_then(|set| act(call, &set, families!(@ $($indices)?))))
        }
    )*};
    (@) => { null_mut() };
    (@ $indices:ident) => { $indices };
}
families! {
    wait_until_all wait_until_all_vector () -> ():
        |call, set, _| set.wait(call, || set.all().then_some(()));
    wait_until_any wait_until_any_vector () -> usize:
        |call, set, _| if set.is_empty() {
            Ok(NONE)
        } else {
            set.wait(call, || set.any())
        };
    wait_until_some wait_until_some_vector (indices) -> usize:
        |call, set, indices| {
            if set.is_empty() {
                return Ok(0);
            }
            set.check_array("indices", indices)?;
            // SAFETY: the caller gives room for as many as there are words.
            set.wait(call, || Some(unsafe { set.some(indices) }).filter(|count| *count > 0))
        };
    test_all test_all_vector () -> c_int: |_, set, _| set.test(|| set.all().into());
    test_any test_any_vector () -> usize: |_, set, _| set.test(|| set.any().unwrap_or(NONE));
    test_some test_some_vector (indices) -> usize:
        |_, set, indices| {
            set.check_array("indices", indices)?;
            // SAFETY: as above.
            set.test(|| unsafe { set.some(indices) })
        };
}
