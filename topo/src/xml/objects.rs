//! The objects of hwloc's XML.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use roxmltree::Node;

use super::{bitmap, elements, info, infos, malformed, number, wrong};
use crate::bandwidth::Bandwidth;
use crate::cpu_set::CpuSet;
use crate::devices::{Bridge, Gpu, LinkLayer, Nic, NvLink, PciFunction, Place, Port, PortState};
use crate::error::{Error, Result, quoted};
use crate::machine::{Cache, Core, Machine, NumaNode, Source};
use crate::pci::{PciAddress, hexadecimal};
use crate::topology::Topology;

/// hwloc itself gives up at less.
const DEEPEST: usize = 256;
/// Bridges, PCI devices and others together.
const MOST_DEVICES: usize = 4096;
/// Linux has no more NUMA nodes than this.
const MOST_NUMA_NODES: usize = 1024;
const MOST_PACKAGES: usize = 1024;
/// Four for each CPU that Linux can have.
const MOST_CACHES: usize = 32_768;
/// CPUs of the sets that devices lie near, times the nodes and packages that may have them all.
/// 8192 CPUs in 16 packages and 32 nodes come to a tenth of it.
const MOST_COMPARED: usize = 16 << 20;
/// CPUs named in all sets together, so that a small file cannot fill the memory.
const MOST_CPUS_NAMED: usize = 4 << 20;

/// The contents of the objects, before devices are distinguished.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    hostname: Option<&'a str>,
    cpus: CpuSet,
    packages: HashSet<usize>,
    nodes: Vec<NumaNode>,
    cores: Vec<Core>,
    /// The CPUs, each with its package: cores where no core is described.
    units: Vec<Core>,
    caches: Vec<Cache>,
    bridges: Vec<(Bridge, usize)>,
    functions: Vec<Function<'a>>,
    /// The object of each `gp_index`: a function, or anything else.
    by_gp_index: HashMap<u64, Option<usize>>,
    /// The CPU sets that devices lie near.
    near: Vec<CpuSet>,
    cpus_named: usize,
    /// By the two functions, the lower first.
    pub(super) nvlinks: BTreeMap<(usize, usize), Bandwidth>,
}

/// A PCI function, or a device of the operating system that is not on PCI.
#[derive(Debug)]
struct Function<'a> {
    pci: Option<PciFunction>,
    model: Option<&'a str>,
    bridge: Option<usize>,
    near: usize,
    devices: Vec<OsDevice<'a>>,
}

/// A device as the operating system, or a vendor's library, names it.
#[derive(Debug)]
struct OsDevice<'a> {
    name: &'a str,
    kind: OsKind,
    /// Whether a library for computing on GPUs has named it.
    computes: bool,
    ports: Vec<Port>,
    uuid: Option<&'a str>,
    model: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OsKind {
    Gpu,
    Network,
    Rdma,
    Other,
}

/// The properties of an object that hold for those below it.
#[derive(Clone, Copy, Debug)]
struct Above {
    depth: usize,
    package: usize,
    /// Index in [`Found::near`].
    near: Option<usize>,
    bridge: Option<usize>,
    function: Option<usize>,
}

impl<'a> Found<'a> {
    pub(super) fn read(root: Node<'a, '_>) -> Result<Self> {
        let mut found = Self::default();
        let objects = |node| elements(node).filter(|child| child.tag_name().name() == "object");
        let mut machines = objects(root);
        let machine = machines.next();
        let machine = machine.filter(|node| node.attribute("type") == Some("Machine"));
        let (Some(machine), None) = (machine, machines.next()) else {
            return Err(malformed("it does not hold one object, a Machine".into()));
        };
        found.cpus = found.set(machine)?.unwrap_or_default();
        if found.cpus.is_empty() {
            return Err(malformed("its Machine has no CPU".into()));
        }
        found.hostname = info(machine, "HostName");
        let top = Above {
            depth: 0,
            package: 0,
            near: None,
            bridge: None,
            function: None,
        };
        // Not recursive: the depth is the file's choice. Popped in the order of the file, a bridge
        // before those below it.
        let mut open = vec![(machine, top)];
        while let Some((node, above)) = open.pop() {
            if above.depth > DEEPEST {
                return Err(wrong(node, &format!("nested deeper than {DEEPEST}")));
            }
            let below = found.object(node, above)?;
            let first = open.len();
            open.extend(objects(node).map(|child| (child, below)));
            open[first..].reverse();
        }
        Ok(found)
    }

