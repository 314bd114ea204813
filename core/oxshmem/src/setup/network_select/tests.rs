//! Networks and devices chosen on tables of cards: typical nodes, rails apart, hosts that lack a network, ties.

use std::collections::BTreeSet;

use oxshmem_topo::CpuSet;
use oxshmem_transport::{Device, Network};
use proptest::prelude::*;

use crate::setup::device_select::{Offer, decide, offers};
use crate::setup::network_select::{NetworkCard, RankedNetworks, rank};

const IB: &str = "InfiniBand fe80::/64";
const LOM: &str = "RoCE 10.0.0.0/24";
const SETTING: Option<&str> = Some("OXSHMEM_NETS_JOINED");
const ROUTED: &str = "RoCE over IPv4 if it is routed";

/// A device with its Gb/s and networks; the name of an uncertain one ends in `routed`.
fn device(name: &str, gigabits: u32, networks: &[&str]) -> Device {
    let network = |name: &&str| Network {
        name: (*name).to_owned(),
        uncertain: name.ends_with("routed"),
    };
    Device {
        name: name.into(),
        description: String::new(),
        megabits: gigabits * 1000,
        networks: networks.iter().map(network).collect(),
    }
}

/// An InfiniBand HCA next to socket 0, and a RoCE-capable LOM next to socket 1.
fn typical() -> Vec<Device> {
    vec![
        device("mlx5_0:1", 400, &[IB]),
        device("irdma0:1", 25, &[LOM, ROUTED]),
    ]
}

/// Two rails, each a subnet of its own.
fn rails() -> Vec<Device> {
    vec![
        device("mlx5_0:1", 200, &["RoCE 10.1.0.0/16", ROUTED]),
        device("mlx5_1:1", 200, &["RoCE 10.2.0.0/16", ROUTED]),
    ]
}

fn card(devices: &[Device]) -> Option<NetworkCard> {
    let card = NetworkCard::new("verbs", devices, &vec![true; devices.len()]);
    // As other PEs receive it.
    serde_json::from_str(&serde_json::to_string(&card).unwrap()).unwrap()
}

/// The ranked networks of hosts, each given as the devices of its PEs.
fn ranked(hosts: &[Vec<Vec<Device>>]) -> RankedNetworks {
    let cards: Vec<Vec<NetworkCard>> = hosts
        .iter()
        .map(|host| host.iter().filter_map(|devices| card(devices)).collect())
        .collect();
    let cards: Vec<Vec<&NetworkCard>> = cards.iter().map(|host| host.iter().collect()).collect();
    rank(&cards)
}

