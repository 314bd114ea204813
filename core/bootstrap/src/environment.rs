//! The job that environment variables describe, and the way into it.
//!
//! Malformed or missing variables are errors that name them; nothing is guessed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bootstrap::Bootstrap;
use crate::client::TcpBootstrap;
use crate::client::connect::Listens;
use crate::error::{Error, Result};
use crate::hub::HubListener;
use crate::job_key::JobKey;
use crate::limits::MAX_PES;
use crate::protocol::hello::Hello;
use crate::single::Single;
use crate::variables::{JOB_KEY, LOCAL_RANK, Lookup, RANK, RENDEZVOUS, SIZE};
use crate::{pmi, pmix};

pub(crate) mod addresses;
pub(crate) mod backend;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
pub(crate) mod publication;
#[cfg(test)]
mod tests;

use backend::{Backend, choose};

const MASTER_PORT: &str = "OXSHMEM_MASTER_PORT";

/// Joins the job that `lookup`'s variables describe.
///
/// - Under oxshmem's launcher: `OXSHMEM_RANK`, `OXSHMEM_SIZE`, `OXSHMEM_RENDEZVOUS` (host:port),
///   `OXSHMEM_JOB_KEY`, and `OXSHMEM_LOCAL_RANK`.
/// - Else under torchrun (`TORCHELASTIC_RUN_ID` is set) by its variables, as below.
/// - Else under a process manager that serves PMIx (`PMIX_NAMESPACE`, `PMIX_RANK`: Open MPI's
///   mpirun, `srun --mpi=pmix`), or PMI-1 or PMI-2 (`PMI_FD`, `PMI_RANK`, `PMI_SIZE`: MPICH's
///   mpiexec, `srun --mpi=pmi2`). Rank 0 hosts the rendezvous and tells the others its addresses
///   and a new key through the process manager; `OXSHMEM_HUB_ADDRESS` (host or host:port) on rank 0
///   replaces its addresses.
/// - Else as torchrun and others set them: `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`, and
///   `LOCAL_RANK`. Rank 0 hosts the rendezvous at that address and port; `OXSHMEM_MASTER_PORT`
///   replaces the port where something else listens on it. With more than one PE, all need the
///   same `OXSHMEM_JOB_KEY`.
/// - Else it is a world of one.
///
/// `OXSHMEM_BOOTSTRAP` (launcher, torchrun, pmix, pmi1, pmi2, single) chooses one of them instead.
///
/// `deadline` bounds joining and, later, each collective call. This does not wait for the other
/// ranks, except under a process manager: else the first collective call does.
pub fn join(lookup: Lookup<'_>, deadline: Duration) -> Result<Arc<dyn Bootstrap>> {
    match Job::read(lookup)? {
        Job::Single => Ok(Arc::new(Single::new())),
        Job::Launched { address, hello } => {
            let listens = Listens::Already;
            let pe = TcpBootstrap::new(&address, hello, deadline, listens, None)?;
            Ok(Arc::new(pe))
        }
        Job::Hosted { address, hello } if hello.rank == 0 => {
            let hub = host(&address)?;
            let local = reachable(hub.address());
            let hub = hub.serve_and_report(hello.size, hello.key)?;
            let (address, listens) = (local.to_string(), Listens::Already);
            let pe = TcpBootstrap::new(&address, hello, deadline, listens, Some(hub))?;
            Ok(Arc::new(pe))
        }
        Job::Hosted { address, hello } => {
            let listens = Listens::Later;
            let pe = TcpBootstrap::new(&address, hello, deadline, listens, None)?;
            Ok(Arc::new(pe))
        }
        Job::Pmi(settings) => {
            let end = Instant::now() + deadline.min(LONGEST);
            publication::join(pmi::open(settings, end)?, lookup, deadline, end)
        }
        Job::Pmix => {
            let end = Instant::now() + deadline.min(LONGEST);
            publication::join(pmix::open(end)?, lookup, deadline, end)
        }
    }
}

/// The longest deadline: a later one may be beyond what the clock can express.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// The job that the variables describe.
#[derive(Debug)]
enum Job {
    Single,
    /// A rendezvous listens at the address.
    Launched {
        address: String,
        hello: Hello,
    },
    /// Rank 0 hosts the rendezvous at the address.
    Hosted {
        address: String,
        hello: Hello,
    },
    /// A process manager serves PMI-1 or PMI-2 at the other end of `PMI_FD`.
    Pmi(pmi::version::Settings),
    /// A process manager serves PMIx.
    Pmix,
}

