//! The NICs of one PE, its *rails*: the first, for all operations, and further ones, for parts of long transfers.
//!
//! A rail of one PE is connected with one of the peer's rails, which must have a network in common with it for certain:
//! on isolated rails the NICs of two networks never meet. A rail that reaches none of a peer's is not used with that peer.
//! Atomics, signals, messages and short operations go by the *primary* connection, at the first NIC of both sides while these
//! work. Two NICs' atomics on one word do not exclude each other, so all primary connections towards a PE end at one NIC of it.
//! That PE chooses another when the first is down and a peer's retries were in vain, or when it has failed; then it ends
//! those at the first. Only NICs that promise no less than the first take its place.

use std::sync::Arc;

use oxshmem_transport::{Error, Result};

use crate::domain_state::has_bit;
use crate::limits::{MOST_RAILS, NAME};
use crate::local_keys::LocalKeys;
use crate::port::{Port, path, probe};
use crate::port_state::PortState;
use crate::settings::{Rails as Wanted, Settings};
use crate::wire::{PortAddress, RailAddress};

/// The slowest NIC beside a faster one that takes parts of the same length, as a fraction of its rate.
const LEAST_RATE: f64 = 0.75;

/// A port that a PE may use beside its first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    /// Whether it is at least as near as the first, and no PE's first on this host.
    pub(crate) is_spare: bool,
}

/// The NICs of a domain.
#[derive(Debug)]
pub(crate) struct Rails {
    pub(crate) primary: Arc<PortState>,
    /// The others, in the order of their numbers from 1 on.
    pub(crate) further: Vec<Arc<PortState>>,
    /// The keys of this PE's memory at the further NICs.
    pub(crate) local_keys: Arc<LocalKeys>,
    /// The ports that are left out, each with the reason.
    pub(crate) left_out: Vec<String>,
}

impl Rails {
    /// One NIC.
    #[cfg(test)]
    pub(crate) fn alone(primary: Arc<PortState>) -> Arc<Rails> {
        Arc::new(Rails {
            primary,
            further: Vec::new(),
            local_keys: Arc::default(),
            left_out: Vec::new(),
        })
    }

    /// The first NIC, and the further ones that the settings ask for. `candidates`: the ports among which to choose, nearest
    /// first; all of this machine without a list.
    pub(crate) fn open(primary: Arc<PortState>, candidates: Option<&[Candidate]>) -> Result<Rails> {
        let mut rails = Rails {
            primary,
            further: Vec::new(),
            local_keys: Arc::default(),
            left_out: Vec::new(),
        };
        let settings = &rails.primary.settings.clone();
        let candidates = match (&settings.rails, candidates) {
            (Wanted::Count(1), _) | (Wanted::Auto, None) => return Ok(rails),
            (_, Some(candidates)) => candidates.to_vec(),
            (_, None) => machine(settings)?,
        };
        let here = rails.primary.port.name();
        for candidate in wanted(&settings.rails, &here, &candidates)? {
            if rails.further.len() + 1 >= most(&settings.rails) {
                break;
            }
            let number = rails.further.len() as u8 + 1;
            match rails.open_further(&candidate.name, number, settings) {
                Ok(state) => rails.further.push(Arc::new(state)),
                Err(why) => rails.left_out.push(format!("{}: {why}", candidate.name)),
            }
        }
        rails.report();
        Ok(rails)
    }

    fn open_further(
        &self,
        name: &str,
        number: u8,
        settings: &Settings,
    ) -> Result<PortState, String> {
        let port = Port::open(name, settings).map_err(|error| error.to_string())?;
        let is_named = matches!(settings.rails, Wanted::Named(_));
        suits(&self.primary.port, &port, is_named)?;
        let state = self.primary.further(number, port);
        let state = state.map_err(|error| error.to_string())?;
        if state.networks.is_empty() {
            return Err("no network is known in which it certainly is".into());
        }
        Ok(state)
    }

