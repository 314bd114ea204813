//! The atomics of [`park`](super::park), which its model check replaces by loom's.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};
