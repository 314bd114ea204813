//! Checks of puts and gets.

use super::area::Area;
use super::harness::Harness;
use super::lanes::{get as get_op, put as put_op};
use super::order::watch;
use super::report::{Done, Found};
use super::world::{PE0, PE1, TARGET, World, to};
use crate::capabilities::Limits;
use crate::error::Error;
use crate::memory::{MemoryKind, RegionId};
use crate::op::{AtomicOp, Local, Op, Remote, Width};
use crate::pe::Pe;
use crate::traits::Counters;

/// Sizes that transports tell apart: none, single words, odd ones, around pages and powers of two,
/// around the limits, and the largest.
fn sizes(limits: Limits, largest: u64) -> Vec<u64> {
    let most = limits.max.min(largest);
    let mut sizes: Vec<u64> = (0..=17).collect();
    for around in [
        32,
        64,
        128,
        256,
        512,
        1024,
        4096,
        65536,
        limits.inline,
        limits.unregistered,
    ] {
        sizes.extend([around.saturating_sub(1), around, around.saturating_add(1)]);
    }
    sizes.extend([1000, most - 1, most]);
    sizes.retain(|&size| size <= most);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Guard bytes before and after a range, and their content.
const GUARD: u64 = 16;
const QUIET: u8 = 0xee;

/// The pairs of offsets tried with one size: all combinations where that is cheap.
fn offsets(size: u64, align: u64) -> Vec<(u64, u64)> {
    let base = GUARD.next_multiple_of(align);
    if size > 4200 {
        return vec![(base, base), (base + 3 * align, base + align)];
    }
    let mut all = Vec::new();
    for remote in [0, 1, 3, 4, 7] {
        all.extend([0, 1, 5, 8].map(|local| (base + remote * align, base + local * align)));
    }
    all
}

/// Room for the largest transfer, its guards and the spread of offsets.
fn room(limits: Limits, largest: u64) -> u64 {
    (limits.max.min(largest) + 16 * limits.align + 4 * GUARD).next_multiple_of(4096)
}

/// Puts between all pairs, themselves included, arrive at the right PE.
pub(super) fn pairs(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 3)?;
    let mut lanes = world.lanes()?;
    let place = |from: Pe| to(64 * u64::from(from.0));
    for from in (0..3).map(Pe) {
        for pe in (0..3).map(Pe) {
            let local = &world.member(from).local;
            local.fill(64 * u64::from(pe.0), 64, (from.0 * 3 + pe.0) as u8);
            let source = local.buffer(64 * u64::from(pe.0), 64);
            lanes.perform(from, pe, &[put_op(source, place(from))])?;
        }
    }
    for from in (0..3).map(Pe) {
        for pe in (0..3).map(Pe) {
            let seed = (from.0 * 3 + pe.0) as u8;
            let told = |e| format!("put from PE {from} to {pe}: {e}");
            world
                .member(pe)
                .target
                .expect_filled(place(from).offset, 64, seed)
                .map_err(told)?;
            let local = &world.member(from).local;
            lanes.perform(from, pe, &[get_op(local.buffer(1024, 64), place(from))])?;
            local
                .expect_filled(1024, 64, seed)
                .map_err(|e| format!("get by PE {from} from {pe}: {e}"))?;
        }
    }
    Ok(Done::Tried)
}

/// Exactly the named bytes are written, at every size and alignment.
pub(super) fn put(harness: &dyn Harness) -> Found {
    moves(harness, Direction::Put)
}

/// As for put.
pub(super) fn get(harness: &dyn Harness) -> Found {
    moves(harness, Direction::Get)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    Put,
    Get,
}

impl Direction {
    const BOTH: [Direction; 2] = [Direction::Put, Direction::Get];

    fn limits(self, world: &World<'_>) -> Limits {
        match self {
            Direction::Put => world.capabilities.put,
            Direction::Get => world.capabilities.get,
        }
    }

    fn op(self, local: Local, remote: Remote) -> Op {
        match self {
            Direction::Put => put_op(local, remote),
            Direction::Get => get_op(local, remote),
        }
    }
}

/// A world whose areas have room for the larger of both directions.
fn world_of(harness: &dyn Harness) -> Found<World<'_>> {
    let domain = super::world::open(harness, PE0, 1)?;
    let capabilities = domain.capabilities();
    let largest = harness.largest();
    let bytes = room(capabilities.put, largest).max(room(capabilities.get, largest));
    World::new(harness, 2, bytes)
}

