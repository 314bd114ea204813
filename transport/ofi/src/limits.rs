//! The transport's name, and the sizes that it fixes for all providers.

/// The name by which users choose the transport.
pub(crate) const NAME: &str = "ofi";

/// The version of libfabric's interface that this transport was written for: 1.17.
pub(crate) const API: (u32, u32) = (1, 17);

/// Up to this many bytes the local buffer of a put or get needs no registration.
pub const UNREGISTERED: usize = 16 << 10;

/// Up to this many bytes a put's source is copied, and may be reused at once.
pub(crate) const INLINE: usize = 16 << 10;

/// The longest message that every provider is trusted with: each ends it, even if its PE dies.
pub(crate) const SAFE_MESSAGE: usize = 16 << 10;

/// Numbered messages to one PE that it has not served, at most.
pub(crate) const WINDOW: u64 = 1024;

/// The longest message, in bytes.
pub const MESSAGE: usize = 64;

/// Operations towards one PE that a lane holds.
pub(crate) const DEPTH: usize = 128;

/// The longest single operation.
pub(crate) const LONGEST: u64 = 1 << 30;

/// Small puts that are worth one message.
pub(crate) const BATCH: u32 = 64;
/// The longest put that goes together with others, in bytes.
pub(crate) const SMALL: usize = 4096;