impl Job {
    fn read(lookup: Lookup<'_>) -> Result<Job> {
        let (backend, present) = choose(lookup)?;
        let variables = |hint| Variables {
            lookup,
            present,
            hint,
        };
        match backend {
            Backend::Single => Ok(Job::Single),
            Backend::Launcher => launched(&variables(LAUNCHED_HINT)),
            Backend::Torchrun => hosted(&variables(HOSTED_HINT)),
            Backend::Pmi(version) => managed(&variables(PMI_HINT), version),
            Backend::Pmix => {
                // The library reads more than these, but names a missing one less well.
                let variables = variables(PMIX_HINT);
                variables.get("PMIX_NAMESPACE")?;
                variables.get("PMIX_RANK")?;
                Ok(Job::Pmix)
            }
        }
    }
}

const LAUNCHED_HINT: &str = "start the program with `oxshmem run`, which sets OXSHMEM_RANK, \
    OXSHMEM_SIZE, OXSHMEM_RENDEZVOUS and OXSHMEM_JOB_KEY, or unset them all for a world of one";
const HOSTED_HINT: &str = "set all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (as torchrun \
    does), or none of them for a world of one";
const PMI_HINT: &str = "mpiexec (MPICH's, Intel's) and srun --mpi=pmi2 set PMI_FD, PMI_RANK and \
    PMI_SIZE; start the program by one of them (a manager that only offers PMI_PORT is not \
    supported), or set OXSHMEM_BOOTSTRAP to another way";
const PMIX_HINT: &str = "mpirun (Open MPI's) and srun --mpi=pmix set PMIX_NAMESPACE and PMIX_RANK; \
    start the program by one of them, or set OXSHMEM_BOOTSTRAP to another way";
const KEY_HINT: &str = "a job of several PEs is guarded by a key: set OXSHMEM_JOB_KEY to the same \
    64 hexadecimal digits on all PEs, for example export OXSHMEM_JOB_KEY=$(openssl rand -hex 32) \
    before starting them";
const PORT_HINT: &str = "torchrun's own agent may hold MASTER_PORT: set OXSHMEM_MASTER_PORT to a \
    free port, the same on all PEs";

struct Variables<'a> {
    lookup: Lookup<'a>,
    present: &'static str,
    hint: &'static str,
}

impl Variables<'_> {
    fn get(&self, name: &'static str) -> Result<String> {
        let Variables { present, hint, .. } = *self;
        (self.lookup)(name).ok_or(Error::HalfSet {
            present,
            missing: name,
            hint,
        })
    }

    fn number<T: FromStr>(&self, name: &'static str, what: &str) -> Result<T> {
        parse(name, self.get(name)?, what)
    }

    fn size(&self, name: &'static str) -> Result<u32> {
        let size: u32 = self.number(name, "is not a number of PEs")?;
        if (1..=MAX_PES).contains(&size) {
            return Ok(size);
        }
        Err(unusable(
            name,
            size,
            format!("is not a job's size: it has 1 to {MAX_PES} PEs"),
        ))
    }

    fn rank(&self, name: &'static str, size: u32) -> Result<u32> {
        let rank: u32 = self.number(name, "is not a rank")?;
        if rank < size {
            return Ok(rank);
        }
        let last = size - 1;
        Err(unusable(
            name,
            rank,
            format!("is not a rank of this job: it has ranks 0 to {last}"),
        ))
    }

    /// Nothing here needs the local rank, but a wrong one hints at a mistake elsewhere.
    fn check_local_rank(&self, name: &'static str, size: u32) -> Result<()> {
        if (self.lookup)(name).is_some() {
            self.rank(name, size)?;
        }
        Ok(())
    }

    fn key(&self) -> Result<JobKey> {
        let Some(text) = (self.lookup)(JOB_KEY) else {
            let (present, missing) = (self.present, JOB_KEY);
            return Err(Error::HalfSet {
                present,
                missing,
                hint: KEY_HINT,
            });
        };
        JobKey::from_hex(&text).ok_or_else(|| {
            // A key that is nearly right is still a secret.
            let value = format!("({} characters, not shown)", text.chars().count());
            let problem = "is not a key: it must be 64 hexadecimal digits, as `openssl rand -hex \
                           32` prints them"
                .to_owned();
            Error::Variable {
                name: JOB_KEY,
                value,
                problem,
            }
        })
    }
}

