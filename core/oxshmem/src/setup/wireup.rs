//! Wire-up: the exchange of keys and descriptors, the import of every PE's heaps, and the choice of a route to each PE.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use oxshmem_bootstrap::{Bootstrap, HexBytes, exchange};
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::memory::simulated::Accessors;
use oxshmem_engine::peer::mapped_table::{Mapped, MappedHeap, OnGpu};
use oxshmem_engine::route::path::{Path, PeerPaths};
use oxshmem_engine::route::reasons::Interner;
use oxshmem_engine::route::rules::{Pair, Rules};
use oxshmem_engine::route::select::{
    ByLane, Candidate, Chosen, Imported, Preference, choose, cpu_atomics, has_nic_atomics,
};
use oxshmem_engine::route::table::{CandidateReasons, ReasonTable, Routes};
use oxshmem_heap::Mapping;
use oxshmem_transport::{Accessor, HostId, MemoryKind, Pe, Peer, Reach, Region, RegionId};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::setup::card::BusinessCard;
use crate::setup::unregistered::{self, Unregistered, UnregisteredRails};

/// Time limit for the PEs of a host to pass descriptors.
pub(crate) const DESCRIPTOR_DEADLINE: Duration = Duration::from_secs(20);

/// A transport that was not opened.
pub(super) struct Unavailable {
    pub name: &'static str,
    pub why: String,
    /// The number of opened transports that come before it.
    pub before: usize,
}

/// One symmetric heap of this PE, as the transports registered it.
pub(super) struct RegisteredHeap<'a> {
    pub kind: MemoryKind,
    /// Its mapping here, if this PE's CPU loads and stores it.
    pub own: Option<&'a Arc<Mapping>>,
    /// By the opened transport's index, the regions; none if the transport does not carry such memory.
    pub regions: Vec<Vec<&'a dyn Region>>,
}

/// Result of the wire-up, by PE.
pub(super) struct Wireup {
    /// Mappings of the host heaps, where there are any.
    pub mapped: Vec<MappedHeap>,
    /// Accessors of the host heaps whose mappings are simulated.
    pub accessors: Vec<Accessors>,
    /// Addresses of the GPU heaps for this PE's GPU, where it reaches them.
    pub on_gpu: Vec<Option<OnGpu>>,
    pub routes: Routes,
    /// The transports with which PEs could not register their heaps.
    pub unregistered: UnregisteredRails,
}

/// The transports by which this PE may reach others, and the rules for their choice.
pub(super) struct RailSet<'a> {
    /// This PE's card, with its devices.
    pub card: Option<&'a BusinessCard>,
    pub opened: &'a [Arc<Rail>],
    pub unavailable: &'a [Unavailable],
    /// Opened ones with which this PE could not register its heap.
    pub unregistered: &'a [Unregistered],
    pub preference: Preference,
    pub rules: &'a Rules,
    /// Whether paths for NIC atomics are wanted.
    pub nics: bool,
}

/// The key of a registered region, for other PEs.
#[derive(Serialize, Deserialize)]
struct Key {
    transport: String,
    /// The memory's kind, by its index among all.
    kind: usize,
    region: u32,
    key: HexBytes,
}

/// One PE's registrations, for all others.
#[derive(Serialize, Deserialize)]
struct Registrations<R> {
    keys: Vec<Key>,
    unregistered: R,
}

