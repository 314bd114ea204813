//! How a PE becomes part of its job: the PEs exchange cards, agree, share memory and choose routes.
//!
//! 1. Every PE opens its transports and shows a [`Card`]; from all cards each computes the same
//!    heap limit, and refuses to go on where the cards must agree and do not. A transport with
//!    several devices is opened after that, on the one that suits all PEs of the host.
//! 2. Each creates its heap, with the library's own words and the statics in it, and registers it.
//! 3. Keys are exchanged, descriptors among the PEs of one host; each PE imports what it can reach
//!    and chooses, for each peer, the transports that operations take.

mod card;
mod devices;
mod endpoints;
mod hosts;
mod lanes;
mod reach;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_heap::{Mapping, Segment, SegmentOptions};
use oxshmem_transport::{HostId, Job, Memory, MemoryKind, Pe, Schedule, Transport};

use self::card::{Card, show_cards};
use self::devices::{Doors, Found};
use self::hosts::Hosts;
use self::lanes::{connect_lanes, lanes_used};
use self::reach::{Means, Reached, Shared, agree_on_routes, reach};

use crate::alloc::{Heap, OWN, STATIC};
use crate::check::{SLOTS, Shadow};
use crate::config::{self, Config};
use crate::gpu::GpuFlushes;
use crate::messages::Message;
use crate::order::Inserted;
use crate::peers::{MappedHeap, Peers};
use crate::registry::{self, Spec};
use crate::routes::choose::Preference;
use crate::routes::{Routes, Rules};
use crate::simulated::Simulation;
use crate::sync::Internal;
use crate::wire::Wire;
use crate::world::Given;
use crate::{Error, Result, Sym, Visibility, World, report, statics, world};

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
    pub routes: Routes,
    pub visibility: Visibility,
    pub hosts: Vec<String>,
    pub gpu: Option<Memory>,
    pub gpu_flushes: GpuFlushes,
    pub simulation: Option<Simulation>,
    pub schedule: Option<Arc<dyn Schedule>>,
    pub omitted: Option<Inserted>,
}

/// A host's memory where it does not tell.
const UNKNOWN_MEMORY: u64 = 1 << 30;
/// Iterations a wait spins where every PE has a CPU: some tens of microseconds.
const SPIN: u32 = 20_000;

pub(crate) fn join(config: Config, warnings: &[String], given: Given) -> Result<World> {
    let (bootstrap, linger) = match given.bootstrap {
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
    // Who names transports, by either way, says which to prefer.
    let preference = match (&given.transports, &config.transports) {
        (None, None) => Preference::Nearest,
        _ => Preference::AsGiven,
    };
    let available = given.transports.unwrap_or_else(registry::built_in);
    let chosen = registry::select(available, config.transports.as_deref(), config.seed)?;
    let found = Found::look(&chosen, &job, &config.nics, config.topology.as_deref())?;

    let mut cards = show_cards(bootstrap.as_ref(), &my_card(&config, host, &found))?;
    check_rules(&config.rules, &chosen, &cards)?;
    let on_hosts = Hosts::of(&cards);
    let Doors {
        mut opened,
        named,
        unavailable,
    } = found.open(bootstrap.as_ref(), &job, &mut cards, &on_hosts)?;
    let limit = on_hosts.agree_on_limit(&cards)?;
    let oversubscribed = on_hosts.oversubscribed(&cards);
    let here = oversubscribed.get(me as usize).copied().unwrap_or(true);
    // The same on every PE: the shape of the arrival words follows from it.
    let anywhere = oversubscribed.contains(&true);

    let tag = world::next_tag()?;
    let node = oxshmem_topo::nearest_node().ok().flatten();
    let numa_node = node.and_then(|n| u32::try_from(n).ok());
    let options = SegmentOptions {
        huge_pages: config.huge_pages,
        numa_node,
    };
    let segment = Segment::create(limit as usize, &options)?;
    let own = Arc::clone(segment.mapping());
    let descriptor = Some(Arc::clone(segment.descriptor()));
    let mut heap = Heap::new(segment);
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

    let owner = Arc::clone(&own) as _;
    // SAFETY: the mapping keeps the bytes mapped; this library accesses them through Span alone.
    let memory = unsafe { Memory::new(own.base(), own.len(), MemoryKind::Host, descriptor, owner) };
    for transport in &mut opened {
        let carries = transport.domain.capabilities().memory;
        if carries.contains(&MemoryKind::Host) {
            transport.heap = Some(transport.domain.register(&memory)?);
        }
        if let Some(gpu) = &given.gpu_heap
            && carries.contains(&gpu.kind())
        {
            transport.gpu = Some(transport.domain.register(gpu)?);
        }
    }
    let host_heap = Shared {
        kind: MemoryKind::Host,
        len: own.len(),
        own: Some(&own),
        regions: opened.iter().map(|t| t.heap.as_deref()).collect(),
    };
    let gpu_heap = given.gpu_heap.as_ref().map(|gpu| Shared {
        kind: gpu.kind(),
        len: gpu.len(),
        own: None,
        regions: opened.iter().map(|t| t.gpu.as_deref()).collect(),
    });
    let heaps: Vec<_> = [host_heap].into_iter().chain(gpu_heap).collect();
    let means = Means {
        opened: &opened,
        rules: &config.rules,
        unavailable: &unavailable,
        preference,
    };
    let Reached {
        mapped,
        accessors,
        routes,
    } = reach(bootstrap.as_ref(), &cards, &means, named, &heaps)?;

    // Checked mode: the slow branch checks, so no peer is mapped.
    let unmapped = |pe: usize| config.check || !mapped.get(pe).is_some_and(MappedHeap::is_mapped);
    let lanes = lanes_used(&routes.ways, unmapped);
    let visible = if config.check {
        vec![MappedHeap::default(); mapped.len()]
    } else {
        mapped
    };
    // SAFETY: each heap was mapped whole by its transport (`reach` compared the length with the
    // agreed limit, the bound of every Sym), and PEs access it through Span alone.
    let peers = unsafe { Peers::new(tag, visible) };
    connect_lanes(bootstrap.as_ref(), &cards, &opened, &lanes)?;
    let domains = || opened.iter().map(|t| &t.domain);
    let gpu_flushes = GpuFlushes::of(domains());
    let schedule = domains().find_map(|domain| domain.schedule());
    // On real memory and lanes nothing is ever left out.
    let omitted = given.omitted.filter(|_| schedule.is_some());
    let simulation = Simulation::of(accessors, omitted);
    let wire = Wire::new(me as usize, opened, routes.ways.to_vec());
    // Checked mode ends what it has entered at each fence and quiet.
    if simulation.is_some() || given.gpu_heap.is_some() || config.check {
        wire.never_idle();
    }
    hear_of_exits(&bootstrap, &peers, &wire, &gpu_flushes)?;
    let visibility = agree_on_routes(bootstrap.as_ref(), &routes)?;
    let spin = match config.spin {
        Some(spin) => spin,
        // A lane moves only when it is driven, which the spinning phase does not do.
        None if here || lanes.iter().any(|used| !used.is_empty()) => 0,
        None => SPIN,
    };
    let mut hosts: Vec<String> = cards.into_iter().map(|c| c.host).collect();
    // The names took the place of the cards, which were larger.
    hosts.shrink_to_fit();
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
        gpu: given.gpu_heap,
        gpu_flushes,
        simulation,
        schedule,
        omitted,
    }))
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

