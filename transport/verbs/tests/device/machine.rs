//! Objects left behind after a run, and errors on a machine that is not set up.

use std::process::Command;

use oxshmem_transport::{Op, Transport};
use oxshmem_verbs::{Settings, Verbs};

use super::pair::{PE0, PE1, pair, remote};

/// The kernel's count of each kind of object, on all devices.
fn resources() -> String {
    let shown = Command::new("rdma")
        .args(["resource", "show"])
        .output()
        .unwrap();
    assert!(shown.status.success());
    String::from_utf8(shown.stdout).unwrap()
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn dropping_everything_leaves_nothing_in_the_kernel() {
    let before = resources();
    for round in 0..5 {
        let [mut local, target] = pair(Settings::default(), 1 << 20);
        let during = resources();
        assert_ne!(before, during, "`rdma resource` shows none of it");
        let op = Op::Put {
            from: local.local(0, 64),
            to: remote(0),
        };
        let inbox = target.domain.inbox().unwrap();
        // SAFETY: the side's memory, which is left alone.
        unsafe { local.perform(PE1, &[op]) }.unwrap();
        // Ends in different orders, with and without work outstanding.
        match round {
            0 => drop((local, target, inbox)),
            1 => drop((inbox, target, local)),
            2 => {
                // SAFETY: as above.
                unsafe { local.post(PE0, &[op; 32]) }.unwrap();
                drop((target, local, inbox));
            }
            3 => {
                local.domain.peer_lost(PE1);
                target.domain.peer_lost(PE0);
                drop((local, inbox, target));
            }
            _ => {
                local.domain.shutdown();
                drop((local.domain.clone(), local, target, inbox));
            }
        }
        assert_eq!(resources(), before, "round {round}");
    }
}

/// This test binary once more, for one test, under a command that changes its rights.
fn again(wrapper: &str, test: &str) {
    let exe = std::env::current_exe().unwrap();
    let script = format!("{wrapper} \"$0\" --ignored --exact --nocapture --test-threads 1 \"$1\"");
    let output = Command::new("bash")
        .args(["-c", &script])
        .arg(exe)
        .arg(format!("machine::{test}"))
        .env("OXSHMEM_VERBS_TEST_CHILD", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

fn is_child() -> bool {
    std::env::var_os("OXSHMEM_VERBS_TEST_CHILD").is_some()
}

#[test]
#[ignore = "needs root and an RDMA device; run in ci/softroce"]
fn a_small_memlock_limit_is_named_with_its_mend() {
    if !is_child() {
        let wrapper = "ulimit -l 64 && exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock";
        return again(wrapper, "a_small_memlock_limit_is_named_with_its_mend");
    }
    let verbs = Verbs::with(Settings::default());
    let devices = verbs.probe().unwrap();
    let job = oxshmem_transport::Job {
        me: PE0,
        size: 1,
        host_rank: 0,
        host: oxshmem_transport::HostId("here".into()),
    };
    let domain = verbs.open(&devices[0], &job).unwrap();
    let memory = oxshmem_transport::conformance::host_memory(1 << 20).unwrap();
    let region = domain.register(oxshmem_transport::RegionId(0), &memory);
    for told in [region.unwrap_err(), domain.lane().unwrap_err()].map(|error| error.to_string()) {
        assert!(
            told.contains("`ulimit -l` is 64 KiB") && told.contains("memlock"),
            "{told}"
        );
    }
}

#[test]
#[ignore = "needs root and an RDMA device; run in ci/softroce"]
fn no_permission_names_the_device_file() {
    if !is_child() {
        let wrapper = "chmod 600 /dev/infiniband/uverbs* && trap 'chmod 666 \
                       /dev/infiniband/uverbs*' EXIT && setpriv --reuid 65534 --clear-groups";
        return again(wrapper, "no_permission_names_the_device_file");
    }
    let told = Verbs::with(Settings::default())
        .probe()
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("/dev/infiniband/uverbs") && told.contains("permission"),
        "{told}"
    );
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_wrong_gid_index_is_told_with_the_right_ones() {
    let settings = Settings {
        gid_index: Some(200),
        ..Settings::default()
    };
    let told = Verbs::with(settings).probe().unwrap_err().to_string();
    assert!(
        told.contains("OXSHMEM_VERBS_GID_INDEX=200") && told.contains("1 (10.0.9."),
        "{told}"
    );
}

#[test]
#[ignore = "needs ci/softroce --nodes 2"]
fn a_port_that_is_down_is_told_as_that() {
    let fault = |words: [&str; 2]| {
        let status = Command::new("softroce-fault").args(words).status();
        assert!(status.expect("needs ci/softroce").success());
    };
    let verbs = Verbs::with(Settings::default());
    let up = verbs.probe().unwrap();
    let device = up.iter().find(|device| device.name == "rxe1:1").unwrap();
    fault(["down", "1"]);
    let job = oxshmem_transport::Job {
        me: PE0,
        size: 1,
        host_rank: 0,
        host: oxshmem_transport::HostId("here".into()),
    };
    let opened = verbs.open(device, &job).map(|_| ());
    let left = verbs.probe();
    fault(["heal", "1"]);
    let told = opened.unwrap_err().to_string();
    assert!(
        told.contains("rxe1:1 is down") && told.contains("rdma link"),
        "{told}"
    );
    assert!(left.unwrap().iter().all(|device| device.name != "rxe1:1"));
}

/// Contexts come and go in a job: the queue pairs that answered them go as well, though their PE
/// serves no inbox.
#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn lanes_that_end_leave_no_queue_pair_at_the_other_side() {
    let [local, target] = pair(Settings::default(), 4096);
    let mut counts = Vec::new();
    for _ in 0..6 {
        let mut lane = local.domain.lane().unwrap();
        for side in [&local, &target] {
            let endpoint = lane.endpoint(side.pe).unwrap();
            let answer = side.domain.accept(local.pe, &endpoint).unwrap();
            lane.connect(side.pe, &answer).unwrap();
        }
        counts.push(resources());
        drop(lane);
    }
    assert!(
        counts[1..].iter().all(|count| *count == counts[1]),
        "{counts:#?}"
    );
}
