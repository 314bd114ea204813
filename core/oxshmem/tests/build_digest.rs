//! The digest by which two builds are told apart covers every package of this repository whose code is in a PE.

#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[test]
fn the_digest_covers_every_package_in_a_pe() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let covered = covered(here);
    let packages = packages();
    let mut seen = HashSet::new();
    let mut open = vec!["oxshmem".to_owned()];
    while let Some(name) = open.pop() {
        let Some((folder, dependencies)) = packages.get(&name) else {
            continue; // from the registry: its version is in the lock file
        };
        if seen.insert(name.clone()) {
            assert!(
                covered.iter().any(|at| folder.starts_with(at)),
                "core/oxshmem/build.rs: PACKAGES lacks {}, the folder of {name}",
                folder.display()
            );
            open.extend(dependencies.iter().cloned());
        }
    }
    assert!(seen.len() > 10, "only {seen:?} were found");
}

/// The folders in the list of the build script.
fn covered(here: &Path) -> Vec<PathBuf> {
    let list = include_str!("../build.rs")
        .split("PACKAGES: &[&str] = &[")
        .nth(1)
        .unwrap();
    let entries = list
        .split("];")
        .next()
        .unwrap()
        .split('"')
        .skip(1)
        .step_by(2);
    entries
        .map(|folder| here.join(folder).canonicalize().unwrap())
        .collect()
}

/// The workspace's packages: folder, and the names of the dependencies that are not of tests.
fn packages() -> HashMap<String, (PathBuf, Vec<String>)> {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "metadata",
        "--offline",
        "--no-deps",
        "--format-version",
        "1",
    ]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().unwrap();
    let data: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = data["packages"].as_array().unwrap().iter();
    let package = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let dependencies = dependencies.filter(|dependency| dependency["kind"] != "dev");
        let names = dependencies
            .map(|dependency| text(&dependency["name"]))
            .collect();
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        (
            text(&package["name"]),
            (manifest.parent().unwrap().to_owned(), names),
        )
    };
    packages.map(package).collect()
}
