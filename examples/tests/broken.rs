//! The five broken programs: over weak each fails as it is, and none fails mended. docs/guide/five-programs.md shows their code.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as tests do")]

use std::path::Path;
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../docs/guide/five-programs.md");

/// Each program, and the words of its error.
const PROGRAMS: [(&str, &str); 5] = [
    ("flag", "between data and flag"),
    ("signal", "before put_signal"),
    ("state", "two puts of one word"),
    ("meeting", "barrier_all completes puts"),
    ("context", "quiet of the context"),
];

/// A program with three PEs over a transport, for two minutes at most.
fn broken(program: &str, transport: &str, seed: u32, more: &[&str]) -> Output {
    Command::new("timeout")
        .args(["-k", "5", "120", env!("CARGO_BIN_EXE_broken")])
        .args([program, "--pes", "3"])
        .args(more)
        .env("OXSHMEM_TRANSPORT", transport)
        .env("OXSHMEM_SEED", seed.to_string())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const WEAK: &str = "weak(loopback)";
const SEEDS: std::ops::RangeInclusive<u32> = 1..=10;

#[test]
fn over_weak_some_seed_breaks_each_program() {
    for (program, words) in PROGRAMS {
        let broke = SEEDS.into_iter().any(|seed| {
            let output = broken(program, WEAK, seed, &[]);
            let said = errors(&output);
            assert!(
                output.status.success() || said.contains(words),
                "{program}, seed {seed}: {said}"
            );
            !output.status.success()
        });
        assert!(broke, "{program}: no seed of {SEEDS:?} breaks it");
    }
}

#[test]
fn over_weak_no_seed_breaks_a_mended_program() {
    for (program, _) in PROGRAMS {
        for seed in SEEDS {
            let output = broken(program, WEAK, seed, &["--mended"]);
            let said = errors(&output);
            assert!(output.status.success(), "{program}, seed {seed}: {said}");
        }
    }
}

/// The reason why they are tried over weak: x86 keeps stores in order.
#[test]
#[cfg(target_arch = "x86_64")]
fn over_plain_loopback_nobody_notices() {
    for (program, _) in PROGRAMS {
        let output = broken(program, "loopback", 1, &[]);
        assert!(output.status.success(), "{program}: {}", errors(&output));
    }
}

/// A text's lines without their indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[test]
fn the_page_shows_the_code_of_each_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/broken");
    let mut shown = PAGE.split("```rust,ignore\n").skip(1);
    for (program, _) in PROGRAMS {
        let block = shown.next().unwrap().split("```").next().unwrap();
        let source = std::fs::read_to_string(folder.join(program).with_extension("rs")).unwrap();
        let (source, block) = (lines(&source), lines(block.trim_end()));
        let found = source.windows(block.len()).any(|part| part == block);
        assert!(found, "{program}: the page shows {block:#?}");
        assert!(PAGE.contains(&format!("`broken {program}`")), "{program}");
    }
    assert!(shown.next().is_none(), "the page has more programs");
}
