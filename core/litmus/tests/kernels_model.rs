//! The text of programs of kernels, and their model: the built-in ones meet their expectations.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use oxshmem_litmus::Outcome;
use oxshmem_litmus::kernels::{Kernels, library::library, model};

#[test]
fn the_list_is_the_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<_> = files
        .filter_map(|file| file.strip_suffix(".litmus").map(str::to_string))
        .collect();
    assert_eq!(
        files,
        library().iter().map(|(name, _)| name.to_string()).collect()
    );
}

#[test]
fn each_meets_its_expectations_and_prints_back() {
    for (name, text) in library() {
        let kernels = Kernels::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(kernels.head().name(), *name);
        assert!(
            !kernels.head().about().is_empty() && !kernels.head().rules().is_empty(),
            "{name}"
        );
        assert!(
            !kernels.head().expectations().is_empty(),
            "{name}: no `expect`"
        );
        let printed = kernels.to_string();
        assert_eq!(Kernels::parse(&printed), Ok(kernels.clone()), "{printed}");
        let outcomes = model::outcomes(&kernels).unwrap();
        let unmet = model::unmet(&kernels, &outcomes);
        assert!(
            unmet.is_empty(),
            "{name}: {} does not hold for {outcomes:?}",
            unmet[0]
        );
        assert!(
            !outcomes.contains(&Outcome::Deadlock),
            "{name} can get stuck"
        );
    }
}

#[track_caller]
fn all(text: &str) -> Vec<String> {
    let kernels = Kernels::parse(text).unwrap();
    model::outcomes(&kernels)
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_wait_that_nobody_ends_is_a_deadlock() {
    assert_eq!(
        all("name w\nvars x\nPE 0 block 0:\n  wait_until x == 1"),
        ["deadlock"]
    );
    let half = "name b\nvars x\nPE 0 block 0 lanes 2:\n  lane 0 spin gpu x == 1\n  syncthreads";
    assert_eq!(all(half), ["deadlock"]);
}

#[test]
fn what_programs_of_kernels_are_refused_for() {
    let refused = |text: &str| Kernels::parse(text).unwrap_err().to_string();
    let head = "name n\nvars x y d[2]\n";
    let cases = [
        ("PE 0:\n fence", "line 3, column 4: the PE has no block"),
        ("PE 0 block 0\n fence", "line 3, column 1"),
        (
            "PE 0 block 0:\nPE 0 block 0:",
            "block 0 of PE 0 had its calls already",
        ),
        ("PE 0 block 4:", "blocks are 0 to 3, of 1 to 8 threads"),
        (
            "PE 0 block 0 lanes 9:",
            "blocks are 0 to 3, of 1 to 8 threads",
        ),
        (
            "PE 0 block 0 lanes 2:\n lane 2 fence",
            "the block has no thread 2",
        ),
        (
            "PE 0 block 0 lanes 2:\n r0 = g x@0",
            "write `lane 0` before it",
        ),
        (
            "PE 0 block 0 lanes 2:\n barrier_all",
            "each of 2 threads would make this call",
        ),
        (
            "PE 0 block 0:\n block fence",
            "`fence` is not made by a group here",
        ),
        ("PE 0 block 0:\n g x@0", "`g` gives a value"),
        (
            "PE 0 block 0:\n r0 = fence",
            "`fence` fills 0 registers, and 1 stand before it",
        ),
        ("PE 0 block 0:\n put d@0 1", "`put` of 2 words has 1 values"),
        ("PE 0 block 0:\n threadfence warp", "`warp` is no scope"),
        ("PE 0 block 0:\n frobnicate", "`frobnicate` is no call"),
        (
            "PE 0 block 0:\n barrier_all\nPE 1 block 0:\n fence",
            "the PEs call different collectives",
        ),
        (
            "PE 0 block 0:\n vars z",
            "`vars` stands among the calls of a block",
        ),
        (
            "models ordered\nPE 0 block 0:\n fence",
            "programs of kernels have one memory model",
        ),
        (
            "expect forbidden r1=0\nPE 0 block 0:\n r0 = g x@0",
            "r1 is not part of the outcome",
        ),
        ("", "the program has no block"),
    ];
    for (text, part) in cases {
        let message = refused(&format!("{head}{text}"));
        assert!(message.contains(part), "{text:?}: {message}");
    }
}
