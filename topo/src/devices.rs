//! The devices of a host, as plain data.

use std::fmt;

use crate::bandwidth::Bandwidth;
use crate::cpu_set::CpuSet;
use crate::pci::PciAddress;

/// Where a device or bridge hangs: below which bridge, and near which CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The bridge right above, an index into [`crate::Topology::bridges`]; none for a host bridge
    /// and for what is not on PCI.
    pub bridge: Option<usize>,
    /// The CPUs that are nearest; all of the machine where nothing better is known.
    pub cpus: CpuSet,
    /// The NUMA node that has all these CPUs, by the kernel's number; none if they lie on several.
    pub node: Option<usize>,
    /// The package that has all these CPUs, by the system's number; none if they lie on several.
    pub package: Option<usize>,
}

/// A bridge: PCI's root (a host bridge), or a port of a PCI switch or of the root complex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Where it answers; none for a host bridge.
    pub pci: Option<PciAddress>,
    /// The domain and the first and last bus below it, where known.
    pub buses: Option<(u32, u8, u8)>,
    /// Its own link's rate, where known. For a downstream port that is the link to the device.
    pub link: Option<Bandwidth>,
    /// Where it hangs. A bridge above has a lower index than those below it.
    pub place: Place,
}

impl Bridge {
    /// Whether this is a host bridge, where PCI begins.
    pub fn is_host(&self) -> bool {
        self.pci.is_none()
    }
}

/// The identity of a device on PCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciFunction {
    /// Where it answers.
    pub address: PciAddress,
    /// The class and subclass: 0x0302 is a 3D controller, 0x0207 InfiniBand, 0x0200 Ethernet.
    pub class: u16,
    /// The vendor's number: 0x10de NVIDIA, 0x15b3 Mellanox, 0x1002 AMD, 0x8086 Intel.
    pub vendor: u16,
    /// The vendor's number for the device.
    pub model: u16,
    /// The rate of its link, where known.
    pub link: Option<Bandwidth>,
}

impl PciFunction {
    /// A display controller, or AMD's processing accelerator, of a vendor whose GPUs compute; a
    /// server's console is not one.
    pub(crate) fn is_gpu(&self) -> bool {
        match self.vendor {
            NVIDIA | INTEL => is_display(self.class),
            AMD => may_be_gpu(self.class),
            _ => false,
        }
    }
}

const NVIDIA: u16 = 0x10de;
const AMD: u16 = 0x1002;
const INTEL: u16 = 0x8086;

/// Whether a GPU has this class, among others that have it.
pub(crate) fn may_be_gpu(class: u16) -> bool {
    const PROCESSING_ACCELERATOR: u16 = 0x1200;
    is_display(class) || class == PROCESSING_ACCELERATOR
}

/// Whether a function of this class draws or, as a 3D controller, computes.
fn is_display(class: u16) -> bool {
    class >> 8 == 0x03
}

/// An RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its RDMA name, such as `mlx5_0`; no other NIC of the host has it.
    pub name: String,
    /// Its place on PCI; none for a device made of software.
    pub pci: Option<PciFunction>,
    /// Network interfaces of the same PCI function, such as `ib0`.
    pub interfaces: Vec<String>,
    /// Its ports by number; empty where the description does not say.
    pub ports: Vec<Port>,
    /// Where it hangs.
    pub place: Place,
}

impl Nic {
    /// The rate of the fastest port that is not known to be down.
    pub fn rate(&self) -> Option<Bandwidth> {
        let usable = self
            .ports
            .iter()
            .filter(|port| port.state.is_none_or(PortState::may_work));
        usable.filter_map(|port| port.rate).max()
    }
}

/// A port of an RDMA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number, from 1.
    pub number: u8,
    /// Its state, where known.
    pub state: Option<PortState>,
    /// Its link layer, if known.
    pub link_layer: Option<LinkLayer>,
    /// Its rate, where known.
    pub rate: Option<Bandwidth>,
}

/// The state of an RDMA port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortState {
    /// No link.
    Down,
    /// A link that the subnet manager has not set up yet.
    Init,
    /// Set up, not yet in use.
    Armed,
    /// In use.
    Active,
    /// Another number.
    Other(u8),
}

impl PortState {
    pub(crate) fn of_number(number: u8) -> Self {
        match number {
            1 => Self::Down,
            2 => Self::Init,
            3 => Self::Armed,
            4 => Self::Active,
            other => Self::Other(other),
        }
    }

    fn may_work(self) -> bool {
        self != Self::Down
    }
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down => f.pad("down"),
            Self::Init => f.pad("initialising"),
            Self::Armed => f.pad("armed"),
            Self::Active => f.pad("active"),
            Self::Other(number) => f.pad(&format!("state {number}")),
        }
    }
}

/// The link layer of an RDMA port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
}

impl LinkLayer {
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name.trim() {
            "InfiniBand" => Some(Self::InfiniBand),
            "Ethernet" => Some(Self::Ethernet),
            _ => None,
        }
    }
}

impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        })
    }
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// `gpu0`, `gpu1`, …: NVIDIA's first, then AMD's, Intel's and others, each vendor's in the order
    /// of the PCI addresses. NVIDIA's have the numbers of nvidia-smi, and those of CUDA where
    /// `CUDA_DEVICE_ORDER=PCI_BUS_ID` and all are visible.
    pub name: String,
    /// Its names in other software, such as `nvml0`, `cuda0`, `card1`, where known.
    pub aliases: Vec<String>,
    /// Its place on PCI; none where the description gives no PCI.
    pub pci: Option<PciFunction>,
    /// The model in words, where known.
    pub model: Option<String>,
    /// NVIDIA's `GPU-…` identifier, where known.
    pub uuid: Option<String>,
    /// Where it hangs.
    pub place: Place,
}

impl Gpu {
    /// The order by which GPUs are numbered.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let vendor = match self.pci.map(|pci| pci.vendor) {
            Some(NVIDIA) => 0,
            Some(AMD) => 1,
            Some(INTEL) => 2,
            Some(_) => 3,
            None => 4,
        };
        (vendor, self.pci.map(|pci| pci.address))
    }
}

/// Two GPUs that NVLink joins, directly or through NVSwitch. A pair appears once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvLink {
    /// The two, as indices into [`crate::Topology::gpus`], the lower first.
    pub gpus: (usize, usize),
    /// The bandwidth of all links of the pair together, in one direction.
    pub bandwidth: Bandwidth,
}
