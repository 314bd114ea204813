//! Puts and gets of blocks by PE 0.

mod issue;

use oxshmem::{Pod, Result};

use self::issue::*;
use super::collective::both;
use crate::perf::ground::{Ground, Room, Seat, Target, pattern, same, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};
use crate::perf::proof::{self, Shape, Side, Slot};

/// The stride of a strided transfer's remote elements or blocks, as a multiple of their length.
const STRIDE: usize = 2;
/// Words of a block.
const BLOCK: usize = 8;

const BLOCKING: (&[Metric], Who) = (
    &[
        Metric::Latency,
        Metric::Rate,
        Metric::Bandwidth,
        Metric::Bidirectional,
        Metric::Overlap,
    ],
    Who::One,
);
const NONBLOCKING: (&[Metric], Who) = (
    &[
        Metric::Bandwidth,
        Metric::Latency,
        Metric::Rate,
        Metric::Bidirectional,
        Metric::Overlap,
    ],
    Who::OneCompleting,
);
/// Any bytes of the peer's block, to or from private memory.
pub(super) const CONTIGUOUS: Span = Span::bytes(|bytes, _| Room {
    block: bytes,
    source: 0,
});
const STRIDED: Span = Span::words(spread);
const BLOCKS: Span = Span::Blocks {
    element: BLOCK * size_of::<u64>(),
    room: spread,
};
const SYMMETRIC: Span = Span::bytes(both);

fn spread(bytes: usize, _pes: usize) -> Room {
    Room {
        block: bytes * STRIDE,
        source: 0,
    }
}

macro_rules! ops {
    ($list:ident: $($name:literal $issue:ident: $span:ident $how:ident $arrives:ident $(.$place:ident($($argument:expr),*))?, $about:literal;)*) => {
        pub const $list: &[Op] = &[$(Op {
            name: $name,
            about: $about,
            span: $span,
            metrics: $how.0,
            who: $how.1,
            prepare: |ground, bytes| {
                let shape = Shape::new($name, bytes, Side::$arrives)$(.$place($($argument),*))?;
                Transfer::boxed(ground, shape, $issue)
            },
        }),*];
    };
}
ops! {
    OPS:
    "put" put: CONTIGUOUS BLOCKING Far, "back to back; a batch ends with a quiet";
    "get" get: CONTIGUOUS BLOCKING Near, "back to back";
    "put-from" put_from: SYMMETRIC BLOCKING Far.symmetric(),
        "put from symmetric memory; a batch ends with a quiet";
    "get-into" get_into: SYMMETRIC BLOCKING Source.symmetric(),
        "get into symmetric memory, back to back";
}
ops! {
    STRIDED_OPS:
    "iput" iput: STRIDED BLOCKING Far.apart(1, STRIDE),
        "words, every second one of the target; a batch ends with a quiet";
    "iget" iget: STRIDED BLOCKING Near.apart(1, STRIDE),
        "words, every second one of the source";
    "ibput" ibput: BLOCKS BLOCKING Far.apart(BLOCK, STRIDE),
        "blocks of 8 words, every second one of the target; a batch ends with a quiet";
    "ibget" ibget: BLOCKS BLOCKING Near.apart(BLOCK, STRIDE),
        "blocks of 8 words, every second one of the source";
}
ops! {
    NBI_OPS:
    "put-nbi" put_nbi: CONTIGUOUS NONBLOCKING Far,
        "nonblocking puts, completed in windows; one by one for its latency";
    "get-nbi" get_nbi: CONTIGUOUS NONBLOCKING Near,
        "nonblocking gets, likewise";
    "put-from-nbi" put_from_nbi: SYMMETRIC NONBLOCKING Far.symmetric(),
        "nonblocking puts from symmetric memory, likewise";
    "get-into-nbi" get_into_nbi: SYMMETRIC NONBLOCKING Source.symmetric(),
        "nonblocking gets into symmetric memory, likewise";
    "put-signal-nbi" put_signal_nbi: CONTIGUOUS NONBLOCKING Far.counted(),
        "nonblocking puts that each add to a signal, likewise";
}

/// Transfers between this PE's memory and the peer's block.
struct Transfer<T> {
    shape: Shape,
    /// Private memory.
    near: Vec<T>,
    /// The expected data.
    expected: Vec<T>,
    issue: Issue<T>,
}

impl<T: Pod + Send> Transfer<T> {
    /// Fills the data that is read, and clears the memory that is written.
    fn boxed(ground: &Ground<'_>, shape: Shape, issue: Issue<T>) -> Result<Box<dyn Work>> {
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
        if shape.counted {
            ground.world.write(ground.word, &[0])?;
        }
        Ok(Box::new(Transfer {
            shape,
            near,
            expected,
            issue,
        }))
    }
}

/// Issues all of them before it completes the first; blocking ones go one after the other.
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
    let times = Times {
        count: 1,
        then: &mut begin_others,
    };
    issue(slot.near(), &at, times)?;
    rest
}

impl<T: Pod + Send> Work for Transfer<T> {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        self.post(&ground.target(ground.world), count)
    }

    fn run_beside(&mut self, ground: &Ground<'_>, then: &mut dyn FnMut()) -> Result<()> {
        let times = Times { count: 1, then };
        (self.issue)(&mut self.near, &ground.target(ground.world), times)
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
        let right = match self.shape.arrives {
            Side::Near if seat.acts => same(&self.near, &self.expected),
            Side::Source if seat.acts => ground.holds(ground.source.cast()?, &self.expected),
            Side::Far if seat.receives => {
                let mut found = vec![T::zeroed(); self.shape.spread() / size_of::<T>()];
                ground.world.read(&mut found, ground.block.cast()?)?;
                same(&self.shape.gathered(&found), &self.expected)
            }
            _ => return Ok(()),
        };
        if self.shape.counted {
            same_word(ground.world.signal_fetch(ground.word)?, total)?;
        }
        right
    }
}

impl<T: Pod + Send> OneSided for Transfer<T> {
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()> {
        let then = &mut || ();
        (self.issue)(&mut self.near, target, Times { count, then })
    }
}
