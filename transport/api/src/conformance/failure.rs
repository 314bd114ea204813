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

/// Operations of one length, outstanding at once.
#[derive(Clone, Copy, Debug)]
struct Shape {
    len: u64,
    count: u64,
}

/// The shapes that are tried: transports move longer data in other ways, and may end those otherwise.
const SHAPES: [Shape; 3] = [
    Shape { len: 8, count: 64 },
    Shape {
        len: 64 << 10,
        count: 8,
    },
    Shape {
        len: 1 << 20,
        count: 2,
    },
];

impl Shape {
    /// A world with memory for the operations, each with bytes of its own; none if they are too long for the transport.
    fn world(self, harness: &dyn Harness, n: u32) -> Found<Option<World<'_>>> {
        let world = World::new(harness, n, (self.len * self.count).max(32 << 10))?;
        let limits = world.capabilities.put.max.min(world.capabilities.get.max);
        let fits = self.len <= limits.min(harness.largest());
        Ok(fits.then_some(world))
    }

    /// As many of these operations as a lane certainly holds, where the one at an offset is given.
    fn ops(self, world: &World<'_>, op: impl Fn(u64) -> Op) -> Vec<Op> {
        let held = u64::from(world.capabilities.depth.unwrap_or(u32::MAX));
        let count = self.count.min(held);
        (0..count).map(|k| op(k * self.len)).collect()
    }
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
    for shape in SHAPES {
        lost_peer_in(harness, shape).map_err(|why| format!("{shape:?}: {why}"))?;
    }
    Ok(Done::Tried)
}

fn lost_peer_in(harness: &dyn Harness, shape: Shape) -> Found<()> {
    let Some(world) = shape.world(harness, 3)? else {
        return Ok(());
    };
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let ops = shape.ops(&world, |at| put(local.buffer(at, shape.len), to(at)));
    let all = shape.len * ops.len() as u64;
    local.fill(0, all, 4);
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
    world.member(PE2).target.expect_filled(0, all, 4)?;
    world.member(PE2).local.fill(0, 64, 6);
    let source = world.member(PE2).local.buffer(0, 64);
    lanes.post_all(PE2, PE0, &[put(source, to(64))])?;
    place_with_lost(&world, &mut lanes, PE2, PE0)?;
    world.member(PE0).target.expect_filled(64, 64, 6)
}

/// Once a lane's first call after a PE's loss has returned, gets from that PE write nothing any more.
pub(super) fn gets_from_lost_peer(harness: &dyn Harness) -> Found {
    for (shape, posts) in SHAPES.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        gets_from_lost_peer_by(harness, shape, posts).map_err(|why| format!("{shape:?}: {why}"))?;
    }
    Ok(Done::Tried)
}

/// The check, with `post` or `progress` as that first call.
fn gets_from_lost_peer_by(harness: &dyn Harness, shape: Shape, posts: bool) -> Found<()> {
    let Some(world) = shape.world(harness, 2)? else {
        return Ok(());
    };
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let gets = shape.ops(&world, |at| get(local.buffer(at, shape.len), to(at)));
    let all = shape.len * gets.len() as u64;
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
    local.fill(0, all, 11);
    for _ in 0..100 {
        lanes.of(PE1).progress()?;
        progress(lanes.of(PE0))?;
    }
    local
        .expect_filled(0, all, 11)
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
    for shape in SHAPES {
        dropped_lane_in(harness, shape).map_err(|why| format!("{shape:?}: {why}"))?;
    }
    Ok(Done::Tried)
}

fn dropped_lane_in(harness: &dyn Harness, shape: Shape) -> Found<()> {
    let Some(world) = shape.world(harness, 2)? else {
        return Ok(());
    };
    let (mut dropped, mut other) = (world.lanes()?, world.lanes()?);
    let (local, source) = (&world.member(PE0).local, &world.member(PE0).target);
    let gets = shape.ops(&world, |at| get(local.buffer(at, shape.len), to(at)));
    let all = shape.len * gets.len() as u64;
    let posted = dropped.of(PE0).post(PE1, &gets)?;
    if posted.accepted != gets.len() {
        return Err(format!(
            "{posted:?} for as many operations as the lane holds"
        ));
    }
    drop(dropped);
    local.fill(0, all, 11);
    source.fill(0, 64, 12);
    for _ in 0..20 {
        other.perform(PE0, PE1, &[put(source.buffer(0, 64), to(0))])?;
    }
    local
        .expect_filled(0, all, 11)
        .map_err(|e| format!("a get wrote after its lane was dropped: {e}"))?;
    world.member(PE1).target.expect_filled(0, 64, 12)
}
