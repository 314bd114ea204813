//! The binding of a job's PEs to CPUs.

use std::fmt;
use std::str::FromStr;

use oxshmem_topo::{CpuSet, End, ParsePolicyError, Policy, Topology, usable_cpus};

/// A `--bind` policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// Cores or NUMA nodes in turn.
    Even(Policy),
    /// The NUMA node nearest to the PE's GPU.
    Gpu,
    /// The NUMA node nearest to the PE's NIC.
    Nic,
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "gpu" => Ok(Bind::Gpu),
            "nic" => Ok(Bind::Nic),
            word => {
                let even = word.parse().map(Bind::Even);
                even.map_err(|error: ParsePolicyError| format!("{error}, gpu, nic"))
            }
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::Even(policy) => policy.fmt(f),
            Bind::Gpu => f.pad("gpu"),
            Bind::Nic => f.pad("nic"),
        }
    }
}

/// The CPUs of each of `pes` PEs, by local rank; empty if they are not bound.
pub fn cpu_sets(pes: usize, bind: Bind) -> anyhow::Result<Vec<Vec<usize>>> {
    match bind {
        Bind::Even(policy) => Ok(oxshmem_topo::binding(pes, policy)?),
        Bind::Gpu | Bind::Nic => {
            let topology = match oxshmem::described_topology()? {
                Some(described) => described,
                None => Topology::discover()?,
            };
            let devices = devices(&topology, bind)?;
            near(&topology, bind, &devices, pes, &usable_cpus()?.allowed)
        }
    }
}

/// The devices that PEs take in turn.
fn devices(topology: &Topology, bind: Bind) -> oxshmem::Result<Vec<End<'_>>> {
    Ok(match bind {
        Bind::Gpu => topology.gpus.iter().map(End::from).collect(),
        _ => {
            let nics = oxshmem::usable_nics(topology)?;
            nics.into_iter().map(End::from).collect()
        }
    })
}

/// Gives PEs the devices in turn, and the allowed CPUs of the NUMA node nearest to each device.
fn near(
    topology: &Topology,
    bind: Bind,
    devices: &[End<'_>],
    pes: usize,
    allowed: &CpuSet,
) -> anyhow::Result<Vec<Vec<usize>>> {
    anyhow::ensure!(
        !devices.is_empty(),
        "--bind {bind}: this host has no such device that is known to work; \
         choose none, core or numa"
    );
    let sets = devices.iter().map(|&device| {
        let nodes = topology.machine.numa_nodes.iter();
        let usable = nodes.filter(|node| !node.cpus.intersection(allowed).is_empty());
        let nearest = usable.min_by_key(|node| topology.distance(device, *node));
        let cpus = nearest.map(|node| node.cpus.intersection(allowed));
        // Without a known node a device is equally near to all CPUs.
        cpus.unwrap_or_else(|| allowed.clone()).to_vec()
    });
    let sets: Vec<_> = sets.collect();
    Ok(sets.iter().cloned().cycle().take(pes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem_topo::fixtures;

    fn near(
        host: &Topology,
        bind: Bind,
        pes: usize,
        allowed: &CpuSet,
    ) -> anyhow::Result<Vec<Vec<usize>>> {
        super::near(host, bind, &devices(host, bind)?, pes, allowed)
    }

    #[test]
    fn pes_are_bound_to_the_node_of_their_devices_in_turn() {
        for (name, xml) in fixtures::ALL {
            let host = Topology::from_xml(xml).unwrap();
            let all = &host.machine.cpus;
            let places = [
                (
                    Bind::Gpu,
                    host.gpus.iter().map(|gpu| &gpu.place).collect::<Vec<_>>(),
                ),
                (Bind::Nic, host.nics.iter().map(|nic| &nic.place).collect()),
            ];
            for (bind, places) in places {
                let pes = 2 * places.len() + 1;
                let Ok(sets) = near(&host, bind, pes, all) else {
                    assert!(places.is_empty(), "{name}");
                    continue;
                };
                assert_eq!(sets.len(), pes);
                for (set, place) in sets.iter().zip(places.iter().cycle()) {
                    let node = host.numa_node(place.node.unwrap()).unwrap();
                    assert_eq!(*set, node.cpus.to_vec(), "{name} {bind}");
                }
            }
        }
    }

    #[test]
    fn only_allowed_cpus_are_bound_to() {
        let host = Topology::from_xml(fixtures::DGX_LIKE).unwrap();
        let last: CpuSet = host.machine.cpus.iter().last().into_iter().collect();
        for set in near(&host, Bind::Gpu, 4, &last).unwrap() {
            assert_eq!(set, last.to_vec());
        }
    }

    #[test]
    fn a_host_without_the_device_says_what_to_choose() {
        let host = Topology::from_xml(fixtures::NO_NICS).unwrap();
        let error = near(&host, Bind::Nic, 4, &host.machine.cpus).unwrap_err();
        assert!(error.to_string().contains("choose none, core or numa"));
    }
}
