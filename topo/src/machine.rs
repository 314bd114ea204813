//! The CPUs, caches and memory of a machine.

use std::path::Path;

use crate::cpu_set::CpuSet;
use crate::error::Result;
use crate::sysfs;

/// One host, as far as placing PEs and memory needs it. Plain data; its `Display` is a small table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The host's name, for people.
    pub hostname: String,
    /// The kernel's boot id (see [`crate::boot_id`]); none where the system does not say.
    pub boot_id: Option<String>,
    /// Number of packages (sockets) with a CPU online.
    pub packages: usize,
    /// NUMA nodes by ascending index, at least one. A node may have no CPU (memory only).
    pub numa_nodes: Vec<NumaNode>,
    /// Cores with a CPU online, by lowest CPU.
    pub cores: Vec<Core>,
    /// All CPUs online, whether or not this process may use them; never empty.
    pub cpus: CpuSet,
    /// Data and unified caches, each once, by level and then lowest CPU.
    pub caches: Vec<Cache>,
    /// Where this description comes from.
    pub source: Source,
}

/// A NUMA node: memory, and the CPUs that are near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// The kernel's number, as `mbind` takes it.
    pub index: usize,
    /// Its CPUs that are online.
    pub cpus: CpuSet,
    /// Its memory in bytes; 0 where the system does not say.
    pub memory: u64,
    /// Its pools of huge pages, by ascending size.
    pub hugepages: Vec<HugePages>,
}

/// One pool of huge pages. A snapshot: `free` changes at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// A page's size in bytes.
    pub size: u64,
    /// Pages in the pool.
    pub total: u64,
    /// Pages that nobody has taken.
    pub free: u64,
}

/// A core: the CPUs (hardware threads) that share one set of execution units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// The package's number, as the system gives it.
    pub package: usize,
    /// Its CPUs that are online; never empty.
    pub cpus: CpuSet,
}

/// A data or unified cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is nearest the core.
    pub level: usize,
    /// Its size in bytes; 0 where the system does not say.
    pub bytes: u64,
    /// The CPUs that share it.
    pub cpus: CpuSet,
}

/// Where a [`Machine`] was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// hwloc.
    Hwloc,
    /// hwloc's XML, which may describe another host.
    Xml,
    /// The kernel's files, without hwloc.
    Sysfs {
        /// Why hwloc was not used, in words.
        why: String,
    },
}

impl Machine {
    /// Describes the running machine without its devices: by hwloc where the feature is on and hwloc works, else from
    /// sysfs; [`Machine::source`] says which, and why.
    ///
    /// Takes from a few milliseconds to a few tens of them. hwloc may bind the calling thread to
    /// other CPUs for a moment while it looks, and puts it back.
    ///
    /// # Errors
    /// Those of [`Machine::from_sysfs`], where hwloc failed too.
    pub fn discover() -> Result<Self> {
        #[cfg(feature = "hwloc")]
        let why = match Self::from_hwloc() {
            Ok(machine) => return Ok(machine),
            Err(error) => without_hwloc(error),
        };
        #[cfg(not(feature = "hwloc"))]
        let why = WITHOUT_HWLOC.to_owned();
        sysfs::machine(Path::new("/"), why)
    }

    /// Describes the machine whose `/proc` and `/sys` lie under `root` (`/` is this one).
    ///
    /// Missing files are replaced: no NUMA files, one node with all CPUs and memory; no topology
    /// files for a CPU, a core of its own in package 0; no cache files, no caches.
    ///
    /// # Errors
    /// [`crate::Error::NoCpus`] where no CPU is named as online, [`crate::Error::Malformed`] or
    /// [`crate::Error::Read`] for a file that exists and makes no sense or cannot be read.
    pub fn from_sysfs(root: &Path) -> Result<Self> {
        sysfs::machine(root, "sysfs was asked for".to_owned())
    }

    /// Describes the running machine by hwloc, CPUs that this process may not use included. Huge
    /// pages, which hwloc counts only in part, are read from sysfs.
    ///
    /// # Errors
    /// [`crate::Error::Hwloc`] where hwloc fails, sees no CPU, or was told by its environment
    /// (`HWLOC_XMLFILE`, `HWLOC_SYNTHETIC`) to describe another machine.
    #[cfg(feature = "hwloc")]
    pub fn from_hwloc() -> Result<Self> {
        Ok(crate::hwloc::without_devices()?.machine)
    }

    /// The node that has more of `cpus` than any other; none if no node does, so that a process
    /// free to run on several nodes alike is not tied to the memory of one.
    pub fn nearest_node(&self, cpus: &CpuSet) -> Option<&NumaNode> {
        nearest(&self.numa_nodes, |node| &node.cpus, cpus)
    }
}

/// Why sysfs is read instead of hwloc, which failed so.
#[cfg(feature = "hwloc")]
pub(crate) fn without_hwloc(error: crate::error::Error) -> String {
    match error {
        crate::error::Error::Hwloc { why } => format!("hwloc: {why}"),
        error => error.to_string(),
    }
}

#[cfg(not(feature = "hwloc"))]
pub(crate) const WITHOUT_HWLOC: &str = "built without the feature hwloc";

/// Of `nodes`, the one that has strictly more of `cpus` than each other one.
pub(crate) fn nearest<'a, N>(
    nodes: &'a [N],
    cpus_of: impl Fn(&N) -> &CpuSet,
    cpus: &CpuSet,
) -> Option<&'a N> {
    let shared = |node: &N| cpus_of(node).intersection(cpus).len();
    let best = nodes.iter().max_by_key(|node| shared(node))?;
    let most = shared(best);
    let alone = nodes.iter().filter(|node| shared(node) == most).count() == 1;
    (most > 0 && alone).then_some(best)
}
