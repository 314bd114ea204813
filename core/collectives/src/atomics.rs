//! The atomics of the [dissemination](crate::dissemination), which its model check replaces by loom's.

pub(crate) use std::sync::atomic::{Ordering, fence};
