//! The properties of a device, and the named devices that this library plays.

use std::time::Duration;

/// The link layer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    InfiniBand,
    Roce,
}

/// Atomicity, as `ibv_atomic_cap` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomics {
    None,
    /// Among those of the device. They are a load and a store, between which a CPU's may get lost.
    Hca,
    /// Against the CPU's, too.
    Glob,
    /// As `Hca`, by a device that says `Glob`.
    Claimed,
}

impl Atomics {
    /// Whether a CPU's atomic on the same word may get lost.
    pub(crate) fn lose_the_cpus(self) -> bool {
        matches!(self, Atomics::Hca | Atomics::Claimed)
    }
}

/// The properties of a device. README.md has the table for users.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// The profile's name, for messages.
    pub(crate) name: &'static str,
    /// The device's name, without its number.
    pub(crate) device: &'static str,
    pub(crate) vendor: u32,
    pub(crate) part: u32,
    pub(crate) link: Link,
    pub(crate) ports: u32,
    /// The subnet of its ports. Ports of different subnets do not reach each other.
    pub(crate) subnet: u32,

    /// The longest time by which a packet of a write is late, against others of its queue pair. 0: in order.
    pub(crate) skew: Duration,
    /// The longest time by which a read or an atomic is performed late, against what its queue pair sends after it.
    pub(crate) lazy: Duration,
    /// Whether a read is performed after all that was sent before it.
    pub(crate) read_orders: bool,
    /// The longest time for which a write that has arrived, and that was acknowledged, waits for the bus.
    pub(crate) bus: Duration,
    /// Whether keys with relaxed ordering let a write pass others on the bus.
    pub(crate) relaxed: bool,
    /// Whether an atomic by a relaxed key passes writes by relaxed keys on the bus.
    pub(crate) relaxed_atomics: bool,
    /// Whether keys without relaxed ordering are taken for keys with it: the proof that tests notice.
    pub(crate) all_relaxed: bool,
    /// Whether address and key of a write or a read without bytes are checked.
    pub(crate) empty_keys: bool,
    /// Whether memory may be registered without relaxed ordering.
    pub(crate) strict_keys: bool,
    /// The longest time after which a write to GPU memory is visible, if nothing flushes it.
    pub(crate) gpu: Duration,
    /// Whether a read of GPU memory by a NIC makes the writes before it visible to the GPU.
    pub(crate) gpu_read_flushes: bool,
    /// The answer of `ibv_query_qp_data_in_order`.
    pub(crate) data_in_order: bool,
    /// Whether a yes holds only for a queue pair that is connected with itself.
    pub(crate) order_by_path: bool,

    pub(crate) srq: bool,
    pub(crate) atomics: Atomics,
    pub(crate) pci_atomics: bool,
    /// Whether an access flag for atomics is refused where there are none.
    pub(crate) refuse_atomic_access: bool,
    pub(crate) resize_cq: bool,
    pub(crate) ece: bool,
    pub(crate) dma_buf: bool,

    pub(crate) inline: u32,
    pub(crate) max_qp: u32,
    pub(crate) max_qp_wr: u32,
    /// Bytes that a send queue has for its requests; 0: no limit.
    pub(crate) queue_bytes: u32,
    pub(crate) max_sge: u32,
    pub(crate) max_cqe: u32,
    pub(crate) max_cq: u32,
    pub(crate) max_mr: u32,
    /// Bytes of the largest registration.
    pub(crate) max_mr_size: u64,
    pub(crate) max_srq_wr: u32,
    pub(crate) max_rd_atomic: u32,
    pub(crate) max_msg: u32,
    /// As `ibv_mtu` numbers it.
    pub(crate) mtu: u32,
    pub(crate) pkeys: u32,
    /// In Gb/s: 25, 100, 200, 400 or 800 over four lanes; 10 over one.
    pub(crate) rate: u32,

    /// The time that `ibv_modify_qp` takes.
    pub(crate) modify: Duration,
    /// The time by which asynchronous events are late.
    pub(crate) events: Duration,
    /// The longest time for which a poll of an empty completion queue waits for a completion.
    pub(crate) poll: Duration,
}