fn moves(harness: &dyn Harness, direction: Direction) -> Found {
    let world = world_of(harness)?;
    let mut lanes = world.lanes()?;
    let limits = direction.limits(&world);
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let (source, sink) = match direction {
        Direction::Put => (local, remote),
        Direction::Get => (remote, local),
    };
    for (round, size) in sizes(limits, harness.largest()).into_iter().enumerate() {
        for (far_at, near_at) in offsets(size, limits.align) {
            let (from, into) = match direction {
                Direction::Put => (near_at, far_at),
                Direction::Get => (far_at, near_at),
            };
            let seed = round as u8;
            source.fill(from, size, seed);
            sink.set(into - GUARD, size + 2 * GUARD, QUIET);
            lanes.perform(
                PE0,
                PE1,
                &[direction.op(local.buffer(near_at, size), to(far_at))],
            )?;
            let told = |part: &str, e| {
                format!("{size} bytes, remote offset {far_at}, local {near_at}: {part}: {e}")
            };
            sink.expect_filled(into, size, seed)
                .map_err(|e| told("data", e))?;
            sink.expect_set(into - GUARD, GUARD, QUIET)
                .map_err(|e| told("before it", e))?;
            sink.expect_set(into + size, GUARD, QUIET)
                .map_err(|e| told("after it", e))?;
            source
                .expect_filled(from, size, seed)
                .map_err(|e| told("the source", e))?;
        }
    }
    Ok(Done::Tried)
}

/// Local memory without a key is accepted up to the limit and refused above it.
pub(super) fn unregistered(harness: &dyn Harness) -> Found {
    let world = world_of(harness)?;
    let mut lanes = world.lanes()?;
    let (loose, remote) = (&world.member(PE0).loose, &world.member(PE1).target);
    let align = world
        .capabilities
        .put
        .align
        .max(world.capabilities.get.align);
    for direction in Direction::BOTH {
        let limits = direction.limits(&world);
        let most = limits.unregistered.min(harness.largest());
        let mut sizes = vec![1, 8, 13, most / 2, most];
        sizes.retain(|&size| size > 0 && size <= most);
        for size in sizes {
            let (source, sink) = match direction {
                Direction::Put => (loose, remote),
                Direction::Get => (remote, loose),
            };
            sink.set(align, size, QUIET);
            source.fill(align, size, 5);
            lanes.perform(
                PE0,
                PE1,
                &[direction.op(loose.buffer(align, size), to(align))],
            )?;
            sink.expect_filled(align, size, 5)
                .map_err(|e| format!("{direction:?} of {size} unregistered bytes: {e}"))?;
        }
        if limits.unregistered < limits.max.min(harness.largest()) {
            let op = direction.op(loose.buffer(0, limits.unregistered + 1), to(0));
            lanes.refused(PE0, PE1, op, "Unsupported", |e| {
                matches!(e, Error::Unsupported { .. })
            })?;
        }
    }
    Ok(Done::Tried)
}

/// Memory registered for the local side alone, outside every region, is sent from and fetched into.
pub(super) fn registered(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let domain = &world.member(PE0).domain;
    let mut kinds = vec![MemoryKind::Host, harness.kind()];
    kinds.dedup();
    let mut tried = false;
    for kind in kinds {
        let memory = harness.memory(PE0, kind, 16 << 10)?;
        // SAFETY: `local` below keeps the memory, and ends after the registration.
        let local = unsafe { domain.register_local(memory.base().as_ptr(), memory.len(), true) };
        let local = match local {
            Ok(local) => local,
            Err(Error::Unsupported { .. }) => continue,
            Err(error) => return Err(format!("register_local of {kind} memory: {error}")),
        };
        tried = true;
        let contents = match kind {
            MemoryKind::Host => None,
            MemoryKind::Cuda => Some(harness.contents(PE0, &memory)?),
        };
        let local = Area::new(memory, Some(local.key()), contents);
        let mut lanes = world.lanes()?;
        let remote = &world.member(PE1).target;
        for direction in Direction::BOTH {
            let limits = direction.limits(&world);
            for size in [8, 100, 8192].map(|size: u64| size.min(limits.max)) {
                let (source, sink) = match direction {
                    Direction::Put => (&local, remote),
                    Direction::Get => (remote, &local),
                };
                let at = 4096_u64.next_multiple_of(limits.align);
                source.fill(at, size, 11);
                sink.set(at, size, QUIET);
                lanes.perform(PE0, PE1, &[direction.op(local.buffer(at, size), to(at))])?;
                sink.expect_filled(at, size, 11)
                    .map_err(|e| format!("{direction:?} of {size} bytes of {kind} memory: {e}"))?;
            }
        }
        drop(lanes);
        drop(local);
    }
    Ok(if tried {
        Done::Tried
    } else {
        Done::Free("no memory is registered for the local side alone")
    })
}

