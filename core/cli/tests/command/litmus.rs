//! `oxshmem litmus`: its verdicts, seeds, replays and refusals.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{BINARY, command, outcome, run, stdout_of};

/// A file with a litmus program's text, removed when dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: impl AsRef<[u8]>) -> File {
        let name = format!("oxshmem-{}-{name}.litmus", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Best effort: a leftover temporary file does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

const MESSAGE: &str = "\
name message
vars x y
PE 0:
  put x@1 1
  put y@1 1
PE 1:
  wait_until y == 1
  r0 = read x
";

#[test]
fn litmus_lists_programs_with_rules_and_what_they_show() {
    let text = stdout_of(&["litmus", "--list"]);
    let line = text.lines().find(|line| line.starts_with("mp+fence "));
    assert!(line.is_some_and(|line| line.contains(" M17")), "{text}");
    assert!(text.lines().count() > 40, "{text}");
}

#[test]
fn litmus_over_weak_shows_every_allowed_outcome_and_no_other() {
    let text = stdout_of(&["litmus", "--verbose", "mp", "mp+fence", "nbi+fence"]);
    let line = |words: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with("ok ") && line.contains(words));
        line.unwrap_or_else(|| panic!("{words}: {text}"))
    };
    // Without a fence the first put may be missing.
    assert!(line(" mp         ordered").contains("2 of 2 outcomes"));
    assert!(line(" mp+fence   relaxed").contains("1 of 1 outcomes"));
    // The models differ here.
    assert!(line(" nbi+fence  ordered").contains("1 of 1 outcomes"));
    assert!(line(" nbi+fence  relaxed").contains("2 of 2 outcomes"));
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with("3 programs, 6 with their models; 9 of 9 allowed outcomes seen, none"),
        "{last}"
    );
}

#[test]
fn a_forbidden_outcome_comes_with_a_schedule_that_shows_it_again() {
    for (transport, omitted) in [("weak", "FenceLane"), ("simulator", "FenceStores")] {
        let (status, text, stderr) = run(&[
            "litmus",
            "--transport",
            transport,
            "--model",
            "ordered",
            "--omit",
            omitted,
            "mp+fence",
        ]);
        assert_eq!(status, Some(1), "{text}{stderr}");
        assert!(
            text.starts_with("FORBIDDEN") && text.contains("r0=0  <- forbidden"),
            "{text}"
        );
        let again = text
            .lines()
            .find_map(|line| line.split_once("again: oxshmem "));
        let again: Vec<&str> = again.unwrap().1.split(' ').collect();
        let (status, text, stderr) = run(&again);
        assert_eq!(status, Some(1), "{again:?}: {text}{stderr}");
        assert!(text.contains("PE 1: r0 = read x"), "{text}");
        assert!(text.ends_with("r0=0: FORBIDDEN\n"), "{text}");
    }
}

#[test]
fn an_allowed_outcome_that_was_not_seen_over_weak_is_told() {
    // One run on each machine cannot show them all.
    let args = ["litmus", "--runs", "1", "--model", "ordered", "wrc+gets"];
    let (status, text, stderr) = run(&args);
    assert_eq!(status, Some(3), "{text}{stderr}");
    assert!(
        text.starts_with("incomplete") && text.contains("1 incomplete"),
        "{text}"
    );
    assert!(text.contains("                   0  r0="), "{text}");
    // Other platforms promise nothing of the kind.
    let (status, text, stderr) = run(&[&args[..], &["--transport", "simulator"]].concat());
    assert_eq!(status, Some(0), "{text}{stderr}");
}

#[test]
fn litmus_runs_threads_and_the_processes_of_a_job() {
    let text = stdout_of(&[
        "litmus",
        "--transport",
        "loopback",
        "--runs",
        "20",
        "mp+fence",
    ]);
    assert!(text.contains("1 of 1 outcomes in 20 runs"), "{text}");

    let litmus = [
        "litmus",
        "--runs",
        "20",
        "mp+fence",
        "iriw",
        "barrier-barrier",
    ];
    let text = stdout_of(&[&["run", "-n", "3", BINARY][..], &litmus].concat());
    assert_eq!(
        text.matches("1 of 1 outcomes in 20 runs").count(),
        1,
        "{text}"
    );
    assert!(text.contains("skipped     iriw"), "{text}");
    assert!(text.contains("it needs 4 PEs, this job has 3"), "{text}");
    assert!(!text.contains("relaxed"), "{text}");

    let relaxed = [
        &["run", "-n", "4", BINARY][..],
        &litmus,
        &["--model", "relaxed"],
    ]
    .concat();
    let mut weak = command(&relaxed);
    let (status, text, stderr) = outcome(weak.env("OXSHMEM_TRANSPORT", "weak(loopback)"));
    assert_eq!(status, Some(0), "{text}{stderr}");
    assert_eq!(text.matches("relaxed").count(), 3, "{text}");
}

