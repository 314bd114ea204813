//! Topology of the machine, by which devices are chosen, and the devices that were chosen.

use std::path::Path;

use crate::nic_filter::Nics;
use oxshmem_topo::{CpuSet, Nic, Port, PortState, Topology};

use crate::config;
use crate::error::{Error, Result};
use crate::setup::device_select::{Offer, decide, offers};
use crate::world::World;

const VARIABLE: &str = "OXSHMEM_TOPOLOGY";

/// The machine that `OXSHMEM_TOPOLOGY` describes; none if it is not set, so that the running machine counts.
///
/// # Errors
///
/// [`Error::Config`] if the file cannot be read or is no description of a machine.
pub fn described_topology() -> Result<Option<Topology>> {
    let file = config::environment(VARIABLE);
    file.map(|file| read(Path::new(&file))).transpose()
}

/// The NICs of a machine that this process may use: each has a port that is not known to be down and that `OXSHMEM_NIC` does
/// not rule out.
///
/// # Errors
///
/// [`Error::Config`] if `OXSHMEM_NIC` makes no sense.
pub fn usable_nics(topology: &Topology) -> Result<Vec<&Nic>> {
    let ports = usable(topology, &allowed_nics()?);
    let mut usable: Vec<&Nic> = ports.into_iter().map(|(nic, _)| nic).collect();
    usable.dedup_by(|a, b| std::ptr::eq(*a, *b));
    Ok(usable)
}

/// The GPU and the NIC's port that each PE would choose, if PEs with these CPUs ran on a host of this
/// topology: its nearest GPU, if there are GPUs, and the NIC nearest to that or else to its CPUs, both
/// shared out evenly. A PE has no name of a kind of device that the topology lacks.
///
/// # Errors
///
/// [`Error::Config`] if `OXSHMEM_NIC` makes no sense.
pub fn planned_devices(topology: &Topology, cpus: &[CpuSet]) -> Result<Vec<Vec<String>>> {
    let ports = usable(topology, &allowed_nics()?);
    let ports = ports.into_iter().map(|(_, port)| port).collect();
    Ok(plan(topology, ports, cpus))
}

fn plan(topology: &Topology, ports: Vec<String>, cpus: &[CpuSet]) -> Vec<Vec<String>> {
    // A single NIC is not offered: all PEs take it.
    let only = match ports.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    let gpus = topology.gpus.iter().map(|gpu| gpu.name.clone());
    let kinds = [("gpus", gpus.collect()), ("nics", ports)];
    let host = cpus.iter().map(|cpus| offers(Some(topology), cpus, &kinds));
    let host: Vec<Vec<Offer>> = host.collect();
    let decided = decide(&host.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let chosen = host.iter().zip(decided).map(|(offers, decided)| {
        let chosen = offers
            .iter()
            .zip(decided)
            .filter_map(|(offer, decided)| offer.devices.get(decided.device).cloned());
        chosen.chain(only.clone()).collect()
    });
    chosen.collect()
}

/// The NICs that `OXSHMEM_NIC` allows.
fn allowed_nics() -> Result<Nics> {
    let variable = "OXSHMEM_NIC";
    match config::environment(variable) {
        None => Ok(Nics::Any),
        Some(value) => Nics::parse_list(&value).map_err(|why| Error::Config {
            name: variable.into(),
            value,
            why,
        }),
    }
}

/// The ports that may be used, with their names. A NIC without ports counts as one.
fn usable<'t>(topology: &'t Topology, nics: &Nics) -> Vec<(&'t Nic, String)> {
    let (mut owners, mut names) = (Vec::new(), Vec::new());
    for nic in &topology.nics {
        let is_up = |port: &&Port| port.state != Some(PortState::Down);
        let ports = nic.ports.iter().filter(is_up);
        names.extend(ports.map(|port| format!("{}:{}", nic.name, port.number)));
        if nic.ports.is_empty() {
            names.push(nic.name.clone());
        }
        owners.resize(names.len(), nic);
    }
    let allowed = nics.allows(&names);
    let ports = owners.into_iter().zip(names).zip(allowed);
    ports
        .filter(|(_, may)| *may)
        .map(|(port, _)| port)
        .collect()
}

/// The machine that this file of hwloc's XML describes.
pub(crate) fn read(file: &Path) -> Result<Topology> {
    Topology::from_xml_file(file).map_err(|error| Error::Config {
        name: VARIABLE.into(),
        value: file.display().to_string(),
        why: error.to_string(),
    })
}

/// A device on which this PE has opened a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDevice {
    /// The transport.
    pub transport: &'static str,
    /// The device, such as `mlx5_0:1`.
    pub device: String,
    /// The reason of the choice, if there were several.
    pub choice: Option<String>,
}

impl World {
    /// The device of each transport that this PE has opened, whether or not a route takes it.
    #[must_use]
    pub fn devices(&self) -> Vec<OpenDevice> {
        let opened = self.worker.engine.routes.opened.iter();
        opened
            .map(|named| OpenDevice {
                transport: named.name,
                device: named.device.to_string(),
                choice: named.choice.as_deref().map(str::to_owned),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem_topo::fixtures;

    #[test]
    fn nics_that_are_ruled_out_or_down_are_not_usable() {
        let mut host = Topology::from_xml(fixtures::EIGHT_GPUS_EIGHT_NICS).unwrap();
        let port = |number, state| Port {
            number,
            state: Some(state),
            link_layer: None,
            rate: None,
        };
        let (up, down) = (PortState::Active, PortState::Down);
        let ports = [
            vec![port(1, down)],
            vec![port(1, down), port(2, up)],
            vec![],
        ];
        host.nics.truncate(ports.len());
        for (number, (nic, ports)) in host.nics.iter_mut().zip(ports).enumerate() {
            (nic.name, nic.ports) = (format!("mlx5_{number}"), ports);
        }
        let named = |list: Option<&str>| {
            let nics = list.map_or(Nics::Any, |list| Nics::parse_list(list).unwrap());
            let ports = usable(&host, &nics).into_iter().map(|(_, port)| port);
            ports.collect::<Vec<_>>()
        };
        assert_eq!(named(None), ["mlx5_1:2", "mlx5_2"]);
        assert_eq!(named(Some("^mlx5_1")), ["mlx5_2"]);
        assert_eq!(named(Some("^mlx5_1:1")), ["mlx5_1:2", "mlx5_2"]);
        assert_eq!(named(Some("mlx5_1:2,mlx5_0")), ["mlx5_1:2"]);
    }

    #[test]
    fn pes_of_a_described_machine_share_its_devices_out() {
        let planned = |xml: &str, pes: usize| {
            let host = Topology::from_xml(xml).unwrap();
            let sets = vec![host.machine.cpus.clone(); pes];
            let ports = usable(&host, &Nics::Any);
            plan(
                &host,
                ports.into_iter().map(|(_, port)| port).collect(),
                &sets,
            )
        };
        let each = planned(fixtures::EIGHT_GPUS_EIGHT_NICS, 8);
        for kind in [0, 1] {
            let mut names: Vec<&str> = each.iter().map(|pe| &*pe[kind]).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), 8, "{each:?}");
        }
        let all = planned(fixtures::TWO_SOCKETS_ONE_NIC, 3);
        assert!(
            all.iter().all(|pe| pe.len() == 1 && *pe == all[0]),
            "{all:?}"
        );
        let none = planned(fixtures::NO_NICS, 2);
        assert!(
            none.iter()
                .all(|pe| pe.iter().all(|name| name.starts_with("gpu"))),
            "{none:?}"
        );
    }
}
