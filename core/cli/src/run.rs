//! `oxshmem run`: starts a job.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use oxshmem_bootstrap::{Error, Launch};

use crate::output;

mod bind;
mod compat_options;
mod hosts;
mod program;
mod values;

use bind::Bind;
pub use compat_options::options;
use values::by_host;
pub use values::{duration, pes, policy};

/// Start a program as a job of several PEs, on this host or on several.
///
/// Every PE is a process of its own that runs PROG with the same arguments. The job ends when all
/// have ended, or as soon as one fails: its status is then that of `oxshmem run`, and a line on
/// stderr says which PE it was.
///
/// PE 0 has the standard input, the others have none; on another host it gets it as it comes, read
/// even if PE 0 reads none of it. Output comes by whole lines. Signals such as an interrupt go to
/// all PEs. Nothing of a job stays behind, however it ends.
///
/// If a job seems to hang, send this command SIGUSR1: it shows for each PE whom it waits for, in
/// which call and for how long, and a deadlock by name; the job goes on. PEs get that signal only if
/// they have a handler for it. The first interrupt shows the same, then goes to all PEs.
#[derive(clap::Args)]
#[command(override_usage = "oxshmem run [OPTIONS] [--] <PROG> [ARGS]...", after_help = EXAMPLES)]
pub struct Args {
    /// Number of PEs. Unless given, all places of the hosts; the tasks of a Slurm allocation of one node; or 1. -np is the
    /// same.
    #[arg(short = 'n', long = "pes", visible_alias = "np", value_name = "N", value_parser = pes)]
    pes: Option<u32>,
    #[command(flatten)]
    hosts: hosts::Args,
    /// The binding of each PE: none, core (a core of its own while there are enough), numa (the
    /// CPUs of one NUMA node), or gpu or nic (those of the NUMA node nearest to its device, where
    /// PEs have in turn the devices of the machine, or of the one that OXSHMEM_TOPOLOGY describes,
    /// without NICs that are down or that OXSHMEM_NIC rules out; OXSHMEM_NIC_MAP does not count).
    /// --bind-to is the same, with hwthread for core and socket for numa.
    #[arg(long, value_name = "POLICY", default_value = "none")]
    bind: Bind,
    /// End the job, with status 124, if it takes longer: seconds, or a number with ms, s, m or h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Begin each line of output with its PE's number, such as [3]. -l is the same.
    #[arg(long)]
    tag_output: bool,
    /// The number of PEs of each host, as Open MPI and Slurm give it. The parser always refuses it, and says what to give.
    #[arg(short = 'N', hide = true, value_name = "N", value_parser = by_host)]
    _per_host: Option<u32>,
    /// The same.
    #[arg(long = "map-by", hide = true, value_name = "PLACES", value_parser = by_host)]
    _map_by: Option<u32>,
    /// The program and its arguments, passed on as they are.
    #[arg(
        value_name = "PROG",
        required_unless_present = "agent",
        trailing_var_arg = true
    )]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Exit status:
  that of the first PE that failed (128 + N if signal N killed it), else 0;
  124 if --timeout ended the job; 125 if a host cannot be reached, or is lost;
  126 if PROG cannot be executed; 127 if it is not found

Examples:
  oxshmem run -n 4 ./program input.txt
  oxshmem run -n 4 --bind core ./program         one core for each PE
  oxshmem run -n 2 --timeout 30s ./test          no longer than half a minute
  oxshmem run -n 8 --tag-output -- ./program -v  lines such as `[5] ...`
  oxshmem run -n 4 oxshmem info                  how 4 PEs would reach each other
  oxshmem run --hosts a:4,b:4 ./program          8 PEs on two hosts, by ssh
  oxshmem run --hosts a:4,b:4 --rsh 'docker exec -i {host}' ./program
  OXSHMEM_SYMMETRIC_SIZE=2G oxshmem run -n 4 ./program

Settings are environment variables; `oxshmem info` lists them.";

