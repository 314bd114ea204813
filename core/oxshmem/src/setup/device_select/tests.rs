//! Devices chosen on the fixtures' hosts, with stand-ins that declare what the real transports will.

use std::collections::{BTreeMap, BTreeSet};

use oxshmem_topo::{Bandwidth, CpuSet, Locality, Port, PortState, Topology, fixtures};
use proptest::prelude::*;

use crate::setup::device_select::{Anchor, Decided, Offer, decide, distance, offers};

fn topology(xml: &str) -> Topology {
    Topology::from_xml(xml).unwrap()
}

fn gpus(topology: &Topology) -> Vec<String> {
    topology.gpus.iter().map(|gpu| gpu.name.clone()).collect()
}

fn ports(topology: &Topology) -> Vec<String> {
    let first = |nic: &oxshmem_topo::Nic| format!("{}:1", nic.name);
    topology.nics.iter().map(first).collect()
}

/// The offers of a PE of this host, with a transport for GPUs (or none) and one for NICs.
fn tell(topology: &Topology, cpus: &CpuSet, with_gpus: bool) -> Vec<Offer> {
    let mut transports = vec![
        ("loopback", vec!["memory".to_owned()]),
        ("verbs", ports(topology)),
    ];
    if with_gpus {
        transports.insert(0, ("nvlink", gpus(topology)));
    }
    let mine = offers(Some(topology), cpus, &transports);
    // The offers as other PEs receive them.
    serde_json::from_str(&serde_json::to_string(&mine).unwrap()).unwrap()
}

/// The CPUs of `pes` PEs, each bound to a core of its own in turn, or free.
fn cpus(topology: &Topology, pes: usize, bound: bool) -> Vec<CpuSet> {
    let cores = topology.machine.cores.iter().map(|core| &core.cpus).cycle();
    let all = &topology.machine.cpus;
    cores
        .take(pes)
        .map(|core| if bound { core } else { all }.clone())
        .collect()
}

