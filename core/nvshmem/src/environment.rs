//! NVSHMEM's environment variables: those with a meaning here, and those without.

use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem::{Builder, bindings};

use crate::failure::print;

/// Variables that oxshmem or this library reads by their own names.
const READ: [&str; 5] = [
    "NVSHMEM_SYMMETRIC_SIZE",
    "NVSHMEM_MAX_TEAMS",
    "NVSHMEM_BOOTSTRAP",
    "NVSHMEM_INFO",
    "NVSHMEM_VERSION",
];

/// Variables of build systems, which no library reads.
const OF_BUILDS: [&str; 3] = ["NVSHMEM_HOME", "NVSHMEM_PREFIX", "NVSHMEM_DIR"];

/// Variables that have the meaning of one of oxshmem's.
const MAPPED: [(&str, &str); 2] = [
    ("NVSHMEM_HCA_LIST", "OXSHMEM_NIC"),
    ("NVSHMEM_HCA_PE_MAPPING", "OXSHMEM_NIC_MAP"),
];

/// Variables that make a rule of `OXSHMEM_ROUTE`.
const ROUTES: [&str; 2] = ["NVSHMEM_REMOTE_TRANSPORT", "NVSHMEM_DISABLE_P2P"];

/// The variable of messages.
const DEBUG: &str = "NVSHMEM_DEBUG";

fn value(name: &str) -> Option<String> {
    bindings::variable(name).filter(|value| !value.is_empty())
}

/// Whether a variable of NVSHMEM's says yes.
fn says_yes(name: &str) -> bool {
    let value = value(name).map(|value| value.to_lowercase());
    value.is_some_and(|value| !["0", "n", "no", "f", "false", "off"].contains(&value.as_str()))
}

/// Teams for which kernels get memory at the start, where the program's user says it.
pub(crate) fn teams() -> Option<usize> {
    value("NVSHMEM_MAX_TEAMS")?.trim().parse().ok()
}

/// The way to the job, where nvshmem_init is to choose.
pub(crate) fn bootstrap() -> Option<String> {
    value("NVSHMEM_BOOTSTRAP").map(|way| way.to_uppercase())
}

/// The rule for other hosts that a transport's name means; none for what has none.
fn rule_of(transport: &str) -> Option<&'static str> {
    match transport.to_lowercase().as_str() {
        "ibrc" | "ibdevx" | "ibgda" | "ucx" => Some("remote=verbs"),
        "libfabric" => Some("remote=ofi"),
        _ => None,
    }
}

/// Gives oxshmem's variables the values that NVSHMEM's have, where they have none of their own.
pub(crate) fn apply(builder: Builder) -> Builder {
    let mut defaults = vec![("OXSHMEM_MEMORY_MODEL", "relaxed".to_owned())];
    defaults.extend(
        MAPPED
            .iter()
            .filter_map(|(theirs, ours)| Some((*ours, value(theirs)?))),
    );
    defaults.extend(teams().map(|teams| ("OXSHMEM_TEAMS", teams.to_string())));
    let remote = value("NVSHMEM_REMOTE_TRANSPORT").and_then(|name| rule_of(&name));
    let local = says_yes("NVSHMEM_DISABLE_P2P").then_some("local=^nvlink");
    let rules: Vec<&str> = remote.into_iter().chain(local).collect();
    if !rules.is_empty() {
        defaults.push(("OXSHMEM_ROUTE", rules.join(",")));
    }
    if let Some(level) = value(DEBUG).map(|level| level.to_lowercase())
        && ["warn", "info", "trace"].contains(&level.as_str())
    {
        defaults.push(("OXSHMEM_LOG", level));
    }
    defaults
        .into_iter()
        .fold(builder, |builder, (name, value)| {
            bindings::default_variable(builder, name, value)
        })
}

/// Whether a variable of NVSHMEM's has no meaning here.
fn is_without_effect(name: &str) -> bool {
    let known = READ.iter().chain(&OF_BUILDS).chain(&ROUTES);
    name.starts_with("NVSHMEM_")
        && name != DEBUG
        && !known.into_iter().any(|known| *known == name)
        && !MAPPED.iter().any(|(known, _)| *known == name)
}

/// Variables whose values have no meaning here, and the values that have one.
fn unknown_values() -> Vec<String> {
    let known = |name: &str, values: &[&str]| {
        let given = value(name).filter(|given| !values.contains(&given.to_lowercase().as_str()));
        given.map(|given| format!("{name}={given} (known here: {})", values.join(", ")))
    };
    let teams = value("NVSHMEM_MAX_TEAMS").filter(|given| given.trim().parse::<usize>().is_err());
    [
        known(
            "NVSHMEM_REMOTE_TRANSPORT",
            &["ibrc", "ibdevx", "ibgda", "ucx", "libfabric"],
        ),
        known(DEBUG, &["warn", "info", "trace"]),
        known("NVSHMEM_BOOTSTRAP", &["pmi", "mpi", "shmem"]),
        teams.map(|given| format!("NVSHMEM_MAX_TEAMS={given} (give a number)")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Tells what the first PE is asked to tell at the start, and which variables have no effect. Once in a process.
pub(crate) fn tell() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    let unknown = unknown_values();
    if !unknown.is_empty() {
        print(&format!(
            "values without effect here: {}",
            unknown.join(", ")
        ));
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut without: Vec<String> = names.filter(|name| is_without_effect(name)).collect();
    without.sort();
    if !without.is_empty() {
        print(&format!(
            "without effect here: {}; docs/nvshmem.md says which of NVSHMEM's variables have one",
            without.join(", ")
        ));
    }
    if value("NVSHMEM_VERSION").is_some() {
        print(concat!(
            "oxshmem ",
            env!("CARGO_PKG_VERSION"),
            ", NVSHMEM API 1.3"
        ));
    }
    if value("NVSHMEM_INFO").is_some() {
        print("variables of NVSHMEM's with an effect here:");
        let mapped = MAPPED.iter().map(|(name, _)| *name);
        for name in READ
            .iter()
            .chain(&ROUTES)
            .chain([&DEBUG])
            .copied()
            .chain(mapped)
        {
            let value = value(name).unwrap_or_else(|| "not set".into());
            print(&format!("  {name}: {value}"));
        }
    }
}