/// A source up to the inline limit is overwritten at once, and the old content arrives.
pub(super) fn inline(harness: &dyn Harness) -> Found {
    let world = world_of(harness)?;
    let limits = world.capabilities.put;
    if limits.inline == 0 {
        return Ok(Done::Free("no inline limit"));
    }
    let mut lanes = world.lanes()?;
    let remote = &world.member(PE1).target;
    for size in [1, 8, limits.inline.min(harness.largest())] {
        if size > limits.inline {
            continue;
        }
        let mut sources = Vec::new();
        // Bytes on a GPU are read there.
        if world.member(PE0).local.is_host() {
            sources.push(&world.member(PE0).local);
        }
        if size <= limits.unregistered {
            sources.push(&world.member(PE0).loose);
        }
        for source in sources {
            source.fill(0, size, 7);
            lanes.post_all(PE0, PE1, &[put_op(source.buffer(0, size), to(0))])?;
            source.set(0, size, QUIET);
            lanes.place(PE0, PE1)?;
            remote
                .expect_filled(0, size, 7)
                .map_err(|e| format!("{size} bytes, overwritten after post: {e}"))?;
        }
    }
    Ok(Done::Tried)
}

/// A source may change, and a destination has its data, once the lane counts the operation as reusable.
pub(super) fn reusable(harness: &dyn Harness) -> Found {
    let world = world_of(harness)?;
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    for direction in Direction::BOTH {
        let most = direction.limits(&world).max.min(harness.largest());
        let (source, sink) = match direction {
            Direction::Put => (local, remote),
            Direction::Get => (remote, local),
        };
        let mut sizes = vec![8, 4096, 100_000, most];
        sizes.retain(|&size| size <= most);
        for (round, size) in (0..3).flat_map(|_| sizes.clone()).enumerate() {
            let seed = round as u8;
            source.fill(0, size, seed);
            sink.set(0, size, QUIET);
            lanes.post_all(PE0, PE1, &[direction.op(local.buffer(0, size), to(0))])?;
            lanes.reuse(PE0, PE1)?;
            if direction == Direction::Put {
                local.set(0, size, QUIET);
                lanes.place(PE0, PE1)?;
            }
            sink.expect_filled(0, size, seed)
                .map_err(|e| format!("{direction:?} of {size} bytes, counted as reusable: {e}"))?;
        }
    }
    Ok(Done::Tried)
}

/// One byte more than the largest size is Unsupported.
pub(super) fn too_long(harness: &dyn Harness) -> Found {
    let world = world_of(harness)?;
    let mut lanes = world.lanes()?;
    let mut tried = false;
    for direction in Direction::BOTH {
        let limits = direction.limits(&world);
        if limits.max > harness.largest() {
            continue;
        }
        tried = true;
        let remote = &world.member(PE1).target;
        remote.set(0, limits.max + 1, QUIET);
        let op = direction.op(world.member(PE0).local.buffer(0, limits.max + 1), to(0));
        lanes.refused(PE0, PE1, op, "Unsupported", |e| {
            matches!(e, Error::Unsupported { .. })
        })?;
        lanes.place(PE0, PE1)?;
        remote
            .expect_set(0, limits.max + 1, QUIET)
            .map_err(|e| format!("a refused {direction:?} wrote: {e}"))?;
    }
    Ok(if tried {
        Done::Tried
    } else {
        Done::Free("the limits exceed Harness::largest")
    })
}

