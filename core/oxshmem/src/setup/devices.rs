//! Finding the transports' devices, choosing among several, and opening.

use std::path::Path;
use std::sync::Arc;

use oxshmem_bootstrap::{Bootstrap, HexBytes, exchange};
use oxshmem_topo::{CpuSet, Topology};
use oxshmem_transport::{Device, Job, Transport};

use super::card::{BusinessCard, RailCard};
use super::hosts::Hosts;
use super::wireup::Unavailable;
use crate::lane::Rail;
use crate::route::device_select::{Anchor, Decided, Offer, decide, distance, offers};
use crate::route::{CandidateReasons, Nics};
use crate::{Error, Result, topology};

/// Every transport that may be used, on the way to being opened.
pub(super) struct Probe {
    slots: Vec<Slot>,
    nics: Nics,
    /// Known only where there is a device to choose, or the user describes the machine.
    topology: Option<Topology>,
    /// Why the topology is not known although it was asked for.
    unknown: Option<String>,
    cpus: CpuSet,
}

struct Slot {
    transport: Arc<dyn Transport>,
    state: State,
}

enum State {
    Open(Box<Rail>, CandidateReasons),
    /// Devices that may be chosen, and those that the user rules out.
    Several(Vec<Device>, Vec<String>),
    Unavailable(String),
}

/// What was opened: by index, the transport and its device.
pub(super) struct OpenedRails {
    pub opened: Vec<Rail>,
    pub named: Vec<CandidateReasons>,
    pub unavailable: Vec<Unavailable>,
}

impl Probe {
    /// Asks every transport for its devices and opens those that leave no choice.
    pub(super) fn look(
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
                    Ok(devices) => State::of(transport, devices, nics, job),
                    Err(error) => State::Unavailable(error.to_string()),
                },
            })
            .collect();
        let choice = slots.iter().any(|s| matches!(s.state, State::Several(..)));
        let (topology, unknown) = match described {
            Some(file) => (Some(topology::read(file)?), None),
            None if choice => match Topology::discover() {
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

    /// The transports that are open.
    pub(super) fn shown(&self) -> Vec<RailCard> {
        self.slots.iter().filter_map(Slot::shown).collect()
    }

    /// Those that could not be opened, and why.
    pub(super) fn unavailable(&self) -> Vec<(String, String)> {
        let why = |slot: &Slot| match &slot.state {
            State::Unavailable(why) => Some((slot.transport.name().to_owned(), why.clone())),
            _ => None,
        };
        self.slots.iter().filter_map(why).collect()
    }

    /// What the others need to know where this PE has a choice; else nothing.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let several = |slot: &Slot| matches!(slot.state, State::Several(..));
        if !self.slots.iter().any(several) {
            return Vec::new();
        }
        let devices: Vec<(&str, Vec<String>)> = self
            .slots
            .iter()
            .filter_map(|slot| match &slot.state {
                State::Open(_, named) => {
                    Some((slot.transport.name(), vec![named.device.to_string()]))
                }
                State::Several(devices, _) => Some((slot.transport.name(), names(devices))),
                State::Unavailable(_) => None,
            })
            .collect();
        offers(self.topology.as_ref(), &self.cpus, &devices)
    }

    /// Chooses where there is a choice, and shows what it opens then. Collective if any PE has one,
    /// which the cards say.
    pub(super) fn open(
        mut self,
        bootstrap: &dyn Bootstrap,
        job: &Job,
        cards: &mut [BusinessCard],
        hosts: &Hosts,
    ) -> Result<OpenedRails> {
        self.check_map(hosts.with(job.me.index()).len())?;
        if cards.iter().any(|card| !card.offers.is_empty()) {
            let late = self.choose(job, cards, hosts)?;
            let all: Vec<Vec<RailCard>> = exchange(bootstrap, &late)?;
            for (card, late) in cards.iter_mut().zip(all) {
                card.transports.extend(late);
            }
        }
        let mut doors = OpenedRails {
            opened: Vec::new(),
            named: Vec::new(),
            unavailable: Vec::new(),
        };
        for slot in self.slots {
            let why = match slot.state {
                State::Open(opened, named) => {
                    doors.opened.push(*opened);
                    doors.named.push(named);
                    continue;
                }
                State::Unavailable(why) => why,
                State::Several(..) => "no device was chosen".into(),
            };
            doors.unavailable.push(Unavailable {
                before: doors.opened.len(),
                name: slot.transport.name(),
                why,
            });
        }
        Ok(doors)
    }

    /// That the map of NICs has a place for each of the host's PEs, even where a transport has one
    /// device: all of them find the same.
    fn check_map(&self, pes: usize) -> Result<()> {
        for slot in &self.slots {
            let devices = match &slot.state {
                State::Open(_, named) => vec![named.device.to_string()],
                State::Several(devices, _) => names(devices),
                State::Unavailable(_) => continue,
            };
            for rank in 0..pes {
                let place = self.nics.mapped(&devices, rank, pes);
                place.map_err(|why| setting(&self.nics, why))?;
            }
        }
        Ok(())
    }

    fn choose(
        &mut self,
        job: &Job,
        cards: &[BusinessCard],
        hosts: &Hosts,
    ) -> Result<Vec<RailCard>> {
        let me = job.me.index();
        let host = hosts.with(me);
        let local_rank = host.binary_search(&me).unwrap_or(0);
        let local = host.iter().filter_map(|&pe| Some(&*cards.get(pe)?.offers));
        let mut all = decide(&local.collect::<Vec<_>>());
        let decided = match local_rank < all.len() {
            true => all.swap_remove(local_rank),
            false => Vec::new(),
        };
        let mine = cards.get(me).map_or(&[][..], |card| &card.offers);
        let mut late = Vec::new();
        for slot in &mut self.slots {
            let State::Several(devices, out) = &slot.state else {
                continue;
            };
            let named = names(devices);
            let name = slot.transport.name();
            let by_map = self
                .nics
                .mapped(&named, local_rank, host.len())
                .map_err(|why| setting(&self.nics, why))?;
            let near = mine.iter().zip(&decided).find(|(o, _)| o.transport == name);
            let (index, why) = match (by_map, near) {
                (Some(index), _) => (index, "OXSHMEM_NIC_MAP says so".to_owned()),
                (None, Some((_, decided))) => {
                    let place = (self.topology.as_ref(), self.unknown.as_deref());
                    let why = reason(place, &self.cpus, &named, decided, out);
                    (decided.device, why)
                }
                (None, None) => (0, "the first".into()),
            };
            slot.state = match devices.get(index) {
                Some(device) => State::open(&slot.transport, device, job, Some(why)),
                None => State::Unavailable("the chosen device is gone".into()),
            };
            late.extend(slot.shown());
        }
        Ok(late)
    }
}

