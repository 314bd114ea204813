//! Ports that get other addresses while a job runs.

use oxshmem_verbs::Settings;

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
fn events_of_the_subnet_manager_change_nothing() {
    let events = [
        "event mlx5_0 SM_CHANGE 1",
        "event mlx5_1 CLIENT_REREGISTER 1",
    ];
    connects_after(impatient(), &events);
}
