//! A lane, as its domain knows it.

use std::collections::{BTreeMap, VecDeque};

use oxshmem_transport::Error;

use crate::stream::Stream;

/// The streams of a lane, by PE, and the failures that it has yet to report.
#[derive(Debug, Default)]
pub(crate) struct LaneState {
    pub streams: BTreeMap<u32, Stream>,
    pub reports: VecDeque<Error>,
}
