//! The order in which a device places the data of writes that arrive on one reliable connection.
//!
//! The connection itself delivers in order. Devices with adaptive routing (ConnectX-5 and later) place the data of each
//! packet as it arrives, so that a later write may be in memory before an earlier one. Atomics and messages wait for
//! the writes before them. So the order of writes is believed only where the device, its driver or the user says so.

use crate::settings::Choice;

/// The placement order of a device, with the source of that knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The user says in order.
    SetInOrder,
    /// The user says out of order.
    SetOutOfOrder,
    /// Devices of this driver place in order.
    Driver,
    /// The device says in order.
    DeviceInOrder,
    /// The device says out of order.
    DeviceOutOfOrder,
    /// The device may place out of order and cannot be asked.
    NotAnswered,
    /// A device of a vendor of which nothing is known.
    UnknownVendor,
}

impl Placement {
    const ALL: [Placement; 7] = [
        Placement::SetInOrder,
        Placement::SetOutOfOrder,
        Placement::Driver,
        Placement::DeviceInOrder,
        Placement::DeviceOutOfOrder,
        Placement::NotAnswered,
        Placement::UnknownVendor,
    ];

    /// The decision for a device of this kind. `ask` has the device answer whether it places in order.
    pub(crate) fn decide(
        wanted: Choice,
        kind: Kind,
        ask: impl FnOnce() -> Option<bool>,
    ) -> Placement {
        match wanted {
            Choice::On => Placement::SetInOrder,
            Choice::Off => Placement::SetOutOfOrder,
            Choice::Auto => match kind {
                Kind::InOrder => Placement::Driver,
                Kind::Unknown => Placement::UnknownVendor,
                Kind::Answers => match ask() {
                    Some(true) => Placement::DeviceInOrder,
                    Some(false) => Placement::DeviceOutOfOrder,
                    None => Placement::NotAnswered,
                },
            },
        }
    }

    /// Whether writes are placed in the order sent.
    pub(crate) fn in_order(self) -> bool {
        match self {
            Placement::SetInOrder | Placement::Driver | Placement::DeviceInOrder => true,
            Placement::SetOutOfOrder
            | Placement::DeviceOutOfOrder
            | Placement::NotAnswered
            | Placement::UnknownVendor => false,
        }
    }

    /// Its number among all, for peers.
    pub(crate) fn to_byte(self) -> u8 {
        let at = Placement::ALL.iter().position(|known| *known == self);
        at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
    }

    /// The one with this number.
    pub(crate) fn from_byte(byte: u8) -> Option<Placement> {
        Placement::ALL.get(usize::from(byte)).copied()
    }

    /// The target's order and its price, in words.
    pub(crate) fn explain(self) -> String {
        let why = match self {
            Placement::SetInOrder => "OXSHMEM_VERBS_IN_ORDER=on there",
            Placement::SetOutOfOrder => "OXSHMEM_VERBS_IN_ORDER=off there",
            Placement::Driver => "as devices of its driver do",
            Placement::DeviceInOrder => "the device says so",
            Placement::DeviceOutOfOrder => "the device says so",
            Placement::NotAnswered => {
                "its libibverbs or its device does not answer ibv_query_qp_data_in_order"
            }
            Placement::UnknownVendor => "nothing is known of its vendor's NICs",
        };
        if self.in_order() {
            return format!("its NIC places writes in order ({why})");
        }
        format!(
            "its NIC may place writes out of order ({why}): a fence after puts and a get after them flush, \
             a put-with-signal has its signal wait a round trip; OXSHMEM_VERBS_IN_ORDER=on there, if \
             adaptive routing is off"
        )
    }
}

/// The sort of a device, by its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its vendor's devices place in order.
    InOrder,
    /// It may place out of order, and its driver answers whether it does.
    Answers,
    /// Nothing is known. Newer Ethernet NICs spray the packets of a connection over several paths.
    Unknown,
}

