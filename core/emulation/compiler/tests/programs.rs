//! Programs of `core/emulation/tests`, built and run. Without clang 19 or CUDA's headers they are
//! skipped, with the reason.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that cannot start a program has failed

mod common;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use common::{build, fetch_headers, run, says, sources, target};

/// The variable by which a test gives its words to the compiler driver as a process, one in a line.
const WORDS: &str = "OXSHMEM_TEST_WORDS";

/// Runs the compiler driver as a process in a folder, whose messages can be read. `None`: what the build needs is not there.
fn compile(folder: &Path, words: &[&str]) -> Option<(bool, String)> {
    fetch_headers();
    let mut driver = Command::new(std::env::current_exe().unwrap());
    driver.args(["--exact", "driver", "--ignored", "--nocapture"]);
    driver.current_dir(folder).env(WORDS, words.join("\n"));
    let out = driver.output().unwrap();
    let told = says(&out);
    if told.contains("oxshmem cuda setup") {
        eprintln!("SKIPPED {words:?}: {told}");
        return None;
    }
    Some((out.status.success(), told))
}

#[test]
#[ignore = "other tests start it"]
fn driver() {
    let Ok(words) = std::env::var(WORDS) else {
        return;
    };
    let words: Vec<OsString> = words.lines().map(OsString::from).collect();
    oxshmem_cuda_cc::cc(&words).unwrap_or_else(|failure| panic!("{failure}"));
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
fn groups_of_threads_have_their_parts_reductions_scans_and_copies() {
    let Some(program) = build("groups", &["-O2", "groups.cu"]) else {
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
fn what_programs_in_the_wild_do_works() {
    for level in ["-O0", "-O2"] {
        let words = [level, "idioms.cu"];
        let Some(program) = build("idioms", &words) else {
            return;
        };
        let program = program.unwrap();
        for variables in [&[][..], &[("SOFTCUDA_SEED", "3")]] {
            let out = run(&program, &[], variables);
            assert!(out.status.success(), "{level}: {}", says(&out));
        }
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
fn grids_that_need_more_room_than_the_device_has_end_with_an_error_that_says_so() {
    let Some(program) = build("too_many", &["-O2", "too_many.cu"]) else {
        return;
    };
    let program = program.unwrap();
    // The case, whether the program ends well, and its words.
    for (case, ends_well, words) in [
        ("fits", true, &["cudaSuccess"][..]),
        ("beside", true, &["cudaSuccess"]),
        ("two_cooperative", true, &["cudaSuccess"]),
        ("cooperative", true, &["cudaErrorCooperativeLaunchTooLarge"]),
        (
            "for_the_last",
            false,
            &[
                "cudaErrorLaunchTimeout",
                "8 of its 9 blocks of 1024 threads fit",
            ],
        ),
        (
            "meet",
            false,
            &[
                "cudaErrorLaunchTimeout",
                "8 of its 11 blocks of 1024 threads fit",
            ],
        ),
        (
            "two_kernels",
            false,
            &["cudaErrorLaunchTimeout", "open_gate", "can not begin"],
        ),
        (
            "not_cooperative",
            false,
            &["cudaErrorLaunchFailure", "not launched cooperatively"],
        ),
    ] {
        for seed in [&[][..], &[("SOFTCUDA_SEED", "5")]] {
            let variables = [&[("SOFTCUDA_PATIENCE", "1")][..], seed].concat();
            let out = run(&program, &[case], &variables);
            let told = says(&out);
            assert_eq!(out.status.success(), ends_well, "{case}: {told}");
            assert!(
                words.iter().all(|part| told.contains(part)),
                "{case}: {told}"
            );
        }
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

/// Words of `refused.cu`, each with the names under which the page of the emulation lists what they stand for, and words of the
/// compiler.
const REFUSED: [(&str, &str, &str); 19] = [
    ("CUBLAS", "cublas_v2.h", "<cublas_v2.h> is not part"),
    ("MMA", "mma.h", "<mma.h> is not part"),
    (
        "PIPELINE",
        "cuda_pipeline.h",
        "<cuda_pipeline.h> is not part",
    ),
    (
        "AWBARRIER",
        "cuda_awbarrier.h",
        "<cuda_awbarrier.h> is not part",
    ),
    ("FP8", "cuda_fp8.h", "<cuda_fp8.h> is not part"),
    ("ATOMIC", "cuda/atomic", "<cuda/atomic> is not part"),
    ("STD", "cuda/std/...", "<cuda/std/tuple> is not part"),
    ("RANDOM", "curand_kernel.h", "<curand_kernel.h> is not part"),
    ("CUB", "cub/...", "<cub/cub.cuh> is not part"),
    (
        "THRUST",
        "thrust/...",
        "<thrust/device_vector.h> is not part",
    ),
    (
        "MANAGED",
        "__managed__",
        "__managed__ variables are not part",
    ),
    (
        "CLUSTER_DIMS",
        "__cluster_dims__",
        "__cluster_dims__ is not part",
    ),
    ("CONSTANT", "__isConstant", "does not tell constant memory"),
    ("CLUSTER", "this_cluster", "this_cluster"),
    ("TEXTURE", "tex1D...", "tex1Dfetch"),
    ("SURFACE", "surf1D...", "surf1Dwrite"),
    ("NESTED", "<<<>>>` in a kernel", "inner"),
    ("COPIED", "copy constructor", "Copied"),
    (
        "WIDE_TILE",
        "more than 32 threads",
        "the emulation has tiles of",
    ),
];

/// The page of the emulation, whose table lists what works and what does not.
const PAGE: &str = include_str!("../../../../docs/cuda-emulation.md");

/// Rows of the page's table with this state.
fn rows(state: &str) -> Vec<&'static str> {
    let is =
        |row: &&str| row.starts_with('|') && row.split('|').nth(2).unwrap_or("").trim() == state;
    PAGE.lines().filter(is).collect()
}

#[test]
fn what_cannot_run_is_refused_by_name_at_build() {
    let listed = rows("refused at build");
    for (word, name, words) in REFUSED {
        let rows = listed.iter().filter(|row| row.contains(name)).count();
        assert_eq!(rows, 1, "rows of {name} in docs/cuda-emulation.md");
        let program = target().join("refused");
        let define = format!("-D{word}");
        let words_of = ["-o", program.to_str().unwrap(), "refused.cu", &define];
        let Some((built, told)) = compile(&sources(), &words_of) else {
            return;
        };
        assert!(!built && told.contains(words), "{word}: {told}");
    }
    // Inline PTX has a test of its own.
    assert_eq!(listed.len(), REFUSED.len() + 1, "{listed:?}");
}

#[test]
fn functions_of_the_runtime_that_are_not_there_say_so() {
    let Some(program) = build("not_there", &["not_there.cu"]) else {
        return;
    };
    let out = run(&program.unwrap(), &[], &[]);
    let told = says(&out);
    assert!(out.status.success(), "{told}");
    let listed = rows("`cudaErrorNotSupported`").concat();
    for name in [
        "cudaMallocArray",
        "cudaCreateTextureObject",
        "cudaGraphExecUpdate",
    ] {
        assert!(
            told.contains(name) && listed.contains(name),
            "{name}: {told}"
        );
    }
    assert!(
        told.contains("launch attribute 4") && listed.contains("clusters"),
        "{told}"
    );
}

#[test]
fn every_row_of_what_works_names_a_program_that_is_run() {
    let here = concat!(include_str!("programs.rs"), include_str!("races.rs"));
    let of_c = include_str!("../../../capi/tests/cuda/main.rs");
    let of_nvshmem = include_str!("../../../nvshmem/tests/programs/main.rs");
    let works = rows("works");
    for row in &works {
        let cell = row.split('|').nth(3).unwrap_or_default();
        let programs: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!programs.is_empty(), "{row}");
        for program in programs {
            let is_run = [here, of_c, of_nvshmem]
                .iter()
                .any(|text| text.contains(&format!("\"{program}\"")));
            assert!(is_run, "no test runs {program}: {row}");
        }
    }
    assert!(works.len() > 10, "{works:?}");
}

#[test]
fn a_list_of_headers_names_the_object_and_the_sources_headers() {
    let folder = target().join("lists");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("part.h"), "enum { PART = 3 };\n").unwrap();
    let source = "#include \"part.h\"\n__global__ void k(int* out) { *out = PART; }\n";
    std::fs::write(folder.join("listed.cu"), source).unwrap();
    std::fs::create_dir_all(folder.join("out")).unwrap();
    let words = [
        "-MD",
        "-c",
        "listed.cu",
        "-odir",
        "out",
        "-Xcompiler",
        "-Wall,-O0",
    ];
    let Some((built, told)) = compile(&folder, &words) else {
        return;
    };
    assert!(built, "{told}");
    let list = std::fs::read_to_string(folder.join("out/listed.d")).unwrap();
    assert!(
        list.starts_with("out/listed.o:") && list.contains("part.h"),
        "{list}"
    );
    let (_, told) = compile(&folder, &["-MM", "listed.cu"]).unwrap();
    assert!(
        told.contains("listed.o:") && told.contains("part.h"),
        "{told}"
    );
    let words = ["-MM", "-MF", "list", "-MT", "all", "listed.cu"];
    let (built, told) = compile(&folder, &words).unwrap();
    assert!(built, "{told}");
    let list = std::fs::read_to_string(folder.join("list")).unwrap();
    assert!(
        list.starts_with("all:") && list.contains("part.h"),
        "{list}"
    );
    // Each of several sources has its own.
    std::fs::write(
        folder.join("second.cu"),
        "#include \"part.h\"\nint main() { return PART - 3; }\n",
    )
    .unwrap();
    let words = ["-MD", "listed.cu", "second.cu", "-o", "both"];
    let (built, told) = compile(&folder, &words).unwrap();
    assert!(built, "{told}");
    for name in ["listed", "second"] {
        let list = std::fs::read_to_string(folder.join(format!("{name}.d"))).unwrap();
        assert!(
            list.starts_with(&format!("{name}.o:")) && list.contains("part.h"),
            "{list}"
        );
    }
    assert!(!folder.join("both.d").exists());
    // A macro for the host's compiler is none of the device's.
    let source = "#if defined(ONLY) && defined(__CUDA_ARCH__)\n#error both halves have it\n#endif\nint main() {}\n";
    std::fs::write(folder.join("halves.cu"), source).unwrap();
    let words = ["-Xcompiler", "-DONLY", "halves.cu", "-o", "halves"];
    let (built, told) = compile(&folder, &words).unwrap();
    assert!(built, "{told}");
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
fn graphs_are_made_node_by_node_and_copies_have_three_dimensions() {
    let Some(program) = build("graphs", &["graphs.cu"]) else {
        return;
    };
    let out = run(&program.unwrap(), &[], &[("SOFTCUDA_JITTER", "3")]);
    assert!(out.status.success(), "{}", says(&out));
}

#[test]
fn functions_of_numbers_give_what_the_host_computes_by_other_means() {
    for (name, level) in [("numbers", "-O2"), ("numbers_plain", "-O0")] {
        let Some(program) = build(name, &[level, "numbers.cu"]) else {
            return;
        };
        let out = run(&program.unwrap(), &[], &[]);
        assert!(out.status.success(), "{level}: {}", says(&out));
    }
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
