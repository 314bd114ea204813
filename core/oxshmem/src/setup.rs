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
mod hosts;
mod lanes;
mod layout;
#[cfg(test)]
mod tests;
mod wireup;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use oxshmem_bootstrap::{Bootstrap, exchange};
use oxshmem_heap::{HugePages, Mapping, Segment, SegmentOptions};
use oxshmem_transport::{HostId, Job, MemoryKind, Pe, Schedule, Transport};

use self::card::{BusinessCard, agree_on_gpu_limit, exchange_cards};
use self::devices::{OpenedRails, Probe};
use self::hosts::Hosts;
use self::lanes::lanes_used;
use self::layout::{HeapLayout, HeapParts};
pub(crate) use self::wireup::DESCRIPTOR_DEADLINE;
use self::wireup::{Agreed, RailSet, Wireup, WireupShared, agree_on_routes, reach};

use crate::alloc::Heap;
#[cfg(feature = "cuda")]
use crate::alloc::OWN;
use crate::collectives::slots::mailbox::Mailbox;
use crate::collectives::sync_area::{SyncArea, SyncAreaPlan};
use crate::config::{self, Atomics, Config};
use crate::control::{ControlRequest, ControlRequests, Message};
use crate::gpu::GpuFlushes;
use crate::gpu::staging_server::{Slots, StagingServer};
#[cfg(feature = "cuda")]
use crate::gpu::{self, GpuMemory, cuda::Gpu};
use crate::growth::Growth;
use crate::hang::LongWaits;
use crate::lane::{BouncePool, Extents, Lanes, PendingReplies, Rail};
use crate::lock::BrokenLocks;
use crate::log;
use crate::order::FenceSite;
#[cfg(feature = "cuda")]
use crate::peer::OnGpu;
use crate::peer::{Liveness, MappedHeap, PeerTable};
use crate::registry::{self, Spec};
use crate::route::select::Preference;
use crate::route::{Path, PeerPaths, Routes, Rules};
use crate::service::ProgressThread;
use crate::simulated::Simulation;
use crate::stats::Stats;
#[cfg(feature = "cuda")]
use crate::stream::gpu_streams::{GpuStreams, GpuSyncWords};
use crate::trace::{Trace, Track};
use crate::world::{NicAtomics, Overrides, ProgramMemory};
use crate::{Error, Result, Sym, Visibility, World, goodbye, report, statics, trace, world};

/// What a world is made of.
pub(crate) struct Parts {
    pub spin: u32,
    pub config: Config,
    pub bootstrap: Arc<dyn Bootstrap>,
    pub linger: bool,
    pub own: Arc<Mapping>,
    pub limit: usize,
    pub heap: Heap,
    pub internal: SyncArea,
    pub shadow: Option<Sym<u64>>,
    pub mailbox: Option<Mailbox>,
    pub active: PendingReplies,
    pub bounces: BouncePool,
    pub statics: Vec<Sym<u8>>,
    pub program: Option<Arc<ProgramMemory>>,
    pub peers: PeerTable,
    pub transports: Vec<Arc<Rail>>,
    pub always: bool,
    /// The default context's lanes.
    pub wire: Lanes,
    pub routes: Routes,
    pub visibility: Visibility,
    pub nic_atomics: NicAtomics,
    pub services: Vec<ProgressThread>,
    pub lane_spin: u32,
    pub takes_turns: bool,
    pub questions: ControlRequests,
    pub lasting: LongWaits,
    pub broken_locks: BrokenLocks,
    pub lose: PeerFailureSink,
    /// By pieces where some PE's transport pins what it registers.
    pub growth: Growth,
    pub gpu_growth: Growth,
    pub hosts: Vec<String>,
    pub trace: Option<Arc<Trace>>,
    pub stats: Option<Stats>,
    pub gpu_heap: Heap,
    pub gpu_flushes: GpuFlushes,
    #[cfg(feature = "cuda")]
    pub gpu_side: Option<GpuStreams>,
    pub stage: Arc<StagingServer>,
    pub simulation: Option<Simulation>,
    pub schedule: Option<Arc<dyn Schedule>>,
    pub omitted: Option<FenceSite>,
}

