//! The extra validation of `--validate`: a few operations beside the timed ones. Each has its own
//! data and its own place, so that none can stand in for another.

use anyhow::Context;
use oxshmem::{Pod, Result, Sym};

use super::fixture::{Fixture, Footprint, Role, pattern, same};

/// Operations that are issued one right after the other.
pub const SLOTS: usize = 4;
/// Bytes of guard behind each operation's data, at least. They must stay zero.
const GUARD: usize = 64;
/// The alignment of places in bytes: two cache lines.
const APART: usize = 128;

impl Footprint {
    /// The footprint of all slots, each with its guard.
    pub fn of_slots(self) -> Footprint {
        let all = |bytes: usize| match bytes {
            0 => 0,
            bytes => pitch(bytes).saturating_mul(SLOTS),
        };
        Footprint {
            block: all(self.block),
            source: all(self.source),
        }
    }
}

/// The distance in bytes from one slot to the next.
fn pitch(bytes: usize) -> usize {
    let guarded = bytes.saturating_add(GUARD);
    guarded
        .checked_next_multiple_of(APART)
        .unwrap_or(usize::MAX)
}

/// A block of symmetric memory, with its guard.
#[derive(Clone, Copy)]
pub struct Place {
    pub data: Sym<u8>,
    all: Sym<u8>,
}

impl Place {
    /// The block of one operation, by its slot.
    pub fn of(memory: Sym<u8>, bytes: usize, slot: usize) -> Result<Self> {
        let begin = slot * pitch(bytes);
        let all = memory.range(begin..begin + pitch(bytes))?;
        let data = all.range(..bytes)?;
        Ok(Place { data, all })
    }

    /// Fills this PE's copy with the data, and the guard with zeros.
    pub fn fill<T: Pod>(&self, fixture: &Fixture<'_>, data: &[T]) -> Result<()> {
        let mut image = bytemuck::cast_slice::<T, u8>(data).to_vec();
        image.resize(self.all.len(), 0);
        fixture.world.write(self.all, &image)
    }

    /// Checks that this PE's copy holds the data, and zeros behind it.
    pub fn holds<T: Pod>(&self, fixture: &Fixture<'_>, data: &[T]) -> anyhow::Result<()> {
        let mut found = vec![0; self.all.len()];
        fixture.world.read(&mut found, self.all)?;
        guarded(&found, data)
    }
}

/// Checks that these bytes are the data, then zeros.
fn guarded<T: Pod>(found: &[u8], data: &[T]) -> anyhow::Result<()> {
    let mut expected = bytemuck::cast_slice::<T, u8>(data).to_vec();
    expected.resize(found.len(), 0);
    same(found, &expected)
}

/// The memory where data arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// This PE's private memory.
    Private,
    /// This PE's symmetric source.
    Source,
    /// The peer's block.
    Peer,
}

/// The layout of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub op: &'static str,
    /// Bytes.
    pub bytes: usize,
    pub arrives: Destination,
    /// Elements of a contiguous run in the peer's block, and the stride from one run to the next.
    pub block: (usize, usize),
    /// Whether this PE's side is symmetric memory.
    pub symmetric: bool,
    /// Whether each transfer increments the peer's word.
    pub counted: bool,
}

impl Shape {
    pub fn new(op: &'static str, bytes: usize, arrives: Destination) -> Self {
        Shape {
            op,
            bytes,
            arrives,
            block: (1, 1),
            symmetric: false,
            counted: false,
        }
    }

    /// Spreads the peer's elements: runs of `block`, `times` their length apart.
    pub fn apart(self, block: usize, times: usize) -> Self {
        let block = (block, block * times);
        Shape { block, ..self }
    }

    /// Puts this PE's side into symmetric memory.
    pub fn symmetric(self) -> Self {
        let symmetric = true;
        Shape { symmetric, ..self }
    }

    /// Counts each transfer in the peer's word.
    pub fn counted(self) -> Self {
        let counted = true;
        Shape { counted, ..self }
    }

