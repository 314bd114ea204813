//! The atomics that [`park`](crate::park) is written with, so that its model check can put loom's in
//! their place.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};
