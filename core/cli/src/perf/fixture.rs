//! The fixture of all rows: symmetric memory, the pair of PEs, and each PE's role.

use anyhow::{Context, ensure};
use oxshmem::{Context as Stream, Fold, MemoryKind, Pod, Result, Sym, Team, World};

use super::number::Number;
use super::pair::Pair;

/// Symmetric memory and settings that all rows share.
#[derive(Clone, Copy)]
pub struct Fixture<'w> {
    pub world: &'w World,
    /// The team whose collectives are measured, on its members.
    pub team: Option<&'w Team<'w>>,
    /// The PE that measures, and its partner.
    pub pair: Pair,
    /// The fold of reductions and scans, and the type of its elements.
    pub folds: (Fold, Number),
    /// Whether one-sided operations are issued within a session.
    pub session: bool,
    /// A word and a block for every thread.
    words: Sym<u64>,
    blocks: Sym<u8>,
    /// Repetitions of the next batch; 0 ends the row.
    order: Sym<u64>,
    /// The word that operations on one value use.
    pub word: Sym<u64>,
    pub signal: Sym<u64>,
    /// The words that waits for several words poll: in host memory, wherever the blocks lie.
    pub several: Sym<u64>,
    /// The block that operations on blocks use.
    pub block: Sym<u8>,
    /// The source of collectives, and this PE's side of copies between symmetric objects.
    pub source: Sym<u8>,
}

/// The target of one thread's one-sided operations, and its context.
pub struct Target<'t, 'c> {
    pub context: &'t Stream<'c>,
    pub word: Sym<u64>,
    pub block: Sym<u8>,
    /// This PE's own source, which its threads share.
    pub source: Sym<u8>,
    pub pe: usize,
}

/// The number of words in a wait for several.
pub const SEVERAL: usize = 64;
/// The alignment, in bytes, of each thread's word and block: two cache lines.
const APART: usize = 128;

/// Bytes that an operation needs of the fixture's two blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    pub block: usize,
    pub source: usize,
}

impl Footprint {
    pub fn total(self) -> usize {
        self.block.saturating_add(self.source)
    }

    /// Enough for both.
    pub fn and(self, other: Footprint) -> Footprint {
        Footprint {
            block: self.block.max(other.block),
            source: self.source.max(other.source),
        }
    }
}

impl<'w> Fixture<'w> {
    /// Allocates for `threads` threads, in host memory, from PE 0 to PE 1. Collective.
    #[cfg(test)]
    pub fn new(
        world: &'w World,
        team: Option<&'w Team<'w>>,
        footprint: Footprint,
        threads: usize,
    ) -> Result<Self> {
        let pair = Pair {
            from: 0,
            to: usize::from(world.n_pes() > 1),
        };
        Self::on(MemoryKind::Host, world, team, pair, footprint, threads)
    }

    /// Allocates for `threads` threads, with the blocks in memory of this kind. Collective.
    pub fn on(
        kind: MemoryKind,
        world: &'w World,
        team: Option<&'w Team<'w>>,
        pair: Pair,
        footprint: Footprint,
        threads: usize,
    ) -> Result<Self> {
        let bytes = |bytes: usize| bytes.max(1).next_multiple_of(APART);
        let words = world.alloc_zeroed(threads * APART / size_of::<u64>())?;
        let blocks = world.alloc_on(kind, threads * bytes(footprint.block))?;
        Ok(Fixture {
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
            block: blocks.range(..bytes(footprint.block))?,
            source: world.alloc_on(kind, bytes(footprint.source))?,
        })
    }

    /// The fixture with the word and the block of one thread, counted from 0.
    pub fn of_thread(&self, thread: usize) -> Result<Self> {
        let share = self.block.len();
        Ok(Fixture {
            word: self.words.at(thread * APART / size_of::<u64>())?,
            block: self.blocks.range(thread * share..(thread + 1) * share)?,
            ..*self
        })
    }

    /// The target of this PE's operations, by a context.
    pub fn target<'t, 'c>(&self, context: &'t Stream<'c>) -> Target<'t, 'c> {
        Target {
            context,
            word: self.word,
            block: self.block,
            source: self.source,
            pe: self.peer(),
        }
    }

    /// A new stream of this PE's GPU, for a row.
    #[cfg(feature = "cuda")]
    pub fn new_stream(&self) -> Result<oxshmem::cuda::Stream> {
        let context = self.world.gpu_context();
        let context = context.ok_or_else(|| oxshmem::Error::Argument {
            call: "perf",
            what: "this PE has no GPU".into(),
        })?;
        let options = oxshmem::cuda::StreamOptions::default();
        Ok(oxshmem::cuda::Stream::new(context, &options)?)
    }

    /// Frees the memory. Collective.
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

    /// Announces the next batch to all PEs. Collective, with [`next_batch`](Self::next_batch) on the
    /// others.
    pub fn announce(&self, repetitions: u64) -> Result<()> {
        self.world.write(self.order, &[repetitions])?;
        self.world.broadcast(self.order, self.order, self.pair.from)
    }

    pub fn next_batch(&self) -> Result<u64> {
        self.world
            .broadcast(self.order, self.order, self.pair.from)?;
        self.world.g(self.order, self.world.my_pe())
    }

    /// Checks that this PE's memory begins with these elements.
    pub fn holds<T: Pod>(&self, memory: Sym<T>, expected: &[T]) -> anyhow::Result<()> {
        let mut found = vec![T::zeroed(); expected.len()];
        self.world.read(&mut found, memory)?;
        same(&found, expected)
    }

    /// The PE that this one's operations go to.
    pub fn peer(&self) -> usize {
        if self.leads() {
            self.pair.to
        } else {
            self.pair.from
        }
    }

    /// Whether this PE is the partner of the one that measures.
    pub fn answers(&self) -> bool {
        self.world.my_pe() == self.pair.to
    }
}

/// This PE's role in a row.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Whether it issues the operation.
    pub acts: bool,
    /// Whether it is the operation's target.
    pub receives: bool,
}

impl Role {
    /// It issues the operation and is its target.
    pub const BOTH: Role = Role {
        acts: true,
        receives: true,
    };
}

/// The value that operations write, in as many bytes as they have.
pub const VALUE: u64 = 0xf00d_cafe_5eed_a5a5;

/// Elements of `bytes` bytes in all that no other row, nor a shifted copy, would leave.
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

/// The word whose first `bytes` bytes in memory are those of a smaller type with this value; the
/// rest is zero.
pub fn low(value: u64, bytes: usize) -> u64 {
    let mut kept = [0; 8];
    let keep = bytes.min(kept.len());
    // All PEs have one byte order: a job is of one architecture.
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
