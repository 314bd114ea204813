//! The transports' devices: probing, the choice among several, and opening.
//!
//! A transport with one usable device is opened at once. One with several is opened when all PEs of the host have shown
//! their devices, so that they share them evenly.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::nic_filter::Nics;
use oxshmem_bootstrap::{Bootstrap, HexBytes, exchange};
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::report;
use oxshmem_engine::route::table::CandidateReasons;
use oxshmem_topo::{CpuSet, Topology};
use oxshmem_transport::{Device, Further, Job, Transport};

use crate::error::{Error, Result};
use crate::setup::card::{BusinessCard, RailCard};
use crate::setup::device_select::{Anchor, Decided, Offer, decide, distance, offers};
use crate::setup::hosts::Hosts;
use crate::setup::network_select::{NetworkCard, RankedNetworks, rank};
use crate::setup::wireup::Unavailable;
use crate::topology;

/// Every transport that may be used, probed, and opened where there is no choice.
pub(super) struct Probe {
    slots: Vec<Slot>,
    nics: Nics,
    /// Known only if there is a device to choose, or the user describes the machine.
    topology: Option<Topology>,
    /// The reason why the topology is not known although it was asked for.
    unknown: Option<String>,
    cpus: CpuSet,
}

struct Slot {
    transport: Arc<dyn Transport>,
    state: SlotState,
}

enum SlotState {
    Open(Box<Rail>, CandidateReasons, Device),
    /// Devices that may be chosen, and the names of those that the user rules out.
    Several(Vec<Device>, Vec<String>),
    Unavailable(String),
}

/// The opened transports.
pub(super) struct OpenedRails {
    pub opened: Vec<Rail>,
    /// By the same index, its device and the reason of the choice.
    pub named: Vec<CandidateReasons>,
    pub unavailable: Vec<Unavailable>,
}

impl Probe {
    /// Asks every transport for its devices, and opens those transports that leave no choice.
    pub(super) fn new(
        transports: &[Arc<dyn Transport>],
        job: &Job,
        nics: &Nics,
        described: Option<&Path>,
    ) -> Result<Self> {
        let probed: Vec<_> = transports.iter().map(|t| (t, t.probe())).collect();
        let known: Vec<(&str, Vec<String>)> = probed
            .iter()
            .filter_map(|(t, devices)| Some((t.name(), names(devices.as_ref().ok()?))))
            .collect();
        nics.check(&known).map_err(|why| setting(nics, why))?;
        let slots: Vec<Slot> = probed
            .into_iter()
            .map(|(transport, devices)| Slot {
                transport: Arc::clone(transport),
                state: match devices {
                    Ok(devices) => SlotState::of(transport, devices, nics, job),
                    Err(error) => SlotState::Unavailable(error.to_string()),
                },
            })
            .collect();
        let has_choice = slots
            .iter()
            .any(|s| matches!(s.state, SlotState::Several(..)));
        let (topology, unknown) = match described {
            Some(file) => (Some(topology::read(file)?), None),
            None if has_choice => match Topology::discover() {
                Ok(topology) => (Some(topology), None),
                Err(error) => (None, Some(error.to_string())),
            },
            None => (None, None),
        };
        let cpus = oxshmem_topo::usable_cpus().map(|usable| usable.allowed);
        Ok(Probe {
            slots,
            nics: nics.clone(),
            topology,
            unknown,
            cpus: cpus.unwrap_or_default(),
        })
    }

    /// The cards of the transports that are open.
    pub(super) fn opened(&self) -> Vec<RailCard> {
        self.slots.iter().filter_map(Slot::card).collect()
    }

    /// The transports that could not be opened, with the reasons.
    pub(super) fn unavailable(&self) -> Vec<(String, String)> {
        let why = |slot: &Slot| match &slot.state {
            SlotState::Unavailable(why) => Some((slot.transport.name().to_owned(), why.clone())),
            _ => None,
        };
        self.slots.iter().filter_map(why).collect()
    }

