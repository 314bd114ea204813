//! The containment hierarchy of the topology, for the text and the drawing.

use std::collections::{BTreeMap, HashMap};

use crate::bandwidth::Bandwidth;
use crate::devices::{NvLink, PciFunction, Place};
use crate::topology::Topology;

/// A thing that is drawn: an index into one of the lists of [`Topology`] or its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    Host,
    Package(usize),
    Node(usize),
    Bridge(usize),
    Gpu(usize),
    Nic(usize),
}

/// An item and where it is: the index of the one that contains it, which comes before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) item: Item,
    pub(crate) above: Option<usize>,
}

impl Topology {
    /// All items, each after what contains it and before its next sibling.
    pub(crate) fn hierarchy(&self) -> Vec<Placed> {
        let nodes = self.machine.numa_nodes.len();
        let items = (0..self.packages.len())
            .map(Item::Package)
            .chain((0..nodes).map(Item::Node))
            .chain((0..self.bridges.len()).map(Item::Bridge))
            .chain((0..self.gpus.len()).map(Item::Gpu))
            .chain((0..self.nics.len()).map(Item::Nic));
        let mut below = HashMap::<Item, Vec<Item>>::new();
        for item in items {
            if let Some(above) = self.above(item) {
                below.entry(above).or_default().push(item);
            }
        }
        let mut all = Vec::new();
        let mut open = vec![Placed {
            item: Item::Host,
            above: None,
        }];
        while let Some(placed) = open.pop() {
            let above = Some(all.len());
            all.push(placed);
            let below = below.remove(&placed.item).unwrap_or_default();
            open.extend(below.into_iter().rev().map(|item| Placed { item, above }));
        }
        all
    }

    fn above(&self, item: Item) -> Option<Item> {
        let package = |index: Option<usize>| {
            let at = |index| self.packages.iter().position(|one| one.index == index);
            index.and_then(at).map_or(Item::Host, Item::Package)
        };
        let place = |place: &Place, limit: usize| match place.bridge {
            // A bridge above has the lower index, so that nothing contains itself.
            Some(bridge) if bridge < limit => Item::Bridge(bridge),
            _ => package(place.package),
        };
        let bridges = self.bridges.len();
        Some(match item {
            Item::Host => return None,
            Item::Package(_) => Item::Host,
            Item::Node(at) => {
                let node = self.machine.numa_nodes.get(at)?;
                package(self.package_of(&node.cpus))
            }
            Item::Bridge(at) => place(&self.bridges.get(at)?.place, at),
            Item::Gpu(at) => place(&self.gpus.get(at)?.place, bridges),
            Item::Nic(at) => place(&self.nics.get(at)?.place, bridges),
        })
    }

    /// The NVLink bandwidth between any two GPUs; none unless all pairs, of three or more GPUs, are
    /// alike.
    pub(crate) fn nvlink_of_all(&self) -> Option<Bandwidth> {
        let (gpus, first) = (self.gpus.len(), self.nvlinks.first()?);
        let alike = |link: &NvLink| link.bandwidth == first.bandwidth;
        let all = self.nvlinks.len() == gpus * gpus.saturating_sub(1) / 2;
        (gpus > 2 && all && self.nvlinks.iter().all(alike)).then_some(first.bandwidth)
    }

    /// The name of an item.
    pub(crate) fn title(&self, item: Item) -> String {
        let title = match item {
            Item::Host => Some(format!("host {}", self.machine.hostname)),
            Item::Package(at) => {
                let package = self.packages.get(at);
                package.map(|package| format!("package {}", package.index))
            }
            Item::Node(at) => {
                let node = self.machine.numa_nodes.get(at);
                node.map(|node| format!("NUMA node {}", node.index))
            }
            Item::Bridge(at) => self.bridges.get(at).map(|bridge| match bridge.pci {
                Some(address) => format!("PCI bridge {address}"),
                None => match bridge.buses {
                    Some((domain, first, last)) => {
                        format!("host bridge {domain:04x}:[{first:02x}-{last:02x}]")
                    }
                    None => "host bridge".to_owned(),
                },
            }),
            Item::Gpu(at) => self.gpus.get(at).map(|gpu| gpu.name.clone()),
            Item::Nic(at) => self.nics.get(at).map(|nic| nic.name.clone()),
        };
        title.unwrap_or_default()
    }

    /// Further details of an item, in short pieces.
    pub(crate) fn details(&self, item: Item) -> Vec<String> {
        let details = match item {
            Item::Host => {
                let mut details = vec![format!("seen by {}", self.machine.source)];
                let joined = self.nvlink_of_all();
                details.extend(joined.map(|link| format!("NVLink joins all GPUs, {link} a pair")));
                Some(details)
            }
            Item::Package(at) => self.packages.get(at).map(|package| {
                let inside = |cpus: &crate::cpu_set::CpuSet| cpus.is_subset(&package.cpus);
                let cores = self.machine.cores.iter().filter(|core| inside(&core.cpus));
                let mut details = vec![
                    format!("CPUs {}", package.cpus),
                    format!("cores {}", cores.count()),
                ];
                let mut caches = BTreeMap::<usize, usize>::new();
                for cache in self.machine.caches.iter().filter(|one| inside(&one.cpus)) {
                    *caches.entry(cache.level).or_default() += 1;
                }
                let caches = caches.into_iter();
                details.extend(caches.map(|(level, count)| format!("L{level} x {count}")));
                details
            }),
            Item::Node(at) => self.machine.numa_nodes.get(at).map(|node| {
                let cpus = if node.cpus.is_empty() {
                    "no CPU of its own".to_owned()
                } else {
                    format!("CPUs {}", node.cpus)
                };
                vec![crate::table::Bytes(node.memory).to_string(), cpus]
            }),
            Item::Bridge(at) => self.bridges.get(at).map(|bridge| {
                let mut details: Vec<String> = link(bridge.link).into_iter().collect();
                if bridge.is_host() {
                    details.push(near(&bridge.place));
                }
                details
            }),
            Item::Gpu(at) => self.gpus.get(at).map(|gpu| {
                let mut details = gpu.aliases.clone();
                details.extend(gpu.model.clone());
                details.extend(function(gpu.pci));
                details.push(near(&gpu.place));
                details
            }),
            Item::Nic(at) => self.nics.get(at).map(|nic| {
                let mut details = nic.interfaces.clone();
                details.extend(function(nic.pci));
                details.extend(nic.ports.iter().map(|port| {
                    let said = [
                        port.state.map(|state| state.to_string()),
                        port.link_layer.map(|layer| layer.to_string()),
                        port.rate.map(|rate| rate.to_string()),
                    ];
                    let said: Vec<String> = said.into_iter().flatten().collect();
                    format!("port {} {}", port.number, said.join(" "))
                }));
                details.push(near(&nic.place));
                details
            }),
        };
        details.unwrap_or_default()
    }
}

fn function(pci: Option<PciFunction>) -> Vec<String> {
    let Some(pci) = pci else {
        return vec!["not on PCI".to_owned()];
    };
    let mut said = vec![
        pci.address.to_string(),
        format!("{:04x}:{:04x}", pci.vendor, pci.model),
    ];
    said.extend(link(pci.link));
    said
}

fn link(link: Option<Bandwidth>) -> Option<String> {
    link.map(|link| format!("link {link}"))
}

fn near(place: &Place) -> String {
    match (place.node, place.package) {
        (Some(node), _) => format!("at NUMA node {node}"),
        (None, Some(package)) => format!("at package {package}"),
        (None, None) => "near no node".to_owned(),
    }
}
