//! The values of settings, and the error of one that cannot be understood.

use std::fmt;

/// Three ways to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As fits the device.
    Auto,
    /// Yes.
    On,
    /// No.
    Off,
}

/// The method by which a GPU's memory is registered with the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuDirect {
    /// The first that works: as a dma-buf, by peer memory.
    Auto,
    /// As a dma-buf only.
    DmaBuf,
    /// By the kernel module nvidia-peermem only.
    PeerMemory,
    /// None.
    Off,
}

/// The choice of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// That of the table's first entry, by the entry in which the port is a full member, if there
    /// is one.
    Auto,
    /// The entry of the table.
    Index(u16),
    /// The entry with this key, whatever its membership bit.
    Key(u16),
}

/// The flow label of packets with a global route, by which a network chooses among paths that are equally good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowLabel {
    /// One for all queue pairs.
    Same(u32),
    /// Each queue pair has one of its own.
    PerPair,
}

impl FlowLabel {
    /// The largest: a label has 20 bits.
    pub(crate) const LARGEST: u32 = (1 << 20) - 1;

    /// The label of a queue pair of this number, whose peer's has the other one.
    pub(crate) fn of_pair(self, ours: u32, theirs: u32) -> u32 {
        match self {
            FlowLabel::Same(label) => label,
            FlowLabel::PerPair => {
                // Numbers that follow each other give labels that differ in all their bits.
                let both = u64::from(ours) << 32 | u64::from(theirs);
                let mixed = (both ^ both >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                // 0 is no label.
                ((mixed >> 44) as u32).max(1)
            }
        }
    }
}

/// The choice of the NICs that one PE uses: its *rails*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rails {
    /// Those at least as near as the first one, and as fast, that are no PE's first on its host.
    Auto,
    /// So many, the nearest ones.
    Count(u8),
    /// The first one, and these ports.
    Named(Vec<String>),
}

/// A variable that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The values that it may have.
    pub wanted: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SettingsError {
            name,
            value,
            wanted,
        } = self;
        write!(f, "{name}={value}: must be {wanted}")
    }
}

impl std::error::Error for SettingsError {}
