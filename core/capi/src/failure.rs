//! What becomes of a call that cannot be done.

use std::ffi::c_int;
use std::io::Write;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::library;
use crate::threads::Thread;

/// Why a call cannot be done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library says so.
    Core(oxshmem::Error),
    /// The library is not initialized.
    NotInitialized,
    /// An argument makes no sense.
    Argument {
        /// Its name in the specification.
        name: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

pub(crate) type Done<R = ()> = Result<R, Failure>;

impl From<oxshmem::Error> for Failure {
    fn from(error: oxshmem::Error) -> Self {
        Failure::Core(error)
    }
}

impl Failure {
    #[cold]
    pub(crate) fn argument(name: &'static str, what: impl Into<String>) -> Self {
        Failure::Argument {
            name,
            what: what.into(),
        }
    }

    /// An argument that is null, where symmetric memory is wanted.
    #[cold]
    pub(crate) fn null(name: &'static str) -> Self {
        Failure::argument(
            name,
            "this is null; give an address of symmetric memory (an allocation that fails gives null)",
        )
    }

    /// What the library says of an argument.
    pub(crate) fn of(name: &'static str, error: oxshmem::Error) -> Self {
        match error {
            oxshmem::Error::Argument { what, .. } => Failure::Argument { name, what },
            oxshmem::Error::OutOfRange { end, len, .. } => Failure::argument(
                name,
                format!("{end} elements, of which {len} are there; give fewer, or allocate more"),
            ),
            error => Failure::argument(name, error.to_string()),
        }
    }

    /// Whether another PE's leaving can be the reason, or this one's.
    fn is_of_leaving(&self) -> bool {
        use oxshmem::Error::{Bootstrap, CollectivesEnded, LaneFailed, PeerLost};
        matches!(
            self,
            Failure::Core(
                PeerLost { .. } | LaneFailed { .. } | CollectivesEnded { .. } | Bootstrap(_)
            )
        )
    }

    fn words(&self) -> String {
        match self {
            Failure::Core(oxshmem::Error::NoSuchPe { pe, size, .. }) => {
                // C's numbers are signed.
                let (pe, last) = (*pe as isize, *size as isize - 1);
                format!("argument pe: there is no PE {pe}; here PEs are 0 to {last}")
            }
            Failure::Core(error) => error.to_string(),
            Failure::NotInitialized => {
                "oxshmem is not initialized; call shmem_init first, and nothing after the last shmem_finalize".into()
            }
            Failure::Argument { name, what } => format!("argument {name}: {what}"),
        }
    }
}

/// Says something on stderr; where it cannot be written nobody wants to know.
#[cold]
pub(crate) fn say(words: &str) {
    let _ = std::io::stderr().write_all(format!("oxshmem: {words}\n").as_bytes());
}

/// Tells of a call that failed. Where another thread ends the process well, and this call fails since PEs leave, nobody is
/// told, and this thread ends, having no lock of the library's.
#[cold]
pub(crate) fn tell(call: &str, failure: &Failure) {
    let exiting = EXITING.get();
    if failure.is_of_leaving() && exiting.is_some_and(|thread| *thread != Thread::current()) {
        // SAFETY: ends this thread as it is, but not the process. What lies on its stack stays until it is joined.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    let words = failure.words();
    match library::get() {
        Ok(library) => say(&format!("PE {}: {call}: {words}", library.world.my_pe())),
        Err(_) => say(&format!("{call}: {words}")),
    }
}

/// The thread by which the process exits well, if one does.
static EXITING: OnceLock<Thread> = OnceLock::new();

/// This thread exits. Where others are in calls these may fail from here on, because PEs leave.
pub(crate) fn exits_well() {
    let _ = EXITING.set(Thread::current());
}

/// Whether the process exits well.
pub(crate) fn is_exiting() -> bool {
    EXITING.get().is_some()
}

/// Tells of a call that failed and cannot say so, and ends the job.
#[cold]
#[inline(never)]
pub(crate) fn end(call: &str, failure: Failure) -> ! {
    tell(call, &failure);
    exit(1)
}

/// How long what the program has written may take to be on its way.
const FLUSH: Duration = Duration::from_secs(5);

/// Has what the program has written to its streams be on its way. A thread that reads of a stream has it for itself until
/// something comes: that stream, and those opened before it but for stdout, are given up in time.
fn flush() {
    let (done, is_done) = channel();
    let flushed = thread::Builder::new().spawn(move || {
        // SAFETY: a stream of the C library's.
        unsafe { libc::fflush(stdout) };
        // SAFETY: null flushes all streams, the latest first.
        unsafe { libc::fflush(null_mut()) };
        // Nobody waits any more if this took too long.
        let _ = done.send(());
    });
    match flushed {
        Ok(_) => drop(is_done.recv_timeout(FLUSH)),
        // SAFETY: as above.
        Err(_) => drop(unsafe { libc::fflush(stdout) }),
    }
}

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// Ends the job with a status: every PE, whatever it is doing.
#[cold]
pub(crate) fn exit(status: c_int) -> ! {
    flush();
    if let Ok(library) = library::get() {
        library.world.global_exit(status);
    }
    // SAFETY: ends the process. Without a launcher nobody else does; and no exit handler may wait for other PEs.
    unsafe { libc::_exit(status) }
}

/// What a call gave, or the job's end.
#[inline(always)]
pub(crate) fn or_end<R>(call: &'static str, done: Done<R>) -> R {
    match done {
        Ok(done) => done,
        Err(failure) => end(call, failure),
    }
}

/// The same of what a context gave, on the fast path.
#[inline(always)]
pub(crate) fn given_or_end<R, E: Into<Failure>>(call: &'static str, given: Result<R, E>) -> R {
    match given {
        Ok(given) => given,
        Err(error) => end_by(call, error),
    }
}

#[cold]
#[inline(never)]
fn end_by<E: Into<Failure>>(call: &str, error: E) -> ! {
    end(call, error.into())
}

/// The status of a call: 0, or after a message something else.
#[inline(always)]
pub(crate) fn status(call: &'static str, done: Done) -> c_int {
    match done {
        Ok(()) => 0,
        Err(failure) => {
            tell(call, &failure);
            -1
        }
    }
}
