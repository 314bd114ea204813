//! Settings of a world: one table of environment variables, read in one place.
//!
//! A variable that begins `OXSHMEM_` and is not in the table gives a warning that names the nearest one. A value that makes no
//! sense is an error that names variable and value.

use std::path::PathBuf;
use std::time::Duration;

use crate::nic_filter::Nics;
use oxshmem_engine::route::rules::Rules;
use oxshmem_heap::HugePages;
use oxshmem_transport::Variable;
use tracing_subscriber::filter::Targets;

use crate::error::{Error, Result};
use crate::registry::spec::Spec;
use crate::stats::counters::Target;
use crate::{log, registry};
use oxshmem_collectives::select::Choices;

/// The published memory model whose order a world keeps (M20, M21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MemoryModel {
    /// OpenSHMEM's: blocking reads return values in the order in which they were performed (M20).
    Ordered,
    /// NVSHMEM's: they need not, and a fence between two of them restores it (M21).
    Relaxed,
}

/// Atomics that NICs perform (M29); those narrower than 64 bits never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Atomics {
    /// Those of 64 bits if every host has one PE; else those on memory allocated for it.
    Auto,
    /// None.
    Cpu,
    /// Those of 64 bits.
    Nic,
}

macro_rules! variables {
    ($($name:literal, $default:literal, $meaning:literal;)*) => {
        /// Every environment variable that oxshmem itself reads.
        const VARIABLES: &[Variable] = &[$(Variable {
            name: $name,
            default: $default,
            meaning: $meaning,
        }),*];
    };
}

