//! Memory of the simulated machine, as PEs register it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use oxshmem_transport::{Memory, MemoryKind, Pe};

use super::plain::Plain;
use super::{Machine, Region};

/// Memory of one PE in a [`Machine`], gone from it with the last reference.
#[derive(Debug)]
pub struct Storage {
    machine: Weak<Machine>,
    number: u64,
    pe: Pe,
    kind: MemoryKind,
    len: usize,
    /// The memory at its addresses.
    names: Option<Memory>,
}

impl Storage {
    /// Its owner.
    #[must_use]
    pub fn pe(&self) -> Pe {
        self.pe
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The registered memory, if it has addresses.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.names.as_ref()
    }

    /// Its number in its machine.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(machine) = self.machine.upgrade() {
            // Dropped, with what owns its memory, after the lock.
            let region = machine.lock().regions.remove(&self.number);
            if let Some(mut region) = region {
                region.quiesce();
            }
        }
    }
}

type Registry<'m> = MutexGuard<'m, BTreeMap<(Pe, usize), Weak<Storage>>>;

impl Machine {
    /// New memory, all zero, which no address names.
    #[must_use]
    pub fn storage(&self, pe: Pe, kind: MemoryKind, len: usize) -> Arc<Storage> {
        self.make((pe, kind, len), Plain::Kept(HashMap::new()), None)
    }

    /// The storage that simulates `memory` of this PE: the same for equal addresses, so that all transports
    /// over one machine mean the same bytes. Outside of runs host memory has its real bytes; a GPU's begins
    /// as zero, and its real bytes are not touched. None if it is not made of whole aligned words.
    #[must_use]
    pub fn register(&self, pe: Pe, memory: &Memory) -> Option<Arc<Storage>> {
        let mut registry = self.registry();
        let base = memory.base().addr().get();
        let known = registry.get(&(pe, base)).and_then(Weak::upgrade);
        if let Some(storage) = known
            && (storage.len, storage.kind) == (memory.len(), memory.kind())
        {
            return Some(storage);
        }
        let what = (pe, memory.kind(), memory.len());
        let made = self.make(what, Plain::of(memory)?, Some(memory.clone()));
        registry.retain(|_, storage| storage.strong_count() > 0);
        registry.insert((pe, base), Arc::downgrade(&made));
        Some(made)
    }

    /// The registered memory of this PE that the `len` bytes from an address lie in, and where.
    #[must_use]
    pub fn registered(&self, pe: Pe, addr: usize, len: usize) -> Option<(Arc<Storage>, u64)> {
        let registry = self.registry();
        let (&(_, base), storage) = registry.range((pe, 0)..=(pe, addr)).next_back()?;
        let storage = storage.upgrade()?;
        let inside = addr.checked_sub(base)?;
        (inside <= storage.len && len <= storage.len - inside).then_some((storage, inside as u64))
    }

    fn registry(&self) -> Registry<'_> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The registered memory of this number.
    #[must_use]
    pub(crate) fn numbered(&self, number: u64) -> Option<Arc<Storage>> {
        let registry = self.registry();
        let mut all = registry.values().filter_map(Weak::upgrade);
        all.find(|storage| storage.number == number)
    }

    fn make(
        &self,
        (pe, kind, len): (Pe, MemoryKind, usize),
        plain: Plain,
        names: Option<Memory>,
    ) -> Arc<Storage> {
        let mut state = self.lock();
        let number = state.next_region;
        state.next_region += 1;
        let region = Region {
            pe,
            kind,
            plain,
            cells: HashMap::new(),
        };
        state.regions.insert(number, region);
        Arc::new(Storage {
            machine: self.me.clone(),
            number,
            pe,
            kind,
            len,
            names,
        })
    }
}
