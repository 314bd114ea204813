//! The errors of starting a job and of its PEs' way to each other: each says what failed, where, and how to mend it.

use std::io;
use std::time::Duration;

use crate::limits::MAX_WAITING_BYTES;

/// The failure of a bootstrap or launcher call: what, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An environment variable holds something unusable.
    #[error("{name}={value:?} {problem}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// The fault in that value, and a right one.
        problem: String,
    },
    /// Some of a launcher's variables are set and some are not.
    #[error("{present} is set but {missing} is not: {hint}")]
    HalfSet {
        /// A variable that is set.
        present: &'static str,
        /// The variable that is missing.
        missing: &'static str,
        /// The remedy.
        hint: &'static str,
    },
    /// The rendezvous was not reached before the deadline.
    #[error(
        "rank {rank} could not reach the job's rendezvous at {address} within {waited:.1?}: \
         {source}; check that the launcher (or rank 0) runs and that this host can reach that \
         address and port, and that this job's PEs have not all joined before, for the rendezvous \
         then takes no more{}",
        namespaces(address)
    )]
    Connect {
        /// The rank that tried.
        rank: u32,
        /// The rendezvous' address.
        address: String,
        /// The time it has tried for.
        waited: Duration,
        /// The last attempt's failure.
        source: io::Error,
    },
    /// This host has no route to the rendezvous.
    #[error(
        "rank {rank} cannot reach the job's rendezvous at {address}: {source}; is the network \
         interface up here (ip address), lo too, and is there a route (ip route)?"
    )]
    NoRoute {
        /// The rank that tried.
        rank: u32,
        /// The rendezvous' address.
        address: String,
        /// The last attempt's failure.
        source: io::Error,
    },
    /// The rendezvous could not listen on its address.
    #[error("cannot listen on {address} for the job's rendezvous: {source}; {hint}")]
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        source: io::Error,
        /// The remedy.
        hint: &'static str,
    },
    /// The rendezvous answered and refused this PE.
    #[error("the rendezvous at {address} refused rank {rank}: {reason}")]
    Refused {
        /// The rank that was refused.
        rank: u32,
        /// The rendezvous' address.
        address: String,
        /// Its words: what is wrong and how to mend it.
        reason: String,
    },
    /// The listener at the rendezvous' address does not know the job's key.
    #[error(
        "rank {rank}: what listens at {address} does not know this job's key; start all PEs with \
         the same OXSHMEM_JOB_KEY, and check that no other job or program uses this address and \
         port"
    )]
    Unproven {
        /// The rank that tried.
        rank: u32,
        /// The address.
        address: String,
    },
    /// Bytes that are not this protocol's.
    #[error(
        "malformed bootstrap message: {what}; both ends must be the same version of oxshmem, and \
         nothing else may use the rendezvous port"
    )]
    Protocol {
        /// The malformed part.
        what: String,
    },
    /// A rank's bytes are no value of the type that all ranks exchange.
    #[error(
        "PE {rank} and PE {rank} differ in what it tells of itself ({why}); start every PE with the \
         same program and settings"
    )]
    Unreadable {
        /// The rank that gave them.
        rank: u32,
        /// The decoder's words.
        why: String,
    },
    /// Ranks that did not enter a collective call before its deadline.
    #[error(
        "{operation} timed out after {waited:.1?}: {} did not arrive; see whether they still run \
         (a PE that exits early, hangs, or was never started)", ranks_in_words(.ranks)
    )]
    MissingRanks {
        /// The call.
        operation: &'static str,
        /// The missing ranks.
        ranks: Vec<u32>,
        /// The time that the others waited.
        waited: Duration,
    },
    /// A rank that the call needs has left the job or died.
    #[error(
        "{operation} needs rank {rank}, which {}",
        if *.orderly {
            "has left the job; let every PE make its last such call before any leaves"
        } else {
            "has died (its connection closed); its own output or the launcher's report says why"
        }
    )]
    PeerGone {
        /// The call.
        operation: &'static str,
        /// That rank.
        rank: u32,
        /// Whether it said goodbye.
        orderly: bool,
    },
    /// Ranks made different collective calls.
    #[error(
        "{operation}: the ranks' collective calls do not match: {what}; every rank makes the same \
         calls in the same order"
    )]
    Mismatch {
        /// The call.
        operation: &'static str,
        /// Each rank's call.
        what: String,
    },
    /// The rendezvous is gone, so no peer can be reached through it any more.
    #[error(
        "{operation}: the job's rendezvous is lost ({why}); the launcher or rank 0 has \
             ended or cannot be reached: see its output, and start the job again"
    )]
    HubLost {
        /// The call.
        operation: &'static str,
        /// The cause.
        why: String,
    },
    /// The job is being ended.
    #[error(
        "{operation}: rank {by} aborted the job with status {status}: {why}; mend that and start \
             the job again"
    )]
    Aborted {
        /// The call.
        operation: &'static str,
        /// The rank that aborted.
        by: u32,
        /// The status it gave.
        status: i32,
        /// The reason it gave.
        why: String,
    },
    /// This PE has said goodbye already.
    #[error(
        "{operation} was called after leave(): this PE is no part of the job any more; leave \
             last"
    )]
    Left {
        /// The call.
        operation: &'static str,
    },
    /// A rank outside the job.
    #[error("rank {rank} is outside the job: it has ranks 0 to {}", .size.saturating_sub(1))]
    NoSuchRank {
        /// The rank given.
        rank: u32,
        /// The job's size.
        size: u32,
    },
    /// More bytes than a call takes.
    #[error("{operation} was given {bytes} bytes and takes at most {limit}; send it in parts")]
    TooLarge {
        /// The call.
        operation: &'static str,
        /// Bytes given.
        bytes: usize,
        /// Bytes that it takes.
        limit: usize,
    },
    /// A rank has too many messages waiting and no handler for them.
    #[error(
        "send: {} MiB of messages wait at rank {rank}, which has no handler for them; it is to \
         call on_message before others send so much",
        MAX_WAITING_BYTES >> 20
    )]
    Unheard {
        /// The receiver.
        rank: u32,
    },
    /// A handler was set twice.
    #[error("{which} may be called once only: a handler is set already")]
    HandlerSet {
        /// The call.
        which: &'static str,
    },
    /// Descriptors could not be passed.
    #[error("passing descriptors between PEs failed: {what}")]
    Descriptors {
        /// The failure, and how to mend it.
        what: String,
    },
    /// A launch that asks for something impossible.
    #[error("cannot launch: {what}")]
    Launch {
        /// The failure, and how to mend it.
        what: String,
    },
    /// A program could not be started.
    #[error("cannot start {program:?} as PE {rank}: {source}{}", limit_to_raise(.source))]
    Program {
        /// The program.
        program: std::ffi::OsString,
        /// The PE that it was to be.
        rank: u32,
        /// The system's reason.
        source: io::Error,
    },
    /// The process manager that started this PE (over PMI-1, PMI-2 or PMIx) did not help it to find
    /// the others.
    #[error("{interface}: {step}: {why}; {hint}")]
    ProcessManager {
        /// The interface's name.
        interface: &'static str,
        /// The action that failed.
        step: &'static str,
        /// The failure.
        why: String,
        /// The remedy.
        hint: &'static str,
    },
    /// An operating-system call failed.
    #[error("{action}: {source}; {}", remedy(.source))]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// For `map_err`: wraps an operating system's error with the action that failed.
