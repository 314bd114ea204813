//! The broken locks, and the notification of all PEs.
//!
//! Notices go over the bootstrap: they reach PEs to which the lanes have failed, too, and need no call there. A PE
//! that gets its first notice of a broken lock sends one to the next PE that lives, by number; after that it sends no
//! more. When a PE is lost, all PEs that know of a broken lock notify the next one again: so every PE is notified,
//! whichever PE is lost meanwhile.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_engine::control::message::Message;

use crate::error::Error;

/// The reason why a lock is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The PE that broke it.
    pub by: u32,
    /// The PE that was lost, if that was the reason.
    pub lost: Option<u32>,
    /// The error of that PE's call.
    pub why: String,
}

/// The number that stands for no PE.
const NOBODY: u32 = u32::MAX;

impl Broken {
    /// The reason that a call of the PE `by` has found.
    pub(super) fn of(by: usize, error: &Error) -> Self {
        Broken {
            by: by as u32,
            lost: match error {
                Error::PeerLost { pe, .. } => Some(*pe as u32),
                _ => None,
            },
            why: error.to_string(),
        }
    }

    /// The error of later calls on the lock.
    pub(super) fn error(&self, call: &'static str, offset: u64) -> Error {
        match self.lost {
            Some(pe) => Error::PeerLost {
                call,
                pe: pe as usize,
            },
            None => Error::FailedElsewhere {
                call,
                pe: self.by as usize,
                why: format!(
                    "{}; since then nobody can have the lock at offset {offset}: use another",
                    self.why
                ),
            },
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let lost = self.lost.unwrap_or(NOBODY);
        let numbers = [self.by.to_le_bytes(), lost.to_le_bytes()];
        [numbers.as_flattened(), self.why.as_bytes()].concat()
    }

    /// None for bytes that no version of this library sends.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (by, rest) = bytes.split_first_chunk()?;
        let (lost, why) = rest.split_first_chunk()?;
        Some(Broken {
            by: u32::from_le_bytes(*by),
            lost: Some(u32::from_le_bytes(*lost)).filter(|&pe| pe != NOBODY),
            why: String::from_utf8_lossy(why).into_owned(),
        })
    }
}

/// The broken locks of a job that this PE knows, by their offsets.
#[derive(Clone)]
pub(crate) struct BrokenLocks(Arc<Table>);

struct Table {
    any: AtomicBool,
    by_offset: Mutex<HashMap<u64, Broken>>,
    /// Weak: the bootstrap holds the handler that holds this.
    bootstrap: Weak<dyn Bootstrap>,
}

impl fmt::Debug for BrokenLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BrokenLocks").finish_non_exhaustive()
    }
}

impl BrokenLocks {
    pub(crate) fn of(bootstrap: &Arc<dyn Bootstrap>) -> Self {
        BrokenLocks(Arc::new(Table {
            any: AtomicBool::new(false),
            by_offset: Mutex::default(),
            bootstrap: Arc::downgrade(bootstrap),
        }))
    }

    fn by_offset(&self) -> MutexGuard<'_, HashMap<u64, Broken>> {
        let locks = self.0.by_offset.lock();
        locks.unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a lock is broken, by this PE's own call or by a notice. The first reason stays.
    pub(crate) fn note(&self, offset: u64, broken: Broken) {
        match self.by_offset().entry(offset) {
            Entry::Occupied(_) => return,
            Entry::Vacant(entry) => drop(entry.insert(broken.clone())),
        }
        self.0.any.store(true, Ordering::Release);
        self.tell_next(offset, broken);
    }

    /// Notifies the next PE again, after the loss of a PE: that may have been the next one, or one that had yet to
    /// notify others.
    pub(crate) fn tell_again(&self) {
        if self.0.any.load(Ordering::Acquire) {
            let all = self.by_offset().clone();
            for (offset, broken) in all {
                self.tell_next(offset, broken);
            }
        }
    }

    fn tell_next(&self, offset: u64, broken: Broken) {
        let Some(bootstrap) = self.0.bootstrap.upgrade() else {
            return;
        };
        let (me, n) = (bootstrap.rank(), bootstrap.size());
        let message = Message::Notice(offset, broken.to_bytes()).to_bytes();
        // A PE that is gone cannot be notified.
        let _ = (me + 1..n)
            .chain(0..me)
            .find(|&pe| bootstrap.send(pe, &message).is_ok());
    }

    /// The reason why the lock there is broken, if it is.
    #[inline]
    pub(super) fn find(&self, offset: u64) -> Option<Broken> {
        if !self.0.any.load(Ordering::Acquire) {
            return None;
        }
        self.by_offset().get(&offset).cloned()
    }
}