fn parse<T: FromStr>(name: &'static str, text: String, what: &str) -> Result<T> {
    match text.trim().parse() {
        Ok(value) => Ok(value),
        Err(_) => Err(Error::Variable {
            name,
            value: text,
            problem: format!("{what}; give a decimal number"),
        }),
    }
}

fn unusable(name: &'static str, value: u32, problem: String) -> Error {
    Error::Variable {
        name,
        value: value.to_string(),
        problem,
    }
}

fn launched(variables: &Variables<'_>) -> Result<Job> {
    let size = variables.size(SIZE)?;
    let rank = variables.rank(RANK, size)?;
    variables.check_local_rank(LOCAL_RANK, size)?;
    let address = variables.get(RENDEZVOUS)?;
    let port = address
        .rsplit_once(':')
        .map(|(host, port)| (host.is_empty(), port.parse::<u16>()));
    if !matches!(port, Some((false, Ok(1..)))) {
        let problem = "is not an address; give host:port".to_owned();
        return Err(Error::Variable {
            name: RENDEZVOUS,
            value: address,
            problem,
        });
    }
    Ok(Job::Launched {
        address,
        hello: Hello {
            rank,
            size,
            key: variables.key()?,
        },
    })
}

fn hosted(variables: &Variables<'_>) -> Result<Job> {
    let size = variables.size("WORLD_SIZE")?;
    let rank = variables.rank("RANK", size)?;
    variables.check_local_rank("LOCAL_RANK", size)?;
    if size == 1 {
        return Ok(Job::Single);
    }
    let host = variables.get("MASTER_ADDR")?;
    let name = if (variables.lookup)(MASTER_PORT).is_some() {
        MASTER_PORT
    } else {
        "MASTER_PORT"
    };
    let port: u16 = variables.number(name, "is not a port")?;
    if port == 0 {
        return Err(unusable(
            name,
            0,
            "is not a port all PEs can know; give 1 to 65535".to_owned(),
        ));
    }
    if host.trim().is_empty() {
        let problem = "is no host's name; give the name or address of rank 0's host".to_owned();
        return Err(Error::Variable {
            name: "MASTER_ADDR",
            value: host,
            problem,
        });
    }
    let host = host.trim();
    let address = match host.parse::<Ipv6Addr>() {
        Ok(bare) => format!("[{bare}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    };
    Ok(Job::Hosted {
        address,
        hello: Hello {
            rank,
            size,
            key: variables.key()?,
        },
    })
}

fn managed(variables: &Variables<'_>, version: pmi::version::Version) -> Result<Job> {
    let size = variables.size("PMI_SIZE")?;
    let rank = variables.rank("PMI_RANK", size)?;
    if size == 1 {
        return Ok(Job::Single);
    }
    let descriptor: u16 = variables.number("PMI_FD", "is not a descriptor's number")?;
    Ok(Job::Pmi(pmi::version::Settings {
        version,
        descriptor: descriptor.into(),
        rank,
        size,
        job: (variables.lookup)("PMI_JOBID"),
    }))
}

/// Listens at the address where the others will look for rank 0.
///
/// A name may have another address here than elsewhere (Debian gives a host's own name 127.0.1.1),
/// so unless the address is a loopback by number or as `localhost`, this listens on all interfaces.
fn host(address: &str) -> Result<HubListener> {
    let fail = |source| Error::Listen {
        address: address.to_owned(),
        source,
        hint: PORT_HINT,
    };
    let resolved = address.to_socket_addrs().map_err(fail)?.next();
    let resolved = resolved.ok_or_else(|| fail(std::io::ErrorKind::NotFound.into()))?;
    let named = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let by_number = named.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let local = resolved.ip().is_loopback() && (by_number || named == "localhost");
    let ip = match resolved.ip() {
        ip if local => ip,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    HubListener::bind(SocketAddr::new(ip, resolved.port()), PORT_HINT)
}

/// The address at which this process reaches a listener of its own at `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
