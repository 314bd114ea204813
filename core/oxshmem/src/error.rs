//! Errors of calls. Each message says what failed, where, and the remedy.

use std::fmt;
use std::time::Duration;

use oxshmem_collectives::error::Error as CollectiveError;
use oxshmem_engine::error::Error as EngineError;
use oxshmem_engine::peer::loss_reasons;

/// An oxshmem call's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a call failed.
///
/// The name of the call that errors have is followed by the place where the program made it, as in
/// `put at src/main.rs:12: there is no PE 4; this job's PEs are 0 to 3`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A PE number that the job does not have.
    #[error("{call}: there is no PE {pe}; this job's PEs are 0 to {}", size - 1)]
    NoSuchPe {
        /// The call.
        call: &'static str,
        /// The number given.
        pe: usize,
        /// The job's size.
        size: usize,
    },
    /// A range that leaves its symmetric object (M35).
    #[error(
        "{call}: elements {start}..{end} leave an object of {len} elements; \
         shorten the range or allocate more"
    )]
    OutOfRange {
        /// The call.
        call: &'static str,
        /// First element.
        start: usize,
        /// One past the last.
        end: usize,
        /// The object's length in elements.
        len: usize,
    },
    /// A private buffer too small for what was asked.
    #[error(
        "{call}: the buffer has {len} elements where the call needs {needed}; give a longer one"
    )]
    BufferTooSmall {
        /// The call.
        call: &'static str,
        /// Elements it has.
        len: usize,
        /// Elements needed.
        needed: usize,
    },
    /// An object in GPU memory, where the call has to load or store it by the CPU (M4).
    #[error(
        "{call}: the object at offset {offset} lies in GPU memory, which this PE's CPU cannot \
         access; put or get it, or use an object in host memory"
    )]
    GpuMemory {
        /// The call.
        call: &'static str,
        /// Its offset in the GPU heap, in bytes.
        offset: u64,
    },
    /// The GPU's driver refused something, or work on the GPU has failed.
    #[error("{call}: {why}")]
    Gpu {
        /// The call.
        call: &'static str,
        /// The driver's words, and the remedy.
        why: String,
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
    /// An argument outside its domain.
    #[error("{call}: {what}")]
    Argument {
        /// The call.
        call: &'static str,
        /// The fault, and a right argument.
        what: String,
    },
    /// A handle of another world (M35).
    #[error(
        "{call}: the handle belongs to another world (or to one that has ended); \
         use the world that allocated it"
    )]
    Foreign {
        /// The call.
        call: &'static str,
    },
    /// A handle whose block has been freed (M35).
    #[error(
        "{call}: the block at offset {offset} was freed (or reallocated) after this handle was \
         made; free each block once and drop its handles then"
    )]
    Stale {
        /// The call.
        call: &'static str,
        /// The block's offset in the heap.
        offset: u64,
    },
    /// A handle of a part of a block where a whole one is needed.
    #[error("{call}: the handle names a part of a block; give the handle that the allocation gave")]
    NotABlock {
        /// The call.
        call: &'static str,
    },
    /// An address not aligned for its type (M38).
    #[error(
        "{call}: offset {offset} is not a multiple of {align} bytes, as the type needs; choose an \
         aligned part, or copy through a buffer"
    )]
    Misaligned {
        /// The call.
        call: &'static str,
        /// The offset in the heap, in bytes.
        offset: u64,
        /// The alignment needed, in bytes.
        align: usize,
    },
    /// Two accesses that the memory models leave undefined together (M31 to M33, M37), found in
    /// checked mode.
    #[error("{call}: {what} (found because OXSHMEM_CHECK is on)")]
    Conflict {
        /// The call.
        call: &'static str,
        /// The accesses, their PEs, their place, and an operation that would separate them.
        what: String,
    },
    /// The PEs did not make the same collective call with the same arguments (M9, M36).
    #[error("{call}: the PEs did not make the same collective calls: {detail}")]
    CollectiveMismatch {
        /// The call on this PE.
        call: &'static str,
        /// The call of each group of PEs.
        detail: String,
    },
    /// The symmetric heap has no room; every PE gets this error and the heap is unchanged (M13).
    #[error("{call}: no room for {bytes} bytes in the symmetric heap of {limit} bytes a PE: {why}")]
    OutOfMemory {
        /// The call.
        call: &'static str,
        /// Bytes asked for.
        bytes: u64,
        /// The heap's limit in bytes.
        limit: u64,
        /// On which PE and why, and what would mend it.
        why: String,
    },
    /// A collective call, a request to another PE, or a lock failed on another PE, so it failed here too.
    #[error("{call}: failed on PE {pe}: {why}")]
    FailedElsewhere {
        /// The call.
        call: &'static str,
        /// The PE it failed on.
        pe: usize,
        /// That PE's words.
        why: String,
    },
    /// No room for a team is free on all members of a new one at once. The parent team is as before.
    #[error(
        "{call}: of the room that each PE has for {limit} teams none is free on all members at once; \
         destroy teams that are not needed any more, or raise OXSHMEM_TEAMS (each takes 1 to 4 KiB of the symmetric heap, an eighth \
         of which they may fill)"
    )]
    TooManyTeams {
        /// The call.
        call: &'static str,
        /// The number of teams that a PE has room for.
        limit: usize,
    },
    /// The collective calls of a team, the world's or another, have ended: one was aborted midway, so the PEs
    /// are out of step.
    #[error("{call}: no collective call is possible any more: {why}; end the job")]
    CollectivesEnded {
        /// The call.
        call: &'static str,
        /// The reason of their end.
        why: String,
    },
    /// A PE that the call needs has died or left.
    #[error("{call}: {}", loss_reasons::describe_lost(*.pe))]
    PeerLost {
        /// The call.
        call: &'static str,
        /// The PE.
        pe: usize,
    },
    /// A wait reached the deadline that `OXSHMEM_TIMEOUT` sets.
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
    /// A connection to a live PE has failed, or an earlier failure closed the lanes of this transport. PEs to which
    /// operations of this one were in flight, such as signals of collective calls, then take this PE as lost and do not
    /// wait for it.
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
    /// This process is a PE of the job already, or was one.
    #[error(
        "this process has joined its job already; keep the World that World::init gave, \
         one per process"
    )]
    AlreadyJoined,
    /// A setting that makes no sense.
    #[error("{name}={value:?}: {why}")]
    Config {
        /// The environment variable (or builder method).
        name: String,
        /// Its value.
        value: String,
        /// The fault, and a right value.
        why: String,
    },
    /// The PEs' settings or programs differ where they must agree.
    #[error(
        "PE {a} and PE {b} differ in {what}; start every PE with the same program and settings"
    )]
    Disagreement {
        /// One PE.
        a: usize,
        /// Another.
        b: usize,
        /// The setting in which they differ, with both values.
        what: String,
    },
    /// The bootstrap failed.
    #[error(transparent)]
    Bootstrap(oxshmem_bootstrap::Error),
    /// The symmetric segment failed.
    #[error(transparent)]
    Heap(#[from] oxshmem_heap::Error),
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
            oxshmem_bootstrap::Error::Unreadable { rank, why } => Error::Disagreement {
                a: rank as usize,
                b: rank as usize,
                what: format!("what it tells of itself ({why})"),
            },
            other => Error::Bootstrap(other),
        }
    }
}

