//! Tests of the table against the lists of names, the checked-in files and the Rust library's documentation.

use std::collections::BTreeSet;

use crate::files::files;
use crate::man::{family, manual};
use crate::pages::PAGES;
use crate::rows::ROWS;
use crate::table::functions;

const NAMES: &str = include_str!("../data/names.txt");
const OTHERS: &str = include_str!("../data/others.txt");

#[test]
fn the_table_has_every_name_of_the_specification_and_of_others_and_no_more() {
    let all = functions().into_iter().filter(|f| !f.beyond());
    let (others, of_it): (Vec<_>, Vec<_>) = all.partition(|f| f.row.others_have);
    assert_eq!(NAMES.lines().count(), 1788);
    for (names, functions) in [(NAMES, of_it), (OTHERS, others)] {
        let named: BTreeSet<&str> = names.lines().collect();
        let made: BTreeSet<&str> = functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(made.len(), functions.len(), "a name is made twice");
        let missing: Vec<_> = named.difference(&made).collect();
        let extra: Vec<_> = made.difference(&named).collect();
        assert!(missing.is_empty(), "missing: {missing:?}");
        assert!(extra.is_empty(), "extra: {extra:?}");
    }
}

#[test]
fn what_is_checked_in_is_current() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, text) in files() {
        let found = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            found == text,
            "core/capi/{name} is not what the table gives; run cargo run -p oxshmem-capi-table"
        );
    }
    // The pages of other sections are written by hand.
    let pages = std::fs::read_dir(folder.join("man")).unwrap();
    let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let made = names.filter(|name| name == "links" || name.ends_with(".3"));
    assert_eq!(made.count(), manual().len(), "files in core/capi/man/");
}

/// Aliases let a reader who knows the C API find the call of the Rust library by its C name.
#[test]
fn every_family_is_an_alias_in_the_documentation_of_the_rust_library() {
    // Rust has no such calls.
    const NONE: [&str; 7] = [
        "shmem_ctx_get_team",
        "shmem_info_get_name",
        "shmem_info_get_version",
        "shmem_pcontrol",
        "shmem_query_initialized",
        "shmem_query_thread",
        "shmemx_wtime",
    ];
    let sources =
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oxshmem/src"));
    let families = PAGES.iter().flat_map(|page| page.families);
    let missing: Vec<_> = families
        .filter(|family| !NONE.contains(family))
        .filter(|family| !sources.contains(&format!("\"{family}\"")))
        .collect();
    assert!(missing.is_empty(), "no #[doc(alias)] for {missing:?}");
}

/// All Rust code in a folder.
fn sources(folder: &std::path::Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push_str(&sources(&path));
        } else {
            all.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    all
}

#[test]
fn every_function_is_on_one_page() {
    let on_pages: Vec<&str> = PAGES
        .iter()
        .flat_map(|page| page.families.iter().copied())
        .collect();
    let described: BTreeSet<_> = on_pages.iter().copied().collect();
    assert_eq!(described.len(), on_pages.len(), "one is on two pages");
    let families: BTreeSet<String> = ROWS.iter().map(family).collect();
    let families: BTreeSet<&str> = families.iter().map(String::as_str).collect();
    let differ: Vec<_> = described.symmetric_difference(&families).collect();
    assert!(differ.is_empty(), "{differ:?}");
}
