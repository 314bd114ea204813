//! How a PE becomes part of its job: the PEs exchange cards, agree, share memory and choose routes.
//!
//! 1. Every PE opens its transports and shows a [`Card`]; from all cards each computes the same
//!    heap limit, and refuses to go on where the cards must agree and do not.
//! 2. Each creates its heap, with the library's own words and the statics in it, and registers it.
//! 3. Keys are exchanged, descriptors among the PEs of one host; each PE imports what it can reach
//!    and takes, for each peer, the first transport that reaches it.

mod reach;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_heap::{Mapping, Segment, SegmentOptions};
use oxshmem_transport::{HostId, Job, Memory, MemoryKind, Pe, Transport, WireUp};
use serde::{Deserialize, Serialize};

use self::reach::{Reached, agree_on_routes, reach};

use crate::alloc::{Heap, OWN, STATIC};
use crate::check::{SLOTS, Shadow};
use crate::config::{self, Config, MemoryModel};
use crate::peers::{MappedHeap, Peers};
use crate::registry;
use crate::routes::{Considered, Route};
use crate::sync::Internal;
use crate::wire::{Opened, Wire};
use crate::{Error, Result, Sym, Visibility, World, report, statics, world};

/// What a PE tells all others about itself.
#[derive(Serialize, Deserialize)]
struct Card {
    version: String,
    host: String,
    cpus: Vec<usize>,
    cpu_count: usize,
    /// The heap limit that the PE's settings ask for, in bytes.
    limit: Option<u64>,
    /// What the PE may use of its host's memory, in bytes.
    memory: u64,
    model: MemoryModel,
    check: bool,
    huge_pages: String,
    statics: u64,
    /// Name, address, and whether lanes must be connected, of each open transport.
    transports: Vec<(String, Vec<u8>, bool)>,
}

/// What a world is made of.
pub(crate) struct Parts {
    pub tag: u32,
    pub spin: u32,
    pub config: Config,
    pub bootstrap: Arc<dyn Bootstrap>,
    pub linger: bool,
    pub own: Arc<Mapping>,
    pub heap: Heap,
    pub internal: Internal,
    pub shadow: Option<Shadow>,
    pub statics: Vec<Sym<u8>>,
    pub peers: Peers,
    pub wire: Wire,
    pub routes: Vec<Route>,
    pub visibility: Visibility,
    pub hosts: Vec<String>,
}

/// The smallest heap that makes sense: the library's own words and a little more.
const LEAST_LIMIT: u64 = 1 << 20;
/// A host's memory where it does not tell.
const UNKNOWN_MEMORY: u64 = 1 << 30;
/// Iterations a wait spins where every PE has a CPU: some tens of microseconds.
const SPIN: u32 = 20_000;

