//! The launcher: starts a job's PEs, on this host or on several, and supervises them to the job's end.
//!
//! A host's PEs are one process group, led by a tiny reaper process that kills the group when the
//! process that started them is gone, in whatever way. The launcher hosts the rendezvous, passes
//! input and signals on, assembles output by whole lines, and ends the job when a PE fails.
//!
//! On other hosts an agent, started by ssh or a similar command, does the launcher's part: it starts
//! that host's PEs, forwards their output and their ends, and obeys the launcher's commands.
//! It ends them when its connection to the launcher ends.

use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};

use crate::environment::backend::{BY_SLURM, describes_job, is_to_be_alone, slurm_tasks};
use crate::error::{Error, Result, io};
use crate::hub::HubListener;
use crate::job_key::JobKey;
use crate::limits::MAX_PES;
use crate::process::raise_descriptor_limit;
use crate::variables::read_process_variable;

mod addresses;
pub(crate) mod agent;
mod agent_protocol;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
pub(crate) mod hosts;
mod hub_keepalive;
mod input;
pub(crate) mod job;
pub(crate) mod job_end;
mod lines;
mod local;
mod pipe;
mod process_group;
mod reaper;
mod remote;
mod remote_shell;
mod signals;
mod sink;
mod spawn;
mod supervisor;

use job::Launch;
use job_end::Outcome;
use local::Local;
use process_group::Event;
use remote::Remote;
use signals::CaughtSignals;
use spawn::{Input, SpawnPlan};
use supervisor::Supervisor;

impl Launch {
    /// Runs the job to its end. A failure is reported on standard error, in one line.
    ///
    /// Call this from the main thread before others are started: for its duration signals to this
    /// process are caught and passed on, which other threads would get in the way of; and the PEs
    /// are killed when the calling thread ends. No PE, nor any process that a PE started and left
    /// in its process group, outlives the call, or the calling process. (If both this process and its reaper,
    /// `oxshmem-guard`, are killed by SIGKILL, no PE does, but processes that PEs started may.)
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
        let signals = CaughtSignals::begin()?;
        let processes = Remote::start(self, hosts, listener.address().port(), &key)?;
        let hub = listener.serve(self.pes, key)?;
        Supervisor::new(self, Box::new(processes), hub, signals).run(Vec::new())
    }

    fn run_here(&self, key: JobKey) -> Result<Outcome> {
        let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let listener = HubListener::bind(local, "is the loopback interface up?")?;
        let signals = CaughtSignals::begin()?;
        // A terminal is read by its foreground group only, and that is the launcher's.
        let input = if std::io::stdin().is_terminal() {
            Input::Piped
        } else {
            Input::Inherited
        };
        let processes = Local::start(&SpawnPlan {
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
        let started = |(rank, pid)| Event::Started { rank, pid };
        let events = processes.pids().map(started).collect();
        // Only now is there a second thread: forking is simplest with one.
        let hub = listener.serve(self.pes, key)?;
        Supervisor::new(self, Box::new(processes), hub, signals).run(events)
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
    let program = std::env::current_exe().map_err(io("finding this program's file"))?;
    let mut launch = Launch::new(program, pes);
    launch.args = std::env::args_os().skip(1).collect();
    let outcome = launch.run()?;
    std::process::exit(outcome.status)
}
