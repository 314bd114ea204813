use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Memory, RegionId, Result};

/// The numbers of one domain's regions, for its [`register`](crate::Domain::register).
#[derive(Clone, Debug, Default)]
pub struct RegionNumbers(Arc<Mutex<BTreeSet<RegionId>>>);

/// A number in use; free again once this is dropped.
#[derive(Debug)]
pub struct RegionNumber {
    id: RegionId,
    of: RegionNumbers,
}

impl RegionNumbers {
    /// Takes a number for `memory`, unless a region has it.
    pub fn take(
        &self,
        transport: &'static str,
        id: RegionId,
        memory: &Memory,
    ) -> Result<RegionNumber> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match used.insert(id) {
            true => Ok(RegionNumber {
                id,
                of: self.clone(),
            }),
            false => Err(Error::Memory {
                transport,
                kind: memory.kind(),
                why: format!("region {} is registered already", id.0),
            }),
        }
    }
}

impl RegionNumber {
    /// The number.
    #[must_use]
    pub fn id(&self) -> RegionId {
        self.id
    }
}

impl Drop for RegionNumber {
    fn drop(&mut self) {
        let mut used = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.remove(&self.id);
    }
}