pub(crate) fn join(
    config: Config,
    warnings: &[String],
    bootstrap: Option<Arc<dyn Bootstrap>>,
    transports: Option<Vec<Arc<dyn Transport>>>,
) -> Result<World> {
    let (bootstrap, linger) = match bootstrap {
        Some(bootstrap) => (bootstrap, false),
        None => (join_environment(&config)?, true),
    };
    if bootstrap.rank() == 0 {
        warnings.iter().for_each(|w| report::warn(w));
    }
    let (me, size) = (bootstrap.rank(), bootstrap.size());
    let host = match &config.host_id {
        Some(id) => id.clone(),
        None => oxshmem_topo::boot_id().unwrap_or_else(|_| oxshmem_topo::hostname()),
    };
    let job = Job {
        me: Pe(me),
        size,
        host: HostId(host.clone()),
    };
    let available = transports.unwrap_or_else(registry::built_in);
    let chosen = registry::select(available, config.transports.as_deref())?;
    let (mut opened, unavailable) = open(&chosen, &job);

    let cards = show_cards(bootstrap.as_ref(), &my_card(&config, host, &opened)?)?;
    let limit = agree_on_limit(&cards)?;
    let oversubscribed = |pe| oversubscribed(&cards, pe);
    let here = oversubscribed(me as usize);
    // The same on every PE: the shape of the arrival words follows from it.
    let anywhere = (0..cards.len()).any(oversubscribed);

    let tag = world::next_tag()?;
    let node = oxshmem_topo::nearest_node().ok().flatten();
    let numa_node = node.and_then(|n| u32::try_from(n).ok());
    let options = SegmentOptions {
        huge_pages: config.huge_pages,
        numa_node,
    };
    let mut heap = Heap::new(Segment::create(limit as usize, &options)?);
    let own = Arc::clone(heap.segment.mapping());
    let internal = Internal::new(size as usize, anywhere, |bytes| {
        heap.place_permanent(tag, OWN, bytes, 1)
    })?;
    let shadow = match config.check {
        true => {
            let bytes = SLOTS * size_of::<u64>();
            Some(Shadow::new(
                heap.place_permanent(tag, OWN, bytes, 1)?.cast()?,
            ))
        }
        false => None,
    };
    let statics = place_statics(tag, &mut heap, &own)?;

    let descriptor = Some(Arc::clone(heap.segment.descriptor()));
    let owner = Arc::clone(&own) as _;
    // SAFETY: the mapping keeps the bytes mapped; this library accesses them through Span alone.
    let memory = unsafe { Memory::new(own.base(), own.len(), MemoryKind::Host, descriptor, owner) };
    for transport in &mut opened {
        transport.heap = Some(transport.domain.register(&memory)?);
    }
    let reached = reach(bootstrap.as_ref(), &cards, &opened, unavailable, &own)?;
    let Reached {
        mapped,
        by_pe,
        routes,
    } = reached;

    let unmapped: BTreeSet<usize> = (0..size as usize)
        .filter(|&pe| config.check || !has(&mapped, pe))
        .collect();
    // Checked mode: the slow branch checks, so no peer is mapped.
    let visible = if config.check {
        mapped.iter().map(|_| None).collect()
    } else {
        mapped
    };
    // SAFETY: each heap was mapped whole by its transport (`reach` compared the length with the
    // agreed limit, the bound of every Sym), and PEs access it through Span alone.
    let peers = unsafe { Peers::new(tag, visible) };
    let wire = Wire::new(opened, by_pe);
    connect_lanes(bootstrap.as_ref(), &cards, &wire, &unmapped)?;
    hear_of_exits(bootstrap.as_ref(), &peers, &wire)?;
    let visibility = agree_on_routes(bootstrap.as_ref(), &routes)?;
    let spin = match config.spin {
        Some(spin) => spin,
        // A lane moves only when it is driven, which the spinning phase does not do.
        None if here || !unmapped.is_empty() => 0,
        None => SPIN,
    };
    let hosts = cards.into_iter().map(|c| c.host).collect();
    Ok(World::assemble(Parts {
        tag,
        spin,
        config,
        bootstrap,
        linger,
        own,
        heap,
        internal,
        shadow,
        statics,
        peers,
        wire,
        routes,
        visibility,
        hosts,
    }))
}

fn has(mapped: &[Option<MappedHeap>], pe: usize) -> bool {
    mapped.get(pe).is_some_and(Option::is_some)
}

/// The environment describes one PE, so a process can be that PE once.
fn join_environment(config: &Config) -> Result<Arc<dyn Bootstrap>> {
    static JOINED: AtomicBool = AtomicBool::new(false);
    let job = oxshmem_bootstrap::describes_job(&config::environment);
    if job && JOINED.swap(true, Ordering::Relaxed) {
        return Err(Error::AlreadyJoined);
    }
    oxshmem_bootstrap::join(&config::environment, config.bootstrap_timeout)
        .inspect_err(|_| JOINED.store(false, Ordering::Relaxed))
        .map_err(Error::from)
}

/// Opens every transport that works here; the others say why not.
fn open(transports: &[Arc<dyn Transport>], job: &Job) -> (Vec<Opened>, Vec<Considered>) {
    let mut opened = Vec::new();
    let mut unavailable = Vec::new();
    for transport in transports {
        let domain = transport.probe().and_then(|devices| {
            let device = devices
                .first()
                .ok_or(oxshmem_transport::Error::Unavailable {
                    transport: transport.name(),
                    why: "no device".into(),
                })?;
            transport.open(device, job)
        });
        match domain {
            Ok(domain) => opened.push(Opened::new(transport.name(), domain)),
            Err(error) => unavailable.push(Considered {
                transport: transport.name().into(),
                answer: error.to_string(),
            }),
        }
    }
    (opened, unavailable)
}

