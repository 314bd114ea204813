//! Tests of the table against the list of names and the checked-in files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::files::files;
use crate::function::Function;
use crate::limits::{self, DIFFERENT, REFUSED_ON_HOST, WITHOUT_EFFECT};
use crate::rows::Form;
use crate::table::functions;
use crate::{tiles, types};

/// A name of NVSHMEM's interface.
struct Name {
    name: &'static str,
    kind: &'static str,
    scope: &'static str,
    /// Whether NVSHMEM's host library has the symbol.
    is_exported: bool,
}

fn names() -> Vec<Name> {
    let lines = include_str!("../data/names.txt").lines();
    let rows = lines.filter(|line| line.contains('\t') && !line.starts_with(['#', '\n']));
    let rows = rows.map(|line| line.split('\t').collect::<Vec<_>>());
    let names = rows.filter_map(|row| match row[..] {
        [name, kind, scope, _, _, symbol, _] if kind != "kind" => Some(Name {
            name,
            kind,
            scope,
            is_exported: symbol == "yes",
        }),
        _ => None,
    });
    names.collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

#[test]
fn the_table_has_every_function_and_no_more() {
    let all = names();
    assert_eq!(all.len(), 3743 + 68);
    let wanted: BTreeSet<&str> = all
        .iter()
        .filter(|name| name.kind == "function")
        .map(|name| name.name)
        .collect();
    let functions = functions();
    // A kind of wait gives its value in kernels alone: it has two rows.
    let made: BTreeSet<&str> = functions
        .iter()
        .map(|function| function.name.as_str())
        .collect();
    assert_eq!(made.len(), functions.len(), "a name is made twice");
    let of_tiles: Vec<String> = tiles::names()
        .iter()
        .map(|name| format!("nvshmemx::{name}"))
        .collect();
    let made: BTreeSet<&str> = made
        .into_iter()
        .chain(of_tiles.iter().map(String::as_str))
        .collect();
    let missing: Vec<_> = wanted.difference(&made).collect();
    // The list has this one as a type alone, of the same name.
    let extra = made
        .difference(&wanted)
        .filter(|name| **name != "nvshmemx_collective_launch_attr");
    let extra: Vec<_> = extra.collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
    assert!(extra.is_empty(), "extra: {extra:?}");
}

#[test]
fn each_function_is_where_nvshmem_has_it() {
    let functions = functions();
    let made: BTreeMap<&str, &Function> = functions
        .iter()
        .map(|function| (function.name.as_str(), function))
        .collect();
    for name in names().iter().filter(|name| name.kind == "function") {
        let Some(function) = made.get(name.name) else {
            continue;
        };
        let scope = match function.form {
            Form::Both => "both",
            Form::Host => "host",
            Form::OnStream => "on_stream",
            _ => "device",
        };
        assert_eq!(scope, name.scope, "{}", name.name);
        assert!(
            !name.is_exported || function.form.on_host(),
            "{} is exported",
            name.name
        );
    }
}

#[test]
fn every_function_of_the_host_has_an_export_and_every_one_of_kernels_a_body() {
    let (exports, script) = (crate::exports(), crate::version_script());
    let exported = exports
        .lines()
        .filter_map(|line| line.split_once("fn ")?.1.split_once('('));
    let exported: BTreeSet<&str> = exported.map(|(name, _)| name).collect();
    let listed: BTreeSet<&str> = script
        .lines()
        .map(|line| line.trim().trim_end_matches(';'))
        .collect();
    for function in functions() {
        let name = &function.name;
        if function.form.on_host() {
            assert!(!function.row.host.is_empty(), "{name}");
            assert!(exported.contains(name.as_str()), "{name}");
            assert!(listed.contains(name.as_str()), "{name}");
        }
        let is_bodiless = function.form.in_kernels() && function.row.device.is_empty();
        assert!(!is_bodiless, "{name}");
    }
}

#[test]
fn the_headers_have_every_type_constant_and_macro() {
    let include = root().join("core/nvshmem/include");
    let read = |name: &str| std::fs::read_to_string(include.join(name)).unwrap();
    let texts = [
        "nvshmem_version.h",
        "device_host/nvshmem_types.h",
        "device_host/nvshmem_tensor.h",
        "device/oxshmem_calls.cuh",
    ];
    let text: String = texts.map(read).concat();
    let words: BTreeSet<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let missing: Vec<_> = names()
        .iter()
        .filter(|name| ["macro", "constant", "type"].contains(&name.kind))
        .map(|name| name.name.trim_start_matches("nvshmemx::"))
        .filter(|name| !words.contains(name))
        .map(str::to_owned)
        .collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
}

#[test]
fn what_is_checked_in_is_current() {
    for (name, text) in files() {
        let found = std::fs::read_to_string(root().join(&name)).unwrap_or_default();
        assert!(
            found == text,
            "{name} is not what the table gives; run cargo run -p oxshmem-nvshmem-table"
        );
    }
}

#[test]
fn every_limit_is_of_a_name() {
    let names = names();
    for limit in REFUSED_ON_HOST
        .iter()
        .chain(WITHOUT_EFFECT)
        .chain(DIFFERENT)
    {
        for pattern in limit.names {
            let is_one = names.iter().any(|name| limits::matches(pattern, name.name));
            assert!(is_one, "{pattern} is no name");
        }
    }
}

#[test]
fn types_of_one_name_are_one() {
    let names: BTreeSet<&str> = types::ALL.iter().map(|of| of.name).collect();
    assert_eq!(names.len(), types::ALL.len());
}
