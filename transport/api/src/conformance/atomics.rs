//! Checks of atomics.

use std::sync::Barrier;
use std::sync::atomic::Ordering;

use super::area::Area;
use super::harness::Harness;
use super::lanes::Lanes;
use super::report::{Done, Found};
use super::world::{PE0, PE1, World, to};
use crate::capabilities::AtomicLevel;
use crate::error::Error;
use crate::op::{AtomicOp, Local, Op, Remote, Width};
use crate::pe::Pe;

/// The atomics that are declared.
pub(super) fn declared(world: &World<'_>) -> impl Iterator<Item = (AtomicOp, Width)> {
    let table = world.capabilities.atomics;
    every().filter(move |&(op, width)| table.level(op, width) != AtomicLevel::None)
}

fn every() -> impl Iterator<Item = (AtomicOp, Width)> {
    AtomicOp::ALL
        .into_iter()
        .flat_map(|op| Width::ALL.map(|width| (op, width)))
}

/// Whether an operation has an old value to fetch.
pub(super) fn yields(op: AtomicOp) -> bool {
    op != AtomicOp::Set
}

/// An atomic on the word at `at` of region 0.
pub(super) fn atomic(
    op: AtomicOp,
    width: Width,
    at: u64,
    operand: u64,
    compare: u64,
    fetch: Option<Local>,
) -> Op {
    Op::Atomic {
        op,
        width,
        on: to(at),
        operand,
        compare,
        fetch,
    }
}

fn mask(width: Width) -> u64 {
    match width {
        Width::W32 => u64::from(u32::MAX),
        Width::W64 => u64::MAX,
    }
}

/// The value of the word afterwards.
pub(super) fn model(op: AtomicOp, width: Width, old: u64, operand: u64, compare: u64) -> u64 {
    let new = match op {
        AtomicOp::Fetch => old,
        AtomicOp::Set | AtomicOp::Swap => operand,
        AtomicOp::Add => old.wrapping_add(operand),
        AtomicOp::And => old & operand,
        AtomicOp::Or => old | operand,
        AtomicOp::Xor => old ^ operand,
        AtomicOp::CompareSwap if old == compare => operand,
        AtomicOp::CompareSwap => old,
    };
    new & mask(width)
}

fn load(area: &Area, at: u64, width: Width) -> u64 {
    match width {
        Width::W32 => area.load_half(at).into(),
        Width::W64 => area.load(at),
    }
}

fn store(area: &Area, at: u64, width: Width, value: u64) {
    match width {
        Width::W32 => area.store_half(at, value as u32),
        Width::W64 => area.store(at, value),
    }
}

/// Each declared atomic computes, wraps, compares and fetches as it says and touches one word only.
pub(super) fn semantics(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let member = world.member(PE0);
    let remote = &world.member(PE1).target;
    if declared(&world).next().is_none() {
        return Ok(Done::Free("no atomic is declared"));
    }
    let words = [
        (0, 0),
        (0, 1),
        (u64::MAX, 1),
        (5, u64::MAX),
        (u64::MAX >> 1, 1),
        ((1 << 31) - 1, 1),
        (0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210),
    ];
    for (op, width) in declared(&world) {
        let bytes = width.bytes() as u64;
        let mut nears = vec![&member.local];
        if world.capabilities.get.unregistered >= bytes {
            nears.push(&member.loose);
        }
        for (old, operand) in words.map(|(a, b)| (a & mask(width), b & mask(width))) {
            for compare in [old, old ^ 1] {
                for (fetched, local) in nears
                    .iter()
                    .flat_map(|local| [(true, local), (false, local)])
                {
                    if fetched && !yields(op) {
                        continue;
                    }
                    // The last word of the region at times, else one at an odd multiple of itself.
                    let last = remote.len() - bytes;
                    let at = if operand == 1 { last } else { 64 + bytes };
                    let after = bytes.min(last - at);
                    remote.set(at - bytes, 2 * bytes + after, 0xee);
                    store(remote, at, width, old);
                    local.set(0, 24, 0xee);
                    let fetch = fetched.then(|| local.buffer(8, bytes));
                    let op_posted = atomic(op, width, at, operand, compare, fetch);
                    lanes.perform(PE0, PE1, &[op_posted])?;
                    let what = format!("{op}{width} of {old:#x} by {operand:#x}, {compare:#x}");
                    let (want, new) = (
                        model(op, width, old, operand, compare),
                        load(remote, at, width),
                    );
                    if new != want {
                        return Err(format!("{what} left {new:#x}, not {want:#x}"));
                    }
                    let beside = |e| format!("{what}: beside the word: {e}");
                    remote.expect_set(at - bytes, bytes, 0xee).map_err(beside)?;
                    remote.expect_set(at + bytes, after, 0xee).map_err(beside)?;
                    let beside = |e| format!("{what}: beside the fetched word: {e}");
                    local.expect_set(0, 8, 0xee).map_err(beside)?;
                    local
                        .expect_set(8 + bytes, 16 - bytes, 0xee)
                        .map_err(beside)?;
                    let got = load(local, 8, width);
                    if fetched && got != old {
                        return Err(format!("{what} fetched {got:#x}"));
                    }
                    if !fetched && got != 0xeeee_eeee_eeee_eeee & mask(width) {
                        return Err(format!("{what} wrote an old value that was not wanted"));
                    }
                }
            }
        }
    }
    Ok(Done::Tried)
}

