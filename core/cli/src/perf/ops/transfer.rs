//! Blocks that PE 0 puts and gets.

use std::hint::black_box;

use oxshmem::{Pod, Result};

use crate::perf::ground::{Ground, Room, Seat, Target, pattern, same_bytes};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};

/// Far elements of a strided transfer lie so many of them apart.
const STRIDE: usize = 2;

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
    room: |bytes, _| Room {
        block: bytes * STRIDE,
        source: 0,
    },
};

pub const OPS: &[Op] = &[
    Op {
        name: "put",
        about: "back to back; a batch ends with a quiet",
        span: CONTIGUOUS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::put(ground, "put", bytes, 1, put),
    },
    Op {
        name: "get",
        about: "back to back",
        span: CONTIGUOUS,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::get(ground, "get", bytes, 1, get),
    },
    Op {
        name: "iput",
        about: "words, every second one of the target; a batch ends with a quiet",
        span: STRIDED,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::put(ground, "iput", bytes, STRIDE, iput),
    },
    Op {
        name: "iget",
        about: "words, every second one of the source",
        span: STRIDED,
        metrics: BLOCKING,
        who: Who::One,
        prepare: |ground, bytes| Transfer::get(ground, "iget", bytes, STRIDE, iget),
    },
    Op {
        name: "put-nbi",
        about: "nonblocking puts, completed in windows; one by one for its latency",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| Transfer::put(ground, "put-nbi", bytes, 1, put_nbi),
    },
    Op {
        name: "get-nbi",
        about: "nonblocking gets, likewise",
        span: CONTIGUOUS,
        metrics: NONBLOCKING,
        who: Who::OneCompleting,
        prepare: |ground, bytes| Transfer::get(ground, "get-nbi", bytes, 1, get_nbi),
    },
];

/// So many operations; then, before they are completed, something else.
type Issue<T> = fn(&mut [T], &Target<'_, '_>, u64, &mut dyn FnMut()) -> Result<()>;

/// Transfers between private memory and the peer's block.
struct Transfer<T> {
    near: Vec<T>,
    /// What arrives.
    expected: Vec<T>,
    arrives: Side,
    /// From one element to the next in the block.
    stride: usize,
    issue: Issue<T>,
}

/// Where data arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Near,
    Far,
}

impl<T: Pod + Send> Transfer<T> {
    fn put(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        stride: usize,
        issue: Issue<T>,
    ) -> Result<Box<dyn Work>> {
        let block = ground.block.range(..bytes * stride)?;
        ground.world.write(block, &vec![0; bytes * stride])?;
        let near = pattern::<T>(op, bytes);
        Ok(Box::new(Transfer {
            expected: near.clone(),
            near,
            arrives: Side::Far,
            stride,
            issue,
        }))
    }

    fn get(
        ground: &Ground<'_>,
        op: &str,
        bytes: usize,
        stride: usize,
        issue: Issue<T>,
    ) -> Result<Box<dyn Work>> {
        let source = pattern::<T>(op, bytes * stride);
        ground.world.write(ground.block.cast()?, &source)?;
        let expected: Vec<T> = source.into_iter().step_by(stride).collect();
        Ok(Box::new(Transfer {
            near: vec![T::zeroed(); expected.len()],
            expected,
            arrives: Side::Near,
            stride,
            issue,
        }))
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

    fn check(&self, ground: &Ground<'_>, seat: Seat, _total: u64) -> anyhow::Result<()> {
        let mut block = Vec::new();
        let arrived = match self.arrives {
            Side::Near if seat.acts => &self.near,
            Side::Far if seat.receives => {
                block.resize(self.expected.len() * self.stride, T::zeroed());
                ground.world.read(&mut block, ground.block.cast()?)?;
                block = block.into_iter().step_by(self.stride).collect();
                &block
            }
            _ => return Ok(()),
        };
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

fn put(near: &mut [u8], at: &Target<'_, '_>, count: u64, then: &mut dyn FnMut()) -> Result<()> {
    for _ in 0..count {
        at.context.put(at.block, black_box(&*near), at.pe)?;
    }
    then();
    Ok(())
}

fn iput(near: &mut [u64], at: &Target<'_, '_>, count: u64, then: &mut dyn FnMut()) -> Result<()> {
    let (block, words) = (at.block.cast()?, near.len());
    for _ in 0..count {
        let near = black_box(&*near);
        at.context.iput(block, near, STRIDE, 1, words, at.pe)?;
    }
    then();
    Ok(())
}

fn put_nbi(near: &mut [u8], at: &Target<'_, '_>, count: u64, then: &mut dyn FnMut()) -> Result<()> {
    let near = &*near;
    at.context.scope(|scope| {
        for _ in 0..count {
            scope.put_nbi(at.block, black_box(near), at.pe)?;
        }
        then();
        Ok(())
    })
}

fn get(near: &mut [u8], at: &Target<'_, '_>, count: u64, then: &mut dyn FnMut()) -> Result<()> {
    for _ in 0..count {
        at.context.get(black_box(&mut *near), at.block, at.pe)?;
    }
    then();
    Ok(())
}

fn iget(near: &mut [u64], at: &Target<'_, '_>, count: u64, then: &mut dyn FnMut()) -> Result<()> {
    let (block, words) = (at.block.cast()?, near.len());
    for _ in 0..count {
        let near = black_box(&mut *near);
        at.context.iget(near, block, 1, STRIDE, words, at.pe)?;
    }
    then();
    Ok(())
}

fn get_nbi(near: &mut [u8], at: &Target<'_, '_>, count: u64, then: &mut dyn FnMut()) -> Result<()> {
    let (into, len) = (near.as_mut_ptr(), near.len());
    at.context.scope(|_| {
        for _ in 0..count {
            // SAFETY: `near` is this function's alone, and it touches it through `into` only, until
            // the scope has completed the gets or closed their lane. They all bring the same bytes.
            unsafe {
                at.context.get_nbi(black_box(into), at.block, len, at.pe)?;
            }
        }
        then();
        Ok(())
    })
}
