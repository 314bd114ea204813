//! The selection of the device that each PE opens, of a transport that offers several: the nearest to its GPU, or to
//! its CPUs if it has none, shared out evenly among the PEs of the host that have several as near.
//!
//! Each PE publishes how near its devices are ([`Offer`]); from the offers of all, each
//! computes the same answer for every PE of its host ([`decide`]).

use std::collections::HashMap;

use oxshmem_topo::{CpuSet, Distance, End, Port, PortState, Topology};
use serde::{Deserialize, Serialize};

/// A number that is added to the ranks of devices outside of the network in which all PEs have a device.
pub(crate) const OUTSIDE: u16 = 1 << 15;

/// A PE's devices of one transport, with their distances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub transport: String,
    pub devices: Vec<String>,
    /// Whether they are GPUs.
    pub gpus: bool,
    /// The rank of each device by its distance from the PE's CPUs: the nearest ones have 0, the next 1, and so on; with
    /// [`OUTSIDE`] added to that of a device that is to be chosen last.
    pub near_cpus: Vec<u16>,
    /// The same for each GPU that the PE may get, by name.
    pub near_gpus: Vec<(String, Vec<u16>)>,
}

/// This PE's offers: one for each transport with several devices, and for each whose devices are
/// GPUs. Without a topology all devices are as near as each other.
pub(crate) fn offers(
    topology: Option<&Topology>,
    cpus: &CpuSet,
    transports: &[(&str, Vec<String>)],
) -> Vec<Offer> {
    let is_gpu = |name: &String| topology.is_some_and(|t| t.gpu(name).is_some());
    let are_gpus = |devices: &[String]| !devices.is_empty() && devices.iter().all(is_gpu);
    let gpus: Vec<&String> = transports
        .iter()
        .filter(|(_, devices)| are_gpus(devices))
        .flat_map(|(_, devices)| devices)
        .collect();
    transports
        .iter()
        .filter(|(_, devices)| devices.len() > 1 || are_gpus(devices))
        .map(|(transport, devices)| {
            let from_gpu = |gpu: &&String| {
                let end = topology?.gpu(gpu)?;
                Some(((*gpu).clone(), ranks(topology, end, devices)))
            };
            let offers_gpus = are_gpus(devices);
            let others = gpus.iter().copied().filter(|_| !offers_gpus);
            Offer {
                transport: (*transport).into(),
                devices: devices.clone(),
                gpus: offers_gpus,
                near_cpus: ranks(topology, cpus, devices),
                near_gpus: others.filter_map(|gpu| from_gpu(&gpu)).collect(),
            }
        })
        .collect()
}

/// The distance of a device, if the topology knows it and it is not down: that of its own port, where it names
/// one.
pub(crate) fn distance<'a>(
    topology: &'a Topology,
    from: impl Into<End<'a>>,
    device: &str,
) -> Option<Distance> {
    let is_down = |port: &Port| port.state == Some(PortState::Down);
    let to: End<'a> = if let Some((nic, port)) = topology.port(device) {
        if is_down(port) {
            return None;
        }
        (nic, port).into()
    } else if let Some(nic) = topology.nic(device) {
        if !nic.ports.is_empty() && nic.ports.iter().all(is_down) {
            return None;
        }
        nic.into()
    } else {
        topology.gpu(device)?.into()
    };
    Some(topology.distance(from, to))
}

fn ranks<'a>(
    topology: Option<&'a Topology>,
    from: impl Into<End<'a>>,
    devices: &[String],
) -> Vec<u16> {
    let from = from.into();
    // Unknown ones and those that are down come last: true is more than false.
    let distance_of = |device: &String| {
        let known = topology.and_then(|topology| distance(topology, from, device));
        (known.is_none(), known)
    };
    let distances: Vec<_> = devices.iter().map(distance_of).collect();
    let mut distinct = distances.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let rank = |distance| {
        let rank = distinct.binary_search(distance);
        rank.unwrap_or(distinct.len())
    };
    distances
        .iter()
        .map(|distance| u16::try_from(rank(distance)).unwrap_or(u16::MAX))
        .collect()
}

/// The end from which distances are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Cpus,
    Gpu(String),
}

/// One PE's device of one transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Its index among the offer's devices.
    pub device: usize,
    pub near: Anchor,
    /// How many PEs of the host have it.
    pub sharing: usize,
}

impl Offer {
    /// The ranks of the devices by their distance from an end.
    fn ranks(&self, near: &Anchor) -> &[u16] {
        let row = match near {
            Anchor::Cpus => None,
            Anchor::Gpu(gpu) => self.near_gpus.iter().find(|(name, _)| name == gpu),
        };
        row.map_or(&self.near_cpus, |(_, ranks)| ranks)
    }