/// Exchanges keys and descriptors of the `heaps`, imports every PE's, and chooses the routes. Collective.
pub(super) fn wire_up(
    bootstrap: &dyn Bootstrap,
    cards: &[BusinessCard],
    rails: &RailSet<'_>,
    named: Vec<CandidateReasons>,
    heaps: &[RegisteredHeap<'_>],
) -> Result<Wireup> {
    let me = bootstrap.rank() as usize;
    for rail in rails.opened {
        let peers = cards.iter().enumerate();
        rail.learn_promises(peers.map(|(pe, card)| peer(card, pe, rail.name)));
    }
    let mine = Registrations {
        keys: my_keys(rails.opened, heaps),
        unregistered: rails.unregistered,
    };
    let all: Vec<Registrations<Vec<Unregistered>>> = exchange(bootstrap, &mine)?;
    let unregistered = all.iter().map(|theirs| theirs.unregistered.clone());
    let unregistered = UnregisteredRails::of(unregistered);
    let mut importer = Importer {
        me,
        host: cards.get(me).map_or("", |card| card.host.as_str()),
        rails,
        unregistered: &unregistered,
        descriptors: share_descriptors(bootstrap, cards, rails.opened, heaps)?,
        interner: Interner::default(),
    };
    let (mut mapped, mut accessors) = (Vec::new(), Vec::new());
    let (mut on_gpu, mut peers) = (Vec::new(), Vec::new());
    for (pe, (card, theirs)) in cards.iter().zip(&all).enumerate() {
        let remote = Remote {
            pe,
            card,
            keys: &theirs.keys,
            unregistered: &theirs.unregistered,
        };
        let mut reached = Reached::nothing();
        for heap in heaps {
            importer.reach(heap, &remote, &mut reached);
        }
        mapped.push(reached.mapped);
        accessors.push(reached.accessors);
        on_gpu.push(reached.on_gpu);
        peers.push((reached.paths, reached.reasons));
    }
    let has_gpu = heaps.iter().any(|heap| heap.kind == MemoryKind::Cuda);
    let routes = Routes::new(peers, importer.interner.finish(), named.into(), has_gpu);
    Ok(Wireup {
        mapped,
        accessors,
        on_gpu,
        routes,
        unregistered,
    })
}

/// A PE, as it described itself to this one.
struct Remote<'a> {
    pe: usize,
    card: &'a BusinessCard,
    keys: &'a [Key],
    unregistered: &'a [Unregistered],
}

impl<'a> Remote<'a> {
    /// The PE as a transport knows it.
    fn peer(&self, transport: &str) -> Peer {
        peer(self.card, self.pe, transport)
    }

    /// Its regions' keys for one transport and kind of memory.
    fn keys(&self, transport: &'static str, kind: MemoryKind) -> impl Iterator<Item = &'a Key> {
        let keys = self.keys.iter();
        keys.filter(move |key| key.kind == number(kind) && key.transport == transport)
    }

    /// The reason why it has shown no key for a transport.
    fn why_without(&self, transport: &str) -> Cow<'static, str> {
        match unregistered::reason(self.unregistered, transport) {
            Some(why) => format!("the PE could not register its heap: {why}").into(),
            None => self.card.why_without(transport),
        }
    }
}

/// One PE's heaps, as this PE reaches them.
struct Reached {
    mapped: MappedHeap,
    accessors: Accessors,
    on_gpu: Option<OnGpu>,
    paths: PeerPaths,
    reasons: ReasonTable,
}

impl Reached {
    fn nothing() -> Self {
        Reached {
            mapped: MappedHeap::default(),
            accessors: Accessors::default(),
            on_gpu: None,
            paths: PeerPaths::NONE,
            reasons: ReasonTable::default(),
        }
    }
}

/// Imports heaps and chooses paths, PE after PE.
struct Importer<'a> {
    me: usize,
    /// This PE's host.
    host: &'a str,
    rails: &'a RailSet<'a>,
    unregistered: &'a UnregisteredRails,
    descriptors: Descriptors,
    interner: Interner,
}

impl Importer<'_> {
    /// Imports one heap of a PE by the transports that are chosen for it.
    fn reach(&mut self, heap: &RegisteredHeap<'_>, remote: &Remote<'_>, reached: &mut Reached) {
        let rails = self.rails;
        let is_me = remote.pe == self.me;
        let own = heap.own.filter(|_| is_me);
        let pair = Pair {
            pes: [self.me, remote.pe],
            hosts: [self.host, remote.card.host.as_str()],
        };
        let candidates = rails.candidates(heap, pair, remote);
        let mut mappings = Mappings::default();
        let (mut copies, mut atomics) = choose(rails.preference, &candidates, |index| {
            let descriptors = &mut self.descriptors;
            let imported = mappings.import_chosen(index, rails, heap, remote, descriptors)?;
            if imported == Imported::Lane && own.is_some() {
                return Err(NO_LANE_TO_ONESELF.into());
            }
            Ok(imported)
        });
        if heap.kind != MemoryKind::Host {
            for chosen in [&mut copies, &mut atomics] {
                chosen.or_staged(remote.card.stages, is_me);
            }
        }
        if let Some(own) = own {
            mappings.reach_own(own, &mut copies, &mut atomics);
        }
        let (paths, reasons) = (&mut reached.paths, &mut reached.reasons);
        if heap.kind == MemoryKind::Cuda {
            (paths.gpu, paths.gpu_atomics) = (copies.path, atomics.path);
            reached.on_gpu = mappings.gpu(copies.path, atomics.path);
            (reasons.gpu, reasons.gpu_atomics) = (self.intern(&copies), self.intern(&atomics));
        } else {
            (paths.host, paths.host_atomics) = (copies.path, atomics.path);
            if rails.nics {
                paths.nic = rails.nic_path(heap, pair, remote, (self.unregistered, &mut mappings));
            }
            rails.import_requesters(heap, remote, &mut mappings);
            (reasons.host, reasons.host_atomics) = (self.intern(&copies), self.intern(&atomics));
            (reached.mapped, reached.accessors) = mappings.by(copies.path, atomics.path);
        }
    }

    /// The number of the list of all candidates' answers.
    fn intern(&mut self, chosen: &Chosen<'_>) -> u32 {
        let answers = chosen.answers.iter().map(|(name, why)| (*name, &**why));
        self.interner.list(&answers.collect::<Vec<_>>())
    }
}

