//! The kernel's own description: `/sys/devices/system` and a little of `/proc`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cpu_set::CpuSet;
use crate::error::{Error, Result, quoted};
use crate::host::{boot_id_of, hostname_of};
use crate::machine::{Cache, Core, HugePages, Machine, NumaNode, Source};
use crate::tree::Tree;

pub(crate) fn machine(root: &Path, why: String) -> Result<Machine> {
    let tree = Tree::new(root);
    let cpus = online(tree)?;
    let (cores, packages) = cores(tree, &cpus)?;
    Ok(Machine {
        hostname: hostname_of(tree),
        boot_id: boot_id_of(tree)?,
        packages,
        numa_nodes: numa_nodes(tree, &cpus)?,
        cores,
        caches: caches(tree, &cpus)?,
        cpus,
        source: Source::Sysfs { why },
    })
}

/// The CPUs online; where that file is missing (no hot-plug in the kernel), those present.
pub(crate) fn online(tree: Tree<'_>) -> Result<CpuSet> {
    const ONLINE: &str = "sys/devices/system/cpu/online";
    let cpus = match tree.list(ONLINE)? {
        Some(cpus) => Some(cpus),
        None => tree.list("sys/devices/system/cpu/present")?,
    };
    cpus.filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| Error::NoCpus {
            path: tree.path(ONLINE),
        })
}

/// The cores by lowest CPU, and the number of packages. A CPU is in one core only: that of the
/// lowest CPU that claims it.
fn cores(tree: Tree<'_>, online: &CpuSet) -> Result<(Vec<Core>, usize)> {
    let mut cores: Vec<Core> = Vec::new();
    let mut placed = vec![false; CpuSet::LIMIT];
    for cpu in online.iter().filter(|&cpu| cpu < CpuSet::LIMIT) {
        if placed[cpu] {
            continue;
        }
        let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        // Kernels before 5.3 have the second name only.
        let siblings = match tree.list(&format!("{topology}/core_cpus_list"))? {
            Some(cpus) => Some(cpus),
            None => tree.list(&format!("{topology}/thread_siblings_list"))?,
        };
        let siblings = siblings.unwrap_or_default();
        let cpus: CpuSet = siblings
            .intersection(online)
            .iter()
            .chain([cpu])
            .filter(|&sibling| !placed[sibling])
            .collect();
        for cpu in cpus.iter() {
            placed[cpu] = true;
        }
        // Some Arm and virtual machines say -1: not known.
        let package = tree
            .integer(&format!("{topology}/physical_package_id"))?
            .unwrap_or(0);
        cores.push(Core {
            package: usize::try_from(package).unwrap_or(0),
            cpus,
        });
    }
    let mut packages: Vec<usize> = cores.iter().map(|core| core.package).collect();
    packages.sort_unstable();
    packages.dedup();
    Ok((cores, packages.len()))
}

fn caches(tree: Tree<'_>, online: &CpuSet) -> Result<Vec<Cache>> {
    let mut caches: BTreeMap<(usize, Vec<usize>), u64> = BTreeMap::new();
    for cpu in online.iter() {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        for name in tree.names(&folder)? {
            let cache = format!("{folder}/{name}");
            let kind = tree.text(&format!("{cache}/type"))?.unwrap_or_default();
            let level = tree.integer(&format!("{cache}/level"))?;
            let level = level.and_then(|level| usize::try_from(level).ok());
            let (Some(level), "Data" | "Unified") = (level, kind.trim()) else {
                continue;
            };
            let shared = tree
                .list(&format!("{cache}/shared_cpu_list"))?
                .unwrap_or_default();
            let cpus: CpuSet = shared.intersection(online).iter().chain([cpu]).collect();
            let file = format!("{cache}/size");
            let bytes = match tree.text(&file)? {
                Some(text) => cache_size(text.trim()).ok_or_else(|| {
                    tree.malformed(
                        &file,
                        format!("{} is not a size such as 32K", quoted(&text)),
                    )
                })?,
                None => 0,
            };
            caches.insert((level, cpus.to_vec()), bytes);
        }
    }
    let sets = caches.into_iter().map(|((level, cpus), bytes)| Cache {
        level,
        bytes,
        cpus: cpus.into_iter().collect(),
    });
    Ok(sets.collect())
}

