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
}

impl Placement {
    const ALL: [Placement; 6] = [
        Placement::SetInOrder,
        Placement::SetOutOfOrder,
        Placement::Driver,
        Placement::DeviceInOrder,
        Placement::DeviceOutOfOrder,
        Placement::NotAnswered,
    ];

    /// The decision. `may_reorder`: whether devices of this kind can place out of order; `ask` has the device answer whether
    /// it does.
    pub(crate) fn decide(
        wanted: Choice,
        may_reorder: bool,
        ask: impl FnOnce() -> Option<bool>,
    ) -> Placement {
        match wanted {
            Choice::On => Placement::SetInOrder,
            Choice::Off => Placement::SetOutOfOrder,
            Choice::Auto if !may_reorder => Placement::Driver,
            Choice::Auto => match ask() {
                Some(true) => Placement::DeviceInOrder,
                Some(false) => Placement::DeviceOutOfOrder,
                None => Placement::NotAnswered,
            },
        }
    }

    /// Whether writes are placed in the order sent.
    pub(crate) fn in_order(self) -> bool {
        match self {
            Placement::SetInOrder | Placement::Driver | Placement::DeviceInOrder => true,
            Placement::SetOutOfOrder | Placement::DeviceOutOfOrder | Placement::NotAnswered => {
                false
            }
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

/// IEEE numbers by which NVIDIA's NICs name their vendor, and PCI's.
const MELLANOX: [u32; 2] = [0x02c9, 0x15b3];

/// Whether devices of this kind may place writes out of order: NVIDIA's from ConnectX-4 on, which the driver mlx5 serves.
/// Part numbers of its older driver are told apart; unknown ones count as new.
pub(crate) fn may_reorder(device: &str, vendor: u32, part: u32) -> bool {
    let older = (0x1000..=0x1010).contains(&part) || (0x6000..0x7000).contains(&part);
    device.starts_with("mlx5") || MELLANOX.contains(&vendor) && !older
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_believed_only_where_something_says_so() {
        let decide = |wanted, may_reorder, answer| {
            Placement::decide(wanted, may_reorder, || answer).in_order()
        };
        for answer in [None, Some(false), Some(true)] {
            assert!(decide(Choice::On, true, answer));
            assert!(!decide(Choice::Off, false, answer));
            assert!(decide(Choice::Auto, false, answer), "as its driver does");
        }
        assert!(decide(Choice::Auto, true, Some(true)));
        assert!(!decide(Choice::Auto, true, Some(false)));
        assert!(!decide(Choice::Auto, true, None), "no answer is no order");
    }

    #[test]
    fn a_device_is_asked_only_where_its_answer_counts() {
        let never = || -> Option<bool> { panic!("asked") };
        Placement::decide(Choice::On, true, never);
        Placement::decide(Choice::Off, true, never);
        Placement::decide(Choice::Auto, false, never);
    }

    #[test]
    fn newer_nvidia_devices_may_reorder_whatever_they_are_named() {
        for (device, vendor, part) in [
            ("mlx5_0", 0x02c9, 4129),
            ("ibp65s0f1", 0x02c9, 0x1021),
            ("rocep1", 0x02c9, 0xa2dc),
            ("mlx5_bond_0", 0, 0),
        ] {
            assert!(may_reorder(device, vendor, part), "{device} {part:#x}");
        }
        for (device, vendor, part) in [
            ("mlx4_0", 0x02c9, 4099),
            ("ibs1", 0x02c9, 26428),
            ("rxe0", 0x00ff_ffff, 1),
            ("bnxt_re0", 0x14e4, 0x1750),
        ] {
            assert!(!may_reorder(device, vendor, part), "{device} {part:#x}");
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
        assert_eq!(Placement::from_byte(6), None);
    }
}
