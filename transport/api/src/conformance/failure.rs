//! Checks of lost PEs, shutdown and dropped lanes.

use super::harness::Harness;
use super::lanes::{Lanes, Patience, Watched, get, put};
use super::report::{Done, Found};
use super::world::{PE0, PE1, World, to};
use crate::capabilities::WireUp;
use crate::error::Error;
use crate::op::Op;
use crate::pe::Pe;
use crate::traits::Status;

const PE2: Pe = Pe(2);

/// The number of operations that a lane certainly holds, at most `most`.
fn held(world: &World<'_>, most: u64) -> u64 {
    u64::from(world.capabilities.depth.unwrap_or(u32::MAX)).min(most)
}

/// Progress in which only the loss of PE 1 may be reported.
fn progress(lane: &mut Watched<'_>) -> Found<()> {
    match lane.lane.progress() {
        Ok(()) | Err(Error::PeerLost { pe: PE1, .. }) => Ok(()),
        Err(other) => Err(format!("progress after PE 1 was lost: {other:?}")),
    }
}

fn expect_refusal(lane: &mut Watched<'_>, pe: Pe, ops: &[Op], lost: bool) -> Found<()> {
    for op in ops {
        match lane.post(pe, &[*op])?.status {
            Status::Refused(Error::PeerLost { pe: told, .. }) if lost && told == pe => {}
            Status::Refused(Error::Closed { .. }) if !lost => {}
            other => {
                let want = if lost { "PeerLost" } else { "Closed" };
                return Err(format!("{op:?} was answered {other:?}, not {want}"));
            }
        }
    }
    Ok(())
}

/// Operations to a lost PE are refused on old and new lanes, its outstanding ones are cancelled, and
/// those with others complete.
pub(super) fn lost_peer(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    local.fill(0, 4096, 4);
    let ops: Vec<Op> = (0..held(&world, 64))
        .map(|k| put(local.buffer(8 * k, 8), to(8 * k)))
        .collect();
    let (before, after) = (&ops[..], &ops[..1]);
    for pe in [PE1, PE2] {
        let posted = lanes.of(PE0).post(pe, before)?;
        if posted.accepted != before.len() {
            return Err(format!(
                "{posted:?} for as many operations as the lane holds"
            ));
        }
    }
    harness.lose(PE1);
    for pe in [PE0, PE2] {
        let domain = &world.member(pe).domain;
        domain.peer_lost(PE1);
        domain.peer_lost(PE1);
        // Nobody's number: nothing to lose, nothing to panic about.
        domain.peer_lost(Pe(3));
        domain.peer_lost(Pe(u32::MAX));
    }
    let refused = [after[0], get(local.buffer(0, 8), to(0)), Op::Flush];
    let lane = lanes.of(PE0);
    expect_refusal(lane, PE1, &refused, true)?;
    progress(lane)?;
    let given_up = lane.counters(PE1)?;
    for _ in 0..100 {
        progress(lane)?;
    }
    if lane.counters(PE1)? != given_up {
        return Err("the counters of a lost PE went on growing".into());
    }
    let mut new = Watched::new(
        world
            .member(PE0)
            .domain
            .lane()
            .map_err(|e| format!("lane after a loss: {e}"))?,
        3,
    );
    expect_refusal(&mut new, PE1, &refused, true)?;

    place_with_lost(&world, &mut lanes, PE0, PE2)?;
    world
        .member(PE2)
        .target
        .expect_filled(0, 8 * held(&world, 64), 4)?;
    world.member(PE2).local.fill(0, 64, 6);
    let source = world.member(PE2).local.buffer(0, 64);
    lanes.post_all(PE2, PE0, &[put(source, to(64))])?;
    place_with_lost(&world, &mut lanes, PE2, PE0)?;
    world.member(PE0).target.expect_filled(64, 64, 6)?;
    Ok(Done::Tried)
}

/// Once a lane's first call after a PE's loss has returned, gets from that PE write nothing any more.
pub(super) fn gets_from_lost_peer(harness: &dyn Harness) -> Found {
    for posts in [false, true] {
        gets_from_lost_peer_by(harness, posts)?;
    }
    Ok(Done::Tried)
}

