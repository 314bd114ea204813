//! Choices of ports, identifiers and paths, on made-up tables.

use super::*;

fn v4(a: u8, b: u8, c: u8, d: u8) -> Gid {
    Gid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
}

fn link_local(last: u8) -> Gid {
    let mut raw = [0; 16];
    (raw[0], raw[1], raw[15]) = (0xfe, 0x80, last);
    Gid(raw)
}

fn global_v6(last: u8) -> Gid {
    let mut raw = [0; 16];
    (raw[0], raw[1], raw[15]) = (0x20, 0x01, last);
    Gid(raw)
}

fn port(ethernet: bool, gids: &[(u32, bool, Gid)]) -> PortAttributes {
    PortAttributes {
        active: true,
        ethernet,
        lid: 7,
        mtu: 5,
        largest_message: 1 << 30,
        speed: 32,
        width: 2,
        pkeys: 2,
        needs_route: false,
        gids: gids.to_vec(),
    }
}

fn address(ethernet: bool, gids: &[Gid]) -> PortAddress {
    PortAddress {
        ethernet,
        mtu: 5,
        lid: 7,
        partition: 0xffff,
        gids: gids.to_vec(),
    }
}

fn limits() -> DeviceLimits {
    DeviceLimits {
        queue_depth: 1024,
        completions: 4096,
        shared_queues: 16,
        receive_depth: 1024,
        queue_pairs: 1024,
        reads_out: 16,
        reads_in: 16,
        atomics: 0,
        pci_atomics: false,
        vendor: 0x02c9,
        part: 4129,
        ports: 1,
    }
}

#[test]
fn devices_of_other_protocols_are_told_as_that() {
    assert_eq!(usable(true), Ok(()));
    assert!(usable(false).unwrap_err().contains("iWARP"));
}

#[test]
fn a_device_shares_receives_if_it_has_such_queues_and_buffers_in_them() {
    assert!(limits().has_shared_receives());
    for lacking in [
        DeviceLimits {
            shared_queues: 0,
            ..limits()
        },
        DeviceLimits {
            receive_depth: 0,
            ..limits()
        },
    ] {
        assert!(!lacking.has_shared_receives());
    }
}

#[test]
fn partitions_must_be_one_with_a_full_member() {
    let at = |partition| PortAddress {
        partition,
        ..address(true, &[v4(10, 0, 0, 1)])
    };
    assert!(path(&at(0x8001), &at(0x0001), false).is_ok());
    assert!(path(&at(0x0001), &at(0x8001), false).is_ok());
    let why = path(&at(0xffff), &at(0x8001), false).unwrap_err();
    assert!(
        why.contains("0xffff") && why.contains("0x8001") && why.contains("OXSHMEM_VERBS_PKEY"),
        "{why}"
    );
    let why = path(&at(0x0001), &at(0x0001), false).unwrap_err();
    assert!(why.contains("limited members"), "{why}");
}

#[test]
fn roce_v2_over_ipv4_comes_first_and_v1_never() {
    let table = [
        (0, true, link_local(1)),
        (1, false, v4(10, 0, 0, 1)),
        (2, true, global_v6(1)),
        (3, true, v4(10, 0, 0, 1)),
    ];
    let found = candidates(&port(true, &table), None, None).unwrap();
    let order: Vec<u8> = found.iter().map(|(index, _)| *index).collect();
    assert_eq!(order, [3, 2, 0]);
}

#[test]
fn a_range_of_addresses_selects_among_more_than_peers_are_told() {
    let table: Vec<_> = (0..20).map(|k| (k, true, v4(10, k as u8, 0, 1))).collect();
    let state = port(true, &table);
    let all = candidates(&state, None, None).unwrap();
    assert!(all.len() > MOST_GIDS);
    let select = |text| candidates(&state, None, AddressRange::parse(text));
    assert_eq!(select("10.17.0.0/16").unwrap(), [(17, v4(10, 17, 0, 1))]);
    assert_eq!(select("10.16.0.0/14").unwrap().len(), 4);
    let why = select("192.168.0.0/16").unwrap_err();
    for word in ["OXSHMEM_VERBS_ADDRESS=192.168.0.0/16", "17 ("] {
        assert!(why.contains(word), "{why}");
    }
    // On InfiniBand by the subnet, where a GID is there.
    let subnet = [(0, false, link_local(1)), (1, false, global_v6(1))];
    let found = candidates(
        &port(false, &subnet),
        None,
        AddressRange::parse("fe80::/64"),
    );
    assert_eq!(found.unwrap(), [(0, link_local(1))]);
}

