//! The device library's calls on a simulated memory as weak as PTX's model.

mod arena;
mod changes;
mod compiled;
mod host;
mod memory;
mod ptx;
mod run;
mod simulation;
mod source;

use std::collections::BTreeMap;

use arena::Path;
use oxshmem_litmus::kernels::Kernels;
use oxshmem_litmus::kernels::library::library;
use oxshmem_litmus::{Pattern, Verdict};
use run::{Bench, End, How};

#[test]
fn try_all() {
    let only = std::env::var("KERNELS").unwrap_or_default();
    let seeds: u64 = std::env::var("SEEDS").map_or(1000, |s| s.parse().unwrap());
    let change: Option<usize> = std::env::var("CHANGE").ok().map(|s| s.parse().unwrap());
    let mut bench = Bench::new();
    for (name, text) in library() {
        if !only.is_empty() && only != *name {
            continue;
        }
        let kernels = Kernels::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let start = std::time::Instant::now();
        let mut shown = vec![false; kernels.head().expectations().len()];
        for path in Path::ALL {
            let mut ends = BTreeMap::new();
            for seed in 0..seeds {
                let tell = !only.is_empty();
                let (end, told) = bench.run(&kernels, How { path, change, seed }, tell);
                let mut bad = matches!(end, End::Hazard | End::Endless | End::Fault(_));
                for (number, e) in kernels.head().expectations().iter().enumerate() {
                    if let End::Outcome(outcome) = &end
                        && outcome.matches(&e.pattern)
                    {
                        shown[number] = true;
                        if e.verdict == Verdict::Forbidden {
                            bad = true
                        }
                    }
                }
                let count = ends.entry((bad, end)).or_insert(0);
                *count += 1;
                if bad && *count == 1 && tell {
                    println!("{}", told.join("\n"));
                }
            }
            for ((bad, end), count) in &ends {
                if *bad {
                    println!("BAD {name} {path:?} {end:?} {count}");
                }
                if !only.is_empty() {
                    println!("{path:?} {end:?} {count}");
                }
            }
        }
        for (e, shown) in kernels.head().expectations().iter().zip(shown) {
            if e.verdict == Verdict::Allowed && !shown {
                println!("NOT SHOWN {name} {:?}", e.pattern);
            }
        }
        println!("{name} {:?}", start.elapsed());
    }
    _ = Pattern::Deadlock;
}

#[test]
fn find_notices() {
    let seeds: u64 = std::env::var("SEEDS").map_or(300, |s| s.parse().unwrap());
    let from: usize = std::env::var("CHANGE").map_or(0, |s| s.parse().unwrap());
    let programs: Vec<(&str, Kernels)> = library()
        .iter()
        .map(|(n, t)| (*n, Kernels::parse(t).unwrap()))
        .collect();
    let mut bench = Bench::new();
    for (number, change) in changes::CHANGES.iter().enumerate().skip(from) {
        let mut found = Vec::new();
        for (name, kernels) in &programs {
            for path in Path::ALL {
                let mut bad = 0;
                let mut endless = 0;
                for seed in 0..seeds {
                    let (end, _) = bench.run(
                        kernels,
                        How {
                            path,
                            change: Some(number),
                            seed,
                        },
                        false,
                    );
                    bad +=
                        match &end {
                            End::Hazard | End::Fault(_) => 1,
                            End::Endless => {
                                endless += 1;
                                1
                            }
                            End::Outcome(outcome) => kernels.head().expectations().iter().any(|e| {
                                e.verdict == Verdict::Forbidden && outcome.matches(&e.pattern)
                            }) as u64,
                        };
                    if endless > 3 {
                        break;
                    }
                }
                if bad > 0 {
                    found.push((bad, name, path, endless));
                }
            }
        }
        found.sort_by_key(|f| std::cmp::Reverse(f.0));
        println!(
            "{number} {}: {} {:?}",
            change.name,
            found.len(),
            &found[..found.len().min(5)]
        );
    }
}
