//! Starting a job's PEs, on this host or on several, and seeing them through.
//!
//! A host's PEs are one process group, led by a tiny guardian process that kills the group when the
//! process that started them is gone, however it went. The launcher hosts the rendezvous, passes
//! input and signals on, assembles output by whole lines, and ends the job when a PE fails.
//!
//! On other hosts an agent, started by ssh or the like, does the launcher's part there: it starts
//! that host's PEs, passes on what they write and how they end, and does as the launcher tells it.
//! It ends them when it hears no more of the launcher.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use crate::environment::{
    BY_SLURM, describes_job, is_to_be_alone, read_process_variable, slurm_tasks,
};
use crate::hub::{AbortNotice, HubListener};
use crate::job_key::JobKey;
use crate::protocol::MAX_PES;
use crate::{Error, Result};

mod addresses;
mod agent;
mod crew;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod guardian;
mod hosts;
mod input;
mod lines;
mod link;
mod local;
mod pe;
mod pipe;
mod remote;
mod signals;
mod sink;
mod supervisor;
mod watch;
mod wire;

pub use agent::{CpuSets, serve as serve_agent};
pub use hosts::{HUB_ADDRESS, Host, Hosts, RSH};

/// A job to start.
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
    /// The hosts to start the PEs on; all run on this one if there are none. Other hosts choose
    /// their CPUs themselves, by [`Hosts::bind`]: `cpu_sets` is for this host.
    pub hosts: Option<Hosts>,
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
    /// PEs could not be started on a host, or it went out of reach.
    HostFailed {
        /// The host, as it was given.
        host: String,
        /// 126 where the program cannot be executed there, 127 where it is not found, else 125.
        status: i32,
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
    /// signal), a failed host's (125 to 127), the abort's (or 1 where its low byte, which is all that a process can have, is 0 and it is not), 124
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
            hosts: None,
        }
    }

    /// Runs the job to its end. What went wrong with it is told on standard error, in one line.
    ///
    /// Call this from the main thread before others are started: for its duration signals to this
    /// process are caught and passed on, which other threads would get in the way of; and the PEs
    /// are killed when the calling thread ends. No PE, nor any process that a PE started and left
    /// in its process group, outlives the call, or the calling process. (Where both this process and its guardian,
    /// `oxshmem-guard`, are killed by SIGKILL, no PE does, but what PEs started may.)
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
        raise_descriptor_limit();
        let Some(hosts) = &self.hosts else {
            return self.run_here(key);
        };
        hosts.check(self.pes)?;
        let listener = hosts.listen()?;
        let signals = signals::Caught::begin()?;
        let crew = remote::Remote::start(self, hosts, listener.address().port(), &key)?;
        let hub = listener.serve(self.pes, key)?;
        supervisor::Supervisor::new(self, Box::new(crew), hub, signals).run(Vec::new())
    }

    fn run_here(&self, key: JobKey) -> Result<Outcome> {
        let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let listener = HubListener::bind(local, "is the loopback interface up?")?;
        let signals = signals::Caught::begin()?;
        // A terminal is read by its foreground group only, and that is the launcher's.
        let input = match std::io::stdin().is_terminal() {
            true => pe::Input::Piped,
            false => pe::Input::Inherited,
        };
        let crew = local::Local::start(&pe::Plan {
            program: &self.program,
            args: &self.args,
            env: &self.env,
            first: (0, 0),
            count: self.pes,
            size: self.pes,
            cpu_sets: &self.cpu_sets,
            rendezvous: &listener.address().to_string(),
            key: &key,
            input,
        })?
        .with_terminal();
        let started = |(rank, pid)| crew::Event::Started { rank, pid };
        let heard = crew.pids().map(started).collect();
        // Only now is there a second thread: forking is simplest with one.
        let hub = listener.serve(self.pes, key)?;
        supervisor::Supervisor::new(self, Box::new(crew), hub, signals).run(heard)
    }

    /// The name of the host that a PE is to run on, where that is not just this one.
    fn host_of(&self, rank: u32) -> Option<&str> {
        let mut first = 0;
        let mut hosts = self.hosts.as_ref()?.list.iter();
        let host = hosts.find(|host| {
            let after = first + host.pes;
            rank < std::mem::replace(&mut first, after) + host.pes
        })?;
        Some(&host.name)
    }
}

/// The launcher has four descriptors a PE, and each PE one of every PE's heap: hundreds of PEs need
/// more than the usual soft limit. The PEs inherit it. Where it can't be raised, running out is an
/// error later.
pub(crate) fn raise_descriptor_limit() {
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
/// also when `pes` is 1 or `OXSHMEM_BOOTSTRAP` is `single`: a world of one needs no launcher.
///
/// Fails in a task of a Slurm step that has several: each would start `pes` PEs.
///
/// Call this first in `main`, before any thread is started.
pub fn self_with(pes: u32) -> Result<()> {
    let lookup = &read_process_variable;
    if pes == 1 || is_to_be_alone(lookup) || describes_job(lookup) {
        return Ok(());
    }
    if let Some(tasks) = slurm_tasks(lookup) {
        let what = format!(
            "this is one of {tasks} tasks of a Slurm step, and each would start {pes} PEs: for one world {BY_SLURM}, \
             or start one task (srun -n 1), which starts the PEs"
        );
        return Err(Error::Launch { what });
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
            Ending::HostFailed { status, .. } => *status,
            Ending::Aborted(notice) => process_status(notice.status),
            Ending::TimedOut { .. } => 124,
            Ending::Signalled(signal) => 128 + signal,
            Ending::OutputClosed => 128 + libc::SIGPIPE,
            Ending::OutputFailed(_) => 1,
        }
    }
}