    /// Bytes of the peer's block that the transfer spans.
    pub fn spread(&self) -> usize {
        let (block, stride) = self.block;
        self.bytes / block * stride
    }

    /// The elements that are moved, out of those of the peer's block.
    pub fn gathered<T: Copy>(&self, elements: &[T]) -> Vec<T> {
        let (block, stride) = self.block;
        let blocks = elements.chunks(stride);
        blocks
            .flat_map(|all| all.iter().take(block))
            .copied()
            .collect()
    }

    /// The content of the peer's block: the moved elements in their places, zeros between.
    fn scattered<T: Pod>(&self, elements: &[T]) -> Vec<T> {
        let (block, stride) = self.block;
        let mut spread = Vec::with_capacity(self.spread() / size_of::<T>());
        for together in elements.chunks(block) {
            spread.extend_from_slice(together);
            spread.resize(spread.len() + stride - block, T::zeroed());
        }
        spread
    }
}

/// The memory of one of the transfers.
pub struct Slot<T> {
    /// Private memory, with a guard behind it.
    local: Vec<T>,
    len: usize,
    /// The peer's block.
    pub block: Sym<u8>,
    /// This PE's source.
    pub source: Sym<u8>,
}

impl<T> Slot<T> {
    pub fn local(&mut self) -> &mut [T] {
        self.local.get_mut(..self.len).unwrap_or_default()
    }
}

/// Lets `go` issue all transfers, and checks the data that each has moved. Collective.
pub fn transfers<T: Pod>(
    fixture: &Fixture<'_>,
    role: Role,
    shape: &Shape,
    go: &mut dyn FnMut(&mut [Slot<T>]) -> Result<()>,
) -> anyhow::Result<()> {
    let world = fixture.world;
    let puts = shape.arrives == Destination::Peer;
    let guard = GUARD / size_of::<T>();
    let mut slots = Vec::with_capacity(SLOTS);
    // For each slot: the moved elements, the peer's block with them, and the two blocks.
    let mut expected = Vec::with_capacity(SLOTS);
    for number in 0..SLOTS {
        let name = format!("{} {number}", shape.op);
        let remote = if puts {
            shape.scattered(&pattern::<T>(&name, shape.bytes))
        } else {
            pattern::<T>(&name, shape.spread())
        };
        let moved = shape.gathered(&remote);
        let mut local = if puts { moved.clone() } else { Vec::new() };
        local.resize(moved.len() + guard, T::zeroed());
        let block = Place::of(fixture.block, shape.spread(), number)?;
        let source = if shape.symmetric {
            Some(Place::of(fixture.source, shape.bytes, number)?)
        } else {
            None
        };
        if let Some(source) = source {
            source.fill::<T>(fixture, if puts { &moved } else { &[] })?;
        }
        block.fill::<T>(fixture, if puts { &[] } else { &remote })?;
        slots.push(Slot {
            len: moved.len(),
            local,
            block: block.data,
            source: source.map_or(fixture.source, |source| source.data),
        });
        expected.push((moved, remote, block, source));
    }
    world.barrier_all()?;
    if role.acts {
        go(&mut slots)?;
        world.quiet()?;
    }
    world.barrier_all()?;
    for (number, (slot, (moved, remote, block, source))) in slots.iter().zip(&expected).enumerate()
    {
        let right = match (shape.arrives, source) {
            (Destination::Peer, _) if role.receives => block.holds(fixture, remote),
            (Destination::Private, _) if role.acts => {
                guarded(bytemuck::cast_slice(&slot.local), moved)
            }
            (Destination::Source, Some(source)) if role.acts => source.holds(fixture, moved),
            _ => Ok(()),
        };
        right.with_context(|| of(number))?;
    }
    Ok(())
}