variables! {
    "OXSHMEM_SYMMETRIC_SIZE", "half of RAM / PEs of the host",
        "limit of each PE's symmetric heap: bytes, with K, M, G or T, or a share of RAM such as 10%; \
         the PEs agree on the smallest";
    "SHMEM_SYMMETRIC_SIZE", "unset", "the same, where OXSHMEM_SYMMETRIC_SIZE is not set";
    "SMA_SYMMETRIC_SIZE", "unset", "the same, where neither of the two is set";
    "OXSHMEM_CUDA_SYMMETRIC_SIZE", "0",
        "limit of each PE's symmetric heap on its GPU: bytes, with K, M, G or T; 0 is none; the PEs \
         agree on the smallest";
    "NVSHMEM_SYMMETRIC_SIZE", "unset", "the same, where OXSHMEM_CUDA_SYMMETRIC_SIZE is not set";
    "OXSHMEM_GPU", "by the PE's place on its host", "the number of the GPU that this PE takes";
    "OXSHMEM_CUDA_LIBRARY", "the machine's libcuda.so.1",
        "the CUDA driver to load instead, such as the software driver of core/emulation/driver";
    "OXSHMEM_HUGE_PAGES", "transparent",
        "off, transparent (pages of 2 MiB as far as the kernel has them), 2M or 1G: what the heap asks the \
         kernel for (2M and 1G need a pool)";
    "OXSHMEM_TRANSPORT", "all built in, best first",
        "comma-separated transports that may be used, in order of preference; weak(loopback) is \
         loopback with everything put off and reordered that its guarantees permit";
    "OXSHMEM_SEED", "0", "which of its choices weak makes: a whole number, the same on every PE";
    "OXSHMEM_NIC", "any", "comma-separated NICs to choose among, such as mlx5_0:1,mlx5_2, or, \
         after a ^, not to use";
    "OXSHMEM_NIC_MAP", "the nearest, balanced",
        "NICs of a host's PEs by their order: mlx5_0:1:2,mlx5_1:1:2 gives port 1 of each to two";
    "OXSHMEM_ROUTE", "unset",
        "comma-separated rules such as remote=verbs, local=^loopback, 4-7=verbs: the transport to \
         use, or after ^ not to use, towards PEs of this host, of others, some PEs, or a host id (host:7 where that is a number)";
    "OXSHMEM_TOPOLOGY", "this machine",
        "a file of hwloc's XML (lstopo file.xml) that describes the machine instead";
    "OXSHMEM_MEMORY_MODEL", "ordered", "ordered (OpenSHMEM) or relaxed (NVSHMEM)";
    "OXSHMEM_CHECK", "0", "1 checks what the memory models leave undefined; slower";
    "OXSHMEM_ATOMICS", "auto",
        "who performs atomics of 64 bits: cpu, nic, or auto: NICs where every host has one PE, else on memory \
         allocated with the hint ATOMICS_REMOTE; narrower ones are always the CPU's";
    "OXSHMEM_COLLECTIVES", "auto",
        "how collective calls move their data: scratch, direct or auto for all, or comma-separated by kind, such as \
         reduce=direct,broadcast=scratch (oxshmem info --collectives lists the kinds); with flat among them, calls do not go host \
         by host; the same on every PE";
    "OXSHMEM_TEAMS", "256",
        "how many teams a PE may be in at a time, besides the world and the shared one (and OpenSHMEM's active sets, of which a \
         quarter as many are kept); the same on every PE";
    "OXSHMEM_TIMEOUT", "none",
        "seconds (or 500ms, 2m) after which a wait for another PE is an error";
    "OXSHMEM_BOOTSTRAP_TIMEOUT", "60",
        "seconds (or 500ms, 2m) that the PEs may take to find each other";
    "OXSHMEM_BOOTSTRAP", "auto",
        "how the PEs find each other: auto, launcher, torchrun, pmi1, pmi2, pmix or single";
    "OXSHMEM_HUB_ADDRESS", "all of rank 0's addresses",
        "host or host:port where PEs on other hosts reach the job's rendezvous";
    "OXSHMEM_HOST_ID", "the kernel's boot id",
        "which host this PE says it is on; PEs of one id try to share memory";
    "OXSHMEM_SPIN", "auto",
        "iterations a wait spins before it yields (32 times as many on one PE's lane); auto is 0 when PEs outnumber the allowed CPUs";
    "OXSHMEM_TRACE", "none",
        "a file for a time line of what the PEs do, which Perfetto and chrome://tracing open; %h in the name is the \
         host's number";
    "OXSHMEM_LOG", "none",
        "levels of a log on stderr, for all or by target: error, warn, info, debug or trace, such as \
         info,oxshmem_verbs=debug; with it warnings go there too";
    "OXSHMEM_STATS", "0",
        "1 has PE 0 write to stderr at the end what each PE has done (operations and bytes by path, waits, the heap's \
         most), any other value to the file of that name; slower; the same on every PE";
    "OXSHMEM_RSH", "ssh",
        "the command by which oxshmem run --hosts reaches a host, such as ssh {host}";
    "OXSHMEM_RANK", "set by oxshmem run", "this PE's number";
    "OXSHMEM_SIZE", "set by oxshmem run", "number of PEs";
    "OXSHMEM_LOCAL_RANK", "set by oxshmem run", "this PE's number on its host";
    "OXSHMEM_RENDEZVOUS", "set by oxshmem run", "host:port where the PEs meet";
    "OXSHMEM_JOB_KEY", "set by oxshmem run", "secret of this job, 64 hexadecimal digits";
    "OXSHMEM_HOST_ADDRESS", "set by oxshmem run --hosts",
        "this host's address in the network by which the launcher reached the hosts: the interface that the transport ofi \
         uses for TCP where OXSHMEM_OFI_INTERFACE names none";
    "OXSHMEM_MASTER_PORT", "MASTER_PORT",
        "port where rank 0 listens in a torchrun-style job, where torchrun holds MASTER_PORT itself";
    "RANK", "set by torchrun", "this PE's number, where OXSHMEM_RANK is not set";
    "WORLD_SIZE", "set by torchrun", "number of PEs";
    "LOCAL_RANK", "set by torchrun", "this PE's number on its host";
    "MASTER_ADDR", "set by torchrun", "address of rank 0";
    "MASTER_PORT", "set by torchrun", "port of rank 0";
}

/// All environment variables: oxshmem's own, and those of the transports in this build.
#[must_use]
pub fn variables() -> Vec<Variable> {
    let mut all = VARIABLES.to_vec();
    all.extend(registry::variables());
    all
}

