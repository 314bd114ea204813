//! PMI-1 and PMI-2: text over a descriptor that the process manager left in `PMI_FD`.
//!
//! MPICH's and Intel's `mpiexec` (hydra) and Slurm's `srun --mpi=pmi2` speak both. After a session's
//! [`exchange`](ProcessManager::exchange) the PEs have their own way to each other.
//!
//! A process manager hangs up on a client that finalizes, and MPI speaks over the same connection: so the
//! session lasts until MPI finalizes or the process ends. A process that ends by `_exit` does not
//! finalize, and hydra then ends the others.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::exit_hook::{self, Interface};
use crate::lock::unpoisoned;
use crate::process_manager::{ProcessManager, RankAndSize};

mod fields;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod mapping;
mod one;
mod socket;
#[cfg(test)]
mod tests;
mod two;
pub(crate) mod version;

use socket::Socket;
use version::{Protocol, Settings, Version};

/// The key under which rank 0 publishes; the number of the session's earlier exchanges follows.
const KEY: &str = "oxshmem-rendezvous";

/// Time limit for finalizing when the process ends.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Sessions that last until the process ends: one, except in tests.
static KEPT: Mutex<Vec<Session>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<Session>> {
    unpoisoned(KEPT.lock())
}

/// A session of either version.
#[derive(Debug)]
struct Session {
    protocol: Box<dyn Protocol>,
    settings: Settings,
    exchanges: u32,
}

/// Begins a session, or goes on with this process's; every wait in it ends at `end`.
pub(crate) fn open(settings: Settings, end: Instant) -> Result<Box<dyn ProcessManager>> {
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
    fn over(socket: Socket, settings: Settings) -> Result<Box<dyn ProcessManager>> {
        let protocol: Box<dyn Protocol> = match settings.version {
            Version::One => Box::new(one::Client::open(socket)?),
            Version::Two => Box::new(two::Client::open(socket, &settings)?),
        };
        Ok(Box::new(Session {
            protocol,
            settings,
            exchanges: 0,
        }))
    }
}

impl ProcessManager for Session {
    fn rank_and_size(&self) -> RankAndSize {
        let Settings { rank, size, .. } = self.settings;
        RankAndSize { rank, size }
    }

    fn is_on_one_host(&mut self) -> bool {
        // Not every manager tells. If it has ended, the exchange right after this says so.
        let mapping = self.protocol.mapping();
        mapping.is_ok_and(|mapping| mapping::is_one_host(&mapping))
    }

    fn name(&self) -> &'static str {
        self.settings.version.name()
    }

    fn exchange(mut self: Box<Self>, published: Option<&str>) -> Result<String> {
        let key = format!("{KEY}-{}", self.exchanges);
        let value = self.protocol.exchange(&key, published)?;
        self.exchanges += 1;
        exit_hook::register(Interface::Pmi, end);
        kept().push(*self);
        Ok(value)
    }
}

/// Finalizes the sessions that last until the process ends, whatever its status: a client that has not finalized has failed
/// to a manager of PMI, which then gives the job a status of its own.
fn end(_status: i32) {
    // A thread that this process's end has overtaken may hold the lock.
    let Ok(mut kept) = KEPT.try_lock() else {
        return;
    };
    for mut session in kept.drain(..) {
        session.protocol.wait_until(Instant::now() + LAST_WORD);
        // If MPI has finalized, nobody listens any more.
        let _ = session.protocol.finalize();
    }
}
