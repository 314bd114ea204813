//! Topologies read from XML.

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::cpu_set::CpuSet;
use crate::devices::{LinkLayer, PortState};
use crate::fixture::Fixture;
use crate::fixtures;

/// A host of two CPUs, with `inside` below the machine and `after` it.
fn host(inside: &str, after: &str) -> String {
    format!(
        r#"<?xml version="1.0"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine" cpuset="0x3" gp_index="1">
<object type="NUMANode" os_index="0" cpuset="0x3" gp_index="2"/>
<object type="PU" os_index="0" cpuset="0x1" gp_index="3"/>
<object type="PU" os_index="1" cpuset="0x2" gp_index="4"/>
{inside}</object>{after}</topology>"#
    )
}

/// The message that the text is refused with.
fn refusal(text: &str) -> String {
    match Topology::from_xml(text) {
        Err(error @ (Error::Xml { .. } | Error::XmlVersion { .. })) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("read: {}", quoted(text)),
    }
}

#[test]
fn a_host_is_read_whole() {
    let topology = Topology::from_xml(fixtures::EIGHT_GPUS_EIGHT_NICS).unwrap();
    let machine = &topology.machine;
    assert_eq!((machine.hostname.as_str(), machine.packages), ("eight", 2));
    assert_eq!((machine.cpus.len(), machine.cores.len()), (32, 16));
    assert_eq!(machine.cores[9].cpus.to_string(), "9,25");
    assert_eq!(machine.cores[9].package, 1);
    assert_eq!(machine.numa_nodes[1].memory, 1 << 40);
    let cache = machine.caches.last().unwrap();
    assert_eq!((cache.level, cache.bytes), (3, 105 << 20));
    assert_eq!(cache.cpus, topology.packages[1].cpus);
    assert_eq!((topology.gpus.len(), topology.nics.len()), (8, 8));
    let nic = topology.nic("mlx5_5:1").unwrap();
    assert_eq!(nic.pci.unwrap().address.to_string(), "0000:64:00.0");
    assert_eq!(
        (nic.interfaces[0].as_str(), nic.place.node),
        ("ib5", Some(1))
    );
    let port = nic.ports[0];
    assert_eq!((port.number, port.state), (1, Some(PortState::Active)));
    assert_eq!(port.link_layer, Some(LinkLayer::InfiniBand));
    assert_eq!(nic.rate().map(|rate| rate.mb_per_s()), Some(50_000));
    let gpu = topology.gpu("gpu6").unwrap();
    for name in [
        "nvml6",
        "0000:73:00.0",
        "GPU-00000000-0000-0000-0000-000000000006",
    ] {
        assert_eq!(topology.gpu(name), Some(gpu), "{name}");
    }
    assert_eq!(topology.gpu("nvml60"), None);
    assert_eq!(gpu.model.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    // Every pair, through four switches.
    assert_eq!(topology.nvlinks.len(), 28);
    assert!(
        topology
            .nvlinks
            .iter()
            .all(|link| link.bandwidth.mb_per_s() == 450_000)
    );
}

#[test]
fn what_has_no_nic_or_gpu_below_is_left_out() {
    let topology = Topology::from_xml(fixtures::NO_NICS).unwrap();
    assert_eq!(
        (
            topology.bridges.len(),
            topology.nics.len(),
            topology.gpus.len()
        ),
        (0, 0, 0)
    );
    // The four NVSwitches hang from a bridge of their own.
    let topology = Topology::from_xml(fixtures::EIGHT_GPUS_EIGHT_NICS).unwrap();
    assert_eq!(topology.bridges.len(), 40);
}

#[test]
fn memory_of_a_gpu_is_a_node_without_cpus() {
    let topology = Topology::from_xml(fixtures::ARM_HOST).unwrap();
    assert!(topology.numa_node(1).unwrap().cpus.is_empty());
    assert!(topology.nics.iter().all(|nic| nic.place.node == Some(0)));
}

#[test]
fn devices_off_pci_are_found_and_a_host_without_cores_has_one_a_cpu() {
    let text = host(
        r#"<object type="OSDev" gp_index="8" name="rxe0" osdev_type="3"><info name="Port1State" value="9"/></object>
           <object type="OSDev" gp_index="9" name="cuda0" subtype="CUDA" osdev_type="5"/>
           <object type="OSDev" gp_index="10" name="card0" osdev_type="1"/>"#,
        "",
    );
    let topology = Topology::from_xml(&text).unwrap();
    assert_eq!(topology.machine.cores.len(), 2);
    assert_eq!((topology.nics.len(), topology.gpus.len()), (1, 1));
    assert_eq!(topology.nics[0].ports[0].state, Some(PortState::Other(9)));
    assert_eq!(topology.gpu("cuda0").unwrap().name, "gpu0");
    assert_eq!(topology.nics[0].place.cpus, topology.machine.cpus);
}

#[test]
fn packages_without_a_number_have_the_next() {
    let package = |cpus| {
        format!(
            r#"<object type="Package" cpuset="{cpus}"><object type="Core" cpuset="{cpus}"/></object>"#
        )
    };
    let topology = Topology::from_xml(&host(&(package("0x1") + &package("0x2")), "")).unwrap();
    let packages = topology.packages.iter();
    let packages: Vec<_> = packages.map(|one| (one.index, one.cpus.to_vec())).collect();
    assert_eq!(packages, [(0, vec![0]), (1, vec![1])]);
}

/// A PCI function with `inside` below it.
fn function(gp_index: u32, bus: u8, kind: &str, inside: &str) -> String {
    format!(
        r#"<object type="PCIDev" gp_index="{gp_index}" pci_busid="0000:{bus:02x}:00.0" pci_type="{kind} [0:0] a1">{inside}</object>"#
    )
}

#[test]
fn gpus_are_numbered_by_vendor_and_address_nvidias_first() {
    let functions = [
        function(20, 0, "0300 [8086:a780]", ""),
        function(21, 3, "0380 [1002:740f]", ""),
        function(22, 5, "0302 [10de:2330]", ""),
        function(23, 4, "0300 [10de:2330]", ""),
    ];
    let matrix = r#"<distances2 name="NVLinkBandwidth"><indexes>22 23</indexes>
        <u64values>0 7 7 0</u64values></distances2>"#;
    let topology = Topology::from_xml(&host(&functions.concat(), matrix)).unwrap();
    let names = topology.gpus.iter().map(|gpu| {
        let pci = gpu.pci.unwrap();
        (gpu.name.as_str(), pci.vendor, pci.address.bus)
    });
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            ("gpu0", 0x10de, 4),
            ("gpu1", 0x10de, 5),
            ("gpu2", 0x1002, 3),
            ("gpu3", 0x8086, 0),
        ]
    );
    assert_eq!(topology.nvlinks[0].gpus, (0, 1));
}