#[test]
fn a_forced_gid_is_the_only_one_and_a_wrong_one_is_told_with_the_usable() {
    let table = [
        (0, true, link_local(1)),
        (1, true, v4(10, 0, 0, 1)),
        (2, false, v4(10, 0, 0, 1)),
    ];
    let state = port(true, &table);
    assert_eq!(
        candidates(&state, Some(0), None).unwrap(),
        [(0, link_local(1))]
    );
    for wrong in [2, 3, 200] {
        let why = candidates(&state, Some(wrong), None).unwrap_err();
        assert!(
            why.contains(&format!("OXSHMEM_VERBS_GID_INDEX={wrong}"))
                && why.contains("1 (10.0.0.1)"),
            "{why}"
        );
    }
}

#[test]
fn an_identifier_is_found_in_a_table_by_its_value_and_at_its_known_index_if_it_is_there() {
    let ours = v4(10, 0, 0, 1);
    let table = [
        (0, true, link_local(1)),
        (2, false, ours),
        (4, true, ours),
        (6, true, ours),
    ];
    let find = |ethernet, known: &[(u8, Gid)]| index_among(&table, ethernet, ours, known);
    assert_eq!(find(true, &[(6, ours)]), Some(6));
    for moved in [(3, ours), (6, link_local(1)), (2, ours)] {
        assert_eq!(find(true, &[moved]), Some(4), "{moved:?}");
    }
    assert_eq!(
        find(false, &[]),
        Some(2),
        "on InfiniBand there is no version"
    );
    let gone = index_among(&table, true, v4(10, 0, 0, 9), &[(4, ours)]);
    assert_eq!(gone, None);
}

#[test]
fn a_port_is_described_with_its_identifiers_and_their_type() {
    let first = (3, v4(10, 0, 0, 1));
    let told = |gids: &[(u8, Gid)], ethernet| identifiers(gids, ethernet, 7);
    assert_eq!(told(&[first], true), "GID 3 (10.0.0.1, RoCE v2)");
    assert_eq!(
        told(&[first, (1, v4(10, 1, 0, 1))], true),
        "GID 3 (10.0.0.1, RoCE v2) unless the peer's subnet is that of 1 (10.1.0.1)"
    );
    assert_eq!(told(&[], false), "LID 7");
    assert!(told(&[(0, link_local(1))], false).ends_with("InfiniBand)"));
}

#[test]
fn a_port_without_roce_v2_says_what_it_lacks() {
    let why = candidates(&port(true, &[(0, false, link_local(1))]), None, None).unwrap_err();
    assert!(why.contains("IP address"), "{why}");
    assert_eq!(candidates(&port(false, &[]), None, None).unwrap(), []);
}

#[test]
fn the_pair_in_one_subnet_is_taken() {
    let here = address(true, &[v4(10, 0, 0, 1), v4(192, 168, 3, 1), link_local(1)]);
    let there = address(
        true,
        &[v4(172, 16, 0, 2), v4(192, 168, 3, 2), link_local(2)],
    );
    let found = path(&here, &there, false).unwrap();
    assert_eq!(found.route, Some((v4(192, 168, 3, 1), v4(192, 168, 3, 2))));
}

#[test]
fn ipv4_is_taken_before_addresses_that_have_more_in_common() {
    let here = address(true, &[global_v6(1), v4(10, 0, 0, 1), link_local(1)]);
    let there = address(true, &[link_local(2), global_v6(2), v4(10, 0, 9, 2)]);
    let found = path(&here, &there, false).unwrap();
    assert_eq!(found.route, Some((v4(10, 0, 0, 1), v4(10, 0, 9, 2))));
    // All links have the prefix of link-local addresses.
    let here = address(true, &[link_local(1), global_v6(1)]);
    let there = address(true, &[link_local(2), global_v6(0x82)]);
    let found = path(&here, &there, false).unwrap();
    assert_eq!(found.route, Some((global_v6(1), global_v6(0x82))));
}