    /// This PE's devices for the choice that it shares with the others of its host; none if it has no choice.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let several = |slot: &Slot| matches!(slot.state, SlotState::Several(..));
        if !self.slots.iter().any(several) {
            return Vec::new();
        }
        let devices: Vec<(&str, Vec<String>)> = self
            .slots
            .iter()
            .filter_map(|slot| match &slot.state {
                SlotState::Open(_, named, _) => {
                    Some((slot.transport.name(), vec![named.device.to_string()]))
                }
                SlotState::Several(devices, _) => Some((slot.transport.name(), names(devices))),
                SlotState::Unavailable(_) => None,
            })
            .collect();
        offers(self.topology.as_ref(), &self.cpus, &devices)
    }

    /// The networks of the devices that this PE may open.
    pub(super) fn networks(&self) -> Vec<NetworkCard> {
        let card = |slot: &Slot| {
            let devices = match &slot.state {
                SlotState::Open(_, _, device) => std::slice::from_ref(device),
                SlotState::Several(devices, _) => devices,
                SlotState::Unavailable(_) => &[],
            };
            let may_get = self.nics.may_get(&names(devices));
            NetworkCard::new(slot.transport.name(), devices, &may_get)
        };
        self.slots.iter().filter_map(card).collect()
    }

    /// Opens the rest: chooses among several devices, and adds the transports to the cards. Collective if any PE has a
    /// choice, which the cards say.
    pub(super) fn open(
        mut self,
        bootstrap: &dyn Bootstrap,
        job: &Job,
        cards: &mut [BusinessCard],
        hosts: &Hosts,
    ) -> Result<OpenedRails> {
        self.check_map(hosts.with(job.me.index()).len())?;
        if cards.iter().any(|card| !card.offers.is_empty()) {
            let chosen = self.choose(job, cards, hosts)?;
            let all: Vec<Vec<RailCard>> = exchange(bootstrap, &chosen)?;
            for (card, chosen) in cards.iter_mut().zip(all) {
                card.transports.extend(chosen);
            }
        }
        let mut rails = OpenedRails {
            opened: Vec::new(),
            named: Vec::new(),
            unavailable: Vec::new(),
        };
        for slot in self.slots {
            let why = match slot.state {
                SlotState::Open(opened, named, _) => {
                    rails.opened.push(*opened);
                    rails.named.push(named);
                    continue;
                }
                SlotState::Unavailable(why) => why,
                SlotState::Several(..) => "no device was chosen".into(),
            };
            rails.unavailable.push(Unavailable {
                before: rails.opened.len(),
                name: slot.transport.name(),
                why,
            });
        }
        Ok(rails)
    }

    /// Refuses a map of NICs (`OXSHMEM_NIC_MAP`) without a place for each of the host's PEs, even if a transport has one
    /// device. All PEs of the host come to the same result.
    fn check_map(&self, pes: usize) -> Result<()> {
        for slot in &self.slots {
            let devices = match &slot.state {
                SlotState::Open(_, named, _) => vec![named.device.to_string()],
                SlotState::Several(devices, _) => names(devices),
                SlotState::Unavailable(_) => continue,
            };
            for rank in 0..pes {
                let mapped = self.nics.mapped(&devices, rank, pes);
                mapped.map_err(|why| setting(&self.nics, why))?;
            }
        }
        Ok(())
    }

    /// Chooses a device for each transport that has several, and opens it. Gives the cards of those that were opened.
    fn choose(
        &mut self,
        job: &Job,
        cards: &[BusinessCard],
        hosts: &Hosts,
    ) -> Result<Vec<RailCard>> {
        let me = job.me.index();
        let host = hosts.with(me);
        let local_rank = host.binary_search(&me).unwrap_or(0);
        let job = &Job {
            host_rank: local_rank as u32,
            ..job.clone()
        };
        let networks = Networks::of(cards, hosts);
        let local = host.iter().filter_map(|&pe| cards.get(pe));
        let local: Vec<Vec<Offer>> = local.map(|card| networks.narrow(card)).collect();
        let mut all = decide(&local.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let taken = taken(&local, &all);
        let decided = if local_rank < all.len() {
            all.swap_remove(local_rank)
        } else {
            Vec::new()
        };
        let mine = cards.get(me).map_or(&[][..], |card| &card.offers);
        let mut opened = Vec::new();
        for slot in &mut self.slots {
            let SlotState::Several(devices, ruled_out) = &slot.state else {
                continue;
            };
            let named = names(devices);
            let name = slot.transport.name();
            let by_map = self
                .nics
                .mapped(&named, local_rank, host.len())
                .map_err(|why| setting(&self.nics, why))?;
            let shared = mine.iter().zip(&decided).find(|(o, _)| o.transport == name);
            let card = cards.get(me).and_then(|card| card.networks(name));
            let (members, network) = networks.choice(name, card, &named);
            let (index, mut why) = match (by_map, shared) {
                (Some(index), _) => (index, "OXSHMEM_NIC_MAP says so".to_owned()),
                (None, Some((_, decided))) => {
                    let topology = (self.topology.as_ref(), self.unknown.as_deref());
                    let among = (&*named, &*members);
                    let why = reason(topology, &self.cpus, among, decided, ruled_out);
                    (decided.device, why)
                }
                (None, None) => (0, "the first".into()),
            };
            if by_map.is_none() && !network.is_empty() {
                why = format!("{why}; {network}");
            }
            let others = (0..devices.len()).filter(|&other| {
                by_map.is_none() && other != index && members.get(other) == Some(&true)
            });
            let order: Vec<&Device> = std::iter::once(index)
                .chain(others)
                .filter_map(|index| devices.get(index))
                .collect();
            let shared = local.get(local_rank).into_iter().flatten().zip(&decided);
            let beside = shared
                .filter(|(offer, _)| offer.transport == name)
                .flat_map(|(offer, decided)| {
                    let taken = taken.get(name).map_or(&[][..], Vec::as_slice);
                    offer.beside(decided, taken)
                });
            let beside: Vec<Further<'_>> = beside
                .filter_map(|(device, is_spare)| {
                    Some(Further {
                        device: devices.get(device)?,
                        is_spare: is_spare && by_map.is_none(),
                    })
                })
                .collect();
            slot.state = SlotState::open_first(&slot.transport, (&order, &beside), job, why);
            opened.extend(slot.card());
        }
        if me == 0 && hosts.count() > 1 {
            networks
                .warnings(&self.slots)
                .for_each(|warning| report::warn(&warning));
        }
        Ok(opened)
    }
}

