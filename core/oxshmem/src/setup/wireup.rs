//! How each PE is reached: the exchange of keys and descriptors, and the choice of transports.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use oxshmem_bootstrap::{Bootstrap, HexBytes, exchange};
use oxshmem_heap::Mapping;
use oxshmem_transport::{Accessor, HostId, MemoryKind, Pe, Peer, Reach, Region, RegionId};
use serde::{Deserialize, Serialize};

use super::card::BusinessCard;
use crate::lane::Rail;
use crate::peer::{Mapped, MappedHeap, OnGpu};
use crate::route::select::{
    ByLane, Candidate, Chosen, Imported, Preference, choose, cpu_atomics, has_nic_atomics,
};
use crate::route::{CandidateReasons, Interner, Pair, Path, PeerPaths, ReasonTable, Routes, Rules};
use crate::simulated::Accessors;
use crate::{Error, Result, Visibility};

/// How long the PEs of a host may take to pass descriptors.
pub(crate) const DESCRIPTOR_DEADLINE: Duration = Duration::from_secs(20);

/// A transport that was not opened.
pub(super) struct Unavailable {
    pub name: &'static str,
    pub why: String,
    /// How many of those that were opened come before it.
    pub before: usize,
}

/// One symmetric heap, as the transports registered it here.
pub(super) struct WireupShared<'a> {
    pub kind: MemoryKind,
    /// Where this PE's CPU has it itself.
    pub own: Option<&'a Arc<Mapping>>,
    /// By the index of the opened transport its pieces; none where one does not carry such memory.
    pub regions: Vec<Vec<&'a dyn Region>>,
}

/// What was reached, for each PE.
pub(super) struct Wireup {
    /// Its host heap, where it is mapped.
    pub mapped: Vec<MappedHeap>,
    /// How its host heap is accessed, where the mapping is simulated.
    pub accessors: Vec<Accessors>,
    /// Where this PE's GPU has its GPU heap, if it has.
    pub on_gpu: Vec<Option<OnGpu>>,
    pub routes: Routes,
}

/// What this PE has to reach others with.
pub(super) struct RailSet<'a> {
    pub opened: &'a [Arc<Rail>],
    pub unavailable: &'a [Unavailable],
    pub preference: Preference,
    pub rules: &'a Rules,
    /// Whether ways for NICs' atomics are wanted.
    pub nics: bool,
}

/// A registered heap, as its owner tells the others.
#[derive(Serialize, Deserialize)]
struct Key {
    transport: String,
    /// The memory's kind, by its place among all.
    kind: usize,
    region: u32,
    key: HexBytes,
}

