//! PMIx: `libpmix`, loaded when the environment asks for it.
//!
//! Open MPI's `mpirun`, PRRTE's `prterun` and Slurm's `srun --mpi=pmix` serve it. The library's
//! calls block without a time limit, so they run on a thread of their own, which is abandoned
//! at the deadline.
//!
//! The client stays until the process ends: others in it, such as MPI, may come to use PMIx later,
//! which counts its users and cannot be initialized again when the last has finalized. A process
//! that ends by `_exit(0)` does not end its client, and Open MPI's `mpirun` takes that for a failure.

use std::ffi::CString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, io};
use crate::exit_hook::{self, Interface};
use crate::lock::unpoisoned;
use crate::process_manager::{ProcessManager, RankAndSize};

mod library;

use library::{Client, Failure, Library};

pub(crate) const NAME: &str = "PMIx";

/// The key under which rank 0 publishes; the number of this process's earlier sessions follows.
const KEY: &str = "oxshmem-rendezvous";

/// Time limit for the client's end when the process ends.
const LAST_WORD: Duration = Duration::from_secs(5);

/// The client, between sessions and until the process's end.
static KEPT: Mutex<Kept> = Mutex::new(Kept {
    client: None,
    sessions: 0,
});

#[derive(Debug)]
struct Kept {
    client: Option<Client>,
    sessions: u32,
}

/// A session with the library on its thread.
#[derive(Debug)]
struct Session {
    rank_and_size: RankAndSize,
    is_on_one_host: bool,
    publish: Sender<Option<String>>,
    events: Receiver<SessionEvent>,
    begun: Instant,
    end: Instant,
}

/// An event that the thread reports. A step is reported before it begins, so that one that never ends has a name.
#[derive(Debug)]
enum SessionEvent {
    Step(&'static str),
    /// Rank and size, and whether all PEs are on this host.
    RankAndSize(RankAndSize, bool),
    Value(String),
    Failed(Error),
}

/// Begins a session; every wait in it ends at `end`.
pub(crate) fn open(end: Instant) -> Result<Box<dyn ProcessManager>> {
    let (publish, published) = channel();
    let (report, events) = channel();
    std::thread::Builder::new()
        .name("oxshmem-pmix".into())
        .spawn(move || {
            if let Err(error) = serve(&report, &published) {
                // The thread that asked may have given up.
                let _ = report.send(SessionEvent::Failed(error));
            }
        })
        .map_err(io("starting the thread that speaks PMIx"))?;
    let mut session = Session {
        rank_and_size: RankAndSize { rank: 0, size: 0 },
        is_on_one_host: false,
        publish,
        events,
        begun: Instant::now(),
        end,
    };
    loop {
        if let SessionEvent::RankAndSize(rank_and_size, is_on_one_host) =
            session.next("loading libpmix")?
        {
            session.rank_and_size = rank_and_size;
            session.is_on_one_host = is_on_one_host;
            return Ok(Box::new(session));
        }
    }
}

impl Session {
    /// The next event that is no step.
    fn next(&self, mut step: &'static str) -> Result<SessionEvent> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(SessionEvent::Step(next)) => step = next,
                Ok(SessionEvent::Failed(error)) => return Err(error),
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::ProcessManager {
                        interface: NAME,
                        step,
                        why: format!("no answer within {:.1?}", self.begun.elapsed()),
                        hint: "see whether every PE runs and initializes oxshmem; \
                               OXSHMEM_BOOTSTRAP_TIMEOUT sets how long to wait",
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed(step)(Failure::new(
                        "the thread that speaks it has died",
                    )));
                }
            }
        }
    }
}

impl ProcessManager for Session {
    fn rank_and_size(&self) -> RankAndSize {
        self.rank_and_size
    }