    fn report(&self) {
        for why in &self.left_out {
            match self.primary.settings.rails {
                Wanted::Auto => tracing::debug!(%why, "not one of the NICs of this PE"),
                _ => tracing::warn!(%why, "not one of the NICs of this PE"),
            }
        }
        if !self.further.is_empty() {
            let all: Vec<String> = self.all().map(|rail| rail.port.name()).collect();
            tracing::info!(nics = %all.join(", "), "long transfers go over several NICs");
        }
    }

    /// All NICs, the first one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<PortState>> {
        std::iter::once(&self.primary).chain(&self.further)
    }

    /// The NIC of this number.
    pub(crate) fn get(&self, rail: u8) -> Option<&Arc<PortState>> {
        match rail {
            0 => Some(&self.primary),
            rail => self.further.get(usize::from(rail) - 1),
        }
    }

    /// The number of queue pairs that a connection has for long transfers beside its primary one. Those that follow each
    /// other are of different NICs.
    pub(crate) fn bulk_queues(&self) -> u32 {
        match (self.primary.settings.queue_pairs, self.further.len()) {
            (1, 0) => 0,
            (queue_pairs, further) => queue_pairs * (1 + further as u32),
        }
    }

    /// The number of queue pairs that a connection has at one NIC.
    pub(crate) fn queues_at(&self, rail: u8) -> u32 {
        let bulk = match self.bulk_queues() {
            0 => 0,
            _ => self.primary.settings.queue_pairs,
        };
        bulk + u32::from(has_bit(self.primary.published.stand_ins(), rail))
    }

    /// The NICs that may have primary connections, by number.
    pub(crate) fn stand_ins(&self) -> impl Iterator<Item = &Arc<PortState>> {
        let set = self.primary.published.stand_ins();
        self.all().filter(move |state| has_bit(set, state.rail))
    }

    /// The NIC of the bulk queue pair at this place.
    pub(crate) fn of_bulk_queue(&self, at: usize) -> u8 {
        (at % (1 + self.further.len())) as u8
    }

    /// Up to this size operations keep their order.
    pub(crate) fn ordered(&self) -> u64 {
        match self.bulk_queues() {
            0 => u64::MAX,
            _ => self.primary.settings.stripe - 1,
        }
    }

    /// The addresses of all NICs.
    pub(crate) fn addresses(&self) -> Vec<RailAddress> {
        self.all().map(|rail| rail.rail_address()).collect()
    }

    /// The NICs over which long transfers to a peer with these go, in words; none if there is only one and no other was asked
    /// for.
    pub(crate) fn explain(&self, theirs: &[RailAddress]) -> Option<String> {
        if self.further.is_empty() && self.left_out.is_empty() {
            return None;
        }
        let mut pairing = Pairing::new(theirs);
        let name = |state: &PortState| state.port.name();
        let mut told = Vec::new();
        for (number, state) in (0..).zip(self.all()) {
            let route = state.route_needed();
            let offer = state.rail_address();
            let found = pairing.find(number, &offer.port, &offer.networks, route);
            let peer = |rail: u8| theirs.get(usize::from(rail)).map(|rail| rail.name.clone());
            told.push(match found {
                _ if !state.is_usable() => format!("{} not: it is down or has failed", name(state)),
                Ok(rail) => format!("{} to {}", name(state), peer(rail).unwrap_or_default()),
                Err(why) => format!("{} not: {why}", name(state)),
            });
        }
        let mut told = format!("long transfers by NIC: {}", told.join(", "));
        if !self.left_out.is_empty() {
            told.push_str(&format!("; left out: {}", self.left_out.join(", ")));
        }
        Some(told)
    }
}

/// The most NICs.
fn most(wanted: &Wanted) -> usize {
    match wanted {
        Wanted::Count(count) => usize::from(*count),
        Wanted::Auto | Wanted::Named(_) => MOST_RAILS,
    }
}

/// All ports of this machine.
fn machine(settings: &Settings) -> Result<Vec<Candidate>> {
    let all = probe(settings)?.into_iter();
    Ok(all
        .map(|device| Candidate {
            name: device.name,
            is_spare: false,
        })
        .collect())
}