/// Exchanges keys and descriptors, and chooses a transport towards each PE for each of `heaps`.
/// Collective.
pub(super) fn reach(
    bootstrap: &dyn Bootstrap,
    cards: &[BusinessCard],
    means: &RailSet<'_>,
    named: Vec<CandidateReasons>,
    heaps: &[WireupShared<'_>],
) -> Result<Wireup> {
    let me = bootstrap.rank() as usize;
    let keys: Vec<Vec<Key>> = exchange(bootstrap, &my_keys(means.opened, heaps))?;
    let mut descriptors = share_descriptors(bootstrap, cards, means.opened, heaps)?;
    let here = cards.get(me).map_or("", |card| card.host.as_str());
    let mut interner = Interner::default();
    let (mut mapped, mut accessors, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    let mut on_gpus = Vec::new();
    for (pe, (card, keys)) in cards.iter().zip(&keys).enumerate() {
        let (mut ways, mut whys) = (PeerPaths::NONE, ReasonTable::default());
        let mut host = (MappedHeap::default(), Accessors::default());
        let mut on_gpu = None;
        for heap in heaps {
            let peer = |transport: &str| peer(card, pe, transport);
            let mut cpu = Mappings::default();
            let own = heap.own.filter(|_| pe == me);
            let pair = Pair {
                pes: [me, pe],
                hosts: [here, card.host.as_str()],
            };
            let candidates = means.candidates(heap, pair, card, keys);
            let (mut copies, mut atomics) = choose(means.preference, &candidates, |index| {
                let Some(transport) = means.opened.get(usize::from(index)) else {
                    return Err("it is not open".into());
                };
                let descriptor = descriptors.take(pe, index, heap.kind);
                let peer = peer(transport.name);
                if descriptor.is_none()
                    && transport.domain.wants_descriptor(&peer, heap.kind)
                    && let Some(why) = &descriptors.failure
                {
                    return Err(why.clone());
                }
                match cpu.import(index, transport, &peer, keys, descriptor, heap)? {
                    Imported::Lane if own.is_some() => Err(NO_LANE_TO_ONESELF.into()),
                    imported => Ok(imported),
                }
            });
            if heap.kind != MemoryKind::Host {
                for chosen in [&mut copies, &mut atomics] {
                    chosen.or_staged(card.stages, pe == me);
                }
            }
            if let Some(own) = own {
                cpu.reach_own(own, &mut copies, &mut atomics);
            }
            let mut why = |chosen: &Chosen<'_>| {
                let answers = chosen.answers.iter().map(|(name, why)| (*name, &**why));
                interner.list(&answers.collect::<Vec<_>>())
            };
            match heap.kind {
                MemoryKind::Cuda => {
                    (ways.gpu, ways.gpu_atomics) = (copies.path, atomics.path);
                    on_gpu = cpu.gpu(copies.path, atomics.path);
                    (whys.gpu, whys.gpu_atomics) = (why(&copies), why(&atomics));
                }
                _ => {
                    (ways.host, ways.host_atomics) = (copies.path, atomics.path);
                    if means.nics {
                        ways.nic = means.nic_way(heap, pair, &peer, keys, &mut cpu);
                    }
                    means.import_askers(heap, &peer, keys, &mut cpu);
                    (whys.host, whys.host_atomics) = (why(&copies), why(&atomics));
                    host = cpu.by(copies.path, atomics.path);
                }
            }
        }
        mapped.push(host.0);
        accessors.push(host.1);
        peers.push((ways, whys));
        on_gpus.push(on_gpu);
    }
    let gpu = heaps.iter().any(|heap| heap.kind == MemoryKind::Cuda);
    let routes = Routes::new(peers, interner.finish(), named.into(), gpu);
    Ok(Wireup {
        mapped,
        accessors,
        on_gpu: on_gpus,
        routes,
    })
}

impl RailSet<'_> {
    /// Every transport, opened or not, in order, with what it says of one PE's heap.
    fn candidates<'a>(
        &'a self,
        heap: &WireupShared<'_>,
        pair: Pair<'_>,
        card: &BusinessCard,
        keys: &[Key],
    ) -> Vec<Candidate<'a>> {
        let mut all = Vec::with_capacity(self.opened.len() + self.unavailable.len());
        let refused = |before: usize| {
            let there = self.unavailable.iter().filter(move |u| u.before == before);
            there.map(|unavailable| Candidate {
                name: unavailable.name,
                standing: Err(unavailable.why.as_str().into()),
                reach: Reach::Remote,
                atomics: ByLane::No,
            })
        };
        for (index, transport) in self.opened.iter().enumerate() {
            all.extend(refused(index));
            let registered = heap.regions.get(index).is_some_and(|all| !all.is_empty());
            let [from, to] = pair.pes;
            let peer = peer(card, to, transport.name);
            let reach = transport.domain.reach(&peer, heap.kind);
            let standing = if !registered {
                Err(Cow::Owned(match &reach {
                    Reach::None(why) => why.clone(),
                    _ => format!("it carries no {} memory", heap.kind),
                }))
            } else if let Some(rule) = self.rules.refuse(pair, transport.name) {
                Err(rule.into())
            } else if keys_of(keys, transport.name, heap.kind).next().is_none() {
                Err(card.why_without(transport.name))
            } else if from == to && heap.own.is_some() && reach == Reach::Remote {
                Err(NO_LANE_TO_ONESELF.into())
            } else {
                // More transports than that there are not.
                let index = u8::try_from(index).ok().filter(|&index| index != Path::OWN);
                index.ok_or("too many transports".into())
            };
            all.push(Candidate {
                name: transport.name,
                standing,
                reach,
                atomics: cpu_atomics(transport.domain.capabilities(), heap.kind),
            });
        }
        all.extend(refused(self.opened.len()));
        all
    }
}

