//! The distance between two devices, nodes or CPUs.

use std::cmp::Reverse;
use std::fmt;

use crate::bandwidth::Bandwidth;
use crate::cpu_set::CpuSet;
use crate::devices::{Gpu, Nic, PciFunction, Place, Port};
use crate::machine::NumaNode;
use crate::topology::Topology;

/// One end of a [`Topology::distance`]; made from a reference to a GPU, NIC, CPU set or NUMA node,
/// or from what [`Topology::port`] gives.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum End<'a> {
    /// A GPU of the topology.
    Gpu(&'a Gpu),
    /// A NIC of the topology, by whichever of its ports is best.
    Nic(&'a Nic),
    /// A NIC of the topology by one of its ports.
    Port(&'a Nic, &'a Port),
    /// A core, or whatever CPUs a process may use.
    Cpus(&'a CpuSet),
    /// A NUMA node of the topology.
    Node(&'a NumaNode),
}

impl<'a> From<&'a Gpu> for End<'a> {
    fn from(gpu: &'a Gpu) -> Self {
        Self::Gpu(gpu)
    }
}

impl<'a> From<&'a Nic> for End<'a> {
    fn from(nic: &'a Nic) -> Self {
        Self::Nic(nic)
    }
}

impl<'a> From<(&'a Nic, &'a Port)> for End<'a> {
    fn from((nic, port): (&'a Nic, &'a Port)) -> Self {
        Self::Port(nic, port)
    }
}

impl<'a> From<&'a CpuSet> for End<'a> {
    fn from(cpus: &'a CpuSet) -> Self {
        Self::Cpus(cpus)
    }
}

impl<'a> From<&'a NumaNode> for End<'a> {
    fn from(node: &'a NumaNode) -> Self {
        Self::Node(node)
    }
}

/// The locality of two ends, by their deepest common ancestor; the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Locality {
    /// They are one: the same device or node, or CPUs of one core.
    Same,
    /// NVLink joins the two GPUs.
    NvLink,
    /// A PCI switch, or one PCI card with several functions: traffic stays below a root port.
    SameSwitch,
    /// The host bridge: traffic turns round in the root complex.
    SameBridge,
    /// The NUMA node.
    SameNode,
    /// The package: traffic crosses between NUMA nodes of one socket.
    SamePackage,
    /// Only the host: traffic crosses between sockets, or nothing better is known.
    SameHost,
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Same => "same device",
            Self::NvLink => "NVLink",
            Self::SameSwitch => "same switch",
            Self::SameBridge => "same host bridge",
            Self::SameNode => "same NUMA node",
            Self::SamePackage => "same package",
            Self::SameHost => "same host",
        })
    }
}

/// How far apart two ends are. The least is the best: nearer first by [`Locality`]; then, below one
/// PCI root, the one with whom more bridges are shared; then the wider path, an unknown one last.
///
/// Meant to compare candidates seen from one end. Equal distances are equally good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Distance {
    /// The locality of the two.
    pub locality: Locality,
    /// How many bridges both lie below, the host bridge included.
    pub shared_bridges: usize,
    /// The narrowest link on the way, as far as links are known: NVLink's for [`Locality::NvLink`],
    /// else the PCI links below what is common. What goes to a NIC leaves by a port, so that port's
    /// rate counts as a link too, and [`Nic::rate`] where no port is named.
    pub bandwidth: Option<Bandwidth>,
}

impl Distance {
    fn key(&self) -> (Locality, Reverse<usize>, Reverse<Option<Bandwidth>>) {
        let Self {
            locality,
            shared_bridges,
            bandwidth,
        } = *self;
        (locality, Reverse(shared_bridges), Reverse(bandwidth))
    }
}

impl Ord for Distance {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bandwidth {
            Some(bandwidth) => write!(f, "{}, {bandwidth}", self.locality),
            None => write!(f, "{}", self.locality),
        }
    }
}

/// The position of an end: its bridge, node and package, and its own links.
#[derive(Clone, Copy, Debug)]
struct Spot {
    bridge: Option<usize>,
    node: Option<usize>,
    package: Option<usize>,
    /// Its own PCI link.
    link: Option<Bandwidth>,
    /// The rate of the NIC's port.
    port: Option<Bandwidth>,
}

