//! Errors of transports.

use crate::memory::MemoryKind;
use crate::pe::Pe;

/// A transport call's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a transport. Each says what failed, where, and its remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The transport does not work on this machine at all.
    #[error("{transport}: not available here: {why}")]
    Unavailable {
        /// The transport's name.
        transport: &'static str,
        /// The reason, in words.
        why: String,
    },
    /// The operation is not one that the transport's capabilities advertise.
    #[error("{transport}: {what} is not supported")]
    Unsupported {
        /// The transport's name.
        transport: &'static str,
        /// The operation, with the property that rules it out.
        what: String,
    },
    /// Memory of this kind cannot be registered with this transport.
    #[error("{transport}: {kind} memory cannot be registered: {why}")]
    Memory {
        /// The transport's name.
        transport: &'static str,
        /// The kind of memory.
        kind: MemoryKind,
        /// The reason, in words.
        why: String,
    },
    /// A range leaves the region it names.
    #[error("{transport}: bytes {offset}..{} leave a region of {region} bytes", offset.saturating_add(*len))]
    OutOfRange {
        /// The transport's name.
        transport: &'static str,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// The region's size in bytes.
        region: u64,
    },
    /// An address is not aligned as the operation needs.
    #[error("{transport}: offset {offset} is not a multiple of {align}, which {what} needs")]
    Misaligned {
        /// The transport's name.
        transport: &'static str,
        /// The operation or field.
        what: &'static str,
        /// The offset in its region.
        offset: u64,
        /// The alignment needed, in bytes.
        align: u64,
    },
    /// A region number that this domain never gave, or one of another PE.
    #[error("{transport}: region {region} of PE {pe} is not known here; import its key first")]
    UnknownRegion {
        /// The transport's name.
        transport: &'static str,
        /// The region's number.
        region: u32,
        /// The PE that the region belongs to.
        pe: Pe,
    },
    /// A key, address or descriptor that came from a peer makes no sense.
    #[error("{transport}: {what} of PE {pe} is not valid: {why}")]
    BadPeerData {
        /// The transport's name.
        transport: &'static str,
        /// The name of the data.
        what: &'static str,
        /// The peer.
        pe: Pe,
        /// The reason, in words.
        why: String,
    },
    /// This transport has no path to this PE.
    #[error("{transport}: PE {pe} cannot be reached: {why}")]
    Unreachable {
        /// The transport's name.
        transport: &'static str,
        /// The peer.
        pe: Pe,
        /// The reason, in words.
        why: String,
    },
    /// The peer has died or left.
    #[error("{transport}: PE {pe} is lost")]
    PeerLost {
        /// The transport's name.
        transport: &'static str,
        /// The peer.
        pe: Pe,
    },
    /// The connection with this PE has failed, for another reason than its death.
    #[error("{transport}: the connection with PE {pe} failed: {why}")]
    Connection {
        /// The transport's name.
        transport: &'static str,
        /// The peer.
        pe: Pe,
        /// The reason, in words.
        why: String,
    },
    /// The connection with this PE has ended, and nothing is in doubt: it can be made again, as a new one.
    #[error("{transport}: the connection with PE {pe} was interrupted: {why}")]
    Interrupted {
        /// The transport's name.
        transport: &'static str,
        /// The peer.
        pe: Pe,
        /// The reason, in words.
        why: String,
    },
    /// The domain was shut down.
    #[error("{transport}: the domain is shut down")]
    Closed {
        /// The transport's name.
        transport: &'static str,
    },
    /// The operating system or a library refused.
    #[error("{transport}: {call}: {source}")]
    Os {
        /// The transport's name.
        transport: &'static str,
        /// The call that failed, with its important arguments.
        call: String,
        /// The error of the system.
        source: std::io::Error,
    },
}
