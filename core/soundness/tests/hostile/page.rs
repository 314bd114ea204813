//! The check that `docs/soundness.md` names every function that deals with memory, tables or
//! addresses.

use std::collections::BTreeSet;

use crate::public;

const PAGE: &str = include_str!("../../../../docs/soundness.md");

/// Text in the declaration of a function that returns or takes such things.
const MARKS: [&str; 11] = [
    "*const",
    "*mut",
    "Peer",
    "Addresses",
    "DevicePtr",
    "Registered",
    "CudaSlice",
    "Memory>",
    "fn()",
    "&'env",
    "OwnedFd",
];

/// The names of functions in backticks.
fn named() -> BTreeSet<&'static str> {
    let quoted = PAGE.split('`').skip(1).step_by(2);
    let is_name = |name: &&str| {
        name.contains("::")
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "_:".contains(c))
    };
    quoted.filter(is_name).collect()
}

#[test]
fn the_page_on_soundness_names_every_function_that_hands_out_or_takes_memory() {
    let named = named();
    let handing = public::functions().into_iter().filter(|function| {
        let declared = function.declared.as_str();
        MARKS.iter().any(|mark| declared.contains(mark))
    });
    let missing: Vec<String> = handing
        .map(|function| function.name)
        .filter(|name| !named.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in docs/soundness.md: {missing:?}");
}

#[test]
fn the_page_on_soundness_names_no_function_that_is_gone() {
    let known = public::names();
    let known = |name: &&str| known.contains(*name);
    let gone: Vec<&str> = named().into_iter().filter(|name| !known(name)).collect();
    assert!(
        gone.is_empty(),
        "in docs/soundness.md, and in no source: {gone:?}"
    );
}