impl Topology {
    /// How far `a` is from `b`; the same both ways. Devices are those of this topology, known again
    /// by name. Allocates nothing.
    pub fn distance<'a>(&self, a: impl Into<End<'a>>, b: impl Into<End<'a>>) -> Distance {
        let (a, b) = (a.into(), b.into());
        let (from, to) = (self.spot(a), self.spot(b));
        let narrowest = |links: [Option<Bandwidth>; 4]| links.into_iter().flatten().min();
        if self.are_same(a, b) {
            return Distance {
                locality: Locality::Same,
                shared_bridges: self.bridges_above(from.bridge).count(),
                bandwidth: narrowest([from.port, to.port, None, None]),
            };
        }
        let common = self.common_bridge(from.bridge, to.bridge);
        let shared_bridges = self.bridges_above(common).count();
        if let Some(bandwidth) = self.nvlink(a, b) {
            return Distance {
                locality: Locality::NvLink,
                shared_bridges,
                bandwidth: Some(bandwidth),
            };
        }
        let locality = match common.and_then(|bridge| self.bridges.get(bridge)) {
            Some(bridge) if !bridge.is_host() => Locality::SameSwitch,
            Some(_) if one_card(a, b) => Locality::SameSwitch,
            Some(_) => Locality::SameBridge,
            None if from.node.is_some() && from.node == to.node => Locality::SameNode,
            None if from.package.is_some() && from.package == to.package => Locality::SamePackage,
            None => Locality::SameHost,
        };
        let below = |spot: Spot| {
            self.bridges_above(spot.bridge)
                .take_while(|&bridge| Some(bridge) != common)
                .filter_map(|bridge| self.bridges.get(bridge)?.link)
                .chain(spot.link)
                .min()
        };
        Distance {
            locality,
            shared_bridges,
            bandwidth: narrowest([below(from), below(to), from.port, to.port]),
        }
    }

    /// `bridge` and all above it, nearest first. Ends whatever the indices are: each is lower.
    fn bridges_above(&self, bridge: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        let known = |bridge: &usize| *bridge < self.bridges.len();
        std::iter::successors(bridge.filter(known), |&below| {
            let above = self.bridges.get(below)?.place.bridge?;
            (above < below).then_some(above)
        })
    }

    fn common_bridge(&self, a: Option<usize>, b: Option<usize>) -> Option<usize> {
        self.bridges_above(a)
            .find(|&bridge| self.bridges_above(b).any(|other| other == bridge))
    }

    fn spot(&self, end: End<'_>) -> Spot {
        let device = |place: &Place, pci: Option<PciFunction>, port| Spot {
            bridge: place.bridge,
            node: place.node,
            package: place.package,
            link: pci.and_then(|pci| pci.link),
            port,
        };
        let cpus = |cpus: &CpuSet, node: Option<usize>| Spot {
            bridge: None,
            node: node.or_else(|| self.node_of(cpus)),
            package: self.package_of(cpus),
            link: None,
            port: None,
        };
        match end {
            End::Gpu(gpu) => device(&gpu.place, gpu.pci, None),
            End::Nic(nic) => device(&nic.place, nic.pci, nic.rate()),
            End::Port(nic, port) => device(&nic.place, nic.pci, port.rate),
            End::Cpus(set) => cpus(set, None),
            End::Node(node) => cpus(&node.cpus, Some(node.index)),
        }
    }

    fn are_same(&self, a: End<'_>, b: End<'_>) -> bool {
        match (a, b) {
            (End::Gpu(a), End::Gpu(b)) => a.name == b.name,
            (End::Nic(a) | End::Port(a, _), End::Nic(b) | End::Port(b, _)) => a.name == b.name,
            (End::Node(a), End::Node(b)) => a.index == b.index,
            (End::Cpus(a), End::Cpus(b)) => self.machine.cores.iter().any(|core| {
                !a.is_empty() && !b.is_empty() && a.is_subset(&core.cpus) && b.is_subset(&core.cpus)
            }),
            _ => false,
        }
    }

    fn nvlink(&self, a: End<'_>, b: End<'_>) -> Option<Bandwidth> {
        let (End::Gpu(a), End::Gpu(b)) = (a, b) else {
            return None;
        };
        let is = |index: usize, gpu: &Gpu| {
            let other = self.gpus.get(index);
            other.is_some_and(|other| other.name == gpu.name)
        };
        let joins = |(one, two)| (is(one, a) && is(two, b)) || (is(one, b) && is(two, a));
        let link = self.nvlinks.iter().find(|link| joins(link.gpus))?;
        Some(link.bandwidth)
    }
}

/// Whether two functions are of one PCI device.
fn one_card(a: End<'_>, b: End<'_>) -> bool {
    let card = |end: End<'_>| {
        let pci = match end {
            End::Gpu(gpu) => gpu.pci,
            End::Nic(nic) | End::Port(nic, _) => nic.pci,
            _ => None,
        };
        pci.map(|pci| (pci.address.domain, pci.address.bus, pci.address.device))
    };
    card(a).is_some() && card(a) == card(b)
}

#[cfg(test)]
mod tests;
