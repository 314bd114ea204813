//! Errors of the engine. The layers above turn them into the errors of users' calls.

use std::fmt;
use std::time::Duration;

use crate::peer::loss_reasons;

/// The result of an operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. `call` is the user's call that it was part of.
#[derive(thiserror::Error)]
pub enum Error {
    /// The program's own function failed, or the system refused a thread.
    #[error("{call}: {what}")]
    Argument {
        /// The call.
        call: &'static str,
        /// The fault, and the remedy.
        what: String,
    },
    /// Simulated PEs all wait, and no operation is in flight that could end a wait.
    #[error("{call}: deadlock: PE {me} waits for {whom}: {what}; and so does every other PE")]
    Deadlock {
        /// The call.
        call: &'static str,
        /// The PE that waits.
        me: usize,
        /// The PE that it waits for, in words.
        whom: String,
        /// The event that it waits for.
        what: String,
    },
    /// A target of another world (M35).
    #[error(
        "{call}: the handle belongs to another world (or to one that has ended); \
         use the world that allocated it"
    )]
    Foreign {
        /// The call.
        call: &'static str,
    },
    /// Two accesses that the memory models leave undefined together, found in checked mode.
    #[error("{call}: {what} (found because OXSHMEM_CHECK is on)")]
    Conflict {
        /// The call.
        call: &'static str,
        /// The accesses, their PEs, their place, and an operation that would separate them.
        what: String,
    },
    /// A request to another PE failed there.
    #[error("{call}: failed on PE {pe}: {why}")]
    FailedElsewhere {
        /// The call.
        call: &'static str,
        /// The PE it failed on.
        pe: usize,
        /// That PE's words.
        why: String,
    },
    /// A PE that the operation needs has died or left.
    #[error("{call}: {}", loss_reasons::describe_lost(*.pe))]
    PeerLost {
        /// The call.
        call: &'static str,
        /// The PE.
        pe: usize,
    },
    /// A wait reached its deadline.
    #[error("{call}: PE {me} waited {waited:?} for {whom} ({what}); OXSHMEM_TIMEOUT is {limit:?}")]
    Timeout {
        /// The call.
        call: &'static str,
        /// This PE.
        me: usize,
        /// The PE that it waits for, in words.
        whom: String,
        /// The event that it waits for.
        what: String,
        /// The duration of the wait.
        waited: Duration,
        /// The deadline.
        limit: Duration,
    },
    /// No transport reaches this PE.
    #[error("{call}: PE {pe} cannot be reached from PE {from}: {why}")]
    Unreachable {
        /// The call.
        call: &'static str,
        /// The PE that cannot reach it.
        from: usize,
        /// The PE.
        pe: usize,
        /// The reason of each transport.
        why: String,
    },
    /// The route to this PE does not support the operation.
    #[error(
        "{call}: the {transport} route to PE {pe} has no {what}; use another operation, or another \
         transport by OXSHMEM_TRANSPORT"
    )]
    Unsupported {
        /// The call.
        call: &'static str,
        /// The transport.
        transport: &'static str,
        /// The PE.
        pe: usize,
        /// The operation.
        what: String,
    },
    /// A connection to a live PE has failed, or an earlier failure closed the lanes of this transport.
    #[error(
        "{call}: the {transport} lane of this world has failed and is closed: {why}; end the job"
    )]
    LaneFailed {
        /// The call.
        call: &'static str,
        /// The transport.
        transport: &'static str,
        /// The first failure.
        why: String,
    },
    /// The bootstrap failed.
    #[error(transparent)]
    Bootstrap(oxshmem_bootstrap::Error),
    /// A transport failed.
    #[error(transparent)]
    Transport(#[from] oxshmem_transport::Error),
}

impl From<oxshmem_bootstrap::Error> for Error {
    fn from(error: oxshmem_bootstrap::Error) -> Self {
        match error {
            // The PE's own goodbye says more than the end of its connection.
            oxshmem_bootstrap::Error::PeerGone {
                operation, rank, ..
            } if loss_reasons::left_without_finalize(rank as usize) => Error::PeerLost {
                call: operation,
                pe: rank as usize,
            },
            other => Error::Bootstrap(other),
        }
    }
}

/// The same words as `Display`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
