//! The circumstances of a measurement, which are shown before its results.

use std::collections::BTreeMap;
use std::fmt;

use oxshmem::{Fold, Team, World};
use oxshmem_figures::units::Rounded;
use oxshmem_topo::Policy;
use serde::{Deserialize, Serialize};

use super::args::Args;
use super::batches::{Effort, Until};
use super::number::Number;
use super::pair::Pair;
use super::team::Which;
use crate::job::allowed_cpus;
use crate::litmus::memory::Memory;

/// The circumstances of a measurement.
#[derive(Serialize)]
pub struct Parameters {
    version: &'static str,
    hostname: String,
    cpu_model: String,
    pes: usize,
    /// `None` in a job that something else started.
    bind: Option<&'static str>,
    /// The CPUs that each PE may use.
    cpus: Vec<String>,
    /// The PE that measures, the one that it measures against, and their hosts.
    from: usize,
    to: usize,
    from_host: String,
    to_host: String,
    /// The transport between the two PEs.
    transport: Option<String>,
    device: Option<String>,
    mapped: bool,
    /// Bytes of each PE's heap.
    heap_limit: usize,
    memory_model: String,
    visibility: String,
    /// The environment variables that are set on PE 0, without those of [`JOB`].
    settings: BTreeMap<&'static str, String>,
    /// `None` where operations are counted and not timed in batches.
    effort: Option<Effort>,
    /// Operations in flight at once for each thread, and threads of a PE; `None` likewise.
    window: Option<u32>,
    threads: Option<u32>,
    /// The team whose collectives are measured, and the size of the measuring PE's team.
    team: Option<&'static str>,
    team_pes: Option<usize>,
    /// The fold of reductions and scans, and the type of its elements.
    fold: Option<&'static str>,
    #[serde(rename = "type")]
    number: Option<&'static str>,
    /// The memory of the blocks; whether one-sided operations are issued within a session.
    memory: Option<&'static str>,
    session: Option<bool>,
    /// Whether the build is optimised: without that the numbers mean little.
    optimised: bool,
}

/// The circumstances of one PE.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeReport {
    hostname: String,
    cpus: String,
    /// Its transport to the PE that is measured against.
    transport: Option<String>,
    device: Option<String>,
    mapped: bool,
    /// The size of its team.
    team_pes: Option<usize>,
}

impl PeReport {
    /// This PE's circumstances.
    pub fn of(
        world: &World,
        memory: Memory,
        to: usize,
        team: Option<&Team<'_>>,
    ) -> oxshmem::Result<PeReport> {
        let explained = world.explain(to)?;
        let route = match (memory, explained.gpu) {
            (Memory::Cuda, Some(gpu)) => gpu,
            _ => explained.host,
        };
        Ok(PeReport {
            hostname: oxshmem_topo::hostname(),
            cpus: allowed_cpus(),
            transport: route.transport.map(str::to_owned),
            device: route.device,
            mapped: route.mapped,
            team_pes: team.map(Team::n_pes),
        })
    }
}

impl Parameters {
    /// The circumstances of the job, from each PE's.
    pub fn of(
        world: &World,
        bind: Option<Policy>,
        batches: Option<&Args>,
        pair: Pair,
        reports: &[PeReport],
    ) -> Self {
        let of = |pe: usize| reports.get(pe).cloned().unwrap_or_default();
        let (from, to) = (of(pair.from), of(pair.to));
        Parameters {
            version: env!("CARGO_PKG_VERSION"),
            hostname: oxshmem_topo::hostname(),
            cpu_model: cpu_model(),
            pes: world.n_pes(),
            bind: bind.map(Policy::name),
            cpus: reports.iter().map(|report| report.cpus.clone()).collect(),
            from: pair.from,
            to: pair.to,
            from_host: from.hostname,
            to_host: to.hostname,
            transport: from.transport,
            device: from.device,
            mapped: from.mapped,
            heap_limit: world.heap_limit(),
            memory_model: format!("{:?}", world.model()).to_lowercase(),
            visibility: format!("{:?}", world.visibility()).to_lowercase(),
            settings: settings(),
            effort: batches.map(Args::effort),
            window: batches.map(|args| args.window),
            threads: batches.map(|args| args.threads),
            team: batches.map(|args| args.team.name()),
            team_pes: batches.and(from.team_pes),
            fold: batches.map(|args| args.fold.name()),
            number: batches.map(|args| args.number.name()),
            memory: batches.map(|args| args.memory.name()),
            session: batches.map(|args| args.session),
            optimised: !cfg!(debug_assertions),
        }
    }
}

impl Parameters {
    /// The circumstances in one line.
    pub fn title(&self) -> String {
        format!(
            "oxshmem perf {}: {} PEs, {} by {}, {}",
            self.version,
            self.pes,
            self.ends(),
            self.way(),
            self.cpu_model
        )
    }

