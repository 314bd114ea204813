//! The transport's name.

/// The name by which users choose the transport.
pub(crate) const NAME: &str = "loopback";
