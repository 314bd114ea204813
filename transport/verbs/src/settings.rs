//! The settings of this transport, in one table of environment variables. Nothing else here reads the
//! environment.

mod source;
mod values;

use std::time::Duration;

use oxshmem_transport::Variable;

use self::source::{CHOICES, Source};
pub use self::values::{Choice, FlowLabel, GpuDirect, Partition, Rails, SettingsError};
use crate::address_range::AddressRange;

/// The variable about routers between RoCE ports.
pub(crate) const ROUTED: &str = "OXSHMEM_VERBS_ROUTED";

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable {
        name,
        default,
        meaning,
    }
}

/// All variables that this transport reads.
pub const VARIABLES: &[Variable] = &[
    variable(
        "OXSHMEM_VERBS_GID_INDEX",
        "RoCE v2 over IPv4, else over IPv6",
        "which entry of the port's GID table is this side's address (index)",
    ),
    variable(
        "OXSHMEM_VERBS_ADDRESS",
        "all",
        "the addresses of which this side's is one, where hosts have several or differ in indices: 10.1.0.0/16, fd00::/8 (a prefix)",
    ),
    variable(
        "OXSHMEM_VERBS_MTU",
        "the smaller of both ports'",
        "largest packet: 256, 512, 1024, 2048 or 4096 (bytes)",
    ),
    variable(
        "OXSHMEM_VERBS_PKEY",
        "index 0, or its full member",
        "the partition, by its index in the port's table or, as 0x…, by its key (index or 0x… value)",
    ),
    variable(
        "OXSHMEM_VERBS_SERVICE_LEVEL",
        "0",
        "the service level of packets (on RoCE: the Ethernet priority) (0..15)",
    ),
    variable(
        "OXSHMEM_VERBS_TRAFFIC_CLASS",
        "auto: the port's global class (sysfs), else 106 on RoCE of NVIDIA's NICs, else 0",
        "the traffic class of packets with a global route (on RoCE v2: DSCP and ECN) (auto, 0..255)",
    ),
    variable(
        "OXSHMEM_VERBS_FLOW_LABEL",
        "0: on RoCE v2 the driver takes the UDP source port from the queue pairs' numbers",
        "the flow label of packets with a global route, by which networks choose among equal paths (ECMP); auto gives each queue pair its own (auto, 0..1048575)",
    ),
    variable(
        "OXSHMEM_VERBS_GLOBAL_ROUTE",
        "auto",
        "whether packets on InfiniBand carry a global route also within a subnet (auto, on)",
    ),
    variable(
        ROUTED,
        "auto: if the interface has a route by a gateway, else uncertain",
        "whether routers join this NIC's RoCE subnets with others, so that NICs of several subnets may be chosen (auto, on, off)",
    ),
    variable(
        "OXSHMEM_VERBS_TIMEOUT",
        "20 (4.3 s); 16 (0.3 s) on a software device",
        "how long an answer may take before a packet is sent again: 4.096 us times 2 to this power (1..31)",
    ),
    variable(
        "OXSHMEM_VERBS_RETRY_COUNT",
        "7; 6 on a software device, which at 7 never gives up",
        "how often a packet is sent again before its PE counts as lost (0..7)",
    ),
    variable(
        "OXSHMEM_VERBS_RNR_RETRY",
        "7 (for ever)",
        "how often a message is sent again to a PE that has no room for it (0..7)",
    ),
    variable(
        "OXSHMEM_VERBS_MIN_RNR_TIMER",
        "12 (0.64 ms)",
        "the pause that a PE without room asks for, as InfiniBand numbers it (0..31)",
    ),
    variable(
        "OXSHMEM_VERBS_DEPTH",
        "128",
        "how many operations towards one PE may be outstanding on a lane (16 to 8192) (operations)",
    ),
    variable(
        "OXSHMEM_VERBS_RAILS",
        "auto: the NICs at least as near as the PE's first and as fast that are no PE's first on its host",
        "the NICs that long transfers of one PE are spread over, beside the one that it opens for all operations: how many, or which ports (auto, 1 to 8, names such as mlx5_0:1,mlx5_1:1)",
    ),
    variable(
        "OXSHMEM_VERBS_QPS",
        "1: those of all operations, if it has one NIC",
        "how many queue pairs of their own long transfers to one PE are spread over at each NIC, where one is not fast enough (1 to 8)",
    ),
    variable(
        "OXSHMEM_VERBS_STRIPE",
        "65536",
        "from this size on a transfer is long: it goes in parts of at least 16 KiB, and a fence flushes it (64 to 1 GiB) (bytes)",
    ),
    variable(
        "OXSHMEM_VERBS_INLINE",
        "220",
        "up to this size a put's data goes with the request, if the device can (0 to 4096) (bytes)",
    ),
    variable(
        "OXSHMEM_VERBS_BOUNCE",
        "1048576",
        "registered memory per lane for data that is not (262144 to 1 GiB) (bytes)",
    ),
    variable(
        "OXSHMEM_VERBS_RELAXED_ORDERING",
        "auto: on with CPUs of AMD's Zen and Fujitsu's, with Emerald Rapids for GPU memory; else off",
        "whether writes may pass each other on the PCIe bus: faster on some machines; a fence has later puts keep order until a flush (auto, on, off)",
    ),
    variable(
        "OXSHMEM_VERBS_IN_ORDER",
        "auto: as the device says; NVIDIA's that does not say: off; others: on",
        "whether this NIC places writes in the order sent; if not, fences flush and signals wait a round trip (auto, on, off)",
    ),
    variable(
        "OXSHMEM_VERBS_GPUDIRECT",
        "auto: as a dma-buf, else by peermem, else not",
        "how the NIC reaches the GPU heap; where it does not, transfers are staged in host memory (auto, dma-buf, peermem, off)",
    ),
];

