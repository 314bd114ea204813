//! The responder's queue pairs, found by each of the names that events, peers and completions use. None of the searches
//! looks at all pairs: a PE may have thousands.

use std::collections::HashMap;
use std::sync::Arc;

use oxshmem_transport::Pe;

/// The names of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairName {
    /// Its number on this device. A later one may have it.
    pub(super) number: u32,
    /// The PE whose lane it serves.
    pub(super) pe: Pe,
    /// The nonce of that lane's endpoint.
    pub(super) nonce: u64,
    /// The number of that lane's queue pair, on its device. A later one may have it.
    pub(super) peer_number: PeerNumber,
}

/// The number of a NIC among those of a peer, and of a queue pair there.
pub(super) type PeerNumber = (u8, u32);

/// Queue pairs by their names.
#[derive(Debug)]
pub(super) struct PairTable<T> {
    by_number: HashMap<u32, (PairName, Arc<T>)>,
    /// Numbers, by PE and nonce.
    by_nonce: HashMap<(Pe, u64), u32>,
    /// Numbers, by PE and the number of the PE's queue pair.
    by_peer_number: HashMap<(Pe, PeerNumber), u32>,
}

impl<T> Default for PairTable<T> {
    fn default() -> Self {
        PairTable {
            by_number: HashMap::new(),
            by_nonce: HashMap::new(),
            by_peer_number: HashMap::new(),
        }
    }
}

impl<T> PairTable<T> {
    /// The pair of this number.
    pub(super) fn get(&self, number: u32) -> Option<&Arc<T>> {
        self.by_number.get(&number).map(|(_, pair)| pair)
    }

    /// The pair that serves the endpoint of a PE with this nonce.
    pub(super) fn of_nonce(&self, pe: Pe, nonce: u64) -> Option<&Arc<T>> {
        self.get(*self.by_nonce.get(&(pe, nonce))?)
    }

    /// The pair that serves a PE's queue pair of this number.
    pub(super) fn of_peer_number(&self, pe: Pe, number: PeerNumber) -> Option<&Arc<T>> {
        self.get(*self.by_peer_number.get(&(pe, number))?)
    }

    /// Adds a pair, in place of one of the same number.
    pub(super) fn insert(&mut self, name: PairName, pair: Arc<T>) {
        self.remove(name.number);
        self.by_nonce.insert((name.pe, name.nonce), name.number);
        self.by_peer_number
            .insert((name.pe, name.peer_number), name.number);
        self.by_number.insert(name.number, (name, pair));
    }

    /// Removes the pair of this number.
    pub(super) fn remove(&mut self, number: u32) {
        let Some((name, _)) = self.by_number.remove(&number) else {
            return;
        };
        // A later pair may have the same name.
        let own = |at: &u32| *at == number;
        if self.by_nonce.get(&(name.pe, name.nonce)).is_some_and(own) {
            self.by_nonce.remove(&(name.pe, name.nonce));
        }
        let peer_number = (name.pe, name.peer_number);
        if self.by_peer_number.get(&peer_number).is_some_and(own) {
            self.by_peer_number.remove(&peer_number);
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.by_number.values().map(|(_, pair)| pair)
    }

    pub(super) fn clear(&mut self) {
        *self = PairTable::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u32, pe: u32, nonce: u64, peer_number: u32) -> PairName {
        PairName {
            number,
            pe: Pe(pe),
            nonce,
            peer_number: (0, peer_number),
        }
    }

    fn table(names: &[PairName]) -> PairTable<PairName> {
        let mut table = PairTable::default();
        for name in names {
            table.insert(*name, Arc::new(*name));
        }
        table
    }

    #[test]
    fn a_pair_is_found_by_each_of_its_names() {
        let pairs = [
            name(7, 1, 100, 40),
            name(8, 1, 101, 41),
            name(9, 2, 100, 40),
        ];
        let table = table(&pairs);
        for pair in pairs {
            let found = [
                table.get(pair.number),
                table.of_nonce(pair.pe, pair.nonce),
                table.of_peer_number(pair.pe, pair.peer_number),
            ];
            assert!(
                found.iter().all(|found| **found.unwrap() == pair),
                "{pair:?}"
            );
        }
        assert!(table.of_nonce(Pe(2), 101).is_none());
        assert_eq!(table.values().count(), 3);
    }

    #[test]
    fn a_pair_that_is_removed_is_found_by_none() {
        let mut table = table(&[name(7, 1, 100, 40), name(8, 1, 101, 41)]);
        table.remove(7);
        table.remove(7);
        assert!(table.get(7).is_none() && table.of_nonce(Pe(1), 100).is_none());
        assert!(table.of_peer_number(Pe(1), (0, 40)).is_none());
        assert_eq!(table.of_nonce(Pe(1), 101).unwrap().number, 8);
    }

    #[test]
    fn the_end_of_an_old_pair_leaves_the_names_of_its_successor() {
        // The peer's device gave the number of a queue pair that is gone again.
        let mut table = table(&[name(7, 1, 100, 40), name(8, 1, 101, 40)]);
        table.remove(7);
        assert_eq!(table.of_peer_number(Pe(1), (0, 40)).unwrap().number, 8);
        // Another NIC of that peer has queue pairs of the same numbers.
        assert!(table.of_peer_number(Pe(1), (1, 40)).is_none());
        // This device did.
        table.insert(name(8, 3, 500, 60), Arc::new(name(8, 3, 500, 60)));
        assert!(table.of_nonce(Pe(1), 101).is_none());
        assert_eq!(table.of_nonce(Pe(3), 500).unwrap().number, 8);
    }
}