    fn is_on_one_host(&mut self) -> bool {
        self.is_on_one_host
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn exchange(self: Box<Self>, published: Option<&str>) -> Result<String> {
        // If the thread is gone, the next event says why.
        let _ = self.publish.send(published.map(str::to_owned));
        loop {
            if let SessionEvent::Value(value) = self.next("publishing the rendezvous")? {
                return Ok(value);
            }
        }
    }
}

/// The session, on the thread.
fn serve(report: &Sender<SessionEvent>, published: &Receiver<Option<String>>) -> Result<()> {
    let begin = |step: &'static str| {
        // Nobody may be listening any more; the calls still end in their own time.
        let _ = report.send(SessionEvent::Step(step));
        step
    };
    // No other session goes on meanwhile.
    let mut kept = unpoisoned(KEPT.lock());
    let client = match kept.client.take() {
        Some(client) => client,
        None => {
            let step = begin("loading libpmix");
            let library = Library::load().map_err(failed(step))?;
            let step = begin("joining");
            let client = Client::init(library).map_err(failed(step))?;
            client.end_with_manager();
            client
        }
    };
    let rank_and_size = RankAndSize {
        rank: client.rank(),
        size: client.job_size().map_err(failed("joining"))?,
    };
    let is_on_one_host = client.local_size() == Some(rank_and_size.size);
    let _ = report.send(SessionEvent::RankAndSize(rank_and_size, is_on_one_host));
    let key = CString::new(format!("{KEY}-{}", kept.sessions)).unwrap_or_default();
    // The session was dropped before its exchange.
    let Ok(published) = published.recv() else {
        keep(client, kept);
        return Ok(());
    };
    if let Some(value) = published {
        let step = begin("publishing the rendezvous");
        let value = CString::new(value)
            .map_err(|_| failed(step)(Failure::new("the value has a zero byte")))?;
        client.put(&key, &value).map_err(failed(step))?;
    }
    let step = begin("waiting for the other PEs");
    client.fence().map_err(failed(step))?;
    let step = begin("looking up the rendezvous");
    let value = client.get(0, &key).map_err(failed(step))?;
    kept.sessions += 1;
    keep(client, kept);
    let _ = report.send(SessionEvent::Value(value));
    Ok(())
}

/// Keeps the client until the process ends, which must not be without a word to the process manager.
fn keep(client: Client, mut kept: MutexGuard<'_, Kept>) {
    exit_hook::register(Interface::Pmix, end);
    kept.client = Some(client);
}

/// Ends the client, if this process has one and ends with status 0: a manager of PMIx takes a process that ends without this
/// for a failure, which another status is meant to be.
fn end(status: i32) {
    if status != 0 {
        return;
    }
    // A session that was abandoned may hold the lock for ever.
    let Some(client) = KEPT.try_lock().ok().and_then(|mut kept| kept.client.take()) else {
        return;
    };
    let (ended, finalized) = channel();
    let thread = std::thread::Builder::new().spawn(move || {
        drop(client);
        // Nobody waits any more if this took too long.
        let _ = ended.send(());
    });
    if thread.is_ok() {
        let _ = finalized.recv_timeout(LAST_WORD);
    }
}

fn failed(step: &'static str) -> impl FnOnce(Failure) -> Error {
    move |failure| Error::ProcessManager {
        interface: NAME,
        step,
        why: failure.to_string(),
        hint: "PMIX_NAMESPACE and PMIX_RANK are set by mpirun or srun --mpi=pmix: see its output, \
               install libpmix.so.2 (Debian: libpmix2) where this PE runs, or set \
               OXSHMEM_BOOTSTRAP to another way to meet",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A session that gets these events and is then left waiting.
    fn told(events: impl IntoIterator<Item = SessionEvent>) -> (Session, Sender<SessionEvent>) {
        let (tell, received) = channel();
        for event in events {
            tell.send(event).unwrap();
        }
        let session = Session {
            rank_and_size: RankAndSize { rank: 0, size: 2 },
            is_on_one_host: false,
            publish: channel().0,
            events: received,
            begun: Instant::now(),
            end: Instant::now() + Duration::from_millis(50),
        };
        (session, tell)
    }

    #[test]
    fn a_call_that_never_ends_is_given_up_and_named() {
        let (session, _tell) = told([
            SessionEvent::Step("joining"),
            SessionEvent::Step("waiting for all"),
        ]);
        let words = Box::new(session)
            .exchange(Some("v"))
            .unwrap_err()
            .to_string();
        assert!(
            words.contains("waiting for all: no answer within"),
            "{words}"
        );
    }

    #[test]
    fn a_failed_call_is_told_with_its_step() {
        let failure = failed("joining")(Failure::new("UNREACHABLE"));
        let (session, _tell) = told([SessionEvent::Step("joining"), SessionEvent::Failed(failure)]);
        let words = Box::new(session).exchange(None).unwrap_err().to_string();
        assert!(words.contains("PMIx: joining: UNREACHABLE"), "{words}");
    }

    #[test]
    fn a_thread_that_has_died_is_not_waited_for() {
        let (session, tell) = told([]);
        drop(tell);
        let words = Box::new(session).exchange(None).unwrap_err().to_string();
        assert!(words.contains("has died"), "{words}");
    }
}
