//! Failures of connections and devices.

use std::process::Command;
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Op, RegionId};
use oxshmem_verbs::Settings;

use super::pair::{PATIENCE, PE0, PE1, Side, pair, remote};

fn put(side: &Side, len: usize) -> Op {
    Op::Put {
        from: side.local(0, len),
        to: remote(0),
    }
}

/// Posts and drives until an error comes.
fn error_of(side: &mut Side, op: Op) -> Error {
    let since = Instant::now();
    loop {
        // SAFETY: the operation's local buffer is the side's memory, which is left alone.
        if let Err(error) = unsafe { side.perform(PE1, &[op]) } {
            return error;
        }
        assert!(since.elapsed() < PATIENCE, "no error came");
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_deregistered_key_is_a_named_error_and_other_connections_go_on() {
    let [mut local, mut target] = pair(Settings::default(), 1 << 20);
    target.region = None;
    let op = put(&local, 64);
    let error = error_of(&mut local, op);
    let told = error.to_string();
    assert!(
        matches!(&error, Error::Connection { pe: PE1, .. }),
        "{told}"
    );
    assert!(
        told.contains("no longer registered") && told.contains(":1"),
        "{told}"
    );
    let before = local.lane.counters(PE1);
    // SAFETY: as for `error_of`.
    let again = unsafe { local.lane.post(PE1, &[op]) };
    assert!(
        matches!(
            again.status,
            oxshmem_transport::Status::Refused(Error::Connection { .. })
        ),
        "{again:?}"
    );
    local.lane.progress().unwrap();
    assert_eq!(local.lane.counters(PE1), before, "counters went on");
    // SAFETY: as for `error_of`.
    unsafe { local.perform(PE0, &[op]) }.unwrap();
    // A new lane towards the same PE, and a region of the same number, work.
    target.region = Some(target.domain.register(RegionId(0), &target.memory).unwrap());
    let key = target.region.as_ref().unwrap().key().to_vec();
    local
        .domain
        .import(&target.peer(), RegionId(0), &key, None)
        .unwrap();
    local.lane = local.domain.lane().unwrap();
    let endpoint = local.lane.endpoint(PE1).unwrap();
    let answer = target.domain.accept(PE0, &endpoint).unwrap();
    local.lane.connect(PE1, &answer).unwrap();
    local.store(0, 4711);
    // SAFETY: as for `error_of`.
    unsafe { local.perform(PE1, &[op]) }.unwrap();
    assert_eq!(target.load(0), 4711);
}

/// Runs `softroce-fault` of the soft-RoCE machine.
fn fault(words: &[&str]) {
    let status = Command::new("softroce-fault").args(words).status();
    assert!(status.expect("needs ci/softroce").success());
}

#[test]
#[ignore = "needs ci/softroce --nodes 2"]
fn a_cut_link_is_a_lost_peer_within_the_time_of_the_retries() {
    let settings = Settings {
        timeout: Some(14),
        retry_count: Some(4),
        ..Settings::default()
    };
    let [mut local, target] = pair(settings, 1 << 20);
    let op = put(&local, 64);
    // SAFETY: as for `error_of`.
    unsafe { local.perform(PE1, &[op]) }.unwrap();
    fault(&["cut", "1"]);
    let since = Instant::now();
    let error = error_of(&mut local, op);
    let took = since.elapsed();
    fault(&["heal", "1"]);
    assert!(matches!(error, Error::PeerLost { pe: PE1, .. }), "{error}");
    // 5 times 67 ms by the settings; the machine is emulated.
    assert!(took < Duration::from_secs(20), "{took:?}");
    // SAFETY: as for `error_of`.
    unsafe { local.perform(PE0, &[op]) }.unwrap();
    drop(target);
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_peer_whose_domain_ended_is_lost() {
    let settings = Settings {
        timeout: Some(14),
        ..Settings::default()
    };
    let [mut local, target] = pair(settings, 1 << 20);
    let op = put(&local, 64);
    // It answers once: else it would not be known to have lived.
    // SAFETY: as for `error_of`.
    unsafe { local.perform(PE1, &[op]) }.unwrap();
    drop(target);
    let error = error_of(&mut local, op);
    assert!(matches!(error, Error::PeerLost { pe: PE1, .. }), "{error}");
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_lost_peers_gets_write_nothing_any_more() {
    let [mut local, target] = pair(Settings::default(), 8 << 20);
    (0..8 << 20)
        .step_by(4096)
        .for_each(|at| target.store(at, 1));
    let get = |at: usize| Op::Get {
        into: local.local(at, 1 << 20),
        from: remote(at as u64),
    };
    let gets: Vec<Op> = (0..8).map(|k| get(k << 20)).collect();
    // SAFETY: the side's memory, which is changed only after the loss was taken note of.
    unsafe { local.post(PE1, &gets) }.unwrap();
    local.domain.peer_lost(PE1);
    local.lane.progress().unwrap();
    (0..8 << 20).step_by(4096).for_each(|at| local.store(at, 2));
    let counted = local.lane.counters(PE1);
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) {
        local.lane.progress().unwrap();
        std::thread::yield_now();
    }
    assert!((0..8 << 20).step_by(4096).all(|at| local.load(at) == 2));
    assert_eq!(local.lane.counters(PE1), counted);
}
