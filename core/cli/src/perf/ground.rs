//! Where all rows are measured, and who does what.

use anyhow::{Context, ensure};
use oxshmem::{Context as Stream, Fold, MemoryKind, Pod, Result, Sym, Team, World};

use super::number::Number;
use super::pair::Pair;

/// Symmetric memory for all rows.
#[derive(Clone, Copy)]
pub struct Ground<'w> {
    pub world: &'w World,
    /// The team whose collectives are measured, on its members.
    pub team: Option<&'w Team<'w>>,
    /// The PE that measures, and its partner.
    pub pair: Pair,
    /// What reductions and scans do, and of which elements.
    pub folds: (Fold, Number),
    /// Whether one-sided operations come in a session.
    pub session: bool,
    /// What every thread has a word of, and a block.
    words: Sym<u64>,
    blocks: Sym<u8>,
    /// Repetitions of the next batch; 0 ends the row.
    order: Sym<u64>,
    /// What operations on one value work on.
    pub word: Sym<u64>,
    pub signal: Sym<u64>,
    /// What waits for several words look at: in host memory, wherever the blocks lie.
    pub several: Sym<u64>,
    /// What operations on blocks work on.
    pub block: Sym<u8>,
    /// The source of collectives; this PE's side of copies between symmetric objects.
    pub source: Sym<u8>,
}

/// Where one-sided operations go, of one thread by its context.
pub struct Target<'t, 'c> {
    pub context: &'t Stream<'c>,
    pub word: Sym<u64>,
    pub block: Sym<u8>,
    /// This PE's own, which its threads share.
    pub source: Sym<u8>,
    pub pe: usize,
}

/// Words of a wait for several.
pub const SEVERAL: usize = 64;
/// From one thread's word or block to the next is a multiple of so many bytes: two cache lines.
const APART: usize = 128;

/// Bytes that an operation needs of the ground's two blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub block: usize,
    pub source: usize,
}

impl Room {
    pub fn total(self) -> usize {
        self.block.saturating_add(self.source)
    }

    /// Enough for both.
    pub fn and(self, other: Room) -> Room {
        Room {
            block: self.block.max(other.block),
            source: self.source.max(other.source),
        }
    }
}

impl<'w> Ground<'w> {
    /// For so many threads, in host memory, from PE 0 to PE 1. Collective.
    #[cfg(test)]
    pub fn new(
        world: &'w World,
        team: Option<&'w Team<'w>>,
        room: Room,
        threads: usize,
    ) -> Result<Self> {
        let pair = Pair {
            from: 0,
            to: usize::from(world.n_pes() > 1),
        };
        Self::on(MemoryKind::Host, world, team, pair, room, threads)
    }

    /// For so many threads, with the blocks in memory of this kind. Collective.
    pub fn on(
        kind: MemoryKind,
        world: &'w World,
        team: Option<&'w Team<'w>>,
        pair: Pair,
        room: Room,
        threads: usize,
    ) -> Result<Self> {
        let bytes = |bytes: usize| bytes.max(1).next_multiple_of(APART);
        let words = world.alloc_zeroed(threads * APART / size_of::<u64>())?;
        let blocks = world.alloc_on(kind, threads * bytes(room.block))?;
        Ok(Ground {
            world,
            team,
            pair,
            folds: (Fold::Sum, Number::default()),
            session: false,
            words,
            blocks,
            order: world.alloc_zeroed(1)?,
            word: words.at(0)?,
            signal: world.alloc_zeroed(1)?,
            several: world.alloc_zeroed(SEVERAL)?,
            block: blocks.range(..bytes(room.block))?,
            source: world.alloc_on(kind, bytes(room.source))?,
        })
    }

    /// With the word and the block of a thread, from 0.
    pub fn of_thread(&self, thread: usize) -> Result<Self> {
        let share = self.block.len();
        Ok(Ground {
            word: self.words.at(thread * APART / size_of::<u64>())?,
            block: self.blocks.range(thread * share..(thread + 1) * share)?,
            ..*self
        })
    }

