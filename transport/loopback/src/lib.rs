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
//! Peers are mapped, so oxshmem's own stores and loads rarely use a lane. A lane exists for checked mode, and as the plainest implementation of the traits: it performs each operation
//! when it is posted, is never full, and has nothing to progress.
//!
//! # Trust
//!
//! Keys, addresses, descriptors, region numbers and offsets are checked: an invalid one is an error. A peer's memory is only ever reached through a mapping whose length was checked against
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
mod name;
mod peers;
mod registry;
mod wire;

use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use oxshmem_transport::{Device, Domain, Error, Job, Result, Transport};

use self::domain::LoopbackDomain;
use self::name::NAME;
use self::registry::Registry;
use self::wire::Address;

/// The loopback transport. Threads that are PEs of one job share one, or clones of it.
#[derive(Clone, Debug)]
pub struct Loopback {
    registry: Arc<Registry>,
}

impl Loopback {
    /// A loopback that shares memory with no other by key alone.
    #[must_use]
    pub fn new() -> Loopback {
        Loopback {
            registry: Arc::new(Registry::new()),
        }
    }
}

impl Default for Loopback {
    fn default() -> Loopback {
        Loopback::new()
    }
}

// SAFETY: a mapped region is a whole mapping of a sealed memfd, or memory that its owner keeps; the object
// of `keep_alive` holds both. A lane is done with local memory when `post` returns.
unsafe impl Transport for Loopback {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.registry.nonce()?;
        Ok(vec![Device {
            name: "memory".into(),
            description: "this host's memory, mapped by each PE".into(),
            megabits: 0,
            networks: Vec::new(),
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
            nonce: self.registry.nonce()?,
            network: network_namespace(),
        };
        Ok(Arc::new(LoopbackDomain::new(
            self.registry.clone(),
            own,
            job,
        )))
    }
}

/// This process's network namespace, as the kernel numbers it; none if /proc does not show it.
fn network_namespace() -> Option<NonZeroU64> {
    let namespace = std::fs::metadata("/proc/self/ns/net").ok()?;
    NonZeroU64::new(namespace.ino())
}