/// Starts the job. `left_out` names options of other launchers that have no meaning here.
pub fn main(args: Args, left_out: &[String]) -> anyhow::Result<ExitCode> {
    if args.hosts.agent {
        return Ok(exit_code(hosts::serve()));
    }
    if !left_out.is_empty() {
        let what = format!("this has no meaning here: {}", left_out.join(", "));
        output::complain("run", &what);
    }
    let hosts = args.hosts.read(args.pes, args.bind)?;
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default();
    // Other hosts check for themselves.
    if hosts.is_none()
        && let Err(refusal) = program::check(&program)
    {
        output::complain("run", &refusal.why);
        return Ok(refusal.status.into());
    }
    let pes = match &hosts {
        Some(hosts) => hosts.pes(),
        None => args
            .pes
            .unwrap_or_else(|| allocated(&|name| std::env::var(name).ok())),
    };
    let mut launch = Launch::new(program, pes);
    launch.args = command.collect();
    launch.timeout = args.timeout;
    launch.tag_output = args.tag_output;
    launch.env = args.hosts.variables()?;
    if hosts.is_none() {
        launch.cpu_sets = bind::cpu_sets(pes as usize, args.bind)?;
    }
    launch.hosts = hosts;
    match launch.run() {
        // An error that only the kernel can detect, such as a script whose interpreter is missing.
        Err(error) if refused(&error) => {
            output::complain("run", &error.to_string());
            Ok(program::NOT_EXECUTABLE.into())
        }
        done => Ok(exit_code(done?.status)),
    }
}

/// The number of PEs that the environment asks for on this host: the tasks of a Slurm allocation
/// (by salloc, sbatch).
fn allocated(lookup: &dyn Fn(&str) -> Option<String>) -> u32 {
    let number = |name| lookup(name)?.trim().parse::<u32>().ok();
    let (Some(tasks @ 2..), Some(nodes)) = (number("SLURM_NTASKS"), number("SLURM_JOB_NUM_NODES"))
    else {
        return 1;
    };
    // A process of a step with several tasks must not start them all.
    if number("SLURM_STEP_NUM_TASKS").is_some_and(|step| step > 1) {
        return 1;
    }
    if nodes == 1 {
        return tasks.min(values::MOST_PES);
    }
    output::complain(
        "run",
        &format!(
            "one PE is started here, though Slurm has given {tasks} tasks on {nodes} nodes: for a job on all \
             use srun --mpi=pmi2 or srun --mpi=pmix, for several here give -n, for other hosts --hosts"
        ),
    );
    1
}

/// Whether the kernel refused to execute the program although it exists.
fn refused(error: &Error) -> bool {
    use rustix::io::Errno;
    let Error::Program { source, .. } = error else {
        return false;
    };
    let errno = Errno::from_io_error(source);
    let refusals = [Errno::NOENT, Errno::NOEXEC, Errno::ACCESS, Errno::TXTBSY];
    errno.is_some_and(|errno| refusals.contains(&errno))
}

/// A status as an exit code.
pub fn exit_code(status: i32) -> ExitCode {
    // The low byte, as exit(2) takes it.
    ExitCode::from(status.to_le_bytes()[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unless_told_otherwise_the_tasks_of_an_allocation_are_started() {
        let of = |set: &[(&str, &str)]| {
            allocated(&|name| {
                let (_, value) = set.iter().find(|(known, _)| *known == name)?;
                Some((*value).to_owned())
            })
        };
        let on = |nodes| [("SLURM_NTASKS", "3"), ("SLURM_JOB_NUM_NODES", nodes)];
        assert_eq!(of(&[]), 1);
        assert_eq!(of(&on("1")), 3);
        // The error says how to mend it.
        assert_eq!(of(&on("2")), 1);
        assert_eq!(
            of(&[&on("1")[..], &[("SLURM_STEP_NUM_TASKS", "3")]].concat()),
            1
        );
        assert_eq!(
            of(&[&on("1")[..], &[("SLURM_STEP_NUM_TASKS", "1")]].concat()),
            3
        );
    }
}
