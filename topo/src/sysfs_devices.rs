//! PCI's tree, RDMA devices and GPUs as the kernel shows them.

use std::path::{Component, Path, PathBuf};

use crate::bandwidth::Bandwidth;
use crate::cpu_set::CpuSet;
use crate::devices::{
    Bridge, Gpu, LinkLayer, Nic, PciFunction, Place, Port, PortState, may_be_gpu,
};
use crate::error::{Error, Result, quoted};
use crate::pci::{PciAddress, hexadecimal};
use crate::topology::Topology;
use crate::tree::Tree;

const PCI: &str = "sys/bus/pci/devices";
const RDMA: &str = "sys/class/infiniband";

/// The names of the RDMA devices that the kernel has, in whatever state they are; none where that cannot be read.
pub fn rdma_devices() -> Vec<String> {
    Tree::live().names(RDMA).unwrap_or_default()
}

/// Adds what `topology` lacks of the devices in `tree`: NICs, their ports, GPUs, and the bridges
/// above them.
pub(crate) fn add(topology: &mut Topology, tree: Tree<'_>) -> Result<()> {
    for name in tree.names(RDMA)? {
        let ports = ports(tree, &name)?;
        if let Some(nic) = topology.nics.iter_mut().find(|nic| nic.name == name) {
            nic.ports = ports;
            continue;
        }
        let chain = Chain::of(tree, &format!("{RDMA}/{name}"))?;
        let (place, pci) = chain.build(topology, tree)?;
        let interfaces = match pci {
            Some(pci) => tree.names(&format!("{PCI}/{}/net", pci.address))?,
            None => Vec::new(),
        };
        topology.nics.push(Nic {
            name,
            pci,
            interfaces,
            ports,
            place,
        });
    }
    for name in tree.names(PCI)? {
        let Ok(address) = name.parse::<PciAddress>() else {
            continue;
        };
        // Asked first: a large server has hundreds of functions.
        if !may_be_gpu(class(tree, address)?) {
            continue;
        }
        let pci = function(tree, address)?;
        let known = |gpu: &Gpu| gpu.pci.is_some_and(|pci| pci.address == address);
        if !pci.is_gpu() || topology.gpus.iter().any(known) {
            continue;
        }
        let chain = Chain::of(tree, &format!("{PCI}/{name}"))?;
        let (place, _) = chain.build(topology, tree)?;
        topology.gpus.push(gpu(tree, pci, place)?);
    }
    topology.settle().map_err(|why| tree.malformed(RDMA, why))
}

/// The way from a host bridge down to a device.
#[derive(Debug)]
struct Chain {
    /// Domain and bus of the host bridge; none for what is not on PCI.
    host: Option<(u32, u8)>,
    /// The bridges below it, then the device's function.
    functions: Vec<PciAddress>,
}

impl Chain {
    /// Follows the link `file` and reads its target: `…/pci0000:00/0000:00:01.0/0000:01:00.0/…`.
    fn of(tree: Tree<'_>, file: &str) -> Result<Self> {
        let path = tree.resolved(file)?;
        let parts: Vec<&str> = path.components().filter_map(text).collect();
        // The last: the volume manager and some virtual machines have a PCI root below a device.
        let host = parts.iter().rposition(|part| host_bridge(part).is_some());
        let Some(at) = host else {
            return Ok(Self {
                host: None,
                functions: Vec::new(),
            });
        };
        let functions: Vec<PciAddress> = parts[at + 1..]
            .iter()
            .map_while(|part| part.parse().ok())
            .collect();
        for (index, function) in functions.iter().enumerate() {
            if functions[..index].contains(function) {
                return Err(tree.malformed(file, format!("{function} lies below itself")));
            }
        }
        Ok(Self {
            host: host_bridge(parts[at]),
            functions,
        })
    }