#[test]
fn families_are_not_mixed() {
    let here = address(true, &[link_local(1), global_v6(1)]);
    let there = address(true, &[v4(10, 0, 0, 2), link_local(2)]);
    let found = path(&here, &there, false).unwrap();
    assert_eq!(found.route, Some((link_local(1), link_local(2))));
    let only_v4 = address(true, &[v4(10, 0, 0, 2)]);
    assert!(path(&here, &only_v4, false).unwrap_err().contains("IPv4"));
}

#[test]
fn link_layers_are_not_mixed() {
    let why = path(
        &address(true, &[v4(1, 2, 3, 4)]),
        &address(false, &[]),
        false,
    )
    .unwrap_err();
    assert!(why.contains("InfiniBand") && why.contains("RoCE"), "{why}");
}

#[test]
fn the_smaller_mtu_holds() {
    let (here, mut there) = (
        address(true, &[v4(1, 2, 3, 4)]),
        address(true, &[v4(1, 2, 3, 5)]),
    );
    there.mtu = 3;
    assert_eq!(path(&here, &there, false).unwrap().mtu, 3);
}

#[test]
fn infiniband_uses_the_lid_in_a_subnet_and_refuses_another() {
    let (one, other, far) = (link_local(1), link_local(2), global_v6(3));
    let here = address(false, &[one]);
    let to = |gids: &[Gid], route| path(&here, &address(false, gids), route);
    assert_eq!(to(&[other], false).unwrap().route, None);
    assert_eq!(to(&[other], true).unwrap().route, Some((one, other)));
    let among = to(&[far, other], true).unwrap().route;
    assert_eq!(among, Some((one, other)), "the pair in one subnet");
    assert!(
        to(&[far], false)
            .unwrap_err()
            .contains("another InfiniBand subnet")
    );
    assert!(to(&[], false).unwrap_err().contains("no GID"));
    let mut without = address(false, &[other]);
    without.lid = 0;
    let why = path(&here, &without, false).unwrap_err();
    assert!(
        why.contains("subnet manager") && why.contains("its port"),
        "{why}"
    );
    let why = path(&without, &here, false).unwrap_err();
    assert!(why.contains("this PE's port"), "{why}");
}

#[test]
fn partitions_are_found_by_index_and_by_key_full_members_first() {
    let table = [0xffff, 0x0001, 0x8001, 0, 0x0007];
    let key_at = |index: u16| table.get(usize::from(index)).copied();
    let find = |wanted| partition(wanted, 5, key_at);
    assert_eq!(find(Partition::Index(1)), Ok((1, 0x0001)));
    assert_eq!(find(Partition::Auto), Ok((0, 0xffff)));
    let limited = |index: u16| [0x7fff, 0xffff].get(usize::from(index)).copied();
    assert_eq!(partition(Partition::Auto, 2, limited), Ok((1, 0xffff)));
    assert!(partition(Partition::Auto, 2, |_| Some(0)).is_err());
    assert_eq!(find(Partition::Key(0x0001)), Ok((2, 0x8001)));
    assert_eq!(find(Partition::Key(0x8007)), Ok((4, 0x0007)));
    assert_eq!(find(Partition::Key(0xffff)), Ok((0, 0xffff)));
    for wrong in [
        Partition::Index(3),
        Partition::Index(5),
        Partition::Key(0x8002),
    ] {
        assert!(find(wrong).unwrap_err().contains("OXSHMEM_VERBS_PKEY"));
    }
}

#[test]
fn software_devices_are_known_by_name_or_vendor() {
    assert!(is_software("rxe0", 0) && is_software("roce7", 0x00ff_ffff));
    assert!(!is_software("mlx5_0", 0x02c9));
}

#[test]
fn a_link_that_is_down_for_15_seconds_is_waited_for_by_a_nic() {
    let seconds = |software| {
        let (timeout, retries) = default_patience(software);
        4.096e-6 * f64::from(1u32 << timeout) * f64::from(retries + 1)
    };
    assert!((30.0..60.0).contains(&seconds(false)));
    assert!(seconds(true) < 3.0);
}
