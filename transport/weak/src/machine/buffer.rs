//! A CPU's store buffer.

use std::collections::{BTreeSet, VecDeque};

use super::cell::{CellId, Mask, merged};

/// More stores than that wait in no CPU; the oldest then drains.
const CAPACITY: usize = 32;

/// A store that only its own CPU sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub(super) cell: CellId,
    pub(super) mask: Mask,
    pub(super) value: u64,
    number: u64,
    /// Drains after every earlier one.
    release: bool,
    /// Drains after those with lower numbers: a release fence was between.
    after: u64,
}

/// A CPU's pending stores, which drain to memory in any order but: of one cell in order; a release
/// store after all earlier; what a release fence divides, in order.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    stores: VecDeque<Store>,
    next: u64,
    /// The number of the first store after the last release fence.
    fenced: u64,
}

impl Buffer {
    pub(super) fn push(&mut self, cell: CellId, mask: Mask, value: u64, release: bool) {
        self.stores.push_back(Store {
            cell,
            mask,
            value,
            number: self.next,
            release,
            after: self.fenced,
        });
        self.next += 1;
    }

    /// A release fence: later stores drain after all that are here.
    pub(super) fn fence(&mut self) {
        self.fenced = self.next;
    }

    /// The number before which stores must have drained, before an operation signaled after the last release
    /// fence is performed.
    pub(super) fn fenced(&self) -> u64 {
        self.fenced
    }

    /// Whether every store before this number has drained.
    pub(super) fn drained(&self, number: u64) -> bool {
        self.stores
            .front()
            .is_none_or(|oldest| oldest.number >= number)
    }

    /// The bytes of a cell in this CPU's own buffered stores: their mask and values.
    pub(super) fn forwarded(&self, cell: CellId) -> (Mask, u64) {
        self.stores
            .iter()
            .filter(|store| store.cell == cell)
            .fold((0, 0), |(mask, value), store| {
                (mask | store.mask, merged(value, store.value, store.mask))
            })
    }

    fn may_drain(&self, place: usize, store: &Store) -> bool {
        self.stores.iter().take(place).all(|earlier| {
            !store.release && earlier.number >= store.after && earlier.cell != store.cell
        })
    }

    /// The places of those that may drain next.
    pub(super) fn drainable(&self) -> impl Iterator<Item = usize> + '_ {
        self.stores
            .iter()
            .enumerate()
            .filter(|(place, store)| self.may_drain(*place, store))
            .map(|(place, _)| place)
    }

    /// Takes the store at this place, which may drain.
    pub(super) fn take(&mut self, place: usize) -> Option<Store> {
        self.stores.remove(place)
    }

    /// Takes all, oldest first.
    pub(super) fn take_all(&mut self) -> Vec<Store> {
        self.stores.drain(..).collect()
    }

    /// Takes the oldest where there are too many.
    pub(super) fn take_overflow(&mut self) -> Option<Store> {
        (self.stores.len() > CAPACITY)
            .then(|| self.stores.pop_front())
            .flatten()
    }

    /// Takes those that must drain before a read-modify-write of this cell: of the cell itself and
    /// before the last release fence, and those that must drain before these. Oldest first.
    pub(super) fn take_before_update(&mut self, cell: CellId) -> Vec<Store> {
        let (mut cells, mut before) = (BTreeSet::from([cell]), self.fenced);
        let mut needed = vec![false; self.stores.len()];
        for (store, needed) in self.stores.iter().zip(&mut needed).rev() {
            if store.number < before || cells.contains(&store.cell) {
                *needed = true;
                cells.insert(store.cell);
                before = before.max(store.after);
                if store.release {
                    before = before.max(store.number);
                }
            }
        }
        let all: Vec<Store> = self.stores.drain(..).collect();
        let (taken, kept): (Vec<_>, Vec<_>) =
            all.into_iter().zip(needed).partition(|(_, needed)| *needed);
        self.stores = kept.into_iter().map(|(store, _)| store).collect();
        taken.into_iter().map(|(store, _)| store).collect()
    }
}
