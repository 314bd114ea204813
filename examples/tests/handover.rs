//! The handover example: over weak a missing fence shows on any machine, without weak it does not.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as tests do")]

use std::process::{Command, Output};

/// Two processes over a transport, for two minutes at most.
fn handover(transport: &str, seed: &str, more: &[&str]) -> Output {
    Command::new("timeout")
        .args(["-k", "5", "120", env!("CARGO_BIN_EXE_handover")])
        .args(["--pes", "2", "--pages", "300"])
        .args(more)
        .env("OXSHMEM_TRANSPORT", transport)
        .env("OXSHMEM_SEED", seed)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const WEAK: &str = "weak(loopback)";
const SEEDS: std::ops::RangeInclusive<u32> = 1..=20;

#[test]
fn m17_without_the_fence_some_seed_shows_a_flag_without_its_page() {
    let mut failed = Vec::new();
    for seed in SEEDS {
        let output = handover(WEAK, &seed.to_string(), &[]);
        if !output.status.success() {
            let said = errors(&output);
            assert!(said.contains("words are not"), "seed {seed}: {said}");
            assert!(said.contains("--fence"), "seed {seed}: {said}");
            failed.push(seed);
        }
    }
    assert!(!failed.is_empty(), "no seed of {SEEDS:?} shows it");
}

#[test]
fn m17_with_the_fence_no_seed_does() {
    for seed in SEEDS {
        let output = handover(WEAK, &seed.to_string(), &["--fence"]);
        assert!(output.status.success(), "seed {seed}: {}", errors(&output));
    }
}

#[test]
fn with_the_fence_it_works_over_weak_around_weak_and_over_plain_loopback() {
    for transport in ["weak(weak(loopback))", "loopback"] {
        let output = handover(transport, "3", &["--fence"]);
        let errors = errors(&output);
        assert!(output.status.success(), "{transport}: {errors}");
    }
}

/// The mistake stays unseen without weak because x86 keeps stores in order.
#[test]
#[cfg(target_arch = "x86_64")]
fn over_plain_loopback_nobody_notices_that_the_fence_is_missing() {
    let output = handover("loopback", "1", &[]);
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn what_names_no_transport_or_seed_is_refused_with_its_variable_and_remedy() {
    for (transport, seed, words) in [
        (WEAK, "abc", &["OXSHMEM_SEED", "abc", "whole number"][..]),
        (WEAK, "-7", &["OXSHMEM_SEED", "-7"]),
        (WEAK, "18446744073709551616", &["OXSHMEM_SEED"]),
        ("weak", "1", &["OXSHMEM_TRANSPORT", "write weak(loopback)"]),
        (
            "weak()",
            "1",
            &["OXSHMEM_TRANSPORT", "weak()", "name transports"],
        ),
        ("weak(", "1", &["OXSHMEM_TRANSPORT"]),
        (
            "weak(verps)",
            "1",
            &["OXSHMEM_TRANSPORT", "verps", "loopback"],
        ),
        (
            "loopback(weak)",
            "1",
            &["OXSHMEM_TRANSPORT", "no other transport"],
        ),
        ("weak(loopback,loopback)", "1", &["not several"]),
    ] {
        let output = handover(transport, seed, &[]);
        let said = errors(&output);
        assert!(!output.status.success(), "{transport}, {seed}");
        for word in words {
            assert!(said.contains(word), "{transport}, {seed}: {said}");
        }
    }
}
