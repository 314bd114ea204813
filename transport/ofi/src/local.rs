//! Local memory of operations, as its keys name it.

use std::ffi::c_void;
use std::ptr::null_mut;

use oxshmem_transport::{Local, LocalKey, MemoryKind};

use crate::fabric::endpoint::LocalPlace;
use crate::region::OwnRegion;
use crate::state::State;

/// The bit of local keys that name a region of this PE.
pub(crate) const OWN: u64 = 1 << 63;

impl State {
    /// The first bytes of registered memory of this side, or of any where that need not be.
    pub(crate) fn local_place(&self, of: Local, len: u64) -> LocalPlace {
        LocalPlace {
            addr: of.addr,
            len: len as usize,
            descriptor: self.descriptor(of),
        }
    }

    /// The descriptor of registered memory of this side.
    fn descriptor(&self, local: Local) -> *mut c_void {
        let none = null_mut();
        let wanted = self.ways.local_keys || self.is_on_gpu(&local);
        let Some(key) = local.key.filter(|_| wanted) else {
            return none;
        };
        if let Some(memory) = self.locals.get(&key.0) {
            return memory.registration.descriptor();
        }
        let region = self.own_region(key);
        let registration = region.and_then(|region| region.registration.as_ref());
        registration.map_or(none, |registration| registration.descriptor())
    }

    /// The region of this PE with a local key.
    fn own_region(&self, key: LocalKey) -> Option<&OwnRegion> {
        let number = u32::try_from(key.0 ^ OWN).ok()?;
        self.regions.0.get(&number)
    }

    /// Whether registered memory of this side is a GPU's. Memory without a key is the CPU's.
    pub(crate) fn is_on_gpu(&self, local: &Local) -> bool {
        let Some(key) = local.key.filter(|_| self.ways.gpu) else {
            return false;
        };
        let of_region = |region: &OwnRegion| region.memory.kind() != MemoryKind::Host;
        match self.locals.get(&key.0) {
            Some(memory) => memory.on_gpu,
            None => self.own_region(key).is_some_and(of_region),
        }
    }
}