/// Bytes of the largest heap: far below 2^63, so that sums of offsets and sizes in it do not overflow.
pub(crate) const MAX_HEAP: u64 = 1 << 46;

/// Teams that a PE may be in at a time, at most.
const MAX_TEAMS: usize = 1 << 16;

/// The settings of one world.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// In bytes.
    pub heap_limit: Option<u64>,
    /// The variable or call that sets it.
    pub heap_limit_by: &'static str,
    /// In bytes; 0 is no GPU heap.
    pub gpu_limit: u64,
    /// Whether the environment says it.
    pub names_gpu_limit: bool,
    /// Whether it is a binding's default, which the job need not have.
    pub gpu_limit_is_default: bool,
    /// The number of the GPU to take.
    pub gpu: Option<usize>,
    pub huge_pages: HugePages,
    pub transports: Option<Vec<Spec>>,
    pub seed: u64,
    pub nics: Nics,
    pub rules: Rules,
    pub topology: Option<PathBuf>,
    pub model: MemoryModel,
    pub check: bool,
    pub atomics: Atomics,
    pub collectives: Choices,
    pub teams: usize,
    pub timeout: Option<Duration>,
    pub bootstrap_timeout: Duration,
    pub host_id: Option<String>,
    pub spin: Option<u32>,
    pub trace: Option<PathBuf>,
    pub log: Option<Targets>,
    pub stats: Option<Target>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            heap_limit: None,
            heap_limit_by: "OXSHMEM_SYMMETRIC_SIZE",
            gpu_limit: 0,
            names_gpu_limit: false,
            gpu_limit_is_default: false,
            gpu: None,
            huge_pages: HugePages::Transparent,
            transports: None,
            seed: 0,
            nics: Nics::Any,
            rules: Rules::default(),
            topology: None,
            model: MemoryModel::Ordered,
            check: false,
            atomics: Atomics::Auto,
            collectives: Choices::default(),
            teams: 256,
            timeout: None,
            bootstrap_timeout: Duration::from_secs(60),
            host_id: None,
            spin: None,
            trace: None,
            log: None,
            stats: None,
        }
    }
}

