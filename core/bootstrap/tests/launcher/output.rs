//! A job's input and output.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use crate::Test;
use crate::job::{Job, PATIENCE, until};

pub const TESTS: &[Test] = &[
    ("stdin_goes_to_pe_zero_alone", stdin_goes_to_pe_zero_alone),
    (
        "stdin_is_passed_on_as_it_comes",
        stdin_is_passed_on_as_it_comes,
    ),
    ("lines_stay_whole_under_load", lines_stay_whole_under_load),
    (
        "lines_stay_whole_when_both_streams_are_one",
        lines_stay_whole_when_both_streams_are_one,
    ),
    ("lines_are_tagged_if_asked", lines_are_tagged_if_asked),
    ("long_lines_come_whole", long_lines_come_whole),
    (
        "a_last_line_without_end_is_passed_on",
        a_last_line_without_end_is_passed_on,
    ),
    ("a_slow_reader_slows_the_pes", a_slow_reader_slows_the_pes),
    (
        "a_closed_output_ends_the_job_quietly",
        a_closed_output_ends_the_job_quietly,
    ),
    (
        "an_output_that_cannot_be_written_is_told",
        an_output_that_cannot_be_written_is_told,
    ),
    (
        "a_process_that_left_the_job_does_not_keep_it",
        a_process_that_left_the_job_does_not_keep_it,
    ),
    (
        "a_reader_that_stopped_does_not_keep_a_job_that_took_too_long",
        a_reader_that_stopped_does_not_keep_a_job_that_took_too_long,
    ),
    (
        "wrong_keys_are_a_few_lines_that_keep_no_launcher",
        wrong_keys_are_a_few_lines_that_keep_no_launcher,
    ),
];

/// Nobody reads the launcher's stderr until it has ended.
fn wrong_keys_are_a_few_lines_that_keep_no_launcher() {
    let (mut command, mark) = Job::command("launch 1 -- cat");
    command.stdin(Stdio::piped());
    let mut job = Job::of((command, mark));
    until("the PE has started", || job.pes().len() == 1);
    let environment = std::fs::read(format!("/proc/{}/environ", job.pes()[0])).unwrap();
    let text = String::from_utf8_lossy(&environment).into_owned();
    let set = |set: &str| set.strip_prefix("OXSHMEM_RENDEZVOUS=").map(str::to_owned);
    let address = text.split('\0').find_map(set).unwrap();
    // As the protocol has it: a hello, with any nonce, and what is no proof.
    let mut hello = b"\x89OXSHMEM".to_vec();
    hello.extend([4u32, 0, 1].map(u32::to_le_bytes).concat());
    hello.extend([0; 32 + 32]);
    // In full, these warnings would be more than a pipe holds.
    for _ in 0..600 {
        let mut stranger = TcpStream::connect(&address).unwrap();
        stranger.set_read_timeout(Some(PATIENCE)).unwrap();
        stranger.write_all(&hello).unwrap();
        // A challenge and a refusal.
        stranger.read_to_end(&mut Vec::new()).unwrap();
    }
    drop(job.launcher.stdin.take());
    assert_eq!(job.wait().code(), Some(0));
    let mut said = String::new();
    let mut stderr = job.launcher.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("same OXSHMEM_JOB_KEY"), "{said}");
    assert_eq!(said.lines().count(), 12, "{said}");
    job.expect_nothing_left();
}

fn stdin_goes_to_pe_zero_alone() {
    let (mut command, mark) = Job::command("launch 3 -- cat");
    command.stdin(Stdio::piped());
    let mut job = Job::of((command, mark));
    job.launcher
        .stdin
        .take()
        .unwrap()
        .write_all(b"some\ninput")
        .unwrap();
    let finished = job.finish();
    let mut lines: Vec<_> = finished.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            r#"rank 0 read "some\ninput""#,
            r#"rank 1 read """#,
            r#"rank 2 read """#
        ]
    );
}

fn stdin_is_passed_on_as_it_comes() {
    let (mut command, mark) = Job::command("launch 2 -- echo");
    command.stdin(Stdio::piped());
    let mut job = Job::of((command, mark));
    let mut input = job.launcher.stdin.take().unwrap();
    let mut output = BufReader::new(job.launcher.stdout.take().unwrap());
    for word in ["one\n", "two\n", "three\n"] {
        input.write_all(word.as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, word);
    }
    drop(input);
    assert_eq!(job.finish().status.code(), Some(0));
}