/// Ranges that leave the region, or whose end overflows, are OutOfRange; a misaligned one is
/// Misaligned where an alignment is declared; no byte moves.
pub(super) fn out_of_range(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let (local, remote) = (&world.member(PE0).local, &world.member(PE1).target);
    let region = remote.len();
    remote.set(0, region, QUIET);
    for direction in Direction::BOTH {
        let limits = direction.limits(&world);
        let size = 64
            .min(limits.max)
            .next_multiple_of(limits.align)
            .min(limits.max);
        let last = (region - size) / limits.align * limits.align;
        local.set(0, size, QUIET);
        for inside in [0, last] {
            lanes.perform(PE0, PE1, &[direction.op(local.buffer(0, size), to(inside))])?;
        }
        lanes.perform(PE0, PE1, &[direction.op(local.buffer(0, 0), to(region))])?;
        local.fill(0, size, 9);
        let a = limits.align;
        for outside in [
            last + a,
            region,
            region + a,
            u64::MAX / a * a,
            u64::MAX / 2 / a * a,
        ] {
            let op = direction.op(local.buffer(0, size), to(outside));
            if outside.checked_add(size).is_some_and(|end| end <= region) {
                continue;
            }
            lanes.refused(
                PE0,
                PE1,
                op,
                "OutOfRange",
                |e| matches!(e, Error::OutOfRange { region: told, .. } if *told == region),
            )?;
        }
        let op = direction.op(local.buffer(0, 0), to(region + a));
        lanes.refused(PE0, PE1, op, "OutOfRange", |e| {
            matches!(e, Error::OutOfRange { .. })
        })?;
        if a > 1 {
            let op = direction.op(local.buffer(0, size), to(1));
            lanes.refused(PE0, PE1, op, "Misaligned", |e| {
                matches!(e, Error::Misaligned { .. })
            })?;
        }
        local
            .expect_filled(0, size, 9)
            .map_err(|e| format!("a refused {direction:?}: {e}"))?;
    }
    remote
        .expect_set(0, region, QUIET)
        .map_err(|e| format!("a refused put wrote: {e}"))?;
    Ok(Done::Tried)
}

/// A region that was not imported is UnknownRegion, a PE outside the job is refused, and imported
/// regions work as before.
pub(super) fn unknown(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    // Region 1 exists at every PE, but is imported by none; 2 and the last do not exist.
    for region in [1, 2, u32::MAX].map(RegionId) {
        let remote = Remote { region, offset: 0 };
        for direction in Direction::BOTH {
            let op = direction.op(local.buffer(0, 8), remote);
            lanes.refused(
                PE0,
                PE1,
                op,
                "UnknownRegion",
                |e| matches!(e, Error::UnknownRegion { region: r, pe: PE1, .. } if *r == region.0),
            )?;
        }
        let op = Op::Atomic {
            op: AtomicOp::Add,
            width: Width::W64,
            on: remote,
            operand: 1,
            compare: 0,
            fetch: None,
        };
        lanes.refused(PE0, PE1, op, "UnknownRegion or Unsupported", |e| {
            matches!(e, Error::UnknownRegion { .. } | Error::Unsupported { .. })
        })?;
    }
    for stranger in [2, u32::MAX].map(Pe) {
        for op in [
            put_op(
                local.buffer(0, 8),
                Remote {
                    region: TARGET,
                    offset: 0,
                },
            ),
            Op::Flush,
        ] {
            lanes.refused(
                PE0,
                stranger,
                op,
                "Unreachable",
                |e| matches!(e, Error::Unreachable { pe, .. } if *pe == stranger),
            )?;
        }
        let counters = lanes.of(PE0).lane.counters(stranger);
        if counters != Counters::default() {
            return Err(format!(
                "counters of PE {stranger}, not of this job: {counters:?}"
            ));
        }
    }
    lanes.perform(PE0, PE1, &[put_op(local.buffer(0, 8), to(0))])?;
    Ok(Done::Tried)
}

/// A concurrent reader sees each aligned word of 8 bytes either before or after a put, never half.
pub(super) fn whole_words(harness: &dyn Harness) -> Found {
    let world = World::small(harness, 2)?;
    let size = world.capabilities.put.max.min(1024) / 8 * 8;
    if size == 0 {
        return Ok(Done::Free("puts are shorter than a word"));
    }
    let mut lanes = world.lanes()?;
    let local = &world.member(PE0).local;
    watch(&world, size, size, |k| {
        local.store_words(size, k);
        let data = put_op(local.buffer(0, size), to(0));
        lanes.perform(PE0, PE1, &[data])?;
        // The word behind the data tells the reader that the round is over.
        lanes.perform(PE0, PE1, &[put_op(local.buffer(0, 8), to(size))])
    })?;
    Ok(Done::Tried)
}
