//! PE processes: how they are spawned, signalled and reaped.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::pipe::Pipe;
use crate::error::{Error, Result, io};
use crate::exit_status::ExitStatus;
use crate::job_key::JobKey;
use crate::variables::{
    FABRIC_SIZE, HUB_ADDRESS, JOB_KEY, LOCAL_RANK, RANK, RENDEZVOUS, RSH, SIZE,
};

/// A PE's process.
#[derive(Debug)]
pub(super) struct Pe {
    pub(super) rank: u32,
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
    /// A pipe to its input, where that is not inherited.
    pub(super) stdin: Option<ChildStdin>,
    /// Readable when the process has ended.
    pub(super) pidfd: OwnedFd,
    /// The process's end, once that is known.
    pub(super) ended: Option<ExitStatus>,
    child: Child,
}

impl Pe {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Notes the process's end, if it has ended. True when it has just been noted.
    pub(super) fn reap(&mut self) -> Result<bool> {
        if self.ended.is_some() {
            return Ok(false);
        }
        self.ended = self
            .child
            .try_wait()
            .map_err(io("waiting for a PE"))?
            .map(ExitStatus::of);
        Ok(self.ended.is_some())
    }

    /// Sends the process a signal that it catches, blocks or ignores, and none that would end it. Its first thread's mask
    /// counts: a thread that just waits for the signal (`sigwait`) looks as if it did not.
    pub(super) fn signal_if_handled(&self, signal: Signal) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        if self.ended.is_none() && status.is_ok_and(|status| handles(&status, signal)) {
            // An error means that it has ended meanwhile.
            let _ = pidfd_send_signal(&self.pidfd, signal);
        }
    }

    /// Kills this process even if it has left the group.
    pub(super) fn kill(&mut self) {
        if self.ended.is_none() {
            // An error means that it has ended meanwhile.
            let _ = self.child.kill();
        }
    }
}

impl Drop for Pe {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a process with this `/proc/PID/status` catches, blocks or ignores a signal.
fn handles(status: &str, signal: Signal) -> bool {
    let bit = 1_u64 << (signal.as_raw() - 1);
    let sets = ["SigBlk:", "SigIgn:", "SigCgt:"];
    status.lines().any(|line| {
        let set = sets.iter().find_map(|name| line.strip_prefix(name));
        let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        set.is_some_and(|set| set & bit != 0)
    })
}

/// The PEs to start on this host.
#[derive(Debug)]
pub(super) struct SpawnPlan<'a> {
    pub(super) program: &'a OsString,
    pub(super) args: &'a [OsString],
    pub(super) env: &'a [(OsString, OsString)],
    /// The first PE's rank, and its number among the host's PEs.
    pub(super) first: (u32, u32),
    /// The number of PEs to start.
    pub(super) count: u32,
    /// The number of PEs in the job.
    pub(super) size: u32,
    /// The CPUs of each in turn; all if there are none.
    pub(super) cpu_sets: &'a [Vec<usize>],
    /// The rendezvous, as host:port.
    pub(super) rendezvous: &'a str,
    pub(super) key: &'a JobKey,
    /// Rank 0's input.
    pub(super) input: Input,
}

/// The input of rank 0; the others have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// This process's own input.
    Inherited,
    /// A pipe.
    Piped,
}

/// Starts PEs in process group `group`.
pub(super) fn spawn_all(plan: &SpawnPlan<'_>, group: Pid) -> Result<Vec<Pe>> {
    let mut pes = Vec::new();
    for index in 0..plan.count {
        let (rank, local_rank) = (plan.first.0 + index, plan.first.1 + index);
        let mut command = Command::new(plan.program);
        command
            .args(plan.args)
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .env(RANK, rank.to_string())
            .env(LOCAL_RANK, local_rank.to_string())
            .env(SIZE, plan.size.to_string())
            .env(RENDEZVOUS, plan.rendezvous)
            .env(JOB_KEY, plan.key.to_hex())
            // The launcher's own variables.
            .env_remove(RSH)
            .env_remove(HUB_ADDRESS)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(match (rank, plan.input) {
                (0, Input::Piped) => Stdio::piped(),
                (0, Input::Inherited) => Stdio::inherit(),
                _ => Stdio::null(),
            });
        if let Some((name, size)) = fabric_size(plan.size, plan.env) {
            command.env(name, size);
        }
        let set = (index as usize).checked_rem(plan.cpu_sets.len());
        let mask = set
            .and_then(|set| plan.cpu_sets.get(set))
            .map(|cpus| mask(cpus));
        let launcher = rustix::process::getpid();
        let prepare = move || prepare(group, launcher, mask.as_deref());
        // SAFETY: `prepare` makes system calls and reads memory that exists already; it does not
        // allocate, lock or panic, as a child between fork and exec may not.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().map_err(|source| {
            let program = plan.program.clone();
            Error::Program {
                program,
                rank,
                source,
            }
        })?;
        pes.push(adopt(child, rank)?);
    }
    Ok(pes)
}