impl RailSet<'_> {
    /// Every transport, opened or not, in order, with its answer for one PE's heap.
    fn candidates<'a>(
        &'a self,
        heap: &RegisteredHeap<'_>,
        pair: Pair<'_>,
        remote: &Remote<'_>,
    ) -> Vec<Candidate<'a>> {
        let mut all = Vec::with_capacity(self.opened.len() + self.unavailable.len());
        let refused = |before: usize| {
            let unavailable = self.unavailable.iter();
            let refused = unavailable.filter(move |u| u.before == before);
            refused.map(|unavailable| Candidate {
                name: unavailable.name,
                standing: Err(unavailable.why.as_str().into()),
                reach: Reach::Remote,
                atomics: ByLane::No,
                remark: None,
            })
        };
        for (index, rail) in self.opened.iter().enumerate() {
            all.extend(refused(index));
            let peer = remote.peer(rail.name);
            let mut reach = rail.domain.reach(&peer, heap.kind);
            if let (Reach::None(why), Some(card)) = (&mut reach, self.card) {
                why.push_str(&card.networks_apart(remote.card, rail.name));
            }
            all.push(Candidate {
                name: rail.name,
                standing: self.standing((index, rail), &reach, heap, pair, remote),
                reach,
                atomics: cpu_atomics(
                    rail.domain.capabilities(),
                    &rail.domain.atomics_towards(&peer),
                    heap.kind,
                ),
                remark: rail.domain.explain(&peer),
            });
        }
        all.extend(refused(self.opened.len()));
        all
    }

    /// An opened transport's index, if it can be chosen; else the reason why not.
    fn standing<'a>(
        &'a self,
        (index, rail): (usize, &Rail),
        reach: &Reach,
        heap: &RegisteredHeap<'_>,
        pair: Pair<'_>,
        remote: &Remote<'_>,
    ) -> Result<u8, Cow<'a, str>> {
        let registered = heap.regions.get(index).is_some_and(|all| !all.is_empty());
        let [from, to] = pair.pes;
        if !registered {
            let failed = unregistered::reason(self.unregistered, rail.name);
            Err(Cow::Owned(match (reach, failed) {
                (Reach::None(why), _) => why.clone(),
                (_, Some(why)) => format!("this PE could not register its heap: {why}"),
                (_, None) => format!("it carries no {} memory", heap.kind),
            }))
        } else if let Some(rule) = self.rules.refuse(pair, rail.name) {
            Err(rule.into())
        } else if remote.keys(rail.name, heap.kind).next().is_none() {
            Err(remote.why_without(rail.name))
        } else if from == to && heap.own.is_some() && *reach == Reach::Remote {
            Err(NO_LANE_TO_ONESELF.into())
        } else {
            // The indices end before the one that names a PE's own memory.
            let index = u8::try_from(index).ok().filter(|&index| index != Path::OWN);
            index.ok_or("too many transports".into())
        }
    }

    /// Imports the heap, too, of a PE that may send active messages, though this PE takes another path to it: the replies
    /// go into that heap.
    fn import_requesters(
        &self,
        heap: &RegisteredHeap<'_>,
        remote: &Remote<'_>,
        mappings: &mut Mappings,
    ) {
        for (index, rail) in (0..).zip(self.opened) {
            let peer = remote.peer(rail.name);
            if !rail.is_retired()
                && rail.domain.capabilities().message > 0
                && rail.domain.reach(&peer, heap.kind) == Reach::Remote
            {
                // A PE whose heap cannot be imported sends no messages here: it cannot be reached either.
                let _ = mappings.import((index, rail), &peer, remote, None, heap);
            }
        }
    }

    /// The path of atomics that a PE's NIC performs, to this PE itself as to others: all atomics on one word go by the NIC of
    /// the PE that has it (M29). All PEs take one transport, with which each has registered its heap.
    fn nic_path(
        &self,
        heap: &RegisteredHeap<'_>,
        pair: Pair<'_>,
        remote: &Remote<'_>,
        (unregistered, mappings): (&UnregisteredRails, &mut Mappings),
    ) -> Path {
        for (index, rail) in (0..).zip(self.opened) {
            let peer = remote.peer(rail.name);
            if !unregistered.names(rail.name)
                && has_nic_atomics(&rail.domain.atomics_towards(&peer))
                && self.rules.refuse(pair, rail.name).is_none()
                && rail.domain.reach(&peer, heap.kind) == Reach::Remote
                && mappings.import((index, rail), &peer, remote, None, heap) == Ok(Imported::Lane)
            {
                return Path::Lane(index);
            }
        }
        Path::None
    }
}

