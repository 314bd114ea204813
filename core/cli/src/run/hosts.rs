//! Jobs on several hosts.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use oxshmem_bootstrap::{HUB_ADDRESS, Hosts, RSH, serve_agent};

use super::bind::{self, Bind};
use super::values::duration;

/// The variable that limits how long PEs, and so hosts, may take to find each other.
const TIMEOUT: &str = "OXSHMEM_BOOTSTRAP_TIMEOUT";

/// The hosts of a job that does not run only here.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Hosts and how many PEs each gets, such as a:4,b:4. Ranks go to the hosts in this order. All
    /// need oxshmem and the program at the same paths, and the working directory. -H and -host are
    /// the same.
    #[arg(long, value_name = "LIST", conflicts_with = "hostfile")]
    hosts: Option<String>,
    /// A file with a host in each line, as `a:4` or `a slots=4`. -hostfile is the same.
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// The command that reaches a host, where {host} stands for its name (else that is added). The
    /// words `PATH run --agent` follow, which need no quotes; the command must pass standard input
    /// and output on unchanged. OXSHMEM_RSH sets it, too; ssh unless set.
    #[arg(long, value_name = "COMMAND")]
    rsh: Option<String>,
    /// This host's address as the others see it, with or without a port. OXSHMEM_HUB_ADDRESS sets
    /// it, too; unless set, each host tries this one's addresses in turn.
    #[arg(long, value_name = "ADDRESS")]
    hub_address: Option<String>,
    /// Sets a variable for the PEs, or passes one on to other hosts, which get those of OXSHMEM_*,
    /// SHMEM_*, SMA_* and NVSHMEM_* anyway. May be given several times.
    #[arg(short = 'x', value_name = "NAME[=VALUE]")]
    variables: Vec<OsString>,
    /// Be a host's agent: for a launcher on another host, not for people.
    #[arg(long, hide = true)]
    pub agent: bool,
}

impl Args {
    /// Reads the hosts, if any are given, with `pes` PEs or as many as they have slots.
    pub fn read(&self, pes: Option<u32>, bind: Bind) -> anyhow::Result<Option<Hosts>> {
        let list = match (&self.hosts, &self.hostfile) {
            (Some(list), _) => Hosts::parse_list(list)?,
            (None, Some(file)) => {
                let text = read_file(file)
                    .with_context(|| format!("cannot read the host file {}", file.display()))?;
                Hosts::parse_file(&text).with_context(|| file.display().to_string())?
            }
            (None, None) => {
                anyhow::ensure!(
                    self.rsh.is_none() && self.hub_address.is_none(),
                    "--rsh and --hub-address are for other hosts; give some with --hosts"
                );
                return Ok(None);
            }
        };
        let own = std::env::current_exe().context("cannot find this program itself")?;
        let agent = vec![own.into_os_string(), "run".into(), "--agent".into()];
        let mut hosts = Hosts::new(list, agent);
        if let Some(pes) = pes {
            hosts.keep(pes)?;
        }
        let set = |given: &Option<String>, name| given.clone().or(std::env::var(name).ok());
        if let Some(rsh) = set(&self.rsh, RSH) {
            hosts.rsh = rsh;
        }
        hosts.hub_address = set(&self.hub_address, HUB_ADDRESS);
        hosts.bind = bind.to_string();
        if let Ok(limit) = std::env::var(TIMEOUT) {
            let limit = duration(&limit);
            hosts.deadline = limit.map_err(|hint| anyhow::anyhow!("{TIMEOUT}: {hint}"))?;
        }
        Ok(Some(hosts))
    }

    /// The variables that `-x` gives.
    pub fn variables(&self) -> anyhow::Result<Vec<(OsString, OsString)>> {
        let mut variables = Vec::new();
        for given in &self.variables {
            let text = given
                .to_str()
                .context("-x takes names and values in UTF-8")?;
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.into())),
                None => (text, std::env::var_os(text)),
            };
            anyhow::ensure!(
                !name.is_empty(),
                "-x {text} names no variable; give NAME or NAME=VALUE"
            );
            let value = value.with_context(|| {
                format!("-x {name}: that variable is not set here; set it, or give {name}=VALUE")
            })?;
            variables.push((name.into(), value));
        }
        Ok(variables)
    }
}

/// Bytes of the longest host file: 65,536 hosts with long names.
const LONGEST_FILE: u64 = 16 << 20;

/// A file's text. A pipe (as of `<(…)`) is read like a file.
fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    anyhow::ensure!(
        text.len() as u64 <= LONGEST_FILE,
        "it is longer than {} MiB; give a file with a host in each line",
        LONGEST_FILE >> 20
    );
    Ok(text)
}

/// Runs as this host's agent; returns the exit status.
pub fn serve() -> i32 {
    serve_agent(&|policy, pes| {
        let policy = policy.parse()?;
        bind::cpu_sets(pes as usize, policy).map_err(|error| error.to_string())
    })
}