fn share(told: &[Vec<Offer>]) -> Vec<Vec<Decided>> {
    decide(&told.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// The decision about one transport: the device's name and the rest.
fn of<'a>(offers: &'a [Offer], decided: &'a [Decided], transport: &str) -> (&'a str, &'a Decided) {
    let at = offers
        .iter()
        .position(|o| o.transport == transport)
        .unwrap();
    (&offers[at].devices[decided[at].device], &decided[at])
}

#[test]
fn every_gpu_gets_the_nic_behind_its_own_switch() {
    for xml in [fixtures::DGX_LIKE, fixtures::EIGHT_GPUS_EIGHT_NICS] {
        let host = topology(xml);
        let pes = host.gpus.len();
        for bound in [false, true] {
            let sets = cpus(&host, pes, bound);
            let all_offers: Vec<_> = sets.iter().map(|set| tell(&host, set, true)).collect();
            let mut taken = BTreeSet::new();
            for (offers, decided) in all_offers.iter().zip(share(&all_offers)) {
                let (gpu, _) = of(offers, &decided, "nvlink");
                let (nic, how) = of(offers, &decided, "verbs");
                assert_eq!(how.near, Anchor::Gpu(gpu.into()));
                let far = distance(&host, host.gpu(gpu).unwrap(), nic).unwrap();
                assert_eq!(far.locality, Locality::SameSwitch, "{gpu} {nic}");
                // A core's PE may share a GPU, where GPUs and cores are spread unlike.
                assert!(bound || taken.insert(nic.to_owned()), "{gpu} {nic}");
            }
        }
    }
}

#[test]
fn one_nic_leaves_nothing_to_choose_and_costs_no_exchange() {
    let host = topology(fixtures::TWO_SOCKETS_ONE_NIC);
    assert!(tell(&host, &host.machine.cpus, false).is_empty());
    let host = topology(fixtures::NO_NICS);
    assert!(tell(&host, &host.machine.cpus, true).is_empty());
}

#[test]
fn on_every_host_the_nearest_are_taken_and_balanced_within_one() {
    for (name, xml) in fixtures::ALL {
        let host = topology(xml);
        for (pes, bound, with_gpus) in (1..=19).flat_map(|pes| {
            [
                (pes, false, false),
                (pes, true, false),
                (pes, false, true),
                (pes, true, true),
            ]
        }) {
            let sets = cpus(&host, pes, bound);
            let all_offers: Vec<_> = sets.iter().map(|set| tell(&host, set, with_gpus)).collect();
            let decided = share(&all_offers);
            assert_eq!(decided, share(&all_offers));
            // The number of PEs of each device, by the set of devices that they choose among.
            let mut loads: BTreeMap<(String, Vec<&str>), BTreeMap<&str, usize>> = BTreeMap::new();
            for ((offers, decided), set) in all_offers.iter().zip(&decided).zip(&sets) {
                for offer in offers {
                    let (device, how) = of(offers, decided, &offer.transport);
                    let far = |device: &str| match &how.near {
                        Anchor::Gpu(gpu) => distance(&host, host.gpu(gpu).unwrap(), device),
                        Anchor::Cpus => distance(&host, set, device),
                    };
                    let least = offer.devices.iter().map(|d| far(d)).min().unwrap();
                    assert_eq!(far(device), least, "{name}: {device}");
                    let alike = offer.devices.iter().map(String::as_str);
                    let alike: Vec<&str> = alike.filter(|d| far(d) == least).collect();
                    let load = loads
                        .entry((offer.transport.clone(), alike.clone()))
                        .or_default();
                    for device in alike {
                        load.entry(device).or_default();
                    }
                    *load.entry(device).or_default() += 1;
                }
            }
            for ((transport, _), load) in loads {
                let (least, most) = (load.values().min().unwrap(), load.values().max().unwrap());
                assert!(
                    most - least <= 1,
                    "{name}, {pes} PEs, {transport}: {load:?}"
                );
            }
        }
    }
}

#[test]
fn a_wider_nic_goes_before_a_narrow_one_as_near() {
    let host = topology(fixtures::NVLINK_PAIRS);
    let offers = tell(&host, &host.machine.cpus, true);
    let verbs = offers
        .iter()
        .find(|offer| offer.transport == "verbs")
        .unwrap();
    let mut as_near_but_narrower = 0;
    for (gpu, ranks) in &verbs.near_gpus {
        let far = |device: &String| distance(&host, host.gpu(gpu).unwrap(), device).unwrap();
        for (a, rank_a) in verbs.devices.iter().zip(ranks) {
            for (b, rank_b) in verbs.devices.iter().zip(ranks) {
                assert_eq!(rank_a.cmp(rank_b), far(a).cmp(&far(b)), "{gpu}: {a}, {b}");
                let (near, other) = (far(a), far(b));
                if near.locality == other.locality && near.bandwidth > other.bandwidth {
                    assert!(rank_a < rank_b, "{gpu}: {a}, {b}");
                    as_near_but_narrower += 1;
                }
            }
        }
    }
    assert!(as_near_but_narrower > 0, "the fixture has a narrow NIC");
}

#[test]
fn a_nic_counts_by_the_port_that_is_named_and_one_that_is_down_comes_last() {
    let mut host = topology(fixtures::TWO_SOCKETS_ONE_NIC);
    let mut nic = host.nics.remove(0);
    let port = |number, gigabits, state| Port {
        number,
        state: Some(state),
        link_layer: None,
        rate: Bandwidth::from_gbit_per_s(gigabits),
    };
    nic.name = "mlx5_0".into();
    // By its best port the NIC is the better one; by the named ones it is not.
    nic.ports = vec![
        port(1, 400.0, PortState::Down),
        port(2, 10.0, PortState::Active),
    ];
    let other = oxshmem_topo::Nic {
        name: "mlx5_1".into(),
        ports: vec![
            port(1, 25.0, PortState::Active),
            port(2, 1.0, PortState::Init),
        ],
        ..nic.clone()
    };
    let dark = oxshmem_topo::Nic {
        name: "mlx5_2".into(),
        ports: vec![port(1, 400.0, PortState::Down)],
        ..nic.clone()
    };
    host.nics = vec![nic, other, dark];
    let devices = ["mlx5_0:1", "mlx5_0:2", "mlx5_1:1", "mlx5_1:2", "mlx5_2"].map(str::to_owned);
    let offers = offers(
        Some(&host),
        &host.machine.cpus,
        &[("verbs", devices.to_vec())],
    );
    assert_eq!(offers[0].near_cpus, [3, 1, 0, 2, 3]);
}

#[test]
fn without_a_topology_devices_are_balanced_all_the_same() {
    let devices = vec!["a:1".to_owned(), "b:1".to_owned()];
    let offers = offers(None, &CpuSet::default(), &[("verbs", devices)]);
    let decided = share(&vec![offers; 5]);
    let second = decided.iter().filter(|all| all[0].device == 1).count();
    assert_eq!(second, 2);
    assert_eq!(decided.iter().map(|all| all[0].sharing).max(), Some(3));
}

proptest! {
    /// Whatever offers hosts' PEs make, hostile or not, each gets one of its nearest, and those that have
    /// the same choice get devices within one of each other.
    #[test]
    fn any_offers_are_decided_within_one(
        near in proptest::collection::vec(proptest::collection::vec(0_u16..2, 0..5), 0..12)
    ) {
        let names = |n| (0..n).map(|d| format!("nic{d}")).collect::<Vec<_>>();
        let all_offers: Vec<Vec<Offer>> = near
            .iter()
            .map(|ranks| vec![Offer {
                transport: "verbs".into(),
                devices: names(ranks.len()),
                gpus: false,
                near_cpus: ranks.clone(),
                near_gpus: Vec::new(),
            }])
            .collect();
        let mut loads: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for (ranks, decided) in near.iter().zip(share(&all_offers)) {
            let device = decided[0].device;
            prop_assert!(ranks.is_empty() || ranks.get(device) == ranks.iter().min());
            let least = ranks.iter().min();
            let alike = (0..ranks.len()).filter(|&d| ranks.get(d) == least).collect();
            loads.entry(alike).or_default().push(device);
        }
        // With one set of choices there is nothing to even out between.
        if loads.len() == 1 {
            for (alike, devices) in loads {
                let load = |d| devices.iter().filter(|&&given| given == d).count();
                let most = alike.iter().map(|&d| load(d)).max().unwrap_or(0);
                let least = alike.iter().map(|&d| load(d)).min().unwrap_or(0);
                prop_assert!(most - least <= 1);
            }
        }
    }
}

#[test]
fn further_devices_come_by_their_distance_and_are_spare_where_they_are_as_near_and_nobodys() {
    let devices = ["a:1", "b:1", "c:1", "d:1"].map(str::to_owned);
    let offer = Offer {
        transport: "verbs".into(),
        devices: devices.to_vec(),
        gpus: false,
        near_cpus: vec![0, 1, 0, 0],
        near_gpus: vec![("GPU".into(), vec![2, 0, 1, 0])],
    };
    let decided = |device, near| Decided {
        device,
        near,
        sharing: 1,
    };
    let by_cpus = offer.beside(&decided(0, Anchor::Cpus), &["a:1", "d:1"]);
    assert_eq!(by_cpus, [(2, true), (3, false), (1, false)]);
    let by_gpu = offer.beside(&decided(1, Anchor::Gpu("GPU".into())), &["b:1"]);
    assert_eq!(by_gpu, [(3, true), (2, false), (0, false)]);
}
