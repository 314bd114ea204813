//! Errors of the heap.

use std::io;

/// A heap call's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the heap refused. Each says what, where, and what would mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size that doesn't parse or fit.
    #[error("\"{text}\" is not a size: {why} (write bytes, as 1048576, or 512M, 1.5g, 50%)")]
    BadSize {
        /// The text.
        text: String,
        /// The reason, in words.
        why: &'static str,
    },
    /// The heap cannot be made this large at all.
    #[error("a heap of {limit} bytes cannot be made: {why}")]
    BadLimit {
        /// The heap's limit, in bytes.
        limit: usize,
        /// The reason, in words.
        why: String,
    },
    /// More was asked for than the heap may ever hold.
    #[error(
        "the heap would need {wanted} bytes, its limit is {limit}: raise OXSHMEM_SYMMETRIC_SIZE \
         (or the size that the program asks for)"
    )]
    BeyondLimit {
        /// Bytes from the heap's start.
        wanted: usize,
        /// The heap's limit, in bytes.
        limit: usize,
    },
    /// There is not enough memory to commit. The heap is as it was before the call.
    #[error(
        "no memory to grow the heap from {committed} to {wanted} bytes (its limit is {limit}): {why}"
    )]
    NoMemory {
        /// Bytes from the heap's start that were asked for.
        wanted: usize,
        /// Bytes committed before and after the call.
        committed: usize,
        /// The heap's limit, in bytes.
        limit: usize,
        /// The machine or control group that is short of memory, in words.
        why: String,
    },
    /// A peer's descriptor that this process won't map.
    #[error("the descriptor of a peer's heap will not be mapped: {why}")]
    BadDescriptor {
        /// The reason, in words.
        why: String,
    },
    /// An offset that no block starts at.
    #[error(
        "no block starts at offset {offset}: it was freed before, or was never allocated; free \
         each allocation once, with what allocating it gave"
    )]
    NotAllocated {
        /// The offset in the heap, in bytes.
        offset: usize,
    },
    /// The operating system refused.
    #[error("{call}: {source}; {}", remedy(.source))]
    Os {
        /// The call that failed, with its important arguments.
        call: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// The remedy for an operating system's error.
fn remedy(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => "raise this process's limit on open descriptors (ulimit -n)",
        Some(Errno::NFILE) => "raise the host's limit on open files (sysctl fs.file-max)",
        Some(Errno::NOMEM | Errno::NOSPC) => {
            "use a smaller heap (OXSHMEM_SYMMETRIC_SIZE), or raise what bounds it (ulimit -v, the \
             control group's memory.max, sysctl vm.max_map_count)"
        }
        Some(Errno::PERM | Errno::ACCESS) => {
            "this container or sandbox may not do that: permit it, or run the job elsewhere"
        }
        Some(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => {
            "this kernel or sandbox lacks what oxshmem needs (memfd_create with seals, fallocate)"
        }
        _ => "use a smaller heap (OXSHMEM_SYMMETRIC_SIZE) if memory or address space is short",
    }
}

impl Error {
    /// An [`Error::Os`].
    pub(crate) fn os(call: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Error::Os {
            call: call.into(),
            source: source.into(),
        }
    }
}
