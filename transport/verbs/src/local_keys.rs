//! The local keys of memory at the further NICs of a PE. A buffer's key has room for that of the first NIC, and for the place
//! of the others in a table.

use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::limits::MOST_RAILS;

/// The keys of some memory at each NIC; none where it is not registered.
pub(crate) type LocalRailKeys = [Option<u32>; MOST_RAILS];

/// The key at a NIC.
pub(crate) fn lkey_at(keys: &LocalRailKeys, rail: u8) -> Option<u32> {
    keys.get(usize::from(rail)).copied().flatten()
}

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlace(NonZeroU32);

impl KeyPlace {
    /// The bits that it has.
    const BITS: u32 = 31;

    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Option<KeyPlace> {
        NonZeroU32::new(bits & (u32::MAX >> 1)).map(KeyPlace)
    }

    #[inline]
    pub(crate) fn to_bits(self) -> u32 {
        self.0.get()
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Debug, Default)]
struct Table {
    entries: Vec<LocalRailKeys>,
    free: Vec<KeyPlace>,
}

/// The table of a domain.
#[derive(Debug, Default)]
pub(crate) struct LocalKeys(RwLock<Table>);

/// A place in use.
#[derive(Debug)]
pub(crate) struct HeldPlace {
    place: KeyPlace,
    table: Arc<LocalKeys>,
}

impl LocalKeys {
    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the keys of some memory; none if only the first NIC has one, or no place is left.
    pub(crate) fn enter(self: &Arc<Self>, keys: LocalRailKeys) -> Option<HeldPlace> {
        if keys.iter().skip(1).all(Option::is_none) {
            return None;
        }
        let mut table = self.write();
        let place = match table.free.pop() {
            Some(place) => place,
            None => {
                let number = u32::try_from(table.entries.len() + 1).ok()?;
                let place =
                    KeyPlace::from_bits(number).filter(|_| number >> KeyPlace::BITS == 0)?;
                table.entries.push(LocalRailKeys::default());
                place
            }
        };
        if let Some(entry) = table.entries.get_mut(place.index()) {
            *entry = keys;
        }
        drop(table);
        Some(HeldPlace {
            place,
            table: Arc::clone(self),
        })
    }

    /// The keys at a place.
    pub(crate) fn get(&self, place: KeyPlace) -> LocalRailKeys {
        let table = self.read();
        table
            .entries
            .get(place.index())
            .copied()
            .unwrap_or_default()
    }

    /// The key at one NIC of memory whose key at another is this.
    pub(crate) fn moved(&self, lkey: u32, from: u8, to: u8) -> Option<u32> {
        let table = self.read();
        let known = table.entries.iter();
        let mut known = known.filter(|keys| lkey_at(keys, from) == Some(lkey));
        known.find_map(|keys| lkey_at(keys, to))
    }
}

impl HeldPlace {
    pub(crate) fn place(&self) -> KeyPlace {
        self.place
    }
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        let mut table = self.table.write();
        if let Some(entry) = table.entries.get_mut(self.place.index()) {
            *entry = LocalRailKeys::default();
        }
        table.free.push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(first: u32) -> LocalRailKeys {
        let mut keys = LocalRailKeys::default();
        (keys[0], keys[2]) = (Some(first), Some(10 * first));
        keys
    }

    #[test]
    fn places_are_given_again_and_hold_the_newer_keys() {
        let table = Arc::new(LocalKeys::default());
        let held: Vec<HeldPlace> = (1..4).filter_map(|n| table.enter(keys(n))).collect();
        let places: Vec<KeyPlace> = held.iter().map(HeldPlace::place).collect();
        for (place, first) in places.iter().zip(1..) {
            assert_eq!(table.get(*place), keys(first));
            assert_eq!(KeyPlace::from_bits(place.to_bits()), Some(*place));
        }
        drop(held);
        assert_eq!(table.get(places[1]), LocalRailKeys::default());
        let again = table.enter(keys(9)).unwrap();
        assert!(places.contains(&again.place()));
        assert_eq!(table.get(again.place()), keys(9));
    }

    #[test]
    fn a_key_is_found_by_that_of_another_nic() {
        let table = Arc::new(LocalKeys::default());
        let _held: Vec<HeldPlace> = (1..4).filter_map(|n| table.enter(keys(n))).collect();
        assert_eq!(table.moved(2, 0, 2), Some(20));
        assert_eq!(table.moved(30, 2, 0), Some(3));
        assert_eq!((table.moved(2, 0, 1), table.moved(9, 0, 2)), (None, None));
    }

    #[test]
    fn memory_without_such_keys_takes_no_place() {
        let table = Arc::new(LocalKeys::default());
        let mut first = LocalRailKeys::default();
        first[0] = Some(7);
        assert!(table.enter(LocalRailKeys::default()).is_none());
        assert!(table.enter(first).is_none());
        assert_eq!(KeyPlace::from_bits(0), None);
    }
}
