//! The example programs, as a user starts them: correct results, and refusals with a reason.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as tests do")]

use std::path::PathBuf;
use std::process::{Command, Output};

const RING: &str = env!("CARGO_BIN_EXE_ring");
const PAGERANK: &str = env!("CARGO_BIN_EXE_pagerank");
const ISORT: &str = env!("CARGO_BIN_EXE_isort");
const GUPS: &str = env!("CARGO_BIN_EXE_gups");
const HEAT2D: &str = env!("CARGO_BIN_EXE_heat2d");
const BFS: &str = env!("CARGO_BIN_EXE_bfs");

/// A program that runs for two minutes at most.
fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", "120", program])
        .args(arguments)
        .env("RUST_BACKTRACE", "0");
    command
}

fn run(program: &str, arguments: &[&str]) -> Output {
    command(program, arguments).output().unwrap()
}

/// The stdout of a program that must succeed.
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

/// The stderr of a program that must fail.
fn refusal(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

/// A file of one test, removed when dropped.
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

    fn content(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
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

#[test]
fn isort_sorts_the_keys_of_any_number_of_pes() {
    for pes in ["1", "2", "4"] {
        let said = stdout(
            ISORT,
            &["--pes", pes, "--keys", "20000", "--iterations", "3"],
        );
        assert!(said.contains("in order, the same keys"), "{said}");
    }
}

#[test]
fn isort_draws_every_phase_of_every_pe() {
    let picture = Scratch::new("isort.svg", "");
    let arguments = ["--pes", "3", "--keys", "1000", "--picture", picture.path()];
    stdout(ISORT, &arguments);
    for words in ["PE 0", "PE 2", "exchange", "sort what came"] {
        assert!(picture.content().contains(words), "{words}");
    }
}

#[test]
fn m28_gups_loses_no_atomic_update() {
    for pes in ["1", "2", "3", "4"] {
        let said = stdout(GUPS, &["--pes", pes, "--from", "0", "--size", "8"]);
        assert_eq!(said.matches("; 0 words wrong").count(), 9, "{said}");
    }
}

/// A table so small that updates collide: the check must notice.
#[test]
fn gups_that_loses_updates_fails_the_run() {
    let said = refusal(GUPS, &["--pes", "1", "--size", "8", "--update", "get-put"]);
    assert!(said.contains("of 256 words are wrong, 2 at most"), "{said}");
    assert!(said.contains("--update atomic"), "{said}");
}

#[test]
fn gups_by_get_and_put_is_right_enough_where_updates_seldom_meet() {
    let said = stdout(GUPS, &["--pes", "1", "--size", "19", "--update", "get-put"]);
    assert!(said.contains("2097152 updates of 524288 words"), "{said}");
}

#[test]
fn gups_refuses_sizes_that_do_not_ascend() {
    let said = refusal(GUPS, &["--from", "5", "--size", "4"]);
    assert!(said.contains("--from 5 is larger than --size 4"), "{said}");
}

#[test]
fn heat2d_is_the_same_to_the_bit_with_any_number_of_pes() {
    let pictures = ["1", "2", "4", "13"].map(|pes| {
        let picture = Scratch::new(&format!("heat-{pes}.png"), "");
        let plate = ["--width", "20", "--height", "15", "--steps", "101"];
        let run = ["--pes", pes, "--picture", picture.path()];
        let said = stdout(HEAT2D, &[&run[..], &plate[..]].concat());
        assert!(said.contains("every number is that of a serial"), "{said}");
        std::fs::read(&picture.0).unwrap()
    });
    assert!(pictures.iter().all(|picture| *picture == pictures[0]));
}

#[test]
fn heat2d_refuses_more_pes_than_rows() {
    let said = refusal(HEAT2D, &["--pes", "3", "--height", "4"]);
    assert!(
        said.contains("2 rows between the edges are too few"),
        "{said}"
    );
}

#[test]
fn bfs_finds_the_same_levels_with_any_number_of_pes() {
    for (graph, pes) in [
        (&["--scale", "9"][..], &["1", "2", "4"][..]),
        (&["--root", "libc6"], &["1", "3"]),
    ] {
        let pictures = pes.iter().map(|pes| {
            let picture = Scratch::new(&format!("bfs-{pes}.svg"), "");
            let run = ["--pes", pes, "--picture", picture.path()];
            let said = stdout(BFS, &[graph, &run[..]].concat());
            assert!(said.contains("checked by Graph500's rules"), "{said}");
            picture.content()
        });
        let pictures: Vec<_> = pictures.collect();
        assert!(pictures.iter().all(|picture| *picture == pictures[0]));
    }
}

#[test]
fn bfs_searches_small_graphs_and_refuses_what_it_cannot_search() {
    let graph = Scratch::new("two-islands", "a b\nc d\nd d\n");
    let said = stdout(BFS, &["--pes", "6", graph.path()]);
    assert!(said.contains("6 PEs, 4 roots"), "{said}");
    let said = refusal(BFS, &["--root", "nobody", graph.path()]);
    assert!(said.contains("has no vertex nobody"), "{said}");
    let loops = Scratch::new("loops", "a a\n");
    let said = refusal(BFS, &[loops.path()]);
    assert!(said.contains("no edge between two vertices"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_work() {
    let file = "/no-such-folder/results";
    for (program, option) in [
        (ISORT, "--picture"),
        (GUPS, "--picture"),
        (HEAT2D, "--picture"),
        (BFS, "--picture"),
        (PAGERANK, "--save"),
    ] {
        let output = run(program, &["--pes", "2", option, file]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{program} succeeded");
        for words in [file, "name a file in a folder that exists"] {
            assert!(errors.contains(words), "{program}: {errors}");
        }
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.is_empty(), "{program} did the work: {said}");
    }
}

const SMALL: [(&str, &[&str]); 4] = [
    (ISORT, &["--keys", "500", "--iterations", "3"]),
    (GUPS, &["--size", "6"]),
    (HEAT2D, &["--width", "8", "--height", "10", "--steps", "40"]),
    (BFS, &["--scale", "6", "--roots", "4"]),
];

/// Runs the programs, which check themselves, on small inputs with these variables.
fn all_are_right(pes: &str, environment: &[(&str, &str)]) {
    let picture = Scratch::new(&format!("small-{environment:?}.png").replace('/', "-"), "");
    for (program, arguments) in SMALL {
        let mut command = command(program, &[arguments, &["--pes", pes]].concat());
        if program == HEAT2D {
            command.args(["--picture", picture.path()]);
        }
        let output = command.envs(environment.iter().copied()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{program}, {environment:?}: {errors}"
        );
    }
}

/// On x86 a missing fence hardly ever shows; over weak it does.
#[test]
fn m17_m19_m22_programs_are_right_however_late_and_mixed_their_data_comes() {
    for seed in ["1", "2", "3"] {
        all_are_right(
            "3",
            &[
                ("OXSHMEM_TRANSPORT", "weak(loopback)"),
                ("OXSHMEM_SEED", seed),
            ],
        );
    }
}

#[test]
fn m31_to_m38_programs_pass_checked_mode() {
    all_are_right("2", &[("OXSHMEM_CHECK", "1")]);
}
