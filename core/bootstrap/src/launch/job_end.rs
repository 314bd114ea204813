//! The end of a job: its cause, and the launching program's status for it.

use crate::exit_status::ExitStatus;
use crate::hub::control::AbortNotice;
use crate::process::process_status;

/// The cause of a job's end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobEnd {
    /// All PEs exited with status 0.
    Success,
    /// A PE failed; the first to do so.
    Failed {
        /// Its rank.
        rank: u32,
        /// The end of its process.
        exit: ExitStatus,
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
        /// The ranks that were still running.
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

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The status that the launching program exits with: 0, or the first failing PE's (128 + its
    /// signal), a failed host's (125 to 127), the abort's (or 1 if its low byte, which is all that a process can have, is 0 and
    /// it is not), 124 after a timeout, 128 + the signal that ended the launcher, 141 (as by SIGPIPE) when nobody
    /// reads the output, or 1 when it cannot be written.
    pub status: i32,
    /// The cause.
    pub end: JobEnd,
}

impl JobEnd {
    pub(super) fn status(&self) -> i32 {
        match self {
            JobEnd::Success => 0,
            JobEnd::Failed { exit, .. } => exit.code(),
            JobEnd::HostFailed { status, .. } => *status,
            JobEnd::Aborted(notice) => process_status(notice.status),
            JobEnd::TimedOut { .. } => 124,
            JobEnd::Signalled(signal) => 128 + signal,
            JobEnd::OutputClosed => 128 + libc::SIGPIPE,
            JobEnd::OutputFailed(_) => 1,
        }
    }
}
