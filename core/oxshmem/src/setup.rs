//! Start-up of a PE: it joins its job, agrees with the other PEs, shares its memory and chooses its routes.
//!
//! 1. [`announce`]: the PEs exchange [cards](card::BusinessCard). Settings that must be the same and are not end the start-up
//!    on every PE. A transport with several devices is opened after that, on the device that suits all PEs of the host.
//! 2. [`HostHeap`] and [`GpuHeap`](gpu_setup::GpuHeap): each PE creates its heaps, places the library's own words and the
//!    statics in them, and registers them.
//! 3. [`wire_up`]: keys and descriptors are exchanged. Each PE imports the heaps that it can reach, and chooses the transports
//!    for each peer.
//! 4. [`Handlers`]: from here on other PEs' requests are answered, and lost PEs are noticed.
//! 5. [`agree_on_routes`]: the PEs learn what holds for all routes, and start the services that it needs.
//!
//! Each step returns parts that it owns. Every PE makes the collective exchanges in the same order. After an error parts are
//! dropped from the last to the first.

mod accept_workers;
pub(crate) mod announce;
pub(crate) mod card;
pub(crate) mod device_select;
pub(crate) mod devices;
pub(crate) mod gpu_setup;
pub(crate) mod handlers;
pub(crate) mod heap_setup;
pub(crate) mod hosts;
pub(crate) mod lanes;
pub(crate) mod layout;
pub(crate) mod membership;
pub(crate) mod network_select;
pub(crate) mod passed_over;
pub(crate) mod route_summary;
pub(crate) mod spin_budget;
#[cfg(test)]
mod tests;
pub(crate) mod unregistered;
pub(crate) mod wireup;

use std::sync::Arc;

use oxshmem_engine::am::progress_thread::ProgressThread;
use oxshmem_engine::gpu::flush::GpuFlushes;
use oxshmem_engine::gpu::staging_server::StagingServer;
use oxshmem_engine::lane::lanes::Lanes;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::memory::extents::Extents;
use oxshmem_engine::memory::simulated::Simulation;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::peer::mapped_table::{MappedHeap, PeerTable};
use oxshmem_engine::report;
use oxshmem_engine::route::select::Preference;
use oxshmem_engine::route::table::Routes;
use oxshmem_engine::trace::timeline::Trace;
use oxshmem_transport::{MemoryKind, Schedule};

use crate::config::{Atomics, Config, MemoryModel};
use crate::error::Result;
use crate::goodbye;
use crate::options::{NicAtomics, Overrides};
use crate::setup::announce::{Announced, HeapAdditions, announce};
use crate::setup::card::BusinessCard;
use crate::setup::gpu_setup::{GpuHeap, GpuParts, Sources};
use crate::setup::handlers::{Handled, Handlers, Served, message_senders, start_services};
use crate::setup::heap_setup::HostHeap;
use crate::setup::lanes::lanes_used;
use crate::setup::membership::Membership;
use crate::setup::route_summary::{Found, agree_on_routes};
use crate::setup::spin_budget::SpinBudget;
use crate::setup::wireup::{RailSet, RegisteredHeap, Wireup, wire_up};
use crate::stats::counters::Stats;
use crate::visibility::Visibility;

/// The parts of a world, by the step that made them.
pub(crate) struct Setup {
    pub config: Config,
    pub membership: Membership,
    /// The host of each PE.
    pub hosts: Vec<String>,
    pub heap: HostHeap,
    pub rails: Vec<Arc<Rail>>,
    pub gpu: GpuParts,
    pub peers: Peers,
    pub handlers: Handlers,
    pub services: Vec<ProgressThread>,
    pub spins: SpinBudget,
    pub visibility: Visibility,
    pub nic_atomics: NicAtomics,
    /// Whether some PE's data to another's GPU are staged through host memory.
    pub stages: bool,
    pub trace: Option<Arc<Trace>>,
    pub stats: Option<Stats>,
}

/// The other PEs, as this one reaches them. Its fields are dropped from the last that was made to the first.
pub(crate) struct Peers {
    /// The default context's lanes.
    pub lanes: Lanes,
    /// Every fence and quiet has more to do than one between mapped PEs.
    pub fences_always_slow: bool,
    pub test_hooks: TestHooks,
    pub table: PeerTable,
    pub routes: Routes,
}

/// Replacements for the machine under test.
pub(crate) struct TestHooks {
    /// Simulated mappings, if a transport has them.
    pub simulation: Option<Simulation>,
    /// A transport's schedule of this PE's thread.
    pub schedule: Option<Arc<dyn Schedule>>,
    /// The fence that a mutation check leaves out.
    pub disabled_fence: Option<FenceSite>,
}