/// By transport, the devices that the PEs of one host have.
fn taken<'a>(local: &'a [Vec<Offer>], decided: &[Vec<Decided>]) -> HashMap<&'a str, Vec<&'a str>> {
    let mut taken: HashMap<&str, Vec<&str>> = HashMap::new();
    for (offers, decided) in local.iter().zip(decided) {
        for (offer, decided) in offers.iter().zip(decided) {
            let devices = taken.entry(&offer.transport).or_default();
            devices.extend(offer.devices.get(decided.device).map(String::as_str));
        }
    }
    taken
}

/// The ranked networks of each transport that names networks and leaves some PE a choice.
struct Networks(Vec<(String, RankedNetworks)>);

impl Networks {
    fn of(cards: &[BusinessCard], hosts: &Hosts) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for offer in cards.iter().flat_map(|card| &card.offers) {
            if !names.contains(&&*offer.transport) {
                names.push(&offer.transport);
            }
        }
        let ranked = |name: &str| {
            let of_host = hosts.cards(cards).map(|host| {
                let networks = host.into_iter().filter_map(|card| card.networks(name));
                networks.collect()
            });
            rank(&of_host.collect::<Vec<_>>())
        };
        let all = names
            .into_iter()
            .map(|name| (name.to_owned(), ranked(name)));
        Networks(all.collect())
    }

    fn of_transport(&self, name: &str) -> Option<&RankedNetworks> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, ranked)| ranked)
    }

    /// A PE's offers, with the devices outside the chosen networks further than those inside.
    fn narrow(&self, card: &BusinessCard) -> Vec<Offer> {
        let mut offers = card.offers.clone();
        for offer in &mut offers {
            if let Some(ranked) = self.of_transport(&offer.transport) {
                let networks = card.networks(&offer.transport);
                ranked.narrow(offer, networks);
            }
        }
        offers
    }

    /// By device of this PE, whether it is in the chosen network; and the choice in words.
    fn choice(
        &self,
        transport: &str,
        card: Option<&NetworkCard>,
        devices: &[String],
    ) -> (Vec<bool>, String) {
        match self.of_transport(transport) {
            Some(ranked) => (ranked.members(card, devices), ranked.explain()),
            None => (vec![true; devices.len()], String::new()),
        }
    }

    fn warnings(&self, slots: &[Slot]) -> impl Iterator<Item = String> {
        let setting = |name: &str| {
            let mut all = slots.iter().map(|slot| &slot.transport);
            all.find(|transport| transport.name() == name)?
                .network_setting()
        };
        let all = self.0.iter();
        all.filter_map(move |(name, ranked)| ranked.warning(name, setting(name)))
    }
}

impl Slot {
    fn card(&self) -> Option<RailCard> {
        let SlotState::Open(opened, named, _) = &self.state else {
            return None;
        };
        Some(RailCard {
            name: opened.name.to_owned(),
            device: named.device.to_string(),
            address: HexBytes(opened.domain.address()),
            pins: opened.pins(),
        })
    }
}