/// Takes a PE as lost, because a lane finds it so.
pub(crate) type PeerFailureSink = Arc<dyn Fn(u32) + Send + Sync>;

/// A host's memory where it does not tell.
const UNKNOWN_MEMORY: u64 = 1 << 30;
/// A heap's mapping is of whole pages.
const PAGE: u64 = 4096;
/// Bytes of the smallest heap for which the library lays out its own memory, though the program has a smaller one.
const LEAST_PLANNED: u64 = 1 << 20;
/// Iterations a wait spins where every PE has a CPU: some tens of microseconds.
const SPIN: u32 = 20_000 / UNOPTIMISED;
/// Rounds of progress a wait makes before it yields, where every PE has a CPU and some are reached by
/// lanes: some hundred microseconds. For what a lane brings by itself it makes more.
const LANE_SPIN: u32 = 2_000 / UNOPTIMISED;
/// How many times as long an iteration takes in a build without optimisation.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

pub(crate) fn join(mut config: Config, warnings: &[String], mut given: Overrides) -> Result<World> {
    let logs = config.log.take().map(log::begin);
    let (bootstrap, linger) = match given.bootstrap {
        Some(bootstrap) => (bootstrap, false),
        None => (join_environment(&config)?, true),
    };
    if linger {
        goodbye::begin();
        log::joined(bootstrap.rank());
    }
    if bootstrap.rank() == 0 {
        warnings.iter().for_each(|w| report::warn(w));
        if logs == Some(false) {
            report::warn(
                "OXSHMEM_LOG has no effect: the program has a `tracing` subscriber of its own, which \
                 gets what would be logged",
            );
        }
    }
    let from_a_pool = matches!(
        config.huge_pages,
        HugePages::Explicit2M | HugePages::Explicit1G
    );
    let is_left_out = from_a_pool && given.program.take().is_some();
    if is_left_out && bootstrap.rank() == 0 {
        report::warn(
            "the program's own memory has ordinary pages and is not symmetric; set \
             OXSHMEM_HUGE_PAGES to transparent if it is to be",
        );
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
    #[cfg(all(feature = "cuda", feature = "verbs"))]
    let built_in = given.transports.is_none();
    let available = given.transports.unwrap_or_else(registry::built_in);
    #[cfg(feature = "cuda")]
    let (gpu, cuda, available) = {
        let (mut available, mut cuda) = (available, None);
        let gpu = match given.gpu_heap {
            Some(make) => Some((make.0)(me as usize)),
            None => {
                let made = cuda_heap(&config, given.gpu, me as usize, &mut available);
                made.map(|made| {
                    made.map(|(of, heap)| {
                        cuda = Some(of);
                        heap
                    })
                })
            }
        };
        #[cfg(feature = "verbs")]
        if let Some(cuda) = cuda.as_ref().filter(|_| built_in) {
            registry::give_to_nics(&cuda.context, &mut available);
        }
        (gpu.transpose(), cuda, available)
    };
    #[cfg(not(feature = "cuda"))]
    let gpu = match given.gpu_heap {
        None if config.gpu_limit > 0 => {
            Err("OXSHMEM_CUDA_SYMMETRIC_SIZE is set, and this build lacks the feature cuda".into())
        }
        make => make.map(|make| (make.0)(me as usize)).transpose(),
    };
    let chosen = registry::select(available, config.transports.as_deref(), config.seed)?;
    let found = Probe::look(&chosen, &job, &config.nics, config.topology.as_deref())?;

    let mut gpu = gpu;
    let gpu_limit = match &gpu {
        Ok(gpu) => Ok(gpu.as_ref().map_or(0, |gpu| gpu.limit() as u64)),
        Err(why) => Err(why.clone()),
    };
    let (gpu_limit, gpu_access) = match &mut gpu {
        Ok(Some(gpu)) => match gpu.access() {
            Ok(access) => (gpu_limit, access),
            Err(why) => (Err(why), None),
        },
        _ => (gpu_limit, None),
    };
    let mut card = my_card(&config, host, &found, (gpu_limit, gpu_access.is_some()));
    if let Some(program) = &given.program {
        // So much of each heap.
        card.statics ^= (program.len as u64) << 32;
    }
    card.statics ^= u64::from(given.active_sets);
    let mut cards = exchange_cards(bootstrap.as_ref(), &card)?;
    let gpu_limit = agree_on_gpu_limit(&cards)?;
    let has_gpu = gpu_limit > 0;
    let mut gpu_heap = Heap::on_gpu(gpu.ok().flatten(), gpu_limit);
    check_rules(&config.rules, &chosen, &cards)?;
    let hosts: Vec<&str> = cards.iter().map(|card| &*card.host).collect();
    let trace = trace::open(bootstrap.as_ref(), config.trace.as_deref(), &hosts)?;
    let on_hosts = Hosts::of(&cards);
    let OpenedRails {
        mut opened,
        named,
        unavailable,
    } = found.open(bootstrap.as_ref(), &job, &mut cards, &on_hosts)?;
    // What the program asks for.
    let offered = on_hosts.agree_on_limit(&cards);
    let oversubscribed = on_hosts.oversubscribed(&cards);
    let here = oversubscribed.get(me as usize).copied().unwrap_or(true);

    let tag = world::next_tag()?;
    let wanted = HeapLayout {
        tag,
        program: given.program.as_ref().map_or(0, |program| program.len),
        plan: SyncAreaPlan {
            // The same on every PE: the arrival words' places follow from it.
            crowd: on_hosts.crowd(oversubscribed.contains(&true)),
            me: me as usize,
            teams: config.teams,
            among: given.active_sets,
            // What the library keeps for itself is no less where the program wants little.
            limit: offered.max(LEAST_PLANNED) as usize,
            choices: config.collectives,
        },
        check: config.check,
    };
    let staging = match has_gpu {
        true => Slots::all(offered as usize) as u64,
        false => 0,
    };
    let capacity = offered + wanted.bytes()? + staging;
    let limit = capacity.next_multiple_of(PAGE);
    let node = oxshmem_topo::nearest_node().ok().flatten();
    let numa_node = node.and_then(|n| u32::try_from(n).ok());
    let options = SegmentOptions {
        huge_pages: config.huge_pages,
        numa_node,
    };
    let file = given
        .program
        .as_ref()
        .and_then(|program| program.take_file());
    let segment = match (file, &given.program) {
        (Some(file), Some(program)) => {
            Segment::beginning_with(file, program.len, limit as usize, &options)?
        }
        _ => Segment::create(limit as usize, &options)?,
    };
    let own = Arc::clone(segment.mapping());
    let mut heap = Heap::new(
        segment,
        (offered as usize, capacity as usize),
        config.heap_limit_by,
    );
    let placed = wanted.place(&mut heap)?;
    placed.fill(&own);
    let HeapParts {
        internal,
        bounces,
        active,
        shadow,
        mailbox,
        statics,
    } = placed;

    for transport in &mut opened {
        transport.host.set_extents(match transport.pins() {
            true => Extents::doubling(limit),
            false => Extents::whole(limit),
        });
        let gpu = gpu_heap.cut().unwrap_or(Extents::whole(0));
        transport.gpu.set_extents(gpu);
    }
    let opened: Vec<_> = opened.into_iter().map(Arc::new).collect();
    #[cfg(feature = "cuda")]
    let mut own_on_gpu = None;
    if has_gpu {
        #[cfg(feature = "cuda")]
        let placed = {
            let bytes = GpuSyncWords::bytes(size as usize);
            let placed = gpu_heap.place_permanent(tag | 1, OWN, bytes, 1);
            placed.map(|words| own_on_gpu = Some(GpuSyncWords::new(words, size as usize)))
        };
        #[cfg(not(feature = "cuda"))]
        let placed = Ok(());
        // Where one PE's GPU has no room, none waits for the others.
        let ready = placed.and_then(|()| gpu_heap.register(&opened));
        agree_on_gpus(bootstrap.as_ref(), ready)?;
    }
    if let Err(error) = heap.register(&opened) {
        // Of one host's PEs none needs a NIC, unless it was asked for.
        if on_hosts.count() > 1 || config.atomics == Atomics::Nic {
            return Err(error);
        }
        report::info(&format!("no transport that pins memory is used: {error}"));
        heap.let_go(&opened);
        heap.register(&opened)?;
    }
    let shows_pins = |card: &BusinessCard| card.transports.iter().any(|shown| shown.pins);
    let grows = cards.iter().any(shows_pins);
    let grows = grows.then(|| Extents::doubling(limit));
    let published = grows.map_or(0, |cut| cut.count(heap.high_water()));
    let registered = MemoryKind::ALL.map(|kind| -> Vec<_> {
        let all = opened.iter().map(|via| via.registered_heap(kind).regions());
        all.collect()
    });
    let heaps = MemoryKind::ALL.into_iter().zip(&registered);
    let heaps = heaps.filter(|(kind, _)| *kind == MemoryKind::Host || has_gpu);
    let heaps: Vec<_> = heaps
        .map(|(kind, pieces)| WireupShared {
            kind,
            own: (kind == MemoryKind::Host).then_some(&own),
            regions: pieces
                .iter()
                .map(|all| all.iter().map(|r| &**r).collect())
                .collect(),
        })
        .collect();
    let means = RailSet {
        opened: &opened,
        rules: &config.rules,
        unavailable: &unavailable,
        preference,
        // Within one host they would be a detour: there they are only for who asks.
        nics: match config.atomics {
            Atomics::Cpu => false,
            Atomics::Auto => on_hosts.count() > 1,
            Atomics::Nic => true,
        },
    };
    let Wireup {
        mapped,
        accessors,
        on_gpu,
        routes,
    } = reach(bootstrap.as_ref(), &cards, &means, named, &heaps)?;
    #[cfg(feature = "cuda")]
    let gpu_side = match own_on_gpu {
        Some(own) => gpu_side(bootstrap.as_ref(), cuda, own, on_gpu)?,
        None => None,
    };
    #[cfg(not(feature = "cuda"))]
    drop(on_gpu);

    // Checked mode: the slow branch checks, so no peer is mapped.
    let unmapped = |pe: usize| config.check || !mapped.get(pe).is_some_and(MappedHeap::is_mapped);
    drop(heaps);
    drop(registered);
    let lanes = lanes_used(&routes.paths, unmapped);
    let visible = if config.check {
        vec![MappedHeap::default(); mapped.len()]
    } else {
        mapped
    };
    // SAFETY: each heap was mapped whole by its transport (`reach` compared the length with the
    // agreed limit, the bound of every Sym), and PEs access it through Span alone.
    let peers = unsafe { PeerTable::new(tag, visible, config.stats.is_some()) };
    let used = lanes.iter().filter_map(|&index| opened.get(index));
    used.clone().for_each(|via| via.enable_lanes());
    let pinned = used.into_iter().any(|via| via.pins());
    let domains = || opened.iter().map(|t| &t.domain);
    let gpu_flushes = GpuFlushes::of(domains());
    let schedule = domains().find_map(|domain| domain.schedule());
    // On real memory and lanes nothing is ever left out.
    let omitted = given.omitted.filter(|_| schedule.is_some());
    let simulation = Simulation::of(accessors, omitted);
    // Checked mode ends what it has entered at each fence and quiet.
    let always = simulation.is_some() || has_gpu || config.check;
    // Who has no lane does not join.
    let wire = Lanes::open(&opened, size as usize, always)?;
    let (questions, broken_locks) = (ControlRequests::default(), BrokenLocks::of(&bootstrap));
    let end_streams = {
        #[cfg(feature = "cuda")]
        let ending = gpu_side.as_ref().map(|side| Arc::clone(&side.stop_word));
        move || {
            #[cfg(feature = "cuda")]
            ending.iter().for_each(|ending| ending.end());
        }
    };
    let stage = Arc::new(StagingServer::new(
        gpu_access,
        &own,
        &gpu_flushes,
        &bootstrap,
    ));
    let listening = (&gpu_flushes, &stage, &questions, &broken_locks);
    let lose = hear_of_others(
        &bootstrap,
        peers.liveness(),
        &opened,
        listening,
        end_streams,
    )?;
    let lasting = LongWaits::default();
    let asked = lasting.clone();
    bootstrap.on_ask(Box::new(move || asked.all()))?;
    let here_all = on_hosts.with(me as usize);
    let near = |pe: &usize| !config.check && routes.get(*pe).is_some_and(|route| route.mapped);
    let all_near = here_all.iter().all(near);
    let agreed = agree_on_routes(bootstrap.as_ref(), &routes, pinned, all_near)?;
    let is_near = |pe: &usize| agreed.near.get(*pe) == Some(&true);
    let shared = match here_all.iter().all(is_near) {
        true => here_all.to_vec(),
        false => vec![me as usize],
    };
    let all_mapped = agreed.visibility == Visibility::Global && !config.check;
    let by_host = !config.collectives.flat && agreed.near.iter().all(|near| *near);
    let hosts = by_host.then(|| on_hosts.numbers());
    let internal = internal.set_routes(all_mapped, &shared, hosts);
    // What no PE of the job uses need not pin memory: one host's PEs on a machine with a NIC.
    let grows = grows.filter(|_| agreed.pinned);
    if grows.is_none() {
        heap.let_go(&opened);
    }
    let nic_atomics = domain_of_atomics(config.atomics, &agreed, &on_hosts)?;
    let statics = match nic_atomics {
        NicAtomics::Always => statics.into_iter().map(Sym::on_nic).collect(),
        _ => statics,
    };
    let services = match agreed.messages {
        true => start_services(&opened, &routes.paths, &own, &lose, trace.as_ref())?,
        false => Vec::new(),
    };
    let stats = config.stats.take();
    let stats = stats.map(|target| Stats::new(target, opened.len()));
    let spin = match config.spin {
        Some(spin) => spin,
        // A lane moves only when it is driven, which the spinning phase does not do.
        None if here || !lanes.is_empty() => 0,
        None => SPIN,
    };
    let lane_spin = match config.spin {
        _ if lanes.is_empty() => 0,
        None if here => 0,
        None => LANE_SPIN,
        // So that a wait's clock is looked at in time, whatever was asked for.
        Some(spin) => spin.min(1 << 20),
    };
    let takes_turns = here && spin == 0 && lanes.is_empty() && trace.is_none();
    if linger {
        goodbye::expect(&bootstrap);
    }
    let mut hosts: Vec<String> = cards.into_iter().map(|c| c.host).collect();
    // The names took the place of the cards, which were larger.
    hosts.shrink_to_fit();
    let world = World::assemble(Parts {
        spin,
        config,
        bootstrap,
        linger,
        own,
        limit: offered as usize,
        heap,
        internal,
        shadow,
        mailbox,
        active,
        bounces,
        statics,
        program: given.program,
        peers,
        transports: opened,
        always,
        wire,
        routes,
        visibility: agreed.visibility,
        nic_atomics,
        services,
        lane_spin,
        takes_turns,
        questions,
        lasting,
        broken_locks,
        lose,
        growth: Growth {
            cut: grows,
            published: Cell::new(published),
        },
        gpu_growth: Growth {
            cut: gpu_heap.cut(),
            published: Cell::new(1),
        },
        hosts,
        trace,
        stats,
        gpu_heap,
        gpu_flushes,
        #[cfg(feature = "cuda")]
        gpu_side,
        stage,
        simulation,
        schedule,
        omitted,
    });
    if agreed.staged {
        world.open_stage()?;
    }
    log::log_world(&world);
    Ok(world)
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
fn check_rules(
    rules: &Rules,
    transports: &[Arc<dyn Transport>],
    cards: &[BusinessCard],
) -> Result<()> {
    let names: Vec<&str> = transports.iter().map(|t| t.name()).collect();
    let hosts: Vec<&str> = cards.iter().map(|card| card.host.as_str()).collect();
    rules.check(&names, &hosts).map_err(|why| Error::Config {
        name: "OXSHMEM_ROUTE".into(),
        value: rules.to_string(),
        why,
    })
}

/// A GPU heap, and the GPU that it is of.
#[cfg(feature = "cuda")]
type OnGpuOf = (Gpu, Box<dyn GpuMemory>);

/// The GPU heap that the program or the environment asks for, and its transport in front of the
/// others.
#[cfg(feature = "cuda")]
fn cuda_heap(
    config: &Config,
    given: Option<(oxshmem_cuda::Context, usize)>,
    me: usize,
    transports: &mut Vec<Arc<dyn Transport>>,
) -> Option<Result<OnGpuOf, String>> {
    let chosen = match given {
        Some(chosen) => Ok(chosen),
        None if config.gpu_limit == 0 => return None,
        None => {
            let place = config::environment("OXSHMEM_LOCAL_RANK");
            let place = place.and_then(|place| place.parse().ok()).unwrap_or(me);
            let limit = usize::try_from(config.gpu_limit).unwrap_or(usize::MAX);
            gpu::cuda::context_for(place, config.gpu).map(|context| (context, limit))
        }
    };
    Some(chosen.and_then(|(context, limit)| {
        let gpu = Gpu::new(context)?;
        let heap = gpu::cuda::CudaHeap::new(&gpu, limit)?;
        transports.insert(0, registry::between_gpus(&gpu));
        Ok((gpu, Box::new(heap) as Box<dyn GpuMemory>))
    }))
}

/// This PE's GPU as its streams need it, where it is a CUDA heap's. Collective: when it returns, every
/// PE has written its own words, and all know whether every GPU reaches every other PE's memory.
#[cfg(feature = "cuda")]
fn gpu_side(
    bootstrap: &dyn Bootstrap,
    gpu: Option<Gpu>,
    own: GpuSyncWords,
    heaps: Vec<Option<OnGpu>>,
) -> Result<Option<GpuStreams>> {
    let me = bootstrap.rank() as usize;
    let made = gpu.map(|gpu| GpuStreams::new(gpu, own, me, heaps));
    let made = made.transpose();
    let mut side = agree_on_gpus(bootstrap, made)?;
    let lacks = match &side {
        None => Some("its GPU heap is not CUDA memory".to_owned()),
        Some(side) => side
            .unreached()
            .map(|pe| format!("PE {pe}'s memory is not mapped for its GPU")),
    };
    let all: Vec<Option<String>> = exchange(bootstrap, &lacks)?;
    let first = (0..).zip(all).find_map(|(pe, lack)| Some((pe, lack?)));
    if let (Some(side), Some((pe, lack))) = (&mut side, first) {
        let pe: usize = pe;
        side.collective = Err(format!("PE {pe} says: {lack}"));
    }
    Ok(side)
}

/// That every PE has registered its GPU heap; else all learn of the first that has not.
fn agree_on_gpus<R>(bootstrap: &dyn Bootstrap, mine: Result<R>) -> Result<R> {
    let told = mine.as_ref().err().map(ToString::to_string);
    let all: Vec<Option<String>> = exchange(bootstrap, &told)?;
    let mine = mine?;
    match (0..).zip(all).find_map(|(pe, why)| Some((pe, why?))) {
        None => Ok(mine),
        Some((pe, why)) => Err(Error::FailedElsewhere {
            call: "init",
            pe,
            why,
        }),
    }
}

fn my_card(
    config: &Config,
    host: String,
    found: &Probe,
    (gpu, stages): (Result<u64, String>, bool),
) -> BusinessCard {
    let memory = oxshmem_heap::available::Available::now().map_or(UNKNOWN_MEMORY, |a| a.total);
    let cpus = oxshmem_topo::usable_cpus().ok();
    BusinessCard {
        version: env!("CARGO_PKG_VERSION").into(),
        host,
        cpu_count: cpus.as_ref().map_or(1, |c| c.count()),
        cpus: cpus.map(|c| c.allowed.to_string()).unwrap_or_default(),
        limit: config.heap_limit,
        gpu,
        stages,
        memory,
        model: config.model,
        check: config.check,
        huge_pages: format!("{:?}", config.huge_pages),
        statics: statics::digest(),
        wanted: config.transports.as_deref().map(Spec::list),
        seed: config.seed,
        rules: config.rules.to_string(),
        atomics: config.atomics,
        collectives: config.collectives.to_string(),
        teams: config.teams,
        trace: config.trace.clone(),
        stats: config.stats.is_some(),
        transports: found.shown(),
        unavailable: found.unavailable(),
        offers: found.offers(),
    }
}

/// Which words' atomics are NICs'.
fn domain_of_atomics(wanted: Atomics, agreed: &Agreed, hosts: &Hosts) -> Result<NicAtomics> {
    match wanted {
        Atomics::Cpu => Ok(NicAtomics::Never),
        Atomics::Nic if !agreed.nics => Err(Error::Config {
            name: "OXSHMEM_ATOMICS".into(),
            value: "nic".into(),
            why: format!("{}; choose auto or cpu", agreed.no_nics),
        }),
        Atomics::Nic => Ok(NicAtomics::Always),
        Atomics::Auto if !agreed.nics => Ok(NicAtomics::Never),
        // Where no two PEs share a host, no CPU but its own is at a PE's words.
        Atomics::Auto if hosts.count() > 1 && hosts.are_single() => Ok(NicAtomics::Always),
        Atomics::Auto => Ok(NicAtomics::IfHinted),
    }
}

/// A progress thread for each transport that takes messages to this PE.
fn start_services(
    transports: &[Arc<Rail>],
    ways: &[PeerPaths],
    own: &Arc<Mapping>,
    lose: &PeerFailureSink,
    trace: Option<&Arc<Trace>>,
) -> Result<Vec<ProgressThread>> {
    let takes = transports.iter().enumerate();
    let takes = takes.filter(|(_, via)| via.caps.message > 0 && !via.is_retired());
    // Those that this PE sends messages to send it messages, too.
    let by_message =
        |(pe, ways): (u32, &PeerPaths)| matches!(ways.host_atomics, Path::Message(_)).then_some(pe);
    let senders: Vec<u32> = (0..).zip(ways).filter_map(by_message).collect();
    takes
        .map(|(index, via)| {
            let (lose, senders) = (Arc::clone(lose), senders.clone());
            // Who waits for an answer must not wait for ever.
            let ended = move || senders.iter().for_each(|pe| lose(*pe));
            let trace = trace.map(|trace| (Arc::clone(trace), Track::of_service(index)));
            ProgressThread::start(&via.domain, own, via.host.extents, Box::new(ended), trace)
        })
        .collect()
}

/// From here on a PE's end reaches the table that waits look at, and questions are answered. Gives
/// what makes lanes' findings reach it too.
fn hear_of_others(
    bootstrap: &Arc<dyn Bootstrap>,
    losses: &Arc<Liveness>,
    transports: &[Arc<Rail>],
    (gpu, stage, questions, broken_locks): (
        &GpuFlushes,
        &Arc<StagingServer>,
        &ControlRequests,
        &BrokenLocks,
    ),
    end_streams: impl Fn() + Send + Sync + 'static,
) -> Result<PeerFailureSink> {
    let domains: Vec<_> = transports.iter().map(|t| Arc::clone(&t.domain)).collect();
    let (losses, lent, broken) = (Arc::clone(losses), Arc::clone(stage), broken_locks.clone());
    let told = Arc::clone(&losses);
    let lose = Arc::new(move |pe: u32, left: bool| {
        // The domains first: who sees the loss may rely on its operations being given up.
        for domain in &domains {
            domain.peer_lost(Pe(pe));
        }
        lent.lost(pe);
        losses.mark_lost(pe as usize);
        broken.tell_again();
        // Who leaves in order has come to the end, as all have: their streams run out. Else the loss is told
        // first: whose wait on a stream ends looks for it.
        if !left {
            fence(Ordering::SeqCst);
            end_streams();
        }
    });
    // That PE, too, must not wait for this one, though both live.
    let (by_lane, tell_by) = (Arc::clone(&lose), Arc::downgrade(bootstrap));
    let lose_by_lane: PeerFailureSink = Arc::new(move |pe| {
        by_lane(pe, false);
        let told = Message::Disconnect.to_bytes();
        let _ = tell_by.upgrade().map(|b| b.send(pe, &told));
    });
    let (gave_up, gpu, questions) = (Arc::clone(&lose), gpu.clone(), questions.clone());
    let (stage, broken_locks) = (Arc::clone(stage), broken_locks.clone());
    let named: Vec<_> = transports
        .iter()
        .map(|t| (t.name, Arc::clone(&t.domain)))
        .collect();
    // Weak: the bootstrap holds the handler.
    let answer_by = Arc::downgrade(bootstrap);
    let asked = move |from: u32, number: u64, question: ControlRequest| {
        let answer = match question {
            ControlRequest::FlushGpu => gpu.asked(),
            ControlRequest::Connect {
                transport,
                endpoint,
            } => match named.iter().find(|(name, _)| *name == transport) {
                Some((_, domain)) => {
                    let answer = domain.accept(Pe(from), &endpoint);
                    answer.map_err(|error| error.to_string())
                }
                None => Err(format!("it has no transport {transport}")),
            },
            // It answers itself, maybe later.
            ControlRequest::Stage(request) => return stage.asked(from, number, request),
        };
        let answer = Message::Reply(number, answer).to_bytes();
        // Who is gone needs no answer.
        let _ = answer_by.upgrade().map(|b| b.send(from, &answer));
    };
    bootstrap.on_message(Box::new(move |from, bytes| {
        match Message::of_bytes(bytes) {
            Some(Message::Disconnect) => gave_up(from, false),
            Some(Message::Request(number, question)) => asked(from, number, question),
            Some(Message::Reply(number, answer)) => {
                questions.answered(from as usize, number, answer);
            }
            Some(Message::LockBroken(offset, broken)) => broken_locks.note(offset, broken),
            Some(Message::Forgot) => goodbye::is_forgotten_by(from),
            None => report::warn(&format!(
                "PE {from} sent {} bytes that this version of oxshmem does not understand",
                bytes.len()
            )),
        }
    }))?;
    bootstrap.on_exit(Box::new(move |exit| {
        told.note_exit(exit.rank as usize, exit.orderly);
        lose(exit.rank, exit.orderly);
    }))?;
    Ok(lose_by_lane)
}