/// The name of an operation in an error.
pub fn of(number: usize) -> String {
    format!(
        "operation {} of {SLOTS} that were validated beside",
        number + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxshmem::testing::spmd;

    /// Whether validation accepts the effect of `go`, from one PE to itself.
    fn found_right(
        shape: Shape,
        go: impl Fn(&Fixture<'_>, &mut [Slot<u64>]) -> Result<()> + Sync,
    ) -> bool {
        let right = spmd(1, |world| {
            let footprint = Footprint {
                block: shape.spread(),
                source: shape.bytes,
            };
            let fixture = Fixture::new(world, None, footprint.of_slots(), 1)?;
            let validated = transfers(&fixture, Role::BOTH, &shape, &mut |slots| {
                go(&fixture, slots)
            });
            fixture.free()?;
            Ok(validated.is_ok())
        });
        right.unwrap() == [true]
    }

    fn put(fixture: &Fixture<'_>, slot: &mut Slot<u64>) -> Result<()> {
        fixture.world.put(slot.block.cast()?, slot.local(), 0)
    }

    fn get(fixture: &Fixture<'_>, slot: &mut Slot<u64>) -> Result<()> {
        let block = slot.block.cast()?;
        fixture.world.get(slot.local(), block, 0)
    }

    #[test]
    fn a_put_that_is_lost_or_stands_in_for_another_or_goes_too_far_is_found() {
        let shape = Shape::new("test", 24, Destination::Peer);
        let right = |go: fn(&Fixture<'_>, &mut [Slot<u64>]) -> Result<()>| found_right(shape, go);
        assert!(right(|fixture, slots| slots
            .iter_mut()
            .try_for_each(|slot| put(fixture, slot))));
        for lost in 0..SLOTS {
            assert!(!found_right(shape, |fixture, slots| {
                let others = slots.iter_mut().enumerate().filter(|(at, _)| *at != lost);
                others
                    .map(|(_, slot)| slot)
                    .try_for_each(|slot| put(fixture, slot))
            }));
        }
        assert!(!right(|fixture, slots| {
            slots.iter_mut().try_for_each(|slot| put(fixture, slot))?;
            let (first, others) = slots.split_first_mut().unwrap();
            fixture.world.put(first.block.cast()?, others[0].local(), 0)
        }));
        assert!(!right(|fixture, slots| {
            slots.iter_mut().try_for_each(|slot| put(fixture, slot))?;
            let behind = Place::of(fixture.block, 24, SLOTS - 1)?.all;
            fixture.world.put(behind.range(24..25)?, &[1], 0)
        }));
    }

    #[test]
    fn a_get_that_is_lost_or_brings_anothers_is_found() {
        let shape = Shape::new("test", 24, Destination::Private);
        let right = |go: fn(&Fixture<'_>, &mut [Slot<u64>]) -> Result<()>| found_right(shape, go);
        assert!(right(|fixture, slots| slots
            .iter_mut()
            .try_for_each(|slot| get(fixture, slot))));
        assert!(!right(|fixture, slots| {
            slots
                .iter_mut()
                .skip(1)
                .try_for_each(|slot| get(fixture, slot))
        }));
        assert!(!right(|fixture, slots| {
            let first = slots[0].block;
            slots.iter_mut().for_each(|slot| slot.block = first);
            slots.iter_mut().try_for_each(|slot| get(fixture, slot))
        }));
    }

    #[test]
    fn what_lies_between_blocks_is_looked_at_too() {
        let shape = Shape::new("test", 32, Destination::Peer).apart(2, 2);
        let strided = |fixture: &Fixture<'_>, slots: &mut [Slot<u64>]| {
            slots.iter_mut().try_for_each(|slot| {
                let block = slot.block.cast()?;
                fixture.world.ibput(block, slot.local(), 4, 2, 2, 2, 0)
            })
        };
        assert!(found_right(shape, strided));
        assert!(!found_right(shape, |fixture, slots| {
            strided(fixture, slots)?;
            fixture.world.put(slots[0].block.range(16..17)?, &[1], 0)
        }));
    }

    #[test]
    fn slots_have_room_for_their_guards() {
        let footprint = Footprint {
            block: 100,
            source: 0,
        };
        let all = footprint.of_slots();
        assert_eq!((all.block, all.source), (256 * SLOTS, 0));
        let huge = Footprint {
            block: usize::MAX,
            source: 0,
        };
        assert_eq!(huge.of_slots().block, usize::MAX);
    }
}
