//! The race detector: programs that are right are not reported, and each of their mutants is, with both places and the missing call.
//! Without clang 19 or CUDA's headers they are skipped, with the reason.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that cannot start a program has failed

mod common;

use std::path::PathBuf;

use common::{build, run, says};

/// The exit status of a process that had a race.
const RACED: i32 = 66;

fn races() -> Option<PathBuf> {
    build("races", &["-O2", "--check", "races.cu"]).map(Result::unwrap)
}

#[test]
fn right_programs_have_no_races() {
    let Some(program) = races() else { return };
    let cases = [
        "barrier",
        "reuse",
        "warp",
        "flag",
        "volatile_flag",
        "last_block",
        "histogram",
        "sum",
        "grid",
        "streams",
        "copies",
        "in_turn",
        "host_words",
        "pinned",
        "pinned_source",
        "managed",
    ];
    for case in cases {
        for seed in [
            &[][..],
            &[("SOFTCUDA_SEED", "1")],
            &[("SOFTCUDA_SEED", "5")],
        ] {
            let out = run(&program, &[case], seed);
            let told = says(&out);
            assert!(
                out.status.success() && !told.contains("race"),
                "{case}: {told}"
            );
        }
    }
}

#[test]
fn each_mutant_is_found_with_both_places_and_the_missing_call() {
    let Some(program) = races() else { return };
    // The case, what is left out, and words of the remedy.
    let mutants = [
        ("barrier", "broken", "__syncthreads()"),
        ("reuse", "broken", "__syncthreads()"),
        ("warp", "broken", "__syncwarp()"),
        ("flag", "release", "__threadfence"),
        ("flag", "acquire", "__threadfence"),
        ("flag", "narrow release", "__threadfence"),
        ("flag", "narrow acquire", "__threadfence"),
        ("flag", "narrow flag", "scope"),
        ("flag", "plain flag", "Blocks are ordered"),
        ("volatile_flag", "broken", "__threadfence"),
        ("last_block", "broken", "__threadfence"),
        ("histogram", "broken", ""),
        ("sum", "broken", ""),
        ("grid", "broken", "barrier"),
        ("streams", "broken", "cudaStreamWaitEvent"),
        ("copies", "broken", "by a copy"),
        ("host_words", "broken", "cudaStreamWaitEvent"),
        ("pinned", "broken", "waited for (cudaStreamSynchronize"),
        ("pinned_source", "broken", "by a copy"),
        ("managed", "broken", "waited for (cudaStreamSynchronize"),
    ];
    for (case, how, words) in mutants {
        // Whether the run shows the fault or not.
        for seed in [
            &[][..],
            &[("SOFTCUDA_SEED", "1")],
            &[("SOFTCUDA_SEED", "5")],
        ] {
            let out = run(&program, &[case, how], seed);
            let told = says(&out);
            assert_eq!(out.status.code(), Some(RACED), "{case}, {how}: {told}");
            assert!(
                told.contains("race:") && told.contains(words),
                "{case}, {how}: {told}"
            );
            let places = told.matches("races.cu:").count();
            let least = if told.contains("by a copy") { 1 } else { 2 };
            let least = if case == "copies" { 0 } else { least };
            assert!(places >= least, "{case}, {how}: {told}");
        }
    }
}

/// The other programs of the emulation, which know nothing of the detector. (`waits` spins for minutes where each look is noted.)
#[test]
fn programs_that_were_there_before_have_no_races() {
    for name in [
        "parameters",
        "threads",
        "streams",
        "groups",
        "numbers",
        "graphs",
    ] {
        let source = format!("{name}.cu");
        let Some(program) = build(&format!("{name}-checked"), &["-O2", "--check", &source]) else {
            return;
        };
        let out = run(&program.unwrap(), &[], &[("SOFTCUDA_DEVICES", "2")]);
        let told = says(&out);
        assert!(
            out.status.success() && !told.contains("race:"),
            "{name}: {told}"
        );
    }
}
