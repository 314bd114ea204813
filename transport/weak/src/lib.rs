//! The weak transport.
