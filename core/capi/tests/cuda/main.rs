//! CUDA programs that use the C API and make calls inside kernels, built by `oxshmem cuda cc` and run without a GPU: those of this
//! folder, and those of `examples/cuda`. Without clang 19 or CUDA's headers they are skipped, with the reason.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn both(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{}\n{out}{err}", output.status)
}

/// Whether the long half of the tests is left out.
fn is_quick() -> bool {
    std::env::var_os("OXSHMEM_TEST_QUICK").is_some()
}

/// The command, with the libraries of programs beside it.
fn oxshmem() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let release = !cfg!(debug_assertions);
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-q", "-p", "oxshmem-capi", "-p", "oxshmem-cli"]);
        build.args(["-p", "oxshmem-softcudart", "-p", "oxshmem-softcuda"]);
        build.args(release.then_some("--release"));
        // With the rest of the workspace, where `ci/test` runs this.
        if std::env::var_os("OXSHMEM_TEST_BUILT").is_none() {
            assert!(build.status().unwrap().success());
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        target
            .join(if release { "release" } else { "debug" })
            .join("oxshmem")
    })
}

/// Whether the compiler and CUDA's headers are there. A test installs no compiler.
fn can_build() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        if !Path::new("/usr/lib/llvm-19/bin/clang").exists() {
            eprintln!("SKIPPED: clang 19 is not there");
            return false;
        }
        let setup = Command::new(oxshmem()).args(["cuda", "setup"]).output();
        let setup = setup.unwrap();
        if !setup.status.success() {
            eprintln!("SKIPPED: {}", both(&setup));
        }
        setup.status.success()
    })
}

