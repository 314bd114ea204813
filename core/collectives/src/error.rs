//! Errors of collective calls. The layer above turns them into the errors of users' calls.

use std::fmt;

use oxshmem_engine::error::Error as EngineError;

/// The result of a collective call, or of a step of one.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a collective call failed.
#[derive(thiserror::Error)]
pub enum Error {
    /// A range that leaves its object.
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
    /// An argument outside its domain.
    #[error("{call}: {what}")]
    Argument {
        /// The call.
        call: &'static str,
        /// The fault, and a right argument.
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
    /// The symmetric heap has no room on some PE (M13).
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
    /// The call failed on another PE, so it failed here too.
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
    /// The collective calls of a team have ended: one was aborted midway, so the PEs are out of step.
    #[error("{call}: no collective call is possible any more: {why}; end the job")]
    CollectivesEnded {
        /// The call.
        call: &'static str,
        /// The reason of their end.
        why: String,
    },
    /// An operation of the engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The caller had failed before the members met: its own error, which it gets back.
    #[error(transparent)]
    Caller(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The failure of the caller before the members meet.
    #[cold]
    #[must_use]
    pub fn caller(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Caller(Box::new(error))
    }
}

/// The same words as `Display`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
