//! The programs of `core/oxshmem/litmus`.

macro_rules! programs {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../oxshmem/litmus/", $name, ".litmus"))),)*]
    };
}

/// Every program, by name: its name and its text.
#[must_use]
pub fn library() -> &'static [(&'static str, &'static str)] {
    LIBRARY
}

const LIBRARY: &[(&str, &str)] = programs![
    "2+2w",
    "2+2w+fence",
    "alltoall",
    "barrier-barrier",
    "broadcast-broadcast",
    "compare-swap-lock",
    "corr",
    "corw",
    "cowr",
    "coww",
    "coww+fence",
    "fcollect",
    "fence+two-targets",
    "iriw",
    "iriw+fence",
    "isa2+fence",
    "isa2+quiet",
    "lb",
    "lb+nbi",
    "lb+nbi+quiet",
    "lock",
    "mp",
    "mp+fence",
    "mp+fence+gets",
    "mp+fence+gets+fence",
    "mp+fence+test",
    "mp+quiet",
    "mp+set",
    "mp+signal",
    "mp+signal-nbi",
    "nbi+fence",
    "nbi+quiet",
    "one-context+fence",
    "own-store",
    "own-store+fence",
    "pe-quiet",
    "put+fence+put-signal",
    "put+put-signal",
    "put-counted",
    "put-fetch",
    "quiet+two-targets",
    "r+fence",
    "r+quiet",
    "reduce",
    "s",
    "sb",
    "sb+fence",
    "sb+own-get",
    "sb+own-stores+context",
    "sb+quiet",
    "sb+swaps",
    "set-quiet-set",
    "set-quiet-set+fence",
    "signal-add",
    "split-put",
    "sync",
    "team-sync",
    "two-adders",
    "two-contexts+fence",
    "two-contexts+quiet",
    "two-fetch-add",
    "two-fetch-add+fence",
    "two-fetch-add-nbi",
    "wrc",
    "wrc+gets",
];
