//! The host, and the part of it that this process may use.

use std::fmt;

use oxshmem_topo::{Source, usable_cpus};
use serde::Serialize;

#[derive(Serialize)]
pub struct Machine {
    hostname: String,
    boot_id: Option<String>,
    /// The source of the description.
    source: String,
    packages: usize,
    /// The CPUs of each core.
    cores: Vec<Core>,
    cpus: String,
    usable: Option<Usable>,
    caches: Vec<Cache>,
    numa_nodes: Vec<Node>,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
struct Core {
    package: usize,
    cpus: String,
}

#[derive(Serialize)]
struct Cache {
    level: usize,
    bytes: u64,
    cpus: String,
}

#[derive(Serialize)]
struct Node {
    index: usize,
    cpus: String,
    memory_bytes: u64,
    huge_pages: Vec<HugePages>,
}

#[derive(Serialize)]
struct HugePages {
    bytes: u64,
    total: u64,
    free: u64,
}

#[derive(Serialize)]
struct Usable {
    cpus: String,
    /// CPU time per elapsed time, where a control group limits it.
    quota: Option<f64>,
    /// The number of PEs that can be busy at once.
    count: usize,
}

pub fn see() -> Result<Machine, oxshmem_topo::Error> {
    let machine = oxshmem_topo::Machine::discover()?;
    let usable = usable_cpus().ok().map(|usable| Usable {
        cpus: usable.allowed.to_string(),
        quota: usable.quota,
        count: usable.count(),
    });
    Ok(Machine {
        text: machine.to_string(),
        source: match &machine.source {
            Source::Hwloc => "hwloc".into(),
            other => other.to_string(),
        },
        packages: machine.packages,
        cores: machine
            .cores
            .iter()
            .map(|core| Core {
                package: core.package,
                cpus: core.cpus.to_string(),
            })
            .collect(),
        cpus: machine.cpus.to_string(),
        usable,
        caches: machine
            .caches
            .iter()
            .map(|cache| Cache {
                level: cache.level,
                bytes: cache.bytes,
                cpus: cache.cpus.to_string(),
            })
            .collect(),
        numa_nodes: machine
            .numa_nodes
            .iter()
            .map(|node| Node {
                index: node.index,
                cpus: node.cpus.to_string(),
                memory_bytes: node.memory,
                huge_pages: node
                    .hugepages
                    .iter()
                    .map(|pool| HugePages {
                        bytes: pool.size,
                        total: pool.total,
                        free: pool.free,
                    })
                    .collect(),
            })
            .collect(),
        hostname: machine.hostname,
        boot_id: machine.boot_id,
    })
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(usable) = &self.usable {
            write!(f, "this process may use CPUs {}", usable.cpus)?;
            if let Some(quota) = usable.quota {
                write!(f, ", {quota:.1} of them at a time (control group)")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