pub(crate) fn io<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Error {
    move |source| Error::Io {
        action,
        source: source.into(),
    }
}

/// The remedy for an operating system's error, if that is to raise a limit.
fn limit_to_raise(error: &io::Error) -> String {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM) => {
            format!("; {}", remedy(error))
        }
        _ => String::new(),
    }
}

/// The remedy for an operating system's error.
fn remedy(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => "raise this process's limit on open descriptors (ulimit -n)",
        Some(Errno::NFILE) => "raise the host's limit on open files (sysctl fs.file-max)",
        Some(Errno::AGAIN) => {
            "raise the limits on processes and threads (ulimit -u, the control group's pids.max)"
        }
        Some(Errno::NOMEM | Errno::NOBUFS) => {
            "the host is out of memory: start fewer PEs or end other programs"
        }
        Some(Errno::TOOMANYREFS) => {
            "too many descriptors are on their way between processes: raise ulimit -n"
        }
        Some(Errno::PERM | Errno::ACCESS) => {
            "this user, container or sandbox may not do that: permit it, or run the job elsewhere"
        }
        Some(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => {
            "this kernel or sandbox lacks what oxshmem needs (Linux 5.3 or later)"
        }
        _ => "the operating system's words say what is missing",
    }
}

/// Fails if `operation` was given more bytes than it takes.
pub(crate) fn check_bytes(operation: &'static str, bytes: usize, limit: usize) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::TooLarge {
        operation,
        bytes,
        limit,
    })
}

/// "rank 3" or "ranks 1, 4 and 7", long lists cut.
pub(crate) fn ranks_in_words(ranks: &[u32]) -> String {
    const SHOWN: usize = 16;
    match ranks {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        many if many.len() > SHOWN => {
            let shown: Vec<String> = many.iter().take(SHOWN).map(u32::to_string).collect();
            format!("ranks {} and {} more", shown.join(", "), many.len() - SHOWN)
        }
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(u32::to_string).collect();
            format!("ranks {} and {last}", most.join(", "))
        }
    }
}

/// A hint for an address that is one of this network namespace alone; else nothing.
fn namespaces(address: &str) -> &'static str {
    let is_loopback = |one: &str| {
        one.starts_with("127.") || one.starts_with("[::1]") || one.starts_with("localhost:")
    };
    if address.split(',').all(is_loopback) {
        "; PEs in containers with networks of their own do not reach each other at this address: \
         start the containers with the host's network (--network host), or set OXSHMEM_HUB_ADDRESS"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, io, ranks_in_words};

    #[test]
    fn an_operating_systems_error_comes_with_a_remedy() {
        let error: Error = io("making a socket")(rustix::io::Errno::MFILE);
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }

    #[test]
    fn a_program_that_a_limit_keeps_from_starting_comes_with_a_remedy() {
        let error = |errno: rustix::io::Errno| Error::Program {
            program: "ring".into(),
            rank: 3,
            source: errno.into(),
        };
        let told = error(rustix::io::Errno::MFILE).to_string();
        assert!(told.contains("ulimit -n"), "{told}");
        let told = error(rustix::io::Errno::NOENT).to_string();
        assert!(told.ends_with("(os error 2)"), "{told}");
    }

    #[test]
    fn rank_lists_read_well() {
        assert_eq!(ranks_in_words(&[3]), "rank 3");
        assert_eq!(ranks_in_words(&[1, 4, 7]), "ranks 1, 4 and 7");
        let many: Vec<u32> = (0..20).collect();
        assert!(ranks_in_words(&many).ends_with("15 and 4 more"));
    }
}