impl From<CollectiveError> for Error {
    fn from(error: CollectiveError) -> Self {
        match error {
            CollectiveError::OutOfRange {
                call,
                start,
                end,
                len,
            } => Error::OutOfRange {
                call,
                start,
                end,
                len,
            },
            CollectiveError::GpuMemory { call, offset } => Error::GpuMemory { call, offset },
            CollectiveError::Argument { call, what } => Error::Argument { call, what },
            CollectiveError::CollectiveMismatch { call, detail } => {
                Error::CollectiveMismatch { call, detail }
            }
            CollectiveError::OutOfMemory {
                call,
                bytes,
                limit,
                why,
            } => Error::OutOfMemory {
                call,
                bytes,
                limit,
                why,
            },
            CollectiveError::FailedElsewhere { call, pe, why } => {
                Error::FailedElsewhere { call, pe, why }
            }
            CollectiveError::TooManyTeams { call, limit } => Error::TooManyTeams { call, limit },
            CollectiveError::CollectivesEnded { call, why } => {
                Error::CollectivesEnded { call, why }
            }
            CollectiveError::Engine(error) => error.into(),
            CollectiveError::Caller(error) => match error.downcast() {
                Ok(own) => *own,
                Err(other) => Error::Argument {
                    call: "collective",
                    what: other.to_string(),
                },
            },
        }
    }
}