#[test]
fn a_gpu_is_what_its_class_and_vendor_or_a_library_for_gpus_says() {
    let named =
        |subtype: &str| format!(r#"<object type="OSDev" name="a" osdev_type="5" {subtype}/>"#);
    for (kind, inside, is_gpu) in [
        ("1200 [1002:75a0]", String::new(), true),
        ("1200 [8086:7d1d]", String::new(), false),
        ("0300 [1a03:2000]", String::new(), false),
        ("0380 [1002:740f]", String::new(), true),
        ("0b40 [1234:1111]", named(r#"subtype="CUDA""#), true),
        ("0b40 [1234:1111]", named(r#"subtype="NVML""#), true),
        ("0b40 [1234:1111]", named(r#"subtype="RSMI""#), true),
        ("0b40 [1234:1111]", named(r#"subtype="LevelZero""#), true),
        (
            "0b40 [1234:1111]",
            named(r#"subtype="VectorEngine""#),
            false,
        ),
        ("0300 [1a03:2000]", named(""), false),
    ] {
        let topology = Topology::from_xml(&host(&function(20, 1, kind, &inside), "")).unwrap();
        assert_eq!(topology.gpus.len(), usize::from(is_gpu), "{kind} {inside}");
    }
}

#[test]
fn other_versions_are_refused_with_the_one_that_is_understood() {
    for (version, found) in [
        ("", "\"1\""),
        (r#"version="1.0""#, "\"1.0\""),
        (r#"version="3.0""#, "\"3.0\""),
        (r#"version="20""#, "\"20\""),
        (r#"version="""#, "\"\""),
    ] {
        let message = refusal(&host("", "").replace(r#"version="2.0""#, version));
        assert!(
            message.contains(found) && message.contains("version 2 is"),
            "{message}"
        );
    }
    let later = host("", "").replace(r#"version="2.0""#, r#"version="2.99""#);
    assert!(Topology::from_xml(&later).is_ok());
}

#[test]
fn each_contradiction_is_refused_and_named() {
    let bridge = |attributes: &str| format!(r#"<object type="Bridge" gp_index="9" {attributes}/>"#);
    let pci = |attributes: &str| format!(r#"<object type="PCIDev" gp_index="9" {attributes}/>"#);
    let nic = |index: u8| {
        format!(r#"<object type="OSDev" gp_index="{index}" name="mlx5_0" osdev_type="3"/>"#)
    };
    for (inside, part) in [
        (r#"<object type="Core" cpuset="three"/>"#.to_owned(), "line 7: \"object\" \"Core\""),
        (r#"<object type="Core" cpuset="0xf...f"/>"#.to_owned(), "no end"),
        (r#"<object type="Package" cpuset="0x1" os_index="-1"/>"#.to_owned(), "os_index"),
        (r#"<object type="L1Cache" cpuset="0x1" depth="9" cache_size="1e9"/>"#.to_owned(), "1e9"),
        (
            r#"<object type="NUMANode" cpuset="0x1" os_index="7" local_memory="99999999999999999999"/>"#.to_owned(),
            "99999999999999999999",
        ),
        (r#"<object type="NUMANode" cpuset="0x1" os_index="0"/>"#.to_owned(), "two NUMA nodes"),
        (r#"<object type="Misc" gp_index="3"/>"#.to_owned(), "gp_index 3 is not the first"),
        (bridge(""), "bridge_type"),
        (bridge(r#"bridge_type="1-1""#), "PCI address"),
        (bridge(r#"bridge_type="0-1" bridge_pci="0000:00-1f""#), "0000:00-1f"),
        (pci(r#"pci_busid="0000:00:01.0""#), "pci_type"),
        (pci(r#"pci_busid="00:01" pci_type="0302 [10de:2330] [0:0] a1""#), "00:01"),
        (
            pci(r#"pci_busid="0000:00:01.0" pci_type="0302 [10de:2330] [0:0] a1" pci_link_speed="fast""#),
            "fast",
        ),
        (r#"<object type="Group" cpuset="0x4"/>"#.to_owned(), "line 7: \"object\" \"Group\": it has a CPU"),
        (
            r#"<object type="Package" cpuset="0x1" os_index="3"/>"#.repeat(2),
            "os_index 3 is not the first",
        ),
        (r#"<object type="PU" cpuset="0x2"/>"#.to_owned(), "CPU 1 is in two cores"),
        (r#"<object type="Core" cpuset="0x3"/>"#.repeat(2), "CPU 0 is in two cores"),
        (nic(8) + &nic(9), "two NICs are called \"mlx5_0\""),
    ] {
        let message = refusal(&host(&inside, ""));
        assert!(message.contains(part), "{message}");
    }
    let machine = r#"<object type="Machine" cpuset="0x3" gp_index="1">"#;
    for (with, part) in [
        (r#"<object type="Machine" gp_index="1">"#, "no CPU"),
        (
            r#"<object type="Machine" cpuset="0x0" gp_index="1">"#,
            "no CPU",
        ),
        (
            r#"<object type="Package" cpuset="0x3" gp_index="1">"#,
            "a Machine",
        ),
    ] {
        let message = refusal(&host("", "").replace(machine, with));
        assert!(message.contains(part), "{message}");
    }
    for text in [
        "",
        "not XML",
        "<topology version='2.0'>",
        "<a></b>",
        "<a b='1' b='2'/>",
    ] {
        let message = refusal(text);
        assert!(message.contains("makes no sense"), "{message}");
    }
    assert!(refusal("<html/>").contains("\"html\""));
    assert!(refusal("<topology version='2.0'/>").contains("a Machine"));
}

#[test]
fn a_matrix_that_does_not_fit_its_objects_is_refused() {
    let matrix = |indexes: &str, values: &str| {
        let text = format!(
            r#"<distances2 type="OSDev" name="NVLinkBandwidth" indexing="gp">
               <indexes>{indexes}</indexes><u64values>{values}</u64values></distances2>"#
        );
        host("", &text)
    };
    assert!(Topology::from_xml(&matrix("1 2", "1 2 3 4")).is_ok());
    assert!(refusal(&matrix("1 2", "1 2 3")).contains("3 values for 2 objects"));
    assert!(refusal(&matrix("1 x", "1 2 3 4")).contains("\"x\""));
    assert!(refusal(&matrix("1 2", "1 2 3 -4")).contains("\"-4\""));
    let many: Vec<String> = (0..2000).map(|index| index.to_string()).collect();
    assert!(refusal(&matrix(&many.join(" "), "")).contains("1024 objects"));
    let huge = fixtures::NVLINK_PAIRS.replace("300000", "18446744073709551615");
    assert!(refusal(&huge).contains("18446744073709551615 MB/s"));
}

#[test]
fn a_pair_in_several_matrices_appears_once_with_the_widest() {
    let text = fixtures::NVLINK_PAIRS;
    let start = text.find("<distances2").unwrap();
    let end = text.rfind("</topology>").unwrap();
    let matrix = &text[start..end];
    let narrower = matrix.replace("300000", "7");
    let wider = matrix.replace("200000", "250000");
    let all = [&text[..start], &narrower, matrix, &wider, "</topology>"].concat();
    let links = Topology::from_xml(&all).unwrap().nvlinks;
    let links = links
        .iter()
        .map(|link| (link.gpus, link.bandwidth.mb_per_s()));
    assert_eq!(
        links.collect::<Vec<_>>(),
        [((0, 1), 300_000), ((2, 3), 250_000)]
    );
}

#[test]
fn a_file_is_read_as_its_text_is_and_one_that_is_not_plain_is_refused_unopened() {
    let fixture = Fixture::new("");
    let read = |file: &str| Topology::from_xml_file(&fixture.root().join(file));
    fixture.write("host.xml", fixtures::DGX_LIKE);
    assert_eq!(
        read("host.xml").unwrap(),
        Topology::from_xml(fixtures::DGX_LIKE).unwrap()
    );

    // To open it would wait for a writer, for ever.
    let fifo = fixture.root().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for (file, part) in [
        ("fifo", "not a plain file"),
        (".", "not a plain file"),
        ("none", "none"),
    ] {
        let error = read(file).unwrap_err();
        assert!(matches!(error, Error::XmlFile { .. }), "{error}");
        let message = error.to_string();
        assert!(
            message.contains(part) && message.contains("lstopo"),
            "{message}"
        );
    }

    fixture.write("long.xml", &" ".repeat(Topology::LONGEST_XML));
    let error = read("long.xml").unwrap_err();
    assert!(error.to_string().contains("over 16777216 bytes"), "{error}");
}

/// Each would cost an unwary reader its memory, its stack or hours, so that this test would not end.
#[test]
fn hostile_text_is_refused_before_it_costs_much() {
    let bomb = r#"<?xml version="1.0"?><!DOCTYPE topology [<!ENTITY a "aaaaaaaaaa">
        <!ENTITY b "&a;&a;&a;&a;">]><topology version="2.0">&b;</topology>"#;
    assert!(refusal(bomb).contains("<!ENTITY"));
    let deep = r#"<object type="Group">"#.repeat(100_000) + &"</object>".repeat(100_000);
    assert!(refusal(&host(&deep, "")).contains("deeper than 256"));
    let bridges = r#"<object type="Bridge" bridge_type="0-1">"#.repeat(300);
    let deep = bridges + &"</object>".repeat(300);
    assert!(refusal(&host(&deep, "")).contains("deeper than 256"));
    let attributes: String = (0..300_000).map(|index| format!(" a{index}='>'")).collect();
    assert!(refusal(&host(&format!("<object{attributes}/>"), "")).contains("256 attributes"));
    let spaces: String = (0..100)
        .map(|index| format!(" xmlns:a{index}='b'"))
        .collect();
    assert!(refusal(&host(&format!("<object{spaces}/>"), "")).contains("xmlns"));
    let nodes = "<a/>".repeat(600_000);
    assert!(refusal(&host("", &nodes)).contains("nodes limit"));
    let devices = r#"<object type="Bridge" bridge_type="0-1"/>"#.repeat(5000);
    assert!(refusal(&host(&devices, "")).contains("4096 devices"));
    for (object, most) in [
        (
            r#"<object type="NUMANode" cpuset="0x0"/>"#,
            "1024 of its kind",
        ),
        (
            r#"<object type="Package" cpuset="0x0"/>"#,
            "1024 of its kind",
        ),
        (
            r#"<object type="L1Cache" depth="1" cpuset="0x0"/>"#,
            "32768 of its kind",
        ),
    ] {
        assert!(refusal(&host(&object.repeat(250_000), "")).contains(most));
    }
    let with_machine = |cpus: &str, inside: &str| {
        host(inside, "").replacen(r#"cpuset="0x3""#, &format!(r#"cpuset="{cpus}""#), 1)
    };
    let all = vec!["0xffffffff"; CpuSet::LIMIT / 32].join(",");
    let sets = format!(r#"<object type="Group" cpuset="{all}"/>"#).repeat(100);
    assert!(refusal(&with_machine(&all, &sets)).contains("name over"));
    let near = r#"<object type="Bridge" bridge_type="0-1"/>"#.repeat(100);
    let group = format!(r#"<object type="Group" cpuset="{all}">{near}</object>"#);
    assert!(refusal(&with_machine(&all, &group)).contains("name over"));
    // Each device lies near a set of its own, which every one of as many nodes has.
    let thousand = vec!["0xffffffff"; 32].join(",");
    let node =
        |index| format!(r#"<object type="NUMANode" os_index="{index}" cpuset="{thousand}"/>"#);
    let nodes: String = (1..600).map(node).collect();
    let groups = format!(
        r#"<object type="Group" cpuset="{thousand}"><object type="Bridge" bridge_type="0-1"/></object>"#
    );
    let compared = with_machine(&thousand, &(nodes + &groups.repeat(600)));
    assert!(refusal(&compared).contains("too many sets"));
    let long = " ".repeat(Topology::LONGEST_XML + 1);
    assert!(refusal(&long).contains("over 16777216 bytes"));
}

/// To look among all for each would take minutes, so that this test would not end.
#[test]
fn the_largest_host_that_is_read_is_shown_soon() {
    let nodes: String = (1..1024)
        .map(|index| format!(r#"<object type="NUMANode" os_index="{index}" cpuset="0x1"/>"#))
        .collect();
    let gpus: String = (0..4000)
        .map(|index| {
            let (bus, device) = (index / 32, index % 32);
            format!(
                r#"<object type="PCIDev" pci_busid="0000:{bus:02x}:{device:02x}.0" pci_type="0302 [10de:2330] [0:0] a1" gp_index="{}"/>"#,
                100 + index
            )
        })
        .collect();
    // One pair is unlike all others, so that each is shown.
    let indexes: Vec<String> = (100..1100).map(|index| index.to_string()).collect();
    let mut values = vec!["4"; 1_000_000];
    values[1] = "5";
    let matrix = format!(
        r#"<distances2 name="NVLinkBandwidth"><indexes>{}</indexes><u64values>{}</u64values></distances2>"#,
        indexes.join(" "),
        values.join(" ")
    );
    let topology = Topology::from_xml(&host(&(nodes + &gpus), &matrix)).unwrap();
    assert_eq!(topology.nvlinks.len(), 1000 * 999 / 2);
    assert!(topology.to_string().lines().count() > 1024 + 4000 + topology.nvlinks.len());
    assert!(crate::svg(&topology, &[]).contains("gpu3999"));
}

/// A fixture with spans of its bytes taken out, repeated, or replaced by another fixture's.
fn mutated() -> impl Strategy<Value = String> {
    let span = || (any::<prop::sample::Index>(), 0..200usize);
    let change = (0..3usize, span(), span());
    let which = || prop::sample::select(fixtures::ALL.map(|(_, xml)| xml).to_vec());
    (which(), which(), prop::collection::vec(change, 1..6)).prop_map(|(base, other, changes)| {
        let mut bytes = base.as_bytes().to_vec();
        for (kind, (from, length), (at, spare)) in changes {
            if bytes.is_empty() {
                break;
            }
            let start = from.index(bytes.len());
            let end = (start + length).min(bytes.len());
            let begin = at.index(other.len());
            let with = match kind {
                0 => Vec::new(),
                1 => bytes[start..end].repeat(2),
                _ => other.as_bytes()[begin..(begin + spare).min(other.len())].to_vec(),
            };
            bytes.splice(start..end, with);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A fixture with one attribute's value replaced by something of the same look.
fn with_another_value() -> impl Strategy<Value = String> {
    let which = prop::sample::select(fixtures::ALL.map(|(_, xml)| xml).to_vec());
    let value = prop_oneof![
        Just("0xf...f".to_owned()),
        "[-0-9a-fx.,:]{0,20}",
        "[0-9]{1,25}",
        "0000:\\[[0-9a-f]{2}-[0-9a-f]{2}\\]",
        "\\PC{0,8}",
    ];
    (which, any::<prop::sample::Index>(), value).prop_map(|(xml, at, value)| {
        let quotes: Vec<usize> = xml.match_indices('"').map(|(at, _)| at).collect();
        let pair = at.index(quotes.len() / 2) * 2;
        let value = value.replace(['"', '<', '&'], "");
        let (start, end) = (quotes[pair] + 1, quotes[pair + 1]);
        format!("{}{value}{}", &xml[..start], &xml[end..])
    })
}

/// Checks the invariants of a topology that was read.
fn check(topology: &Topology) -> Result<(), TestCaseError> {
    prop_assert!(!topology.machine.cpus.is_empty() && !topology.machine.numa_nodes.is_empty());
    for (index, bridge) in topology.bridges.iter().enumerate() {
        prop_assert!(bridge.place.bridge.is_none_or(|above| above < index));
    }
    for link in &topology.nvlinks {
        prop_assert!(link.gpus.0 < link.gpus.1 && link.gpus.1 < topology.gpus.len());
    }
    for nic in &topology.nics {
        prop_assert!(topology.nic(&nic.name).is_some());
        for gpu in &topology.gpus {
            let distance = topology.distance(gpu, nic);
            prop_assert_eq!(distance, topology.distance(nic, gpu));
        }
    }
    let text = topology.to_string();
    prop_assert!(text.lines().count() > topology.bridges.len() + topology.nics.len());
    let drawing = crate::svg(topology, &[]);
    prop_assert!(Document::parse(&drawing).is_ok(), "{}", drawing);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_description_gives_a_sound_topology_or_an_error(text in mutated()) {
        if let Ok(topology) = Topology::from_xml(&text) {
            check(&topology)?;
        }
    }

    #[test]
    fn another_value_of_any_attribute_gives_a_sound_topology_or_an_error(
        text in with_another_value(),
    ) {
        if let Ok(topology) = Topology::from_xml(&text) {
            check(&topology)?;
        }
    }

    #[test]
    fn text_that_is_no_description_gives_an_error(
        text in "\\PC{0,64}|(<|>|/|object|topology|version='2.0'|\"|=| ){0,24}",
    ) {
        prop_assert!(Topology::from_xml(&text).is_err());
    }
}