/// An undeclared atomic is Unsupported and changes nothing.
pub(super) fn undeclared(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let remote = &world.member(PE1).target;
    let mut tried = false;
    for (op, width) in every() {
        if world.capabilities.atomics.level(op, width) != AtomicLevel::None {
            continue;
        }
        tried = true;
        remote.store(0, 1);
        let posted = atomic(op, width, 0, 6, 1, None);
        lanes.refused(PE0, PE1, posted, "Unsupported", |e| {
            matches!(e, Error::Unsupported { .. })
        })?;
        lanes.place(PE0, PE1)?;
        if remote.load(0) != 1 {
            return Err(format!("{op}{width} was refused, and done"));
        }
    }
    Ok(if tried {
        Done::Tried
    } else {
        Done::Free("all atomics are declared")
    })
}

/// Misaligned words are Misaligned, words outside the region OutOfRange.
pub(super) fn misplaced(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let region = world.member(PE1).target.len();
    if declared(&world).next().is_none() {
        return Ok(Done::Free("no atomic is declared"));
    }
    for (op, width) in declared(&world) {
        let bytes = width.bytes() as u64;
        for at in [1, 2, bytes - 1, 64 + bytes / 2] {
            let posted = atomic(op, width, at, 1, 0, None);
            lanes.refused(PE0, PE1, posted, "Misaligned", |e| {
                matches!(e, Error::Misaligned { .. })
            })?;
        }
        for at in [region, region + bytes, 1 << 40, u64::MAX - (bytes - 1)] {
            let posted = atomic(op, width, at, 1, 0, None);
            lanes.refused(PE0, PE1, posted, "OutOfRange", |e| {
                matches!(e, Error::OutOfRange { .. })
            })?;
        }
    }
    Ok(Done::Tried)
}

/// Operations of each participant in the exclusivity check.
const ROUNDS: u64 = 2000;

/// The function by which one participant performs an atomic on the contended word: operand, compare → old value.
type Apply<'a> = Box<dyn FnMut(AtomicOp, u64, u64) -> Found<u64> + Send + 'a>;

/// No update is lost between two PEs' lanes, nor, at the CPU's level, against CPU instructions.
pub(super) fn exclusive(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    let mut tried = false;
    for (op, width) in declared(&world) {
        let also = if op == AtomicOp::Or {
            AtomicOp::And
        } else {
            op
        };
        let level = world.capabilities.atomics.level(op, width);
        // Set, fetch and a lone and leave no trace of others' updates to check.
        let traceless = matches!(op, AtomicOp::Set | AtomicOp::Fetch | AtomicOp::And);
        if traceless || world.capabilities.atomics.level(also, width) != level {
            continue;
        }
        tried = true;
        contend(&world, op, width, level).map_err(|e| format!("{op}{width}: {e}"))?;
    }
    Ok(if tried {
        Done::Tried
    } else {
        Done::Free("no read-modify-write is declared")
    })
}