impl Config {
    /// Reads the environment of this process. Gives warnings, too, about names that look like oxshmem's and are not.
    pub(crate) fn from_environment(
        defaults: &[(&'static str, String)],
    ) -> Result<(Self, Vec<String>)> {
        let names = std::env::vars_os().map(|(name, _)| name);
        let warnings = names.filter_map(|name| unknown(name.to_str()?)).collect();
        let default_of = |name: &str| {
            let given = defaults.iter().find(|(given, _)| *given == name);
            given.map(|(_, value)| value.clone())
        };
        let lookup = |name: &str| environment(name).or_else(|| default_of(name));
        Ok((Self::read(&lookup)?, warnings))
    }

    /// Sets the heap's limit, by the variable or call that is named.
    pub(crate) fn set_heap_limit(
        &mut self,
        (name, value): (&'static str, &str),
        bytes: u64,
    ) -> Result<()> {
        if bytes > MAX_HEAP {
            let why = format!("a symmetric heap has {MAX_HEAP} bytes at most; give fewer");
            return Err(invalid(name, value, why));
        }
        self.heap_limit = Some(bytes);
        self.heap_limit_by = name;
        Ok(())
    }

    /// Reads the variables that `lookup` knows.
    pub(crate) fn read(lookup: Lookup<'_>) -> Result<Self> {
        let mut config = Config::default();
        config.read_heaps(lookup)?;
        config.read_transports(lookup)?;
        config.read_semantics(lookup)?;
        config.read_limits(lookup)?;
        config.read_reports(lookup)?;
        Ok(config)
    }

    /// The heaps' limits and their memory.
    fn read_heaps(&mut self, lookup: Lookup<'_>) -> Result<()> {
        let names = [
            "OXSHMEM_SYMMETRIC_SIZE",
            "SHMEM_SYMMETRIC_SIZE",
            "SMA_SYMMETRIC_SIZE",
        ];
        if let Some((name, value)) = names.iter().find_map(|n| Some((*n, lookup(n)?))) {
            let whole = oxshmem_heap::available::Available::now().map_or(0, |a| a.total);
            let limit = oxshmem_heap::limit::parse(&value, whole);
            let limit = limit.map_err(|why| invalid(name, &value, why.to_string()))?;
            self.set_heap_limit((name, &value), limit)?;
        }
        let names = ["OXSHMEM_CUDA_SYMMETRIC_SIZE", "NVSHMEM_SYMMETRIC_SIZE"];
        let named = names.iter().find_map(|n| Some((*n, lookup(n)?)));
        self.names_gpu_limit = named.is_some();
        if let Some((name, value)) = named
            && value.trim() != "0"
        {
            // A share means nothing here: the GPU is known only later.
            let limit = oxshmem_heap::limit::parse(&value, 0);
            self.gpu_limit = limit.map_err(|why| invalid(name, &value, why.to_string()))?;
        }
        parse(lookup, "OXSHMEM_GPU", &mut self.gpu, |v| {
            let number = v.parse().map_err(|e| format!("{e}; give a GPU's number"))?;
            Ok(Some(number))
        })?;
        let huge_pages = &mut self.huge_pages;
        parse(lookup, "OXSHMEM_HUGE_PAGES", huge_pages, |v| match v {
            "off" | "0" => Ok(HugePages::Off),
            "transparent" => Ok(HugePages::Transparent),
            "2M" | "2m" => Ok(HugePages::Explicit2M),
            "1G" | "1g" => Ok(HugePages::Explicit1G),
            _ => Err("choose off, transparent, 2M or 1G".into()),
        })
    }

    /// The transports, their devices and the rules for routes.
    fn read_transports(&mut self, lookup: Lookup<'_>) -> Result<()> {
        parse(lookup, "OXSHMEM_TRANSPORT", &mut self.transports, |v| {
            Spec::parse_list(v).map(Some)
        })?;
        parse(lookup, "OXSHMEM_SEED", &mut self.seed, |v| {
            v.parse()
                .map_err(|_| format!("give a whole number from 0 to {}", u64::MAX))
        })?;
        parse(lookup, "OXSHMEM_NIC", &mut self.nics, Nics::parse_list)?;
        let listed = self.nics.clone();
        let nics = &mut self.nics;
        parse(lookup, "OXSHMEM_NIC_MAP", nics, |v| match listed {
            Nics::Any => Nics::parse_map(v),
            _ => Err("OXSHMEM_NIC is set too; set one of the two".into()),
        })?;
        parse(lookup, "OXSHMEM_ROUTE", &mut self.rules, Rules::parse)?;
        let topology = &mut self.topology;
        parse(lookup, "OXSHMEM_TOPOLOGY", topology, |v| match v {
            "" => Err("name a file of hwloc's XML".into()),
            v => Ok(Some(v.into())),
        })
    }

    /// The memory model, its checks, the atomics and the collective calls.
    fn read_semantics(&mut self, lookup: Lookup<'_>) -> Result<()> {
        let model = &mut self.model;
        parse(lookup, "OXSHMEM_MEMORY_MODEL", model, |v| match v {
            "ordered" => Ok(MemoryModel::Ordered),
            "relaxed" => Ok(MemoryModel::Relaxed),
            _ => Err("choose ordered or relaxed".into()),
        })?;
        let atomics = &mut self.atomics;
        parse(lookup, "OXSHMEM_ATOMICS", atomics, |v| match v {
            "auto" => Ok(Atomics::Auto),
            "cpu" => Ok(Atomics::Cpu),
            "nic" => Ok(Atomics::Nic),
            _ => Err("choose auto, cpu or nic".into()),
        })?;
        let collectives = &mut self.collectives;
        parse(lookup, "OXSHMEM_COLLECTIVES", collectives, Choices::parse)?;
        parse(lookup, "OXSHMEM_TEAMS", &mut self.teams, |v| {
            let number = v.parse().ok().filter(|number| *number <= MAX_TEAMS);
            number.ok_or_else(|| format!("give a whole number from 0 to {MAX_TEAMS}"))
        })?;
        parse(lookup, "OXSHMEM_CHECK", &mut self.check, |v| match v {
            "0" | "off" => Ok(false),
            "1" | "on" => Ok(true),
            _ => Err("choose 0 or 1".into()),
        })
    }

    /// The time limits, the host and the spin budget.
    fn read_limits(&mut self, lookup: Lookup<'_>) -> Result<()> {
        let timeout = &mut self.timeout;
        parse(lookup, "OXSHMEM_TIMEOUT", timeout, |v| match v {
            "none" => Ok(None),
            v => duration(v).map(Some),
        })?;
        let timeout = &mut self.bootstrap_timeout;
        parse(lookup, "OXSHMEM_BOOTSTRAP_TIMEOUT", timeout, duration)?;
        parse(lookup, "OXSHMEM_HOST_ID", &mut self.host_id, |v| {
            Ok(Some(v.to_owned()))
        })?;
        parse(lookup, "OXSHMEM_SPIN", &mut self.spin, |v| match v {
            "auto" => Ok(None),
            v => v
                .parse()
                .map(Some)
                .map_err(|e| format!("{e}; give a whole number, or auto")),
        })
    }

    /// The trace, the log and the statistics.
    fn read_reports(&mut self, lookup: Lookup<'_>) -> Result<()> {
        parse(lookup, "OXSHMEM_TRACE", &mut self.trace, |v| match v {
            "" => Err("name a file to write, or none".into()),
            "none" => Ok(None),
            v => Ok(Some(v.into())),
        })?;
        parse(lookup, "OXSHMEM_LOG", &mut self.log, log::parse)?;
        parse(lookup, "OXSHMEM_STATS", &mut self.stats, |v| match v {
            "" => Err("give 1 for standard error, or name a file to write, or 0".into()),
            "0" | "none" => Ok(None),
            "1" => Ok(Some(Target::Stderr)),
            v => Ok(Some(Target::File(v.into()))),
        })
    }
}

/// The value of a variable by its name, if it is set.
type Lookup<'l> = &'l dyn Fn(&str) -> Option<String>;

/// A variable's value in this process. Nothing else reads the environment.
pub(crate) fn environment(name: &str) -> Option<String> {
    // A value that is not UTF-8 is valid for no variable: shown with replacement characters, it fails to parse.
    std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
}

/// A warning for a name that looks like oxshmem's and is not.
fn unknown(name: &str) -> Option<String> {
    if !name.starts_with("OXSHMEM_") || OTHERS.iter().any(|other| name.starts_with(other)) {
        return None;
    }
    let known = variables();
    if known.iter().any(|v| v.name == name) {
        return None;
    }
    let nearest = known.iter().max_by(|a, b| {
        strsim::jaro_winkler(name, a.name).total_cmp(&strsim::jaro_winkler(name, b.name))
    })?;
    Some(format!(
        "the environment variable {name} is not one of oxshmem's and has no effect; \
         did you mean {}? (oxshmem info --variables lists them all)",
        nearest.name
    ))
}

fn invalid(name: &str, value: &str, why: String) -> Error {
    Error::Config {
        name: name.to_owned(),
        value: value.to_owned(),
        why,
    }
}

/// Sets `into` by the variable's value, if it is set.
fn parse<T>(
    lookup: Lookup<'_>,
    name: &str,
    into: &mut T,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<()> {
    if let Some(value) = lookup(name) {
        *into = parse(value.trim()).map_err(|why| invalid(name, &value, why))?;
    }
    Ok(())
}

/// Beginnings of names that the project's tests, `ci/softroce` and `ci/softnic` read.
const OTHERS: [&str; 3] = ["OXSHMEM_TEST_", "OXSHMEM_SOFTROCE_", "OXSHMEM_SOFTNIC"];

/// Seconds, or a number with ms, s, m or h.
fn duration(text: &str) -> Result<Duration, String> {
    let hint = "give a positive number of seconds, or a number with ms, s, m or h";
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("{other:?} is no unit of time; {hint}")),
    };
    let number: f64 = digits.trim().parse().map_err(|_| hint.to_owned())?;
    let seconds = number * unit;
    if !(seconds > 0.0 && seconds < 1e9) {
        return Err(hint.into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config> {
        Config::read(&|name| {
            pairs
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn m14_the_heap_limit_comes_from_three_names_in_order() {
        let limit = |pairs: &[(&str, &str)]| read(pairs).unwrap().heap_limit.unwrap();
        let (ox, sh, sma) = (
            "OXSHMEM_SYMMETRIC_SIZE",
            "SHMEM_SYMMETRIC_SIZE",
            "SMA_SYMMETRIC_SIZE",
        );
        assert_eq!(limit(&[(sma, "3k")]), 3072);
        assert_eq!(limit(&[(sma, "3k"), (sh, "2K")]), 2048);
        assert_eq!(limit(&[(sma, "3k"), (sh, "2K"), (ox, "1.5m")]), 3 << 19);
        assert_eq!(read(&[(sma, "3k")]).unwrap().heap_limit_by, sma);
    }

    #[test]
    fn a_bad_value_names_variable_value_and_remedy() {
        for (name, value) in [
            ("OXSHMEM_SYMMETRIC_SIZE", "lots"),
            ("SHMEM_SYMMETRIC_SIZE", "64.01T"),
            ("OXSHMEM_TIMEOUT", "-1"),
            ("OXSHMEM_TIMEOUT", "5 fortnights"),
            ("OXSHMEM_CHECK", "maybe"),
            ("OXSHMEM_MEMORY_MODEL", "strong"),
            ("OXSHMEM_HUGE_PAGES", "3M"),
            ("OXSHMEM_SPIN", "1.5"),
            ("OXSHMEM_COLLECTIVES", "reduce=fast"),
            ("OXSHMEM_TEAMS", "-1"),
            ("OXSHMEM_TEAMS", "65537"),
            ("OXSHMEM_TRANSPORT", "loopback,,"),
            ("OXSHMEM_TRANSPORT", "loopback,loopback"),
            ("OXSHMEM_TRANSPORT", "weak(loopback"),
            ("OXSHMEM_SEED", "-7"),
            ("OXSHMEM_TRACE", " "),
            ("OXSHMEM_LOG", "loud"),
            ("OXSHMEM_STATS", " "),
            ("OXSHMEM_NIC", "mlx5_0,,"),
            ("OXSHMEM_NIC_MAP", "mlx5_0:1:none"),
            ("OXSHMEM_ROUTE", "local"),
            ("OXSHMEM_ROUTE", "7-3=loopback"),
        ] {
            let message = read(&[(name, value)]).unwrap_err().to_string();
            assert!(
                message.contains(name) && message.contains(value),
                "{message}"
            );
        }
    }

    #[test]
    fn a_list_and_a_map_of_nics_exclude_each_other() {
        let map = ("OXSHMEM_NIC_MAP", "mlx5_0:1:2");
        assert!(matches!(read(&[map]).unwrap().nics, Nics::Map(_)));
        let message = read(&[map, ("OXSHMEM_NIC", "mlx5_0")])
            .unwrap_err()
            .to_string();
        assert!(message.contains("OXSHMEM_NIC is set too"), "{message}");
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert!(duration("nan").is_err() && duration("1e99h").is_err() && duration("é").is_err());
    }

    #[test]
    fn an_unknown_variable_is_told_its_nearest() {
        let warning = unknown("OXSHMEM_SYMETRIC_SIZE").unwrap();
        assert!(warning.contains("OXSHMEM_SYMMETRIC_SIZE"), "{warning}");
        assert_eq!(unknown("OXSHMEM_TIMEOUT"), None);
        assert_eq!(unknown("OXSHMEM_SOFTROCE_CACHE"), None);
        assert_eq!(unknown("OXSHMEM_SOFTNIC"), None);
        assert_eq!(unknown("OXSHMEM_SOFTNIC_SEED"), None);
        assert_eq!(unknown("PATH"), None);
    }
}