    /// The devices beside the one `decided`, nearest first, each with whether it is at least as near as that one, in any
    /// network, and none of `taken`, those of the host's PEs.
    pub(crate) fn beside(&self, decided: &Decided, taken: &[&str]) -> Vec<(usize, bool)> {
        let ranks = self.ranks(&decided.near);
        let rank = |device: usize| ranks.get(device).copied().unwrap_or(u16::MAX);
        let mut others: Vec<usize> = (0..self.devices.len())
            .filter(|device| *device != decided.device)
            .collect();
        others.sort_by_key(|device| rank(*device));
        let is_taken = |device: usize| {
            let name = self.devices.get(device);
            name.is_none_or(|name| taken.contains(&name.as_str()))
        };
        let distance = |device: usize| rank(device) & !OUTSIDE;
        let is_spare = |device| distance(device) <= distance(decided.device) && !is_taken(device);
        let with_spare = |device| (device, is_spare(device));
        others.into_iter().map(with_spare).collect()
    }
}

/// For each PE of one host, by local rank, the device of each of its offers.
pub(crate) fn decide(host: &[&[Offer]]) -> Vec<Vec<Decided>> {
    let nothing = Decided {
        device: 0,
        near: Anchor::Cpus,
        sharing: 0,
    };
    let mut all: Vec<Vec<Decided>> = host
        .iter()
        .map(|offers| vec![nothing.clone(); offers.len()])
        .collect();
    // GPUs first: other devices may be chosen near them.
    for gpus in [true, false] {
        let mut transports: Vec<&str> = Vec::new();
        for offer in host.iter().flat_map(|offers| offers.iter()) {
            if offer.gpus == gpus && !transports.contains(&offer.transport.as_str()) {
                transports.push(&offer.transport);
            }
        }
        for transport in transports {
            let mut places = Vec::new();
            let mut near = Vec::new();
            for (pe, offers) in host.iter().enumerate() {
                let wanted = |o: &Offer| o.gpus == gpus && o.transport == transport;
                let Some(at) = offers.iter().position(wanted) else {
                    continue;
                };
                let (anchor, nearest) = nearest(offers, at, all.get(pe));
                places.push((pe, at, anchor));
                near.push(nearest);
            }
            for ((pe, at, anchor), (device, sharing)) in places.into_iter().zip(share_out(&near)) {
                if let Some(decided) = all.get_mut(pe).and_then(|all| all.get_mut(at)) {
                    *decided = Decided {
                        device,
                        near: anchor,
                        sharing,
                    };
                }
            }
        }
    }
    all
}

/// The nearest devices of one of a PE's offers, and the end that they are near to.
fn nearest<'a>(
    offers: &'a [Offer],
    at: usize,
    decided: Option<&Vec<Decided>>,
) -> (Anchor, Vec<(usize, &'a str)>) {
    let Some(offer) = offers.get(at) else {
        return (Anchor::Cpus, Vec::new());
    };
    let gpu = decided.and_then(|decided| {
        let gpus = offers.iter().zip(decided).find(|(o, _)| o.gpus);
        let (gpus, decided) = gpus.filter(|_| !offer.gpus)?;
        gpus.devices.get(decided.device)
    });
    let row = gpu.and_then(|gpu| offer.near_gpus.iter().find(|(name, _)| name == gpu));
    let (anchor, ranks) = match row {
        Some((gpu, ranks)) => (Anchor::Gpu(gpu.clone()), ranks),
        None => (Anchor::Cpus, &offer.near_cpus),
    };
    let least = ranks.iter().min();
    let devices = offer.devices.iter().map(String::as_str).enumerate();
    let nearest = devices.zip(ranks).filter(|(_, rank)| Some(*rank) == least);
    (anchor, nearest.map(|(device, _)| device).collect())
}

/// Gives each PE one of the devices (index, name) that it may have, such that none has many more PEs
/// than another: those with the smallest choice are served first, each by the device with the
/// fewest PEs so far. Gives the index, and how many PEs have the device in the end.
fn share_out(may_have: &[Vec<(usize, &str)>]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..may_have.len()).collect();
    order.sort_by_key(|&pe| may_have.get(pe).map_or(0, Vec::len));
    let mut load: HashMap<&str, usize> = HashMap::new();
    let mut given: Vec<Option<(usize, &str)>> = vec![None; may_have.len()];
    for pe in order {
        let devices = may_have.get(pe).into_iter().flatten();
        let least = devices.min_by_key(|(_, name)| load.get(name).copied().unwrap_or(0));
        if let (Some(&(index, name)), Some(given)) = (least, given.get_mut(pe)) {
            *given = Some((index, name));
            *load.entry(name).or_default() += 1;
        }
    }
    let count = |name: &str| load.get(name).copied().unwrap_or(0);
    given
        .into_iter()
        .map(|given| given.map_or((0, 0), |(index, name)| (index, count(name))))
        .collect()
}

#[cfg(test)]
mod tests;
