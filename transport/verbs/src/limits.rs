//! The transport's name, and the sizes that it fixes for all devices.

/// The name by which users choose the transport.
pub(crate) const NAME: &str = "verbs";

/// Up to this many bytes the local buffer of a put or get needs no registration.
pub const UNREGISTERED: usize = 16 << 10;

/// Requests that share a doorbell at most, where the caller has so many.
pub(crate) const BATCH: u32 = 16;

/// The longest message, in bytes.
pub const MESSAGE: usize = 64;

/// The most NICs that one PE uses.
pub(crate) const MOST_RAILS: usize = 8;
