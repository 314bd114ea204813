//! The launcher, with real processes.
//!
//! This program runs the tests; for each it starts itself again as a launcher, which starts it
//! again as PEs (see `role`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hosts;
mod job;
mod kills;
mod output;
mod role;
mod ssh;
mod statuses;
mod waits;

use std::panic::catch_unwind;

/// A test's name and body.
type Test = (&'static str, fn());

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("launch") => role::launch(&args[1..]),
        Some("self-launch") => role::launch_self(&args[1..]),
        Some("pe") => role::pe(&args[1..]),
        Some("agent") => role::agent(),
        _ => run_tests(&args),
    }
}

fn run_tests(args: &[String]) {
    let tests: Vec<Test> = [
        statuses::TESTS,
        output::TESTS,
        kills::TESTS,
        hosts::TESTS,
        ssh::TESTS,
        waits::TESTS,
    ]
    .concat();
    let (mut filters, mut skipped) = (Vec::new(), Vec::new());
    let mut rest = args.iter().map(String::as_str);
    while let Some(arg) = rest.next() {
        match arg {
            "--skip" => skipped.extend(rest.next()),
            option if option.starts_with('-') => {}
            filter => filters.push(filter),
        }
    }
    let named = |parts: &[&str], name: &str| parts.iter().any(|part| name.contains(part));
    let wanted =
        |name: &str| (filters.is_empty() || named(&filters, name)) && !named(&skipped, name);
    if args.iter().any(|arg| arg == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let mut failed = Vec::new();
    for (name, test) in tests.iter().filter(|(name, _)| wanted(name)) {
        let passed = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        println!("failed: {failed:?}");
        std::process::exit(101);
    }
}
