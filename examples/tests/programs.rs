//! The example programs, as a user starts them: right results, and refusals that tell.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as tests do")]

use std::path::PathBuf;
use std::process::{Command, Output};

const RING: &str = env!("CARGO_BIN_EXE_ring");
const PAGERANK: &str = env!("CARGO_BIN_EXE_pagerank");

/// Runs a program, for two minutes at most.
fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new("timeout")
        .args(["-k", "5", "120", program])
        .args(arguments)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

/// What a program printed that must have succeeded.
fn stdout(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{arguments:?}: {}: {errors}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What a program said that must have failed.
fn refusal(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

/// A file of the test's own, gone with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oxshmem-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn the_token_goes_round_any_number_of_pes() {
    for pes in ["1", "2", "3", "7"] {
        let said = stdout(RING, &["--laps", "50", "--pes", pes]);
        let expected = format!("ring: the token went 50 times round {pes} PEs and came home whole");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn pagerank_of_the_shipped_graph_is_the_same_with_one_and_four_pes() {
    let saved = Scratch::new("ranks", "");
    stdout(PAGERANK, &["--pes", "1", "--save", saved.path()]);
    for exchange in ["put", "get"] {
        let said = stdout(
            PAGERANK,
            &[
                "--pes",
                "4",
                "--check",
                "--compare",
                saved.path(),
                "--exchange",
                exchange,
            ],
        );
        assert!(said.contains("libc6\n"), "{said}");
        assert!(said.contains("checked: ranks sum to 1"), "{said}");
        assert!(said.contains("compared: at most"), "{said}");
    }
}

#[test]
fn pagerank_takes_more_pes_than_vertices() {
    let graph = Scratch::new(
        "small.mtx",
        "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 2\n2 3\n",
    );
    let said = stdout(
        PAGERANK,
        &["--pes", "5", "--check", "--top", "1", graph.path()],
    );
    assert!(said.contains("3 vertices, 4 edges; 5 PEs"), "{said}");
    assert!(said.contains("   1  0.486486  2\n"), "{said}");
}

#[test]
fn wrong_ranks_and_malformed_files_fail_the_run() {
    let graph = Scratch::new("pair", "a b\nb a\n");
    let wrong = Scratch::new("wrong", "5e-1\ta\n4e-1\tb\n");
    let said = refusal(
        PAGERANK,
        &["--pes", "2", "--compare", wrong.path(), graph.path()],
    );
    assert!(said.contains("wrong: 1.0e-1 off the ranks in"), "{said}");

    let malformed = Scratch::new("malformed", "a b\nb\n");
    let said = refusal(PAGERANK, &["--pes", "2", malformed.path()]);
    assert!(
        said.contains(":2: one field, `b`; expected two vertices"),
        "{said}"
    );
}