impl SlotState {
    /// The state of a transport that was probed: opened, if one device may be used.
    fn of(transport: &Arc<dyn Transport>, devices: Vec<Device>, nics: &Nics, job: &Job) -> Self {
        let allowed = nics.allows(&names(&devices));
        let (may, out): (Vec<_>, Vec<_>) = devices
            .into_iter()
            .zip(allowed)
            .partition(|(_, allowed)| *allowed);
        let out: Vec<String> = out.into_iter().map(|(device, _)| device.name).collect();
        let may: Vec<Device> = may.into_iter().map(|(device, _)| device).collect();
        match may.as_slice() {
            [] if out.is_empty() => SlotState::Unavailable("it has no device here".into()),
            [] => SlotState::Unavailable(format!("OXSHMEM_NIC rules out {}", out.join(", "))),
            [only] => {
                let why = (!out.is_empty()).then(|| "OXSHMEM_NIC leaves no other".to_owned());
                SlotState::open(transport, (only, &[]), job, why)
            }
            _ => SlotState::Several(may, out),
        }
    }

    /// The first of these devices that can be opened, with `further` ones that it may use beside it. `choice` is the reason for
    /// the first.
    fn open_first(
        transport: &Arc<dyn Transport>,
        (order, further): (&[&Device], &[Further<'_>]),
        job: &Job,
        choice: String,
    ) -> Self {
        let mut failed: Vec<String> = Vec::new();
        for device in order {
            let choice = match failed.as_slice() {
                [] => choice.clone(),
                failed => format!("others cannot be opened: {}", failed.join("; ")),
            };
            match SlotState::open(transport, (device, further), job, Some(choice)) {
                SlotState::Unavailable(why) => failed.push(format!("{}: {why}", device.name)),
                open => return open,
            }
        }
        SlotState::Unavailable(match failed.as_slice() {
            [] => "the chosen device is gone".into(),
            failed => failed.join("; "),
        })
    }

    fn open(
        transport: &Arc<dyn Transport>,
        (device, further): (&Device, &[Further<'_>]),
        job: &Job,
        choice: Option<String>,
    ) -> Self {
        match transport.open_with(device, further, job) {
            Ok(domain) => SlotState::Open(
                Box::new(Rail::new(transport.name(), domain)),
                CandidateReasons {
                    name: transport.name(),
                    device: device.name.as_str().into(),
                    choice: choice.map(String::into_boxed_str),
                },
                device.clone(),
            ),
            Err(error) => SlotState::Unavailable(error.to_string()),
        }
    }
}

/// The reason of a choice: the device's distance, the number of PEs that share it, and nearer devices that were ruled out.
fn reason(
    (topology, unknown): (Option<&Topology>, Option<&str>),
    cpus: &CpuSet,
    (devices, members): (&[String], &[bool]),
    decided: &Decided,
    ruled_out: &[String],
) -> String {
    let shared = match decided.sharing {
        0 | 1 => String::new(),
        pes => format!("; {pes} PEs of this host share it"),
    };
    let (near, gpu) = match &decided.near {
        Anchor::Cpus => (format!("CPUs {cpus}"), None),
        Anchor::Gpu(name) => (name.clone(), topology.and_then(|t| t.gpu(name))),
    };
    let far = |device: &String| match (topology?, gpu) {
        (topology, Some(gpu)) => distance(topology, gpu, device),
        (topology, None) => distance(topology, cpus, device),
    };
    let chosen = devices.get(decided.device);
    let among = devices.iter().zip(members).filter(|(_, is_in)| **is_in);
    let among: Vec<&String> = among.map(|(device, _)| device).collect();
    let Some(distance) = chosen.and_then(far) else {
        let why = unknown.unwrap_or("the topology knows none of them to be up");
        return format!(
            "one of {}, as near as each other: {why}{shared}",
            among.len()
        );
    };
    let alike = among.iter().filter(|d| far(d) == Some(distance)).count();
    let nearest = match alike {
        1 => "the nearest".to_owned(),
        alike => format!("one of the {alike} nearest"),
    };
    let nearer: Vec<&str> = ruled_out
        .iter()
        .filter(|device| far(device).is_some_and(|other| other < distance))
        .map(String::as_str)
        .collect();
    let nearer = match nearer.as_slice() {
        [] => String::new(),
        nearer => format!(
            "; nearer, but ruled out by OXSHMEM_NIC: {}",
            nearer.join(", ")
        ),
    };
    let among = among.len();
    format!("{nearest} of {among} to {near} ({distance}){shared}{nearer}")
}

fn names(devices: &[Device]) -> Vec<String> {
    devices.iter().map(|device| device.name.clone()).collect()
}

fn setting(nics: &Nics, why: String) -> Error {
    let (name, value) = nics.setting();
    let name = name.into();
    Error::Config { name, value, why }
}
