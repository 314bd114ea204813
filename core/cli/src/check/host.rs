//! The doctor for one host: its set-up, from files of the kernel.

mod cpu;
mod facts;
#[cfg(test)]
mod fixture;
mod libraries;
mod limits;
mod memory;
mod network;
mod pci;
mod rdma;

use std::collections::BTreeMap;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::system::System;
use facts::Facts;
use pci::Functions;

/// One host's set-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub hostname: String,
    pub findings: Vec<Finding>,
    pub facts: Facts,
    /// Gigabytes per second of the links of NICs that are known, by the names that transports give them.
    pub rates: BTreeMap<String, f64>,
}

/// The checks of a host, without those of the job's settings.
pub fn see(system: &System) -> Host {
    let mut facts = Facts::new();
    let devices = rdma::devices(system);
    let functions = Functions::read(system);
    let has_rdma = !devices.is_empty();
    let mut findings = Vec::new();
    if system.is_live() {
        findings.push(build(&mut facts));
    }
    findings.push(kernel(system));
    findings.extend(libraries::check(
        system,
        &mut facts,
        has_rdma,
        functions.gpus.len(),
    ));
    findings.extend(rdma::check(system, &mut facts, &devices, &functions));
    findings.extend(network::check(system, &mut facts));
    findings.extend(limits::check(system, &mut facts, has_rdma));
    findings.extend(memory::check(system, &mut facts));
    findings.extend(cpu::check(system, &mut facts));
    findings.extend(pci::check(system, &mut facts, &functions, &devices));
    if system.is_live() {
        active_mtus(system, &mut facts);
        settings(system, &mut facts);
    }
    Host {
        hostname: match system.is_live() {
            true => oxshmem_topo::hostname(),
            false => system.text("proc/sys/kernel/hostname").unwrap_or_default(),
        },
        findings,
        facts,
        rates: rates(system, &devices),
    }
}

pub use rdma::errors;

/// This build of oxshmem.
fn build(facts: &mut Facts) -> Finding {
    let features = [
        ("cuda", cfg!(feature = "cuda")),
        ("hwloc", cfg!(feature = "hwloc")),
        ("ofi", cfg!(feature = "ofi")),
        ("verbs", cfg!(feature = "verbs")),
    ];
    let features: Vec<&str> = features
        .iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| *name)
        .collect();
    let kind = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let version = env!("CARGO_PKG_VERSION");
    let mark = match std::fs::read("/proc/self/exe") {
        Ok(program) => {
            // The same for one file on all hosts: this hasher has no key of its own.
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write(&program);
            format!("{:016x}", hasher.finish())
        }
        Err(_) => "that cannot be read".into(),
    };
    let text = format!(
        "{version}, {kind}, with {}; program {mark}",
        features.join(", ")
    );
    facts.insert("oxshmem".into(), text.clone());
    if cfg!(debug_assertions) {
        Finding::ok("oxshmem", format!("{text} (a build without optimisation)"))
    } else {
        Finding::ok("oxshmem", text)
    }
}

fn kernel(system: &System) -> Finding {
    match system.text("proc/sys/kernel/osrelease") {
        Some(release) => Finding::ok("kernel", format!("Linux {release}")),
        None => Finding::unseen("kernel", "not visible"),
    }
}

/// The MTU that a port has now, as the transport of RDMA tells it.
fn active_mtus(system: &System, facts: &mut Facts) {
    let descriptions = crate::info::transports::descriptions();
    for (device, description) in descriptions {
        let mtu = description.rsplit_once("MTU ").map(|(_, mtu)| mtu);
        let mtu = mtu.filter(|mtu| mtu.bytes().all(|byte| byte.is_ascii_digit()));
        if let (Some(mtu), Some(port)) = (mtu, rdma::compared_port(system, &device)) {
            facts.insert(format!("MTU of {port}"), mtu.into());
        }
    }
}

/// Variables that differ between the PEs of one job, or that only one of them needs.
const OWN: [&str; 4] = [
    "OXSHMEM_HOST_ID",
    "OXSHMEM_HUB_ADDRESS",
    "OXSHMEM_RSH",
    "OXSHMEM_GPU",
];

/// The settings of oxshmem, which are to be the same on all hosts.
fn settings(system: &System, facts: &mut Facts) {
    for variable in oxshmem::variables() {
        let by_launcher =
            variable.default.starts_with("set by ") || !variable.name.contains("SHMEM");
        if !by_launcher && !OWN.contains(&variable.name) {
            let value = system
                .variable(variable.name)
                .unwrap_or_else(|| "unset".into());
            facts.insert(variable.name.into(), value);
        }
    }
}

/// The rates of ports (`mlx5_0:1`) and interfaces.
fn rates(system: &System, devices: &[String]) -> BTreeMap<String, f64> {
    let mut rates = BTreeMap::new();
    for device in devices {
        for port in system.names(&format!("sys/class/infiniband/{device}/ports")) {
            if let Some(rate) = rdma::rate(system, device, &port) {
                rates.insert(format!("{device}:{port}"), rate);
            }
        }
    }
    for interface in system.names("sys/class/net") {
        if let Some(rate) = network::rate(system, &interface) {
            rates.insert(interface, rate);
        }
    }
    rates
}
