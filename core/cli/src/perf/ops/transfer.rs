//! Blocks that PE 0 puts and gets.

mod issue;

use oxshmem::{Pod, Result};

use self::issue::*;
use crate::perf::ground::{Ground, Room, Seat, Target, pattern, same_bytes, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};

/// Far elements, or blocks of them, of a strided transfer lie so many times as far apart as they are long.
const STRIDE: usize = 2;
/// Words of a block.
const BLOCK: usize = 8;

const BLOCKING: &[Metric] = &[
    Metric::Latency,
    Metric::Rate,
    Metric::Bandwidth,
    Metric::Bidirectional,
    Metric::Overlap,
];
const NONBLOCKING: &[Metric] = &[
    Metric::Bandwidth,
    Metric::Latency,
    Metric::Rate,
    Metric::Bidirectional,
    Metric::Overlap,
];
const CONTIGUOUS: Span = Span::Blocks {
    element: 1,
    room: |bytes, _| Room {
        block: bytes,
        source: 0,
    },
};
const STRIDED: Span = Span::Blocks {
    element: size_of::<u64>(),
    room: spread,
};
const BLOCKS: Span = Span::Blocks {
    element: BLOCK * size_of::<u64>(),
    room: spread,
};
const SYMMETRIC: Span = Span::Blocks {
    element: 1,
    room: |bytes, _| Room {
        block: bytes,
        source: bytes,
    },
};

fn spread(bytes: usize, _pes: usize) -> Room {
    Room {
        block: bytes * STRIDE,
        source: 0,
    }
}

pub const OPS: &[Op] = &[
    Op {
        name: "put",
        about: "back to back; a batch ends with a quiet",
        span: CONTIGUOUS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::put(ground, "put", bytes, put),
    },
    Op {
        name: "get",
        about: "back to back",
        span: CONTIGUOUS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::get(ground, "get", bytes, get),
    },
    Op {
        name: "put-from",
        about: "put from symmetric memory; a batch ends with a quiet",
        span: SYMMETRIC,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::put_from(ground, "put-from", bytes, put_from),
    },
    Op {
        name: "get-into",
        about: "get into symmetric memory, back to back",
        span: SYMMETRIC,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::get_into(ground, "get-into", bytes, get_into),
    },
    Op {
        name: "iput",
        about: "words, every second one of the target; a batch ends with a quiet",
        span: STRIDED,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::put_apart(ground, "iput", bytes, 1, iput),
    },
    Op {
        name: "iget",
        about: "words, every second one of the source",
        span: STRIDED,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::get_apart(ground, "iget", bytes, 1, iget),
    },
    Op {
        name: "ibput",
        about: "blocks of 8 words, every second one of the target; a batch ends with a quiet",
        span: BLOCKS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::put_apart(ground, "ibput", bytes, BLOCK, ibput),
    },
    Op {
        name: "ibget",
        about: "blocks of 8 words, every second one of the source",
        span: BLOCKS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::get_apart(ground, "ibget", bytes, BLOCK, ibget),
    },
    Op {
        name: "put-nbi",
        about: "nonblocking puts, completed in windows; one by one for its latency",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| Transfer::put(ground, "put-nbi", bytes, put_nbi),
    },
    Op {
        name: "get-nbi",
        about: "nonblocking gets, likewise",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| Transfer::get(ground, "get-nbi", bytes, get_nbi),
    },
    Op {
        name: "put-from-nbi",
        about: "nonblocking puts from symmetric memory, likewise",
        span: SYMMETRIC,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| Transfer::put_from(ground, "put-from-nbi", bytes, put_from_nbi),
    },
    Op {
        name: "get-into-nbi",
        about: "nonblocking gets into symmetric memory, likewise",
        span: SYMMETRIC,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| Transfer::get_into(ground, "get-into-nbi", bytes, get_into_nbi),
    },
    Op {
        name: "put-signal-nbi",
        about: "nonblocking puts that each add to a signal, likewise",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| Transfer::put_signal(ground, "put-signal-nbi", bytes),
    },
];

/// Transfers between this PE's memory and the peer's block.
struct Transfer<T> {
    /// Private memory.
    near: Vec<T>,
    /// What arrives.
    expected: Vec<T>,
    arrives: Place,
    /// Elements that are together in the peer's block, and from their first to the next one's.
    block: (usize, usize),
    /// Whether each is counted in the peer's word.
    counts: bool,
    issue: Issue<T>,
}

/// Where data arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In private memory.
    Near,
    /// In this PE's symmetric source.
    Source,
    /// In the peer's block.
    Far,
}

/// Of elements that lie in blocks, those of the blocks.
fn gathered<T: Copy>(elements: &[T], (block, stride): (usize, usize)) -> Vec<T> {
    let blocks = elements.chunks(stride);
    blocks
        .flat_map(|all| all.iter().take(block))
        .copied()
        .collect()
}

