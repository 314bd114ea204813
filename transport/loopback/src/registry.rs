//! The registry of a loopback: the memory that PEs of this process have registered with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use oxshmem_transport::{Error, Memory, Result};

use crate::name::NAME;
use crate::wire::Nonce;

/// Registered memory, by registration number. The domains of a loopback share it.
#[derive(Debug)]
pub(crate) struct Registry {
    /// The nonce by which keys and addresses name this loopback; the error if the system has no random
    /// bytes.
    nonce: std::result::Result<Nonce, getrandom::Error>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// The next registration's number. None is used twice.
    next: u64,
    memory: HashMap<u64, Weak<Memory>>,
}

impl Registry {
    /// An empty registry with a new nonce.
    pub(crate) fn new() -> Registry {
        let mut nonce = [0; size_of::<Nonce>()];
        let nonce = getrandom::fill(&mut nonce).map(|()| Nonce(nonce));
        Registry {
            nonce,
            entries: Mutex::default(),
        }
    }

    /// Its content is whole between any two statements that hold the lock, so a panic elsewhere
    /// cannot have broken it.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn nonce(&self) -> Result<Nonce> {
        self.nonce.map_err(|error| Error::Unavailable {
            transport: NAME,
            why: format!("the system gives no random bytes to tell jobs apart: {error}"),
        })
    }

    /// Registers memory; gives its number.
    pub(crate) fn insert(&self, memory: &Arc<Memory>) -> u64 {
        let mut entries = self.lock();
        let number = entries.next;
        entries.next += 1;
        entries.memory.insert(number, Arc::downgrade(memory));
        number
    }

    pub(crate) fn remove(&self, number: u64) {
        self.lock().memory.remove(&number);
    }

    pub(crate) fn find(&self, number: u64) -> Option<Arc<Memory>> {
        self.lock().memory.get(&number)?.upgrade()
    }
}