fn contend(world: &World<'_>, op: AtomicOp, width: Width, level: AtomicLevel) -> Found<()> {
    let remote = &world.member(PE1).target;
    remote.store(0, 0);
    let mut parts: Vec<Apply<'_>> = Vec::new();
    // A target that must help is driven here; else it takes part itself.
    let mut helper = None;
    for (pe, lanes) in world.lanes()?.split() {
        if pe == PE1 && !world.capabilities.passive_target {
            helper = Some(lanes);
        } else {
            parts.push(by_lane(world, pe, lanes, width));
        }
    }
    if level == AtomicLevel::Cpu && remote.is_host() {
        parts.push(by_cpu(remote, width));
    }
    let count = parts.len() as u64;
    let start = Barrier::new(parts.len());
    let sums = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(parts)
            .map(|(number, mut apply)| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    take_part(op, number, &mut apply)
                })
            })
            .collect();
        while let Some(lanes) = &mut helper
            && !threads.iter().all(|thread| thread.is_finished())
        {
            lanes.drive(PE1)?;
            std::thread::yield_now();
        }
        let ends = threads.into_iter().map(|thread| {
            thread
                .join()
                .map_err(|_| "a call panicked; none may".to_string())?
        });
        ends.collect::<Found<Vec<u64>>>()
    })?;
    let end = load(remote, 0, width);
    let (want, what) = match op {
        AtomicOp::Add | AtomicOp::CompareSwap => (count * ROUNDS, "increments"),
        // Each puts in as much as it takes out, except for the value that stays.
        AtomicOp::Swap => {
            let kept = sums.iter().fold(0u64, |all, sum| all.wrapping_add(*sum)) & mask(width);
            (kept, "the value that was put in and not taken out")
        }
        AtomicOp::Xor => (
            (1 << count) - 1,
            "each one's bit, turned an odd number of times",
        ),
        _ => (0, "each one's bit, cleared last"),
    };
    if end != want {
        return Err(format!("ends with {end:#x}, not {want:#x}: {what}"));
    }
    Ok(())
}

/// One participant's operations. Gives, for swap, the sum of the values put in less the sum of those taken out.
fn take_part(op: AtomicOp, number: u64, apply: &mut Apply<'_>) -> Found<u64> {
    let (mut known, mut balance) = (0, 0u64);
    let bit = 1 << number;
    let odd = if op == AtomicOp::Xor {
        ROUNDS | 1
    } else {
        ROUNDS & !1
    };
    match op {
        AtomicOp::Xor | AtomicOp::Or => {
            for round in 0..odd {
                let up = round % 2 == 0;
                let old = match (op, up) {
                    (AtomicOp::Xor, _) => apply(op, bit, 0)?,
                    (_, true) => apply(AtomicOp::Or, bit, 0)?,
                    (_, false) => apply(AtomicOp::And, !bit, 0)?,
                };
                if (old & bit != 0) == up {
                    return Err(format!(
                        "round {round}: another's update undid bit {number}"
                    ));
                }
            }
        }
        AtomicOp::CompareSwap => {
            for _ in 0..ROUNDS {
                loop {
                    let old = apply(op, known + 1, known)?;
                    if old == known {
                        known += 1;
                        break;
                    }
                    known = old;
                }
            }
        }
        _ => {
            for round in 0..ROUNDS {
                let operand = if op == AtomicOp::Add {
                    1
                } else {
                    (number << 20) + round + 1
                };
                let old = apply(op, operand, 0)?;
                if op == AtomicOp::Add && round > 0 && old <= known {
                    return Err(format!("fetched {known}, then {old}"));
                }
                known = old;
                balance = balance.wrapping_add(operand).wrapping_sub(old);
            }
        }
    }
    Ok(balance)
}

fn by_lane<'a>(world: &'a World<'_>, pe: Pe, mut lanes: Lanes<'a>, width: Width) -> Apply<'a> {
    let local = &world.member(pe).local;
    Box::new(move |op, operand, compare| {
        let fetch = Some(local.buffer(0, width.bytes() as u64));
        let on: Remote = to(0);
        let operand = operand & mask(width);
        let posted = Op::Atomic {
            op,
            width,
            on,
            operand,
            compare,
            fetch,
        };
        lanes.post_all(pe, PE1, &[posted])?;
        lanes.complete(pe, PE1)?;
        Ok(load(local, 0, width))
    })
}

fn by_cpu(remote: &Area, width: Width) -> Apply<'_> {
    let order = Ordering::SeqCst;
    Box::new(move |op, operand, compare| {
        let old = match width {
            Width::W32 => remote
                .half(0)
                .fetch_update(order, order, |old| {
                    Some(model(op, width, old.into(), operand, compare) as u32)
                })
                .map(u64::from)
                .map_err(u64::from),
            Width::W64 => remote.word(0).fetch_update(order, order, |old| {
                Some(model(op, width, old, operand, compare))
            }),
        };
        Ok(old.unwrap_or_else(|old| old))
    })
}
