//! Whole jobs that meet over PMI, with a process manager of this test's own.
//!
//! Real ones are `ci/test-launchers`' part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod manager;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use oxshmem_bootstrap::{Bootstrap, Result, join};

use manager::ProcessManager;

const PATIENCE: Duration = Duration::from_secs(30);

fn joined(
    manager: &ProcessManager,
    rank: u32,
    size: u32,
    more: &[(&str, &str)],
    deadline: Duration,
) -> Result<Arc<dyn Bootstrap>> {
    let lookup = |name: &str| match name {
        "PMI_FD" => Some(manager.descriptor(rank)),
        "PMI_RANK" => Some(rank.to_string()),
        "PMI_SIZE" => Some(size.to_string()),
        "PMI_JOBID" => Some("7.0".to_owned()),
        _ => {
            let found = more.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    };
    join(&lookup, deadline)
}

/// A job of `size` PEs, all of which gather each other's ranks; gives their descriptions.
fn whole_job(size: u32, more: &[(&str, &str)]) -> Vec<String> {
    job_of(ProcessManager::new(size), size, more)
}

/// The same by this manager.
fn job_of(manager: ProcessManager, size: u32, more: &[(&str, &str)]) -> Vec<String> {
    let descriptions = std::thread::scope(|scope| {
        let manager = &manager;
        let pes: Vec<_> = (0..size)
            .map(|rank| {
                scope.spawn(move || {
                    let job = joined(manager, rank, size, more, PATIENCE).unwrap();
                    assert_eq!((job.rank(), job.size()), (rank, size));
                    let all = job.allgather(&rank.to_le_bytes()).unwrap();
                    let expected: Vec<_> = (0..size).map(|r| r.to_le_bytes().to_vec()).collect();
                    assert_eq!(all, expected);
                    job.leave();
                    job.describe()
                })
            })
            .collect();
        pes.into_iter().map(|pe| pe.join().unwrap()).collect()
    });
    // That comes when the process ends.
    assert_eq!(manager.finalized(true), vec![false; size as usize]);
    descriptions
}

#[test]
fn pes_meet_over_pmi_1() {
    for description in whole_job(4, &[]) {
        assert!(description.contains("found by PMI-1"), "{description}");
    }
}

#[test]
fn pes_meet_over_pmi_2() {
    for description in whole_job(4, &[("OXSHMEM_BOOTSTRAP", "pmi2")]) {
        assert!(description.contains("found by PMI-2"), "{description}");
    }
}

/// Of a job's processes, of which the last one ends it with this status if that is not 0.
fn ended(way: &str, status: i32) {
    let manager = ProcessManager::new(2);
    let children: Vec<_> = (0..2)
        .map(|rank: u32| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "a_process_finalizes_when_it_ends"])
                .env("OXSHMEM_BOOTSTRAP", way)
                .env("OXSHMEM_TEST_STATUS", status.to_string())
                .envs([("PMI_FD", "0"), ("PMI_SIZE", "2"), ("PMI_JOBID", "7.0")])
                .env("PMI_RANK", rank.to_string())
                .stdin(manager.take(rank))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(status), "{way}");
    }
    assert_eq!(manager.finalized(false), [true; 2], "{way}, {status}");
}

#[test]
fn a_process_finalizes_when_it_ends() {
    let Ok(status) = std::env::var("OXSHMEM_TEST_STATUS") else {
        for status in [0, 7] {
            ended("pmi1", status);
            ended("pmi2", status);
        }
        return;
    };
    let job = join(&|name| std::env::var(name).ok(), PATIENCE).unwrap();
    job.barrier().unwrap();
    if status != "0" {
        if job.rank() == 1 {
            job.abort(status.parse().unwrap(), "as it was told");
        }
        let _ = job.barrier();
        panic!("it goes on");
    }
    job.leave();
}

#[test]
fn the_rendezvous_is_at_the_address_that_is_set() {
    for description in whole_job(2, &[("OXSHMEM_HUB_ADDRESS", "localhost")]) {
        assert!(
            description.contains("rendezvous at localhost:"),
            "{description}"
        );
    }
}

#[test]
fn a_job_that_is_told_to_be_on_one_host_meets_on_loopback_alone() {
    for way in ["pmi1", "pmi2"] {
        let manager = ProcessManager::new(3);
        manager.map("(vector,(0,1,3))");
        for description in job_of(manager, 3, &[("OXSHMEM_BOOTSTRAP", way)]) {
            // Else all of this host's addresses are tried.
            let part = "rendezvous at 127.0.0.1:";
            assert!(description.contains(part), "{description}");
        }
    }
}

#[test]
fn the_rendezvous_is_found_behind_addresses_that_do_not_answer() {
    // Nothing listens on the first any more; the rendezvous' own address comes second.
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let foreign = stranger.local_addr().unwrap();
    drop(stranger);
    let key = oxshmem_bootstrap::JobKey::random().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (port, hex) = (free.port().to_string(), key.to_hex());
    let hosted = |rank: &'static str| {
        let (port, hex) = (port.clone(), hex.clone());
        move |name: &str| match name {
            "RANK" => Some(rank.to_owned()),
            "WORLD_SIZE" => Some("2".to_owned()),
            "MASTER_ADDR" => Some("127.0.0.1".to_owned()),
            "MASTER_PORT" => Some(port.clone()),
            "OXSHMEM_JOB_KEY" => Some(hex.clone()),
            _ => None,
        }
    };
    let first = join(&hosted("0"), PATIENCE).unwrap();
    let addresses = format!("{foreign},{free}");
    let second = oxshmem_bootstrap::TcpBootstrap::connect(&addresses, 1, 2, key, PATIENCE).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| first.barrier().unwrap());
        second.barrier().unwrap();
    });
    drop(second);
}

#[test]
fn a_pe_that_never_comes_is_missed_at_the_deadline() {
    for way in ["pmi1", "pmi2"] {
        let more = [("OXSHMEM_BOOTSTRAP", way)];
        // On a busy host a short deadline may pass in an earlier step.
        let mut deadline = Duration::from_millis(200);
        loop {
            let manager = ProcessManager::new(2);
            let error = joined(&manager, 1, 2, &more, deadline).unwrap_err();
            let words = error.to_string();
            if words.contains("waiting for the other PEs: no answer within") {
                break;
            }
            assert!(words.contains(": no answer within"), "{words}");
            deadline *= 2;
            assert!(deadline < PATIENCE, "{words}");
        }
    }
}

#[test]
fn a_job_of_one_is_a_world_of_one() {
    let manager = ProcessManager::new(1);
    let job = joined(&manager, 0, 1, &[], PATIENCE).unwrap();
    assert_eq!((job.rank(), job.size()), (0, 1));
    assert!(job.describe().contains("single"));
}