/// Elements without others between them.
const TOGETHER: (usize, usize) = (1, 1);

impl<T: Pod + Send> Transfer<T> {
    fn boxed(self) -> Result<Box<dyn Work>> {
        Ok(Box::new(self))
    }

    /// From private memory into the peer's block, which is cleared.
    fn to(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        block: (usize, usize),
        issue: Issue<T>,
    ) -> Result<Self> {
        let (elements, stride) = block;
        let room = ground.block.range(..bytes / elements * stride)?;
        ground.world.write(room, &vec![0; room.len()])?;
        let near = pattern::<T>(op, bytes);
        Ok(Transfer {
            expected: near.clone(),
            near,
            arrives: Place::Far,
            block,
            counts: false,
            issue,
        })
    }

    /// From the peer's block, which is filled, into private memory.
    fn from(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        block: (usize, usize),
        issue: Issue<T>,
    ) -> Result<Self> {
        let (elements, stride) = block;
        let source = pattern::<T>(op, bytes / elements * stride);
        ground.world.write(ground.block.cast()?, &source)?;
        let expected = gathered(&source, block);
        Ok(Transfer {
            near: vec![T::zeroed(); expected.len()],
            expected,
            arrives: Place::Near,
            block,
            counts: false,
            issue,
        })
    }

    fn put(ground: &Ground<'_>, op: &str, bytes: usize, issue: Issue<T>) -> Result<Box<dyn Work>> {
        Self::to(ground, op, bytes, TOGETHER, issue)?.boxed()
    }

    fn get(ground: &Ground<'_>, op: &str, bytes: usize, issue: Issue<T>) -> Result<Box<dyn Work>> {
        Self::from(ground, op, bytes, TOGETHER, issue)?.boxed()
    }

    /// So many elements together, and as much apart as [`STRIDE`] says.
    fn put_apart(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        block: usize,
        issue: Issue<T>,
    ) -> Result<Box<dyn Work>> {
        Self::to(ground, op, bytes, (block, block * STRIDE), issue)?.boxed()
    }

    fn get_apart(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        block: usize,
        issue: Issue<T>,
    ) -> Result<Box<dyn Work>> {
        Self::from(ground, op, bytes, (block, block * STRIDE), issue)?.boxed()
    }

    fn put_from(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        issue: Issue<T>,
    ) -> Result<Box<dyn Work>> {
        let transfer = Self::to(ground, op, bytes, TOGETHER, issue)?;
        ground
            .world
            .write(ground.source.cast()?, &transfer.expected)?;
        transfer.boxed()
    }

    fn get_into(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        issue: Issue<T>,
    ) -> Result<Box<dyn Work>> {
        let transfer = Self::from(ground, op, bytes, TOGETHER, issue)?;
        ground.world.write(ground.source.cast()?, &transfer.near)?;
        let arrives = Place::Source;
        Transfer {
            arrives,
            ..transfer
        }
        .boxed()
    }
}

impl Transfer<u8> {
    fn put_signal(ground: &Ground<'_>, op: &str, bytes: usize) -> Result<Box<dyn Work>> {
        let transfer = Self::to(ground, op, bytes, TOGETHER, put_signal_nbi)?;
        ground.world.write(ground.word, &[0])?;
        let counts = true;
        Transfer { counts, ..transfer }.boxed()
    }
}

impl<T: Pod + Send> Work for Transfer<T> {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        self.post(&ground.target(ground.world), count)
    }

    fn run_beside(&mut self, ground: &Ground<'_>, meanwhile: &mut dyn FnMut()) -> Result<()> {
        (self.issue)(&mut self.near, &ground.target(ground.world), 1, meanwhile)
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()> {
        let mut found = Vec::new();
        let arrived = match self.arrives {
            Place::Near if seat.acts => &self.near,
            Place::Source if seat.acts => {
                found.resize(self.expected.len(), T::zeroed());
                ground.world.read(&mut found, ground.source.cast()?)?;
                &found
            }
            Place::Far if seat.receives => {
                let (block, stride) = self.block;
                found.resize(self.expected.len() / block * stride, T::zeroed());
                ground.world.read(&mut found, ground.block.cast()?)?;
                found = gathered(&found, self.block);
                &found
            }
            _ => return Ok(()),
        };
        if self.counts {
            same_word(ground.world.signal_fetch(ground.word)?, total)?;
        }
        same_bytes(
            bytemuck::cast_slice(arrived),
            bytemuck::cast_slice(&self.expected),
        )
    }
}

impl<T: Pod + Send> OneSided for Transfer<T> {
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()> {
        (self.issue)(&mut self.near, target, count, &mut || ())
    }
}
