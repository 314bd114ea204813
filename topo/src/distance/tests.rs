//! Distances on made-up topologies.

use super::*;
use crate::fixtures;

fn load(xml: &str) -> Topology {
    Topology::from_xml(xml).unwrap()
}

fn gb(gigabytes: f64) -> Option<Bandwidth> {
    Bandwidth::from_gb_per_s(gigabytes)
}

/// The names of the NICs that are nearest to `end`.
fn nearest<'a>(topology: &'a Topology, end: impl Into<End<'a>>) -> Vec<&'a str> {
    let end = end.into();
    let distance = |nic: &'a Nic| topology.distance(end, nic);
    let best = topology.nics.iter().map(distance).min();
    let nics = topology.nics.iter();
    nics.filter(|&nic| Some(distance(nic)) == best)
        .map(|nic| nic.name.as_str())
        .collect()
}

#[test]
fn switch_bridge_and_socket_are_told_apart_and_the_path_is_as_wide_as_its_narrowest_link() {
    let topology = load(fixtures::DGX_LIKE);
    let far = |nic: &str| {
        let distance = topology.distance(&topology.gpus[0], topology.nic(nic).unwrap());
        (distance.locality, distance.bandwidth)
    };
    assert_eq!(far("mlx5_0"), (Locality::SameSwitch, gb(63.0)));
    assert_eq!(far("mlx5_1"), (Locality::SameBridge, gb(31.5)));
    assert_eq!(far("mlx5_2"), (Locality::SameHost, gb(31.5)));
}

#[test]
fn every_gpu_is_nearest_to_the_nic_behind_its_own_switch() {
    for xml in [fixtures::DGX_LIKE, fixtures::EIGHT_GPUS_EIGHT_NICS] {
        let topology = load(xml);
        for (index, gpu) in topology.gpus.iter().enumerate() {
            assert_eq!(nearest(&topology, gpu), [format!("mlx5_{index}")]);
        }
    }
}

#[test]
fn of_nics_equally_near_the_one_with_the_wider_path_is_better() {
    let topology = load(fixtures::NVLINK_PAIRS);
    assert_eq!(nearest(&topology, &topology.gpus[2]), ["mlx5_2"]);
    assert_eq!(
        nearest(&topology, &topology.machine.numa_nodes[1]),
        ["mlx5_2"]
    );
    // Here the slots are alike, and the ports differ.
    let topology = load(fixtures::ARM_HOST);
    assert_eq!(nearest(&topology, &topology.gpus[0]), ["mlx5_0"]);
    let distance = topology.distance(&topology.gpus[0], &topology.nics[1]);
    assert_eq!(distance.locality, Locality::SameNode);
    assert_eq!(distance.bandwidth, gb(12.5));
}

#[test]
fn a_port_that_is_down_does_not_count() {
    let mut topology = load(fixtures::ARM_HOST);
    topology.nics[0].ports[0].state = Some(crate::devices::PortState::Down);
    assert_eq!(topology.nics[0].rate(), None);
    topology.nics[1].ports[0].state = None;
    assert_eq!(topology.nics[1].rate(), gb(12.5));
}

#[test]
fn nvlink_counts_between_the_gpus_that_it_joins_only() {
    let topology = load(fixtures::NVLINK_PAIRS);
    let gpus = &topology.gpus;
    let far = |one: usize, two: usize| {
        let distance = topology.distance(&gpus[one], &gpus[two]);
        (distance.locality, distance.bandwidth)
    };
    assert_eq!(far(0, 1), (Locality::NvLink, gb(300.0)));
    assert_eq!(far(3, 2), (Locality::NvLink, gb(200.0)));
    assert_eq!(far(1, 2).0, Locality::SameHost);
}

#[test]
fn on_a_flat_bus_all_are_alike_and_no_bandwidth_is_known() {
    let topology = load(fixtures::CLOUD_VM);
    for gpu in &topology.gpus {
        assert_eq!(nearest(&topology, gpu), ["efa_0", "efa_1"]);
        let distance = topology.distance(gpu, &topology.nics[0]);
        assert_eq!(
            (distance.locality, distance.bandwidth),
            (Locality::SameBridge, None)
        );
    }
}

#[test]
fn cpus_and_nodes_are_near_what_hangs_from_their_socket() {
    let topology = load(fixtures::TWO_SOCKETS_ONE_NIC);
    let nic = &topology.nics[0];
    let far = |cpus: &str| {
        let cpus: CpuSet = cpus.parse().unwrap();
        topology.distance(&cpus, nic).locality
    };
    assert_eq!(far("1,9"), Locality::SameNode);
    assert_eq!(far("0"), Locality::SameHost);
    assert_eq!(
        (far("0-1"), far(""), far("99")),
        (Locality::SameHost, Locality::SameHost, Locality::SameHost)
    );
    let nodes = &topology.machine.numa_nodes;
    assert_eq!(
        topology.distance(&nodes[1], nic).locality,
        Locality::SameNode
    );
    assert_eq!(
        topology.distance(&nodes[0], nic).locality,
        Locality::SameHost
    );
    let core = &topology.machine.cores[0].cpus;
    let thread: CpuSet = core.iter().take(1).collect();
    assert_eq!(topology.distance(core, &thread).locality, Locality::Same);
    assert_eq!(
        topology.distance(core, &nodes[0].cpus).locality,
        Locality::SameNode
    );
}