fn my_card(config: &Config, host: String, opened: &[Opened]) -> Result<Card> {
    let memory = oxshmem_heap::available::Available::now().map_or(UNKNOWN_MEMORY, |a| a.total);
    let cpus = oxshmem_topo::usable_cpus().ok();
    Ok(Card {
        version: env!("CARGO_PKG_VERSION").into(),
        host,
        cpu_count: cpus.as_ref().map_or(1, |c| c.count()),
        cpus: cpus.map(|c| c.allowed.to_vec()).unwrap_or_default(),
        limit: config.heap_limit,
        memory,
        model: config.model,
        check: config.check,
        huge_pages: format!("{:?}", config.huge_pages),
        statics: statics::digest(),
        transports: opened
            .iter()
            .map(|t| {
                let per_lane = t.domain.capabilities().wire_up == WireUp::PerLane;
                (t.name.to_owned(), t.domain.address(), per_lane)
            })
            .collect(),
    })
}

/// Every PE's card, the same on every PE; an error if they cannot make one job.
fn show_cards(bootstrap: &dyn Bootstrap, mine: &Card) -> Result<Vec<Card>> {
    let bytes = serde_json::to_vec(mine).map_err(|e| unreadable(bootstrap.rank(), &e))?;
    let cards = bootstrap
        .allgather(&bytes)?
        .iter()
        .enumerate()
        .map(|(pe, card)| serde_json::from_slice(card).map_err(|e| unreadable(pe as u32, &e)))
        .collect::<Result<Vec<Card>>>()?;
    for (pe, card) in cards.iter().enumerate() {
        let differ = |what: &str, mine: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
            Err(Error::Disagreement {
                a: bootstrap.rank() as usize,
                b: pe,
                what: format!("{what}: {mine:?} and {theirs:?}"),
            })
        };
        if card.version != mine.version {
            return differ("the version of oxshmem", &mine.version, &card.version);
        }
        if card.model != mine.model {
            return differ("OXSHMEM_MEMORY_MODEL", &mine.model, &card.model);
        }
        if card.check != mine.check {
            return differ("OXSHMEM_CHECK", &mine.check, &card.check);
        }
        if card.huge_pages != mine.huge_pages {
            return differ("OXSHMEM_HUGE_PAGES", &mine.huge_pages, &card.huge_pages);
        }
        if card.statics != mine.statics {
            return differ("the program's symmetric statics", &"some", &"others");
        }
    }
    Ok(cards)
}

fn unreadable(pe: u32, error: &serde_json::Error) -> Error {
    Error::Disagreement {
        a: pe as usize,
        b: pe as usize,
        what: format!("what it tells of itself ({error})"),
    }
}

/// The smallest limit of all PEs (M14), in whole pages. By default half of the host's memory, shared
/// by its PEs.
fn agree_on_limit(cards: &[Card]) -> Result<u64> {
    let limits = cards.iter().map(|card| {
        card.limit.unwrap_or_else(|| {
            let on_host = cards.iter().filter(|c| c.host == card.host).count().max(1);
            oxshmem_heap::limit::default(card.memory, on_host as u32)
        })
    });
    let (pe, limit) = limits
        .enumerate()
        .min_by_key(|(_, limit)| *limit)
        .unwrap_or((0, LEAST_LIMIT));
    // Far below 2^63: offsets and sizes in it are added without overflow.
    let most = 1_u64 << 46;
    if !(LEAST_LIMIT..=most).contains(&limit) {
        return Err(Error::Config {
            name: "OXSHMEM_SYMMETRIC_SIZE".into(),
            value: limit.to_string(),
            why: format!(
                "PE {pe} asks for a symmetric heap of {limit} bytes; \
                 it must have between {LEAST_LIMIT} and {most}"
            ),
        });
    }
    Ok(limit.next_multiple_of(4096))
}

