//! PMIx: `libpmix`, loaded when the environment asks for it.
//!
//! Open MPI's `mpirun`, PRRTE's `prterun` and Slurm's `srun --mpi=pmix` serve it. The library's
//! calls wait as long as they like, so that they run on a thread of their own, which is given up
//! at the deadline.
//!
//! The client stays until the process ends: others in it, such as MPI, may come to use PMIx later,
//! which counts its users and cannot be initialized again when the last has finalized. A process
//! that ends by `_exit(0)` does not end its client, and Open MPI's `mpirun` takes that for a failure.

use std::ffi::CString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::client::exit_now;
use crate::environment::meeting::{Manager, Place};
use crate::error::io;
use crate::{Error, Result, ending, report};

mod library;

use library::{Client, Failure, Library};

pub(crate) const NAME: &str = "PMIx";

/// The key under which rank 0 publishes, but for how often this process has joined before.
const KEY: &str = "oxshmem-rendezvous";

/// How long the client's end may take when the process ends.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Between sessions and until the process's end.
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
    place: Place,
    is_on_one_host: bool,
    publish: Sender<Option<String>>,
    answers: Receiver<Answer>,
    begun: Instant,
    end: Instant,
}

/// What the thread tells. Steps are told before they begin, so that one that never ends has a name.
#[derive(Debug)]
enum Answer {
    Step(&'static str),
    /// The place, and whether all PEs are on this host.
    Place(Place, bool),
    Value(String),
    Failed(Error),
}

/// Begins a session; every wait in it ends at `end`.
pub(crate) fn open(end: Instant) -> Result<Box<dyn Manager>> {
    let (publish, published) = channel();
    let (tell, answers) = channel();
    std::thread::Builder::new()
        .name("oxshmem-pmix".into())
        .spawn(move || {
            if let Err(error) = serve(&tell, &published) {
                // Whoever asked may have given up.
                let _ = tell.send(Answer::Failed(error));
            }
        })
        .map_err(io("starting the thread that speaks PMIx"))?;
    let mut session = Session {
        place: Place { rank: 0, size: 0 },
        is_on_one_host: false,
        publish,
        answers,
        begun: Instant::now(),
        end,
    };
    loop {
        if let Answer::Place(place, is_on_one_host) = session.next("loading libpmix")? {
            session.place = place;
            session.is_on_one_host = is_on_one_host;
            return Ok(Box::new(session));
        }
    }
}

impl Session {
    /// The next answer that is no step.
    fn next(&self, mut step: &'static str) -> Result<Answer> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left) {
                Ok(Answer::Step(next)) => step = next,
                Ok(Answer::Failed(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
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

impl Manager for Session {
    fn place(&self) -> Place {
        self.place
    }

    fn is_on_one_host(&mut self) -> bool {
        self.is_on_one_host
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn meet(self: Box<Self>, published: Option<&str>) -> Result<String> {
        // If the thread is gone, the next answer says why.
        let _ = self.publish.send(published.map(str::to_owned));
        loop {
            if let Answer::Value(value) = self.next("publishing the rendezvous")? {
                return Ok(value);
            }
        }
    }
}

/// The session, on the thread.
fn serve(tell: &Sender<Answer>, published: &Receiver<Option<String>>) -> Result<()> {
    let begin = |step: &'static str| {
        // Nobody may be listening any more; the calls still end in their own time.
        let _ = tell.send(Answer::Step(step));
        step
    };
    // No other session goes on meanwhile.
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
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
    let place = Place {
        rank: client.rank(),
        size: client.job_size().map_err(failed("joining"))?,
    };
    let is_on_one_host = client.local_size() == Some(place.size);
    let _ = tell.send(Answer::Place(place, is_on_one_host));
    let key = CString::new(format!("{KEY}-{}", kept.sessions)).unwrap_or_default();
    // The session was dropped without a meeting.
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
    let _ = tell.send(Answer::Value(value));
    Ok(())
}

/// Keeps the client until the process ends, which must not be without a word to the process manager.
fn keep(client: Client, mut kept: MutexGuard<'_, Kept>) {
    ending::expect();
    kept.client = Some(client);
}

/// Ends the process, whose process manager is gone: with mpirun the job has ended.
fn end_without_manager() -> ! {
    report::say_at_once("the process manager (mpirun, srun) has ended; so does this PE");
    exit_now(1)
}

/// Ends the client, if this process has one.
pub(crate) fn end() {
    // A session that was given up may have it for ever.
    let Some(client) = KEPT.try_lock().ok().and_then(|mut kept| kept.client.take()) else {
        return;
    };
    let (ended, heard) = channel();
    let thread = std::thread::Builder::new().spawn(move || {
        drop(client);
        // Nobody waits any more if this took too long.
        let _ = ended.send(());
    });
    if thread.is_ok() {
        let _ = heard.recv_timeout(LAST_WORD);
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

    /// A session that hears these answers and is then left waiting.
    fn told(answers: impl IntoIterator<Item = Answer>) -> (Session, Sender<Answer>) {
        let (tell, heard) = channel();
        for answer in answers {
            tell.send(answer).unwrap();
        }
        let session = Session {
            place: Place { rank: 0, size: 2 },
            is_on_one_host: false,
            publish: channel().0,
            answers: heard,
            begun: Instant::now(),
            end: Instant::now() + Duration::from_millis(50),
        };
        (session, tell)
    }

    #[test]
    fn a_call_that_never_ends_is_given_up_and_named() {
        let (session, _tell) = told([Answer::Step("joining"), Answer::Step("waiting for all")]);
        let words = Box::new(session).meet(Some("v")).unwrap_err().to_string();
        assert!(
            words.contains("waiting for all: no answer within"),
            "{words}"
        );
    }

    #[test]
    fn a_failed_call_is_told_with_its_step() {
        let failure = failed("joining")(Failure::new("UNREACHABLE"));
        let (session, _tell) = told([Answer::Step("joining"), Answer::Failed(failure)]);
        let words = Box::new(session).meet(None).unwrap_err().to_string();
        assert!(words.contains("PMIx: joining: UNREACHABLE"), "{words}");
    }

    #[test]
    fn a_thread_that_has_died_is_not_waited_for() {
        let (session, tell) = told([]);
        drop(tell);
        let words = Box::new(session).meet(None).unwrap_err().to_string();
        assert!(words.contains("has died"), "{words}");
    }
}
