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
    /// A list of devices says in order, or the device is a program.
    Known,
    /// The device says in order.
    DeviceInOrder,
    /// The device says out of order.
    DeviceOutOfOrder,
    /// The device may place out of order and cannot be asked.
    NotAnswered,
    /// A device of which nothing is known.
    Unknown,
}

impl Placement {
    const ALL: [Placement; 7] = [
        Placement::SetInOrder,
        Placement::SetOutOfOrder,
        Placement::Known,
        Placement::DeviceInOrder,
        Placement::DeviceOutOfOrder,
        Placement::NotAnswered,
        Placement::Unknown,
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
                Kind::InOrder => Placement::Known,
                Kind::Unknown => Placement::Unknown,
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
            Placement::SetInOrder | Placement::Known | Placement::DeviceInOrder => true,
            Placement::SetOutOfOrder
            | Placement::DeviceOutOfOrder
            | Placement::NotAnswered
            | Placement::Unknown => false,
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
            Placement::Known => "it is a program, or a device of which Open MPI's list says so",
            Placement::DeviceInOrder => {
                "the device says so of the data of one write, by ibv_query_qp_data_in_order, and so the packets of \
                 several are placed as they come"
            }
            Placement::DeviceOutOfOrder => "the device says so",
            Placement::NotAnswered => {
                "its libibverbs or its device does not answer ibv_query_qp_data_in_order"
            }
            Placement::Unknown => "nothing is known of this device",
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
    /// It is known to place in order.
    InOrder,
    /// It may place out of order, and its driver answers whether it does.
    Answers,
    /// Nothing is known. Newer Ethernet NICs spray the packets of a connection over several paths.
    Unknown,
}

/// IEEE numbers by which NVIDIA's NICs name their vendor, and PCI's.
const MELLANOX: [u32; 2] = [0x02c9, 0x15b3];

/// PCI numbers of vendors.
const BROADCOM: u32 = 0x14e4;
const CHELSIO: u32 = 0x1425;

/// Broadcom's parts on the list.
const BROADCOMS: [u32; 24] = [
    0x1605, 0x1606, 0x1614, 0x16c0, 0x16c1, 0x16ce, 0x16cf, 0x16d6, 0x16d7, 0x16d8, 0x16d9, 0x16df,
    0x16e2, 0x16e3, 0x16e5, 0x16eb, 0x16ed, 0x16ef, 0x16f0, 0x16f1, 0x1750, 0xd800, 0xd802, 0xd804,
];

/// Whether Open MPI's list of devices has this one, and says that the last byte of a write is placed last there
/// (`mca-btl-openib-device-params.ini` of version 4, `use_eager_rdma`). Programs have relied on that for years. Of parts that
/// came later nothing is known: the newest spray the packets of a connection over several paths.
fn is_listed(vendor: u32, part: u32) -> bool {
    match vendor {
        BROADCOM => BROADCOMS.contains(&part),
        // The family T3, then T4 to T6 by their first byte.
        CHELSIO => {
            (0x20..=0x36).contains(&part) || matches!(part >> 8, 0x44 | 0x54 | 0x64 | 0xa0 | 0xb0)
        }
        _ => false,
    }
}

/// The kind of a device. NVIDIA's answer from ConnectX-4 on, which the driver mlx5 serves. Part numbers of its older driver, all of
/// them on the list, are told apart; unknown ones count as new.
pub(crate) fn kind(device: &str, vendor: u32, part: u32) -> Kind {
    let older = (0x1000..=0x1010).contains(&part) || (0x6000..0x7000).contains(&part);
    if device.starts_with("mlx5") || MELLANOX.contains(&vendor) && !older {
        Kind::Answers
    } else if MELLANOX.contains(&vendor) || is_listed(vendor, part) {
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
            ("cxgb4_0", 0x1425, 0x6414),
        ] {
            assert_eq!(
                kind(device, vendor, part),
                Kind::InOrder,
                "{device} {part:#x}"
            );
        }
        for (device, vendor, part) in [
            ("ionic_0", 0x1dd8, 0x1008),
            ("bnxt_re0", 0x14e4, 0x1760),
            ("irdma0", 0x8086, 0x1592),
            ("erdma_0", 0x1ded, 0x107f),
            ("cxgb5_0", 0x1425, 0x7401),
        ] {
            assert_eq!(
                kind(device, vendor, part),
                Kind::Unknown,
                "{device} {part:#x}"
            );
        }
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
