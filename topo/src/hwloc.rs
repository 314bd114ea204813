//! The machine as hwloc sees it: loaded by hwloc, exported as XML, and read as any such file.

mod library;

use crate::error::{Error, Result};
use crate::host::{boot_id_of, hostname_of};
use crate::machine::Source;
use crate::sysfs::huge_pages;
use crate::sysfs_devices;
use crate::topology::Topology;
use crate::tree::Tree;
use library::{Devices, Library};

/// CPUs, caches and memory alone, which hwloc finds faster.
pub(crate) fn without_devices() -> Result<Topology> {
    load(Devices::None)
}

/// Devices too: hwloc's, and what sysfs knows beyond them (ports' rates, devices of software).
pub(crate) fn with_devices() -> Result<Topology> {
    let mut topology = load(Devices::Important)?;
    sysfs_devices::add(&mut topology, Tree::live())?;
    Ok(topology)
}

fn load(devices: Devices) -> Result<Topology> {
    let failed = |why: String| Error::Hwloc { why };
    let built = Library::get()
        .and_then(|library| library.topology(devices))
        .map_err(failed)?;
    if !built.is_this_system() {
        let why = "its environment (HWLOC_XMLFILE or HWLOC_SYNTHETIC) describes another machine";
        return Err(failed(why.to_owned()));
    }
    let xml = built.xml().map_err(failed)?;
    let mut topology = Topology::from_xml(xml.as_str().map_err(failed)?)
        .map_err(|error| failed(error.to_string()))?;
    let tree = Tree::live();
    let machine = &mut topology.machine;
    machine.hostname = hostname_of(tree);
    machine.boot_id = boot_id_of(tree)?;
    machine.source = Source::Hwloc;
    // hwloc counts huge pages in part only.
    for node in &mut machine.numa_nodes {
        let folder = format!("sys/devices/system/node/node{}/hugepages", node.index);
        node.hugepages = huge_pages(tree, &folder)?;
    }
    Ok(topology)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_set::CpuSet;
    use crate::machine::Machine;

    #[test]
    fn hwloc_and_sysfs_agree_on_this_machine() {
        let by_hwloc = Topology::from_hwloc().unwrap();
        let by_sysfs = Topology::from_sysfs(std::path::Path::new("/")).unwrap();
        let devices = |topology: &Topology| {
            let nics = topology
                .nics
                .iter()
                .map(|nic| (nic.name.clone(), nic.ports.clone()));
            let gpus = topology
                .gpus
                .iter()
                .map(|gpu| gpu.pci.map(|pci| pci.address));
            (nics.collect::<Vec<_>>(), gpus.collect::<Vec<_>>())
        };
        assert_eq!(devices(&by_hwloc), devices(&by_sysfs));
        let (by_hwloc, by_sysfs) = (by_hwloc.machine, by_sysfs.machine);
        assert_eq!(by_hwloc, Machine::from_hwloc().unwrap());
        assert_eq!(by_hwloc.cpus, by_sysfs.cpus);
        assert_eq!(by_hwloc.packages, by_sysfs.packages);
        assert_eq!(by_hwloc.caches, by_sysfs.caches);
        let cores = |machine: &Machine| -> Vec<CpuSet> {
            machine.cores.iter().map(|core| core.cpus.clone()).collect()
        };
        assert_eq!(cores(&by_hwloc), cores(&by_sysfs));
        let nodes = |machine: &Machine| -> Vec<(usize, CpuSet)> {
            machine
                .numa_nodes
                .iter()
                .map(|node| (node.index, node.cpus.clone()))
                .collect()
        };
        assert_eq!(nodes(&by_hwloc), nodes(&by_sysfs));
    }

    #[test]
    fn discovery_uses_hwloc_where_it_works() {
        assert_eq!(Machine::discover().unwrap().source, Source::Hwloc);
        assert_eq!(Topology::discover().unwrap().machine.source, Source::Hwloc);
    }
}