#[test]
fn litmus_passes_blocks_between_pairs_of_pes() {
    let blocks = ["litmus", "--block", "4K", "--runs", "20"];
    let text = stdout_of(&[&["run", "-n", "3", BINARY][..], &blocks].concat());
    assert!(
        text.contains("20 rounds in each direction, pairs of PEs: 1, 0 of them on two hosts"),
        "{text}"
    );
    assert_eq!(text.matches("ok  ").count(), 6, "{text}");

    let mut weak = command(&[&["run", "-n", "2", BINARY][..], &blocks].concat());
    let (status, text, stderr) = outcome(weak.env("OXSHMEM_TRANSPORT", "weak(loopback)"));
    assert_eq!(status, Some(0), "{text}{stderr}");

    for (pes, block, words) in [
        ("2", "12", "a multiple of 8 bytes"),
        ("2", "0", "a multiple of 8 bytes"),
        ("1", "8", "this job has one"),
    ] {
        let (status, _, stderr) = run(&["run", "-n", pes, BINARY, "litmus", "--block", block]);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[test]
fn a_file_is_run_as_a_program_is() {
    let file = File::new("good", MESSAGE);
    let text = stdout_of(&["litmus", "--model", "ordered", file.path()]);
    assert!(
        text.starts_with("ok          message  ordered  2 of 2"),
        "{text}"
    );
}

#[test]
fn a_program_that_waits_for_ever_is_run_where_that_is_seen() {
    let file = File::new("endless", MESSAGE.replace("y == 1", "y == 2"));
    let text = stdout_of(&["litmus", "--verbose", "--model", "ordered", file.path()]);
    assert!(text.contains("  deadlock\n"), "{text}");
    let (status, text, stderr) = run(&["litmus", "--transport", "loopback", file.path()]);
    assert_eq!(status, Some(2), "{text}");
    assert!(
        text.contains("it may wait for ever; run it over weak"),
        "{text}"
    );
    assert!(stderr.contains("nothing was run"), "{stderr}");
}

#[test]
fn an_expectation_that_does_not_hold_is_shown_with_how_it_comes_about() {
    let expecting = MESSAGE.replace("PE 0:", "expect forbidden r0=0\nPE 0:");
    let file = File::new("unmet", expecting);
    let (status, text, stderr) = run(&["litmus", "--model", "ordered", file.path()]);
    assert_eq!(status, Some(2), "{text}{stderr}");
    assert!(text.starts_with("unmet"), "{text}");
    assert!(
        text.contains("`expect forbidden r0=0` does not hold"),
        "{text}"
    );
    assert!(text.contains("PE 1: "), "{text}");
}

#[test]
fn litmus_refuses_bad_input_with_a_remedy() {
    let broken = File::new("broken", MESSAGE.replace("put y@1", "putt y@1"));
    let binary = File::new("binary", [0xff; 64]);
    let path = broken.path();
    for (args, words) in [
        (
            &["mp+fense"][..],
            "did you mean mp+fence? `oxshmem litmus --list`",
        ),
        (&[path], "line 5, column 3"),
        (&[binary.path()], "name a text file"),
        (&["/no/such/file.litmus"], "/no/such/file.litmus"),
        (&["/dev/zero"], "65536"),
        (&["."], "no program"),
        (&["--transport", "pigeon"], "weak, simulator, loopback"),
        (&["--model", "strict"], "ordered, relaxed"),
        (&["--runs", "0"], "1.."),
        (&["--seed=-1"], "--seed"),
        (&["--replay", "a", "mp"], "such as 0:1,0,2"),
        (&["--replay", "1", "mp"], "--model"),
        (&["--replay", "1"], "name the one program"),
        (
            &[
                "--replay",
                "1",
                "--model",
                "ordered",
                "--transport",
                "loopback",
                "mp",
            ],
            "weak and",
        ),
        (
            &["--replay", "9:1", "--model", "ordered", "mp"],
            "machines are 0 to",
        ),
        (
            &["--memory", "cuda", "--transport", "weak"],
            "no GPU memory",
        ),
        (&["--omit", "Everything", "mp"], "FenceLane"),
        (&["--block", "8"], "oxshmem run -n 2"),
        (&["--block", "much"], "--block"),
        (&["--block", "8", "mp"], "cannot be used with"),
        (
            &["--omit", "FenceLane", "--transport", "loopback", "mp"],
            "--transport weak",
        ),
    ] {
        let (status, stdout, stderr) = run(&[&["litmus"], args].concat());
        assert_eq!(
            (status, stdout.as_str()),
            (Some(2), ""),
            "{args:?}: {stderr}"
        );
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    }
    let (status, _, stderr) = run(&["run", "-n", "2", BINARY, "litmus", "--transport", "weak"]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("leave out oxshmem run"), "{stderr}");
    let (status, _, stderr) = run(&["run", "-n", "2", BINARY, "litmus", "--memory", "cuda"]);
    assert_eq!(status, Some(2), "{stderr}");
    let with_gpus = cfg!(feature = "cuda");
    let remedy = if with_gpus {
        "set OXSHMEM_CUDA_SYMMETRIC_SIZE"
    } else {
        "build it with the feature cuda"
    };
    assert!(stderr.contains(remedy), "{stderr}");
    if !with_gpus {
        return;
    }
    let mut without = command(&["litmus", "--memory", "cuda", "mp"]);
    let (status, _, stderr) = outcome(without.env("OXSHMEM_CUDA_LIBRARY", "/none"));
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("/none could not be loaded"), "{stderr}");
}

#[test]
fn an_interrupt_ends_litmus() {
    for transport in ["weak", "loopback"] {
        let mut litmus = command(&["litmus", "--transport", transport]);
        // The search has started, and is far from its end.
        let mut litmus = litmus.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::new(litmus.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        kill_process(Pid::from_child(&litmus), Signal::INT).unwrap();
        let status = litmus.wait().unwrap();
        assert_eq!(
            status.signal(),
            Some(Signal::INT.as_raw()),
            "{transport}: {first}"
        );
    }
}
