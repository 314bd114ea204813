//! Building and running programs of `core/emulation/tests`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the programs.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

/// The folder of what is built.
pub fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Fetches CUDA's headers where the compiler is there. A test installs no compiler.
pub fn fetch_headers() {
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
pub fn build(name: &str, words: &[&str]) -> Option<Result<PathBuf, String>> {
    fetch_headers();
    let out = target().join(name);
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
pub fn run(program: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new("timeout")
        .arg("60")
        .arg(program)
        .args(words)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

pub fn says(out: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    )
}