/// libfabric's variable for a job larger than libfabric expects, unless the user has set it.
fn fabric_size(size: u32, env: &[(OsString, OsString)]) -> Option<(&'static str, String)> {
    let (name, expected) = FABRIC_SIZE;
    let is_set = std::env::var_os(name).is_some() || env.iter().any(|(known, _)| known == name);
    (size > expected && !is_set).then(|| (name, size.to_string()))
}

/// A child's descriptors, for the poll loop.
fn adopt(mut child: Child, rank: u32) -> Result<Pe> {
    let pidfd = match i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        Some(pid) => pidfd_open(pid, PidfdFlags::empty()),
        None => Err(rustix::io::Errno::SRCH),
    };
    let pidfd = match pidfd {
        Ok(pidfd) => pidfd,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io("watching a PE's process (this needs Linux 5.3)")(error));
        }
    };
    let stdout = Pipe::new(rank, child.stdout.take().map(OwnedFd::from));
    let stderr = Pipe::new(rank, child.stderr.take().map(OwnedFd::from));
    let stdin = child.stdin.take();
    let pe = Pe {
        rank,
        stdout,
        stderr,
        stdin,
        pidfd,
        ended: None,
        child,
    };
    for pipe in [
        pe.stdout.descriptor(),
        pe.stderr.descriptor(),
        pe.stdin.as_ref().map(AsFd::as_fd),
    ] {
        let Some(pipe) = pipe else { continue };
        rustix::io::ioctl_fionbio(pipe, true).map_err(io("preparing a PE's pipe"))?;
    }
    Ok(pe)
}

/// A set of CPUs as the kernel takes it.
fn mask(cpus: &[usize]) -> Vec<u64> {
    let words = cpus.iter().max().map_or(0, |last| last / 64 + 1);
    let mut mask = vec![0; words];
    for cpu in cpus {
        if let Some(word) = mask.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    mask
}

/// A PE's steps between fork and exec. Async-signal-safe.
pub(super) fn prepare(group: Pid, launcher: Pid, mask: Option<&[u64]>) -> std::io::Result<()> {
    rustix::process::setpgid(None, Some(group))?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // If the launcher died before that call, no signal comes.
    if rustix::process::getppid() != Some(launcher) {
        return Err(rustix::io::Errno::SRCH.into());
    }
    if let Some(mask) = mask {
        // SAFETY: the pointer and the length in bytes are those of one slice, which is read only.
        let code = unsafe {
            libc::syscall(
                libc::SYS_sched_setaffinity,
                0,
                size_of_val(mask),
                mask.as_ptr(),
            )
        };
        if code < 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    // SAFETY: the set is initialised by `sigemptyset` before it is used; both are
    // async-signal-safe.
    unsafe {
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use super::{fabric_size, handles, mask};

    #[test]
    fn a_signal_is_heeded_that_is_blocked_ignored_or_caught() {
        let status = |set: &str| format!("Name:\tpe\n{set}:\t0000000000000200\nSigQ:\t0/1\n");
        for set in ["SigBlk", "SigIgn", "SigCgt"] {
            assert!(handles(&status(set), Signal::USR1), "{set}");
            assert!(!handles(&status(set), Signal::USR2), "{set}");
        }
        assert!(!handles(&status("ShdPnd"), Signal::USR1));
    }

    #[test]
    fn libfabric_is_told_the_size_of_a_large_job_unless_the_user_has_said_it() {
        assert_eq!(fabric_size(256, &[]), None);
        let told = fabric_size(300, &[]);
        assert_eq!(told, Some(("FI_UNIVERSE_SIZE", "300".into())));
        let said = [("FI_UNIVERSE_SIZE".into(), "1000".into())];
        assert_eq!(fabric_size(300, &said), None);
    }

    #[test]
    fn cpu_sets_become_bit_masks() {
        assert_eq!(mask(&[0, 3]), [0b1001]);
        assert_eq!(mask(&[130, 64]), [0, 1, 0b100]);
        assert!(mask(&[]).is_empty());
    }
}