const NO_LANE_TO_ONESELF: &str = "a PE's own memory needs no lane";

/// Accesses of this PE's processors to a peer's heap, by the index of the transport that mapped it.
#[derive(Default)]
struct Mappings(Vec<(u8, HeapAccess)>);

#[derive(Clone)]
enum HeapAccess {
    /// Loads and stores of the CPU.
    Mapped(Mapped),
    Simulated(Arc<dyn Accessor>),
    /// By its GPU alone.
    Gpu(OnGpu),
}

impl Mappings {
    /// Imports a heap by the transport with this index, with the descriptor that came for it.
    fn import_chosen(
        &mut self,
        index: u8,
        rails: &RailSet<'_>,
        heap: &RegisteredHeap<'_>,
        remote: &Remote<'_>,
        descriptors: &mut Descriptors,
    ) -> Result<Imported, String> {
        let Some(rail) = rails.opened.get(usize::from(index)) else {
            return Err("it is not open".into());
        };
        let descriptor = descriptors.take(remote.pe, index, heap.kind);
        let peer = remote.peer(rail.name);
        if descriptor.is_none()
            && rail.domain.wants_descriptor(&peer, heap.kind)
            && let Some(why) = &descriptors.failure
        {
            return Err(why.clone());
        }
        self.import((index, rail), &peer, remote, descriptor, heap)
    }

    /// Imports a heap by one transport, region by region.
    fn import(
        &mut self,
        (index, rail): (u8, &Rail),
        peer: &Peer,
        remote: &Remote<'_>,
        mut descriptor: Option<OwnedFd>,
        heap: &RegisteredHeap<'_>,
    ) -> Result<Imported, String> {
        let domain = rail.domain.as_ref();
        let mut first = None;
        for key in remote.keys(rail.name, heap.kind) {
            let id = RegionId(key.region);
            let region = domain
                .import(peer, id, &key.key.0, descriptor.take())
                .map_err(|error| error.to_string())?;
            if (region.len() as u64) < rail.registered_heap(heap.kind).len_of(id) {
                return Err(format!("its heap has only {} bytes there", region.len()));
            }
            first.get_or_insert(region);
        }
        let region = first.ok_or("it has shown no key")?;
        if rail.pins() || heap.kind != MemoryKind::Host {
            rail.registered_heap(heap.kind).imports_from(peer);
        }
        if let Some(address) = region.on_gpu() {
            let _keep = region.keep_alive();
            let on_gpu = HeapAccess::Gpu(OnGpu { address, _keep });
            self.0.push((index, on_gpu));
        }
        if !matches!(domain.reach(peer, heap.kind), Reach::Mapped { .. }) {
            return Ok(Imported::Lane);
        }
        let access = match (region.mapped(), region.accessor()) {
            (Some(base), _) => HeapAccess::Mapped(Mapped {
                base,
                keep: region.keep_alive(),
            }),
            (None, Some(accessor)) => HeapAccess::Simulated(accessor),
            (None, None) => return Ok(Imported::Lane),
        };
        self.0.push((index, access));
        Ok(Imported::Mapped)
    }

    fn access(&self, path: Path) -> Option<&HeapAccess> {
        let Path::Mapped(index) = path else {
            return None;
        };
        let found = self.0.iter().find(|(known, _)| *known == index);
        found.map(|(_, access)| access)
    }