#[test]
fn nodes_of_one_package_are_nearer_than_those_of_two() {
    let mut topology = load(fixtures::TWO_SOCKETS_ONE_NIC);
    let halves = ["1,3,9,11", "5,7,13,15"].map(|cpus| cpus.parse::<CpuSet>().unwrap());
    topology.machine.numa_nodes[1].cpus = halves[0].clone();
    topology.nics[0].place = topology.place(None, halves[1].clone());
    let distance = topology.distance(&halves[0], &topology.nics[0]);
    assert_eq!(distance.locality, Locality::SamePackage);
}

#[test]
fn a_port_that_is_named_counts_with_its_own_rate() {
    let mut topology = load(fixtures::EIGHT_GPUS_EIGHT_NICS);
    let slow = crate::devices::Port {
        number: 2,
        rate: gb(3.0),
        ..topology.nics[1].ports[0]
    };
    topology.nics[1].ports.push(slow);
    let far = |port| topology.distance(&topology.gpus[1], topology.port(port).unwrap());
    let (first, second) = (far("mlx5_1:1"), far("mlx5_1:2"));
    assert_eq!((first.bandwidth, second.bandwidth), (gb(50.0), gb(3.0)));
    assert_eq!(
        first,
        topology.distance(&topology.gpus[1], &topology.nics[1])
    );
    assert!(first.locality == second.locality && first < second);
    let own = topology.distance(topology.port("mlx5_1:2").unwrap(), &topology.nics[1]);
    assert_eq!(own.locality, Locality::Same);
    for absent in [
        "mlx5_1",
        "mlx5_1:",
        "mlx5_1:3",
        "mlx5_1:257",
        "mlx5_9:1",
        ":1",
    ] {
        assert!(topology.port(absent).is_none(), "{absent}");
    }
}

#[test]
fn below_one_root_port_the_switch_that_is_deeper_is_nearer_whatever_the_width() {
    let mut topology = load(fixtures::EIGHT_GPUS_EIGHT_NICS);
    let switch = topology.gpus[0].place.bridge.unwrap();
    let upstream = topology.bridges[switch].place.bridge.unwrap();
    topology.nics[1].place.bridge = topology.bridges[upstream].place.bridge;
    topology.nics[0].ports[0].rate = gb(1.0);
    let far = |nic: usize| topology.distance(&topology.gpus[0], &topology.nics[nic]);
    assert_eq!(far(0).locality, Locality::SameSwitch);
    assert_eq!(far(1).locality, Locality::SameSwitch);
    assert!(far(0) < far(1) && far(0).bandwidth < far(1).bandwidth);
}

#[test]
fn functions_of_one_card_are_as_near_as_behind_one_switch() {
    let mut topology = load(fixtures::CLOUD_VM);
    let mut address = topology.nics[0].pci.unwrap().address;
    address.function = 1;
    topology.nics[1].pci.as_mut().unwrap().address = address;
    let distance = topology.distance(&topology.nics[0], &topology.nics[1]);
    assert_eq!(distance.locality, Locality::SameSwitch);
}

#[test]
fn distance_is_the_same_both_ways_and_least_to_oneself() {
    for (name, xml) in fixtures::ALL {
        let topology = load(xml);
        let mut ends: Vec<End<'_>> = topology.gpus.iter().map(End::from).collect();
        ends.extend(topology.nics.iter().map(End::from));
        ends.extend(topology.machine.numa_nodes.iter().map(End::from));
        ends.extend(
            topology
                .machine
                .cores
                .iter()
                .map(|core| End::from(&core.cpus)),
        );
        for (index, &one) in ends.iter().enumerate() {
            for (other, &two) in ends.iter().enumerate() {
                let distance = topology.distance(one, two);
                assert_eq!(distance, topology.distance(two, one), "{name}");
                let own = topology.distance(one, one);
                assert_eq!(
                    index == other,
                    distance.locality == Locality::Same,
                    "{name}"
                );
                assert!(index == other || own < distance, "{name}: {one:?} {two:?}");
            }
        }
    }
}

#[test]
fn bridges_that_contain_each_other_or_do_not_exist_end_the_walk() {
    let mut topology = load(fixtures::DGX_LIKE);
    let count = topology.bridges.len();
    for bridge in 0..count {
        topology.bridges[bridge].place.bridge = Some((bridge + 1) % count);
    }
    topology.nics[1].place.bridge = Some(count + 7);
    for nic in &topology.nics {
        let distance = topology.distance(&topology.gpus[0], nic);
        assert!(distance.shared_bridges <= count);
    }
    assert!(topology.to_string().contains("mlx5_1"));
    assert!(crate::svg(&topology, &[]).contains("mlx5_1"));
}
