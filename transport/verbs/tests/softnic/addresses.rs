//! Ports that get other addresses while a job runs.

use oxshmem_verbs::{Settings, Verbs};

use super::pair::{PE0, PE1};
use super::{connect_anew, control, impatient, put, sides};

/// A connection after these commands works, in both directions.
fn connects_after(settings: Settings, commands: &[&str]) {
    let [mut one, mut other] = sides(settings);
    put(&mut one, &other, 1).unwrap();
    commands.iter().for_each(|command| control(command));
    connect_anew(&mut one, &other).unwrap();
    put(&mut one, &other, 2).unwrap();
    connect_anew(&mut other, &one).unwrap();
    put(&mut other, &one, 3).unwrap();
}

fn routed() -> Settings {
    Settings {
        global_route: true,
        ..impatient()
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_lane_is_connected_with_the_lids_of_its_moment() {
    connects_after(impatient(), &["lid mlx5_1 1 771"]);
    connects_after(impatient(), &["lid mlx5_0 1 772", "lid mlx5_1 1 773"]);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_lane_is_connected_with_the_identifiers_of_its_moment() {
    connects_after(routed(), &["gid mlx5_1 1 0 fe80::77"]);
    connects_after(routed(), &["gid mlx5_0 1 0 fe80::78"]);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn an_identifier_that_moves_in_its_table_is_found_by_its_value() {
    let [mut one, mut other] = sides(routed());
    one.lane = one.domain.lane().unwrap();
    let endpoint = one.lane.endpoint(PE1).unwrap();
    // The endpoint was made before, and its event is not read yet.
    let index = |gid: &str, index: u8| control(&format!("gid mlx5_0 1 {index} {gid}"));
    index("fe80::79", 0);
    index("none", 0);
    index("fe80::79", 3);
    let answer = other.domain.accept(PE0, &endpoint);
    // It names an identifier that the port has no more.
    assert!(answer.is_ok(), "the other side cannot know");
    assert!(one.lane.connect(PE1, &answer.unwrap()).is_err());
    connect_anew(&mut one, &other).unwrap();
    put(&mut one, &other, 1).unwrap();
    one.lane = one.domain.lane().unwrap();
    let endpoint = one.lane.endpoint(PE1).unwrap();
    index("fe80::79", 5);
    index("fe80::7a", 3);
    let answer = other.domain.accept(PE0, &endpoint).unwrap();
    one.lane.connect(PE1, &answer).unwrap();
    put(&mut one, &other, 2).unwrap();
    connect_anew(&mut other, &one).unwrap();
    put(&mut other, &one, 3).unwrap();
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_partition_key_that_moves_in_its_table_is_found_by_its_value() {
    let moved = ["pkey mlx5_0 1 1 0xffff", "pkey mlx5_0 1 0 0x8005"];
    connects_after(impatient(), &moved);
    control("pkey mlx5_0 1 0 0xffff");
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_partition_that_is_gone_is_left_for_the_first_of_the_table() {
    let commands = |zero: &str, one: &str| {
        ["mlx5_0", "mlx5_1"].map(|device| {
            let pkey = |index, key| format!("pkey {device} 1 {index} {key}");
            [pkey(1, one), pkey(0, zero)]
        })
    };
    let gone = commands("0", "0x8005");
    let gone: Vec<&str> = gone.iter().flatten().map(String::as_str).collect();
    connects_after(impatient(), &gone);
    for command in commands("0xffff", "0").iter().flatten() {
        control(command);
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn events_of_the_subnet_manager_change_nothing() {
    let events = [
        "event mlx5_0 SM_CHANGE 1",
        "event mlx5_1 CLIENT_REREGISTER 1",
    ];
    connects_after(impatient(), &events);
}

/// On RoCE: run with `2*cx8:events=100000`, so that events are told long after what they are about.
mod roce {
    use super::*;

    /// A table has each address twice, once for each version of RoCE; the first version's entry comes first.
    #[test]
    #[ignore = "needs the software NIC; run by ci/test-softnic"]
    fn an_address_that_moves_is_found_by_its_value_and_its_version() {
        let [mut one, mut other] = sides(impatient());
        put(&mut one, &other, 1).unwrap();
        let devices = oxshmem_transport::Transport::probe(&Verbs::new()).unwrap();
        let told = &devices[0].description;
        let (_, address) = told.split_once("GID 3 (").unwrap();
        let (address, _) = address.split_once(", RoCE v2)").unwrap();
        let index = |index: u8, to: &str| control(&format!("gid mlx5_0 1 {index} {to}"));
        one.lane = one.domain.lane().unwrap();
        let endpoint = one.lane.endpoint(PE1).unwrap();
        // The endpoint was made before, and the event comes later.
        index(3, "none");
        index(7, address);
        let answer = other.domain.accept(PE0, &endpoint).unwrap();
        one.lane.connect(PE1, &answer).unwrap();
        put(&mut one, &other, 2).unwrap();
        connect_anew(&mut other, &one).unwrap();
        put(&mut other, &one, 3).unwrap();
    }
}
