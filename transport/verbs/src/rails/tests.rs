//! The choice of further NICs, and their assignment to a peer's.

use super::*;
use crate::ibv::Gid;

fn port(gid: [u8; 4]) -> PortAddress {
    PortAddress {
        ethernet: true,
        mtu: 5,
        lid: 0,
        partition: 0xffff,
        gids: vec![Gid(std::net::Ipv4Addr::from(gid).to_ipv6_mapped().octets())],
    }
}

/// A NIC with this address, in these subnets.
fn rail(last: u8, networks: &[&str]) -> RailAddress {
    RailAddress {
        name: format!("mlx5_{last}:1"),
        port: port([10, 0, 0, last]),
        networks: networks.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The NICs that each of `ours` after the first is given.
fn pairs(ours: &[RailAddress], theirs: &[RailAddress]) -> Vec<Result<u8, String>> {
    let mut pairing = Pairing::new(theirs);
    (0..)
        .zip(ours)
        .skip(1)
        .map(|(number, rail)| pairing.find(number, &rail.port, &rail.networks, false))
        .collect()
}

#[test]
fn nics_of_one_network_are_paired_by_their_numbers() {
    let ours: Vec<RailAddress> = (0..3).map(|n| rail(n, &["A"])).collect();
    let theirs: Vec<RailAddress> = (10..13).map(|n| rail(n, &["A"])).collect();
    assert_eq!(pairs(&ours, &theirs), [Ok(1), Ok(2)]);
    assert_eq!(pairs(&ours[..2], &theirs), [Ok(1)]);
}

#[test]
fn a_nic_that_the_other_side_lacks_is_not_used_and_no_nic_is_given_twice() {
    let ours: Vec<RailAddress> = (0..3).map(|n| rail(n, &["A"])).collect();
    let theirs = [rail(10, &["A"]), rail(11, &["A"])];
    let found = pairs(&ours, &theirs);
    assert_eq!(found[0], Ok(1));
    assert!(found[1].is_err());
    assert!(pairs(&ours, &theirs[..1]).iter().all(Result::is_err));
}

#[test]
fn nics_of_different_fabrics_are_never_paired_whatever_their_numbers() {
    let ours = [rail(0, &["A"]), rail(1, &["B"]), rail(2, &["C"])];
    let theirs = [rail(10, &["A"]), rail(11, &["C"]), rail(12, &["B"])];
    assert_eq!(pairs(&ours, &theirs), [Ok(2), Ok(1)]);
    let apart = [rail(10, &["A"]), rail(11, &["D"])];
    let found = pairs(&ours, &apart);
    let why = found[0].as_ref().unwrap_err();
    assert!(why.contains('B') && why.contains('D'), "{why}");
    // A common network without a path: of two link layers.
    let mut infiniband = rail(11, &["B"]);
    infiniband.port.ethernet = false;
    assert!(pairs(&ours[..2], &[rail(10, &["A"]), infiniband])[0].is_err());
}

#[test]
fn several_queue_pairs_of_one_nic_go_to_one_nic() {
    let ours = rail(1, &["A"]);
    let theirs: Vec<RailAddress> = (10..13).map(|n| rail(n, &["A"])).collect();
    let mut pairing = Pairing::new(&theirs);
    for _ in 0..3 {
        assert_eq!(pairing.find(2, &ours.port, &ours.networks, false), Ok(2));
    }
    assert_eq!(pairing.find(1, &ours.port, &ours.networks, false), Ok(1));
}

fn candidates() -> Vec<Candidate> {
    let spare = [false, true, false, true];
    let all = spare.iter().enumerate();
    all.map(|(at, is_spare)| Candidate {
        name: format!("mlx5_{at}:1"),
        is_spare: *is_spare,
    })
    .collect()
}

fn chosen(rails: &Wanted) -> Vec<String> {
    let found = wanted(rails, "mlx5_0:1", &candidates()).unwrap();
    found.into_iter().map(|one| one.name).collect()
}

#[test]
fn of_itself_a_pe_takes_only_nics_that_nobody_else_has() {
    assert_eq!(chosen(&Wanted::Auto), ["mlx5_1:1", "mlx5_3:1"]);
    assert_eq!(
        chosen(&Wanted::Count(4)),
        ["mlx5_1:1", "mlx5_2:1", "mlx5_3:1"]
    );
    assert_eq!((most(&Wanted::Count(2)), most(&Wanted::Auto)), (2, 8));
    let named = |names: &[&str]| Wanted::Named(names.iter().map(|n| (*n).into()).collect());
    assert_eq!(
        chosen(&named(&["mlx5_2:1", "mlx5_0:1", "mlx5_1:1"])),
        ["mlx5_2:1", "mlx5_1:1"]
    );
    let unknown = wanted(&named(&["mlx5_7:1"]), "mlx5_0:1", &candidates());
    let told = unknown.unwrap_err().to_string();
    for word in ["OXSHMEM_VERBS_RAILS", "mlx5_7:1", "mlx5_3:1"] {
        assert!(told.contains(word), "{told}");
    }
}
