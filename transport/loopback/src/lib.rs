//! The loopback transport: PEs of one host, by load and store into mapped memory.
//!
//! One type serves both kinds of PE:
//!
//! - *Processes* each have a [`Loopback`] of their own. A region's descriptor (its memfd) travels
//!   beside its key, and the peer maps it whole.
//! - *Threads of one process* share one [`Loopback`] (it is a handle: cloning shares). A key made
//!   by the same loopback leads straight to the memory it names, and no descriptor is needed.
//!   Nothing is global: two loopbacks in one process treat each other as two processes.
//!
//! Peers are mapped, so oxshmem's own stores and loads seldom come through a lane. A lane is there
//! for checked mode, and as the plainest implementation of the traits: it performs each operation
//! when it is posted, is never full, and has nothing to progress.
//!
//! # Trust
//!
//! Keys, addresses, descriptors, region numbers and offsets are checked: what makes no sense is an
//! error. A peer's memory is only ever reached through a mapping whose length was checked against
//! the file and against the key.
//!
//! # Threads, forks, failure
//!
//! Domains may be used from any thread. A process that forks without exec makes a new `Loopback`
//! for the child. Calls neither block (but for short locks) nor panic.

mod domain;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod lane;
mod wire;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use oxshmem_transport::{Device, Domain, Error, Job, Memory, Result, Transport};

use wire::{Address, Nonce};

/// The transport's name.
const NAME: &str = "loopback";

/// The loopback transport. Threads that are PEs of one job share one, or clones of it.
#[derive(Clone, Debug)]
pub struct Loopback {
    home: Arc<Home>,
}

/// What a loopback's domains share: the memory that PEs of this process registered.
#[derive(Debug)]
struct Home {
    /// By what keys and addresses tell this loopback from others; the error where the system has
    /// no randomness to give.
    nonce: std::result::Result<Nonce, getrandom::Error>,
    registered: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    /// The next registration's number: none comes twice.
    next: u64,
    memory: HashMap<u64, Weak<Memory>>,
}

impl Home {
    /// Its content is whole between any two statements that hold the lock, so a panic elsewhere
    /// cannot have broken it.
    fn registered(&self) -> MutexGuard<'_, Registered> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn nonce(&self) -> Result<Nonce> {
        self.nonce.map_err(|error| Error::Unavailable {
            transport: NAME,
            why: format!("the system gives no random bytes to tell jobs apart: {error}"),
        })
    }

    fn enter(&self, memory: &Arc<Memory>) -> u64 {
        let mut registered = self.registered();
        let number = registered.next;
        registered.next += 1;
        registered.memory.insert(number, Arc::downgrade(memory));
        number
    }

    fn leave(&self, number: u64) {
        self.registered().memory.remove(&number);
    }

    fn find(&self, number: u64) -> Option<Arc<Memory>> {
        self.registered().memory.get(&number)?.upgrade()
    }
}

impl Loopback {
    /// A loopback that shares memory with no other by key alone.
    #[must_use]
    pub fn new() -> Loopback {
        let mut nonce = [0; size_of::<Nonce>()];
        let nonce = getrandom::fill(&mut nonce).map(|()| Nonce(nonce));
        Loopback {
            home: Arc::new(Home {
                nonce,
                registered: Mutex::default(),
            }),
        }
    }
}

impl Default for Loopback {
    fn default() -> Loopback {
        Loopback::new()
    }
}

// SAFETY: a mapped region is a whole mapping of a sealed memfd, or memory that its owner keeps; both
// are held by what `keep_alive` gives. A lane is done with local memory when `post` returns.
unsafe impl Transport for Loopback {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.home.nonce()?;
        Ok(vec![Device {
            name: "memory".into(),
            description: "this host's memory, mapped by each PE".into(),
        }])
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        if device.name != "memory" {
            return Err(Error::Unavailable {
                transport: NAME,
                why: format!(
                    "there is no device {:?}; the only one is \"memory\"",
                    device.name
                ),
            });
        }
        let own = Address {
            nonce: self.home.nonce()?,
            network: network_namespace(),
        };
        Ok(Arc::new(domain::LoopbackDomain::new(
            self.home.clone(),
            own,
            job,
        )))
    }
}

/// This process's network namespace, as the kernel numbers it; none where /proc does not tell.
fn network_namespace() -> Option<NonZeroU64> {
    let namespace = std::fs::metadata("/proc/self/ns/net").ok()?;
    NonZeroU64::new(namespace.ino())
}
