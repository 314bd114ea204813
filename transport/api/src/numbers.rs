//! The region numbers of one domain.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::memory::{Memory, RegionId};

/// The region numbers in use at one domain, for its [`register`](crate::Domain::register).
#[derive(Clone, Debug, Default)]
pub struct RegionNumbers(Arc<Mutex<BTreeSet<RegionId>>>);

/// A number in use; free again once this is dropped.
#[derive(Debug)]
pub struct RegionNumber {
    id: RegionId,
    of: RegionNumbers,
}

impl RegionNumbers {
    /// Claims a number for `memory`, unless a region has it.
    pub fn claim(
        &self,
        transport: &'static str,
        id: RegionId,
        memory: &Memory,
    ) -> Result<RegionNumber> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.insert(id) {
            return Err(Error::Memory {
                transport,
                kind: memory.kind(),
                why: format!("region {} is registered already", id.0),
            });
        }
        Ok(RegionNumber {
            id,
            of: self.clone(),
        })
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