/// The settings; none where the default depends on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `OXSHMEM_VERBS_GID_INDEX`.
    pub gid_index: Option<u8>,
    /// `OXSHMEM_VERBS_ADDRESS`.
    pub address: Option<AddressRange>,
    /// `OXSHMEM_VERBS_MTU`, as verbs number it: 1 is 256 bytes, 5 is 4096.
    pub mtu: Option<u8>,
    /// `OXSHMEM_VERBS_PKEY`.
    pub partition: Partition,
    /// `OXSHMEM_VERBS_SERVICE_LEVEL`.
    pub service_level: u8,
    /// `OXSHMEM_VERBS_TRAFFIC_CLASS`.
    pub traffic_class: Option<u8>,
    /// `OXSHMEM_VERBS_FLOW_LABEL`.
    pub flow_label: FlowLabel,
    /// `OXSHMEM_VERBS_GLOBAL_ROUTE`: whether always.
    pub global_route: bool,
    /// `OXSHMEM_VERBS_ROUTED`.
    pub routed: Choice,
    /// `OXSHMEM_VERBS_TIMEOUT`.
    pub timeout: Option<u8>,
    /// `OXSHMEM_VERBS_RETRY_COUNT`.
    pub retry_count: Option<u8>,
    /// `OXSHMEM_VERBS_RNR_RETRY`.
    pub rnr_retry: u8,
    /// `OXSHMEM_VERBS_MIN_RNR_TIMER`.
    pub min_rnr_timer: u8,
    /// `OXSHMEM_VERBS_DEPTH`.
    pub depth: u32,
    /// `OXSHMEM_VERBS_RAILS`.
    pub rails: Rails,
    /// `OXSHMEM_VERBS_QPS`.
    pub queue_pairs: u32,
    /// `OXSHMEM_VERBS_STRIPE`.
    pub stripe: u64,
    /// `OXSHMEM_VERBS_INLINE`.
    pub inline: u32,
    /// `OXSHMEM_VERBS_BOUNCE`.
    pub bounce: usize,
    /// `OXSHMEM_VERBS_RELAXED_ORDERING`.
    pub relaxed_ordering: Choice,
    /// `OXSHMEM_VERBS_IN_ORDER`.
    pub in_order: Choice,
    /// `OXSHMEM_VERBS_GPUDIRECT`.
    pub gpudirect: GpuDirect,
    /// The time for which a network keeps a packet at most, and the target's bus a write. No variable sets it.
    pub packet_lifetime: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            gid_index: None,
            address: None,
            mtu: None,
            partition: Partition::Auto,
            service_level: 0,
            traffic_class: None,
            flow_label: FlowLabel::Same(0),
            global_route: false,
            routed: Choice::Auto,
            timeout: None,
            retry_count: None,
            rnr_retry: 7,
            min_rnr_timer: 12,
            depth: 128,
            rails: Rails::Auto,
            queue_pairs: 1,
            stripe: 64 << 10,
            inline: 220,
            bounce: 1 << 20,
            relaxed_ordering: Choice::Auto,
            in_order: Choice::Auto,
            gpudirect: GpuDirect::Auto,
            packet_lifetime: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// Reads the process's environment.
    pub fn from_environment() -> Result<Settings, SettingsError> {
        Settings::read(|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    /// Reads an environment, given as the values of its variables.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Settings, SettingsError> {
        let source = Source(&get);
        let default = Settings::default();
        let byte = |name, least, most| source.number(name, least, most);
        Ok(Settings {
            gid_index: byte("OXSHMEM_VERBS_GID_INDEX", 0, 255)?.map(|n| n as u8),
            address: source.address("OXSHMEM_VERBS_ADDRESS")?,
            mtu: source.mtu("OXSHMEM_VERBS_MTU")?,
            partition: source
                .partition("OXSHMEM_VERBS_PKEY")?
                .unwrap_or(default.partition),
            service_level: byte("OXSHMEM_VERBS_SERVICE_LEVEL", 0, 15)?.unwrap_or(0) as u8,
            traffic_class: source.traffic_class("OXSHMEM_VERBS_TRAFFIC_CLASS")?,
            flow_label: source
                .flow_label("OXSHMEM_VERBS_FLOW_LABEL")?
                .unwrap_or(default.flow_label),
            global_route: source
                .word(
                    "OXSHMEM_VERBS_GLOBAL_ROUTE",
                    &[("auto", false), ("on", true)],
                )?
                .unwrap_or(default.global_route),
            routed: source.word(ROUTED, CHOICES)?.unwrap_or(default.routed),
            timeout: byte("OXSHMEM_VERBS_TIMEOUT", 1, 31)?.map(|n| n as u8),
            retry_count: byte("OXSHMEM_VERBS_RETRY_COUNT", 0, 7)?.map(|n| n as u8),
            rnr_retry: byte("OXSHMEM_VERBS_RNR_RETRY", 0, 7)?
                .map_or(default.rnr_retry, |n| n as u8),
            min_rnr_timer: byte("OXSHMEM_VERBS_MIN_RNR_TIMER", 0, 31)?
                .map_or(default.min_rnr_timer, |n| n as u8),
            depth: source
                .number("OXSHMEM_VERBS_DEPTH", 16, 8192)?
                .map_or(default.depth, |n| n as u32),
            rails: source
                .rails("OXSHMEM_VERBS_RAILS")?
                .unwrap_or(default.rails),
            queue_pairs: source
                .number("OXSHMEM_VERBS_QPS", 1, 8)?
                .map_or(default.queue_pairs, |n| n as u32),
            stripe: source
                .number("OXSHMEM_VERBS_STRIPE", 64, 1 << 30)?
                .unwrap_or(default.stripe),
            inline: source
                .number("OXSHMEM_VERBS_INLINE", 0, 4096)?
                .map_or(default.inline, |n| n as u32),
            bounce: source
                .number("OXSHMEM_VERBS_BOUNCE", 256 << 10, 1 << 30)?
                .map_or(default.bounce, |n| n as usize),
            relaxed_ordering: source
                .word("OXSHMEM_VERBS_RELAXED_ORDERING", CHOICES)?
                .unwrap_or(default.relaxed_ordering),
            in_order: source
                .word("OXSHMEM_VERBS_IN_ORDER", CHOICES)?
                .unwrap_or(default.in_order),
            gpudirect: source
                .word(
                    "OXSHMEM_VERBS_GPUDIRECT",
                    &[
                        ("auto", GpuDirect::Auto),
                        ("dma-buf", GpuDirect::DmaBuf),
                        ("peermem", GpuDirect::PeerMemory),
                        ("off", GpuDirect::Off),
                    ],
                )?
                .unwrap_or(default.gpudirect),
            packet_lifetime: default.packet_lifetime,
        })
    }
}

#[cfg(test)]
mod tests;