/// Joins the job, and makes the parts of this PE's world. Collective over the job's PEs.
pub(crate) fn join(
    mut config: Config,
    warnings: &[String],
    mut overrides: Overrides,
) -> Result<Setup> {
    let membership = Membership::join(&mut config, overrides.bootstrap.take(), warnings)?;
    let (bootstrap, me) = (&membership.bootstrap, membership.me());
    let additions = HeapAdditions {
        program: membership.symmetric_program_memory(&config, overrides.program.take()),
        active_sets: overrides.active_sets,
    };
    let job = membership.job(&config);
    let sources = Sources::new(&config, &mut overrides, me)?;
    let (transports, preference) = (sources.transports, sources.preference);
    let member = (bootstrap.as_ref(), &job);
    let mut announced = announce(&config, member, &transports, sources.gpu, &additions)?;
    let mut heap = HostHeap::create(&config, &announced, me, additions)?;
    let opened = std::mem::take(&mut announced.rails.opened);
    let rails = set_extents(opened, heap.len, announced.gpu.heap.extents());
    announced.gpu.register(&membership, heap.tag, &rails)?;
    heap.register(&rails)?;
    heap.plan_growth(&announced.cards);
    let mut wireup = share_heaps(
        &config,
        preference,
        &membership,
        &mut announced,
        &heap,
        &rails,
    )?;
    let on_gpu = std::mem::take(&mut wireup.on_gpu);
    let is_mapped_on_gpu: Vec<bool> = on_gpu.iter().map(Option::is_some).collect();
    let unregistered = std::mem::take(&mut wireup.unregistered);
    let streams = announced.gpu.open_streams(bootstrap.as_ref(), on_gpu)?;
    let (peers, lanes) =
        Peers::connect(&config, &overrides, wireup, &heap, &announced.gpu, &rails)?;
    let flushes = GpuFlushes::of(rails.iter().map(|rail| &rail.domain));
    let access = announced.gpu.access.take();
    let stage = StagingServer::new(access, &heap.own, &flushes, bootstrap);
    let stage = Arc::new(stage);
    let handled = Handled {
        liveness: peers.table.liveness(),
        rails: &rails,
        gpu_flushes: &flushes,
        stage: &stage,
        end_streams: streams.ending(),
    };
    let handlers = Handlers::install(bootstrap, handled)?;
    let host_pes = announced.hosts.with(me);
    let maps_on_gpu = |pe: &usize| *pe == me || is_mapped_on_gpu.get(*pe) == Some(&true);
    let maps_its_host = maps_all(&config, host_pes, &peers.routes)
        && (!overrides.shared_by_gpu || host_pes.iter().all(maps_on_gpu));
    let is_ordered = config.model == MemoryModel::Ordered;
    let senders = message_senders(&peers.routes.paths, &rails, me, is_ordered);
    // Where a registration failed, the other warning has the reason.
    let passed_over = unregistered
        .is_empty()
        .then(|| passed_over::warning(&announced.cards, &announced.hosts, &peers.routes, me))
        .flatten();
    let found = Found {
        messages: !senders.is_empty(),
        pinned: lanes.are_pinned,
        maps_its_host,
        passes_rdma_over: passed_over.is_some(),
    };
    let agreed = agree_on_routes(bootstrap.as_ref(), &peers.routes, found, &unregistered)?;
    if unregistered.reporter() == Some(me) {
        unregistered.report(&announced.cards, &announced.hosts, &peers.routes);
    }
    if agreed.passes_rdma_over == Some(me)
        && let Some(warning) = passed_over
    {
        report::warn(&warning);
    }
    heap = heap.set_routes(&agreed, &config, (&announced.hosts, me), &rails);
    let nic_atomics = agreed.nic_atomics(config.atomics, &announced.hosts)?;
    heap.set_nic_atomics(nic_atomics);
    let trace = announced.trace.as_ref();
    let served = Served {
        rails: if agreed.messages { &rails } else { &[] },
        own: &heap.own,
        gpu_flushes: &flushes,
        senders,
    };
    let services = start_services(&served, &handlers.report_lost, trace)?;
    let stats = config.stats.take();
    let stats = stats.map(|target| Stats::new(target, rails.len()));
    // A PE without an entry counts as oversubscribed.
    let oversubscribed = announced.oversubscribed.get(me) != Some(&false);
    let spins = SpinBudget::new(&config, oversubscribed, lanes.are_used, trace.is_some());
    if membership.linger {
        goodbye::expect(bootstrap);
    }
    Ok(Setup {
        config,
        membership,
        hosts: host_names(announced.cards),
        heap,
        rails,
        gpu: announced.gpu.into_parts(streams, flushes, stage),
        peers,
        handlers,
        services,
        spins,
        visibility: agreed.visibility,
        nic_atomics,
        stages: agreed.staged,
        trace: announced.trace,
        stats,
    })
}

/// Sets the extents in which each rail registers the heaps: doubling ones where it pins them.
fn set_extents(opened: Vec<Rail>, host_len: u64, gpu: Option<Extents>) -> Vec<Arc<Rail>> {
    let set = |mut rail: Rail| {
        rail.host.set_extents(if rail.pins() {
            Extents::doubling(host_len)
        } else {
            Extents::whole(host_len)
        });
        rail.gpu.set_extents(gpu.unwrap_or(Extents::whole(0)));
        Arc::new(rail)
    };
    opened.into_iter().map(set).collect()
}

