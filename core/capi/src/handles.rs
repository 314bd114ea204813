//! Handles of teams and contexts: numbers that C sees as pointers to nothing it knows.
//!
//! A handle is a place in a table and a count of what was there before, so that one kept too long, or made up, is
//! found to be none.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// `shmem_ctx_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ctx(pub(crate) usize);

/// `shmem_team_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Team(pub(crate) usize);

impl Ctx {
    pub(crate) const INVALID: Ctx = Ctx(0);
    pub(crate) const DEFAULT: Ctx = Ctx(1);
}

impl Team {
    pub(crate) const INVALID: Team = Team(0);
    pub(crate) const WORLD: Team = Team(1);
    pub(crate) const SHARED: Team = Team(2);
}

/// `shmem_team_config_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TeamConfig {
    pub(crate) num_contexts: c_int,
}

/// `shmem_ctx_session_config_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    pub(crate) total_ops: usize,
}

/// How many bits of a handle are the place, counted from 1.
const PLACE_BITS: u32 = 20;
/// How many contexts there can be at a time.
pub(crate) const CONTEXTS: usize = 4096;

/// What handles of one kind stand for.
pub(crate) struct Table<T> {
    places: Box<[AtomicPtr<Entry<T>>]>,
    made: Mutex<Made>,
}

/// Who has this adds and takes out.
#[derive(Default)]
struct Made {
    /// The handles that stand for something, the latest last.
    handles: Vec<usize>,
    /// How many were made.
    count: usize,
}

struct Entry<T> {
    handle: usize,
    of: T,
}

impl<T> Table<T> {
    /// With room for so many.
    pub(crate) fn new(places: usize) -> Self {
        Table {
            places: (0..places).map(|_| AtomicPtr::new(null_mut())).collect(),
            made: Mutex::default(),
        }
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle for this; none if there are too many. The first ones are 1, 2 and so on.
    pub(crate) fn add(&self, of: T) -> Option<usize> {
        let mut made = self.made();
        let place = self
            .places
            .iter()
            .position(|p| p.load(Ordering::Relaxed).is_null())?;
        // Those that are made in order, at the start, have no count.
        let count = made.count.saturating_sub(place);
        let handle = count << PLACE_BITS | (place + 1);
        made.count += 1;
        made.handles.push(handle);
        let entry = Box::into_raw(Box::new(Entry { handle, of }));
        self.places.get(place)?.store(entry, Ordering::Release);
        Some(handle)
    }

    fn place(&self, handle: usize) -> Option<&AtomicPtr<Entry<T>>> {
        let place = handle & ((1 << PLACE_BITS) - 1);
        self.places.get(place.checked_sub(1)?)
    }

    /// What a handle stands for, if it is one.
    #[inline]
    pub(crate) fn get(&self, handle: usize) -> Option<&T> {
        let entry = self.place(handle)?.load(Ordering::Acquire);
        // SAFETY: what is in the table was made by `add`, and is freed by `remove` alone, which its caller does not
        // call while others use the entry.
        let entry = unsafe { entry.as_ref() }?;
        (entry.handle == handle).then_some(&entry.of)
    }

    /// Takes out what a handle stands for, if it is one. Nobody uses it any more.
    pub(crate) fn remove(&self, handle: usize) -> Option<T> {
        let mut made = self.made();
        self.get(handle)?;
        made.handles.retain(|other| *other != handle);
        let entry = self.place(handle)?.swap(null_mut(), Ordering::AcqRel);
        if entry.is_null() {
            return None;
        }
        // SAFETY: `add` made it, and it is not in the table any more.
        Some(unsafe { Box::from_raw(entry) }.of)
    }

    /// Does something with each until it fails. Nobody adds or takes out meanwhile.
    pub(crate) fn try_each<E>(&self, act: impl FnMut(&T) -> Result<(), E>) -> Result<(), E> {
        self.among(&self.made()).try_for_each(act)
    }

    /// Does something with each, unless another thread has them to itself just now.
    pub(crate) fn each_if_free(&self, act: impl FnMut(&T)) {
        match self.made.try_lock() {
            Ok(made) => self.among(&made).for_each(act),
            Err(TryLockError::Poisoned(made)) => self.among(&made.into_inner()).for_each(act),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    fn among<'t>(&'t self, made: &'t Made) -> impl Iterator<Item = &'t T> {
        made.handles.iter().filter_map(|handle| self.get(*handle))
    }

    /// The handles of those that are `wanted`, the latest first.
    pub(crate) fn all(&self, wanted: impl Fn(&T) -> bool) -> Vec<usize> {
        let made = self.made();
        let handles = made.handles.iter().rev().copied();
        handles
            .filter(|handle| self.get(*handle).is_some_and(&wanted))
            .collect()
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        for handle in self.all(|_| true) {
            self.remove(handle);
        }
    }
}
