//! The machine as hwloc sees it.

use hwlocality::Topology;
use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::types::ObjectType;
use hwlocality::topology::builder::BuildFlags;

use crate::host::{boot_id_of, hostname_of};
use crate::machine::{Cache, Core, Machine, NumaNode, Source};
use crate::sysfs::huge_pages;
use crate::tree::Tree;
use crate::{CpuSet, Error, Result};

pub(crate) fn machine() -> Result<Machine> {
    let topology = load()?;
    if !topology.is_this_system() {
        let why = "its environment (HWLOC_XMLFILE or HWLOC_SYNTHETIC) describes another machine";
        return Err(Error::Hwloc {
            why: why.to_owned(),
        });
    }
    let tree = Tree::live();
    let cpus = set(topology.cpuset().iter_set());
    if cpus.is_empty() {
        return Err(Error::Hwloc {
            why: "it sees no CPU".to_owned(),
        });
    }
    Ok(Machine {
        hostname: hostname_of(tree),
        boot_id: boot_id_of(tree)?,
        packages: topology
            .objects_with_type(ObjectType::Package)
            .count()
            .max(1),
        numa_nodes: numa_nodes(&topology, tree)?,
        cores: cores(&topology),
        caches: caches(&topology),
        cpus,
        source: Source::Hwloc,
    })
}

fn load() -> Result<Topology> {
    let failed = |why: &dyn std::fmt::Display| Error::Hwloc {
        why: why.to_string(),
    };
    Topology::builder()
        .with_flags(BuildFlags::INCLUDE_DISALLOWED)
        .map_err(|error| failed(&error))?
        .build()
        .map_err(|error| failed(&error))
}

/// hwloc's bitmaps can be infinite, so numbers from the limit on end the walk.
fn set(indices: impl Iterator<Item = impl Into<usize>>) -> CpuSet {
    indices
        .map(Into::into)
        .take_while(|&cpu| cpu < CpuSet::LIMIT)
        .collect()
}

fn cpus_of(object: &TopologyObject) -> CpuSet {
    object
        .cpuset()
        .map(|cpus| set(cpus.iter_set()))
        .unwrap_or_default()
}

fn numa_nodes(topology: &Topology, tree: Tree<'_>) -> Result<Vec<NumaNode>> {
    let mut nodes = Vec::new();
    for node in topology.objects_with_type(ObjectType::NUMANode) {
        let index = node.os_index().unwrap_or(node.logical_index());
        let memory = match node.attributes() {
            Some(ObjectAttributes::NUMANode(numa)) => numa.local_memory().map_or(0, |m| m.get()),
            _ => 0,
        };
        let pools = huge_pages(
            tree,
            &format!("sys/devices/system/node/node{index}/hugepages"),
        )?;
        nodes.push(NumaNode {
            index,
            cpus: cpus_of(node),
            memory,
            hugepages: pools,
        });
    }
    nodes.sort_by_key(|node| node.index);
    Ok(nodes)
}

/// The cores; where the system shows none, each CPU is one.
fn cores(topology: &Topology) -> Vec<Core> {
    let collect = |kind| {
        let mut cores: Vec<Core> = topology
            .objects_with_type(kind)
            .map(|core| Core {
                package: core
                    .first_ancestor_with_type(ObjectType::Package)
                    .and_then(TopologyObject::os_index)
                    .unwrap_or(0),
                cpus: cpus_of(core),
            })
            .filter(|core| !core.cpus.is_empty())
            .collect();
        cores.sort_by_key(|core| core.cpus.first());
        cores
    };
    let cores = collect(ObjectType::Core);
    if cores.is_empty() {
        collect(ObjectType::PU)
    } else {
        cores
    }
}

fn caches(topology: &Topology) -> Vec<Cache> {
    let levels = [
        ObjectType::L1Cache,
        ObjectType::L2Cache,
        ObjectType::L3Cache,
        ObjectType::L4Cache,
        ObjectType::L5Cache,
    ];
    let mut caches = Vec::new();
    for (level, kind) in (1..).zip(levels) {
        for cache in topology.objects_with_type(kind) {
            let bytes = match cache.attributes() {
                Some(ObjectAttributes::Cache(cache)) => cache.size().map_or(0, |size| size.get()),
                _ => 0,
            };
            caches.push(Cache {
                level,
                bytes,
                cpus: cpus_of(cache),
            });
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.cpus.first()));
    caches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hwloc_and_sysfs_agree_on_this_machine() {
        let by_hwloc = Machine::from_hwloc().unwrap();
        let by_sysfs = Machine::from_sysfs(std::path::Path::new("/")).unwrap();
        assert_eq!(by_hwloc.cpus, by_sysfs.cpus);
        assert_eq!(by_hwloc.packages, by_sysfs.packages);
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
    }
}
