//! The topology: a machine and its devices.

use std::collections::HashSet;
use std::path::Path;

use crate::cpu_set::CpuSet;
use crate::devices::{Bridge, Gpu, Nic, NvLink, PciFunction, Place, Port};
use crate::error::{Result, quoted};
use crate::machine::{Machine, NumaNode};
use crate::tree::Tree;
use crate::{sysfs, sysfs_devices, xml};

/// A host and its devices: what [`Machine`] says, and the tree of PCI with the NICs and GPUs in it.
///
/// Plain data. `Display` prints the tree; [`Topology::distance`] says how far things are apart.
/// A topology without bridges, NICs or GPUs is normal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// CPUs, caches and memory.
    pub machine: Machine,
    /// The packages (sockets) with their CPUs, by ascending number.
    pub packages: Vec<Package>,
    /// The bridges with a NIC or GPU below, each after the one above it.
    pub bridges: Vec<Bridge>,
    /// The RDMA devices by PCI address and name; those that are not on PCI last.
    pub nics: Vec<Nic>,
    /// The GPUs in the order of their numbers: see [`Gpu::name`].
    pub gpus: Vec<Gpu>,
    /// The pairs of GPUs that NVLink joins, ascending.
    pub nvlinks: Vec<NvLink>,
}

/// A package (socket).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its number, as the system gives it; [`crate::Core::package`] refers to it.
    pub index: usize,
    /// Its CPUs that are online; never empty.
    pub cpus: CpuSet,
}

impl Topology {
    /// The most bytes of XML that are read. A host of two thousand CPUs takes about 2 MiB.
    pub const LONGEST_XML: usize = 16 << 20;

    /// Describes the running machine and its devices: by hwloc and sysfs together where the feature
    /// is on and hwloc works, else from sysfs alone; [`Machine::source`] says which, and why.
    ///
    /// Slower than [`Machine::discover`], much so where hwloc was built with vendors' GPU libraries
    /// and they start: ask only when there is a device to choose.
    ///
    /// # Errors
    /// Those of [`Topology::from_sysfs`], where hwloc failed too.
    pub fn discover() -> Result<Self> {
        #[cfg(feature = "hwloc")]
        let why = match Self::from_hwloc() {
            Ok(topology) => return Ok(topology),
            Err(error) => crate::machine::without_hwloc(error),
        };
        #[cfg(not(feature = "hwloc"))]
        let why = crate::machine::WITHOUT_HWLOC.to_owned();
        Self::of_tree(Path::new("/"), why)
    }

    /// Describes the machine whose `/proc` and `/sys` lie under `root` (`/` is this one). NVLink,
    /// which the kernel does not show, stays unknown. A GPU is a display controller of NVIDIA, AMD
    /// or Intel, or a processing accelerator of AMD.
    ///
    /// # Errors
    /// Those of [`Machine::from_sysfs`], for the files of devices too.
    pub fn from_sysfs(root: &Path) -> Result<Self> {
        Self::of_tree(root, "sysfs was asked for".to_owned())
    }

    fn of_tree(root: &Path, why: String) -> Result<Self> {
        let mut topology = Self::bare(sysfs::machine(root, why)?);
        sysfs_devices::add(&mut topology, Tree::new(root))?;
        Ok(topology)
    }

    /// Describes the running machine by hwloc, supplemented from sysfs.
    ///
    /// # Errors
    /// Those of [`Machine::from_hwloc`], and those of [`Topology::from_sysfs`] for devices.
    #[cfg(feature = "hwloc")]
    pub fn from_hwloc() -> Result<Self> {
        crate::hwloc::with_devices()
    }

    /// Reads hwloc's XML of version 2 (`lstopo file.xml`), of this host or another, without hwloc.
    /// Rates of ports, which hwloc does not write, are taken from infos `Port1Rate` and
    /// `Port1LinkLayer` where somebody has added them. Huge pages are not counted. GPUs are those of
    /// [`Topology::from_sysfs`], and what CUDA, NVML, RSMI or Level Zero has named.
    ///
    /// # Errors
    /// [`crate::Error::Xml`] for text that is something else, contradicts itself (as by a CPU in two
    /// cores, or a number twice), has no CPU, or would cost much more than any real host; [`crate::Error::XmlVersion`] for hwloc 1 or 3.
    pub fn from_xml(text: &str) -> Result<Self> {
        xml::topology(text)
    }

    /// Reads the plain file `path` as [`Topology::from_xml`] does its text. Waits for no writer of
    /// a FIFO, and takes in no more than [`Topology::LONGEST_XML`].
    ///
    /// # Errors
    /// [`crate::Error::XmlFile`] if the file cannot be read; those of [`Topology::from_xml`].
    pub fn from_xml_file(path: &Path) -> Result<Self> {
        xml::file(path)
    }

