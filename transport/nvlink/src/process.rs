//! What this process's PEs have registered. A legacy handle cannot be opened by the process that gave it:
//! PEs that are threads find the memory here.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use oxshmem_transport::Memory;

/// A process, as no other is named: two containers may give one number to two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(pub [u8; 16]);

impl Process {
    /// This one.
    pub(crate) fn this() -> Process {
        static THIS: OnceLock<Process> = OnceLock::new();
        *THIS.get_or_init(|| {
            let random = || RandomState::new().build_hasher().finish().to_le_bytes();
            let mut name = [0; 16];
            name[..8].copy_from_slice(&random());
            name[8..].copy_from_slice(&random());
            Process(name)
        })
    }
}

static REGISTERED: Mutex<BTreeMap<u64, Memory>> = Mutex::new(BTreeMap::new());

fn registered() -> MutexGuard<'static, BTreeMap<u64, Memory>> {
    // It is whole whenever it is unlocked, so poison means nothing.
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that is found while this lives.
#[derive(Debug)]
pub(crate) struct Registered(u64);

impl Registered {
    pub(crate) fn new(memory: &Memory) -> Registered {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        registered().insert(number, memory.clone());
        Registered(number)
    }

    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // The memory may go with it, which must not happen under the lock.
        let _memory = registered().remove(&self.0);
    }
}

/// What was registered in this process under a number, if it still is.
pub(crate) fn find(number: u64) -> Option<Memory> {
    registered().get(&number).cloned()
}