/// Builds a program; none where that is not possible on this machine.
fn build(name: &str, words: &[&str]) -> Option<PathBuf> {
    if !can_build() {
        return None;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-{name}"));
    let mut command = Command::new(oxshmem());
    command.args(["cuda", "cc", "-o"]).arg(&out).args(words);
    let built = command.current_dir(here().join("tests/cuda")).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{name}: {}", both(&built));
    Some(out)
}

/// The paths between PEs: one GPU, two GPUs, and all by the host.
const PATHS: [&[(&str, &str)]; 3] = [
    &[],
    &[("SOFTCUDA_DEVICES", "2"), ("SOFTCUDA_SEED", "3")],
    &[("OXSHMEM_TRANSPORT", "loopback")],
];

fn job(pes: usize, program: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut job = Command::new(oxshmem());
    job.args(["run", "-n", &pes.to_string(), "--timeout", "60s", "--"]);
    job.arg(program).args(words).envs(variables.iter().copied());
    job.env("OXSHMEM_SYMMETRIC_SIZE", "16M").output().unwrap()
}

fn ends_well(pes: usize, program: &Path, words: &[&str], variables: &[(&str, &str)]) -> String {
    let output = job(pes, program, words, variables);
    assert!(
        output.status.success(),
        "{} with {variables:?}: {}",
        program.display(),
        both(&output)
    );
    both(&output)
}

#[test]
fn m4_the_hosts_calls_take_addresses_of_gpu_memory_that_kernels_use() {
    let Some(program) = build("calls", &["calls.cu"]) else {
        return;
    };
    let [one_gpu, two_gpus, by_host] = PATHS;
    ends_well(3, &program, &["mapped"], one_gpu);
    ends_well(3, &program, &["mapped"], two_gpus);
    ends_well(3, &program, &["apart"], by_host);
    ends_well(1, &program, &["mapped"], &[]);
}

#[test]
fn m15_m36_half_precision_works_in_kernels_calls() {
    let Some(program) = build("half", &["half.cu"]) else {
        return;
    };
    for path in [PATHS[0], PATHS[2]] {
        ends_well(3, &program, &[], path);
    }
}

#[test]
fn every_image_of_a_process_has_its_state() {
    let Some(plugin) = build("plugin.so", &["-shared", "plugin.cu"]) else {
        return;
    };
    let plugin = plugin.to_str().unwrap();
    for (name, options) in [("apart", &[][..]), ("joined", &["-rdc=true"])] {
        let words = [options, &["one.cu", "two.cu", "-ldl"]].concat();
        let program = build(name, &words).unwrap();
        ends_well(2, &program, &[plugin], &[]);
        ends_well(2, &program, &[], PATHS[2]);
    }
    // A library whose own kernels are linked together has a state of its own, too.
    let words = ["-rdc=true", "-shared", "plugin.cu"];
    let plugin = build("joined-plugin.so", &words).unwrap();
    let program = build(
        "joined-with-plugin",
        &["-rdc=true", "one.cu", "two.cu", "-ldl"],
    )
    .unwrap();
    ends_well(2, &program, &[plugin.to_str().unwrap()], &[]);
}

#[test]
fn an_image_is_withdrawn_by_one_thread_while_another_gives_all_their_state() {
    let Some(plugin) = build("unloaded.so", &["-shared", "plugin.cu"]) else {
        return;
    };
    let program = build("unloading", &["unloading.cu", "-ldl", "-lpthread"]).unwrap();
    ends_well(1, &program, &[plugin.to_str().unwrap()], &[]);
}

#[test]
fn archives_that_a_line_names_bring_their_kernels() {
    let Some(object) = build("two-in-archive.o", &["-dc", "two.cu"]) else {
        return;
    };
    let object = object.to_str().unwrap();
    let archive = build("libtwo.a", &["-lib", object]).unwrap();
    // Under the name of an archive.
    let folder = archive.parent().unwrap();
    std::fs::rename(&archive, folder.join("libtwo.a")).unwrap();
    let folder = format!("-L{}", folder.display());
    let words = ["-rdc=true", "one.cu", &folder, "-ltwo", "-ldl"];
    let program = build("of-archive", &words).unwrap();
    ends_well(2, &program, &[], &[]);
}

#[test]
fn a_program_needs_no_file_of_the_build_but_its_libraries() {
    let Some(program) = build("moved", &["one.cu", "two.cu", "-ldl"]) else {
        return;
    };
    let text = std::fs::read(program).unwrap();
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    assert!(has(b"softcuda_uses_barriers") && !has(b"cuda-emulation-"));
}

#[test]
fn objects_of_separate_compilations_are_one_program() {
    let Some(one) = build("one.o", &["-dc", "one.cu"]) else {
        return;
    };
    let two = build("two.o", &["-dc", "two.cu"]).unwrap();
    let words = [one.to_str().unwrap(), two.to_str().unwrap(), "-ldl"];
    let program = build("of-objects", &words).unwrap();
    ends_well(2, &program, &[], &[]);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let Some(program) = build("refused", &["-DOXSHMEM_CHECK", "refused.cu"]) else {
        return;
    };
    let none = [("OXSHMEM_CUDA_SYMMETRIC_SIZE", "0")];
    let no_gpu = [("SOFTCUDA_DEVICES", "0")];
    let checked = [("OXSHMEM_CHECK", "1")];
    // By number, whether the job ends well all the same, and the words.
    for (which, variables, ends_well, wanted) in [
        (0, &none[..], false, "set OXSHMEM_CUDA_SYMMETRIC_SIZE"),
        (1, &[], true, "oxshmem.cuh of another version"),
        (2, &[], true, "words of the runtime"),
        (
            3,
            &[],
            false,
            "shmem_long_wait_until: argument ivar: this lies in GPU memory",
        ),
        (
            4,
            &[],
            false,
            "shmem_signal_fetch: argument sig_addr: this lies in GPU memory",
        ),
        (5, &[], false, "shmem_realloc"),
        (6, &[], true, "p in a kernel: there is no PE 77"),
        (7, &checked, false, "shmem_long_p: argument dest"),
        (8, &[], true, "call shmemx_cuda_init first, on all PEs"),
        (
            9,
            &checked,
            false,
            "shmem_long_put: argument source: this lies in GPU memory",
        ),
        (
            10,
            &checked,
            false,
            "shmem_long_get: argument dest: this lies in GPU memory",
        ),
        (
            11,
            &[],
            true,
            "no GPU heap (PE 1 has none: there is no kernel in its program",
        ),
        (12, &no_gpu, true, "no GPU heap (PE 0 says: "),
        (
            13,
            &[],
            true,
            "no image of this process has announced itself",
        ),
        (14, &[], true, "an image without a function"),
    ] {
        let ended = job(2, &program, &[&which.to_string()], variables);
        let told = both(&ended);
        assert_eq!(ended.status.success(), ends_well, "{which}: {told}");
        assert!(told.contains(wanted), "{which}: {told}");
        // The program's own checks hold.
        assert!(!told.contains("refused.cu:"), "{which}: {told}");
    }
}

#[test]
fn an_open_that_fails_on_one_pe_fails_on_all_and_may_be_made_again() {
    let Some(program) = build("failing", &["failing.cu", "-ldl"]) else {
        return;
    };
    let small = [PATHS[2], &[("OXSHMEM_CUDA_SYMMETRIC_SIZE", "4M")]].concat();
    let told = ends_well(3, &program, &[], &small);
    for words in [
        "no thread for the requests of kernels",
        "another PE could not open its part",
        "call shmemx_cuda_init first",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

/// A program of `examples/cuda`.
fn example(name: &str) -> Option<PathBuf> {
    let source = here().join(format!("../../examples/cuda/{name}.cu"));
    build(name, &["-O2", source.to_str().unwrap()])
}

#[test]
fn m22_numbers_go_round_a_ring_of_kernels() {
    let Some(program) = example("ring") else {
        return;
    };
    for path in PATHS {
        let told = ends_well(4, &program, &[], path);
        assert!(told.contains("1000 numbers went round 4 PEs"), "{told}");
    }
}

#[test]
fn m22_heat_spreads_in_one_kernel_as_it_does_on_one_cpu() {
    let Some(program) = example("heat2d") else {
        return;
    };
    for path in PATHS {
        let told = ends_well(4, &program, &[], path);
        assert!(told.contains("50 steps of 64 x 48 by 4 PEs"), "{told}");
    }
    let told = ends_well(3, &program, &["17", "5", "9"], &[]);
    assert!(told.contains("9 steps of 17 x 5 by 3 PEs"), "{told}");
}

#[test]
fn m22_tokens_come_back_from_their_experts() {
    let Some(program) = example("moe") else {
        return;
    };
    for path in PATHS {
        let told = ends_well(4, &program, &[], path);
        assert!(told.contains("384 tokens by 12 experts on 4 PEs"), "{told}");
    }
}

/// An example that reports its races, with one of its barriers left out, by its text and number.
fn checked_example(name: &str, without: Option<(&str, usize)>) -> Option<PathBuf> {
    let folder = here().join("../../examples/cuda");
    let mut text = std::fs::read_to_string(folder.join(format!("{name}.cu"))).unwrap();
    let mut program = format!("{name}-checked");
    if let Some((barrier, number)) = without {
        let (at, _) = text.match_indices(barrier).nth(number).unwrap();
        text.insert_str(at, "// ");
        program = format!("{program}-{number}");
    }
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}.cu"));
    std::fs::write(&source, text).unwrap();
    let headers = format!("-I{}", folder.display());
    build(
        &program,
        &["-O2", "--check", &headers, source.to_str().unwrap()],
    )
}

#[test]
fn g1_g2_examples_have_no_races_and_those_without_one_of_their_barriers_have() {
    for name in ["ring", "heat2d", "moe"] {
        let Some(program) = checked_example(name, None) else {
            return;
        };
        let paths = if is_quick() { &PATHS[1..2] } else { &PATHS[..] };
        for path in paths {
            let told = ends_well(2, &program, &[], path);
            assert!(!told.contains("race:"), "{name}: {told}");
        }
    }
    let barrier = "__syncthreads();";
    for (name, without) in [
        ("heat2d", ("grid.sync();", 0)),
        ("moe", (barrier, 0)),
        ("moe", (barrier, 1)),
        ("moe", (barrier, 2)),
    ] {
        let program = checked_example(name, Some(without)).unwrap();
        let told = both(&job(2, &program, &[], PATHS[0]));
        let source = format!("{name}-checked-{}.cu:", without.1);
        let places = told.contains("race:") && told.contains(&source);
        assert!(places, "{name} without {without:?}: {told}");
    }
}

#[test]
fn programs_that_were_there_before_have_no_races() {
    for (name, words) in [("calls", ["mapped", "mapped", "apart"]), ("half", [""; 3])] {
        let source = format!("{name}.cu");
        let words_of_build = ["-O2", "--check", &source];
        let Some(program) = build(&format!("{name}-checked"), &words_of_build) else {
            return;
        };
        for (path, word) in PATHS.into_iter().zip(words) {
            let told = ends_well(3, &program, &[word], path);
            assert!(!told.contains("race:"), "{name} {word}: {told}");
        }
    }
}

#[test]
fn g1_g2_races_between_pes_are_told_by_both_places() {
    let Some(program) = build("between", &["-O2", "--check", "between.cu"]) else {
        return;
    };
    let [one_gpu, two_gpus, by_host] = PATHS;
    for way in ["flag", "signal", "mapped", "barrier", "put", "word", "team"] {
        let by_host = Some(by_host).filter(|_| matches!(way, "flag" | "signal" | "put"));
        for path in [one_gpu, two_gpus].into_iter().chain(by_host) {
            let told = ends_well(2, &program, &[way], path);
            assert!(!told.contains("race:"), "{way}: {told}");
        }
    }
    for (way, calls) in [
        ("flag", 1..=2),
        ("signal", 1..=4),
        ("mapped", 1..=3),
        ("barrier", 1..=2),
        ("put", 1..=1),
        ("word", 1..=1),
    ] {
        for call in calls {
            // A fence of the device's scope is too narrow where there are two.
            let told = both(&job(2, &program, &[way, &call.to_string()], two_gpus));
            let parts = ["race:", "PE 0's", "PE 1's", "between.cu:"];
            let is_told = parts.iter().all(|part| told.contains(part));
            assert!(is_told, "{way} without call {call}: {told}");
        }
    }
}

#[test]
fn m37_operands_of_nonblocking_calls_are_not_touched_before_a_quiet() {
    let Some(program) = build("nonblocking", &["-O2", "--check", "nonblocking.cu"]) else {
        return;
    };
    let [one_gpu, two_gpus, by_host] = PATHS;
    // Ways, the number of calls that are left out of them, and how many of these, the first, are found where the host carries all out.
    let ways = [
        ("source", 2, 2),
        ("flush", 1, 1),
        ("dest", 1, 0),
        ("fence", 1, 0),
        ("get", 1, 0),
        ("fetched", 1, 1),
        ("signal", 2, 1),
        ("two_puts", 1, 0),
        ("grid", 2, 0),
        ("kernels", 1, 1),
        ("barrier", 1, 0),
        ("host_source", 1, 1),
        ("host_dest", 1, 0),
    ];
    let paths = if is_quick() { &PATHS[1..] } else { &PATHS[..] };
    for (way, calls, by_the_host) in ways {
        for path in paths {
            let told = ends_well(2, &program, &[way], path);
            assert!(!told.contains("race:"), "{way}: {told}");
        }
        for call in 1..=calls {
            let number = call.to_string();
            let mapped = [one_gpu, two_gpus].into_iter();
            let mapped = mapped.filter(|path| paths.contains(path));
            for path in mapped.chain((call <= by_the_host).then_some(by_host)) {
                let told = both(&job(2, &program, &[way, &number], path));
                let parts = ["race:", "a nonblocking ", "quiet", "nonblocking.cu:"];
                let is_told = parts.iter().all(|part| told.contains(part));
                assert!(is_told, "{way} without call {call}, {path:?}: {told}");
            }
        }
    }
}
