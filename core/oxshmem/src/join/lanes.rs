//! Opening the lanes that operations will take, and connecting those that need it.

use std::collections::BTreeSet;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_transport::WireUp;

use super::card::{Bytes, Card, exchange};
use crate::routes::{Way, Ways};
use crate::wire::Opened;
use crate::{Error, Result};

/// For each PE, the transports on whose lanes something may go to it. A PE that is `hidden`, though
/// a transport maps or simulates its memory, is reached by that transport's lane too.
pub(super) fn lanes_used(ways: &[Ways], hidden: impl Fn(usize) -> bool) -> Vec<BTreeSet<usize>> {
    let used = |(pe, ways): (usize, &Ways)| {
        let all = hidden(pe);
        let lane = |way: Way| match way {
            Way::Mapped(_) if !all => None,
            way => way.transport(),
        };
        ways.each().into_iter().filter_map(lane).collect()
    };
    ways.iter().enumerate().map(used).collect()
}

/// Connects the lanes of transports that need it, with the peers that take them.
pub(super) fn connect_lanes(
    bootstrap: &dyn Bootstrap,
    cards: &[Card],
    transports: &[Opened],
    used: &[BTreeSet<usize>],
) -> Result<()> {
    for (index, transport) in transports.iter().enumerate() {
        if used.iter().any(|used| used.contains(&index)) {
            transport.open_lane()?;
        }
    }
    // Every PE takes part if any has such a transport, the same on all.
    if !cards
        .iter()
        .any(|c| c.transports.iter().any(|shown| shown.per_lane))
    {
        return Ok(());
    }
    let lanes_to = |used: &BTreeSet<usize>| -> Vec<&Opened> {
        let opened = used.iter().filter_map(|&index| transports.get(index));
        let per_lane = |t: &&Opened| t.domain.capabilities().wire_up == WireUp::PerLane;
        opened.filter(per_lane).collect()
    };
    // For each PE, this side's endpoints towards it, by the names of transports.
    let mut mine: Vec<Vec<(&str, Bytes)>> = Vec::new();
    for (pe, used) in used.iter().enumerate() {
        let lanes = lanes_to(used).into_iter();
        mine.push(
            lanes
                .map(|t| Ok((t.name, Bytes(t.endpoint(pe)?))))
                .collect::<Result<_>>()?,
        );
    }
    let theirs: Vec<Vec<Vec<(String, Bytes)>>> = exchange(bootstrap, &mine)?;
    let me = bootstrap.rank() as usize;
    for (pe, (theirs, used)) in theirs.iter().zip(used).enumerate() {
        for transport in lanes_to(used) {
            let mut towards_me = theirs.get(me).into_iter().flatten();
            let Some((_, endpoint)) = towards_me.find(|(name, _)| name == transport.name) else {
                return Err(Error::Unreachable {
                    call: "init",
                    from: me,
                    pe,
                    why: format!("{} is not how it reaches this PE", transport.name),
                });
            };
            transport.connect(pe, &endpoint.0)?;
        }
    }
    Ok(())
}
