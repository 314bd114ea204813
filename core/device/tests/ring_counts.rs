//! The accesses to host memory of calls that go by the ring, counted. The table of docs/measurements.md has the same numbers.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The output of `ring_counts.cpp`, by name: of one thread's calls, and of warps'.
fn counted() -> [Vec<(String, Vec<u64>)>; 2] {
    static TEXT: OnceLock<String> = OnceLock::new();
    let (threads, warps) = TEXT.get_or_init(output).split_once("warps\n").unwrap();
    [threads, warps].map(|text| {
        let lines = text.lines().map(|line| {
            let mut words = line.split(' ');
            let name = words.next().unwrap().to_owned();
            (name, words.map(|number| number.parse().unwrap()).collect())
        });
        lines.collect()
    })
}

/// Builds and runs the program.
fn output() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ring_counts");
    let built = Command::new("g++")
        .args(["-std=c++17", "-O1", "-pthread", "-include"])
        .arg(here.join("../../transport/nvlink/device/host_shim.h"))
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests/ring_counts.cpp"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("g++ is needed; ci/setup installs it");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let run = Command::new(program).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn each_call_accesses_host_memory_as_often_as_the_page_says() {
    let page = include_str!("../../../docs/measurements.md");
    let table = page.split("### Accesses to host memory").nth(1).unwrap();
    let [mut of_calls, _] = counted();
    let (name, laps) = of_calls.pop().unwrap();
    // Eight laps of 1024 slots, the first by the credit known at its beginning: two loads when that is used up, and none else.
    assert_eq!((name.as_str(), laps), ("credit", vec![14]));
    assert_eq!(of_calls.len(), 15);
    for (name, counts) in of_calls {
        let [loads, stores, others] = counts[..] else {
            panic!("{name}: {counts:?}");
        };
        assert_eq!(
            others, 0,
            "{name}: atomics on host memory, which PCIe does not have"
        );
        let row = table.lines().find(|line| {
            let first = line.split('|').nth(1).unwrap_or_default();
            first.split('`').any(|word| word == name)
        });
        let row = row.unwrap_or_else(|| panic!("the page has no row of {name}"));
        let cells: Vec<&str> = row.split('|').skip(2).map(str::trim).collect();
        assert_eq!(
            cells[..2],
            [loads.to_string(), stores.to_string()],
            "{name}: {row}"
        );
    }
}

#[test]
fn lanes_that_call_at_once_share_one_atomic_and_neighbours_one_request() {
    let [_, of_warps] = counted();
    let mut rows = of_warps.into_iter();
    for lanes in [32, 4] {
        // Loads and stores of host memory, atomics on it and on the GPU's, tickets, requests.
        for (name, wanted) in [
            // A request of 7 words, and a value of each other lane.
            ("p", [0, 7 + lanes - 1, 0, 1, lanes, 1]),
            // The same without values, and an answer of each lane.
            ("g", [2 * lanes, 7 + lanes, 0, 1, lanes, 1]),
            ("p-apart", [0, 7 * lanes, 0, 1, lanes, lanes]),
            ("p-backwards", [0, 7 * lanes, 0, 1, lanes, lanes]),
            ("p-two-pes", [0, 7 * lanes, 0, 1, lanes, lanes]),
            ("g-apart", [2 * lanes, 8 * lanes, 0, 1, lanes, lanes]),
            ("put_nbi", [0, 7 * lanes, 0, 1, lanes, lanes]),
            ("signal", [0, 7 * lanes, 0, 1, lanes, lanes]),
            ("atomic_add", [0, 7 * lanes, 0, 1, lanes, lanes]),
            (
                "atomic_fetch_add",
                [2 * lanes, 8 * lanes, 0, 1, lanes, lanes],
            ),
        ] {
            let row = rows.next().unwrap();
            assert_eq!(row, (name.to_owned(), wanted.to_vec()), "{lanes} lanes");
        }
    }
    assert_eq!(rows.next(), None);
}
