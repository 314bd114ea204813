//! Checks of the declared orders.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::atomics::{atomic, declared, model, yields};
use super::harness::Harness;
use super::lanes::{Lanes, Patience, get, put};
use super::report::{Done, Found};
use super::world::{PE0, PE1, World, to};
use crate::capabilities::{Limits, SignalSupport};
use crate::op::{AtomicOp, Op, SignalOp, Width};

/// The number of rounds of a check by a concurrent reader.
const ROUNDS: u64 = 500;

/// Round `k`'s content of a word: alike in its quarters, so that a word of two rounds is seen.
pub(super) const STAMP: u64 = 0x0001_0001_0001_0001;

fn whole(word: u64) -> bool {
    word == (word & 0xffff) * STAMP
}

/// Runs `round` with stamps 1, 2, … while a reader polls PE 1's target: the data from 0 on and
/// the flag behind it. Each round leaves data and flag at its stamp. Whenever the reader has seen a
/// flag, the data that it reads next must be whole words, none older than the flag.
pub(super) fn watch(
    world: &World<'_>,
    data: u64,
    flag: u64,
    mut round: impl FnMut(u64) -> Found<()>,
) -> Found<()> {
    let target = &world.member(PE1).target;
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    // All of little data; of much, some 128 words and the last, where a copy ends.
    let step = (data / 128).next_multiple_of(8).max(8);
    let last = data.saturating_sub(8) / 8 * 8;
    let reader = || -> Found<()> {
        let mut idle = 0;
        while !stop.load(Ordering::Relaxed) {
            let announced = target.load(flag);
            let news = announced != seen.load(Ordering::Relaxed);
            if !whole(announced) {
                return Err(format!("the flag is {announced:#x}: words of two rounds"));
            }
            let end = (data >= 8).then(|| (last, target.load(last)));
            let words = target.words(data / 8 * 8, step).into_iter().chain(end);
            for (at, word) in words {
                if !whole(word) {
                    return Err(format!("the word at {at} is {word:#x}: of two rounds"));
                }
                if word < announced {
                    return Err(format!(
                        "flag of round {}, but the word at {at} of round {}",
                        announced / STAMP,
                        word / STAMP
                    ));
                }
            }
            seen.store(announced, Ordering::Relaxed);
            idle = if news { 0 } else { idle + 1 };
            if idle > 100 {
                std::thread::yield_now();
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(reader);
        let mut writer = || -> Found<()> {
            for k in 1..=ROUNDS {
                round(k * STAMP).map_err(|e| format!("round {k}: {e}"))?;
                // Only once the reader has caught up, so that it polls during each round.
                let mut patience = Patience::new(world.deadline());
                while seen.load(Ordering::Relaxed) != k * STAMP && !reader.is_finished() {
                    patience.round(|| {
                        format!("the flag of round {k} was placed, but is not to be seen")
                    })?;
                }
            }
            Ok(())
        };
        let written = writer();
        stop.store(true, Ordering::Relaxed);
        let read = reader
            .join()
            .map_err(|_| "the suite's reader panicked".to_string())?;
        read.and(written)
    })
}

/// Of two puts to one address the later stays, and a flag put after data is not seen before it.
pub(super) fn put_put(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if !world.guarantees.put_put {
        return Ok(Done::Free("put after put is not promised"));
    }
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let long = ordered(world.capabilities.put, 4096);
    local.set(0, long, 1);
    local.set(8192, 8, 2);
    for _ in 0..20 {
        let both = [
            put(local.buffer(0, long), to(0)),
            put(local.buffer(8192, 8), to(long - 8)),
        ];
        lanes.perform(PE0, PE1, &both)?;
        remote
            .expect_set(long - 8, 8, 2)
            .map_err(|e| format!("short put after long: {e}"))?;
        lanes.perform(PE0, PE1, &[both[1], both[0]])?;
        remote
            .expect_set(0, long, 1)
            .map_err(|e| format!("long put after short: {e}"))?;
    }
    for k in 0..64 {
        local.store(8 * k, k + 1);
    }
    let many: Vec<Op> = (0..64)
        .map(|k| put(local.buffer(8 * k, 8), to(0)))
        .collect();
    lanes.perform(PE0, PE1, &many)?;
    if remote.load(0) != 64 {
        return Err(format!(
            "of 64 puts to one word the last is not the {}th",
            remote.load(0)
        ));
    }

    for with_signal in [false, true] {
        let native = world.capabilities.put_signal != SignalSupport::None;
        if with_signal && !native {
            continue;
        }
        remote.set(0, 32 << 10, 0);
        let data = long.min(1024);
        watch(&world, data, data, |stamp| {
            local.store_words(data, stamp);
            let flag = if with_signal {
                Op::PutSignal {
                    from: local.buffer(0, 0),
                    to: to(0),
                    signal: to(data),
                    op: SignalOp::Set,
                    value: stamp,
                }
            } else {
                put(local.buffer(0, 8), to(data))
            };
            lanes.perform(PE0, PE1, &[put(local.buffer(0, data), to(0)), flag])
        })?;
    }
    Ok(Done::Tried)
}

/// A flag put after a fence is not seen before the data put before it, nor before those of an earlier round; neither is
/// one behind a second put.
pub(super) fn put_fence_put(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if !world.guarantees.put_fence_put {
        return Ok(Done::Free("put after put and fence is not promised"));
    }
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let data = ordered(world.capabilities.put, 1024);
    // The flush between rounds ends a fence; without one between, it lasts.
    for between in [0, 3] {
        remote.set(0, 32 << 10, 0);
        watch(&world, data, data, |stamp| {
            local.store_words(data, stamp);
            let flag = put(local.buffer(0, 8), to(data));
            lanes.post_all(PE0, PE1, &[put(local.buffer(0, data), to(0))])?;
            lanes.of(PE0).fence(PE1)?;
            // Puts in between do not end the fence.
            let other = put(local.buffer(0, 8), to(16 << 10));
            for _ in 0..between {
                lanes.post_all(PE0, PE1, &[other])?;
            }
            lanes.perform(PE0, PE1, &[flag])
        })?;
    }
    Ok(Done::Tried)
}

/// The most bytes, in whole words and up to `most`, of an operation that keeps its order.
fn ordered(limits: Limits, most: u64) -> u64 {
    limits.max.min(limits.ordered).min(most) / 8 * 8
}

/// A flush comes after operations of any length, in whatever parts they went, and before what is posted when it has
/// completed: of two long puts to one place the later stays, and a get reads what they wrote.
pub(super) fn long_operations_are_flushed(harness: &dyn Harness) -> Found {
    let world = World::new(harness, 2, 1 << 20)?;
    let (puts, gets) = (world.capabilities.put, world.capabilities.get);
    if puts.ordered == u64::MAX && gets.ordered == u64::MAX {
        return Ok(Done::Free("operations of every length keep their order"));
    }
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let most = puts.max.min(gets.max).min(300_000);
    let just_long = puts.ordered.min(gets.ordered).saturating_add(1).min(most);
    for size in [just_long, most / 3, most] {
        for round in 0..10 {
            let (old, new) = (2 * round, 2 * round + 1);
            // Away from the start of a word, so that no part begins with one.
            let at = 3 * u64::from(round % 2 == 1);
            for byte in [old, new] {
                local.fill(0, size, byte);
                // A short one before and after it goes another way.
                let around = put(local.buffer(0, 8), to(600_000));
                let all = [around, put(local.buffer(0, size), to(at)), around];
                lanes.perform(PE0, PE1, &all)?;
                remote
                    .expect_filled(at, size, byte)
                    .map_err(|e| format!("{size} bytes put and flushed: {e}"))?;
            }
            let into = 600_000;
            local.set(into, size, 0xee);
            lanes.perform(PE0, PE1, &[get(local.buffer(into, size), to(at))])?;
            local
                .expect_filled(into, size, new)
                .map_err(|e| format!("{size} bytes got: {e}"))?;
        }
    }
    Ok(Done::Tried)
}

fn some_atomic(world: &World<'_>) -> Vec<(AtomicOp, Width)> {
    declared(world)
        .filter(|(op, _)| *op != AtomicOp::Fetch)
        .collect()
}

const PLACES: u64 = 32;

/// An atomic operates on the value that the put before it wrote, and is not seen before that put's data.
pub(super) fn put_atomic(harness: &dyn Harness) -> Found {
    let done = mixed(
        harness,
        |world| world.guarantees.put_atomic,
        "atomic after put is not promised",
        true,
    )?;
    if !matches!(done, Done::Tried) {
        return Ok(done);
    }
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let data = ordered(world.capabilities.put, 1024);
    let flags =
        declared(&world).filter(|flag| matches!(flag, (AtomicOp::Set | AtomicOp::Add, Width::W64)));
    for (op, width) in flags {
        remote.set(0, 2048, 0);
        watch(&world, data, data, |stamp| {
            local.store_words(data, stamp);
            let operand = if op == AtomicOp::Add { STAMP } else { stamp };
            let flag = atomic(op, width, data, operand, 0, None);
            lanes.perform(PE0, PE1, &[put(local.buffer(0, data), to(0)), flag])
        })
        .map_err(|e| format!("{op} after put: {e}"))?;
    }
    Ok(Done::Tried)
}

/// A put overwrites what the atomic before it wrote.
pub(super) fn atomic_put(harness: &dyn Harness) -> Found {
    mixed(
        harness,
        |world| world.guarantees.atomic_put,
        "put after atomic is not promised",
        false,
    )
}

fn mixed(
    harness: &dyn Harness,
    promised: impl Fn(&World<'_>) -> bool,
    otherwise: &'static str,
    put_first: bool,
) -> Found {
    let world = World::small(harness, 2)?;
    if !promised(&world) {
        return Ok(Done::Free(otherwise));
    }
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    for (op, width) in declared(&world) {
        remote.set(0, 8 * PLACES, 0);
        local.set(0, 16 * PLACES, 0);
        let mut batch = Vec::new();
        for k in 0..PLACES {
            local.store(8 * k, k + 100);
            let write = put(local.buffer(8 * k, 8), to(8 * k));
            let fetch = || local.buffer(8 * (PLACES + k), width.bytes() as u64);
            let change = atomic(op, width, 8 * k, 3, k + 100, yields(op).then(fetch));
            batch.extend(if put_first {
                [write, change]
            } else {
                [change, write]
            });
        }
        lanes.perform(PE0, PE1, &batch)?;
        for k in 0..PLACES {
            let (old, new) = if put_first {
                (k + 100, model(op, width, k + 100, 3, k + 100))
            } else {
                (0, k + 100)
            };
            let (got_old, got_new) = (local.load(8 * (PLACES + k)), remote.load(8 * k));
            let old = if yields(op) { old } else { 0 };
            if (got_old, got_new) != (old, new) {
                return Err(format!(
                    "{op}{width}: fetched {got_old} and left {got_new}, not {old} and {new}"
                ));
            }
        }
    }
    Ok(Done::Tried)
}

/// Atomics of one lane on one word happen in the order posted.
pub(super) fn atomic_atomic(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if !world.guarantees.atomic_atomic {
        return Ok(Done::Free("atomic after atomic is not promised"));
    }
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let ops = some_atomic(&world);
    if ops.is_empty() {
        return Ok(Done::Free("no atomic that changes a word"));
    }
    for width in Width::ALL {
        let ops: Vec<AtomicOp> = ops
            .iter()
            .filter(|(_, w)| *w == width)
            .map(|(op, _)| *op)
            .collect();
        remote.set(0, 8, 0);
        local.set(0, 8 * 64, 0);
        let (mut value, mut batch, mut olds) = (0, Vec::new(), Vec::new());
        for (k, &op) in (0..64).zip(ops.iter().cycle()) {
            // Operands differ, so that no two orders fetch alike.
            let operand = (k + 1) * 0x0101;
            let fetch = || local.buffer(8 * k, width.bytes() as u64);
            batch.push(atomic(op, width, 0, operand, value, yields(op).then(fetch)));
            olds.push(if yields(op) { value } else { 0 });
            value = model(op, width, value, operand, value);
        }
        lanes.perform(PE0, PE1, &batch)?;
        for (k, old) in (0..).zip(olds) {
            let got = local.load(8 * k);
            if got != old {
                return Err(format!(
                    "atomic {k} at width {width} fetched {got}, not {old}"
                ));
            }
        }
        if remote.load(0) != value {
            return Err(format!(
                "width {width} ends with {}, not {value}",
                remote.load(0)
            ));
        }
    }
    Ok(Done::Tried)
}

/// A get reads the data that the put before it wrote.
pub(super) fn put_get(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if !world.guarantees.put_get {
        return Ok(Done::Free("get after put is not promised"));
    }
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    let (puts, gets) = (world.capabilities.put, world.capabilities.get);
    let most = ordered(puts, 4096).min(ordered(gets, 4096));
    for size in [8, most.min(64), most] {
        for round in 0..20 {
            local.fill(0, size, round);
            local.set(8192, size, 0xee);
            let batch = [
                put(local.buffer(0, size), to(0)),
                get(local.buffer(8192, size), to(0)),
            ];
            lanes.perform(PE0, PE1, &batch)?;
            local
                .expect_filled(8192, size, round)
                .map_err(|e| format!("{size} bytes got after put: {e}"))?;
        }
    }
    Ok(Done::Tried)
}

/// Gets, and fetches, of one lane read in the order posted, while the target changes the words.
pub(super) fn get_get(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    if !world.guarantees.get_get {
        return Ok(Done::Free("get after get is not promised"));
    }
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let fetches = declared(&world).any(|op| op == (AtomicOp::Fetch, Width::W64));
    // A long get between the two leaves the target time to change the words.
    let between = world.capabilities.get.max.min(16 << 10);
    let read = |lanes: &mut Lanes<'_>, fetched: bool| -> Found<()> {
        let from = |into, at| {
            if fetched {
                atomic(
                    AtomicOp::Fetch,
                    Width::W64,
                    at,
                    0,
                    0,
                    Some(local.buffer(into, 8)),
                )
            } else {
                get(local.buffer(into, 8), to(at))
            }
        };
        // The target writes word 0, then word 64, always one more: read the other way round,
        // word 64 is never ahead.
        let filler = get(local.buffer(8192, between), to(8192));
        lanes.post_all(PE0, PE1, &[from(64, 64), filler, from(0, 0)])?;
        lanes.complete(PE0, PE1)?;
        let (first, second) = (local.load(64), local.load(0));
        if second >= first {
            Ok(())
        } else {
            Err(format!(
                "read {first}, then {second}, which was written before it"
            ))
        }
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for k in 1.. {
                remote.store(0, k);
                remote.store(64, k);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                if k % 1024 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let mut all = || -> Found<()> {
            let mut changes = 0;
            for _ in 0..20 * ROUNDS {
                let before = remote.load(64);
                read(&mut lanes, fetches && changes % 2 == 1)?;
                // Only reads during which the target changes the words can show a broken order.
                if remote.load(64) != before {
                    changes += 1
                } else {
                    std::thread::yield_now()
                }
                if changes == 2 * ROUNDS {
                    break;
                }
            }
            Ok(())
        };
        let found = all();
        stop.store(true, Ordering::Relaxed);
        found
    })?;
    Ok(Done::Tried)
}

/// Operations posted on one lane after another lane's post are ordered after it, even if the second lane is
/// driven first.
pub(super) fn across_lanes(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let promised = world.guarantees;
    if !promised.across_lanes {
        return Ok(Done::Free("order across lanes is not promised"));
    }
    let (mut one, mut other) = (world.lanes()?, world.lanes()?);
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let mut tried = false;
    for round in 0..50u64 {
        let mut both = |first: Op, second: Op| -> Found<()> {
            tried = true;
            one.post_all(PE0, PE1, &[first])?;
            other.post_all(PE0, PE1, &[second])?;
            other.place(PE0, PE1)?;
            one.place(PE0, PE1)
        };
        local.store(0, 2 * round + 1);
        local.store(8, 2 * round + 2);
        let write = |at| put(local.buffer(at, 8), to(0));
        let expect = |what: &str, got: u64, want: u64| {
            if got == want {
                Ok(())
            } else {
                Err(format!("{what}: {got}, not {want}"))
            }
        };
        if promised.put_put {
            both(write(0), write(8))?;
            expect(
                "put after another lane's put",
                remote.load(0),
                2 * round + 2,
            )?;
        }
        if promised.put_get {
            both(write(0), get(local.buffer(64, 8), to(0)))?;
            expect(
                "get after another lane's put",
                local.load(64),
                2 * round + 1,
            )?;
        }
        for (op, width) in declared(&world) {
            let change = |operand, compare| atomic(op, width, 0, operand, compare, None);
            if promised.put_atomic {
                both(write(0), change(5, 2 * round + 1))?;
                let want = model(op, width, 2 * round + 1, 5, 2 * round + 1);
                expect("atomic after another lane's put", remote.load(0), want)?;
            }
            if promised.atomic_put {
                both(change(5, 0), write(8))?;
                expect(
                    "put after another lane's atomic",
                    remote.load(0),
                    2 * round + 2,
                )?;
            }
            if promised.atomic_atomic && op != AtomicOp::Fetch {
                remote.store(0, 0);
                both(change(3, 0), change(6, model(op, width, 0, 3, 0)))?;
                let first = model(op, width, 0, 3, 0);
                let want = model(op, width, first, 6, first);
                expect("atomic after another lane's atomic", remote.load(0), want)?;
            }
        }
    }
    Ok(if tried {
        Done::Tried
    } else {
        Done::Free("no order is promised on one lane")
    })
}
