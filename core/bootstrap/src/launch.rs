//! Starting a job's PEs on this host and seeing them through.
//!
//! The PEs are one process group, led by a tiny guardian process that kills the group when the
//! launcher is gone, however it went. The launcher hosts the rendezvous, passes input and signals
//! on, assembles output by whole lines, and ends the job when a PE fails.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use crate::environment::{describes_job, read_process_variable};
use crate::hub::{AbortNotice, HubListener};
use crate::job_key::JobKey;
use crate::protocol::MAX_PES;
use crate::{Error, Result};

mod guardian;
mod input;
mod lines;
mod pe;
mod signals;
mod sink;
mod supervisor;

/// A job to start on this host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// The program, by path or by a name looked up in PATH.
    pub program: OsString,
    /// Its arguments, the same for all PEs.
    pub args: Vec<OsString>,
    /// How many PEs.
    pub pes: u32,
    /// End the job, with status 124, if it runs longer.
    pub timeout: Option<Duration>,
    /// Begin each line of output with its PE's `[rank] `.
    pub tag_output: bool,
    /// PE `i` may run on the CPUs `cpu_sets[i % cpu_sets.len()]`; on all if there are none.
    pub cpu_sets: Vec<Vec<usize>>,
    /// Variables to set for the PEs, beside those that they inherit and the launcher's own.
    pub env: Vec<(OsString, OsString)>,
}

/// How one process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By itself, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// Why a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// All PEs exited with status 0.
    Success,
    /// A PE failed; the first to do so.
    Failed {
        /// Which.
        rank: u32,
        /// How it ended.
        how: How,
    },
    /// A PE ended the job.
    Aborted(AbortNotice),
    /// It ran for longer than it was given.
    TimedOut {
        /// Who was still running.
        running: Vec<u32>,
    },
    /// The launcher was told to end by this signal.
    Signalled(i32),
    /// Nobody reads the output any more.
    OutputClosed,
    /// The output could not be written, for instance because the disk is full: the system's error
    /// number.
    OutputFailed(i32),
}

/// A job's end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The status that the launching program exits with: 0, or the first failing PE's (128 + its
    /// signal), the abort's (or 1 where its low byte, which is all that a process can have, is 0 and it is not), 124
    /// after a timeout, 128 + the signal that ended the launcher, 141 (as by SIGPIPE) when nobody
    /// reads the output, or 1 when it cannot be written.
    pub status: i32,
    /// Why it ended.
    pub ending: Ending,
}

impl Launch {
    /// A job of `pes` PEs that run `program`.
    pub fn new(program: impl Into<OsString>, pes: u32) -> Launch {
        Launch {
            program: program.into(),
            args: Vec::new(),
            pes,
            timeout: None,
            tag_output: false,
            cpu_sets: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Runs the job to its end. What went wrong with it is told on standard error, in one line.
    ///
    /// Call this from the main thread before others are started: for its duration signals to this
    /// process are caught and passed on, which other threads would get in the way of; and the PEs
    /// are killed when the calling thread ends. No PE, nor any process that a PE started and left
    /// in its process group, outlives the call, or the calling process.
    pub fn run(&self) -> Result<Outcome> {
        if !(1..=MAX_PES).contains(&self.pes) {
            let what = format!("{} PEs were asked for; a job has 1 to {MAX_PES}", self.pes);
            return Err(Error::Launch { what });
        }
        if let Some(index) = self.cpu_sets.iter().position(Vec::is_empty) {
            let what = format!("CPU set {index} is empty; give each at least one CPU");
            return Err(Error::Launch { what });
        }
        let key = JobKey::random()?;
        let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        raise_descriptor_limit();
        let listener = HubListener::bind(local, "is the loopback interface up?")?;
        let signals = signals::Caught::begin()?;
        let guardian = guardian::Guardian::start()?;
        let pes = pe::start_all(self, guardian.group(), listener.address(), &key)?;
        // Only now is there a second thread: forking is simplest with one.
        let hub = listener.serve(self.pes, key)?;
        supervisor::Supervisor::new(self, pes, guardian, hub, signals)?.run()
    }
}

/// The launcher has four descriptors a PE, and each PE one of every PE's heap: hundreds of PEs need
/// more than the usual soft limit. The PEs inherit it. Where it can't be raised, running out is an
/// error later.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Makes the calling program its own launcher: unless something launched it as a PE already, runs
/// `pes` copies of it, with its own arguments, and exits with their status. Returns in the PEs, and
/// also when `pes` is 1: a world of one needs no launcher.
///
/// Call this first in `main`, before any thread is started.
pub fn self_with(pes: u32) -> Result<()> {
    if pes == 1 || describes_job(&read_process_variable) {
        return Ok(());
    }
    let program =
        std::env::current_exe().map_err(crate::error::io("finding this program's file"))?;
    let mut launch = Launch::new(program, pes);
    launch.args = std::env::args_os().skip(1).collect();
    let outcome = launch.run()?;
    std::process::exit(outcome.status)
}

impl How {
    fn of(status: ExitStatus) -> How {
        match (status.code(), status.signal()) {
            (Some(code), _) => How::Exit(code),
            (None, Some(signal)) => How::Signal(signal),
            // Neither happens to a process that has been waited for.
            (None, None) => How::Exit(1),
        }
    }

    fn succeeded(self) -> bool {
        self == How::Exit(0)
    }

    /// As a shell has it.
    fn status(self) -> i32 {
        match self {
            How::Exit(code) => code,
            How::Signal(signal) => 128 + signal,
        }
    }

    fn in_words(self) -> String {
        match self {
            How::Exit(code) => format!("exited with status {code}"),
            How::Signal(signal) => {
                format!(
                    "was killed by signal {signal}{}",
                    signals::name_in_brackets(signal)
                )
            }
        }
    }
}

/// The status with which a process can end: the low byte, but not 0 for what is not 0.
pub(crate) fn process_status(status: i32) -> i32 {
    match status.to_le_bytes()[0] {
        0 if status != 0 => 1,
        byte => byte.into(),
    }
}

impl Ending {
    fn status(&self) -> i32 {
        match self {
            Ending::Success => 0,
            Ending::Failed { how, .. } => how.status(),
            Ending::Aborted(notice) => process_status(notice.status),
            Ending::TimedOut { .. } => 124,
            Ending::Signalled(signal) => 128 + signal,
            Ending::OutputClosed => 128 + libc::SIGPIPE,
            Ending::OutputFailed(_) => 1,
        }
    }
}