const STRICT: Profile = Profile {
    name: "strict",
    device: "rxe",
    vendor: 0x00ff_ffff,
    part: 0,
    link: Link::Roce,
    ports: 1,
    subnet: 0,
    skew: Duration::ZERO,
    lazy: Duration::ZERO,
    read_orders: true,
    bus: Duration::ZERO,
    relaxed: false,
    relaxed_atomics: false,
    all_relaxed: false,
    empty_keys: false,
    strict_keys: true,
    gpu: Duration::ZERO,
    gpu_read_flushes: true,
    data_in_order: false,
    order_by_path: false,
    srq: true,
    atomics: Atomics::Glob,
    pci_atomics: false,
    refuse_atomic_access: false,
    resize_cq: true,
    ece: false,
    dma_buf: false,
    inline: 512,
    max_qp: 16_000,
    max_qp_wr: 1 << 20,
    queue_bytes: 0,
    max_sge: 32,
    max_cqe: 32_767,
    max_cq: 1 << 20,
    max_mr: 524_287,
    max_mr_size: u64::MAX,
    max_srq_wr: 1 << 20,
    max_rd_atomic: 128,
    max_msg: 8 << 20,
    mtu: 5,
    pkeys: 1,
    rate: 10,
    modify: Duration::ZERO,
    events: Duration::ZERO,
    poll: Duration::ZERO,
};

/// A ConnectX-6 on InfiniBand whose switches keep every packet's order.
const CX6: Profile = Profile {
    name: "cx6",
    device: "mlx5_",
    vendor: 0x02c9,
    part: 4123,
    link: Link::InfiniBand,
    bus: Duration::from_micros(100),
    lazy: Duration::from_micros(50),
    relaxed: true,
    data_in_order: true,
    atomics: Atomics::Hca,
    ece: true,
    dma_buf: true,
    inline: 220,
    max_qp_wr: 32_768,
    max_sge: 30,
    max_cqe: 4_194_303,
    max_srq_wr: 32_767,
    max_rd_atomic: 16,
    max_msg: 1 << 30,
    pkeys: 128,
    rate: 200,
    ..STRICT
};

/// The same with adaptive routing: its writes, and its reads, take many ways.
const CX6_AR: Profile = Profile {
    name: "cx6-ar",
    skew: Duration::from_micros(300),
    read_orders: false,
    data_in_order: false,
    ..CX6
};

/// A ConnectX-8 on Ethernet, which sets the tier of out-of-order placement by itself. Its atomics reach the CPU's.
const CX8: Profile = Profile {
    name: "cx8",
    part: 4131,
    link: Link::Roce,
    atomics: Atomics::Glob,
    pci_atomics: true,
    pkeys: 1,
    rate: 800,
    ..CX6_AR
};

/// A NIC whose firmware refuses keys without relaxed ordering. Its atomics pass writes on the bus, too.
const RELAXED_ONLY: Profile = Profile {
    name: "relaxed-only",
    strict_keys: false,
    relaxed_atomics: true,
    ..CX6
};

/// Intel's E810 before GEN3.
const NO_SRQ: Profile = Profile {
    name: "no-srq",
    device: "irdma",
    vendor: 0x8086,
    part: 0x1592,
    link: Link::Roce,
    srq: false,
    atomics: Atomics::None,
    inline: 101,
    max_qp_wr: 2_048,
    max_sge: 13,
    max_rd_atomic: 32,
    max_msg: 0x7fff_ffff,
    pkeys: 1,
    rate: 100,
    ..CX6
};

