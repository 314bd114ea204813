//! The memory that PEs of this process have registered. The process that gave a legacy handle cannot open it:
//! PEs that are threads find the memory here.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use oxshmem_transport::Memory;

/// The unique name of a process. Its number would not do: two containers may have one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(pub [u8; 16]);

impl Process {
    /// This process.
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

/// Registered memory of this process, by number.
struct ProcessRegistry(Mutex<BTreeMap<u64, Memory>>);

static REGISTRY: ProcessRegistry = ProcessRegistry(Mutex::new(BTreeMap::new()));

impl ProcessRegistry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Memory>> {
        // It is whole whenever it is unlocked, so poison means nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry of the registry, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Registration(u64);

impl Registration {
    pub(crate) fn new(memory: &Memory) -> Registration {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only the numbers matter.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        REGISTRY.lock().insert(number, memory.clone());
        Registration(number)
    }

    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // This may free the memory, which must not happen under the lock.
        let _memory = REGISTRY.lock().remove(&self.0);
    }
}

/// The memory registered in this process under a number, if it still is.
pub(crate) fn find(number: u64) -> Option<Memory> {
    REGISTRY.lock().get(&number).cloned()
}
