//! The device library's calls on a simulated memory as weak as PTX's model: the built-in programs of kernels have no other outcomes than
//! the contract allows, on any path, and they notice each change of the header that drops or weakens an order.
//!
//! `KERNELS_LITMUS_RUNS` is the number of runs of each program on each path (default: 200).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arena;
mod changes;
mod compiled;
mod host;
mod memory;
mod ptx;
mod run;
mod simulation;
mod source;
mod thread;
#[path = "../two_at_once/mod.rs"]
mod two_at_once;

use std::collections::BTreeSet;
use std::sync::Mutex;

use arena::Path;
use changes::{Change, HOST_CHANGES, changes};
use oxshmem_litmus::kernels::library::library;
use oxshmem_litmus::kernels::{Kernels, model};
use oxshmem_litmus::{Outcome, Verdict};
use run::{Bench, Changed, End, How};
use two_at_once::two_at_once;

/// Programs whose relaxed outcomes the implementation does not have: it orders more than the contract asks.
const STRONGER: &[&str] = &["put+put-signal"];
/// Runs in which a change is noticed at the latest.
const NOTICED_WITHIN: u64 = 3000;

fn runs() -> u64 {
    let wanted = std::env::var("KERNELS_LITMUS_RUNS").ok();
    wanted.map_or(200, |runs| {
        runs.parse().expect("KERNELS_LITMUS_RUNS is a number")
    })
}

fn program(name: &str) -> Kernels {
    let found = library().iter().find(|(other, _)| *other == name);
    Kernels::parse(found.unwrap_or_else(|| panic!("no program {name}")).1).unwrap()
}

/// The last accesses of a run, made again.
fn told(kernels: &Kernels, how: How) -> String {
    let (_, told) = Bench::new().run(kernels, how, true);
    told[told.len().saturating_sub(200)..].join("\n")
}

#[test]
fn programs_have_the_outcomes_that_the_contract_allows_and_no_others() {
    let runs = runs();
    two_at_once(library().to_vec(), |(name, _)| {
        let kernels = program(name);
        let allowed = model::outcomes(&kernels).unwrap();
        let mut shown = BTreeSet::new();
        let mut bench = Bench::new();
        for (path, seed) in Path::ALL
            .into_iter()
            .flat_map(|path| (0..runs).map(move |seed| (path, seed)))
        {
            let how = How {
                path,
                changed: Changed::Nothing,
                seed,
            };
            match bench.run(&kernels, how, false).0 {
                End::Outcome(outcome) if allowed.contains(&outcome) => shown.insert(outcome),
                end => panic!(
                    "{name}, {how:?}: {end:?}, which is not allowed\n{}",
                    told(&kernels, how)
                ),
            };
        }
        // The memory is weak enough to show the relaxed outcomes.
        for expectation in kernels.head().expectations() {
            let is_shown = shown
                .iter()
                .any(|outcome: &Outcome| outcome.matches(&expectation.pattern));
            let is_wanted = expectation.verdict == Verdict::Allowed && !STRONGER.contains(&name);
            assert!(
                is_shown || !is_wanted,
                "{name}: no run shows {}",
                expectation.pattern
            );
        }
    });
}

/// The first end that is not allowed with this change.
fn noticed(by: (&str, &str), changed: Changed) -> Option<End> {
    let kernels = program(by.0);
    let path = Path::ALL
        .into_iter()
        .find(|path| format!("{path:?}") == by.1);
    let path = path.unwrap_or_else(|| panic!("no path {}", by.1));
    let allowed = model::outcomes(&kernels).unwrap();
    let mut bench = Bench::new();
    let ends = (0..NOTICED_WITHIN).map(|seed| {
        bench
            .run(
                &kernels,
                How {
                    path,
                    changed,
                    seed,
                },
                false,
            )
            .0
    });
    let mut unwanted =
        ends.filter(|end| !matches!(end, End::Outcome(outcome) if allowed.contains(outcome)));
    unwanted.next()
}

#[test]
fn each_change_of_the_header_is_noticed() {
    let unnoticed = Mutex::new(Vec::new());
    let all: Vec<(usize, Change)> = changes().into_iter().enumerate().collect();
    two_at_once(all, |(number, change)| {
        let end = noticed(change.by, Changed::Header(number));
        println!("{}: {} ({}) {end:?}", change.name, change.by.0, change.by.1);
        if end.is_none() {
            unnoticed.lock().unwrap().push(change.name);
        }
    });
    assert!(
        unnoticed.lock().unwrap().is_empty(),
        "nothing notices: {:?}",
        unnoticed.lock().unwrap()
    );
}

#[test]
fn each_change_of_the_hosts_side_is_noticed() {
    for (number, change) in HOST_CHANGES.iter().enumerate() {
        let end = noticed(change.by, Changed::Host(number));
        println!("{}: {} ({}) {end:?}", change.name, change.by.0, change.by.1);
        assert!(end.is_some(), "nothing notices: {}", change.name);
    }
}

/// The places where programs notice each change: for the table, when it changes.
#[test]
#[ignore = "takes minutes; it finds what `changes.txt` says by hand"]
fn find_what_notices_each_change() {
    let programs: Vec<Kernels> = library().iter().map(|(name, _)| program(name)).collect();
    let header = changes()
        .into_iter()
        .enumerate()
        .map(|(number, change)| (change.name, Changed::Header(number)));
    let host = HOST_CHANGES
        .iter()
        .enumerate()
        .map(|(number, change)| (change.name, Changed::Host(number)));
    two_at_once(header.chain(host).collect(), |(name, changed)| {
        let mut bench = Bench::new();
        let mut found = Vec::new();
        for (kernels, path) in programs
            .iter()
            .flat_map(|kernels| Path::ALL.map(|path| (kernels, path)))
        {
            let allowed = model::outcomes(kernels).unwrap();
            let (mut count, mut slow) = (0, 0);
            for seed in 0..runs() {
                match bench
                    .run(
                        kernels,
                        How {
                            path,
                            changed,
                            seed,
                        },
                        false,
                    )
                    .0
                {
                    End::Outcome(outcome) if allowed.contains(&outcome) => {}
                    End::Endless if slow == 3 => break,
                    End::Endless => slow += 1,
                    _ => count += 1,
                }
            }
            if count + slow > 0 {
                found.push((count, slow, kernels.head().name(), path));
            }
        }
        found.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
        println!("{name}: {:?}", &found[..found.len().min(5)]);
    });
}
