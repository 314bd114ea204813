//! Failures of calls: their messages, their status, and the end of the job.

use std::ffi::c_int;
use std::io::Write;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use oxshmem::World;

use crate::thread::Thread;

/// The reason why a call cannot be done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error.
    Core(oxshmem::Error),
    /// The library is not initialized.
    NotInitialized,
    /// The GPU memory or the kernels that the call needs are not there, in words.
    Gpu(String),
    /// An argument makes no sense.
    Argument {
        /// Its name in the specification.
        name: &'static str,
        /// The fault, and the remedy.
        what: String,
    },
}

/// The result of a call of the C API.
pub(crate) type CResult<R = ()> = Result<R, Failure>;

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

    /// An argument that is null, where it must be symmetric memory.
    #[cold]
    pub(crate) fn null(name: &'static str) -> Self {
        Failure::argument(
            name,
            "this is null; give an address of symmetric memory (an allocation that fails gives null)",
        )
    }

    /// The library's error about an argument.
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

    /// Whether the exit of another PE can be the reason, or this one's.
    fn is_of_exit(&self) -> bool {
        use oxshmem::Error::{Bootstrap, CollectivesEnded, LaneFailed, PeerLost};
        matches!(
            self,
            Failure::Core(
                PeerLost { .. } | LaneFailed { .. } | CollectivesEnded { .. } | Bootstrap(_)
            )
        )
    }

    fn message(&self) -> String {
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
            Failure::Gpu(why) => why.clone(),
            Failure::Argument { name, what } => format!("argument {name}: {what}"),
        }
    }
}

/// The function that finds this process's world, while it is initialized: set by the module that keeps it.
static FIND_WORLD: OnceLock<fn() -> Option<&'static World>> = OnceLock::new();

/// Has messages name this PE, and failures end its job, from here on.
pub(crate) fn find_world_by(find: fn() -> Option<&'static World>) {
    // The same function each time.
    let _ = FIND_WORLD.set(find);
}

fn world() -> Option<&'static World> {
    FIND_WORLD.get().and_then(|find| find())
}

/// Prints a message on stderr. An error there is ignored: nobody could read of it.
#[cold]
pub(crate) fn print(message: &str) {
    let _ = std::io::stderr().write_all(format!("oxshmem: {message}\n").as_bytes());
}

/// Reports a call that failed. Where another thread exits the process cleanly, and this call fails because PEs leave, nothing
/// is reported, and this thread ends: it holds no lock of the library's.
#[cold]
pub(crate) fn report(call: &str, failure: &Failure) {
    let exiting = EXITING.get();
    if failure.is_of_exit() && exiting.is_some_and(|thread| *thread != Thread::current()) {
        // SAFETY: ends this thread as it is, but not the process. Its stack stays until it is joined.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    let message = failure.message();
    match world() {
        Some(world) => print(&format!("PE {}: {call}: {message}", world.my_pe())),
        None => print(&format!("{call}: {message}")),
    }
}

/// The thread by which the process exits cleanly, if one does.
static EXITING: OnceLock<Thread> = OnceLock::new();

/// Notes that this thread exits the process. Calls of other threads may fail from here on, because PEs leave.
pub(crate) fn note_clean_exit() {
    let _ = EXITING.set(Thread::current());
}

/// Whether the process exits cleanly.
pub(crate) fn is_exiting() -> bool {
    EXITING.get().is_some()
}

/// Reports a call that failed and returns no status, and ends the job.
#[cold]
#[inline(never)]
pub(crate) fn abort_job(call: &str, failure: Failure) -> ! {
    report(call, &failure);
    exit_job(1)
}

/// The longest time that a flush of the program's output may take.
const FLUSH: Duration = Duration::from_secs(5);

/// Flushes the program's C streams. A thread that reads from a stream holds it until data comes: the wait for that stream,
/// and for those opened before it except stdout, has a limit.
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
pub(crate) fn exit_job(status: c_int) -> ! {
    flush();
    if let Some(world) = world() {
        world.global_exit(status);
    }
    // SAFETY: ends the process. Without a launcher nobody else does; and no exit handler may wait for other PEs.
    unsafe { libc::_exit(status) }
}

/// The value of a call, or the job's end.
#[inline(always)]
pub(crate) fn or_abort_job<R, E: Into<Failure>>(call: &'static str, result: Result<R, E>) -> R {
    match result {
        Ok(value) => value,
        Err(error) => abort_job_by(call, error),
    }
}

#[cold]
#[inline(never)]
fn abort_job_by<E: Into<Failure>>(call: &str, error: E) -> ! {
    abort_job(call, error.into())
}

/// The status of a call: 0, or after a message -1.
#[inline(always)]
pub(crate) fn status(call: &'static str, result: CResult) -> c_int {
    match result {
        Ok(()) => 0,
        Err(failure) => {
            report(call, &failure);
            -1
        }
    }
}
