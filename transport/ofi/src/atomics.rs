//! The set of a provider's atomics on words of 64 bits: bits in an address, and the table of a domain.

use oxshmem_transport::{AtomicLevel, AtomicOp, AtomicTable, Width};

/// A bit for each operation, in the order of [`AtomicOp::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AtomicSet(pub u8);

impl AtomicSet {
    /// The operations that an endpoint has. None if all others cannot be made of them, since one performer has all atomics on
    /// a word.
    pub(crate) fn of(has: impl Fn(AtomicOp) -> bool) -> AtomicSet {
        let [add, swap] = [AtomicOp::Add, AtomicOp::CompareSwap].map(&has);
        let ops = AtomicOp::ALL
            .into_iter()
            .filter(|op| add && swap && has(*op));
        AtomicSet(ops.fold(0, |set, op| set | 1 << op as u8))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The operations that both have.
    pub(crate) fn both(self, other: AtomicSet) -> AtomicSet {
        let common = AtomicSet(self.0 & other.0);
        AtomicSet::of(|op| common.has(op, Width::W64))
    }

    pub(crate) fn has(self, op: AtomicOp, width: Width) -> bool {
        width == Width::W64 && self.0 & 1 << op as u8 != 0
    }

    /// The table of these operations, each exclusive against the provider's alone.
    pub(crate) fn table(self) -> AtomicTable {
        let ops = AtomicOp::ALL
            .into_iter()
            .filter(|op| self.has(*op, Width::W64));
        let none = AtomicTable::uniform(AtomicLevel::None);
        ops.fold(none, |table, op| {
            table.with(op, Width::W64, AtomicLevel::Nic)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m29_a_provider_without_add_or_compare_swap_has_no_atomics_at_all() {
        for missing in [AtomicOp::Add, AtomicOp::CompareSwap] {
            assert!(AtomicSet::of(|op| op != missing).is_empty());
        }
        let set = AtomicSet::of(|op| op != AtomicOp::Xor);
        let table = set.table();
        for op in AtomicOp::ALL {
            let level = match op {
                AtomicOp::Xor => AtomicLevel::None,
                _ => AtomicLevel::Nic,
            };
            assert_eq!(table.level(op, Width::W64), level, "{op}");
            assert_eq!(table.level(op, Width::W32), AtomicLevel::None, "{op}");
        }
    }

    #[test]
    fn m29_atomics_towards_a_peer_are_those_that_its_provider_performs() {
        let all = AtomicSet::of(|_| true);
        let some = AtomicSet::of(|op| op != AtomicOp::And);
        assert_eq!(all.both(some), some);
        assert!(all.both(AtomicSet::default()).is_empty());
        // Bits that a peer sends are not believed to be a sound set.
        let lone = AtomicSet(1 << AtomicOp::Add as u8);
        assert!(all.both(lone).is_empty());
    }
}