fn lines_stay_whole_under_load() {
    let finished = Job::run("launch 7 -- lines 2000 130");
    assert_eq!(finished.status.code(), Some(0));
    let mut counts = [0; 7];
    for line in finished.stdout.lines() {
        let letter = line.as_bytes()[0];
        assert!(
            line.len() == 130 && line.bytes().all(|byte| byte == letter),
            "mixed: {line}"
        );
        counts[usize::from(letter - b'a')] += 1;
    }
    assert_eq!(counts, [2000; 7]);
}

fn lines_stay_whole_when_both_streams_are_one() {
    let (mut output, input) = std::io::pipe().unwrap();
    let (mut command, mark) = Job::command("launch 4 -- both 1500 130");
    command.stdout(input.try_clone().unwrap()).stderr(input);
    let job = Job::of((command, mark));
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    let mut counts = [0; 4];
    for line in text.lines() {
        let letter = line.as_bytes()[0];
        assert!(
            line.len() == 130 && line.bytes().all(|byte| byte == letter),
            "mixed: {line}"
        );
        counts[usize::from(letter - b'a')] += 1;
    }
    assert_eq!(counts, [3000; 4]);
    assert_eq!(job.finish().status.code(), Some(0));
}

fn lines_are_tagged_if_asked() {
    let finished = Job::run("launch 3 --tag -- lines 50 30");
    assert_eq!(finished.stdout.lines().count(), 150);
    for line in finished.stdout.lines() {
        let (tag, text) = line.split_once("] ").unwrap();
        let rank: u8 = tag.trim_start_matches('[').parse().unwrap();
        assert_eq!(text.as_bytes(), [b'a' + rank; 30]);
    }
}

fn long_lines_come_whole() {
    let length = 3_000_000;
    let finished = Job::run(&format!("launch 1 -- lines 2 {length}"));
    let lengths: Vec<_> = finished.stdout.lines().map(str::len).collect();
    assert_eq!(lengths, [length, length]);
}

fn a_last_line_without_end_is_passed_on() {
    assert_eq!(Job::run("launch 1 -- text alone").stdout, "alone");
    // Of several, none is glued to another.
    assert_eq!(Job::run("launch 3 -- text part").stdout, "part\npart\npart");
}

/// The launcher's resident memory, KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn a_slow_reader_slows_the_pes() {
    let mut job = Job::start("launch 2 -- endless");
    let mut output = job.launcher.stdout.take().unwrap();
    let mut bytes = [0; 16 << 10];
    for _ in 0..100 {
        output.read_exact(&mut bytes).unwrap();
    }
    // Nobody reads now: the PEs must come to rest, writing to full pipes.
    let pes = job.pes();
    assert_eq!(pes.len(), 2);
    let written = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let mut before = Vec::new();
    let mut same = 0;
    until("the PEs come to rest", || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let now: Vec<String> = pes.iter().map(written).collect();
        same = if now == before { same + 1 } else { 0 };
        before = now;
        same >= 10
    });
    assert!(
        resident(job.launcher.id()) < 32 << 10,
        "no unbounded buffer"
    );
    // And they go on when it is read again.
    for _ in 0..1000 {
        output.read_exact(&mut bytes).unwrap();
    }
    drop(output);
    assert_eq!(job.wait().code(), Some(141));
    job.expect_nothing_left();
}

fn a_closed_output_ends_the_job_quietly() {
    let mut job = Job::start("launch 3 -- endless");
    let mut output = job.launcher.stdout.take().unwrap();
    let mut first = [0; 2];
    output.read_exact(&mut first).unwrap();
    drop(output);
    let finished = job.finish();
    assert_eq!(finished.status.code(), Some(141));
    assert_eq!(finished.stderr, "");
}

fn an_output_that_cannot_be_written_is_told() {
    // One ends before its output is written, the other when it cannot be.
    for role in ["text something", "endless"] {
        let (mut command, mark) = Job::command(&format!("launch 2 -- {role}"));
        let full = std::fs::File::options().write(true).open("/dev/full");
        command.stdout(full.unwrap());
        let finished = Job::of((command, mark)).finish();
        assert_eq!(finished.status.code(), Some(1), "{finished:?}");
        let start = "oxshmem run: cannot write the output: No space left";
        assert!(finished.stderr.starts_with(start), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    }
}

fn a_process_that_left_the_job_does_not_keep_it() {
    let finished = Job::run("launch 2 -- stray");
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
}

fn a_reader_that_stopped_does_not_keep_a_job_that_took_too_long() {
    let mut job = Job::start("launch 2 --timeout 300 -- endless");
    assert_eq!(job.wait().code(), Some(124));
    job.expect_nothing_left();
}