/// The names of the devices that PEs get, of which each is given with its distances to its devices.
fn devices_of(ranked: &RankedNetworks, host: &[(Vec<Device>, &[u16])]) -> Vec<String> {
    let narrowed: Vec<Vec<Offer>> = host
        .iter()
        .map(|(devices, near)| {
            let names = devices.iter().map(|device| device.name.clone()).collect();
            let all = [("verbs", names)];
            let mut offers = offers(None, &CpuSet::default(), &all);
            for offer in &mut offers {
                offer.near_cpus = near.to_vec();
                ranked.narrow(offer, card(devices).as_ref());
            }
            offers
        })
        .collect();
    let decided = decide(&narrowed.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let chosen = host.iter().zip(decided);
    chosen
        .map(|((devices, _), decided)| devices[decided[0].device].name.clone())
        .collect()
}

#[test]
fn a_lom_of_the_other_fabric_is_not_taken_by_the_pes_next_to_it() {
    let ranked = ranked(&[vec![typical(); 2], vec![typical(); 2]]);
    assert_eq!(ranked.chosen().unwrap().name, IB);
    let host: [(_, &[u16]); 2] = [(typical(), &[0, 1]), (typical(), &[1, 0])];
    assert_eq!(devices_of(&ranked, &host), ["mlx5_0:1", "mlx5_0:1"]);
    assert_eq!(
        ranked.explain(),
        "in InfiniBand fe80::/64, in which every PE has a device (400 Gb/s a host); \
         not in RoCE 10.0.0.0/24 (25 Gb/s a host)"
    );
    assert_eq!(ranked.warning("verbs", SETTING), None);
}

#[test]
fn within_a_network_the_nearest_is_taken() {
    let mut devices = typical();
    devices.push(device("mlx5_1:1", 400, &[IB]));
    let ranked = ranked(&[vec![devices.clone(); 2]]);
    let host: [(_, &[u16]); 3] = [
        (devices.clone(), &[1, 0, 2]),
        (devices.clone(), &[2, 0, 1]),
        (devices, &[1, 0, 1]),
    ];
    let chosen = devices_of(&ranked, &host);
    assert_eq!(chosen[..2], ["mlx5_0:1", "mlx5_1:1"]);
}

#[test]
fn a_host_that_lacks_the_wider_network_draws_all_into_the_one_that_it_has() {
    let ethernet = || vec![device("mlx5_3:1", 100, &[LOM])];
    let ranked = ranked(&[vec![typical(); 2], vec![ethernet(); 2], vec![typical(); 2]]);
    assert_eq!(ranked.chosen().unwrap().name, LOM);
    let host: [(_, &[u16]); 2] = [(typical(), &[0, 1]), (typical(), &[1, 0])];
    assert_eq!(devices_of(&ranked, &host), ["irdma0:1", "irdma0:1"]);
    let told = ranked.explain();
    assert!(
        told.contains("not in InfiniBand fe80::/64 (4 of 6 PEs)"),
        "{told}"
    );
    assert_eq!(ranked.warning("verbs", SETTING), None);
}

#[test]
fn rails_apart_are_one_rail_for_all_unless_routers_join_them() {
    let ranked_apart = ranked(&[vec![rails(); 2], vec![rails(); 2]]);
    let host: [(_, &[u16]); 2] = [(rails(), &[0, 1]), (rails(), &[1, 0])];
    assert_eq!(devices_of(&ranked_apart, &host), ["mlx5_0:1", "mlx5_0:1"]);
    let told = ranked_apart.explain();
    assert!(
        told.contains("RoCE 10.2.0.0/16 (200 Gb/s a host)")
            && told.contains("RoCE over IPv4 if it is routed (400 Gb/s a host, uncertain)"),
        "{told}"
    );
    let warning = ranked_apart.warning("verbs", SETTING).unwrap();
    assert!(
        warning.contains("(200 Gb/s a host)") && warning.contains("OXSHMEM_NETS_JOINED=on"),
        "{warning}"
    );
    // A transport without such a setting gets no other's.
    let warning = ranked_apart.warning("ofi", None).unwrap();
    assert!(
        warning.contains("OXSHMEM_NIC") && !warning.contains("=on"),
        "{warning}"
    );
    let joined = || {
        let mut rails = rails();
        for rail in &mut rails {
            let name = "routed RoCE over IPv4".to_owned();
            let uncertain = false;
            rail.networks.push(Network { name, uncertain });
        }
        rails
    };
    let ranked_joined = ranked(&[vec![joined(); 2], vec![joined(); 2]]);
    let host: [(_, &[u16]); 2] = [(joined(), &[0, 1]), (joined(), &[1, 0])];
    assert_eq!(devices_of(&ranked_joined, &host), ["mlx5_0:1", "mlx5_1:1"]);
    assert_eq!(ranked_joined.chosen().unwrap().megabits, 400_000);
    assert_eq!(ranked_joined.warning("verbs", SETTING), None);
}

#[test]
fn isolated_infiniband_rails_are_told_apart_by_their_subnets() {
    let subnets = ["InfiniBand fec0::/64", "InfiniBand fec0:0:0:1::/64"];
    let hosts = || {
        let one = device("mlx5_0:1", 100, &subnets[..1]);
        let other = device("mlx5_1:1", 200, &subnets[1..]);
        vec![one, other]
    };
    let ranked = ranked(&[vec![hosts()], vec![hosts()]]);
    let host: [(_, &[u16]); 2] = [(hosts(), &[0, 1]), (hosts(), &[1, 0])];
    assert_eq!(devices_of(&ranked, &host), ["mlx5_1:1", "mlx5_1:1"]);
}

#[test]
fn the_bandwidth_of_a_network_is_that_of_the_host_that_has_least_of_it() {
    let wide = |gigabits| vec![device("a:1", gigabits, &["A"]), device("b:1", 100, &["B"])];
    // One PE sees one of its host's devices, and the other PE the same and another: devices count once.
    let two = vec![
        wide(400),
        vec![device("a:1", 400, &["A"]), device("b:2", 100, &["B"])],
    ];
    let ranked = ranked(&[two, vec![wide(50)]]);
    let told: Vec<_> = ranked.all.iter().map(|n| (&*n.name, n.megabits)).collect();
    assert_eq!(told, [("B", 100_000), ("A", 50_000)]);
}

#[test]
fn without_a_common_network_a_possible_one_goes_before_one_that_some_lack() {
    let own = |subnet: u8| {
        let subnet = format!("RoCE 10.{subnet}.0.0/24");
        vec![
            device("mlx5_0:1", 400, &[IB]),
            device("mlx5_1:1", 100, &[&subnet, ROUTED]),
        ]
    };
    let without_ib = own(3).split_off(1);
    let all = ranked(&[vec![own(1)], vec![own(2)], vec![without_ib]]);
    assert_eq!(all.chosen().unwrap().name, ROUTED);
    let warning = all.warning("verbs", SETTING).unwrap();
    assert!(warning.contains("OXSHMEM_NIC"), "{warning}");
    let told = all.explain();
    assert!(
        told.contains("it is uncertain that these reach each other"),
        "{told}"
    );

    // Nothing joins them all: most PEs are served, and the rest keep the devices that they have.
    let only_lom = || vec![device("irdma0:1", 25, &[LOM])];
    let only_ib = || vec![device("mlx5_0:1", 400, &[IB])];
    let all = ranked(&[vec![typical(); 2], vec![only_lom(); 2], vec![only_ib()]]);
    assert_eq!(all.chosen().unwrap().name, LOM);
    let told = all.explain();
    assert!(
        told.contains("4 of 5 PEs have a device; none has all"),
        "{told}"
    );
    assert!(
        all.warning("verbs", SETTING)
            .unwrap()
            .contains("those of 4 of 5")
    );
    let one = only_ib();
    let names = vec![one[0].name.clone()];
    assert_eq!(all.members(card(&one).as_ref(), &names), [true]);
}

#[test]
fn ties_go_to_the_devices_that_come_first_and_else_to_the_name_that_sorts_first() {
    let twins = || {
        vec![
            device("mlx5_0:1", 100, &["RoCE 10.2.0.0/16"]),
            device("mlx5_1:1", 100, &["RoCE 10.1.0.0/16"]),
        ]
    };
    let turned = || {
        let mut twins = twins();
        twins.reverse();
        twins
    };
    let chosen = |hosts: [Vec<Device>; 2]| {
        let ranked = ranked(&hosts.map(|devices| vec![devices]));
        ranked.chosen().unwrap().name.clone()
    };
    assert_eq!(chosen([twins(), turned()]), "RoCE 10.1.0.0/16");
    assert_eq!(chosen([turned(), twins()]), "RoCE 10.1.0.0/16");
    assert_eq!(chosen([twins(), twins()]), "RoCE 10.2.0.0/16");
    assert_eq!(chosen([turned(), turned()]), "RoCE 10.1.0.0/16");
}

#[test]
fn one_network_is_not_worth_a_word_and_a_transport_without_networks_has_no_card() {
    let one = || vec![device("a:1", 100, &[IB]), device("b:1", 100, &[IB])];
    let alone = ranked(&[vec![one()], vec![one()]]);
    assert_eq!(
        (alone.explain(), alone.warning("verbs", SETTING)),
        (String::new(), None)
    );
    // The guess promises no more than what is sure.
    let roce = || vec![device("a:1", 100, &[LOM, ROUTED])];
    assert_eq!(ranked(&[vec![roce()], vec![roce()]]).explain(), "");
    assert_eq!(card(&[device("memory", 0, &[])]), None);
    let none = ranked(&[vec![vec![device("memory", 0, &[])]]]);
    assert_eq!(none.chosen(), None);
    assert_eq!(none.members(None, &["memory".into()]), [true]);
}

#[test]
fn devices_that_a_pe_cannot_get_are_in_no_network() {
    let mapped = NetworkCard::new("verbs", &typical(), &[false, true]).unwrap();
    let free = card(&typical()).unwrap();
    let ranked = rank(&[vec![&free], vec![&mapped]]);
    assert_eq!(ranked.chosen().unwrap().name, LOM);
}

#[test]
fn a_card_of_eight_nics_is_a_few_bytes_for_each() {
    let eight: Vec<Device> = (0..8)
        .map(|n| device(&format!("mlx5_{n}:1"), 400, &[IB]))
        .collect();
    let bytes = serde_json::to_string(&card(&eight)).unwrap().len();
    assert!(bytes <= 312, "{bytes}");
}

#[test]
fn long_lists_of_networks_are_cut() {
    let many: Vec<Device> = (0..20)
        .map(|n| {
            device(
                &format!("mlx5_{n}:1"),
                100,
                &[&format!("RoCE 10.0.{n}.0/31")],
            )
        })
        .collect();
    let told = ranked(&[vec![many]]).explain();
    assert!(told.ends_with("and 11 more"), "{told}");
}

proptest! {
    /// If there is a network in which every PE has a device, no two PEs get devices without a common one.
    #[test]
    fn any_pes_with_a_common_network_reach_each_other(
        hosts in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(0_u8..4, 1..4), 1..4), 1..5)
    ) {
        let name = |network: &u8| format!("N{network}");
        let of = |networks: &Vec<u8>| -> Vec<Device> {
            let one = |(n, network): (usize, &u8)| device(&format!("nic{n}:1"), 100, &[&name(network)]);
            networks.iter().enumerate().map(one).collect()
        };
        let all: Vec<Vec<Vec<Device>>> = hosts.iter().map(|host| host.iter().map(of).collect()).collect();
        let ranked = ranked(&all);
        let everyone = |network: &u8| hosts.iter().flatten().all(|pe| pe.contains(network));
        let is_common = (0..4).any(|network| everyone(&network));
        let mut taken = BTreeSet::new();
        for host in &all {
            let near: Vec<Vec<u16>> = host.iter().map(|pe| (0..pe.len() as u16).rev().collect()).collect();
            let pes: Vec<(Vec<Device>, &[u16])> =
                host.iter().cloned().zip(near.iter().map(Vec::as_slice)).filter(|(pe, _)| pe.len() > 1).collect();
            for (chosen, (pe, _)) in devices_of(&ranked, &pes).iter().zip(&pes) {
                let device = pe.iter().find(|device| device.name == *chosen).unwrap();
                taken.insert(device.networks[0].name.clone());
            }
        }
        prop_assert!(!is_common || taken.len() <= 1, "{taken:?}");
    }
}

#[test]
fn a_nic_of_another_rail_is_spare_where_it_is_at_least_as_near() {
    let host = [rails()];
    let ranked = ranked(&[host.to_vec(), host.to_vec()]);
    let spare = |near: [u16; 2]| {
        let names = rails().into_iter().map(|device| device.name).collect();
        let mut offers = offers(None, &CpuSet::default(), &[("verbs", names)]);
        let offer = &mut offers[0];
        offer.near_cpus = near.to_vec();
        ranked.narrow(offer, card(&rails()).as_ref());
        let decided = decide(&[&offers]).remove(0).remove(0);
        // The chosen network is the first device's, however near the other one is.
        assert_eq!(decided.device, 0);
        offers[0].beside(&decided, &["mlx5_0:1"])
    };
    assert_eq!(spare([0, 0]), [(1, true)]);
    assert_eq!(spare([1, 0]), [(1, true)]);
    assert_eq!(spare([0, 1]), [(1, false)]);
}
