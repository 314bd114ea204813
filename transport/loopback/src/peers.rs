//! The peers of a domain: their mapped memory, and which of them are lost.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use oxshmem_heap::Mapping;
use oxshmem_transport::{Memory, Pe, RegionId, RemoteRegion};

/// The state that a domain shares with its lanes.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) size: u32,
    state: RwLock<PeersState>,
}

/// The part of it that changes.
#[derive(Debug, Default)]
pub(crate) struct PeersState {
    pub(crate) closed: bool,
    pub(crate) lost: HashSet<Pe>,
    pub(crate) imported: HashMap<(Pe, RegionId), Arc<Imported>>,
}

impl Peers {
    pub(crate) fn new(size: u32) -> Peers {
        Peers {
            size,
            state: RwLock::default(),
        }
    }

    /// No code that holds the lock leaves the state half changed, so a panic elsewhere cannot have
    /// broken it.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, PeersState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, PeersState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A peer's memory, mapped here.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) keeper: Keeper,
}

/// The owner of the mapping.
#[derive(Clone, Debug)]
pub(crate) enum Keeper {
    /// The registered memory itself, of a PE of this process.
    Memory(Arc<Memory>),
    /// A mapping of another process's descriptor.
    Mapping(Arc<Mapping>),
}

impl Imported {
    /// The first byte, aligned to a page: valid for `len` bytes while `self` lives.
    pub(crate) fn base(&self) -> NonNull<u8> {
        match &self.keeper {
            Keeper::Memory(memory) => memory.base(),
            Keeper::Mapping(mapping) => mapping.base(),
        }
    }
}

impl RemoteRegion for Imported {
    fn mapped(&self) -> Option<NonNull<u8>> {
        Some(self.base())
    }

    fn len(&self) -> usize {
        match &self.keeper {
            Keeper::Memory(memory) => memory.len(),
            Keeper::Mapping(mapping) => mapping.len(),
        }
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        match &self.keeper {
            Keeper::Memory(memory) => memory.clone(),
            Keeper::Mapping(mapping) => mapping.clone(),
        }
    }
}
