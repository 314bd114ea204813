//! `oxshmem-topo`, which opens libhwloc itself, against the crate hwlocality, which is linked with it.

#![allow(clippy::unwrap_used)]

use hwlocality::topology::builder::{BuildFlags, TypeFilter};
use hwlocality::topology::export::xml::XMLExportFlags;
use oxshmem_topo::{Topology, fixtures};

/// hwloc's export, read by oxshmem.
fn exported(hwloc: &hwlocality::Topology) -> Topology {
    let xml = hwloc.export_xml(XMLExportFlags::default()).unwrap();
    Topology::from_xml(xml.as_str()).unwrap()
}

#[test]
fn hwloc_takes_every_fixture_and_its_own_writing_of_it_reads_the_same() {
    for (name, xml) in fixtures::ALL {
        let loaded = hwlocality::Topology::builder()
            .from_xml(&without_comment(xml))
            .unwrap()
            .with_io_type_filter(TypeFilter::KeepAll)
            .unwrap()
            .build()
            .unwrap();
        let read = Topology::from_xml(xml).unwrap();
        assert_eq!(read, exported(&loaded), "{name}");
    }
}

/// The form that hwloc's own small parser takes too, which is the only one where Debian's libhwloc-plugins is not.
fn without_comment(xml: &str) -> String {
    let (before, rest) = xml.split_once("<!--").unwrap();
    let (_, after) = rest.split_once("-->").unwrap();
    [before, after.trim_start()].concat()
}

#[test]
fn this_machine_is_described_as_by_hwlocality() {
    let loaded = hwlocality::Topology::builder()
        .with_flags(BuildFlags::INCLUDE_DISALLOWED)
        .unwrap()
        .with_io_type_filter(TypeFilter::KeepImportant)
        .unwrap()
        .build()
        .unwrap();
    let expected = exported(&loaded);
    let found = Topology::from_hwloc().unwrap();
    assert_eq!(found.packages, expected.packages);
    assert_eq!(found.bridges, expected.bridges);
    assert_eq!(found.gpus, expected.gpus);
    let (found, expected) = (found.machine, expected.machine);
    assert_eq!(found.cpus, expected.cpus);
    assert_eq!(found.cores, expected.cores);
    assert_eq!(found.caches, expected.caches);
    let nodes = |machine: &oxshmem_topo::Machine| {
        let nodes = machine.numa_nodes.iter();
        let nodes = nodes.map(|node| (node.index, node.memory, node.cpus.clone()));
        nodes.collect::<Vec<_>>()
    };
    assert_eq!(nodes(&found), nodes(&expected));
}