impl RailSet<'_> {
    /// Imports the heap, too, of a PE that may send messages, though this PE goes another way to it:
    /// the answers go into that heap.
    fn import_askers(
        &self,
        heap: &WireupShared<'_>,
        peer: &dyn Fn(&str) -> Peer,
        keys: &[Key],
        cpu: &mut Mappings,
    ) {
        for (index, transport) in (0..).zip(self.opened) {
            let peer = peer(transport.name);
            if transport.domain.capabilities().message > 0
                && transport.domain.reach(&peer, heap.kind) == Reach::Remote
            {
                // One that cannot be imported sends no messages here: it cannot be reached either.
                let _ = cpu.import(index, transport, &peer, keys, None, heap);
            }
        }
    }

    /// The way of atomics that a PE's NIC performs, to this PE itself as to others: all that are on one
    /// word go by the NIC of the PE that has it (M29).
    fn nic_way(
        &self,
        heap: &WireupShared<'_>,
        pair: Pair<'_>,
        peer: &dyn Fn(&str) -> Peer,
        keys: &[Key],
        cpu: &mut Mappings,
    ) -> Path {
        for (index, transport) in (0..).zip(self.opened) {
            let peer = peer(transport.name);
            if has_nic_atomics(transport.domain.capabilities())
                && self.rules.refuse(pair, transport.name).is_none()
                && transport.domain.reach(&peer, heap.kind) == Reach::Remote
                && cpu.import(index, transport, &peer, keys, None, heap) == Ok(Imported::Lane)
            {
                return Path::Lane(index);
            }
        }
        Path::None
    }
}

const NO_LANE_TO_ONESELF: &str = "a PE's own memory needs no lane";

/// How this PE's processors can access a peer's heap, by the index of the transport that mapped it.
#[derive(Default)]
struct Mappings(Vec<(u8, Access)>);

#[derive(Clone)]
enum Access {
    Real(Mapped),
    Simulated(Arc<dyn Accessor>),
    /// By its GPU alone.
    Gpu(OnGpu),
}

impl Mappings {
    /// Imports the heap by one transport, piece by piece.
    fn import(
        &mut self,
        index: u8,
        transport: &Rail,
        peer: &Peer,
        keys: &[Key],
        mut descriptor: Option<OwnedFd>,
        heap: &WireupShared<'_>,
    ) -> Result<Imported, String> {
        let domain = transport.domain.as_ref();
        let mut first = None;
        for key in keys_of(keys, transport.name, heap.kind) {
            let id = RegionId(key.region);
            let region = domain
                .import(peer, id, &key.key.0, descriptor.take())
                .map_err(|error| error.to_string())?;
            if (region.len() as u64) < transport.registered_heap(heap.kind).len_of(id) {
                return Err(format!("its heap has only {} bytes there", region.len()));
            }
            first.get_or_insert(region);
        }
        let region = first.ok_or("it has shown no key")?;
        if transport.pins() || heap.kind != MemoryKind::Host {
            transport.registered_heap(heap.kind).imports_from(peer);
        }
        if let Some(address) = region.on_gpu() {
            let _keep = region.keep_alive();
            self.0.push((index, Access::Gpu(OnGpu { address, _keep })));
        }
        if !matches!(domain.reach(peer, heap.kind), Reach::Mapped { .. }) {
            return Ok(Imported::Lane);
        }
        let access = match (region.mapped(), region.accessor()) {
            (Some(base), _) => Access::Real(Mapped {
                base,
                keep: region.keep_alive(),
            }),
            (None, Some(accessor)) => Access::Simulated(accessor),
            (None, None) => return Ok(Imported::Lane),
        };
        self.0.push((index, access));
        Ok(Imported::Mapped)
    }

    fn access(&self, way: Path) -> Option<&Access> {
        let Path::Mapped(index) = way else {
            return None;
        };
        let found = self.0.iter().find(|(known, _)| *known == index);
        found.map(|(_, access)| access)
    }

