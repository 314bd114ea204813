//! That the programs call every function there is.

use std::collections::BTreeSet;
use std::process::Command;

use super::{can_build, here, oxshmem, run, usual};

/// The words in a source's own lines, behind the preprocessor. Lines of headers that are not of this folder do not count.
fn words_of(source: &str, options: &[&str]) -> BTreeSet<String> {
    let mut show = Command::new(oxshmem());
    show.args(["cuda", "cc", "-std=c++17", "-E"]).args(options);
    show.arg(source).args(usual());
    let text = run(show.current_dir(here().join("tests/programs")));
    let mut is_own = false;
    let mut words = BTreeSet::new();
    for line in text.lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let file = marker.split('"').nth(1).unwrap_or_default();
            is_own =
                !file.contains("/include/") && !file.starts_with("/usr") && !file.starts_with('<');
        } else if is_own {
            let found = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.extend(
                found
                    .filter(|word| word.starts_with("nvshmem"))
                    .map(str::to_owned),
            );
        }
    }
    words
}

/// Functions that no program calls: those that are refused, which have a test of their own, and those for libraries of NVIDIA's.
const UNCALLED: &[&str] = &[
    "nvshmemid_hostlib_finalize",
    "nvshmemid_hostlib_init_attr",
    "nvshmemid_init_status",
];

#[test]
fn every_function_is_called_by_some_program() {
    if !can_build() {
        return;
    }
    let programs = std::fs::read_dir(here().join("tests/programs")).unwrap();
    let names = programs.map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let sources: Vec<String> = names.filter(|name| name.ends_with(".cu")).collect();
    let called: BTreeSet<String> = sources
        .iter()
        .filter(|name| *name != "mpi.cu")
        .flat_map(|name| words_of(name, &["-rdc=true"]))
        .collect();
    let table = include_str!("../../table/data/names.txt");
    let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1);
    let functions = rows.filter_map(|row| {
        let mut columns = row.split('\t');
        let name = columns.next()?;
        (columns.next() == Some("function")).then_some(name)
    });
    let uncalled: Vec<&str> = functions
        .filter(|name| !called.contains(*name) && !UNCALLED.contains(name) && !name.contains("::"))
        .collect();
    assert!(uncalled.is_empty(), "{uncalled:?}");
}