/// A NIC without atomics that refuses access flags for them, as Azure's mana does.
const NO_ATOMICS: Profile = Profile {
    name: "no-atomics",
    device: "mana_",
    vendor: 0x1414,
    part: 0xba,
    link: Link::Roce,
    atomics: Atomics::None,
    refuse_atomic_access: true,
    inline: 0,
    max_qp_wr: 4_096,
    max_rd_atomic: 32,
    pkeys: 1,
    rate: 200,
    ..CX6
};

/// Alibaba's eRDMA: no shared receive queues, little inline data, and a claim of global atomics.
const ERDMA: Profile = Profile {
    name: "erdma",
    device: "erdma_",
    vendor: 0x1ded,
    part: 0x107f,
    link: Link::Roce,
    srq: false,
    atomics: Atomics::Claimed,
    resize_cq: false,
    inline: 96,
    max_qp_wr: 8_192,
    max_sge: 4,
    max_rd_atomic: 128,
    pkeys: 1,
    rate: 100,
    ..CX6
};

/// As small as a device may be: short queues, few queue pairs, small messages, packets of 1024 bytes.
const SMALL: Profile = Profile {
    name: "small",
    inline: 60,
    max_qp: 64,
    max_qp_wr: 64,
    max_sge: 1,
    max_cqe: 255,
    max_cq: 16,
    max_mr: 64,
    max_srq_wr: 128,
    max_rd_atomic: 1,
    max_msg: 1 << 20,
    mtu: 3,
    resize_cq: false,
    modify: Duration::from_millis(2),
    events: Duration::from_millis(20),
    ..CX6
};

/// A network card of the mainboard beside the InfiniBand HCA.
const LOM: Profile = Profile {
    name: "lom",
    device: "bnxt_re",
    vendor: 0x14e4,
    part: 0x16d7,
    link: Link::Roce,
    inline: 96,
    max_qp_wr: 4_096,
    max_sge: 6,
    max_rd_atomic: 126,
    pkeys: 1,
    rate: 25,
    ..CX6
};

const fn rail(subnet: u32) -> Profile {
    Profile {
        name: "rail",
        subnet,
        ..CX6
    }
}

const fn roce_rail(subnet: u32) -> Profile {
    Profile {
        name: "roce-rail",
        link: Link::Roce,
        subnet,
        pkeys: 1,
        rate: 400,
        ..CX6
    }
}

/// The devices that each name stands for.
const NAMES: [(&str, &[Profile]); 14] = [
    ("strict", &[STRICT]),
    ("cx6", &[CX6]),
    ("cx6-ar", &[CX6_AR]),
    ("cx8", &[CX8]),
    ("relaxed-only", &[RELAXED_ONLY]),
    ("no-srq", &[NO_SRQ]),
    ("no-atomics", &[NO_ATOMICS]),
    ("erdma", &[ERDMA]),
    ("small", &[SMALL]),
    ("lom", &[LOM]),
    ("two-fabrics", &[CX6, LOM]),
    ("rails", &[rail(1), rail(2)]),
    ("roce-rails", &[roce_rail(1), roce_rail(2)]),
    (
        "two-ports",
        &[Profile {
            name: "two-ports",
            ports: 2,
            ..CX6
        }],
    ),
];