    /// The two PEs and their hosts.
    fn ends(&self) -> String {
        let Parameters { from, to, .. } = self;
        if self.from_host == self.to_host {
            format!("PE {from} to PE {to} on {}", self.from_host)
        } else {
            format!(
                "PE {from} on {} to PE {to} on {}",
                self.from_host, self.to_host
            )
        }
    }

    /// The transport between them and its device.
    fn way(&self) -> String {
        let device = self.device.iter().map(|device| format!(" ({device})"));
        let device: String = device.collect();
        format!(
            "{}{device}",
            self.transport.as_deref().unwrap_or("no transport")
        )
    }
}

/// Variables that identify the job, and say how its PEs find each other and how long they may take:
/// no row depends on them.
const JOB: [&str; 16] = [
    "OXSHMEM_BOOTSTRAP",
    "OXSHMEM_BOOTSTRAP_TIMEOUT",
    "OXSHMEM_HUB_ADDRESS",
    "OXSHMEM_RSH",
    "OXSHMEM_RANK",
    "OXSHMEM_SIZE",
    "OXSHMEM_LOCAL_RANK",
    "OXSHMEM_RENDEZVOUS",
    "OXSHMEM_JOB_KEY",
    "OXSHMEM_MASTER_PORT",
    "OXSHMEM_TIMEOUT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
];

/// The variables that are set and that a row may depend on.
fn settings() -> BTreeMap<&'static str, String> {
    let set = |name: &'static str| {
        let value = std::env::var_os(name)?;
        Some((name, value.to_string_lossy().into_owned()))
    };
    let names = oxshmem::variables()
        .into_iter()
        .map(|variable| variable.name);
    names
        .filter(|name| !JOB.contains(name))
        .filter_map(set)
        .collect()
}

/// The kernel's name for the CPU.
fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| {
        let (name, model) = line.split_once(':')?;
        (name.trim() == "model name").then(|| model.trim().to_owned())
    };
    text.lines()
        .find_map(named)
        .unwrap_or_else(|| std::env::consts::ARCH.into())
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "oxshmem perf {} on {}, {}",
            self.version, self.hostname, self.cpu_model
        )?;
        let bind = self.bind.map_or("as the job has them".into(), |bind| {
            format!("bound to {bind}")
        });
        writeln!(f, "PEs      {}, {bind}", self.pes)?;
        let mut cpus: Vec<(&str, usize)> = Vec::new();
        for list in &self.cpus {
            match cpus.iter_mut().find(|(known, _)| known == list) {
                Some((_, count)) => *count += 1,
                None => cpus.push((list, 1)),
            }
        }
        let cpus: Vec<String> = cpus
            .iter()
            .map(|(list, n)| format!("{n} on {list}"))
            .collect();
        writeln!(f, "CPUs     {}", cpus.join("; "))?;
        let how = if self.mapped {
            "loaded and stored directly"
        } else {
            "by lanes"
        };
        writeln!(f, "route    {} by {}, {how}", self.ends(), self.way())?;
        writeln!(f, "heap     {} a PE", Rounded(self.heap_limit))?;
        writeln!(
            f,
            "order    {}; visibility {}",
            self.memory_model, self.visibility
        )?;
        for (name, value) in &self.settings {
            writeln!(f, "set      {name}={value}")?;
        }
        if let Some(effort) = self.effort {
            let batch = effort.batch.as_micros();
            let row = match effort.row {
                Until::Time(row) => format!("{row:?} a row"),
                Until::Operations(operations) => format!("{operations} operations a row"),
            };
            let checked = if effort.validate { "batch" } else { "row" };
            writeln!(
                f,
                "batches  of {batch} µs or more, {row}; the data of each {checked} is checked"
            )?;
        }
        if let (Some(window), Some(threads)) = (self.window, self.threads) {
            let threads = match threads {
                1 => String::new(),
                threads => format!(" of each of {threads} threads"),
            };
            writeln!(
                f,
                "windows  of {window} operations{threads}, where it is asked what goes at once"
            )?;
        }
        if let (Some(team), Some(pes)) = (self.team, self.team_pes)
            && team != Which::World.name()
        {
            writeln!(f, "team     {team}, {pes} PEs, for collectives")?;
        }
        if self.memory == Some(Memory::Cuda.name()) {
            writeln!(f, "memory   of GPUs, for blocks")?;
        }
        if self.session == Some(true) {
            writeln!(f, "session  of one-sided operations, batched")?;
        }
        if let (Some(fold), Some(number)) = (self.fold, self.number)
            && (fold, number) != (Fold::Sum.name(), Number::default().name())
        {
            writeln!(f, "folds    {fold} of {number}, in reductions and scans")?;
        }
        if !self.optimised {
            writeln!(
                f,
                "warning  built without optimisation: the times say little"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_know_every_variable_of_a_job_by_its_name() {
        let variables = oxshmem::variables();
        for name in JOB {
            assert!(
                variables.iter().any(|variable| variable.name == name),
                "{name}"
            );
        }
        let settings = settings();
        assert!(JOB.iter().all(|name| !settings.contains_key(name)));
    }
}
