//! The rendezvous: where a job's PEs meet.
//!
//! One thread serves all connections without blocking on any. It runs in the launcher's process,
//! or in rank 0's for jobs that something else started. It carries collective calls, messages
//! between ranks, and word of their ends; it is on no data path.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::error::io;
use crate::job_key::JobKey;
use crate::launch::raise_descriptor_limit;
use crate::protocol::MAX_PES;
use crate::waits::Picture;
use crate::wake::Wake;
use crate::{Error, Result, report};

mod member;
mod server;
mod stranger;
mod survey;
#[cfg(test)]
mod tests;
mod warnings;

/// Descriptors that the process may need beside one for each rank.
const SPARE_DESCRIPTORS: u64 = 512;

/// Descriptors that the rendezvous has beside its connections: to wake its thread and its owner, and to say no to one more.
const OWN_DESCRIPTORS: u64 = 3;

/// A job ended by one of its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortNotice {
    /// Who.
    pub rank: u32,
    /// With which status.
    pub status: i32,
    /// Why.
    pub why: String,
}

/// The ways in which the hub's thread speaks to the user.
#[derive(Clone, Copy)]
struct Speech {
    /// Says what an abort is for before any rank hears of it; gives whether it did.
    tell: fn(&AbortNotice) -> bool,
    /// Says a warning without waiting for its reader. Without it the owner says what it
    /// [takes](Hub::take_warnings).
    warn: Option<fn(&str)>,
}

impl AbortNotice {
    /// The notice in words, which call that rank `whom`.
    pub(crate) fn words(&self, whom: &str) -> String {
        let AbortNotice { rank, status, why } = self;
        // With status 0 nothing has failed.
        let did = if *status == 0 { "ended" } else { "aborted" };
        format!("{whom} {rank} {did} the job with status {status}: {why}")
    }

    /// Says it on stderr, if that takes it at once.
    fn say_at_once(&self) -> bool {
        report::say_at_once(&self.words("rank"))
    }
}

/// What the hub's owner and its thread tell each other.
#[derive(Debug, Default)]
struct Control {
    /// Owner: end now.
    stop: bool,
    /// Owner: ask all PEs for their waits.
    ask: bool,
    /// Owner: these ranks' processes have ended.
    ended: Vec<u32>,
    /// Thread: a rank ended the job.
    abort: Option<AbortNotice>,
    /// Thread: that was told of before any rank heard of it.
    said: bool,
    /// Thread: the ranks whose connections, or processes before they had one, ended without a goodbye and before an abort, first to
    /// last.
    lost: Vec<u32>,
    /// Thread: all PEs' waits, as the owner asked.
    picture: Option<Picture>,
    /// Thread: how many ranks are connected and have not left.
    present: usize,
    /// Thread: bytes that wait to be sent.
    backlog: usize,
    /// Thread: what the user is to be warned of.
    warnings: Vec<String>,
}

#[derive(Debug)]
struct Shared {
    control: Mutex<Control>,
    changed: Condvar,
    /// For the hub's thread.
    wake: Wake,
    /// For the owner, if it waits in `poll`.
    owner: Wake,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

    /// Starts the thread that serves; its owner hears of an abort before any rank does, and says the warnings.
    pub(crate) fn serve(self, size: u32, key: JobKey) -> Result<Hub> {
        let (tell, warn): (fn(&AbortNotice) -> bool, _) = (|_| true, None);
        self.start(size, key, Speech { tell, warn })
    }

    /// [`serve`](Self::serve) in a rank's process, which says itself what an abort was for: before any rank hears of it where
    /// nothing has to be waited for, as what launched them may kill all as soon as one has ended.
    pub(crate) fn serve_and_say(self, size: u32, key: JobKey) -> Result<Hub> {
        let speech = Speech {
            tell: AbortNotice::say_at_once,
            warn: Some(report::warn_at_once),
        };
        self.start(size, key, speech)
    }

    fn start(self, size: u32, key: JobKey, speech: Speech) -> Result<Hub> {
        if size == 0 || size > MAX_PES {
            let what = format!("a job has 1 to {MAX_PES} PEs, not {size}");
            return Err(Error::Launch { what });
        }
        // In rank 0's process, which nobody has prepared for it.
        let room = getrlimit(Resource::Nofile).current;
        if room.is_some_and(|room| room < u64::from(size) + SPARE_DESCRIPTORS) {
            raise_descriptor_limit();
            check_descriptor_limit(size)?;
        }
        let shared = Arc::new(Shared {
            control: Mutex::default(),
            changed: Condvar::new(),
            wake: Wake::new()?,
            owner: Wake::new()?,
        });
        let server = server::Server::new(self.listener, Arc::clone(&shared), (size, key), speech);
        let thread = std::thread::Builder::new()
            .name("oxshmem-hub".into())
            .stack_size(256 << 10)
            .spawn(move || server.run())
            .map_err(io("starting the rendezvous' thread"))?;
        Ok(Hub {
            shared,
            thread: Some(thread),
        })
    }
}

/// Fails if this process may not have a connection to each of `size` ranks beside what it has open.
fn check_descriptor_limit(size: u32) -> Result<()> {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return Ok(());
    };
    // Without /proc it is not known. One is the folder's own.
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
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Hub {
    /// Readable after something new, an abort, a warning or the PEs' waits, until [`abort`](Hub::abort) is asked.
    pub(crate) fn attention(&self) -> &Wake {
        &self.shared.owner
    }

    /// The rank that ended the job, if one did.
    pub(crate) fn abort(&self) -> Option<AbortNotice> {
        self.shared.owner.clear();
        self.shared.lock().abort.clone()
    }

    /// The warnings that have come since this was last asked.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().warnings)
    }

    /// Says on stderr what the job was aborted for, unless that was said before any rank heard of it.
    pub(crate) fn say_abort(&self) {
        let control = self.shared.lock();
        let unsaid = control.abort.clone().filter(|_| !control.said);
        drop(control);
        if let Some(notice) = unsaid {
            report::say(&notice.words("rank"));
        }
    }

    /// The ranks whose connections, or processes before they had one, ended without a goodbye, first to last. No other rank has heard
    /// of the first's end before it is the first here.
    pub(crate) fn lost(&self) -> Vec<u32> {
        self.shared.lock().lost.clone()
    }

    /// Tells that `rank`'s process has ended: if it never came, the others need not wait for it.
    pub(crate) fn process_ended(&self, rank: u32) {
        self.shared.lock().ended.push(rank);
        self.shared.wake.signal();
    }

    /// Asks all PEs for their waits, which take a second at most.
    pub(crate) fn ask_waits(&self) {
        self.shared.lock().ask = true;
        self.shared.wake.signal();
    }

    /// What came of that, once.
    pub(crate) fn take_waits(&self) -> Option<Picture> {
        self.shared.lock().picture.take()
    }

    /// Waits until no rank is connected any more (those that left count as gone), at most `limit`.
    pub(crate) fn wait_until_deserted(&self, limit: Duration) {
        self.wait(limit, |control| {
            control.present == 0 && control.backlog == 0
        });
    }

    /// Waits until all that was to be sent has been, at most `limit`.
    pub(crate) fn wait_until_sent(&self, limit: Duration) {
        self.wait(limit, |control| control.backlog == 0);
    }

    fn wait(&self, limit: Duration, done: impl Fn(&Control) -> bool) {
        let end = Instant::now() + limit;
        let mut control = self.shared.lock();
        while !done(&control) && !self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.shared.changed.wait_timeout(control, left);
            control = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.signal();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            crate::report::warn("the rendezvous' thread panicked");
        }
    }
}
