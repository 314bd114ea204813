//! The programs that use GPUs: on the software driver that `ci/test-gpu` provides, or on a GPU.
//! Without either nothing is run; with `OXSHMEM_TEST_CUDA=1` that is a failure.
#![cfg(feature = "cuda")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use oxshmem::cuda::Device;
use oxshmem::cuda::testing::present;

const RING: &str = env!("CARGO_BIN_EXE_gpu_ring");
const HEAT: &str = env!("CARGO_BIN_EXE_gpu_heat");

fn has_gpu() -> bool {
    present(Device::new(0)).is_some()
}

/// The software driver's kernels with the programs' own, built once.
fn software_kernels() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oxshmem-examples-kernels.so");
        let built = Command::new(examples.join("../ci/softcuda-kernels"))
            .arg(&library)
            .arg(examples.join("gpu_heat/heat.cu"))
            .status()
            .unwrap();
        assert!(built.success(), "ci/softcuda-kernels: {built}");
        library
    })
}

/// Runs a program with 64 MiB of GPU memory for each PE, for two minutes at most.
fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", "120", program])
        .args(arguments)
        .env("OXSHMEM_CUDA_SYMMETRIC_SIZE", "64M")
        .env("RUST_BACKTRACE", "0");
    if std::env::var_os("OXSHMEM_CUDA_LIBRARY").is_some() {
        command.env("SOFTCUDA_KERNELS", software_kernels());
    }
    command.output().unwrap()
}

/// The stdout of a program that must succeed.
fn stdout(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{arguments:?}: {}: {errors}",
        output.status
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn blocks_go_round_a_ring_of_gpus_and_come_whole() {
    if !has_gpu() {
        return;
    }
    // Sizes with put and signal in one kernel, and without; rounds that end on either block.
    for (pes, bytes, rounds) in [("1", "800", "3"), ("2", "264", "8"), ("3", "100000", "21")] {
        let said = stdout(RING, &["--pes", pes, "--bytes", bytes, "--rounds", rounds]);
        let wanted =
            format!("blocks of {bytes} bytes made {rounds} hops among {pes} PEs and came whole");
        assert!(said.contains(&wanted), "{said}");
    }
}

#[test]
fn heat_on_any_number_of_gpus_is_the_cpus_bit_by_bit_and_is_shown() {
    if !has_gpu() {
        return;
    }
    for (pes, width, height) in [(1, 40, 30), (2, 40, 31), (3, 33, 50), (4, 20, 6)] {
        let picture =
            std::env::temp_dir().join(format!("oxshmem-{}-{pes}.png", std::process::id()));
        let [count, columns, rows] = [pes, width, height].map(|number| number.to_string());
        let plate = ["--pes", &count, "--width", &columns, "--height", &rows];
        let steps = [
            "--steps",
            "41",
            "--every",
            "20",
            "--check",
            "--picture",
            picture.to_str().unwrap(),
        ];
        let said = stdout(HEAT, &[&plate[..], &steps[..]].concat());
        assert!(
            said.contains(&format!("42 steps of {width} x {height} on {pes} PEs")),
            "{said}"
        );
        assert!(said.contains("every number is the CPU's"), "{said}");
        let file = std::fs::File::open(&picture).unwrap();
        let reader = png::Decoder::new(std::io::BufReader::new(file))
            .read_info()
            .unwrap();
        assert_eq!((reader.info().width, reader.info().height), (width, height));
        std::fs::remove_file(&picture).unwrap();
    }
}

#[test]
fn heat_ends_when_it_changes_little_enough_on_all_pes() {
    if !has_gpu() {
        return;
    }
    let picture = std::env::temp_dir().join(format!("oxshmem-{}-even.png", std::process::id()));
    let said = stdout(
        HEAT,
        &[
            "--pes",
            "2",
            "--width",
            "8",
            "--height",
            "8",
            "--steps",
            "10000",
            "--every",
            "50",
            "--tolerance",
            "1e-4",
            "--check",
            "--picture",
            picture.to_str().unwrap(),
        ],
    );
    let steps: usize = said.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(steps < 1000 && steps.is_multiple_of(50), "{said}");
    std::fs::remove_file(&picture).unwrap();
}

#[test]
fn without_gpu_memory_the_programs_say_what_to_set() {
    for program in [RING, HEAT] {
        let output = Command::new(program)
            .args(["--pes", "1"])
            .env_remove("OXSHMEM_CUDA_SYMMETRIC_SIZE")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains("set OXSHMEM_CUDA_SYMMETRIC_SIZE"),
            "{said}"
        );
    }
}

#[test]
fn more_pes_than_rows_are_refused() {
    if !has_gpu() {
        return;
    }
    let output = run(HEAT, &["--pes", "3", "--height", "4"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("2 rows between the edges are too few for 3 PEs"),
        "{said}"
    );
}

#[test]
fn a_picture_that_cannot_be_written_is_refused_before_the_work() {
    if !has_gpu() {
        return;
    }
    let output = run(
        HEAT,
        &["--pes", "2", "--picture", "/no-such-folder/heat.png"],
    );
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(
        errors.contains("cannot write /no-such-folder/heat.png"),
        "{errors}"
    );
}

#[test]
fn a_block_of_odd_size_is_refused() {
    let output = run(RING, &["--pes", "1", "--bytes", "12"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("--bytes 12: a block is a multiple of 8 bytes"),
        "{said}"
    );
}
