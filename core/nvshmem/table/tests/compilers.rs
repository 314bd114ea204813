//! Every call by the compilers that are here: gcc and g++ for those of the host, clang for those of kernels. The others are
//! `ci/device-compilers`' and `ci/ptx`'s.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Compiles a source, unless there is no such compiler.
fn compiles(compiler: &str, options: &[&str], name: &str, text: &str) {
    if Command::new(compiler).arg("--version").output().is_err() {
        eprintln!("SKIPPED: {compiler} is not there");
        return;
    }
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{compiler}-{name}"));
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler);
    command.args(options).args([
        "-Wall",
        "-Werror",
        "-fsyntax-only",
        "-I",
        "core/nvshmem/include",
        "-I",
        "core/device/include",
    ]);
    let output = command.arg(&source).current_dir(root()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let told: Vec<_> = told
        .lines()
        .filter(|line| line.contains("error"))
        .take(20)
        .collect();
    assert!(
        output.status.success(),
        "{compiler}: {}: {told:#?}",
        source.display()
    );
}

#[test]
fn gcc_takes_every_call_of_the_host_in_c_and_cxx() {
    let text = oxshmem_nvshmem_table::uses_on_host();
    compiles(
        "gcc",
        &["-std=c11", "-Wextra", "-Wno-unused-function"],
        "host.c",
        &text,
    );
    compiles("g++", &["-std=c++17", "-Wextra"], "host.cpp", &text);
}

/// Numbers that programs store and exchange, as NVSHMEM has them.
#[test]
fn structures_and_constants_have_nvshmems_sizes_and_values() {
    const EQUAL: &[(&str, i64)] = &[
        ("sizeof(nvshmemx_uniqueid_t)", 128),
        ("sizeof(nvshmemx_uniqueid_args_t)", 24),
        ("sizeof(nvshmemx_init_args_t)", 128),
        ("sizeof(nvshmemx_init_attr_t)", 144),
        ("sizeof(nvshmemx_init_attr_v1)", 144),
        ("sizeof(nvshmem_team_config_t)", 64),
        ("sizeof(nvshmem_team_config_v1)", 64),
        ("sizeof(nvshmemx_region_attrs_t)", 64),
        ("NVSHMEM_INIT_ATTR_VER", (2 << 16) + 144),
        ("NVSHMEM_SIGNAL_SET", 9),
        ("NVSHMEM_SIGNAL_ADD", 10),
        ("NVSHMEM_CMP_EQ", 0),
        ("NVSHMEM_CMP_NE", 1),
        ("NVSHMEM_CMP_GT", 2),
        ("NVSHMEM_CMP_LE", 3),
        ("NVSHMEM_CMP_LT", 4),
        ("NVSHMEM_CMP_GE", 5),
        ("NVSHMEM_TEAM_INVALID", -1),
        ("NVSHMEM_TEAM_WORLD", 0),
        ("NVSHMEM_TEAM_SHARED", 1),
        ("NVSHMEMX_TEAM_NODE", 2),
        ("NVSHMEMX_TEAM_SAME_MYPE_NODE", 3),
        ("NVSHMEMX_INIT_WITH_MPI_COMM", 2),
        ("NVSHMEMX_INIT_WITH_SHMEM", 4),
        ("NVSHMEMX_INIT_WITH_UNIQUEID", 8),
        ("NVSHMEM_THREAD_MULTIPLE", 3),
        ("NVSHMEM_STATUS_IS_INITIALIZED", 2),
        ("NVSHMEMX_ERROR_INTERNAL", 7),
        ("NVSHMEMX_QP_HOST", 0),
        ("NVSHMEMX_QP_DEFAULT", 1),
        ("NVSHMEMX_QP_ANY", i32::MAX as i64),
    ];
    let lines = EQUAL
        .iter()
        .map(|(what, value)| format!("_Static_assert((long){what} == {value}, \"{what}\");\n"));
    let text = format!(
        "#include <nvshmem.h>\n{}\
         nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;\nnvshmemx_init_attr_v1 old = NVSHMEMX_INIT_ATTR_V1_INITIALIZER;\n\
         nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;\nnvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;\n\
         nvshmemx_region_attrs_t region = NVSHMEMX_REGION_ATTRS_INITIALIZER;\n",
        lines.collect::<String>()
    );
    compiles("gcc", &["-std=c11"], "values.c", &text);
    compiles(
        "g++",
        &["-std=c++17", "-D_Static_assert=static_assert"],
        "values.cpp",
        &text,
    );
}

#[test]
fn clang_takes_every_call_of_kernels() {
    let text = oxshmem_nvshmem_table::uses_in_kernels(0, 1);
    let options = [
        "-x",
        "cuda",
        "--cuda-device-only",
        "--cuda-gpu-arch=sm_80",
        "-nocudainc",
        "-nocudalib",
        "-std=c++17",
        "-Wno-unknown-cuda-version",
        "-Xclang",
        "-target-feature",
        "-Xclang",
        "+ptx70",
        "-include",
        "ci/device-compilers.d/nvshmem.h",
    ];
    for compiler in ["clang++-14", "clang++-19"] {
        compiles(compiler, &options, "kernels.cu", &text);
    }
}

/// A call that is refused says why.
#[test]
fn a_refused_call_says_why() {
    let text = oxshmem_nvshmem_table::uses_in_kernels(0, 1_000_000);
    let calls = "\n__global__ void refused(UsedTensor tensor, UsedPlace place) {\n\
                 nvshmemx::tile_allgather_block<UsedTensor, UsedTensor, UsedPlace, nvshmemx::NVLS_ONE_SHOT_PULL_NBI>(0, tensor, tensor, place, place, 0);\n}\n";
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused.cu");
    std::fs::write(&source, text + calls).unwrap();
    let mut command = Command::new("clang++-19");
    command.args([
        "-x",
        "cuda",
        "--cuda-device-only",
        "--cuda-gpu-arch=sm_80",
        "-nocudainc",
        "-nocudalib",
        "-std=c++17",
        "-w",
    ]);
    command.args([
        "-fsyntax-only",
        "-Xclang",
        "-target-feature",
        "-Xclang",
        "+ptx70",
        "-include",
        "ci/device-compilers.d/nvshmem.h",
    ]);
    command
        .args(["-I", "core/nvshmem/include", "-I", "core/device/include"])
        .arg(&source);
    let Ok(output) = command.current_dir(root()).output() else {
        eprintln!("SKIPPED: clang++-19 is not there");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        told.contains("oxshmem refuses nvshmemx::tile_allgather_block"),
        "{told}"
    );
}
