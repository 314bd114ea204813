//! The first exchange of a job: every PE shows its card, all agree, and each opens its transports.

use std::sync::Arc;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_transport::{Job, Transport};

use oxshmem_engine::route::rules::Rules;
use oxshmem_engine::trace::timeline::Trace;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::options::ProgramMemory;
use crate::registry::spec::Spec;
use crate::setup::card::{BusinessCard, agree_on_gpu_heap, exchange_cards};
use crate::setup::devices::{OpenedRails, Probe};
use crate::setup::gpu_setup::{GpuHeap, GpuSource};
use crate::setup::hosts::Hosts;
use crate::statics;
use crate::trace::open::open;

/// Bytes of a host's memory, if the host does not report them.
const UNKNOWN_MEMORY: u64 = 1 << 30;

/// Memory and options of the program's that add to the library's own part of the heap. All PEs have the same.
pub(super) struct HeapAdditions {
    pub program: Option<Arc<ProgramMemory>>,
    pub active_sets: bool,
}

impl HeapAdditions {
    pub(super) fn program_len(&self) -> usize {
        self.program.as_ref().map_or(0, |program| program.len)
    }

    /// Bits that differ on PEs whose additions differ.
    fn digest(&self) -> u64 {
        (self.program_len() as u64) << 32 ^ u64::from(self.active_sets)
    }
}

/// Result of the first exchange. Its fields are dropped from the last that was made to the first.
pub(super) struct Announced {
    pub rails: OpenedRails,
    /// By PE, whether the PEs of its host outnumber their CPUs.
    pub oversubscribed: Vec<bool>,
    pub hosts: Hosts,
    pub trace: Option<Arc<Trace>>,
    pub gpu: GpuHeap,
    pub cards: Vec<BusinessCard>,
}

/// Exchanges the cards, and opens this PE's transports and its trace. Collective.
pub(super) fn announce(
    config: &Config,
    (bootstrap, job): (&dyn Bootstrap, &Job),
    transports: &[Arc<dyn Transport>],
    mut gpu: GpuSource,
    additions: &HeapAdditions,
) -> Result<Announced> {
    let probe = Probe::new(transports, job, &config.nics, config.topology.as_deref())?;
    let (gpu_limit, access) = gpu.access();
    let host = job.host.0.clone();
    let mut card = my_card(config, host, &probe, gpu_limit, access.is_some());
    card.statics ^= additions.digest();
    let mut cards = exchange_cards(bootstrap, &card)?;
    let agreed = agree_on_gpu_heap(&cards)?;
    if agreed.limit == 0 {
        for card in &mut cards {
            (card.gpu, card.stages) = (Ok(0), false);
        }
    }
    let gpu = gpu.into_heap(agreed, access);
    check_rules(&config.rules, transports, &cards)?;
    let names: Vec<&str> = cards.iter().map(|card| &*card.host).collect();
    let trace = open(bootstrap, config.trace.as_deref(), &names)?;
    let hosts = Hosts::of(&cards);
    let rails = probe.open(bootstrap, job, &mut cards, &hosts)?;
    Ok(Announced {
        rails,
        oversubscribed: hosts.oversubscribed(&cards),
        hosts,
        trace,
        gpu,
        cards,
    })
}

/// The version, and a digest of the sources, which two builds of one version differ in.
const BUILD: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (build ",
    env!("BUILD_DIGEST"),
    ")"
);

/// This PE's card. `gpu` is its GPU heap's limit, and `stages` says whether its process has access to that heap.
fn my_card(
    config: &Config,
    host: String,
    probe: &Probe,
    gpu: Result<u64, String>,
    stages: bool,
) -> BusinessCard {
    let memory = oxshmem_heap::available::Available::now().map_or(UNKNOWN_MEMORY, |a| a.total);
    let cpus = oxshmem_topo::usable_cpus().ok();
    BusinessCard {
        version: BUILD.into(),
        host,
        cpu_count: cpus.as_ref().map_or(1, |c| c.count()),
        cpus: cpus.map(|c| c.allowed.to_string()).unwrap_or_default(),
        limit: config.heap_limit,
        gpu,
        gpu_by_default: config.gpu_limit_is_default,
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
        transports: probe.opened(),
        unavailable: probe.unavailable(),
        rdma: oxshmem_topo::rdma_devices(),
        offers: probe.offers(),
        networks: probe.networks(),
    }
}

/// Refuses rules that name a transport or a host that does not exist.
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
