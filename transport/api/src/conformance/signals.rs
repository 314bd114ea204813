//! Checks of put-with-signal.

use super::harness::Harness;
use super::order::{STAMP, watch};
use super::report::{Done, Found};
use super::world::{PE0, PE1, World, to};
use crate::capabilities::SignalSupport;
use crate::error::Error;
use crate::memory::RegionId;
use crate::op::{Local, Op, Remote, SignalOp};

fn put_signal(from: Local, at: u64, signal: u64, op: SignalOp, value: u64) -> Op {
    Op::PutSignal {
        from,
        to: to(at),
        signal: to(signal),
        op,
        value,
    }
}

fn native(world: &World<'_>) -> bool {
    world.capabilities.put_signal != SignalSupport::None
}

const UNDECLARED: Done = Done::Free("put-with-signal is not declared");

/// The offset of the checks' signal word, behind the data.
const SIGNAL: u64 = 24 << 10;

/// Data of each size arrives, and the signal is set or added to, wrapping.
pub(super) fn semantics(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if !native(&world) {
        return Ok(UNDECLARED);
    }
    let mut lanes = world.lanes()?;
    let member = world.member(PE0);
    let remote = &world.member(PE1).target;
    let limits = world.capabilities.put;
    let mut sizes = vec![
        0,
        1,
        3,
        8,
        13,
        64,
        1000,
        4096,
        20_000,
        limits.inline,
        limits.max,
    ];
    sizes.retain(|&size| size <= limits.max.min(20_000));
    for (size, seed) in sizes.into_iter().zip(1..) {
        for local in [&member.local, &member.loose] {
            if local.buffer(0, 0).key.is_none() && size > limits.unregistered {
                continue;
            }
            for (op, old, value) in [
                (SignalOp::Set, 7, 9),
                (SignalOp::Set, 7, 0),
                (SignalOp::Add, 7, 9),
                (SignalOp::Add, u64::MAX, 3),
            ] {
                let align = limits.align;
                local.fill(3 * align, size, seed);
                remote.set(0, SIGNAL + 24, 0xee);
                remote.store(SIGNAL, old);
                let from = local.buffer(3 * align, size);
                lanes.perform(PE0, PE1, &[put_signal(from, align, SIGNAL, op, value)])?;
                let want = match op {
                    SignalOp::Set => value,
                    SignalOp::Add => old.wrapping_add(value),
                };
                let what = format!("{op:?} of {old} by {value} with {size} bytes");
                if remote.load(SIGNAL) != want {
                    return Err(format!(
                        "{what}: signal is {}, not {want}",
                        remote.load(SIGNAL)
                    ));
                }
                let told = |e| format!("{what}: {e}");
                remote.expect_filled(align, size, seed).map_err(told)?;
                remote.expect_set(0, align, 0xee).map_err(told)?;
                remote.expect_set(align + size, 16, 0xee).map_err(told)?;
                remote.expect_set(SIGNAL - 8, 8, 0xee).map_err(told)?;
                remote.expect_set(SIGNAL + 8, 16, 0xee).map_err(told)?;
            }
        }
    }
    Ok(Done::Tried)
}

/// Undeclared it is Unsupported. Declared, neither data nor signal is touched where one of them is
/// misplaced.
pub(super) fn refusals(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let remote = &world.member(PE1).target;
    let region = remote.len();
    remote.set(0, region, 0xee);
    local.fill(0, 64, 3);
    let data = local.buffer(0, 64);
    let set = |at, signal| put_signal(data, at, signal, SignalOp::Set, 1);
    if native(&world) {
        for op in [
            set(region - 63, SIGNAL),
            set(u64::MAX - 63, SIGNAL),
            set(0, region),
        ] {
            lanes.refused(PE0, PE1, op, "OutOfRange", |e| {
                matches!(e, Error::OutOfRange { .. })
            })?;
        }
        for signal in [SIGNAL + 1, SIGNAL + 4, region - 4] {
            lanes.refused(PE0, PE1, set(0, signal), "Misaligned", |e| {
                matches!(e, Error::Misaligned { .. })
            })?;
        }
        let nowhere = Remote {
            region: RegionId(7),
            offset: 0,
        };
        for (to, signal) in [(to(0), nowhere), (nowhere, to(SIGNAL))] {
            let op = Op::PutSignal {
                from: data,
                to,
                signal,
                op: SignalOp::Set,
                value: 1,
            };
            lanes.refused(PE0, PE1, op, "UnknownRegion", |e| {
                matches!(e, Error::UnknownRegion { .. })
            })?;
        }
    } else {
        lanes.refused(PE0, PE1, set(0, SIGNAL), "Unsupported", |e| {
            matches!(e, Error::Unsupported { .. })
        })?;
    }
    lanes.place(PE0, PE1)?;
    remote
        .expect_set(0, region, 0xee)
        .map_err(|e| format!("a refused put-with-signal: {e}"))?;
    Ok(Done::Tried)
}

/// A reader that sees the signal sees the data (M22).
pub(super) fn order(harness: &dyn Harness) -> Found {
    let world = World::new(harness, 2, 96 << 10)?;
    if !native(&world) {
        return Ok(UNDECLARED);
    }
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let remote = &world.member(PE1).target;
    for size in [8, 1000, 64 << 10] {
        let size = world.capabilities.put.max.min(size) / 8 * 8;
        for op in [SignalOp::Set, SignalOp::Add] {
            remote.set(0, remote.len(), 0);
            watch(&world, size, 80 << 10, |stamp| {
                local.store_words(size, stamp);
                let value = if op == SignalOp::Set { stamp } else { STAMP };
                let posted = put_signal(local.buffer(0, size), 0, 80 << 10, op, value);
                lanes.perform(PE0, PE1, &[posted])
            })
            .map_err(|e| format!("{op:?} with {size} bytes: {e}"))?;
        }
    }
    Ok(Done::Tried)
}
