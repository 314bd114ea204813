//! Handles of teams and contexts: numbers that C sees as pointers to nothing it knows.
//!
//! A handle is a place in a table and a count of what was there before, so that one kept too long, or made up, is
//! found to be none.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

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
const PLACE_BITS: u32 = 16;
/// How many there can be of a kind at a time.
const PLACES: usize = 4096;

/// What handles of one kind stand for.
pub(crate) struct Table<T> {
    places: Box<[AtomicPtr<Entry<T>>]>,
    /// How many were made.
    made: AtomicUsize,
}

struct Entry<T> {
    handle: usize,
    of: T,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Table {
            places: (0..PLACES).map(|_| AtomicPtr::new(null_mut())).collect(),
            made: AtomicUsize::new(0),
        }
    }

    /// A handle for this; none if there are too many. The first ones are 1, 2 and so on.
    pub(crate) fn add(&self, of: T) -> Option<usize> {
        let place = self
            .places
            .iter()
            .position(|p| p.load(Ordering::Relaxed).is_null())?;
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        // Those that are made in order, at the start, have no count.
        let count = made.saturating_sub(place);
        let handle = count << PLACE_BITS | (place + 1);
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
        self.get(handle)?;
        let entry = self.place(handle)?.swap(null_mut(), Ordering::AcqRel);
        if entry.is_null() {
            return None;
        }
        // SAFETY: `add` made it, and it is not in the table any more.
        Some(unsafe { Box::from_raw(entry) }.of)
    }

    /// All handles, the latest places first.
    pub(crate) fn all(&self) -> Vec<usize> {
        let places = self.places.iter().rev();
        let entries = places.map(|place| place.load(Ordering::Acquire));
        // SAFETY: as in `get`.
        let entries = entries.filter_map(|entry| unsafe { entry.as_ref() });
        entries.map(|entry| entry.handle).collect()
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        for handle in self.all() {
            self.remove(handle);
        }
    }
}
