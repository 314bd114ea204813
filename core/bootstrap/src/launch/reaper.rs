//! The reaper: a process that outlives the launcher by a moment, to kill the PEs that it left.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};

use crate::error::{Error, Result, io};

/// The leader of the PEs' process group. It reads a pipe that the launcher alone holds open. When the
/// launcher ends, in whatever way, the pipe ends too, and the reaper kills the group and so itself.
///
/// Dropping this kills the group too.
#[derive(Debug)]
pub(super) struct Reaper {
    pid: Pid,
    lifeline: Option<OwnedFd>,
}

impl Reaper {
    pub(super) fn start() -> Result<Reaper> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(io("making a pipe"))?;
        // SAFETY: the child calls only `guard`, which is async-signal-safe, as other threads may
        // hold locks at the moment of the fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            guard(reader.as_raw_fd());
        }
        let failed = || Error::Io {
            action: "starting the guardian process",
            source: std::io::Error::last_os_error(),
        };
        // A failed fork's -1 is no process number.
        if child < 0 {
            return Err(failed());
        }
        let pid = Pid::from_raw(child).ok_or_else(failed)?;
        let reaper = Reaper {
            pid,
            lifeline: Some(writer),
        };
        // The reaper does the same; the second of the two finds it done.
        rustix::process::setpgid(Some(pid), Some(pid))
            .map_err(io("making a process group for the PEs (setpgid)"))?;
        Ok(reaper)
    }

    /// The PEs' process group.
    pub(super) fn group(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to every process of the group. The reaper itself blocks all that can be blocked.
    pub(super) fn signal(&self, signal: Signal) {
        // The group exists as long as its leader has not been waited for.
        if let Err(error) = kill_process_group(self.pid, signal) {
            tracing::warn!("cannot send signal {} to the PEs: {error}", signal.as_raw());
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // If the group was never made, the reaper ends by the pipe's end alone.
        self.lifeline = None;
        while let Err(rustix::io::Errno::INTR) = waitpid(Some(self.pid), WaitOptions::empty()) {}
    }
}

/// The reaper's whole life. Async-signal-safe.
fn guard(lifeline: RawFd) -> ! {
    // SAFETY: only system calls, on this process's own state; the signal set is a local that
    // `sigfillset` initialises before it is used, the name is a C string, and the byte read goes to
    // a local of one byte.
    unsafe {
        libc::setpgid(0, 0);
        // Without a group of its own it must not kill: the group would be the caller's, with other processes in it.
        if libc::getpgrp() != libc::getpid() {
            libc::_exit(1);
        }
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"oxshmem-guard".as_ptr());
        // Nothing else stays open: a reader of the job's output must see its end.
        libc::dup2(lifeline, 0);
        if libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) != 0 {
            for descriptor in 1..65536 {
                libc::close(descriptor);
            }
        }
        libc::chdir(c"/".as_ptr());
        let mut byte = 0u8;
        loop {
            let count = libc::read(0, (&raw mut byte).cast(), 1);
            if count == 0 || (count < 0 && *libc::__errno_location() != libc::EINTR) {
                break;
            }
        }
        libc::kill(0, libc::SIGKILL);
        libc::_exit(1)
    }
}
