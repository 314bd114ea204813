//! The selection of a network for each transport: one in which every PE has a device.
//!
//! A PE opens one device of a transport, and NICs of different networks do not reach each other. So each PE publishes the
//! networks of its devices ([`NetworkCard`]). From all PEs' cards each PE computes the same order of the networks
//! ([`rank`]), and takes a device in the first. The nearest of those is taken (`device_select`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use oxshmem_transport::Device;
use serde::{Deserialize, Serialize};

use crate::setup::device_select::{OUTSIDE, Offer};

/// One PE's devices of one transport, by network. A device that the PE cannot get is in no network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NetworkCard {
    pub transport: String,
    pub devices: Vec<String>,
    /// By device, its bandwidth in Mb/s.
    pub megabits: Vec<u32>,
    pub networks: Vec<Members>,
}

/// The devices of one PE in one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Members {
    pub name: String,
    pub uncertain: bool,
    /// Indices among the card's devices.
    pub devices: Vec<u16>,
}

/// A network in which PEs have devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankedNetwork {
    pub name: String,
    pub uncertain: bool,
    /// The number of PEs with a device in it.
    pub pes: usize,
    /// The bandwidth in Mb/s of the host that has least of it.
    pub megabits: u64,
    /// The place of its first device among its PE's, at the PE where that comes last.
    pub first: u16,
}

/// The networks of one transport's devices, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankedNetworks {
    pub all: Vec<RankedNetwork>,
    /// The number of PEs that have a device of the transport.
    pub pes: usize,
}

impl NetworkCard {
    /// The card of these devices. Those that `may_get` refuses are in no network. None if the transport names no networks.
    pub(crate) fn new(transport: &str, devices: &[Device], may_get: &[bool]) -> Option<Self> {
        let mut networks: Vec<Members> = Vec::new();
        for ((index, device), _) in (0..)
            .zip(devices)
            .zip(may_get)
            .filter(|(_, may_get)| **may_get)
        {
            for network in &device.networks {
                match networks.iter_mut().find(|known| known.name == network.name) {
                    Some(known) => {
                        known.uncertain |= network.uncertain;
                        known.devices.push(index);
                    }
                    None => networks.push(Members {
                        name: network.name.clone(),
                        uncertain: network.uncertain,
                        devices: vec![index],
                    }),
                }
            }
        }
        (!networks.is_empty()).then(|| NetworkCard {
            transport: transport.to_owned(),
            devices: devices.iter().map(|device| device.name.clone()).collect(),
            megabits: devices.iter().map(|device| device.megabits).collect(),
            networks,
        })
    }

    /// Whether a device is in a network.
    fn is_in(&self, network: &str, device: &str) -> bool {
        let members = self.networks.iter().find(|known| known.name == network);
        members.is_some_and(|members| self.names(members).any(|(name, _)| name == device))
    }

    /// Whether two PEs' devices have a network in common.
    pub(crate) fn share(&self, device: &str, other: &NetworkCard, theirs: &str) -> bool {
        let mut all = self.networks.iter();
        all.any(|known| self.is_in(&known.name, device) && other.is_in(&known.name, theirs))
    }

    /// The names and bandwidths of a network's devices.
    fn names(&self, members: &Members) -> impl Iterator<Item = (&str, u32)> {
        members.devices.iter().filter_map(|&index| {
            let name = self.devices.get(usize::from(index))?;
            let megabits = self.megabits.get(usize::from(index)).copied();
            Some((name.as_str(), megabits.unwrap_or(0)))
        })
    }

    /// The networks of one device, in words.
    pub(crate) fn networks_of(&self, device: &str) -> String {
        let all = self.networks.iter();
        let all = all.filter(|network| self.names(network).any(|(name, _)| name == device));
        let all: Vec<&str> = all.map(|network| network.name.as_str()).collect();
        all.join(", ")
    }

    /// All devices with their networks, in words.
    pub(crate) fn describe(&self) -> String {
        let one = |device: &String| format!("{device} ({})", self.networks_of(device));
        let all: Vec<String> = self.devices.iter().map(one).collect();
        all.join(", ")
    }
}