/// That the rules name what there is.
fn check_rules(rules: &Rules, transports: &[Arc<dyn Transport>], cards: &[Card]) -> Result<()> {
    let names: Vec<&str> = transports.iter().map(|t| t.name()).collect();
    let hosts: Vec<&str> = cards.iter().map(|card| card.host.as_str()).collect();
    rules.check(&names, &hosts).map_err(|why| Error::Config {
        name: "OXSHMEM_ROUTE".into(),
        value: rules.to_string(),
        why,
    })
}

fn my_card(config: &Config, host: String, found: &Found) -> Card {
    let memory = oxshmem_heap::available::Available::now().map_or(UNKNOWN_MEMORY, |a| a.total);
    let cpus = oxshmem_topo::usable_cpus().ok();
    Card {
        version: env!("CARGO_PKG_VERSION").into(),
        host,
        cpu_count: cpus.as_ref().map_or(1, |c| c.count()),
        cpus: cpus.map(|c| c.allowed.to_string()).unwrap_or_default(),
        limit: config.heap_limit,
        memory,
        model: config.model,
        check: config.check,
        huge_pages: format!("{:?}", config.huge_pages),
        statics: statics::digest(),
        wanted: config.transports.as_deref().map(Spec::list),
        seed: config.seed,
        rules: config.rules.to_string(),
        transports: found.shown(),
        offers: found.offers(),
    }
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

/// From here on a PE's end reaches the table that waits look at.
fn hear_of_exits(
    bootstrap: &Arc<dyn Bootstrap>,
    peers: &Peers,
    wire: &Wire,
    gpu: &GpuFlushes,
) -> Result<()> {
    let domains: Vec<_> = wire
        .transports
        .iter()
        .map(|t| Arc::clone(&t.domain))
        .collect();
    let lose = peers.loser();
    let lose = Arc::new(move |pe: u32, orderly: bool| {
        // The domains first: who sees the loss may rely on its operations being given up.
        for domain in &domains {
            domain.peer_lost(Pe(pe));
        }
        lose(pe as usize, orderly);
    });
    let (gave_up, gpu) = (Arc::clone(&lose), gpu.clone());
    // Weak: the bootstrap holds the handler.
    let answer_by = Arc::downgrade(bootstrap);
    bootstrap.on_message(Box::new(move |from, bytes| {
        match Message::of_bytes(bytes) {
            Some(Message::GaveUp) => gave_up(from, false),
            Some(Message::FlushGpu(number)) => {
                let answer = gpu.asked(number).to_bytes();
                // Who is gone needs no answer.
                let _ = answer_by.upgrade().map(|b| b.send(from, &answer));
            }
            Some(Message::Flushed(number, why)) => gpu.answered(from as usize, number, why),
            None => report::warn(&format!(
                "PE {from} sent {} bytes that this version of oxshmem does not understand",
                bytes.len()
            )),
        }
    }))?;
    bootstrap.on_exit(Box::new(move |exit| lose(exit.rank, exit.orderly)))?;
    Ok(())
}
