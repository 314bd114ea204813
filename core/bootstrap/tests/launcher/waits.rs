//! The launcher's words about PEs that wait.

use std::io::{BufRead, BufReader};
use std::process::ChildStderr;

use crate::Test;
use crate::job::{Job, kill, stop, until};

pub const TESTS: &[Test] = &[
    (
        "sigusr1_shows_who_waits_for_whom_and_the_job_goes_on",
        sigusr1_shows_who_waits_for_whom_and_the_job_goes_on,
    ),
    (
        "sigusr1_shows_the_pes_of_all_hosts",
        sigusr1_shows_the_pes_of_all_hosts,
    ),
    (
        "sigusr1_is_passed_on_to_who_has_a_handler_for_it",
        sigusr1_is_passed_on_to_who_has_a_handler_for_it,
    ),
    (
        "a_stopped_pe_is_shown_as_silent",
        a_stopped_pe_is_shown_as_silent,
    ),
    (
        "a_first_sigint_names_a_circle_and_ends_the_job",
        a_first_sigint_names_a_circle_and_ends_the_job,
    ),
    (
        "a_circle_is_named_when_a_pe_reports_that_it_hangs",
        a_circle_is_named_when_a_pe_reports_that_it_hangs,
    ),
];

const CIRCLE: &str = "these wait for each other in a circle: PE 0 for PE 1 in barrier_all, \
                      PE 1 for PE 2 in barrier_all, PE 2 for PE 0 in barrier_all;";

/// The launcher's next lines, in its order.
fn lines(stderr: &mut BufReader<ChildStderr>, count: usize) -> Vec<String> {
    let mut next = || {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    (0..count).map(|_| next()).collect()
}

fn stderr(job: &mut Job) -> BufReader<ChildStderr> {
    BufReader::new(job.launcher.stderr.take().unwrap())
}

fn end(mut job: Job) {
    job.signal(libc::SIGTERM);
    assert_eq!(job.wait().code(), Some(128 + libc::SIGTERM));
    job.expect_nothing_left();
}

fn sigusr1_shows_who_waits_for_whom_and_the_job_goes_on() {
    let mut job = Job::start("launch 4 -- wait 1 busy 1 busy");
    let _output = job.wait_ready(4);
    let mut stderr = stderr(&mut job);
    for _ in 0..2 {
        job.signal(libc::SIGUSR1);
        assert_eq!(
            lines(&mut stderr, 3),
            [
                "oxshmem run: PE 0 has waited 60.0 s in barrier_all for PE 1: its word",
                "oxshmem run: PE 2 has waited 60.0 s in barrier_all for PE 1: its word",
                "oxshmem run: PEs 1 and 3: in no call that waits",
            ]
        );
    }
    end(job);
}

fn sigusr1_shows_the_pes_of_all_hosts() {
    let (mut command, mark) = Job::command("launch 2 --hosts a:1,b:1 -- wait busy 0");
    command.env("OXSHMEM_RSH", crate::hosts::ENV);
    let mut job = Job::of((command, mark));
    let _output = job.wait_ready(2);
    let mut stderr = stderr(&mut job);
    job.signal(libc::SIGUSR1);
    assert_eq!(
        lines(&mut stderr, 2),
        [
            "oxshmem run: PE 1 has waited 60.0 s in barrier_all for PE 0: its word",
            "oxshmem run: PE 0: in no call that waits",
        ]
    );
    end(job);
}

fn sigusr1_is_passed_on_to_who_has_a_handler_for_it() {
    let mut job = Job::start("launch 3 -- handle 1");
    let mut output = job.wait_ready(3);
    job.signal(libc::SIGUSR1);
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "caught\n");
    assert_eq!(job.pes().len(), 3);
    end(job);
}

fn a_stopped_pe_is_shown_as_silent() {
    let mut job = Job::start("launch 2 -- wait busy busy");
    let _output = job.wait_ready(2);
    let mut stderr = stderr(&mut job);
    let stopped = job.pes()[0];
    stop(stopped);
    until("the other PE answers in time", || {
        job.signal(libc::SIGUSR1);
        let told = lines(&mut stderr, 1);
        // On a busy host the other PE may be late, too.
        if told[0].starts_with("oxshmem run: PEs 0 and 1: no answer (stopped") {
            return false;
        }
        assert!(told[0].ends_with(": in no call that waits"), "{told:?}");
        let told = lines(&mut stderr, 1);
        assert!(told[0].contains(": no answer (stopped"), "{told:?}");
        true
    });
    kill(stopped, libc::SIGCONT);
    end(job);
}

fn a_first_sigint_names_a_circle_and_ends_the_job() {
    let mut job = Job::start("launch 3 -- wait 1 2 0");
    let _output = job.wait_ready(3);
    job.signal(libc::SIGINT);
    let finished = job.finish();
    assert_eq!(finished.status.code(), Some(130), "{finished:?}");
    let told: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(told.len(), 4, "{finished:?}");
    assert!(told[2].contains("PE 2 has waited 60.0 s"), "{finished:?}");
    assert!(told[3].contains(CIRCLE), "{finished:?}");
}

fn a_circle_is_named_when_a_pe_reports_that_it_hangs() {
    let mut job = Job::start("launch 3 -- hangs 1 2 0");
    let _output = job.wait_ready(3);
    let mut stderr = stderr(&mut job);
    let told = lines(&mut stderr, 1);
    assert!(told[0].contains(CIRCLE), "{told:?}");
    end(job);
}