/// IEEE numbers by which NVIDIA's NICs name their vendor, and PCI's.
const MELLANOX: [u32; 2] = [0x02c9, 0x15b3];

/// PCI numbers of the vendors whose NICs place in order.
const IN_ORDER: [u32; 8] = [
    0x14e4, // Broadcom, bnxt_re
    0x8086, // Intel, irdma
    0x19e5, // Huawei, hns
    0x1077, // Marvell, qedr
    0x1425, // Chelsio, cxgb4
    0x1ded, // Alibaba, erdma
    0x1414, // Microsoft, mana
    0x15ad, // VMware, vmw_pvrdma
];

/// The kind of a device. NVIDIA's answer from ConnectX-4 on, which the driver mlx5 serves. Part numbers of its older driver are
/// told apart; unknown ones count as new.
pub(crate) fn kind(device: &str, vendor: u32, part: u32) -> Kind {
    let older = (0x1000..=0x1010).contains(&part) || (0x6000..0x7000).contains(&part);
    if device.starts_with("mlx5") || MELLANOX.contains(&vendor) && !older {
        Kind::Answers
    } else if MELLANOX.contains(&vendor) || IN_ORDER.contains(&vendor) {
        Kind::InOrder
    } else {
        Kind::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_believed_only_where_something_says_so() {
        let decide = |wanted, kind, answer| Placement::decide(wanted, kind, || answer).in_order();
        for answer in [None, Some(false), Some(true)] {
            assert!(decide(Choice::On, Kind::Unknown, answer));
            assert!(!decide(Choice::Off, Kind::InOrder, answer));
            assert!(decide(Choice::Auto, Kind::InOrder, answer));
            // Drivers without the question give a default for an answer.
            assert!(!decide(Choice::Auto, Kind::Unknown, answer));
        }
        assert!(decide(Choice::Auto, Kind::Answers, Some(true)));
        assert!(!decide(Choice::Auto, Kind::Answers, Some(false)));
        assert!(!decide(Choice::Auto, Kind::Answers, None));
    }

    #[test]
    fn a_device_is_asked_only_where_its_answer_counts() {
        let never = || -> Option<bool> { panic!("asked") };
        Placement::decide(Choice::On, Kind::Answers, never);
        Placement::decide(Choice::Off, Kind::Answers, never);
        Placement::decide(Choice::Auto, Kind::InOrder, never);
        Placement::decide(Choice::Auto, Kind::Unknown, never);
    }

    #[test]
    fn a_device_is_known_by_its_vendor_whatever_it_is_named() {
        for (device, vendor, part) in [
            ("mlx5_0", 0x02c9, 4129),
            ("ibp65s0f1", 0x02c9, 0x1021),
            ("rocep1", 0x02c9, 0xa2dc),
            ("mlx5_bond_0", 0, 0),
        ] {
            assert_eq!(
                kind(device, vendor, part),
                Kind::Answers,
                "{device} {part:#x}"
            );
        }
        for (device, vendor, part) in [
            ("mlx4_0", 0x02c9, 4099),
            ("ibs1", 0x02c9, 26428),
            ("bnxt_re0", 0x14e4, 0x1750),
        ] {
            assert_eq!(
                kind(device, vendor, part),
                Kind::InOrder,
                "{device} {part:#x}"
            );
        }
        assert_eq!(kind("ionic_0", 0x1dd8, 0x1008), Kind::Unknown);
    }

    #[test]
    fn the_order_and_its_source_reach_peers_and_users() {
        for known in Placement::ALL {
            assert_eq!(Placement::from_byte(known.to_byte()), Some(known));
            let told = known.explain();
            assert_eq!(told.contains("out of order"), !known.in_order(), "{told}");
            assert_eq!(told.contains("flush"), !known.in_order(), "{told}");
        }
        assert_eq!(Placement::from_byte(7), None);
    }
}
