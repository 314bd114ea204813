//! The attributes of a port that others give it, and may change while it is open: its address, its partition, its speed.
//!
//! A subnet manager that takes over gives other LIDs, and `ip addr` other identifiers. The connections that exist go on or
//! die by that; those that are made later use the attributes of their moment.

use crate::ibv::Gid;
use crate::wire::PortAddress;

/// The attributes of a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Addressing {
    pub(crate) ethernet: bool,
    pub(crate) mtu: u8,
    /// On InfiniBand.
    pub(crate) lid: u16,
    /// The partition key's index, and the key.
    pub(crate) partition: u16,
    pub(crate) partition_key: u16,
    /// Identifiers that may be this side's, best first, with their indices.
    pub(crate) gids: Vec<(u8, Gid)>,
    /// In Gb/s.
    pub(crate) rate: f64,
}

impl Addressing {
    /// The address that peers are given.
    pub(crate) fn address(&self) -> PortAddress {
        PortAddress {
            ethernet: self.ethernet,
            mtu: self.mtu,
            lid: self.lid,
            partition: self.partition_key,
            gids: self.gids.iter().map(|(_, gid)| *gid).collect(),
        }
    }

    /// The differences of a later moment, in words.
    pub(crate) fn changes(&self, later: &Addressing) -> Vec<String> {
        let mut changes = Vec::new();
        if self.lid != later.lid {
            changes.push(format!("LID {} is now {}", self.lid, later.lid));
        }
        for (index, gid) in missing(&self.gids, &later.gids) {
            changes.push(format!("GID {gid} at index {index} is gone"));
        }
        for (index, gid) in missing(&later.gids, &self.gids) {
            changes.push(format!("GID {gid} at index {index} is new"));
        }
        let partitions = [self, later].map(|of| (of.partition_key, of.partition));
        if let [(key, index), (other, at)] = partitions
            && partitions[0] != partitions[1]
        {
            changes.push(format!(
                "P_Key {key:#06x} at index {index} is now {other:#06x} at index {at}"
            ));
        }
        if self.mtu != later.mtu {
            let [before, now] = [self, later].map(|of| 128_u32 << of.mtu);
            changes.push(format!("MTU {before} is now {now}"));
        }
        if self.rate.total_cmp(&later.rate).is_ne() {
            changes.push(format!("{} Gb/s are now {}", self.rate, later.rate));
        }
        changes
    }
}

/// The entries of a table that another one does not have at the same index.
fn missing<'a>(of: &'a [(u8, Gid)], other: &'a [(u8, Gid)]) -> impl Iterator<Item = &'a (u8, Gid)> {
    of.iter().filter(|entry| !other.contains(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(last: u8) -> Gid {
        let mut raw = [0; 16];
        (raw[0], raw[1], raw[15]) = (0xfe, 0x80, last);
        Gid(raw)
    }

    fn addressing() -> Addressing {
        Addressing {
            ethernet: false,
            mtu: 5,
            lid: 3,
            partition: 0,
            partition_key: 0xffff,
            gids: vec![(0, gid(1)), (2, gid(2))],
            rate: 100.0,
        }
    }

    #[test]
    fn what_did_not_change_is_not_told() {
        assert_eq!(addressing().changes(&addressing()), [""; 0]);
    }

    #[test]
    fn each_change_is_told_with_what_was_and_what_is() {
        let later = Addressing {
            lid: 77,
            mtu: 4,
            partition: 1,
            partition_key: 0x8005,
            gids: vec![(0, gid(1)), (2, gid(9))],
            rate: 50.0,
            ..addressing()
        };
        let told = [
            "LID 3 is now 77",
            "GID fe80::2 at index 2 is gone",
            "GID fe80::9 at index 2 is new",
            "P_Key 0xffff at index 0 is now 0x8005 at index 1",
            "MTU 4096 is now 2048",
            "100 Gb/s are now 50",
        ];
        assert_eq!(addressing().changes(&later), told);
    }

    #[test]
    fn an_identifier_that_moves_is_told_by_both_indices() {
        let later = Addressing {
            gids: vec![(0, gid(1)), (3, gid(2))],
            ..addressing()
        };
        let told = [
            "GID fe80::2 at index 2 is gone",
            "GID fe80::2 at index 3 is new",
        ];
        assert_eq!(addressing().changes(&later), told);
    }
}