    /// This PE's own memory needs no transport: its CPU is at it, and nobody else could do atomics
    /// there if they were not the CPU's (M29). Where the CPU is simulated, it is that one.
    fn reach_own<'a>(
        &mut self,
        own: &Arc<Mapping>,
        copies: &mut Chosen<'a>,
        atomics: &mut Chosen<'a>,
    ) {
        let simulated = [copies.path, atomics.path]
            .into_iter()
            .find(|way| matches!(self.access(*way), Some(Access::Simulated(_))));
        for chosen in [copies, atomics] {
            if chosen.path == Path::None {
                chosen.path = simulated.unwrap_or(Path::Mapped(Path::OWN));
                chosen.answers.push(("self", "chosen: own memory".into()));
            }
        }
        let mapped = Mapped {
            base: own.base(),
            keep: Arc::clone(own) as _,
        };
        self.0.push((Path::OWN, Access::Real(mapped)));
    }

    /// Where this PE's GPU has the heap, if copies and atomics by its lane are that GPU's.
    fn gpu(&self, copies: Path, atomics: Path) -> Option<OnGpu> {
        let (Path::Lane(index), Path::Lane(same)) = (copies, atomics) else {
            return None;
        };
        self.0.iter().find_map(|(known, access)| match access {
            Access::Gpu(on_gpu) if *known == index && index == same => Some(on_gpu.clone()),
            _ => None,
        })
    }

    /// What operations that go these ways use.
    fn by(&self, copies: Path, atomics: Path) -> (MappedHeap, Accessors) {
        let real = |way| match self.access(way) {
            Some(Access::Real(mapped)) => Some(mapped.clone()),
            _ => None,
        };
        let simulated = |way| match self.access(way) {
            Some(Access::Simulated(accessor)) => Some(Arc::clone(accessor)),
            _ => None,
        };
        let heap = MappedHeap {
            copies: real(copies),
            words: real(atomics),
        };
        let accessors = Accessors {
            copies: simulated(copies),
            atomics: simulated(atomics),
        };
        (heap, accessors)
    }
}

fn my_keys(opened: &[Arc<Rail>], heaps: &[WireupShared<'_>]) -> Vec<Key> {
    let mut keys = Vec::new();
    for heap in heaps {
        for (transport, regions) in opened.iter().zip(&heap.regions) {
            keys.extend(regions.iter().map(|region| Key {
                transport: transport.name.into(),
                kind: number(heap.kind),
                region: region.id().0,
                key: HexBytes(region.key().to_vec()),
            }));
        }
    }
    keys
}

fn keys_of<'k>(
    keys: &'k [Key],
    transport: &str,
    kind: MemoryKind,
) -> impl Iterator<Item = &'k Key> {
    let transport = transport.to_owned();
    keys.iter()
        .filter(move |key| key.kind == number(kind) && key.transport == transport)
}

fn number(kind: MemoryKind) -> usize {
    let known = MemoryKind::ALL.iter().position(|k| *k == kind);
    known.unwrap_or(MemoryKind::ALL.len())
}

fn peer(card: &BusinessCard, pe: usize, transport: &str) -> Peer {
    Peer {
        pe: Pe(pe as u32),
        host: HostId(card.host.clone()),
        address: card.transport(transport).map(|t| t.address.0.clone()),
    }
}

/// A descriptor that came from a PE of this host.
struct Descriptor {
    pe: usize,
    /// The index of the transport.
    transport: usize,
    kind: MemoryKind,
    fd: OwnedFd,
}

#[derive(Default)]
struct Descriptors {
    held: Vec<Descriptor>,
    /// Why they did not come.
    failure: Option<String>,
}

impl Descriptors {
    fn take(&mut self, pe: usize, transport: u8, kind: MemoryKind) -> Option<OwnedFd> {
        let wanted = (pe, usize::from(transport), kind);
        let held = |d: &Descriptor| (d.pe, d.transport, d.kind) == wanted;
        let at = self.held.iter().position(held)?;
        Some(self.held.swap_remove(at).fd)
    }
}