    /// Adds the bridges that are missing, and says where the device hangs and what it is.
    fn build(
        &self,
        topology: &mut Topology,
        tree: Tree<'_>,
    ) -> Result<(Place, Option<PciFunction>)> {
        let (Some((domain, bus)), Some((&device, bridges))) =
            (self.host, self.functions.split_last())
        else {
            return Ok((topology.place(None, CpuSet::default()), None));
        };
        let last = self.functions.iter().map(|function| function.bus).max();
        let last = last.unwrap_or(bus).max(bus);
        let mut above = host(topology, tree, device, (domain, bus, last))?;
        for &address in bridges {
            let found = topology
                .bridges
                .iter()
                .position(|bridge| bridge.pci == Some(address));
            above = match found {
                Some(bridge) => bridge,
                None => {
                    let place = place(topology, tree, address, Some(above))?;
                    topology.bridges.push(Bridge {
                        pci: Some(address),
                        buses: buses(tree, address)?,
                        link: link(tree, address)?,
                        place,
                    });
                    topology.bridges.len() - 1
                }
            };
        }
        let pci = function(tree, device)?;
        Ok((place(topology, tree, device, Some(above))?, Some(pci)))
    }
}

/// The index of the host bridge with these buses, whose last is widened to what is below.
fn host(
    topology: &mut Topology,
    tree: Tree<'_>,
    device: PciAddress,
    (domain, first, last): (u32, u8, u8),
) -> Result<usize> {
    let found = topology.bridges.iter_mut().enumerate().find(|(_, bridge)| {
        let begins = |(there, begin, _)| (there, begin) == (domain, first);
        bridge.is_host() && bridge.buses.is_some_and(begins)
    });
    if let Some((index, bridge)) = found {
        if let Some((_, _, end)) = &mut bridge.buses {
            *end = last.max(*end);
        }
        return Ok(index);
    }
    let place = place(topology, tree, device, None)?;
    topology.bridges.push(Bridge {
        pci: None,
        buses: Some((domain, first, last)),
        link: None,
        place,
    });
    Ok(topology.bridges.len() - 1)
}

/// Where `address` lies: near the CPUs that the kernel says, or those of its node.
fn place(
    topology: &Topology,
    tree: Tree<'_>,
    address: PciAddress,
    bridge: Option<usize>,
) -> Result<Place> {
    let folder = format!("{PCI}/{address}");
    let node = tree.integer(&format!("{folder}/numa_node"))?;
    // -1: not known.
    let node = node
        .and_then(|node| usize::try_from(node).ok())
        .and_then(|node| topology.numa_node(node));
    let cpus = tree.list(&format!("{folder}/local_cpulist"))?;
    let mut cpus = cpus
        .unwrap_or_default()
        .intersection(&topology.machine.cpus);
    if cpus.is_empty() {
        cpus = node.map(|node| node.cpus.clone()).unwrap_or_default();
    }
    let mut place = topology.place(bridge, cpus);
    place.node = node.map(|node| node.index).or(place.node);
    Ok(place)
}

fn function(tree: Tree<'_>, address: PciAddress) -> Result<PciFunction> {
    let short = |file| Ok::<_, Error>((number(tree, address, file)? & 0xffff) as u16);
    Ok(PciFunction {
        address,
        class: class(tree, address)?,
        vendor: short("vendor")?,
        model: short("device")?,
        link: link(tree, address)?,
    })
}

/// Class and subclass; the file's lowest byte is the programming interface.
fn class(tree: Tree<'_>, address: PciAddress) -> Result<u16> {
    Ok((number(tree, address, "class")? >> 8 & 0xffff) as u16)
}

/// The number in a file of the function, such as 0x10de; 0 where there is no such file.
fn number(tree: Tree<'_>, address: PciAddress, name: &str) -> Result<u32> {
    let file = format!("{PCI}/{address}/{name}");
    let Some(text) = tree.text(&file)? else {
        return Ok(0);
    };
    let value = text.trim().strip_prefix("0x").and_then(hexadecimal);
    value.ok_or_else(|| tree.malformed(&file, format!("{} is not as 0x10de", quoted(&text))))
}

