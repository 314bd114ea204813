//! A simulated CPU's accesses to mapped memory.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxshmem_transport::{Accessor, AtomicRequest, Pe, Schedule, Width};

use crate::machine::{Machine, Storage};

/// One PE's CPU at one region.
pub(super) struct Cpu {
    pub(super) machine: Arc<Machine>,
    pub(super) me: Pe,
    pub(super) storage: Arc<Storage>,
    pub(super) schedule: Option<Arc<dyn Schedule>>,
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cpu")
            .field("me", &self.me)
            .field("storage", &self.storage)
            .finish_non_exhaustive()
    }
}

impl Cpu {
    fn yield_point(&self) {
        if let Some(schedule) = &self.schedule {
            schedule.yield_point();
        }
    }
}

impl Accessor for Cpu {
    fn load(&self, offset: u64, into: &mut [u8]) {
        self.yield_point();
        self.machine.load(self.me, &self.storage, offset, into);
    }

    fn store(&self, offset: u64, from: &[u8]) {
        self.yield_point();
        self.machine.store(self.me, &self.storage, offset, from);
    }

    fn load_word(&self, offset: u64, width: Width, order: Ordering) -> u64 {
        self.yield_point();
        let (me, storage) = (self.me, &self.storage);
        self.machine.load_word(me, storage, offset, width, order)
    }

    fn store_word(&self, offset: u64, width: Width, value: u64, order: Ordering) {
        self.yield_point();
        let (me, storage) = (self.me, &self.storage);
        self.machine
            .store_word(me, storage, offset, width, value, order);
    }

    fn rmw_word(&self, offset: u64, request: AtomicRequest, order: Ordering) -> u64 {
        self.yield_point();
        let (me, storage) = (self.me, &self.storage);
        self.machine.update(me, storage, offset, request, order)
    }

    fn fence(&self, order: Ordering) {
        self.yield_point();
        self.machine.fence(self.me, order);
    }
}