fn cache_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The nodes that have a list of CPUs (empty for memory alone); without any, one with everything.
fn numa_nodes(tree: Tree<'_>, online: &CpuSet) -> Result<Vec<NumaNode>> {
    let mut nodes = Vec::new();
    for (index, cpus) in numa_cpus(tree, online)? {
        let folder = format!("sys/devices/system/node/node{index}");
        let memory = memory_total(tree, &format!("{folder}/meminfo"))?;
        let hugepages = huge_pages(tree, &format!("{folder}/hugepages"))?;
        nodes.push(NumaNode {
            index,
            cpus,
            memory,
            hugepages,
        });
    }
    if nodes.is_empty() {
        nodes.push(NumaNode {
            index: 0,
            cpus: online.clone(),
            memory: memory_total(tree, "proc/meminfo")?,
            hugepages: huge_pages(tree, "sys/kernel/mm/hugepages")?,
        });
    }
    Ok(nodes)
}

/// Each node's number and its CPUs that are online; empty where the kernel knows no nodes.
pub(crate) fn numa_cpus(tree: Tree<'_>, online: &CpuSet) -> Result<Vec<(usize, CpuSet)>> {
    let mut nodes = Vec::new();
    for index in tree
        .list("sys/devices/system/node/online")?
        .unwrap_or_default()
        .iter()
    {
        if let Some(cpus) = tree.list(&format!("sys/devices/system/node/node{index}/cpulist"))? {
            nodes.push((index, cpus.intersection(online)));
        }
    }
    Ok(nodes)
}

/// `MemTotal` of `file` in bytes (`Node 0 MemTotal:  16 kB`, or without the node); 0 if not said.
fn memory_total(tree: Tree<'_>, file: &str) -> Result<u64> {
    let text = tree.text(file)?.unwrap_or_default();
    let Some(line) = text.lines().find(|line| line.contains("MemTotal:")) else {
        return Ok(0);
    };
    let value = line.rsplit("MemTotal:").next().unwrap_or_default().trim();
    value
        .strip_suffix("kB")
        .and_then(|digits| digits.trim().parse::<u64>().ok()?.checked_mul(1024))
        .ok_or_else(|| tree.malformed(file, format!("{} is not a number of kB", quoted(value))))
}

