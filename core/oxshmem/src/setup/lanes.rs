//! The rails whose lanes operations may take. Their connections are made at first use.

use std::collections::BTreeSet;

use oxshmem_engine::route::path::{Path, PeerPaths};

/// The indices of those rails. A PE that is `hidden`, though a transport maps or simulates its memory, is reached by that
/// transport's lane, too.
pub(super) fn lanes_used(paths: &[PeerPaths], hidden: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let used = |(pe, paths): (usize, &PeerPaths)| {
        let is_hidden = hidden(pe);
        let lane = move |path: Path| match path {
            Path::Mapped(_) if !is_hidden => None,
            path => path.transport(),
        };
        paths.each().into_iter().filter_map(lane)
    };
    paths.iter().enumerate().flat_map(used).collect()
}
