//! The check that every public function is called.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::public;

/// Functions that are not called here, with the reason.
const APART: [(&str, &str); 6] = [
    ("Static::new", "symmetric! calls it"),
    ("Template::new", "symmetric! calls it"),
    ("fuzzing::active_message", "ci/fuzz calls it"),
    ("fuzzing::variable", "ci/fuzz calls it"),
    (
        "launch::self_with",
        "it starts this program again; the tests of launch call it",
    ),
    (
        "Builder::gpu",
        "it takes a GPU's context; tests/cuda calls it",
    ),
];

/// The names behind `call!(`, `value!(` and `each_call!(` in these tests.
fn called() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    // This file contains names only as test data.
    let files = files.filter(|file| !file.ends_with("names.rs") && !file.ends_with("main.rs"));
    let texts = files.map(|file| fs::read_to_string(file).unwrap());
    texts.flat_map(|text| names(&text)).collect()
}

fn names(text: &str) -> Vec<String> {
    let calls = ["call!(", "value!("]
        .into_iter()
        .flat_map(|call| text.split(call).skip(1));
    let names = calls
        .filter_map(|rest| rest.split_once(','))
        .map(|(name, _)| name.trim().to_owned());
    let names = names.chain(text.split("each_call!($type,").skip(1).flat_map(of_each));
    let names = names.flat_map(|name| match name.strip_prefix("$type") {
        // A call of both kinds of contexts.
        Some(name) => vec![format!("Context{name}"), format!("SharedContext{name}")],
        None => vec![name],
    });
    // A macro's own call names no function.
    let is_name = |name: &String| name.contains("::") && !name.contains('$');
    names.filter(is_name).collect()
}

/// The names of `each_call!($type, of, (arguments): names)`.
fn of_each(rest: &str) -> Vec<String> {
    let names = rest
        .split_once("):")
        .and_then(|(_, rest)| rest.split_once(')'));
    let names = names
        .into_iter()
        .flat_map(|(names, _)| names.split_whitespace());
    names.map(|name| format!("$type::{name}")).collect()
}

#[test]
fn every_public_function_is_called() {
    let all = public::functions();
    let is_apart = |name: &str| APART.iter().any(|(apart, _)| *apart == name);
    let called = called();
    let missing: Vec<&str> = all
        .iter()
        .filter(|function| !function.is_unsafe() && !function.needs_gpu)
        .map(|function| &*function.name)
        .filter(|name| !called.contains(*name) && !is_apart(name))
        .collect();
    assert!(
        missing.is_empty(),
        "public functions that core/soundness does not call: {missing:?}; call each there with the worst arguments, \
         by call!(Type::name, …)"
    );
    let known = public::names();
    let gone = called
        .iter()
        .map(|name| &**name)
        .chain(APART.map(|(name, _)| name));
    let gone: Vec<&str> = gone.filter(|name| !known.contains(*name)).collect();
    assert!(
        gone.is_empty(),
        "called, and in no source of oxshmem: {gone:?}"
    );
}

#[test]
fn names_are_found_in_calls() {
    let text = "call!(World::free, world.free(x));\n value!(\n  Team::n_pes, team.n_pes());";
    assert_eq!(names(text), ["World::free", "Team::n_pes"]);
    let of_two = names("call!($type::test, of.test())");
    assert_eq!(of_two, ["Context::test", "SharedContext::test"]);
    let of_each = names("each_call!($type, of, (x, y): test\n test_any);");
    let expected = [
        "Context::test",
        "SharedContext::test",
        "Context::test_any",
        "SharedContext::test_any",
    ];
    assert_eq!(of_each, expected);
}
