//! Opening the lanes that operations will take, and connecting those that need it.

use std::collections::BTreeSet;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_transport::WireUp;

use super::card::Card;
use super::endpoints;
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
    let mut mine = Vec::new();
    for (pe, used) in used.iter().enumerate() {
        let lanes = lanes_to(used).into_iter();
        let towards: Vec<_> = lanes
            .map(|t| Ok((t.name.to_owned(), t.endpoint(pe)?)))
            .collect::<Result<_>>()?;
        mine.push(towards);
    }
    let me = bootstrap.rank() as usize;
    let odd = |pe, what: &str| Error::Disagreement {
        a: pe,
        b: me,
        what: format!("what it tells of its lanes ({what})"),
    };
    let mine = endpoints::write(&mine).map_err(|what| odd(me, what))?;
    let all = bootstrap.allgather(&mine)?;
    for (pe, (theirs, used)) in all.iter().zip(used).enumerate() {
        let lanes = lanes_to(used);
        if lanes.is_empty() {
            continue;
        }
        let towards_me = endpoints::read(theirs, me, cards.len()).map_err(|what| odd(pe, what))?;
        for transport in lanes {
            let mut towards_me = towards_me.iter();
            let Some((_, endpoint)) = towards_me.find(|(name, _)| *name == transport.name) else {
                return Err(Error::Unreachable {
                    call: "init",
                    from: me,
                    pe,
                    why: format!("{} is not how it reaches this PE", transport.name),
                });
            };
            transport.connect(pe, endpoint)?;
        }
    }
    Ok(())
}
