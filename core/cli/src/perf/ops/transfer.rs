//! Blocks that PE 0 puts and gets.

mod issue;

use oxshmem::{Pod, Result};

use self::issue::*;
use crate::perf::ground::{Ground, Room, Seat, Target, pattern, same_bytes, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};
use crate::perf::proof::{self, Shape, Side, Slot};

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
        prepare: |ground, bytes| {
            let shape = Shape::new("put", bytes, Side::Far);
            Transfer::boxed(ground, shape, put)
        },
    },
    Op {
        name: "get",
        about: "back to back",
        span: CONTIGUOUS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| {
            let shape = Shape::new("get", bytes, Side::Near);
            Transfer::boxed(ground, shape, get)
        },
    },
    Op {
        name: "put-from",
        about: "put from symmetric memory; a batch ends with a quiet",
        span: SYMMETRIC,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| {
            let shape = Shape::new("put-from", bytes, Side::Far).symmetric();
            Transfer::boxed(ground, shape, put_from)
        },
    },
    Op {
        name: "get-into",
        about: "get into symmetric memory, back to back",
        span: SYMMETRIC,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| {
            let shape = Shape::new("get-into", bytes, Side::Source).symmetric();
            Transfer::boxed(ground, shape, get_into)
        },
    },
    Op {
        name: "iput",
        about: "words, every second one of the target; a batch ends with a quiet",
        span: STRIDED,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| {
            let shape = Shape::new("iput", bytes, Side::Far).apart(1, STRIDE);
            Transfer::boxed(ground, shape, iput)
        },
    },
    Op {
        name: "iget",
        about: "words, every second one of the source",
        span: STRIDED,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| {
            let shape = Shape::new("iget", bytes, Side::Near).apart(1, STRIDE);
            Transfer::boxed(ground, shape, iget)
        },
    },
    Op {
        name: "ibput",
        about: "blocks of 8 words, every second one of the target; a batch ends with a quiet",
        span: BLOCKS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| {
            let shape = Shape::new("ibput", bytes, Side::Far).apart(BLOCK, STRIDE);
            Transfer::boxed(ground, shape, ibput)
        },
    },
    Op {
        name: "ibget",
        about: "blocks of 8 words, every second one of the source",
        span: BLOCKS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| {
            let shape = Shape::new("ibget", bytes, Side::Near).apart(BLOCK, STRIDE);
            Transfer::boxed(ground, shape, ibget)
        },
    },
    Op {
        name: "put-nbi",
        about: "nonblocking puts, completed in windows; one by one for its latency",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| {
            let shape = Shape::new("put-nbi", bytes, Side::Far);
            Transfer::boxed(ground, shape, put_nbi)
        },
    },
    Op {
        name: "get-nbi",
        about: "nonblocking gets, likewise",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| {
            let shape = Shape::new("get-nbi", bytes, Side::Near);
            Transfer::boxed(ground, shape, get_nbi)
        },
    },
    Op {
        name: "put-from-nbi",
        about: "nonblocking puts from symmetric memory, likewise",
        span: SYMMETRIC,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| {
            let shape = Shape::new("put-from-nbi", bytes, Side::Far).symmetric();
            Transfer::boxed(ground, shape, put_from_nbi)
        },
    },
    Op {
        name: "get-into-nbi",
        about: "nonblocking gets into symmetric memory, likewise",
        span: SYMMETRIC,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| {
            let shape = Shape::new("get-into-nbi", bytes, Side::Source).symmetric();
            Transfer::boxed(ground, shape, get_into_nbi)
        },
    },
    Op {
        name: "put-signal-nbi",
        about: "nonblocking puts that each add to a signal, likewise",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| {
            let shape = Shape::new("put-signal-nbi", bytes, Side::Far);
            let transfer = Transfer::new(ground, shape, put_signal_nbi)?;
            ground.world.write(ground.word, &[0])?;
            let counts = true;
            Ok(Box::new(Transfer { counts, ..transfer }))
        },
    },
];

/// Transfers between this PE's memory and the peer's block.
struct Transfer<T> {
    shape: Shape,
    /// Private memory.
    near: Vec<T>,
    /// What arrives.
    expected: Vec<T>,
    /// Whether each is counted in the peer's word.
    counts: bool,
    issue: Issue<T>,
}

impl<T: Pod + Send> Transfer<T> {
    fn boxed(ground: &Ground<'_>, shape: Shape, issue: Issue<T>) -> Result<Box<dyn Work>> {
        Ok(Box::new(Self::new(ground, shape, issue)?))
    }

    /// Fills what is read, and clears what is written.
    fn new(ground: &Ground<'_>, shape: Shape, issue: Issue<T>) -> Result<Self> {
        let block = ground.block.range(..shape.spread())?.cast()?;
        let (near, expected) = match shape.arrives {
            Side::Far => {
                ground.world.write(block, &vec![T::zeroed(); block.len()])?;
                let moved = pattern::<T>(shape.op, shape.bytes);
                (moved.clone(), moved)
            }
            Side::Near | Side::Source => {
                let far = pattern::<T>(shape.op, shape.spread());
                ground.world.write(block, &far)?;
                let moved = shape.gathered(&far);
                (vec![T::zeroed(); moved.len()], moved)
            }
        };
        if shape.symmetric {
            ground.world.write(ground.source.cast()?, &near)?;
        }
        Ok(Transfer {
            shape,
            near,
            expected,
            counts: false,
            issue,
        })
    }
}

/// Begins all of them before it completes the first; blocking ones go one after the other.
fn all_at_once<T>(issue: Issue<T>, target: &Target<'_, '_>, slots: &mut [Slot<T>]) -> Result<()> {
    let Some((slot, others)) = slots.split_first_mut() else {
        return Ok(());
    };
    let at = Target {
        block: slot.block,
        source: slot.source,
        ..*target
    };
    let mut rest = Ok(());
    let mut begin_others = || rest = all_at_once(issue, target, others);
    issue(slot.near(), &at, 1, &mut begin_others)?;
    rest
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

    fn prove(&mut self, ground: &Ground<'_>, seat: Seat) -> anyhow::Result<()> {
        let (target, issue) = (ground.target(ground.world), self.issue);
        let mut go = |slots: &mut [Slot<T>]| all_at_once(issue, &target, slots);
        proof::transfers(ground, seat, &self.shape, &mut go)
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()> {
        let mut found = Vec::new();
        let arrived = match self.shape.arrives {
            Side::Near if seat.acts => &self.near,
            Side::Source if seat.acts => {
                found.resize(self.expected.len(), T::zeroed());
                ground.world.read(&mut found, ground.source.cast()?)?;
                &found
            }
            Side::Far if seat.receives => {
                found.resize(self.shape.spread() / size_of::<T>(), T::zeroed());
                ground.world.read(&mut found, ground.block.cast()?)?;
                found = self.shape.gathered(&found);
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
