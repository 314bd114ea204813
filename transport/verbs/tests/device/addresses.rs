//! Ports that get other addresses while a job runs, as the kernel tells of them.

use std::process::Command;
use std::time::Instant;

use oxshmem_transport::{Error, Op};
use oxshmem_verbs::Settings;

use super::pair::{PATIENCE, PE1, Side, pair, remote};

fn shell(script: &str) {
    let output = Command::new("bash").args(["-ec", script]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {told}");
}

/// Gives node 1's wire another address in place of the one that it has, and waits until its device has it.
fn readdress(from: &str, to: &str) {
    shell(&format!(
        "ip addr del {from}/24 dev e1
         ip rule del pref 20 from {from} iif lo lookup 101
         ip addr add {to}/24 dev e1
         ip rule add pref 20 from {to} iif lo lookup 101
         ip route replace local {to} dev e1 table 101
         ip route replace 10.0.9.0/24 dev e1 src {to} table 101"
    ));
    let octets: Vec<u8> = to.split('.').map(|part| part.parse().unwrap()).collect();
    let [a, b, c, d] = octets[..] else {
        panic!("{to}");
    };
    let identifier = format!("ffff:{a:02x}{b:02x}:{c:02x}{d:02x}");
    let since = Instant::now();
    let has_it = |entry: std::io::Result<std::fs::DirEntry>| {
        // An index without an entry cannot be read.
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        text.trim().ends_with(&identifier)
    };
    while !std::fs::read_dir("/sys/class/infiniband/rxe1/ports/1/gids")
        .unwrap()
        .any(has_it)
    {
        assert!(since.elapsed() < PATIENCE, "no GID of {to}");
        std::thread::yield_now();
    }
}

/// Takes the change back, whatever the test has found.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        readdress("10.0.9.102", "10.0.9.2");
    }
}

/// Gives a side a new lane, and puts a word by it.
fn connect_and_put(local: &mut Side, target: &Side, value: u64) -> Result<(), Error> {
    local.lane = local.domain.lane()?;
    let endpoint = local.lane.endpoint(target.pe)?;
    let answer = target.domain.accept(local.pe, &endpoint)?;
    local.lane.connect(target.pe, &answer)?;
    local.store(0, value);
    let op = Op::Put {
        from: local.local(0, 8),
        to: remote(0),
    };
    // SAFETY: the side's memory, which is left alone.
    unsafe { local.perform(target.pe, &[op]) }?;
    assert_eq!(target.load(0), value);
    Ok(())
}

#[test]
#[ignore = "needs ci/softroce --nodes 2"]
fn a_lane_is_connected_with_the_addresses_of_its_moment() {
    let [mut one, mut other] = pair(Settings::default(), 1 << 20);
    assert_eq!(other.pe, PE1);
    connect_and_put(&mut one, &other, 1).unwrap();
    readdress("10.0.9.2", "10.0.9.102");
    let restored = Restored;
    connect_and_put(&mut one, &other, 2).unwrap();
    connect_and_put(&mut other, &one, 3).unwrap();
    drop(restored);
    connect_and_put(&mut one, &other, 4).unwrap();
    connect_and_put(&mut other, &one, 5).unwrap();
}
