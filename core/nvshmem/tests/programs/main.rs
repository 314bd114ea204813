//! Programs of users of NVSHMEM, built by `oxshmem cuda cc` against what `make install` gives them, and run without a GPU: with 2
//! and 4 PEs, where kernels reach each other's memory and where the host carries all out. Without clang 19 or CUDA's headers they
//! are skipped, with the reason.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod installed;
mod names;

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

/// Runs a command that succeeds; gives its words.
fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", both(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether the long half of the tests is left out.
fn is_quick() -> bool {
    std::env::var_os("OXSHMEM_TEST_QUICK").is_some()
}

/// The folder of what was built.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let release = !cfg!(debug_assertions);
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-q", "-p", "oxshmem-capi", "-p", "oxshmem-cli"]);
        build.args(["-p", "oxshmem-softcudart", "-p", "oxshmem-softcuda"]);
        build.args(["-p", "oxshmem-nvshmem"]);
        build.args(release.then_some("--release"));
        // With the rest of the workspace, where `ci/test` runs this.
        if std::env::var_os("OXSHMEM_TEST_BUILT").is_none() {
            assert!(build.status().unwrap().success());
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        target.join(if release { "release" } else { "debug" })
    })
}

fn oxshmem() -> PathBuf {
    built().join("oxshmem")
}

/// NVSHMEM's part of an installation, as build scripts know it by NVSHMEM_HOME.
fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvshmem");
        let install = here().join("../capi/install");
        run(Command::new(install).args([Path::new("--keep-symbols"), built(), &prefix]));
        prefix.join("lib/nvshmem")
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

/// The words of a line of nvcc for programs of NVSHMEM.
fn usual() -> Vec<String> {
    let home = home().display();
    let rpath = format!("-Wl,-rpath,{home}/lib");
    vec![
        format!("-I{home}/include"),
        format!("-L{home}/lib"),
        "-lnvshmem_host".into(),
        "-lnvshmem_device".into(),
        rpath,
    ]
}