/// The failure of a call before the members meet, for them.
impl From<Error> for CollectiveError {
    fn from(error: Error) -> Self {
        match error {
            // The members agree on these, and report them alike.
            Error::OutOfMemory {
                call,
                bytes,
                limit,
                why,
            } => CollectiveError::OutOfMemory {
                call,
                bytes,
                limit,
                why,
            },
            Error::PeerLost { call, pe } => EngineError::PeerLost { call, pe }.into(),
            error => CollectiveError::caller(error),
        }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Argument { call, what } => Error::Argument { call, what },
            EngineError::Deadlock {
                call,
                me,
                whom,
                what,
            } => Error::Deadlock {
                call,
                me,
                whom,
                what,
            },
            EngineError::Foreign { call } => Error::Foreign { call },
            EngineError::Conflict { call, what } => Error::Conflict { call, what },
            EngineError::FailedElsewhere { call, pe, why } => {
                Error::FailedElsewhere { call, pe, why }
            }
            EngineError::PeerLost { call, pe } => Error::PeerLost { call, pe },
            EngineError::Timeout {
                call,
                me,
                whom,
                what,
                waited,
                limit,
            } => Error::Timeout {
                call,
                me,
                whom,
                what,
                waited,
                limit,
            },
            EngineError::Unreachable {
                call,
                from,
                pe,
                why,
            } => Error::Unreachable {
                call,
                from,
                pe,
                why,
            },
            EngineError::Unsupported {
                call,
                transport,
                pe,
                what,
            } => Error::Unsupported {
                call,
                transport,
                pe,
                what,
            },
            EngineError::LaneFailed {
                call,
                transport,
                why,
            } => Error::LaneFailed {
                call,
                transport,
                why,
            },
            EngineError::Bootstrap(error) => error.into(),
            EngineError::Transport(error) => Error::Transport(error),
        }
    }
}

impl Error {
    /// The name of the call, of an error that has one.
    pub(crate) fn call_mut(&mut self) -> Option<&mut &'static str> {
        match self {
            Error::NoSuchPe { call, .. }
            | Error::OutOfRange { call, .. }
            | Error::BufferTooSmall { call, .. }
            | Error::GpuMemory { call, .. }
            | Error::Gpu { call, .. }
            | Error::Deadlock { call, .. }
            | Error::Argument { call, .. }
            | Error::Foreign { call, .. }
            | Error::Stale { call, .. }
            | Error::NotABlock { call, .. }
            | Error::Misaligned { call, .. }
            | Error::Conflict { call, .. }
            | Error::CollectiveMismatch { call, .. }
            | Error::OutOfMemory { call, .. }
            | Error::FailedElsewhere { call, .. }
            | Error::TooManyTeams { call, .. }
            | Error::CollectivesEnded { call, .. }
            | Error::PeerLost { call, .. }
            | Error::Timeout { call, .. }
            | Error::Unreachable { call, .. }
            | Error::Unsupported { call, .. }
            | Error::LaneFailed { call, .. } => Some(call),
            Error::AlreadyJoined
            | Error::Config { .. }
            | Error::Disagreement { .. }
            | Error::Bootstrap(_)
            | Error::Heap(_)
            | Error::Transport(_) => None,
        }
    }
}

#[cfg(feature = "cuda")]
impl From<oxshmem_cuda::Error> for Error {
    fn from(error: oxshmem_cuda::Error) -> Self {
        Error::Gpu {
            call: "CUDA",
            why: error.to_string(),
        }
    }
}

/// The same words as `Display`: a `main` that returns an error shows it by `Debug`, and the remedy is
/// in the words.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