/// A network's devices on one host.
#[derive(Default)]
struct OnHost<'a> {
    uncertain: bool,
    /// With their bandwidths.
    devices: BTreeMap<&'a str, u32>,
    /// The number of PEs that have one.
    pes: usize,
    /// As in [`RankedNetwork`].
    first: u16,
}

/// The networks of one host, from the cards of its PEs.
fn by_network<'a>(host: &[&'a NetworkCard]) -> BTreeMap<&'a str, OnHost<'a>> {
    let mut found: BTreeMap<&str, OnHost<'_>> = BTreeMap::new();
    for card in host {
        let mut counted: HashSet<&str> = HashSet::new();
        for members in &card.networks {
            let Some(first) = members.devices.iter().min() else {
                continue;
            };
            let local = found.entry(&members.name).or_default();
            local.first = local.first.max(*first);
            local.uncertain |= members.uncertain;
            local.devices.extend(card.names(members));
            local.pes += usize::from(counted.insert(&members.name));
        }
    }
    found
}

/// The networks, best first, from the cards of the PEs of each host. Better is in this order: a network in which every PE
/// has a device, and these reach each other for certain; one in which every PE has a device; one in which more PEs have
/// one; more bandwidth at the host that has least; devices that come first; the name that sorts first. PEs without a card have no such device, and
/// do not count.
pub(crate) fn rank(hosts: &[Vec<&NetworkCard>]) -> RankedNetworks {
    let mut found: HashMap<&str, RankedNetwork> = HashMap::new();
    for host in hosts {
        for (name, local) in by_network(host) {
            let megabits = local.devices.values().map(|&rate| u64::from(rate)).sum();
            let network = found.entry(name).or_insert_with(|| RankedNetwork {
                name: name.to_owned(),
                uncertain: false,
                pes: 0,
                megabits: u64::MAX,
                first: 0,
            });
            network.uncertain |= local.uncertain;
            network.pes += local.pes;
            network.megabits = network.megabits.min(megabits);
            network.first = network.first.max(local.first);
        }
    }
    let total = hosts.iter().map(Vec::len).sum();
    let mut all: Vec<RankedNetwork> = found.into_values().collect();
    all.sort_by(|one, other| {
        let goodness = |network: &RankedNetwork| {
            let everyone = network.pes == total;
            let certain = !network.uncertain;
            (everyone && certain, everyone, network.pes, certain)
        };
        let by_goodness = goodness(other).cmp(&goodness(one));
        let by_bandwidth = || other.megabits.cmp(&one.megabits);
        by_goodness
            .then_with(by_bandwidth)
            .then_with(|| one.first.cmp(&other.first))
            .then_with(|| one.name.cmp(&other.name))
    });
    RankedNetworks { all, pes: total }
}

impl RankedNetworks {
    /// The network in which devices are chosen.
    pub(crate) fn chosen(&self) -> Option<&RankedNetwork> {
        self.all.first()
    }

    /// By device of this PE, whether it is in the chosen network. All, if there is no such network or none is in it.
    pub(crate) fn members(&self, card: Option<&NetworkCard>, devices: &[String]) -> Vec<bool> {
        let is_in = |device: &String| {
            let network = self.chosen().zip(card);
            network.is_some_and(|(network, card)| card.is_in(&network.name, device))
        };
        let members: Vec<bool> = devices.iter().map(is_in).collect();
        if members.contains(&true) {
            members
        } else {
            vec![true; devices.len()]
        }
    }

    /// Makes a PE's devices outside the chosen network further than those inside it.
    pub(crate) fn narrow(&self, offer: &mut Offer, card: Option<&NetworkCard>) {
        let members = self.members(card, &offer.devices);
        let gpus = offer.near_gpus.iter_mut().map(|(_, ranks)| ranks);
        for ranks in gpus.chain([&mut offer.near_cpus]) {
            for (rank, _) in ranks.iter_mut().zip(&members).filter(|(_, is_in)| !**is_in) {
                *rank |= OUTSIDE;
            }
        }
    }