    /// Adds this PE's own memory, which needs no transport: its CPU loads and stores it, and no other PE could do atomics
    /// there if they were not the CPU's (M29). If the CPU is simulated, it is that one.
    fn reach_own<'a>(
        &mut self,
        own: &Arc<Mapping>,
        copies: &mut Chosen<'a>,
        atomics: &mut Chosen<'a>,
    ) {
        let simulated = [copies.path, atomics.path]
            .into_iter()
            .find(|path| matches!(self.access(*path), Some(HeapAccess::Simulated(_))));
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
        self.0.push((Path::OWN, HeapAccess::Mapped(mapped)));
    }

    /// The heap's address for this PE's GPU, if that GPU performs the copies and atomics of the lane.
    fn gpu(&self, copies: Path, atomics: Path) -> Option<OnGpu> {
        let (Path::Lane(index), Path::Lane(same)) = (copies, atomics) else {
            return None;
        };
        self.0.iter().find_map(|(known, access)| match access {
            HeapAccess::Gpu(on_gpu) if *known == index && index == same => Some(on_gpu.clone()),
            _ => None,
        })
    }

    /// The mappings and accessors for operations that take these paths.
    fn by(&self, copies: Path, atomics: Path) -> (MappedHeap, Accessors) {
        let mapped = |path| match self.access(path) {
            Some(HeapAccess::Mapped(mapped)) => Some(mapped.clone()),
            _ => None,
        };
        let simulated = |path| match self.access(path) {
            Some(HeapAccess::Simulated(accessor)) => Some(Arc::clone(accessor)),
            _ => None,
        };
        let heap = MappedHeap {
            copies: mapped(copies),
            words: mapped(atomics),
        };
        let accessors = Accessors {
            copies: simulated(copies),
            atomics: simulated(atomics),
        };
        (heap, accessors)
    }
}

fn my_keys(rails: &[Arc<Rail>], heaps: &[RegisteredHeap<'_>]) -> Vec<Key> {
    let mut keys = Vec::new();
    for heap in heaps {
        for (rail, regions) in rails.iter().zip(&heap.regions) {
            keys.extend(regions.iter().map(|region| Key {
                transport: rail.name.into(),
                kind: number(heap.kind),
                region: region.id().0,
                key: HexBytes(region.key().to_vec()),
            }));
        }
    }
    keys
}

/// The index of a kind of memory among all.
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
    /// The transport's index.
    transport: usize,
    kind: MemoryKind,
    fd: OwnedFd,
}

/// The descriptors that have arrived and are not used yet.
#[derive(Default)]
struct Descriptors {
    held: Vec<Descriptor>,
    /// The reason why some did not arrive.
    failure: Option<String>,
}

impl Descriptors {
    fn take(&mut self, pe: usize, transport: u8, kind: MemoryKind) -> Option<OwnedFd> {
        let wanted = (pe, usize::from(transport), kind);
        let held = |d: &Descriptor| (d.pe, d.transport, d.kind) == wanted;
        let index = self.held.iter().position(held)?;
        Some(self.held.swap_remove(index).fd)
    }
}

/// Passes the heaps' descriptors among the PEs of this host that need them to map each other.
fn share_descriptors(
    bootstrap: &dyn Bootstrap,
    cards: &[BusinessCard],
    rails: &[Arc<Rail>],
    heaps: &[RegisteredHeap<'_>],
) -> Result<Descriptors> {
    let mut all = Descriptors::default();
    for heap in heaps {
        for (index, (rail, regions)) in rails.iter().zip(&heap.regions).enumerate() {
            let Some(descriptor) = regions.first().and_then(|region| region.descriptor()) else {
                continue;
            };
            let among: Vec<u32> = (0..)
                .zip(cards)
                .filter(|(pe, card)| {
                    let peer = peer(card, *pe as usize, rail.name);
                    *pe == bootstrap.rank()
                        || card.transport(rail.name).is_some()
                            && rail.domain.wants_descriptor(&peer, heap.kind)
                })
                .map(|(pe, _)| pe)
                .collect();
            if among.len() < 2 {
                continue;
            }
            match bootstrap.share_descriptors(&among, &[descriptor], DESCRIPTOR_DEADLINE) {
                Ok(shared) => {
                    let pieces = rail.registered_heap(heap.kind);
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