/// The check, with `post` or `progress` as that first call.
fn gets_from_lost_peer_by(harness: &dyn Harness, posts: bool) -> Found<()> {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let count = held(&world, 64);
    let gets: Vec<Op> = (0..count)
        .map(|k| get(local.buffer(8 * k, 8), to(8 * k)))
        .collect();
    let posted = lanes.of(PE0).post(PE1, &gets)?;
    if posted.accepted != gets.len() {
        return Err(format!(
            "{posted:?} for as many operations as the lane holds"
        ));
    }
    world.member(PE0).domain.peer_lost(PE1);
    if posts {
        expect_refusal(lanes.of(PE0), PE1, &[Op::Flush], true)?
    } else {
        progress(lanes.of(PE0))?
    }
    local.fill(0, 8 * count, 11);
    for _ in 0..100 {
        lanes.of(PE1).progress()?;
        progress(lanes.of(PE0))?;
    }
    local
        .expect_filled(0, 8 * count, 11)
        .map_err(|e| format!("a get wrote after its PE was lost and its lane was called: {e}"))
}

/// A flush, and completion of all before it, in a world where PE 1 is lost.
fn place_with_lost(world: &World<'_>, lanes: &mut Lanes<'_>, from: Pe, pe: Pe) -> Found<()> {
    let mut patience = Patience::new(world.deadline());
    let mut flushed = false;
    loop {
        if !flushed {
            match lanes.of(from).post(pe, &[Op::Flush])?.status {
                Status::All => flushed = true,
                Status::Full => {}
                Status::Refused(e) => return Err(format!("PE {pe} after PE 1's loss: {e}")),
            }
        }
        let now = lanes.of(from).counters(pe)?;
        if flushed && now.completed == now.posted {
            return Ok(());
        }
        for driven in [from, pe] {
            progress(lanes.of(driven))?;
        }
        patience.round(|| format!("PE {pe} after PE 1's loss: {now:?}"))?;
    }
}

/// After shutdown every lane of the domain, old or new, is Closed; other domains go on.
pub(super) fn shutdown(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let write = put(local.buffer(0, 8), to(0));
    for pe in [PE0, PE1] {
        let posted = lanes.of(PE0).post(pe, &[write])?;
        if !matches!(posted.status, Status::All) {
            return Err(format!("a put before shutdown: {posted:?}"));
        }
    }
    let domain = &world.member(PE0).domain;
    domain.shutdown();
    domain.shutdown();
    let ops = [write, get(local.buffer(0, 8), to(0)), Op::Flush];
    for pe in [PE0, PE1] {
        expect_refusal(lanes.of(PE0), pe, &ops, false)?;
    }
    match lanes.of(PE0).lane.progress() {
        Err(Error::Closed { .. }) => {}
        other => return Err(format!("progress after shutdown: {other:?}, not Closed")),
    }
    match domain.lane() {
        Err(Error::Closed { .. }) => {}
        Err(other) => return Err(format!("a lane after shutdown: {other:?}, not Closed")),
        Ok(lane) => expect_refusal(&mut Watched::new(lane, 3), PE1, &ops, false)?,
    }
    if world.capabilities.wire_up == WireUp::PerLane {
        match lanes.of(PE0).lane.endpoint(PE2) {
            Err(Error::Closed { .. }) => {}
            other => return Err(format!("an endpoint after shutdown: {other:?}, not Closed")),
        }
    }
    world.member(PE1).local.fill(0, 64, 8);
    let mut others: Vec<_> = lanes.split().skip(1).collect();
    let source = world.member(PE1).local.buffer(0, 64);
    let (_, own) = &mut others[0];
    own.perform(PE1, PE1, &[put(source, to(128))])
        .map_err(|e| format!("another domain after the shutdown: {e}"))?;
    world.member(PE1).target.expect_filled(128, 64, 8)?;
    Ok(Done::Tried)
}

/// Once a lane is dropped nothing outstanding touches local memory, and other lanes go on.
pub(super) fn dropped_lane(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let (mut dropped, mut other) = (world.lanes()?, world.lanes()?);
    let local = &world.member(PE0).local;
    let count = held(&world, 64);
    let gets: Vec<Op> = (0..count)
        .map(|k| get(local.buffer(8 * k, 8), to(8 * k)))
        .collect();
    let posted = dropped.of(PE0).post(PE1, &gets)?;
    if posted.accepted != gets.len() {
        return Err(format!(
            "{posted:?} for as many operations as the lane holds"
        ));
    }
    drop(dropped);
    local.fill(0, 8 * count, 11);
    local.fill(8192, 64, 12);
    for _ in 0..20 {
        other.perform(PE0, PE1, &[put(local.buffer(8192, 64), to(0))])?;
    }
    local
        .expect_filled(0, 8 * count, 11)
        .map_err(|e| format!("a get wrote after its lane was dropped: {e}"))?;
    world.member(PE1).target.expect_filled(0, 64, 12)?;
    Ok(Done::Tried)
}