/// Builds a program; none where that is not possible on this machine.
fn build(name: &str, words: &[&str]) -> Option<PathBuf> {
    if !can_build() {
        return None;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvshmem-{name}"));
    let mut command = Command::new(oxshmem());
    command.args(["cuda", "cc", "-std=c++17", "-o"]).arg(&out);
    command.args(words).args(usual());
    command.args(is_quick().then_some("-DFEW_TYPES"));
    let built = command.current_dir(here().join("tests/programs"));
    let built = built.output().unwrap();
    assert!(built.status.success(), "{name}: {}", both(&built));
    Some(out)
}

/// Variables of a job.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// GPUs that reach each other, one for each PE.
const MAPPED: Variables<'_> = &[("SOFTCUDA_DEVICES", "4"), ("SOFTCUDA_SEED", "5")];
/// One GPU for all PEs.
const ONE_GPU: Variables<'_> = &[("SOFTCUDA_DEVICES", "1")];
/// No PE reaches another one's memory: the host carries out what kernels ask for, by the ring.
const RING: Variables<'_> = &[("OXSHMEM_TRANSPORT", "loopback"), ("SOFTCUDA_DEVICES", "4")];

/// The jobs of a program: both paths with both numbers of PEs. The quick half has each path and each number once.
fn jobs() -> Vec<(usize, Variables<'static>)> {
    let all = vec![(4, MAPPED), (2, RING), (2, ONE_GPU), (4, RING)];
    let count = if is_quick() { 2 } else { all.len() };
    all.into_iter().take(count).collect()
}

fn job(pes: usize, program: &Path, words: &[&str], variables: Variables<'_>) -> Output {
    let mut job = Command::new(oxshmem());
    job.args(["run", "-n", &pes.to_string(), "--timeout", "120s", "--"]);
    job.arg(program).args(words).envs(variables.iter().copied());
    job.env("NVSHMEM_SYMMETRIC_SIZE", "32M");
    job.env("OXSHMEM_SYMMETRIC_SIZE", "16M").output().unwrap()
}

fn ends_well(pes: usize, program: &Path, words: &[&str], variables: Variables<'_>) -> String {
    let output = job(pes, program, words, variables);
    assert!(
        output.status.success(),
        "{} {words:?} with {pes} PEs, {variables:?}: {}",
        program.display(),
        both(&output)
    );
    both(&output)
}

/// A program, and the words that it is run with, one after the other.
fn all_well(name: &str, words: &[&[&str]]) {
    let source = format!("{name}.cu");
    let Some(program) = build(name, &[&source]) else {
        return;
    };
    for (pes, variables) in jobs() {
        for words in words {
            ends_well(pes, &program, words, variables);
        }
    }
}

const SCOPES: [&[&str]; 5] = [&["thread"], &["warp"], &["block"], &["stream"], &["host"]];

#[test]
fn m15_m16_copies_of_every_type_in_every_scope() {
    all_well("rma", &SCOPES);
}

#[test]
fn m22_puts_with_a_signal_of_every_type_in_every_scope() {
    let words = [&SCOPES[..4], &[&["alone"]]].concat();
    all_well("signals", &words);
}

#[test]
fn m28_atomics_of_every_type() {
    all_well("atomics", &[&[]]);
}

#[test]
fn m23_waits_and_tests_of_every_type() {
    all_well("waits", &[&[]]);
}

#[test]
fn m17_m19_order_and_barriers_in_every_scope() {
    all_well("order", &[&[]]);
}

#[test]
fn m36_collective_copies_of_every_type_in_every_scope() {
    all_well("collectives", &SCOPES);
}

#[test]
fn m36_reductions_of_every_type_in_every_scope() {
    all_well("reductions", &SCOPES);
}

#[test]
fn m15_m22_calls_through_queue_pairs_of_every_type() {
    all_well("qp", &SCOPES[..3]);
}

#[test]
fn the_remaining_calls_do_what_they_say() {
    all_well("others", &[&[]]);
}

#[test]
fn copies_of_the_runtime_to_symmetric_memory_are_done_when_they_return() {
    all_well("copies", &[&[]]);
}

#[test]
fn teams_are_what_openshmem_says() {
    all_well("teams", &[&[]]);
}

#[test]
fn m9_m13_memory_is_symmetric() {
    all_well("memory", &[&[]]);
}

#[test]
fn queries_have_the_same_answers_everywhere() {
    all_well("queries", &[&[]]);
}

#[test]
fn work_on_streams_is_in_order_and_captured_by_graphs() {
    all_well("streams", &[&[]]);
}

#[test]
fn streams_wait_for_signals_of_other_pes_kernels() {
    all_well("told", &[&[]]);
}

#[test]
fn programs_like_benchmarks_have_right_data() {
    for name in ["latency", "bandwidth", "timed"] {
        all_well(name, &[&[]]);
    }
}

#[test]
fn programs_like_examples_have_right_data() {
    for name in ["heat", "ring"] {
        all_well(name, &[&[]]);
    }
}

#[test]
fn programs_begin_and_end_in_every_way() {
    let Some(program) = build("start", &["start.cu"]) else {
        return;
    };
    for (pes, variables) in jobs() {
        for way in [
            "thread",
            "stages",
            "device_first",
            "again",
            "no_finalize",
            "attributes",
            "twice",
            "no_gpu",
            "no_device",
            "named_device",
            "launch_first",
            "fork_child",
        ] {
            ends_well(pes, &program, &[way], variables);
        }
        let ended = job(pes, &program, &["global_exit"], variables);
        assert_eq!(ended.status.code(), Some(23), "{}", both(&ended));
    }
}

#[test]
fn programs_meet_by_a_unique_id_without_a_launcher() {
    let Some(program) = build("unique-id", &["start.cu"]) else {
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (pes, path) in [(2, MAPPED), (4, RING)] {
        for attributes in ["set", "rubbish", "hostlib", "again"] {
            let file = folder.join(format!("unique-id-{pes}-{attributes}"));
            let _ = std::fs::remove_file(&file);
            let _ = std::fs::remove_file(file.with_extension("2"));
            let begin = |number: usize| {
                let mut one = Command::new("timeout");
                one.arg("60").arg(&program).arg("unique_id");
                one.args([number.to_string(), pes.to_string()]);
                one.arg(&file).arg(attributes).envs(path.iter().copied());
                one.env("NVSHMEM_SYMMETRIC_SIZE", "16M");
                one.env("OXSHMEM_SYMMETRIC_SIZE", "16M");
                one.stdout(std::process::Stdio::piped());
                one.stderr(std::process::Stdio::piped()).spawn().unwrap()
            };
            // The last one begins first.
            let all: Vec<_> = (0..pes).rev().map(begin).collect();
            let all = all.into_iter().map(|one| one.wait_with_output().unwrap());
            let all: Vec<_> = all.collect();
            let told: String = all.iter().map(both).collect();
            let well = all.iter().all(|one| one.status.success());
            assert!(well, "{pes} PEs, {attributes}: {told}");
        }
    }
}

#[test]
fn programs_meet_by_mpi() {
    let mpi = |what: &str| {
        let told = Command::new("mpicc").arg(what).output().ok()?;
        let told = told.status.success().then_some(told.stdout)?;
        Some(String::from_utf8_lossy(&told).trim().to_owned())
    };
    let (Some(includes), Some(folders)) = (mpi("--showme:incdirs"), mpi("--showme:libdirs")) else {
        eprintln!("SKIPPED: there is no Open MPI (Debian: libopenmpi-dev, openmpi-bin)");
        return;
    };
    let includes = includes.split_whitespace().map(|at| format!("-I{at}"));
    let folders = folders.split_whitespace().map(|at| format!("-L{at}"));
    let words: Vec<String> = includes.chain(folders).collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(["mpi.cu", "-lmpi"]);
    let Some(program) = build("mpi", &words) else {
        return;
    };
    for (pes, path) in [(2, RING), (4, MAPPED)] {
        for way in ["world", "reversed", "halves", "environment", "unique_id"] {
            let mut all = Command::new("timeout");
            all.args(["120", "mpirun", "--oversubscribe", "--allow-run-as-root"]);
            all.args(["-np", &pes.to_string()]).arg(&program).arg(way);
            all.envs(path.iter().copied());
            all.env("NVSHMEM_SYMMETRIC_SIZE", "16M");
            run(all.env("OXSHMEM_SYMMETRIC_SIZE", "16M"));
        }
    }
}

#[test]
fn programs_meet_by_openshmem() {
    all_well("shmem", &[&[]]);
}

#[test]
fn every_image_has_its_state() {
    let plugin = ["-shared", "-Xcompiler", "-fPIC", "images_plugin.cu"];
    let Some(early) = build("early.so", &plugin) else {
        return;
    };
    let late = build("late.so", &[&["-rdc=true"], &plugin[..]].concat()).unwrap();
    let plugins = [early.to_str().unwrap(), late.to_str().unwrap()];
    let sources = ["images.cu", "images_other.cu", "-ldl"];
    for (name, options) in [("apart", &[][..]), ("joined", &["-rdc=true"])] {
        let program = build(name, &[options, &sources].concat()).unwrap();
        for (pes, variables) in jobs() {
            ends_well(pes, &program, &[], variables);
            ends_well(pes, &program, &plugins, variables);
        }
    }
}

#[test]
fn programs_of_the_host_alone_run() {
    for (name, words) in [
        ("host", &["host.cpp", "host_half.cu"][..]),
        ("host-stream", &["host_stream.cu"]),
        ("host-stream-joined", &["-rdc=true", "host_stream.cu"]),
    ] {
        let Some(program) = build(name, words) else {
            return;
        };
        for (pes, variables) in jobs() {
            ends_well(pes, &program, &[], variables);
        }
    }
}

#[test]
fn a_module_has_its_state_by_name() {
    let Some(program) = build("modules", &["modules.cu", "-lcuda"]) else {
        return;
    };
    for (pes, variables) in jobs() {
        ends_well(pes, &program, &[], variables);
    }
}

#[test]
fn edges_are_right() {
    all_well("edges", &[&[]]);
}

#[test]
fn calls_that_make_no_sense_are_refused_with_a_reason() {
    let Some(program) = build("misuse", &["-DOXSHMEM_CHECK", "misuse.cu"]) else {
        return;
    };
    for (case, words) in [
        (0, "nvshmem_init"),
        (1, "nvshmem_init"),
        (2, "PE 2"),
        (3, "PE -1"),
        (4, "symmetric"),
        (5, "symmetric"),
        (6, "symmetric"),
        (7, "99 is no team"),
        (8, "PE_root"),
        (9, "alignment"),
        (10, "nvshmem_malloc"),
        (11, "there is no PE 77"),
        (12, "nvshmem_init"),
        (13, "MPI_"),
        (14, "flags"),
        (15, "team"),
        (16, "77"),
        (17, "aligned"),
    ] {
        let checked = [MAPPED, &[("OXSHMEM_CHECK", "1")]].concat();
        let ended = job(2, &program, &[&case.to_string()], &checked);
        let told = both(&ended);
        assert!(!ended.status.success(), "{case}: {told}");
        assert!(ended.status.code() != Some(124), "{case} hangs: {told}");
        assert!(told.contains(words), "{case}, {words}: {told}");
        // The program's own checks hold, and nothing panics.
        assert!(!told.contains("misuse.cu:"), "{case}: {told}");
        assert!(!told.contains("panicked"), "{case}: {told}");
    }
}

#[test]
fn g1_g6_programs_have_no_races() {
    // Those of the quick half come first.
    let one: &[&[&str]] = &[&[]];
    let signals = [&SCOPES[..4], &[&["alone"]]].concat();
    let mut all = vec![
        ("ring", one),
        ("streams", one),
        ("told", one),
        ("waits", one),
    ];
    if !is_quick() {
        let more = [
            "order",
            "timed",
            "heat",
            "latency",
            "bandwidth",
            "atomics",
            "copies",
            "memory",
            "others",
        ];
        all.extend(more.map(|name| (name, one)));
        all.extend(["rma", "collectives", "reductions"].map(|name| (name, &SCOPES[..])));
        all.extend([
            ("signals", &signals[..]),
            ("qp", &SCOPES[..3]),
            ("teams", one),
        ]);
    }
    for (name, words) in all {
        let source = format!("{name}.cu");
        let checked = format!("{name}-checked");
        let Some(program) = build(&checked, &["-O1", "--check", &source]) else {
            return;
        };
        // One PE tells itself.
        let alone = name == "told";
        for (pes, path) in [(2, ONE_GPU), (2, RING), (1, ONE_GPU)] {
            for words in words.iter().filter(|_| pes > 1 || alone) {
                let told = ends_well(pes, &program, words, path);
                assert!(!told.contains("race:"), "{name}: {told}");
            }
        }
    }
    // The same ring where nobody waits for a signal. A wrong value does not end it: that might be before the other
    // PE's access, and a race is told at the second of both.
    let mut text = std::fs::read_to_string(here().join("tests/programs/ring.cu")).unwrap();
    for (call, instead) in [
        ("nvshmem_signal_wait_until(", "(void)("),
        ("RAN();", "CUDA(cudaDeviceSynchronize());"),
        ("EXPECT(", "(void)("),
    ] {
        assert_eq!(text.matches(call).count(), 1, "{call}");
        text = text.replace(call, instead);
    }
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvshmem-ring-without.cu");
    std::fs::write(&source, text).unwrap();
    let folder = format!("-I{}", here().join("tests/programs").display());
    let words = ["-O1", "-w", "--check", &folder, source.to_str().unwrap()];
    let program = build("ring-without-checked", &words).unwrap();
    let told = both(&job(2, &program, &[], ONE_GPU));
    let parts = ["race:", "PE 0's", "PE 1's"];
    let is_told = parts.iter().all(|part| told.contains(part));
    assert!(is_told, "a ring without its wait: {told}");
}
