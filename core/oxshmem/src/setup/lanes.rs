//! Whose lanes operations will take. They are connected when first used.

use std::collections::BTreeSet;

use crate::route::{Path, PeerPaths};

/// The transports on whose lanes something may go. A PE that is `hidden`, though a transport maps or
/// simulates its memory, is reached by that transport's lane too.
pub(super) fn lanes_used(ways: &[PeerPaths], hidden: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let used = |(pe, ways): (usize, &PeerPaths)| {
        let all = hidden(pe);
        let lane = move |way: Path| match way {
            Path::Mapped(_) if !all => None,
            way => way.transport(),
        };
        ways.each().into_iter().filter_map(lane)
    };
    ways.iter().enumerate().flat_map(used).collect()
}