/// The pools under `folder` (`hugepages-2048kB` and so on), by ascending size.
pub(crate) fn huge_pages(tree: Tree<'_>, folder: &str) -> Result<Vec<HugePages>> {
    let mut pools = Vec::new();
    for name in tree.names(folder)? {
        let digits = name
            .strip_prefix("hugepages-")
            .and_then(|rest| rest.strip_suffix("kB"));
        let size = digits.and_then(|digits| digits.parse::<u64>().ok()?.checked_mul(1024));
        let Some(size) = size else {
            continue;
        };
        let count = |file: &str| {
            let count = tree.integer(&format!("{folder}/{name}/{file}"))?;
            Ok::<u64, Error>(
                count
                    .and_then(|count| u64::try_from(count).ok())
                    .unwrap_or(0),
            )
        };
        pools.push(HugePages {
            size,
            total: count("nr_hugepages")?,
            free: count("free_hugepages")?,
        });
    }
    pools.sort_unstable_by_key(|pool| pool.size);
    Ok(pools)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, NO_NUMA, OFFLINE_CPUS, TWO_SOCKETS};
    use proptest::prelude::*;

    fn load(files: &str) -> Machine {
        Machine::from_sysfs(Fixture::new(files).root()).unwrap()
    }

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn two_sockets_are_read_whole() {
        let machine = load(TWO_SOCKETS);
        assert_eq!(machine.hostname, "twosock");
        let boot_id = machine.boot_id.as_deref();
        assert_eq!(boot_id, Some("11111111-2222-3333-4444-555555555555"));
        assert_eq!((machine.packages, machine.cores.len()), (2, 8));
        assert_eq!(machine.cpus, set("0-15"));
        assert_eq!(
            machine.cores[3],
            Core {
                package: 1,
                cpus: set("3,11")
            }
        );
        let [first, second] = machine.numa_nodes.as_slice() else {
            panic!("not two nodes: {:?}", machine.numa_nodes)
        };
        assert_eq!(first.cpus, set("0,2,4,6,8,10,12,14"));
        assert_eq!((first.memory, second.memory), (32 << 30, 64 << 30));
        assert_eq!(
            first.hugepages,
            [
                HugePages {
                    size: 2 << 20,
                    total: 64,
                    free: 60
                },
                HugePages {
                    size: 1 << 30,
                    total: 0,
                    free: 0
                }
            ]
        );
        let of_level = |level| {
            machine
                .caches
                .iter()
                .filter(move |cache| cache.level == level)
        };
        assert_eq!(
            (
                of_level(1).count(),
                of_level(2).count(),
                of_level(3).count()
            ),
            (8, 8, 2)
        );
        assert!(of_level(3).all(|cache| cache.bytes == 16 << 20 && cache.cpus.len() == 8));
    }

    #[test]
    fn offline_cpus_appear_nowhere() {
        let machine = load(OFFLINE_CPUS);
        assert_eq!(machine.cpus, set("0,2"));
        let cores: Vec<_> = machine.cores.iter().map(|core| core.cpus.clone()).collect();
        assert_eq!(cores, [set("0"), set("2")]);
        assert_eq!(machine.packages, 1);
        assert_eq!(
            machine.caches,
            [Cache {
                level: 2,
                bytes: 0,
                cpus: set("0,2")
            }]
        );
        let nodes: Vec<_> = machine
            .numa_nodes
            .iter()
            .map(|n| (n.index, n.cpus.clone()))
            .collect();
        assert_eq!(nodes, [(0, set("0,2")), (2, set(""))]);
        assert_eq!(machine.numa_nodes[1].memory, 4 << 20);
    }

    #[test]
    fn without_numa_files_one_node_has_everything() {
        let machine = load(NO_NUMA);
        assert_eq!(
            (machine.hostname.as_str(), &machine.boot_id),
            ("unknown", &None)
        );
        assert_eq!((machine.packages, machine.cores.len()), (1, 4));
        assert!(machine.caches.is_empty());
        assert_eq!(
            machine.numa_nodes,
            [NumaNode {
                index: 0,
                cpus: set("0-3"),
                memory: 8 << 30,
                hugepages: vec![HugePages {
                    size: 2 << 20,
                    total: 8,
                    free: 3
                }],
            }]
        );
    }

    #[test]
    fn a_system_that_names_no_cpu_is_an_error() {
        for files in ["", "sys/devices/system/cpu/online = "] {
            let error = Machine::from_sysfs(Fixture::new(files).root()).unwrap_err();
            assert!(matches!(error, Error::NoCpus { .. }), "{error}");
        }
        let error = Machine::from_sysfs(Path::new("/nonexistent")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/sys"), "{error}");
    }

    #[test]
    fn a_malformed_file_is_named_with_what_it_holds() {
        for (file, contents, part) in [
            (
                "sys/devices/system/cpu/online",
                "0-4294967295",
                "4294967295",
            ),
            (
                "sys/devices/system/cpu/cpu5/topology/core_cpus_list",
                "0x20",
                "0x20",
            ),
            (
                "sys/devices/system/cpu/cpu5/topology/physical_package_id",
                "one",
                "one",
            ),
            (
                "sys/devices/system/cpu/cpu0/cache/index0/size",
                "99999999999999999M",
                "99999M",
            ),
            (
                "sys/devices/system/cpu/cpu0/cache/index0/level",
                "two",
                "two",
            ),
            ("sys/devices/system/node/online", "0-1;rm", "1;rm"),
            ("sys/devices/system/node/node1/cpulist", "9-3", "9-3"),
            (
                "sys/devices/system/node/node1/meminfo",
                "Node 1 MemTotal: -4 kB",
                "-4",
            ),
            ("proc/sys/kernel/random/boot_id", " ", "empty"),
        ] {
            let fixture = Fixture::new(TWO_SOCKETS);
            fixture.write(file, contents);
            let error = Machine::from_sysfs(fixture.root()).unwrap_err();
            assert!(matches!(error, Error::Malformed { .. }), "{file}: {error}");
            let message = error.to_string();
            assert!(
                message.contains(file) && message.contains(part),
                "{message}"
            );
        }
    }

    #[test]
    fn a_folder_or_bytes_that_are_no_text_in_a_files_place_are_an_error() {
        let fixture = Fixture::new("sys/devices/system/cpu/online/file = 1");
        let error = Machine::from_sysfs(fixture.root()).unwrap_err();
        assert!(error.to_string().contains("not a plain file"), "{error}");
        let fixture = Fixture::new(NO_NUMA);
        let file = fixture.root().join("sys/devices/system/cpu/online");
        std::fs::write(file, b"\xff\xfe\0").unwrap();
        let error = Machine::from_sysfs(fixture.root()).unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{error}");
    }

    #[test]
    fn cpus_that_claim_each_others_core_are_in_one_core_each() {
        let fixture = Fixture::new(TWO_SOCKETS);
        fixture.write("sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0-3");
        fixture.write(
            "sys/devices/system/cpu/cpu8/topology/core_cpus_list",
            "0-15",
        );
        let machine = Machine::from_sysfs(fixture.root()).unwrap();
        let mut seen: Vec<usize> = machine.cores.iter().flat_map(|c| c.cpus.to_vec()).collect();
        seen.sort_unstable();
        assert_eq!(seen, machine.cpus.to_vec());
    }

    #[test]
    fn the_running_machine_is_described_with_every_cpu_in_a_core_and_a_node() {
        let machine = Machine::from_sysfs(Path::new("/")).unwrap();
        let in_cores: usize = machine.cores.iter().map(|core| core.cpus.len()).sum();
        assert_eq!(in_cores, machine.cpus.len());
        let in_nodes: usize = machine.numa_nodes.iter().map(|node| node.cpus.len()).sum();
        assert_eq!(in_nodes, machine.cpus.len());
        assert_eq!(machine.boot_id, crate::host::boot_id().ok());
        assert_eq!(machine.hostname, crate::host::hostname());
    }

    #[test]
    fn any_contents_of_any_file_give_a_machine_or_an_error() {
        // One set of files for all cases: to write them takes longer than to read them.
        let fixture = Fixture::new(OFFLINE_CPUS);
        let files = [
            "sys/devices/system/cpu/online",
            "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
            "sys/devices/system/cpu/cpu0/topology/physical_package_id",
            "sys/devices/system/cpu/cpu0/cache/index0/size",
            "sys/devices/system/node/node2/meminfo",
            "sys/devices/system/node/online",
        ];
        let contents = "[-0-9,KMx ]{0,12}|(Mem|MemTotal:|kB|[0-9 é]){0,6}";
        let usual: Vec<Option<String>> = files
            .iter()
            .map(|file| fixture.tree().text(file).unwrap())
            .collect();
        let which = 0..files.len();
        proptest!(ProptestConfig::with_cases(64), |(which in which, text in contents)| {
            fixture.write(files[which], &text);
            let read = Machine::from_sysfs(fixture.root());
            match &usual[which] {
                Some(usual) => fixture.write(files[which], usual),
                None => fixture.remove(files[which]),
            }
            if let Ok(machine) = read {
                prop_assert!(!machine.cpus.is_empty() && !machine.numa_nodes.is_empty());
            }
        });
    }
}