    /// The choice and the other networks in words, for `oxshmem info --explain`. Empty if there is one network, for certain.
    pub(crate) fn explain(&self) -> String {
        let Some((chosen, others)) = self.all.split_first() else {
            return String::new();
        };
        // A guess that promises nothing more is not worth a word.
        let worth = |other: &&RankedNetwork| {
            chosen.uncertain || !other.uncertain || other.megabits > chosen.megabits
        };
        let others: Vec<&RankedNetwork> = others.iter().filter(worth).collect();
        let mut text = match (self.standing(chosen), others.as_slice()) {
            (Standing::Certain, []) => return String::new(),
            (Standing::Certain, _) => format!("in {}, in which every PE has a device", chosen.name),
            (Standing::Uncertain, _) => format!(
                "in {}, in which every PE has a device, though it is uncertain that these reach each other",
                chosen.name
            ),
            (Standing::Partial, _) => format!(
                "in {}, in which {} of {} PEs have a device; none has all",
                chosen.name, chosen.pes, self.pes
            ),
        };
        // Formatting to a String does not fail.
        let _ = write!(text, " ({})", bandwidth(chosen.megabits));
        if let Some(more) = others.get(..others.len().min(MOST_NAMED)) {
            let named: Vec<String> = more.iter().map(|other| self.refusal(other)).collect();
            if !named.is_empty() {
                let _ = write!(text, "; not in {}", named.join(", "));
            }
        }
        if let Some(unnamed @ 1..) = others.len().checked_sub(MOST_NAMED) {
            let _ = write!(text, " and {unnamed} more");
        }
        text
    }

    /// A warning, if PEs may be unable to reach each other by this transport, or if a network that may join all has more
    /// bandwidth than the one chosen. `setting` is the transport's for uncertain networks, if it has one.
    pub(crate) fn warning(&self, transport: &str, setting: Option<&str>) -> Option<String> {
        let chosen = self.chosen()?;
        let mend = "oxshmem info --explain lists them; give all hosts devices of one network, or choose such by OXSHMEM_NIC";
        match self.standing(chosen) {
            Standing::Certain => {
                let more = self.all.iter().find(|other| {
                    matches!(self.standing(other), Standing::Uncertain)
                        && other.megabits > chosen.megabits
                })?;
                let mend = match setting {
                    Some(setting) => {
                        format!("say so ({setting}=on); if not, =off ends this message")
                    }
                    None => "choose them by OXSHMEM_NIC".to_owned(),
                };
                Some(format!(
                    "{transport}: devices are chosen in {} ({}); {} has {}. If its devices do reach each other, {mend}",
                    chosen.name,
                    bandwidth(chosen.megabits),
                    more.name,
                    bandwidth(more.megabits)
                ))
            }
            Standing::Uncertain if self.all.len() == 1 => None,
            Standing::Uncertain => Some(format!(
                "{transport}: no network is sure to join the devices of all PEs; they are chosen in {}. {mend}",
                chosen.name
            )),
            Standing::Partial => Some(format!(
                "{transport}: no network has a device of every PE; {} has those of {} of {}. {mend}",
                chosen.name, chosen.pes, self.pes
            )),
        }
    }

    fn standing(&self, network: &RankedNetwork) -> Standing {
        match (network.pes == self.pes, network.uncertain) {
            (false, _) => Standing::Partial,
            (true, true) => Standing::Uncertain,
            (true, false) => Standing::Certain,
        }
    }

    /// Another network, and the reason against it.
    fn refusal(&self, other: &RankedNetwork) -> String {
        let RankedNetwork { name, megabits, .. } = other;
        let why = match self.standing(other) {
            Standing::Partial => format!("{} of {} PEs", other.pes, self.pes),
            Standing::Uncertain => format!("{}, uncertain", bandwidth(*megabits)),
            Standing::Certain => bandwidth(*megabits),
        };
        format!("{name} ({why})")
    }
}

/// Networks that an explanation names beside the chosen one.
const MOST_NAMED: usize = 8;

/// The trust in a network.
enum Standing {
    /// Every PE has a device in it.
    Certain,
    /// Every PE has one, and these may be unable to reach each other.
    Uncertain,
    /// Some PEs have none.
    Partial,
}

fn bandwidth(megabits: u64) -> String {
    format!("{} Gb/s a host", megabits as f64 / 1000.0)
}

#[cfg(test)]
mod tests;
