//! Page-locked memory in the simulation, as a host's thread uses it.

use std::sync::atomic::Ordering;

use oxshmem_device_library::shared_memory::SharedWords;
use oxshmem_weak::Agent;

use crate::changes::{Access, HostChange};
use crate::memory::relaxed;
use crate::simulation::with;

/// Page-locked memory in the simulation, as one host uses it.
pub struct Words {
    pub start: usize,
    pub agent: Agent,
    /// Whether it is an inbox's, and not a ring's.
    pub is_inbox: bool,
    /// The access that orders nothing.
    pub change: Option<&'static HostChange>,
}

impl Words {
    /// Whether an access is as the library has it.
    fn orders(&self, is_load: bool, offset: usize) -> bool {
        let access = match (self.is_inbox, is_load) {
            (false, true) => Access::RingLoad,
            (false, false) => Access::RingStore,
            (true, true) => Access::InboxLoad,
            (true, false) => Access::InboxStore,
        };
        self.change
            .is_none_or(|change| !(change.is_it)(access, offset))
    }
}

impl SharedWords for Words {
    fn load(&self, offset: usize, order: Ordering) -> u64 {
        let access = match order {
            Ordering::Acquire if self.orders(true, offset) => relaxed().acquire(),
            _ => relaxed(),
        };
        with(|run| run.memory.load(self.agent, self.start + offset, 8, access))
    }

    fn store(&self, offset: usize, value: u64, order: Ordering) {
        let access = match order {
            Ordering::Release if self.orders(false, offset) => relaxed().release(),
            _ => relaxed(),
        };
        with(|run| {
            run.memory
                .store(self.agent, self.start + offset, 8, value, access)
        });
    }

    fn store_half(&self, offset: usize, value: u32, _: Ordering) {
        with(|run| {
            run.memory
                .store(self.agent, self.start + offset, 4, value.into(), relaxed())
        });
    }
}