    /// The NIC of this RDMA name; a port, as in `mlx5_0:1`, may follow.
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        let find = |name: &str| self.nics.iter().find(|nic| nic.name == name);
        find(name).or_else(|| find(name.rsplit_once(':')?.0))
    }

    /// The port of this name, as in `mlx5_0:1`, and its NIC; none where the description does not
    /// give that port.
    pub fn port(&self, name: &str) -> Option<(&Nic, &Port)> {
        let (nic, number) = name.rsplit_once(':')?;
        let number: u8 = number.parse().ok()?;
        let nic = self.nics.iter().find(|one| one.name == nic)?;
        let port = nic.ports.iter().find(|port| port.number == number)?;
        Some((nic, port))
    }

    /// The GPU of this name, alias (`nvml0`), UUID or PCI address.
    pub fn gpu(&self, name: &str) -> Option<&Gpu> {
        let address = name.parse().ok();
        let is_called = |gpu: &&Gpu| {
            gpu.name == name
                || gpu.aliases.iter().any(|alias| alias == name)
                || gpu.uuid.as_deref() == Some(name)
                || (address.is_some() && gpu.pci.map(|pci| pci.address) == address)
        };
        self.gpus.iter().find(is_called)
    }

    /// The NUMA node of this number.
    pub fn numa_node(&self, index: usize) -> Option<&NumaNode> {
        let mut nodes = self.machine.numa_nodes.iter();
        nodes.find(|node| node.index == index)
    }

    /// The only node, or lowest of several alike, that has all of `cpus`.
    pub(crate) fn node_of(&self, cpus: &CpuSet) -> Option<usize> {
        smallest_with(&self.machine.numa_nodes, |node| &node.cpus, cpus).map(|node| node.index)
    }

    /// The package that has all of `cpus`.
    pub(crate) fn package_of(&self, cpus: &CpuSet) -> Option<usize> {
        smallest_with(&self.packages, |package| &package.cpus, cpus).map(|package| package.index)
    }

    /// A host without devices.
    pub(crate) fn bare(machine: Machine) -> Self {
        let mut cpus_of = std::collections::BTreeMap::<usize, Vec<usize>>::new();
        for core in &machine.cores {
            cpus_of
                .entry(core.package)
                .or_default()
                .extend(core.cpus.iter());
        }
        let packages = cpus_of.into_iter().map(|(index, cpus)| Package {
            index,
            cpus: cpus.into_iter().collect(),
        });
        Self {
            packages: packages.collect(),
            machine,
            bridges: Vec::new(),
            nics: Vec::new(),
            gpus: Vec::new(),
            nvlinks: Vec::new(),
        }
    }

    /// Makes what was gathered what [`Topology`] says: bridges without a NIC or GPU go, devices are
    /// sorted, GPUs named. The error says in words what contradicts itself.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.drop_idle_bridges();
        let mut order: Vec<usize> = (0..self.gpus.len()).collect();
        order.sort_by_key(|&gpu| (self.gpus[gpu].order(), gpu));
        let mut place_of = vec![0; order.len()];
        for (place, &gpu) in order.iter().enumerate() {
            place_of[gpu] = place;
            self.gpus[gpu].name = format!("gpu{place}");
        }
        self.gpus.sort_by_key(Gpu::order);
        for link in &mut self.nvlinks {
            let (one, two) = (place_of[link.gpus.0], place_of[link.gpus.1]);
            link.gpus = (one.min(two), one.max(two));
        }
        self.nvlinks.sort_by_key(|link| link.gpus);
        let address = |pci: Option<PciFunction>| {
            let address = pci.map(|pci| pci.address);
            (address.is_none(), address)
        };
        self.nics.sort_by(|a, b| {
            let key = |nic: &Nic| address(nic.pci);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        let mut names = HashSet::new();
        match self.nics.iter().find(|nic| !names.insert(&nic.name)) {
            Some(nic) => Err(format!("two NICs are called {}", quoted(&nic.name))),
            None => Ok(()),
        }
    }

    fn drop_idle_bridges(&mut self) {
        let mut used = vec![false; self.bridges.len()];
        let places = self.nics.iter().map(|nic| &nic.place);
        for place in places.chain(self.gpus.iter().map(|gpu| &gpu.place)) {
            let mut above = place.bridge;
            // All above a marked bridge are marked.
            while let Some(bridge) = above.filter(|&bridge| !used[bridge]) {
                used[bridge] = true;
                above = self.bridges[bridge].place.bridge;
            }
        }
        let mut kept = 0;
        let moved: Vec<usize> = used
            .iter()
            .map(|&used| {
                kept += usize::from(used);
                kept.saturating_sub(1)
            })
            .collect();
        let mut used = used.into_iter();
        self.bridges.retain(|_| used.next() == Some(true));
        let places = self.bridges.iter_mut().map(|bridge| &mut bridge.place);
        let places = places.chain(self.nics.iter_mut().map(|nic| &mut nic.place));
        for place in places.chain(self.gpus.iter_mut().map(|gpu| &mut gpu.place)) {
            place.bridge = place.bridge.map(|bridge| moved[bridge]);
        }
    }

    /// The place below `bridge` near `cpus`; all CPUs stand in for none.
    pub(crate) fn place(&self, bridge: Option<usize>, cpus: CpuSet) -> Place {
        let cpus = if cpus.is_empty() {
            self.machine.cpus.clone()
        } else {
            cpus
        };
        Place {
            bridge,
            node: self.node_of(&cpus),
            package: self.package_of(&cpus),
            cpus,
        }
    }
}

/// Of those in `all` that have every one of `cpus`, one with the fewest, the first of several.
fn smallest_with<'a, T>(all: &'a [T], of: impl Fn(&T) -> &CpuSet, cpus: &CpuSet) -> Option<&'a T> {
    all.iter()
        .filter(|one| !cpus.is_empty() && cpus.is_subset(of(one)))
        .min_by_key(|one| of(one).len())
}
