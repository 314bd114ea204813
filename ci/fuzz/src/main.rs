//! Fuzzing of every parser of bytes from outside. `OXSHMEM_FUZZ` names the target; libFuzzer's
//! options follow. `ci/fuzz/run` runs all of them.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

type Target = fn(&[u8]);

/// All targets, by the names of their folders in `corpus`.
const TARGETS: &[(&str, Target)] = &[
    ("active-message", oxshmem::fuzzing::active_message),
    ("agent", oxshmem_bootstrap::fuzzing::agent),
    ("descriptors", oxshmem_bootstrap::fuzzing::descriptors),
    ("edges", edges),
    ("frames", oxshmem_bootstrap::fuzzing::frames),
    ("hello", oxshmem_bootstrap::fuzzing::hello),
    ("hosts", hosts),
    ("litmus", litmus),
    ("loopback-wire", oxshmem_loopback::fuzzing::wire),
    ("pmi-1", oxshmem_bootstrap::fuzzing::pmi_1),
    ("pmi-2", oxshmem_bootstrap::fuzzing::pmi_2),
    ("publication", oxshmem_bootstrap::fuzzing::publication),
    ("size", size),
    ("topology", topology),
    ("variable", oxshmem::fuzzing::variable),
    ("verbs-wire", oxshmem_verbs::fuzzing::wire),
];

/// A graph's edges. The examples' memory depends on their number.
fn edges(bytes: &[u8]) {
    let _ = oxshmem_examples::read::parse("input", bytes);
}

/// A list of hosts and a file of them.
fn hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = oxshmem_bootstrap::Hosts::parse_list(&text);
    let _ = oxshmem_bootstrap::Hosts::parse_file(&text);
}

/// A litmus program. If the parser accepts it, its printed text gives the same program.
fn litmus(bytes: &[u8]) {
    if let Ok(program) = oxshmem_litmus::Program::parse(&String::from_utf8_lossy(bytes)) {
        let again = oxshmem_litmus::Program::parse(&program.to_string());
        assert!(again.as_ref() == Ok(&program), "{program} became {again:?}");
    }
}

/// A heap's size, on a machine with 3 GiB.
fn size(bytes: &[u8]) {
    let _ = oxshmem_heap::limit::parse(&String::from_utf8_lossy(bytes), 3 << 30);
}

/// hwloc's XML. A machine that the parser accepts can be printed, drawn and measured.
fn topology(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(topology) = oxshmem_topo::Topology::from_xml(&text) else {
        return;
    };
    let _ = (topology.to_string(), oxshmem_topo::svg(&topology, &[]));
    for gpu in &topology.gpus {
        for nic in &topology.nics {
            let _ = topology.distance(gpu, nic).to_string();
        }
    }
}

fn target() -> Target {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("OXSHMEM_FUZZ").unwrap_or_default();
        match TARGETS.iter().find(|(known, _)| *known == name) {
            Some((_, target)) => *target,
            None => {
                let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
                eprintln!(
                    "OXSHMEM_FUZZ={name:?} names no target; choose {}",
                    names.join(", ")
                );
                std::process::exit(2);
            }
        }
    })
}

fuzz_target!(|bytes: &[u8]| target()(bytes));
