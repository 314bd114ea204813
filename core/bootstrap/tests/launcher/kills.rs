//! Kills at any moment: the job ends, with one clear line if there is someone to say it, and
//! nothing remains.

use std::time::Duration;

use crate::Test;
use crate::job::{Job, kill, until};

pub const TESTS: &[Test] = &[
    (
        "killing_the_launcher_ends_pes_and_their_children",
        killing_the_launcher_ends_pes_and_children,
    ),
    (
        "killing_a_pe_at_any_moment_ends_the_job",
        killing_a_pe_at_any_moment_ends_the_job,
    ),
    (
        "killing_the_launcher_at_any_moment_leaves_nothing",
        killing_the_launcher_at_any_moment,
    ),
    ("output_ends_with_the_job", output_ends_with_the_job),
];

/// Rounds of each kind. `LAUNCHER_TEST_ROUNDS` gives more.
fn rounds() -> u64 {
    std::env::var("LAUNCHER_TEST_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(24)
}

/// A delay that is another in each round, over start-up and beyond.
fn moment(round: u64) -> Duration {
    Duration::from_micros(round.wrapping_mul(7919) % 40 * 700)
}

fn killing_the_launcher_ends_pes_and_children() {
    let mut job = Job::start("launch 3 -- hang");
    let _output = job.wait_ready(3);
    let processes = job.processes();
    // The launcher, its guardian, the PEs and a child of each.
    assert_eq!(processes.len(), 2 + 3 + 3, "{processes:?}");
    job.signal(libc::SIGKILL);
    job.wait();
    job.expect_nothing_left();
}

fn killing_the_launcher_at_any_moment() {
    for round in 0..rounds() {
        let mut job = Job::start("launch 4 -- hang");
        std::thread::sleep(moment(round));
        job.signal(libc::SIGKILL);
        job.wait();
        job.expect_nothing_left();
    }
}

fn killing_a_pe_at_any_moment_ends_the_job() {
    for round in 0..rounds() {
        let mut job = Job::start("launch 4 -- hang");
        until("a PE has started", || !job.pes().is_empty());
        std::thread::sleep(moment(round));
        let pes = job.pes();
        let victim = pes[usize::try_from(round).unwrap() % pes.len()];
        kill(victim, libc::SIGKILL);
        let status = job.wait();
        assert_eq!(
            status.code(),
            Some(128 + libc::SIGKILL),
            "{:?}",
            job.finish()
        );
        let finished = job.finish();
        let line = format!("(pid {victim}) was killed by signal 9 (SIGKILL)");
        assert!(finished.stderr.contains(&line), "{finished:?}");
        assert_eq!(
            finished.stderr.matches("oxshmem run:").count(),
            1,
            "{finished:?}"
        );
    }
}

fn output_ends_with_the_job() {
    // `finish` reads to the end of both streams: neither guardian nor PE keeps them open.
    let mut job = Job::start("launch 2 -- hang");
    let output = job.wait_ready(2);
    job.signal(libc::SIGKILL);
    job.launcher.stdout = Some(output.into_inner());
    let finished = job.finish();
    assert_eq!(finished.status.code(), None);
}