/// Exchanges the keys of the registered heaps, and chooses the routes. Collective.
fn share_heaps(
    config: &Config,
    preference: Preference,
    membership: &Membership,
    announced: &mut Announced,
    heap: &HostHeap,
    rails: &[Arc<Rail>],
) -> Result<Wireup> {
    let named = std::mem::take(&mut announced.rails.named);
    let regions = MemoryKind::ALL.map(|kind| -> Vec<_> {
        let regions = rails
            .iter()
            .map(|rail| rail.registered_heap(kind).regions());
        regions.collect()
    });
    let exists = |kind| kind == MemoryKind::Host || announced.gpu.exists;
    let heaps = MemoryKind::ALL.into_iter().zip(&regions);
    let heaps = heaps.filter(|(kind, _)| exists(*kind));
    let heaps = heaps.map(|(kind, regions)| RegisteredHeap {
        kind,
        own: (kind == MemoryKind::Host).then_some(&heap.own),
        regions: regions
            .iter()
            .map(|all| all.iter().map(|region| &**region).collect())
            .collect(),
    });
    let heaps: Vec<_> = heaps.collect();
    let rails = RailSet {
        card: announced.cards.get(membership.me()),
        opened: rails,
        unavailable: &announced.rails.unavailable,
        unregistered: &heap.unregistered,
        preference,
        rules: &config.rules,
        // Within one host NIC atomics would be a detour: there they are only for programs that ask for them.
        nics: match config.atomics {
            Atomics::Cpu => false,
            Atomics::Auto => announced.hosts.count() > 1,
            Atomics::Nic => true,
        },
    };
    let bootstrap = membership.bootstrap.as_ref();
    wire_up(bootstrap, &announced.cards, &rails, named, &heaps)
}

/// The use of lanes by this PE's routes.
struct LaneUse {
    /// Whether any operation takes a lane.
    are_used: bool,
    /// Whether one takes a lane whose transport pins registered memory.
    are_pinned: bool,
}

impl Peers {
    /// Opens the lanes that the routes take, and makes the table of the peers.
    fn connect(
        config: &Config,
        overrides: &Overrides,
        wireup: Wireup,
        heap: &HostHeap,
        gpu: &GpuHeap,
        rails: &[Arc<Rail>],
    ) -> Result<(Self, LaneUse)> {
        let Wireup {
            mapped,
            accessors,
            routes,
            ..
        } = wireup;
        let pes = routes.paths.len();
        // In checked mode no peer is mapped: the slow branch checks.
        let is_mapped = |pe: usize| mapped.get(pe).is_some_and(MappedHeap::is_mapped);
        let used = lanes_used(&routes.paths, |pe| config.check || !is_mapped(pe));
        let visible = if config.check {
            vec![MappedHeap::default(); mapped.len()]
        } else {
            mapped
        };
        // SAFETY: each heap was mapped whole by its transport (`wire_up` compared the length with the agreed limit, the
        // bound of every Sym), and PEs access it through Span alone.
        let table = unsafe { PeerTable::new(heap.tag, visible, config.stats.is_some()) };
        let mut lanes = LaneUse {
            are_used: !used.is_empty(),
            are_pinned: false,
        };
        for rail in used.iter().filter_map(|&index| rails.get(index)) {
            rail.enable_lanes();
            lanes.are_pinned |= rail.pins();
        }
        let schedule = rails.iter().find_map(|rail| rail.domain.schedule());
        // On real memory and lanes no fence is ever left out.
        let disabled_fence = overrides.disabled_fence.filter(|_| schedule.is_some());
        let simulation = Simulation::of(accessors, disabled_fence);
        // Checked mode ends the accesses that it has entered at each fence and quiet.
        let fences_always_slow = simulation.is_some() || gpu.exists || config.check;
        let peers = Peers {
            // A PE that gets no lane does not join.
            lanes: Lanes::open(rails, pes, fences_always_slow)?,
            fences_always_slow,
            test_hooks: TestHooks {
                simulation,
                schedule,
                disabled_fence,
            },
            table,
            routes,
        };
        Ok((peers, lanes))
    }
}

/// Whether this PE loads and stores the memory of all these PEs.
fn maps_all(config: &Config, pes: &[usize], routes: &Routes) -> bool {
    let is_mapped = |pe: &usize| routes.get(*pe).is_some_and(|route| route.mapped);
    pes.iter().all(|pe| !config.check && is_mapped(pe))
}

/// The host of each PE.
fn host_names(cards: Vec<BusinessCard>) -> Vec<String> {
    let mut hosts: Vec<String> = cards.into_iter().map(|card| card.host).collect();
    // The names took the place of the cards, which were larger.
    hosts.shrink_to_fit();
    hosts
}
