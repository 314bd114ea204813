//! Programs of `core/emulation/tests`, built and run. Without clang 19 or CUDA's headers they are
//! skipped, with the reason.

#![allow(clippy::unwrap_used)] // a test that cannot start a program has failed

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the programs.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

/// Fetches CUDA's headers where the compiler is there. A test installs no compiler.
fn fetch_headers() {
    static FETCHED: OnceLock<()> = OnceLock::new();
    FETCHED.get_or_init(|| {
        if Path::new("/usr/lib/llvm-19/bin/clang").exists()
            && let Err(failure) = oxshmem_cuda_cc::setup()
        {
            eprintln!("CUDA's headers: {failure}");
        }
    });
}

/// Builds a program. `None`: what the build needs is not on this machine.
fn build(name: &str, words: &[&str]) -> Option<Result<PathBuf, String>> {
    fetch_headers();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut all: Vec<OsString> = vec!["-o".into(), out.clone().into()];
    all.extend(words.iter().map(|word| match word.ends_with(".cu") {
        true => sources().join(word).into(),
        false => (*word).into(),
    }));
    match oxshmem_cuda_cc::cc(&all) {
        Ok(()) => Some(Ok(out)),
        Err(failure) => {
            let words = failure.to_string();
            if words.contains("oxshmem cuda setup") {
                eprintln!("SKIPPED {name}: {words}");
                return None;
            }
            Some(Err(words))
        }
    }
}

/// Runs a program; it is ended after a minute.
fn run(program: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new("timeout")
        .arg("60")
        .arg(program)
        .args(words)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn says(out: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}

#[test]
fn parameters_of_all_forms_reach_the_kernel() {
    let Some(program) = build("parameters", &["parameters.cu"]) else {
        return;
    };
    let out = run(&program.unwrap(), &[], &[]);
    assert!(out.status.success(), "{}", says(&out));
}

#[test]
fn threads_warps_and_blocks_wait_for_each_other_in_any_order() {
    let Some(program) = build("threads", &["-O2", "threads.cu"]) else {
        return;
    };
    let program = program.unwrap();
    for variables in [
        &[][..],
        &[("SOFTCUDA_SEED", "1")],
        &[("SOFTCUDA_SEED", "77")],
    ] {
        let out = run(&program, &[], variables);
        assert!(out.status.success(), "{variables:?}: {}", says(&out));
    }
}

#[test]
fn blocks_wait_for_one_that_begins_after_them() {
    let Some(program) = build("waits", &["-O2", "waits.cu"]) else {
        return;
    };
    let program = program.unwrap();
    for variables in [&[][..], &[("SOFTCUDA_SEED", "5")]] {
        let out = run(&program, &[], variables);
        assert!(out.status.success(), "{variables:?}: {}", says(&out));
    }
}

#[test]
fn threads_have_streams_and_contexts_of_their_own() {
    let words = ["--default-stream=per-thread", "-pthread", "own_streams.cu"];
    let Some(program) = build("own_streams", &words) else {
        return;
    };
    let out = run(&program.unwrap(), &[], &[("SOFTCUDA_DEVICES", "2")]);
    assert!(out.status.success(), "{}", says(&out));
}

#[test]
fn managed_variables_are_refused() {
    let Some(program) = build("managed", &["managed.cu"]) else {
        return;
    };
    assert!(program.is_err());
}

#[test]
fn streams_events_graphs_and_devices_work_as_the_runtime_says() {
    let Some(program) = build("streams", &["streams.cu"]) else {
        return;
    };
    let out = run(
        &program.unwrap(),
        &[],
        &[("SOFTCUDA_DEVICES", "2"), ("SOFTCUDA_JITTER", "3")],
    );
    assert!(out.status.success(), "{}", says(&out));
}

#[test]
fn device_code_of_two_files_is_linked_together() {
    let Some(program) = build("parts", &["-rdc=true", "part_a.cu", "part_b.cu"]) else {
        return;
    };
    let out = run(&program.unwrap(), &[], &[]);
    assert!(out.status.success(), "{}", says(&out));
}

#[test]
fn device_code_of_two_files_needs_rdc() {
    let Some(program) = build("apart", &["part_a.cu", "part_b.cu"]) else {
        return;
    };
    let words = program.unwrap_err();
    assert!(words.contains("-rdc=true"), "{words}");
}

#[test]
fn failures_of_kernels_have_their_codes_and_stay() {
    let Some(program) = build("failures", &["failures.cu"]) else {
        return;
    };
    let program = program.unwrap();
    for (kind, code, words) in [
        ("0", "cudaErrorAssert", "Assertion `n < 3` failed"),
        ("1", "cudaErrorLaunchFailure", ""),
        (
            "2",
            "cudaErrorLaunchFailure",
            "all its threads wait for each other",
        ),
        ("4", "cudaErrorLaunchFailure", "is not"),
    ] {
        let out = says(&run(&program, &[kind], &[]));
        assert!(
            out.starts_with(&format!("{code}\n{code}\n")) && out.contains(words),
            "{kind}: {out}"
        );
    }
    let out = says(&run(&program, &["3"], &[]));
    assert!(
        out.contains("hello from block 1 thread 31") && out.contains("cudaSuccess"),
        "{out}"
    );
}

#[test]
fn inline_ptx_is_refused_with_its_line() {
    let Some(program) = build("ptx", &["ptx.cu"]) else {
        return;
    };
    let words = program.unwrap_err();
    assert!(
        words.contains("ptx.cu:3") && words.contains("st.relaxed.sys"),
        "{words}"
    );
}
