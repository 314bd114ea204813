//! The identity of a build: a digest of the sources of the library and of its packages in this repository, as far as they
//! are here. PEs of one job need the same, because the formats of their messages have no versions of their own.

use std::path::{Path, PathBuf};

/// Packages whose code runs in a PE, relative to this one.
const PACKAGES: &[&str] = &[
    ".",
    "../engine",
    "../device",
    "../collectives",
    "../bootstrap",
    "../../heap",
    "../../topo",
    "../../transport",
];

fn main() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = root.unwrap_or_default();
    let mut digest = 0xcbf2_9ce4_8422_2325;
    for package in PACKAGES {
        let at = root.join(package);
        let mut files = Vec::new();
        sources(&at, &mut files);
        files.sort();
        for file in files {
            println!("cargo::rerun-if-changed={}", file.display());
            let name = file.strip_prefix(&root).unwrap_or(&file);
            add(&mut digest, name.to_string_lossy().as_bytes());
            add(&mut digest, &std::fs::read(&file).unwrap_or_default());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=BUILD_DIGEST={digest:016x}");
}

/// The sources under a folder, in Rust and in PTX, without those of tests and programs beside the library.
fn sources(at: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        let path = entry.path();
        let skipped = ["tests", "benches", "examples", "target"];
        if path.is_dir() && !skipped.iter().any(|name| path.ends_with(name)) {
            sources(&path, files);
        } else if path
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "ptx")
        {
            files.push(path);
        }
    }
}

/// FNV-1a, of 64 bits.
fn add(digest: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *digest = (*digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
}
