//! The rendezvous: the server through which a job's PEs find each other.
//!
//! One thread serves all connections without blocking on any. It runs in the launcher's process,
//! or in rank 0's for jobs that something else started. It carries collective calls, messages
//! between ranks, and word of their ends; it is on no data path.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::error::{Error, Result, io};
use crate::job_key::JobKey;
use crate::limits::MAX_PES;
use crate::lock::unpoisoned;
use crate::log;
use crate::process::raise_descriptor_limit;
use crate::waits::WaitSnapshot;
use crate::wake::Wake;

mod admission;
pub(crate) mod control;
mod member;
mod refusals;
mod server;
mod survey;
#[cfg(test)]
mod tests;
mod unauthenticated;

use control::{AbortNotice, Control, ControlState, Diagnostics};

/// Descriptors that the process may need beside one for each rank.
const SPARE_DESCRIPTORS: u64 = 512;

/// Descriptors that the rendezvous has beside its connections: to wake its thread and its owner, and to refuse one more PE.
const OWN_DESCRIPTORS: u64 = 3;

/// A rendezvous that listens and is not served yet: connections wait.
#[derive(Debug)]
pub(crate) struct HubListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl HubListener {
    pub(crate) fn bind(address: SocketAddr, hint: &'static str) -> Result<HubListener> {
        let fail = |source| Error::Listen {
            address: address.to_string(),
            source,
            hint,
        };
        let listener = TcpListener::bind(address).map_err(fail)?;
        // A longer queue than std asks for: hundreds of PEs may connect at once.
        rustix::net::listen(&listener, 4096).map_err(|source| fail(source.into()))?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        Ok(HubListener { listener, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the thread that serves. Its owner hears of an abort before any rank does, and writes the warnings.
    pub(crate) fn serve(self, size: u32, key: JobKey) -> Result<Hub> {
        let diagnostics = Diagnostics {
            report_abort: |_| true,
            warn: None,
        };
        self.start(size, key, diagnostics)
    }

    /// [`serve`](Self::serve) for a rendezvous inside rank 0's process, which reports the abort itself: before any rank hears of
    /// it if stderr does not block, because the launcher may kill every rank once one has ended.
    pub(crate) fn serve_and_report(self, size: u32, key: JobKey) -> Result<Hub> {
        let diagnostics = Diagnostics {
            report_abort: AbortNotice::say_at_once,
            warn: Some(log::warn_at_once),
        };
        self.start(size, key, diagnostics)
    }

    fn start(self, size: u32, key: JobKey, diagnostics: Diagnostics) -> Result<Hub> {
        if size == 0 || size > MAX_PES {
            let what = format!("a job has 1 to {MAX_PES} PEs, not {size}");
            return Err(Error::Launch { what });
        }
        // In rank 0's process no launcher has raised the limit.
        let limit = getrlimit(Resource::Nofile).current;
        if limit.is_some_and(|limit| limit < u64::from(size) + SPARE_DESCRIPTORS) {
            raise_descriptor_limit();
            check_descriptor_limit(size)?;
        }
        let control = Arc::new(Control::new(diagnostics)?);
        let server = server::Server::new(self.listener, Arc::clone(&control), size, key);
        let thread = std::thread::Builder::new()
            .name("oxshmem-hub".into())
            .stack_size(256 << 10)
            .spawn(move || server.run())
            .map_err(io("starting the rendezvous' thread"))?;
        Ok(Hub {
            control,
            thread: Some(thread),
        })
    }
}

/// Fails if this process may not have a connection to each of `size` ranks beside what it has open.
fn check_descriptor_limit(size: u32) -> Result<()> {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return Ok(());
    };
    // Without /proc the number is not known. One is the folder's own.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count().saturating_sub(1));
    let needed = open as u64 + u64::from(size) + OWN_DESCRIPTORS;
    if needed <= limit {
        return Ok(());
    }
    let what = format!(
        "the rendezvous of {size} PEs needs {needed} open descriptors in this process, which may \
         have {limit}; raise its limit (ulimit -n), or start fewer PEs"
    );
    Err(Error::Launch { what })
}

/// A rendezvous that is being served, until dropped.
#[derive(Debug)]
pub(crate) struct Hub {
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

impl Hub {
    /// A descriptor that becomes readable after an event (an abort, a warning, or the PEs' waits), until [`abort`](Hub::abort) is
    /// called.
    pub(crate) fn wake_descriptor(&self) -> &Wake {
        &self.control.owner
    }

    /// The rank that ended the job, if one did.
    pub(crate) fn abort(&self) -> Option<AbortNotice> {
        self.control.owner.clear();
        self.control.lock().abort.clone()
    }

    /// The warnings since the last call.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.control.lock().warnings)
    }

    /// Reports the abort on stderr, unless that was done before any rank heard of it.
    pub(crate) fn say_abort(&self) {
        let state = self.control.lock();
        let unreported = state.abort.clone().filter(|_| !state.abort_reported);
        drop(state);
        if let Some(notice) = unreported {
            log::say(&notice.words("rank"));
        }
    }

    /// The ranks whose connections, or processes before they had one, ended without a goodbye, first to last. No other rank has heard
    /// of the first's end before it is the first here.
    pub(crate) fn lost(&self) -> Vec<u32> {
        self.control.lock().lost.clone()
    }

    /// Tells that `rank`'s process has ended: if it never joined, the others need not wait for it.
    pub(crate) fn process_ended(&self, rank: u32) {
        self.control.lock().ended.push(rank);
        self.control.wake.signal();
    }

    /// Asks all PEs for their waits, which take a second at most.
    pub(crate) fn ask_waits(&self) {
        self.control.lock().ask = true;
        self.control.wake.signal();
    }

    /// The answer to [`ask_waits`](Hub::ask_waits), once.
    pub(crate) fn take_waits(&self) -> Option<WaitSnapshot> {
        self.control.lock().snapshot.take()
    }

    /// Waits until no rank is connected any more (those that left count as gone), at most `limit`.
    pub(crate) fn wait_until_deserted(&self, limit: Duration) {
        self.wait(limit, |state| state.present == 0 && state.backlog == 0);
    }

    /// Waits until nothing is left to be sent, at most `limit`.
    pub(crate) fn wait_until_sent(&self, limit: Duration) {
        self.wait(limit, |state| state.backlog == 0);
    }

    fn wait(&self, limit: Duration, done: impl Fn(&ControlState) -> bool) {
        let end = Instant::now() + limit;
        let mut state = self.control.lock();
        while !done(&state) && !self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return;
            };
            state = unpoisoned(self.control.changed.wait_timeout(state, left)).0;
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.control.lock().stop = true;
        self.control.wake.signal();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::warn("the rendezvous' thread panicked");
        }
    }
}
