//! PMI-1 and PMI-2: text over a descriptor that the process manager left in `PMI_FD`.
//!
//! MPICH's and Intel's `mpiexec` (hydra) and Slurm's `srun --mpi=pmi2` speak both. After a session's
//! [`meet`](Manager::meet) the PEs have their own way to each other.
//!
//! A process manager hangs up on who finalizes, and MPI speaks over the same connection: so the
//! session lasts until MPI finalizes or the process ends. One that ends by `_exit` does not
//! finalize, and hydra then ends the others.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::environment::meeting::{Manager, Place};
use crate::protocol::MAX_PES;
use crate::{Error, Result, ending};

mod fields;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod mapping;
mod one;
mod socket;
mod two;

use socket::Socket;

/// Which of the two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Version::One => "PMI-1",
            Version::Two => "PMI-2",
        }
    }
}

/// What `PMI_FD`, `PMI_RANK`, `PMI_SIZE` and `PMI_JOBID` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub version: Version,
    pub descriptor: i32,
    pub rank: u32,
    pub size: u32,
    /// PMI-2's only, and not every process manager names it.
    pub job: Option<String>,
}

/// The key under which rank 0 publishes, but for how often the session has met before.
const KEY: &str = "oxshmem-rendezvous";

/// The key under which the process manager itself tells which processes are on which host.
const MAPPING: &str = "PMI_process_mapping";

/// How long it may take to finalize when the process ends.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Sessions that last until the process ends: one but in tests.
static KEPT: Mutex<Vec<Session>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<Session>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is said in one of the protocols once a session is accepted.
trait Protocol: std::fmt::Debug + Send {
    /// Bounds every wait from now on.
    fn wait_until(&mut self, end: Instant);

    /// What the process manager has under [`MAPPING`].
    fn mapping(&mut self) -> Result<String>;

    /// Collective: publishes and gives what rank 0 has published.
    fn exchange(&mut self, key: &str, published: Option<&str>) -> Result<String>;

    /// Takes leave; nothing is said any more.
    fn finalize(&mut self) -> Result<()>;
}

#[derive(Debug)]
struct Session {
    protocol: Box<dyn Protocol>,
    settings: Settings,
    meetings: u32,
}

/// Begins a session, or goes on with this process's; every wait in it ends at `end`.
pub(crate) fn open(settings: Settings, end: Instant) -> Result<Box<dyn Manager>> {
    let of_this_process = {
        let mut kept = kept();
        let at = kept.iter().position(|session| session.settings == settings);
        at.map(|at| kept.swap_remove(at))
    };
    if let Some(mut session) = of_this_process {
        session.protocol.wait_until(end);
        return Ok(Box::new(session));
    }
    let socket = Socket::inherited(settings.descriptor, settings.version.name(), end)?;
    Session::over(socket, settings)
}

impl Session {
    fn over(socket: Socket, settings: Settings) -> Result<Box<dyn Manager>> {
        let protocol: Box<dyn Protocol> = match settings.version {
            Version::One => Box::new(one::Client::open(socket)?),
            Version::Two => Box::new(two::Client::open(socket, &settings)?),
        };
        Ok(Box::new(Session {
            protocol,
            settings,
            meetings: 0,
        }))
    }
}

impl Manager for Session {
    fn place(&self) -> Place {
        let Settings { rank, size, .. } = self.settings;
        Place { rank, size }
    }

    fn is_on_one_host(&mut self) -> bool {
        // Not every manager tells; one that has ended is met with again right after this.
        let mapping = self.protocol.mapping();
        mapping.is_ok_and(|mapping| mapping::is_one_host(&mapping))
    }

    fn name(&self) -> &'static str {
        self.settings.version.name()
    }

    fn meet(mut self: Box<Self>, published: Option<&str>) -> Result<String> {
        let key = format!("{KEY}-{}", self.meetings);
        let value = self.protocol.exchange(&key, published)?;
        self.meetings += 1;
        ending::expect();
        kept().push(*self);
        Ok(value)
    }
}

/// Finalizes what lasts until the process ends.
pub(crate) fn end() {
    // A thread that this process's end has overtaken may hold it.
    let Ok(mut kept) = KEPT.try_lock() else {
        return;
    };
    for mut session in kept.drain(..) {
        session.protocol.wait_until(Instant::now() + LAST_WORD);
        // Where MPI has finalized, nobody listens any more.
        let _ = session.protocol.finalize();
    }
}

/// An answer that is not the one to the question.
fn unexpected(interface: &'static str, step: &'static str, what: String) -> Error {
    Error::ProcessManager {
        interface,
        step,
        why: what,
        hint: "PMI_FD may lead to something that speaks another protocol: set OXSHMEM_BOOTSTRAP \
               to pmi1 or pmi2 as the process manager's documentation says",
    }
}

/// Refuses an answer with another number than the environment's, which would split the job.
fn agree(interface: &'static str, name: &str, environment: u32, answer: u32) -> Result<()> {
    if environment == answer && answer <= MAX_PES {
        return Ok(());
    }
    let what = format!("the process manager says {name} {answer}, the environment {environment}");
    Err(unexpected(interface, "joining", what))
}

#[cfg(test)]
mod tests;