    /// Takes one object in, and says what holds below it.
    fn object(&mut self, node: Node<'a, '_>, above: Above) -> Result<Above> {
        let mut below = Above {
            depth: above.depth + 1,
            ..above
        };
        let kind = node.attribute("type").unwrap_or_default();
        if !matches!(kind, "Bridge" | "PCIDev" | "OSDev" | "Misc")
            && let Some(cpus) = self.set(node)?
        {
            if !cpus.is_subset(&self.cpus) {
                return Err(wrong(node, "it has a CPU that its Machine has not"));
            }
            self.processor(node, kind, &cpus, &mut below)?;
            if !cpus.is_empty() {
                below.near = Some(self.near.len());
                self.near.push(cpus);
            }
        }
        match kind {
            "Bridge" => below.bridge = Some(self.bridge(node, above)?),
            "PCIDev" => below.function = Some(self.function(node, above)?),
            "OSDev" => self.os_device(node, &mut below)?,
            _ => {}
        }
        if let Some(gp_index) = number(node, "gp_index")? {
            let function = match kind {
                "PCIDev" | "OSDev" => below.function,
                _ => None,
            };
            if self.by_gp_index.insert(gp_index, function).is_some() {
                return Err(wrong(
                    node,
                    &format!("gp_index {gp_index} is not the first"),
                ));
            }
        }
        Ok(below)
    }