impl Profile {
    /// The devices of a name.
    pub(crate) fn named(name: &str) -> Option<&'static [Profile]> {
        let found = NAMES.iter().find(|(one, _)| *one == name);
        found.map(|(_, devices)| *devices)
    }

    /// All names, with commas between.
    pub(crate) fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Changes one property. `Err` says why it cannot be understood.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || {
            let parsed = value.parse::<u32>();
            parsed.map_err(|_| format!("{key}={value}: a number is needed"))
        };
        let micros = || Ok::<_, String>(Duration::from_micros(number()?.into()));
        let millis = || Ok::<_, String>(Duration::from_millis(number()?.into()));
        let switch = || match value {
            "on" | "1" => Ok(true),
            "off" | "0" => Ok(false),
            _ => Err(format!("{key}={value}: on or off is needed")),
        };
        match key {
            "link" => {
                self.link = match value {
                    "ib" => Link::InfiniBand,
                    "roce" => Link::Roce,
                    _ => return Err(format!("link={value}: ib or roce is needed")),
                }
            }
            "atomics" => {
                self.atomics = match value {
                    "none" => Atomics::None,
                    "hca" => Atomics::Hca,
                    "glob" => Atomics::Glob,
                    "claimed" => Atomics::Claimed,
                    _ => {
                        return Err(format!(
                            "atomics={value}: none, hca, glob or claimed is needed"
                        ));
                    }
                }
            }
            "ports" => self.ports = number()?.clamp(1, 4),
            "subnet" => self.subnet = number()?.min(255),
            "skew" => self.skew = micros()?,
            "lazy" => self.lazy = micros()?,
            "read_orders" => self.read_orders = switch()?,
            "bus" => self.bus = micros()?,
            "relaxed" => self.relaxed = switch()?,
            "relaxed_atomics" => self.relaxed_atomics = switch()?,
            "empty_keys" => self.empty_keys = switch()?,
            "all_relaxed" => self.all_relaxed = switch()?,
            "strict_keys" => self.strict_keys = switch()?,
            "gpu" => self.gpu = micros()?,
            "gpu_read_flushes" => self.gpu_read_flushes = switch()?,
            "data_in_order" => self.data_in_order = switch()?,
            "order_by_path" => self.order_by_path = switch()?,
            "srq" => self.srq = switch()?,
            "pci_atomics" => self.pci_atomics = switch()?,
            "refuse_atomic_access" => self.refuse_atomic_access = switch()?,
            "resize_cq" => self.resize_cq = switch()?,
            "ece" => self.ece = switch()?,
            "dma_buf" => self.dma_buf = switch()?,
            "inline" => self.inline = number()?,
            "max_qp" => self.max_qp = number()?,
            "max_qp_wr" => self.max_qp_wr = number()?.max(1),
            "queue_bytes" => self.queue_bytes = number()?,
            "max_sge" => self.max_sge = number()?.max(1),
            "max_cqe" => self.max_cqe = number()?.max(1),
            "max_cq" => self.max_cq = number()?,
            "max_mr" => self.max_mr = number()?,
            "max_mr_size" => self.max_mr_size = number()?.into(),
            "max_srq_wr" => self.max_srq_wr = number()?,
            "max_rd_atomic" => self.max_rd_atomic = number()?.clamp(1, 255),
            "max_msg" => self.max_msg = number()?.max(4096),
            "mtu" => self.mtu = number()?.clamp(1, 5),
            "pkeys" => self.pkeys = number()?.clamp(1, 128),
            "rate" => self.rate = number()?,
            "modify" => self.modify = millis()?,
            "events" => self.events = millis()?,
            "poll" => self.poll = millis()?,
            _ => return Err(format!("{key}: there is no such property; see README.md")),
        }
        Ok(())
    }

    /// The bytes of a packet.
    pub(crate) fn packet(&self) -> usize {
        128 << self.mtu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_devices_and_an_unknown_one_has_none() {
        for (name, devices) in NAMES {
            assert_eq!(Profile::named(name).unwrap().len(), devices.len());
            assert!(Profile::names().contains(name));
        }
        assert!(Profile::named("cx5").is_none());
    }

    #[test]
    fn a_wrong_property_or_value_is_named() {
        let mut profile = STRICT;
        profile.set("skew", "250").unwrap();
        assert_eq!(profile.skew, Duration::from_micros(250));
        for (key, value) in [
            ("skew", "much"),
            ("srq", "maybe"),
            ("colour", "red"),
            ("link", "x"),
        ] {
            let error = profile.set(key, value).unwrap_err();
            assert!(error.contains(key), "{error}");
        }
    }
}
