//! Handles of teams and contexts: numbers that C sees as pointers to nothing it knows.
//!
//! A handle is an index into a table and a count of the earlier entries there, so that a handle kept too long, or made up, is
//! refused.

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

/// The bits of a handle that are the index, counted from 1.
const INDEX_BITS: u32 = 20;
/// The most contexts that there can be at a time.
pub(crate) const CONTEXTS: usize = 4096;

/// The objects that handles of one kind stand for.
pub(crate) struct Table<T> {
    slots: Box<[AtomicPtr<Entry<T>>]>,
    live: Mutex<Live>,
}

/// The live handles. A thread holds their lock to add an entry or to remove one.
#[derive(Default)]
struct Live {
    /// The handles that stand for something, the latest last.
    handles: Vec<usize>,
    /// The number of handles ever made.
    count: usize,
}

struct Entry<T> {
    handle: usize,
    object: T,
}

impl<T> Table<T> {
    /// A table of as many slots.
    pub(crate) fn new(slots: usize) -> Self {
        Table {
            slots: (0..slots).map(|_| AtomicPtr::new(null_mut())).collect(),
            live: Mutex::default(),
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle for an object; none if there are too many. The first ones are 1, 2 and so on.
    pub(crate) fn add(&self, object: T) -> Option<usize> {
        let mut live = self.live();
        let index = self
            .slots
            .iter()
            .position(|slot| slot.load(Ordering::Relaxed).is_null())?;
        // The first handles, made in order, have no count.
        let count = live.count.saturating_sub(index);
        let handle = count << INDEX_BITS | (index + 1);
        live.count += 1;
        live.handles.push(handle);
        let entry = Box::into_raw(Box::new(Entry { handle, object }));
        self.slots.get(index)?.store(entry, Ordering::Release);
        Some(handle)
    }

    fn slot(&self, handle: usize) -> Option<&AtomicPtr<Entry<T>>> {
        let index = handle & ((1 << INDEX_BITS) - 1);
        self.slots.get(index.checked_sub(1)?)
    }

    /// The object of a handle, if it is one.
    #[inline]
    pub(crate) fn get(&self, handle: usize) -> Option<&T> {
        let entry = self.slot(handle)?.load(Ordering::Acquire);
        // SAFETY: the table's entries were made by `add`, and are freed by `remove` alone, which its caller does not
        // call while others use the entry.
        let entry = unsafe { entry.as_ref() }?;
        (entry.handle == handle).then_some(&entry.object)
    }

    /// Removes the object of a handle, if it is one. Nobody uses it any more.
    pub(crate) fn remove(&self, handle: usize) -> Option<T> {
        let mut live = self.live();
        self.get(handle)?;
        live.handles.retain(|other| *other != handle);
        let entry = self.slot(handle)?.swap(null_mut(), Ordering::AcqRel);
        if entry.is_null() {
            return None;
        }
        // SAFETY: `add` made it, and it is not in the table any more.
        Some(unsafe { Box::from_raw(entry) }.object)
    }

    /// Calls `act` for each until it fails. Nobody adds or removes meanwhile.
    pub(crate) fn try_each<E>(&self, act: impl FnMut(&T) -> Result<(), E>) -> Result<(), E> {
        self.objects(&self.live()).try_for_each(act)
    }

    /// Calls `act` for each, unless another thread holds their lock just now.
    pub(crate) fn each_if_free(&self, act: impl FnMut(&T)) {
        match self.live.try_lock() {
            Ok(live) => self.objects(&live).for_each(act),
            Err(TryLockError::Poisoned(live)) => self.objects(&live.into_inner()).for_each(act),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    fn objects<'t>(&'t self, live: &'t Live) -> impl Iterator<Item = &'t T> {
        live.handles.iter().filter_map(|handle| self.get(*handle))
    }

    /// The handles of those that are `wanted`, the latest first.
    pub(crate) fn all(&self, wanted: impl Fn(&T) -> bool) -> Vec<usize> {
        let live = self.live();
        let handles = live.handles.iter().rev().copied();
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
