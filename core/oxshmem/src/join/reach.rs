//! How each PE is reached: the exchange of keys and descriptors, and the choice of transports.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_heap::Mapping;
use oxshmem_transport::{HostId, MemoryKind, Pe, Peer, Reach};

use super::{Card, unreadable};
use crate::peers::MappedHeap;
use crate::routes::{Considered, Route};
use crate::wire::{HEAP, Opened};
use crate::{Error, Result, Visibility};

/// How long the PEs of a host may take to pass descriptors.
const DESCRIPTOR_DEADLINE: Duration = Duration::from_secs(20);

/// What was reached, for each PE.
pub(super) struct Reached {
    pub mapped: Vec<Option<MappedHeap>>,
    /// The transport for each PE's lane operations.
    pub by_pe: Vec<Option<usize>>,
    pub routes: Vec<Route>,
}

/// Exchanges keys and descriptors, and takes the first transport that reaches each PE.
pub(super) fn reach(
    bootstrap: &dyn Bootstrap,
    cards: &[Card],
    opened: &[Opened],
    unavailable: Vec<Considered>,
    own: &Arc<Mapping>,
) -> Result<Reached> {
    let me = bootstrap.rank() as usize;
    let keys: Vec<(&str, &[u8])> = opened
        .iter()
        .map(|t| (t.name, t.heap.as_ref().map_or(&[][..], |h| h.key())))
        .collect();
    let bytes = serde_json::to_vec(&keys).map_err(|e| unreadable(me as u32, &e))?;
    let keys = bootstrap
        .allgather(&bytes)?
        .iter()
        .enumerate()
        .map(|(pe, keys)| serde_json::from_slice(keys).map_err(|e| unreadable(pe as u32, &e)))
        .collect::<Result<Vec<Vec<(String, Vec<u8>)>>>>()?;
    let mut descriptors = share_descriptors(bootstrap, cards, opened)?;

    let mut reached = Reached {
        mapped: Vec::new(),
        by_pe: Vec::new(),
        routes: Vec::new(),
    };
    for (pe, (card, keys)) in cards.iter().zip(&keys).enumerate() {
        let mut route = Route {
            transport: None,
            mapped: false,
            considered: unavailable.clone(),
        };
        let (mut mapped, mut by) = (None, None);
        for (index, transport) in opened.iter().enumerate() {
            if by.is_some() {
                break;
            }
            let peer = peer(card, pe, transport.name);
            let key = keys
                .iter()
                .find(|(name, _)| name == transport.name)
                .map(|(_, key)| key);
            let how = transport.domain.reach(&peer, MemoryKind::Host);
            let answer = match (how, key) {
                (Reach::None(why), _) => why,
                (_, None) => format!("PE {pe} has not opened it"),
                (how, Some(key)) => {
                    let descriptor = descriptors.take(pe, index);
                    match transport.domain.import(&peer, HEAP, key, descriptor) {
                        Err(error) => error.to_string(),
                        Ok(region) if region.len() < own.len() => {
                            format!("its heap has only {} bytes there", region.len())
                        }
                        Ok(region) => {
                            by = Some(index);
                            route.transport = Some(transport.name);
                            mapped = match how {
                                Reach::Mapped { .. } => region.mapped(),
                                _ => None,
                            }
                            .map(|base| MappedHeap {
                                base,
                                keep: region.keep_alive(),
                            });
                            route.mapped = mapped.is_some();
                            if route.mapped {
                                "chosen: load/store mapped"
                            } else {
                                "chosen: lane"
                            }
                            .into()
                        }
                    }
                }
            };
            route.considered.push(Considered {
                transport: transport.name.into(),
                answer,
            });
        }
        if mapped.is_none() && pe == me && by.is_none() {
            // This PE's own memory needs no transport.
            let keep = Arc::clone(own) as _;
            mapped = Some(MappedHeap {
                base: own.base(),
                keep,
            });
            (route.transport, route.mapped) = (Some("self"), true);
        }
        if let (None, Some(why)) = (by, &descriptors.failure) {
            route.considered.push(Considered {
                transport: "descriptors".into(),
                answer: why.clone(),
            });
        }
        reached.mapped.push(mapped);
        reached.by_pe.push(by);
        reached.routes.push(route);
    }
    Ok(reached)
}

fn peer(card: &Card, pe: usize, transport: &str) -> Peer {
    let address = card.transports.iter().find(|(name, ..)| name == transport);
    Peer {
        pe: Pe(pe as u32),
        host: HostId(card.host.clone()),
        address: address.map(|(_, address, _)| address.clone()),
    }
}

/// Descriptors that came from the PEs of this host.
#[derive(Default)]
struct Descriptors {
    /// For each (PE, index of the transport).
    held: Vec<(usize, usize, OwnedFd)>,
    /// Why they did not come.
    failure: Option<String>,
}

impl Descriptors {
    fn take(&mut self, pe: usize, transport: usize) -> Option<OwnedFd> {
        let at = self
            .held
            .iter()
            .position(|(p, t, _)| (*p, *t) == (pe, transport))?;
        Some(self.held.swap_remove(at).2)
    }
}

/// Passes the heap's descriptors among the PEs of this host that need them to map each other.
fn share_descriptors(
    bootstrap: &dyn Bootstrap,
    cards: &[Card],
    opened: &[Opened],
) -> Result<Descriptors> {
    let mut all = Descriptors::default();
    for (index, transport) in opened.iter().enumerate() {
        let Some(descriptor) = transport.heap.as_ref().and_then(|h| h.descriptor()) else {
            continue;
        };
        let among: Vec<u32> = (0..)
            .zip(cards)
            .filter(|(pe, card)| {
                let peer = peer(card, *pe as usize, transport.name);
                let how = transport.domain.reach(&peer, MemoryKind::Host);
                *pe == bootstrap.rank() || matches!(how, Reach::Mapped { descriptor: true })
            })
            .map(|(pe, _)| pe)
            .collect();
        if among.len() < 2 {
            continue;
        }
        match bootstrap.share_descriptors(&among, &[descriptor], DESCRIPTOR_DEADLINE) {
            Ok(shared) => {
                for (&pe, mut fds) in among.iter().zip(shared) {
                    if let Some(fd) = fds.pop() {
                        all.held.push((pe as usize, index, fd));
                    }
                }
            }
            Err(error) => all.failure = Some(format!("not passed between processes: {error}")),
        }
    }
    Ok(all)
}

/// Every PE must reach every PE. Global visibility where every PE maps every PE (M24 to M26),
/// whatever checked mode does with that.
pub(super) fn agree_on_routes(bootstrap: &dyn Bootstrap, routes: &[Route]) -> Result<Visibility> {
    let unreachable = routes
        .iter()
        .enumerate()
        .find(|(_, route)| route.transport.is_none());
    let mine = (
        routes.iter().all(|route| route.mapped),
        unreachable.map(|(pe, route)| (pe, route.refusals())),
    );
    let bytes = serde_json::to_vec(&mine).map_err(|e| unreadable(bootstrap.rank(), &e))?;
    let mut global = true;
    for (from, theirs) in bootstrap.allgather(&bytes)?.iter().enumerate() {
        let (mapped, unreachable): (bool, Option<(usize, String)>) =
            serde_json::from_slice(theirs).map_err(|e| unreadable(from as u32, &e))?;
        if let Some((pe, why)) = unreachable {
            return Err(Error::Unreachable {
                call: "init",
                from,
                pe,
                why,
            });
        }
        global &= mapped;
    }
    Ok(if global {
        Visibility::Global
    } else {
        Visibility::Local
    })
}