/// Whether the PEs of this host outnumber the CPUs that they may use.
fn oversubscribed(cards: &[Card], me: usize) -> bool {
    let Some(mine) = cards.get(me) else {
        return true;
    };
    let local: Vec<&Card> = cards.iter().filter(|c| c.host == mine.host).collect();
    let union: BTreeSet<usize> = local.iter().flat_map(|c| c.cpus.iter().copied()).collect();
    let sharing = local.iter().filter(|c| c.cpus == mine.cpus).count();
    let quota = local.iter().map(|c| c.cpu_count).max().unwrap_or(1);
    let quota = if quota < mine.cpus.len() {
        quota
    } else {
        union.len()
    };
    local.len() > quota.max(1) || sharing > mine.cpus.len().max(1)
}

fn place_statics(tag: u32, heap: &mut Heap, own: &Mapping) -> Result<Vec<Sym<u8>>> {
    let (bytes, align, offsets) = statics::layout();
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let area = heap.place_permanent(tag, STATIC, bytes, align)?;
    offsets
        .into_iter()
        .zip(statics::initial())
        .map(|(at, initial)| {
            let place = area.range(at..at + initial.len())?;
            let offset = place.offset() as usize;
            // SAFETY: the allocator placed these bytes within the mapping, which is not shared yet.
            unsafe {
                let to = own.base().add(offset).as_ptr();
                oxshmem_heap::copy::copy(to, initial.as_ptr(), initial.len());
            }
            Ok(place)
        })
        .collect()
}

/// Connects the lanes of transports that need it, with the peers that take them.
fn connect_lanes(
    bootstrap: &dyn Bootstrap,
    cards: &[Card],
    wire: &Wire,
    unmapped: &BTreeSet<usize>,
) -> Result<()> {
    let used: BTreeSet<usize> = unmapped
        .iter()
        .filter_map(|&pe| wire.by_pe.get(pe).copied().flatten())
        .collect();
    for (index, transport) in wire.transports.iter().enumerate() {
        if used.contains(&index) {
            transport.open_lane()?;
        }
    }
    // Every PE takes part if any has such a transport, the same on all.
    if !cards
        .iter()
        .any(|c| c.transports.iter().any(|(_, _, per_lane)| *per_lane))
    {
        return Ok(());
    }
    let lane_to = |pe: usize| {
        let index = wire.by_pe.get(pe).copied().flatten()?;
        let transport = wire.transports.get(index)?;
        let per_lane = transport.domain.capabilities().wire_up == WireUp::PerLane;
        (unmapped.contains(&pe) && per_lane).then_some(transport)
    };
    let mine = (0..cards.len())
        .map(|pe| lane_to(pe).map_or(Ok(Vec::new()), |transport| transport.endpoint(pe)))
        .collect::<Result<Vec<_>>>()?;
    let bytes = serde_json::to_vec(&mine).map_err(|e| unreadable(bootstrap.rank(), &e))?;
    for (pe, theirs) in bootstrap.allgather(&bytes)?.iter().enumerate() {
        let Some(transport) = lane_to(pe) else {
            continue;
        };
        let theirs: Vec<Vec<u8>> =
            serde_json::from_slice(theirs).map_err(|e| unreadable(pe as u32, &e))?;
        let towards_me = theirs
            .get(bootstrap.rank() as usize)
            .map_or(&[][..], Vec::as_slice);
        if towards_me.is_empty() {
            return Err(Error::Unreachable {
                call: "init",
                from: bootstrap.rank() as usize,
                pe,
                why: format!("{} is not how it reaches this PE", transport.name),
            });
        }
        transport.connect(pe, towards_me)?;
    }
    Ok(())
}

/// From here on a PE's end reaches the table that waits look at.
fn hear_of_exits(bootstrap: &dyn Bootstrap, peers: &Peers, wire: &Wire) -> Result<()> {
    let lose = Arc::new(peers.loser());
    let gave_up = Arc::clone(&lose);
    // The one message that is sent: see `give_up` in crate::sync.
    bootstrap.on_message(Box::new(move |from, _| gave_up(from as usize, false)))?;
    let domains: Vec<_> = wire
        .transports
        .iter()
        .map(|t| Arc::clone(&t.domain))
        .collect();
    bootstrap.on_exit(Box::new(move |exit| {
        // The domains first: who sees the loss may rely on its operations being given up.
        for domain in &domains {
            domain.peer_lost(Pe(exit.rank));
        }
        lose(exit.rank as usize, exit.orderly);
    }))?;
    Ok(())
}