/// Passes the heaps' descriptors among the PEs of this host that need them to map each other.
fn share_descriptors(
    bootstrap: &dyn Bootstrap,
    cards: &[BusinessCard],
    opened: &[Arc<Rail>],
    heaps: &[WireupShared<'_>],
) -> Result<Descriptors> {
    let mut all = Descriptors::default();
    for heap in heaps {
        for (index, (transport, regions)) in opened.iter().zip(&heap.regions).enumerate() {
            let Some(descriptor) = regions.first().and_then(|region| region.descriptor()) else {
                continue;
            };
            let among: Vec<u32> = (0..)
                .zip(cards)
                .filter(|(pe, card)| {
                    let peer = peer(card, *pe as usize, transport.name);
                    *pe == bootstrap.rank()
                        || card.transport(transport.name).is_some()
                            && transport.domain.wants_descriptor(&peer, heap.kind)
                })
                .map(|(pe, _)| pe)
                .collect();
            if among.len() < 2 {
                continue;
            }
            match bootstrap.share_descriptors(&among, &[descriptor], DESCRIPTOR_DEADLINE) {
                Ok(shared) => {
                    let pieces = transport.registered_heap(heap.kind);
                    pieces.shared_with().clone_from(&among);
                    for (&pe, mut fds) in among.iter().zip(shared) {
                        all.held.extend(fds.pop().map(|fd| Descriptor {
                            pe: pe as usize,
                            transport: index,
                            kind: heap.kind,
                            fd,
                        }));
                    }
                }
                Err(error) => all.failure = Some(error.to_string()),
            }
        }
    }
    Ok(all)
}

/// What all PEs know of all routes.
pub(super) struct Agreed {
    pub visibility: Visibility,
    /// Whether every PE reaches every PE's NIC for atomics.
    pub nics: bool,
    /// Why not, for the first pair, if not.
    pub no_nics: String,
    /// Whether some PE sends active messages to another.
    pub messages: bool,
    /// Whether some PE's operations go by a transport that pins what it registers.
    pub pinned: bool,
    /// Whether some PE's data go to another's GPU by way of its host memory.
    pub staged: bool,
    /// For each PE, whether it loads and stores the memory of all PEs of its host.
    pub near: Vec<bool>,
}

/// What a PE tells of its routes: whether all are mapped, the first PE that it does not reach and
/// why, the first whose NIC it does not reach or not by the transport of all others, that transport's
/// name, whether it sends active messages, whether anything goes by a transport that pins, whether
/// data to another's GPU go by way of host memory, and whether it loads and stores the memory of all PEs
/// of its host.
type Told = (
    bool,
    Option<(usize, String)>,
    Option<usize>,
    Option<String>,
    bool,
    bool,
    bool,
    bool,
);

/// Every PE must reach every PE's host memory. Global visibility where every PE maps every PE (M24
/// to M26), whatever checked mode does with that.
pub(super) fn agree_on_routes(
    bootstrap: &dyn Bootstrap,
    routes: &Routes,
    pinned: bool,
    near: bool,
) -> Result<Agreed> {
    let others = (0..)
        .zip(&routes.paths)
        .filter(|(pe, _)| *pe != bootstrap.rank());
    let staged = others.into_iter().any(|(_, ways)| ways.gpu == Path::Staged);
    // One device at each PE performs them all (M29): that of one transport.
    let nic = routes.paths.first().map_or(Path::None, |ways| ways.nic);
    let other = |ways: &PeerPaths| ways.nic == Path::None || ways.nic != nic;
    let no_nic = routes.paths.iter().position(other);
    let nic = nic.transport().and_then(|index| routes.opened.get(index));
    let nic = nic.map(|named| named.name.to_owned());
    let messages = |ways: &PeerPaths| matches!(ways.host_atomics, Path::Message(_));
    let mine: Told = (
        routes.all_mapped(),
        routes.first_unreachable(),
        no_nic,
        nic,
        routes.paths.iter().any(messages),
        pinned,
        staged,
        near,
    );
    let all: Vec<Told> = exchange(bootstrap, &mine)?;
    let mut agreed = Agreed {
        visibility: Visibility::Global,
        nics: true,
        no_nics: String::new(),
        messages: false,
        pinned: false,
        staged: false,
        near: Vec::with_capacity(all.len()),
    };
    let first_nic = all.first().and_then(|told| told.3.clone());
    for (from, told) in all.into_iter().enumerate() {
        let (mapped, unreachable, no_nic, nic, messages, pinned, staged, near) = told;
        let no_nic = no_nic.or((nic != first_nic).then_some(0));
        if let Some((pe, why)) = unreachable {
            return Err(Error::Unreachable {
                call: "init",
                from,
                pe,
                why,
            });
        }
        if !mapped {
            agreed.visibility = Visibility::Local;
        }
        if let Some(pe) = no_nic {
            if agreed.nics {
                agreed.no_nics = format!("PE {from} has no transport whose NIC does so at PE {pe}");
            }
            agreed.nics = false;
        }
        agreed.messages |= messages;
        agreed.pinned |= pinned;
        agreed.staged |= staged;
        agreed.near.push(near);
    }
    Ok(agreed)
}
