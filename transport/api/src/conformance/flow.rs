//! Checks of counters, batches, full lanes and flushes.

use super::atomics::atomic;
use super::harness::Harness;
use super::lanes::{Lanes, Patience, put};
use super::report::{Done, Found};
use super::world::{PE0, PE1, TARGET, World, to};
use crate::capabilities::AtomicLevel;
use crate::error::Error;
use crate::memory::RegionId;
use crate::op::{AtomicOp, Op, Remote, Width};
use crate::pe::Pe;
use crate::traits::{Counters, Status};

const PE2: Pe = Pe(2);

/// Each operation counts once, towards its PE and on its lane alone, and completes.
pub(super) fn counters(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let count = |n: u64| Counters {
        posted: n,
        completed: n,
    };
    let mut told = [0; 3];
    for round in 0..30 {
        let pe = Pe(round % 3);
        let ops = vec![put(local.buffer(0, u64::from(round % 9)), to(0)); round as usize % 5];
        lanes.post_all(PE0, pe, &ops)?;
        lanes.post_all(PE0, pe, &[Op::Flush])?;
        lanes.complete(PE0, pe)?;
        told[pe.index()] += ops.len() as u64 + 1;
        for (pe, &told) in (0..).map(Pe).zip(&told) {
            let counted = lanes.of(PE0).counters(pe)?;
            if counted != count(told) {
                return Err(format!(
                    "towards PE {pe}: {counted:?} after {told} operations"
                ));
            }
        }
    }
    let other = world.lanes()?.of(PE0).counters(PE1)?;
    if other != count(0) {
        return Err(format!("a new lane counts {other:?}"));
    }
    Ok(Done::Tried)
}

/// A batch with a bad operation is taken up to it, and none after it.
pub(super) fn refusal_in_batch(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if world.capabilities.depth.is_some_and(|depth| depth < 2) {
        return Ok(Done::Free("a lane holds one operation"));
    }
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    local.fill(0, 8, 1);
    remote.set(0, 64, 0xee);
    let good = |at| put(local.buffer(0, 8), to(at));
    let bad = put(
        local.buffer(0, 8),
        Remote {
            region: RegionId(9),
            offset: 0,
        },
    );
    let posted = lanes.of(PE0).post(PE1, &[good(0), bad, good(16)])?;
    match (posted.accepted, &posted.status) {
        (1, Status::Refused(Error::UnknownRegion { .. })) => {}
        _ => return Err(format!("good, bad, good was answered {posted:?}")),
    }
    lanes.place(PE0, PE1)?;
    remote
        .expect_filled(0, 8, 1)
        .map_err(|e| format!("the one before the bad one: {e}"))?;
    remote
        .expect_set(8, 56, 0xee)
        .map_err(|e| format!("the ones after it: {e}"))?;
    let none = lanes.of(PE0).post(PE1, &[])?;
    match none.status {
        Status::All => Ok(Done::Tried),
        other => Err(format!("an empty batch was answered {other:?}")),
    }
}

/// A lane takes as much as it declares without progress, never holds more, and an operation
/// that did not fit arrives later, once. Full towards one PE is not Full towards another.
pub(super) fn full(harness: &dyn Harness) -> Found {
    let world = World::new(harness, 3, 256 << 10)?;
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let depth = world.capabilities.depth.map(u64::from);
    let held = depth.unwrap_or(2000).min(8000);
    let count = 2 * held + 5;
    let mut ops = Vec::new();
    for k in 0..count {
        local.store(8 * k, k + 1);
        ops.push(put(local.buffer(8 * k, 8), to(8 * k)));
    }
    let last = 8 * count;
    let marks: Vec<Op> = (0..count)
        .map(|k| put(local.buffer(8 * k, 8), to(last)))
        .collect();

    // Without progress: at least the depth, and never more than it outstanding.
    let posted = lanes.of(PE0).post(PE1, &ops)?;
    match (depth, &posted.status) {
        (None, Status::All) => {}
        (Some(_), Status::Full | Status::All) if posted.accepted as u64 >= held => {}
        _ => {
            return Err(format!(
                "depth {depth:?}, and {count} puts answered {posted:?}"
            ));
        }
    }
    let elsewhere = lanes.of(PE0).post(PE2, &ops[..held as usize])?;
    if (elsewhere.accepted as u64) < held {
        return Err(format!(
            "with PE 1's taken, PE 2's were answered {elsewhere:?}"
        ));
    }
    post_through_full(&world, &mut lanes, &ops[posted.accepted..])?;
    lanes.place(PE0, PE1)?;
    for k in 0..count {
        if remote.load(8 * k) != k + 1 {
            return Err(format!(
                "of {count} puts, the one to word {k} left {}",
                remote.load(8 * k)
            ));
        }
    }
    lanes.perform(PE0, PE1, &marks)?;
    if world.guarantees.put_put && remote.load(last) != count {
        return Err(format!(
            "of {count} puts to one word through Full, {} stays",
            remote.load(last)
        ));
    }
    if world.capabilities.atomics.level(AtomicOp::Add, Width::W64) != AtomicLevel::None {
        remote.store(0, 0);
        let adds = vec![atomic(AtomicOp::Add, Width::W64, 0, 1, 0, None); count as usize];
        lanes.perform(PE0, PE1, &adds)?;
        if remote.load(0) != count {
            return Err(format!(
                "{count} increments through Full made {}",
                remote.load(0)
            ));
        }
    }
    lanes.place(PE0, PE2)?;
    for k in 0..held {
        if world.member(PE2).target.load(8 * k) != k + 1 {
            return Err(format!("word {k} of PE 2 did not arrive"));
        }
    }
    Ok(Done::Tried)
}

/// Posts operations towards PE 1, through Full. Never more than the depth are outstanding.
fn post_through_full(world: &World<'_>, lanes: &mut Lanes<'_>, ops: &[Op]) -> Found<()> {
    let depth = world.capabilities.depth.map(u64::from);
    let mut rest = ops;
    let mut patience = Patience::new(world.deadline());
    loop {
        let now = lanes.of(PE0).counters(PE1)?;
        let outstanding = now.posted - now.completed;
        if depth.is_some_and(|depth| outstanding > depth) {
            return Err(format!("{outstanding} outstanding, depth {depth:?}"));
        }
        if rest.is_empty() {
            return Ok(());
        }
        lanes.drive(PE0)?;
        let posted = lanes.of(PE0).post(PE1, rest)?;
        if let Status::Refused(error) = posted.status {
            return Err(format!("refused after Full: {error}"));
        }
        rest = &rest[posted.accepted..];
        patience.round(|| format!("Full, {} left: {now:?}", rest.len()))?;
    }
}

/// A flush completes, alone too; operations posted before it are placed then, whatever a completion means
/// otherwise.
pub(super) fn flush(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    lanes.post_all(PE0, PE1, &[Op::Flush])?;
    lanes.complete(PE0, PE1)?;
    for round in 1..=20u64 {
        let mut ops = Vec::new();
        for k in 0..16 {
            local.store(8 * k, 100 * round + k);
            ops.push(Op::Put {
                from: local.buffer(8 * k, 8),
                to: Remote {
                    region: TARGET,
                    offset: 8 * k,
                },
            });
            if k % 4 == 3 {
                ops.push(Op::Flush);
            }
        }
        lanes.post_all(PE0, PE1, &ops)?;
        lanes.complete(PE0, PE1)?;
        for k in 0..16 {
            if remote.load(8 * k) != 100 * round + k {
                return Err(format!(
                    "round {round}: word {k} is not in place after the flush"
                ));
            }
        }
    }
    Ok(Done::Tried)
}