    /// Of this PE's operations, by a context.
    pub fn target<'t, 'c>(&self, context: &'t Stream<'c>) -> Target<'t, 'c> {
        Target {
            context,
            word: self.word,
            block: self.block,
            source: self.source,
            pe: self.peer(),
        }
    }

    /// Gives the memory back. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.source)?;
        self.world.free(self.several)?;
        self.world.free(self.signal)?;
        self.world.free(self.order)?;
        self.world.free(self.blocks)?;
        self.world.free(self.words)
    }

    /// Whether this PE measures.
    pub fn leads(&self) -> bool {
        self.world.my_pe() == self.pair.from
    }

    /// Tells all PEs the next batch. Collective, with [`hear`](Self::hear) on the others.
    pub fn tell(&self, repetitions: u64) -> Result<()> {
        self.world.write(self.order, &[repetitions])?;
        self.world.broadcast(self.order, self.order, self.pair.from)
    }

    pub fn hear(&self) -> Result<u64> {
        self.world
            .broadcast(self.order, self.order, self.pair.from)?;
        self.world.g(self.order, self.world.my_pe())
    }

    /// Whether this PE's memory begins with these.
    pub fn holds<T: Pod>(&self, memory: Sym<T>, expected: &[T]) -> anyhow::Result<()> {
        let mut found = vec![T::zeroed(); expected.len()];
        self.world.read(&mut found, memory)?;
        same(&found, expected)
    }

    /// The PE that this one's operations go to.
    pub fn peer(&self) -> usize {
        match self.leads() {
            true => self.pair.to,
            false => self.pair.from,
        }
    }

    /// Whether this PE is the partner of the one that measures.
    pub fn answers(&self) -> bool {
        self.world.my_pe() == self.pair.to
    }
}

/// This PE's place in a row.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// Whether it does the operation.
    pub acts: bool,
    /// Whether the operation's target is here.
    pub receives: bool,
}

impl Seat {
    /// It does the operation, and is its target.
    pub const BOTH: Seat = Seat {
        acts: true,
        receives: true,
    };
}

/// What operations write, in as many bytes as they have.
pub const VALUE: u64 = 0xf00d_cafe_5eed_a5a5;

/// So many bytes, as elements, that no other row, nor a shifted copy, would leave.
pub fn pattern<T: Pod>(op: &str, bytes: usize) -> Vec<T> {
    let name = op.bytes().fold(0_usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let seed = name.wrapping_add(bytes) % 251;
    let bytes: Vec<u8> = (0..bytes)
        .map(|i| ((i * 7 + i / 251 + seed) % 255 + 1) as u8)
        .collect();
    let elements = bytes.chunks_exact(size_of::<T>());
    elements.map(bytemuck::pod_read_unaligned).collect()
}

/// The bytes of a word that a smaller type at its start has, the rest zero.
pub fn low(value: u64, bytes: usize) -> u64 {
    let mut kept = [0; 8];
    let keep = bytes.min(kept.len());
    // PEs have one byte order: a job is of one architecture.
    let all = if cfg!(target_endian = "little") {
        value
    } else {
        value << (64 - 8 * keep as u32)
    };
    for (kept, byte) in kept.iter_mut().zip(all.to_ne_bytes()).take(keep) {
        *kept = byte;
    }
    u64::from_ne_bytes(kept)
}

pub fn same_word(found: u64, expected: u64) -> anyhow::Result<()> {
    ensure!(
        found == expected,
        "the word has the value {found:#x}, and should have {expected:#x}"
    );
    Ok(())
}

pub fn same<T: Pod>(found: &[T], expected: &[T]) -> anyhow::Result<()> {
    let (found, expected): (&[u8], &[u8]) =
        (bytemuck::cast_slice(found), bytemuck::cast_slice(expected));
    if found == expected {
        return Ok(());
    }
    let at = found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected);
    let at = at.context("the data has another length than it should")?;
    anyhow::bail!("the data is wrong at byte {at} of {}", expected.len())
}