impl Slot {
    fn shown(&self) -> Option<RailCard> {
        let State::Open(opened, _) = &self.state else {
            return None;
        };
        Some(RailCard {
            name: opened.name.to_owned(),
            address: HexBytes(opened.domain.address()),
            pins: opened.pins(),
        })
    }
}

impl State {
    fn of(transport: &Arc<dyn Transport>, devices: Vec<Device>, nics: &Nics, job: &Job) -> Self {
        let allowed = nics.allows(&names(&devices));
        let (may, out): (Vec<_>, Vec<_>) = devices
            .into_iter()
            .zip(allowed)
            .partition(|(_, allowed)| *allowed);
        let out: Vec<String> = out.into_iter().map(|(device, _)| device.name).collect();
        let may: Vec<Device> = may.into_iter().map(|(device, _)| device).collect();
        match may.as_slice() {
            [] if out.is_empty() => State::Unavailable("it has no device here".into()),
            [] => State::Unavailable(format!("OXSHMEM_NIC rules out {}", out.join(", "))),
            [only] => {
                let why = (!out.is_empty()).then(|| "OXSHMEM_NIC leaves no other".to_owned());
                State::open(transport, only, job, why)
            }
            _ => State::Several(may, out),
        }
    }

    fn open(
        transport: &Arc<dyn Transport>,
        device: &Device,
        job: &Job,
        choice: Option<String>,
    ) -> Self {
        match transport.open(device, job) {
            Ok(domain) => State::Open(
                Box::new(Rail::new(transport.name(), domain)),
                CandidateReasons {
                    name: transport.name(),
                    device: device.name.as_str().into(),
                    choice: choice.map(String::into_boxed_str),
                },
            ),
            Err(error) => State::Unavailable(error.to_string()),
        }
    }
}

/// Why a device was chosen: how near it is, who shares it, and what was nearer and ruled out.
fn reason(
    (topology, unknown): (Option<&Topology>, Option<&str>),
    cpus: &CpuSet,
    devices: &[String],
    decided: &Decided,
    out: &[String],
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
    let Some(distance) = chosen.and_then(far) else {
        let why = unknown.unwrap_or("the topology knows none of them to be up");
        return format!(
            "one of {}, as near as each other: {why}{shared}",
            devices.len()
        );
    };
    let alike = devices.iter().filter(|d| far(d) == Some(distance)).count();
    let nearest = match alike {
        1 => "the nearest".to_owned(),
        alike => format!("one of the {alike} nearest"),
    };
    let nearer: Vec<&str> = out
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
    let among = devices.len();
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