    fn processor(
        &mut self,
        node: Node<'_, '_>,
        kind: &str,
        cpus: &CpuSet,
        below: &mut Above,
    ) -> Result<()> {
        match kind {
            "Package" => {
                let index = number(node, "os_index")?.unwrap_or(self.packages.len());
                if !self.packages.insert(index) {
                    return Err(wrong(node, &format!("os_index {index} is not the first")));
                }
                bound(node, self.packages.len(), MOST_PACKAGES)?;
                below.package = index;
            }
            "NUMANode" => {
                let index = number(node, "os_index")?.unwrap_or(self.nodes.len());
                // Memory of a GPU lies near the CPUs of its package, but is not theirs.
                let own = node.attribute("subtype") != Some("GPUMemory");
                self.nodes.push(NumaNode {
                    index,
                    cpus: if own { cpus.clone() } else { CpuSet::default() },
                    memory: number(node, "local_memory")?.unwrap_or(0),
                    hugepages: Vec::new(),
                });
                bound(node, self.nodes.len(), MOST_NUMA_NODES)?;
            }
            "Core" | "PU" if !cpus.is_empty() => {
                let core = Core {
                    package: below.package,
                    cpus: cpus.clone(),
                };
                match kind {
                    "Core" => self.cores.push(core),
                    _ => self.units.push(core),
                }
            }
            // 2 is a cache of instructions.
            _ if kind.ends_with("Cache") && kind.starts_with('L') => {
                if let Some(level) = number(node, "depth")?
                    && node.attribute("cache_type") != Some("2")
                {
                    self.caches.push(Cache {
                        level,
                        bytes: number(node, "cache_size")?.unwrap_or(0),
                        cpus: cpus.clone(),
                    });
                    bound(node, self.caches.len(), MOST_CACHES)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn set(&mut self, node: Node<'_, '_>) -> Result<Option<CpuSet>> {
        let Some(text) = node.attribute("cpuset") else {
            return Ok(None);
        };
        let cpus = bitmap::parse(text).map_err(|why| wrong(node, &why))?;
        // Twice: an object's set may be copied into the machine.
        self.count(2 * cpus.len())?;
        Ok(Some(cpus))
    }

    fn count(&mut self, cpus: usize) -> Result<()> {
        self.cpus_named += cpus;
        if self.cpus_named > MOST_CPUS_NAMED {
            return Err(malformed(format!(
                "its sets name over {MOST_CPUS_NAMED} CPUs"
            )));
        }
        Ok(())
    }

    /// The index of the set of CPUs near what lies below `above`.
    fn near(&mut self, node: Node<'_, '_>, above: Above) -> Result<usize> {
        if self.bridges.len() + self.functions.len() >= MOST_DEVICES {
            return Err(wrong(node, &format!("over {MOST_DEVICES} devices")));
        }
        let near = above.near.unwrap_or(0);
        // A place has a copy of the set.
        self.count(self.near.get(near).map_or(0, CpuSet::len))?;
        Ok(near)
    }

    fn bridge(&mut self, node: Node<'_, '_>, above: Above) -> Result<usize> {
        let kind = node.attribute("bridge_type");
        let pci = match kind {
            Some("0-1") => None,
            Some("1-1") => Some(address(node)?),
            _ => {
                let kind = quoted(kind.unwrap_or_default());
                return Err(wrong(
                    node,
                    &format!("bridge_type {kind} is not 0-1 or 1-1"),
                ));
            }
        };
        let buses = node.attribute("bridge_pci").map(|text| {
            buses(text).ok_or_else(|| {
                wrong(
                    node,
                    &format!("bridge_pci={} is not as 0000:[00-1f]", quoted(text)),
                )
            })
        });
        let near = self.near(node, above)?;
        let bridge = Bridge {
            pci,
            buses: buses.transpose()?,
            link: link(node)?,
            place: Place {
                bridge: above.bridge,
                ..Place::default()
            },
        };
        self.bridges.push((bridge, near));
        Ok(self.bridges.len() - 1)
    }

    fn function(&mut self, node: Node<'a, '_>, above: Above) -> Result<usize> {
        let text = node.attribute("pci_type").unwrap_or_default();
        let (class, vendor, model) = pci_type(text).ok_or_else(|| {
            let found = quoted(text);
            wrong(
                node,
                &format!("pci_type={found} is not as \"0302 [10de:2330] …\""),
            )
        })?;
        let pci = PciFunction {
            address: address(node)?,
            class,
            vendor,
            model,
            link: link(node)?,
        };
        let near = self.near(node, above)?;
        self.functions.push(Function {
            pci: Some(pci),
            model: info(node, "PCIDevice"),
            bridge: above.bridge,
            near,
            devices: Vec::new(),
        });
        Ok(self.functions.len() - 1)
    }

    fn os_device(&mut self, node: Node<'a, '_>, below: &mut Above) -> Result<()> {
        let kind = match node.attribute("osdev_type") {
            Some("1" | "5") => OsKind::Gpu,
            Some("2") => OsKind::Network,
            Some("3") => OsKind::Rdma,
            _ => OsKind::Other,
        };
        let device = OsDevice {
            name: node.attribute("name").unwrap_or_default(),
            kind,
            computes: matches!(
                node.attribute("subtype"),
                Some("CUDA" | "NVML" | "RSMI" | "LevelZero")
            ),
            ports: if kind == OsKind::Rdma {
                ports(node)
            } else {
                Vec::new()
            },
            uuid: info(node, "NVIDIAUUID").or_else(|| info(node, "AMDUUID")),
            model: info(node, "GPUModel"),
        };
        let function = match below.function {
            Some(function) => function,
            // Off PCI, only what can be used from here is kept; a screen is not.
            None if kind == OsKind::Rdma || device.computes => {
                let near = self.near(node, *below)?;
                self.functions.push(Function {
                    pci: None,
                    model: None,
                    bridge: below.bridge,
                    near,
                    devices: Vec::new(),
                });
                self.functions.len() - 1
            }
            None => return Ok(()),
        };
        below.function = Some(function);
        if let Some(function) = self.functions.get_mut(function) {
            function.devices.push(device);
        }
        Ok(())
    }

    /// The function that an object of this `gp_index` is or belongs to; none for another object.
    pub(super) fn function_of(&self, gp_index: u64) -> Option<usize> {
        self.by_gp_index.get(&gp_index).copied().flatten()
    }

    pub(super) fn is_gpu(&self, function: usize) -> bool {
        self.functions.get(function).is_some_and(Function::is_gpu)
    }

    pub(super) fn into_topology(mut self) -> Result<Topology> {
        let mut cores = if self.cores.is_empty() {
            self.units
        } else {
            self.cores
        };
        cores.sort_by_key(|core| core.cpus.first());
        let mut taken = HashSet::new();
        let all = || cores.iter().flat_map(|core| core.cpus.iter());
        if let Some(cpu) = all().find(|&cpu| !taken.insert(cpu)) {
            return Err(malformed(format!("CPU {cpu} is in two cores")));
        }
        self.caches
            .sort_by_key(|cache| (cache.level, cache.cpus.first()));
        self.nodes.sort_by_key(|node| node.index);
        let twice = self
            .nodes
            .windows(2)
            .find(|two| two[0].index == two[1].index);
        if let Some([node, _]) = twice {
            return Err(malformed(format!(
                "two NUMA nodes have os_index {}",
                node.index
            )));
        }
        if self.nodes.is_empty() {
            return Err(malformed("it has no NUMA node".into()));
        }
        let mut topology = Topology::bare(Machine {
            hostname: self.hostname.unwrap_or("unknown").to_owned(),
            boot_id: None,
            packages: self.packages.len().max(1),
            numa_nodes: self.nodes,
            cores,
            cpus: self.cpus,
            caches: self.caches,
            source: Source::Xml,
        });
        let bridges = self.bridges.iter().map(|(_, near)| *near);
        let functions = self.functions.iter().map(|function| function.near);
        let places = places(&topology, &self.near, bridges.chain(functions))?;
        let place = |bridge: Option<usize>, near: usize| Place {
            bridge,
            ..places.get(&near).cloned().unwrap_or_default()
        };
        for (mut bridge, near) in self.bridges {
            bridge.place = place(bridge.place.bridge, near);
            topology.bridges.push(bridge);
        }
        let mut gpu_of = HashMap::new();
        for (index, function) in self.functions.into_iter().enumerate() {
            let place = place(function.bridge, function.near);
            if function.is_gpu() {
                gpu_of.insert(index, topology.gpus.len());
                topology.gpus.push(function.gpu(place));
            } else {
                topology.nics.extend(function.nics(&place));
            }
        }
        for ((one, two), bandwidth) in self.nvlinks {
            if let (Some(&one), Some(&two)) = (gpu_of.get(&one), gpu_of.get(&two)) {
                topology.nvlinks.push(NvLink {
                    gpus: (one.min(two), one.max(two)),
                    bandwidth,
                });
            }
        }
        topology.settle().map_err(malformed)?;
        Ok(topology)
    }
}

/// The place near each of the sets `used`, which are indices of `near`; none has a bridge.
fn places(
    topology: &Topology,
    near: &[CpuSet],
    used: impl Iterator<Item = usize>,
) -> Result<HashMap<usize, Place>> {
    let among = topology.machine.numa_nodes.len() + topology.packages.len();
    let mut compared = 0;
    let mut places = HashMap::new();
    for index in used {
        if let Entry::Vacant(place) = places.entry(index) {
            let cpus = near.get(index).cloned().unwrap_or_default();
            compared += cpus.len() * among;
            if compared > MOST_COMPARED {
                return Err(malformed(
                    "its devices lie near too many sets of CPUs".into(),
                ));
            }
            place.insert(topology.place(None, cpus));
        }
    }
    Ok(places)
}

/// Refuses `count` objects of the kind that `node` is, if they are over `most`.
fn bound(node: Node<'_, '_>, count: usize, most: usize) -> Result<()> {
    if count > most {
        return Err(wrong(node, &format!("over {most} of its kind")));
    }
    Ok(())
}

impl Function<'_> {
    /// One by its class and vendor, or one that a library for GPUs has named.
    fn is_gpu(&self) -> bool {
        self.pci.is_some_and(|pci| pci.is_gpu()) || self.devices.iter().any(|one| one.computes)
    }

    fn gpu(self, place: Place) -> Gpu {
        let devices = || self.devices.iter();
        let model = devices().find_map(|device| device.model).or(self.model);
        let of_gpu = |device: &&OsDevice<'_>| device.kind == OsKind::Gpu;
        Gpu {
            name: String::new(),
            aliases: devices()
                .filter(of_gpu)
                .map(|device| device.name.to_owned())
                .collect(),
            pci: self.pci,
            model: model.map(str::to_owned),
            uuid: devices().find_map(|device| device.uuid).map(str::to_owned),
            place,
        }
    }

    fn nics(self, place: &Place) -> impl Iterator<Item = Nic> {
        let interfaces = self
            .devices
            .iter()
            .filter(|device| device.kind == OsKind::Network);
        let interfaces: Vec<String> = interfaces.map(|device| device.name.to_owned()).collect();
        let nics = self
            .devices
            .into_iter()
            .filter(|device| device.kind == OsKind::Rdma);
        nics.map(move |device| Nic {
            name: device.name.to_owned(),
            pci: self.pci,
            interfaces: interfaces.clone(),
            ports: device.ports,
            place: place.clone(),
        })
    }
}

fn address(node: Node<'_, '_>) -> Result<PciAddress, Error> {
    let text = node.attribute("pci_busid").unwrap_or_default();
    text.parse()
        .map_err(|error: Error| wrong(node, &error.to_string()))
}

/// The rate of a link, which hwloc gives in GB/s, 0 where it does not know.
fn link(node: Node<'_, '_>) -> Result<Option<Bandwidth>> {
    let speed: Option<f64> = number(node, "pci_link_speed")?;
    Ok(speed.and_then(Bandwidth::from_gb_per_s))
}

/// `0000:[00-1f]`.
fn buses(text: &str) -> Option<(u32, u8, u8)> {
    let (domain, range) = text.split_once(":[")?;
    let (first, last) = range.strip_suffix(']')?.split_once('-')?;
    let bus = |digits| u8::try_from(hexadecimal(digits)?).ok();
    Some((hexadecimal(domain)?, bus(first)?, bus(last)?))
}

/// Class, vendor and model of `0302 [10de:2330] [10de:16c1] a1`.
fn pci_type(text: &str) -> Option<(u16, u16, u16)> {
    let mut words = text.split(' ');
    let short = |digits| u16::try_from(hexadecimal(digits)?).ok();
    let class = short(words.next()?)?;
    let device = words.next()?.strip_prefix('[')?.strip_suffix(']')?;
    let (vendor, model) = device.split_once(':')?;
    Some((class, short(vendor)?, short(model)?))
}

/// From infos such as `Port1State`, which hwloc writes, and `Port1Rate` and `Port1LinkLayer`, with
/// the contents of sysfs's files, which it does not but its annotations may.
fn ports(node: Node<'_, '_>) -> Vec<Port> {
    let mut ports: Vec<Port> = Vec::new();
    for (key, value) in infos(node) {
        let Some(rest) = key.strip_prefix("Port") else {
            continue;
        };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, what) = rest.split_at(digits);
        let Ok(number) = number.parse::<u8>() else {
            continue;
        };
        let at = ports.iter().position(|port| port.number == number);
        let at = at.unwrap_or_else(|| {
            ports.push(Port {
                number,
                state: None,
                link_layer: None,
                rate: None,
            });
            ports.len() - 1
        });
        match what {
            "State" => ports[at].state = value.trim().parse().ok().map(PortState::of_number),
            "Rate" => ports[at].rate = Bandwidth::of_rdma_rate(value),
            "LinkLayer" => ports[at].link_layer = LinkLayer::of_name(value),
            _ => {}
        }
    }
    ports.sort_by_key(|port| port.number);
    ports
}