/// The candidates that the settings ask for, in order. `first`: the port that is the PE's first.
fn wanted(wanted: &Wanted, first: &str, candidates: &[Candidate]) -> Result<Vec<Candidate>> {
    let others = candidates.iter().filter(|one| one.name != first);
    Ok(match wanted {
        Wanted::Auto => others.filter(|one| one.is_spare).cloned().collect(),
        Wanted::Count(_) => others.cloned().collect(),
        Wanted::Named(names) => {
            let known = |name: &&String| name.as_str() == first;
            let mut found = Vec::new();
            for name in names.iter().filter(|name| !known(name)) {
                let candidate = candidates.iter().find(|one| one.name == *name);
                found.push(
                    candidate
                        .cloned()
                        .ok_or_else(|| no_port(name, candidates))?,
                );
            }
            found
        }
    })
}

fn no_port(name: &str, candidates: &[Candidate]) -> Error {
    let all: Vec<&str> = candidates.iter().map(|one| one.name.as_str()).collect();
    Error::Unavailable {
        transport: NAME,
        why: format!(
            "OXSHMEM_VERBS_RAILS names {name}, which is no usable port of this host; usable: {}. `oxshmem info` says \
             why others are not",
            all.join(", ")
        ),
    }
}

/// Whether a port may carry parts of the same transfers as the first one; else the reason.
fn suits(first: &Port, other: &Port, is_named: bool) -> Result<(), String> {
    if first.software != other.software {
        return Err("one of the two is a program, the other a NIC".into());
    }
    if !is_named && first.attributes.ethernet != other.attributes.ethernet {
        return Err("one of the two is of Ethernet, the other of InfiniBand".into());
    }
    let longest = |port: &Port| port.attributes.largest_message.min(1 << 30);
    if longest(other) < longest(first) {
        return Err("its messages are shorter than those of the PE's first NIC".into());
    }
    let (one, two) = (first.rate(), other.rate());
    if !is_named && one.min(two) < LEAST_RATE * one.max(two) {
        return Err(format!(
            "it has {two} Gb/s and the PE's first NIC {one}: parts of one length would wait for the slower one"
        ));
    }
    Ok(())
}

/// Whether one NIC reaches another: they have a network in common for certain, and there is a path. Else the reason.
pub(crate) fn reaches(
    known: &RailAddress,
    port: &PortAddress,
    networks: &[String],
    route_needed: bool,
) -> Result<(), String> {
    if !known.networks.iter().any(|name| networks.contains(name)) {
        return Err(format!(
            "it is in {}, and the other side's {} in {}",
            networks.join(", "),
            known.name,
            known.networks.join(", ")
        ));
    }
    path(&known.port, port, route_needed).map(drop)
}

/// The assignment of one side's NICs to the other side's: each to one at most.
#[derive(Debug)]
pub(crate) struct Pairing<'a> {
    rails: &'a [RailAddress],
    /// By number there, the number at the other side that it is given to.
    given: [Option<u8>; MOST_RAILS],
}

impl<'a> Pairing<'a> {
    /// Of these NICs, the first of which is given to the first.
    pub(crate) fn new(rails: &'a [RailAddress]) -> Pairing<'a> {
        let mut given = [None; MOST_RAILS];
        given[0] = Some(0);
        Pairing { rails, given }
    }

    /// The number of the NIC for the other side's NIC `number`: the first for its first, else that of the same number, if it
    /// reaches it, else the first that does; or the reason why there is none.
    pub(crate) fn find(
        &mut self,
        number: u8,
        port: &PortAddress,
        networks: &[String],
        route_needed: bool,
    ) -> Result<u8, String> {
        if let Some(rail) = self.given.iter().position(|to| *to == Some(number)) {
            return Ok(rail as u8);
        }
        let order = std::iter::once(number).chain((0..).take(self.rails.len()));
        let mut why = "the other side has no NIC left for it".to_owned();
        for rail in order {
            let at = usize::from(rail);
            let (Some(known), Some(given)) = (self.rails.get(at), self.given.get_mut(at)) else {
                continue;
            };
            if given.is_some() {
                continue;
            }
            match reaches(known, port, networks, route_needed) {
                Ok(()) => {
                    *given = Some(number);
                    return Ok(rail);
                }
                Err(not) => why = not,
            }
        }
        Err(why)
    }
}

#[cfg(test)]
mod tests;