fn link(tree: Tree<'_>, address: PciAddress) -> Result<Option<Bandwidth>> {
    let text = |name: &str| tree.text(&format!("{PCI}/{address}/current_link_{name}"));
    let (Some(speed), Some(width)) = (text("speed")?, text("width")?) else {
        return Ok(None);
    };
    Ok(Bandwidth::of_pci_link(&speed, &width))
}

fn buses(tree: Tree<'_>, bridge: PciAddress) -> Result<Option<(u32, u8, u8)>> {
    let bus = |name: &str| {
        let number = tree.integer(&format!("{PCI}/{bridge}/{name}_bus_number"))?;
        Ok::<_, Error>(number.and_then(|number| u8::try_from(number).ok()))
    };
    let (first, last) = (bus("secondary")?, bus("subordinate")?);
    Ok(first
        .zip(last)
        .map(|(first, last)| (bridge.domain, first, last)))
}

/// The GPU, with what NVIDIA's driver says of it.
fn gpu(tree: Tree<'_>, pci: PciFunction, place: Place) -> Result<Gpu> {
    let address = pci.address;
    let file = format!("proc/driver/nvidia/gpus/{address}/information");
    let text = tree.text(&file)?.unwrap_or_default();
    let said = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key))?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let drawing = tree.names(&format!("{PCI}/{address}/drm"))?;
    let drawing = drawing.into_iter().filter(|name| name.starts_with("card"));
    let minor = said("Device Minor:").map(|minor| format!("nvidia{minor}"));
    Ok(Gpu {
        name: String::new(),
        aliases: minor.into_iter().chain(drawing).collect(),
        pci: Some(pci),
        model: said("Model:"),
        uuid: said("GPU UUID:"),
        place,
    })
}

fn ports(tree: Tree<'_>, nic: &str) -> Result<Vec<Port>> {
    let folder = format!("{RDMA}/{nic}/ports");
    let mut ports = Vec::new();
    for name in tree.names(&folder)? {
        let Ok(number) = name.parse() else {
            continue;
        };
        let text = |file: &str| tree.text(&format!("{folder}/{name}/{file}"));
        // `4: ACTIVE`
        let state = text("state")?.unwrap_or_default();
        let state = state
            .split(':')
            .next()
            .and_then(|digits| digits.trim().parse().ok());
        ports.push(Port {
            number,
            state: state.map(PortState::of_number),
            link_layer: text("link_layer")?.and_then(|name| LinkLayer::of_name(&name)),
            rate: text("rate")?.and_then(|rate| Bandwidth::of_rdma_rate(&rate)),
        });
    }
    ports.sort_by_key(|port| port.number);
    Ok(ports)
}

/// Domain and bus in `pci0000:00`.
fn host_bridge(part: &str) -> Option<(u32, u8)> {
    let (domain, bus) = part.strip_prefix("pci")?.split_once(':')?;
    Some((hexadecimal(domain)?, hexadecimal(bus)?.try_into().ok()?))
}

fn text(component: Component<'_>) -> Option<&str> {
    component.as_os_str().to_str()
}

impl Tree<'_> {
    /// Where `file` lies in truth, below the root.
    fn resolved(&self, file: &str) -> Result<PathBuf> {
        let resolve = |path: &Path| {
            std::fs::canonicalize(path).map_err(|source| Error::Read {
                path: path.to_owned(),
                source,
            })
        };
        let (root, path) = (resolve(&self.path(""))?, resolve(&self.path(file))?);
        match path.strip_prefix(&root) {
            Ok(below) => Ok(below.to_owned()),
            Err(_) => Err(self.malformed(file, format!("it leads to {}", path.display()))),
        }
    }
}

#[cfg(test)]
mod tests;
