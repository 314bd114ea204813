//! Puts and gets of blocks by PE 0.

mod issue;

use oxshmem::{Pod, Result};

use self::issue::*;
use super::collective::both;
use crate::perf::fixture::{Fixture, Footprint, Role, Target, pattern, same, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{OneSided, Op, Span, Who, Work};
use crate::perf::validate::{self, Destination, Shape, Slot};

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
pub(super) const CONTIGUOUS: Span = Span::bytes(|bytes, _| Footprint {
    block: bytes,
    source: 0,
});
const STRIDED: Span = Span::words(spread);
const BLOCKS: Span = Span::Blocks {
    element: BLOCK * size_of::<u64>(),
    footprint: spread,
};
const SYMMETRIC: Span = Span::bytes(both);

fn spread(bytes: usize, _pes: usize) -> Footprint {
    Footprint {
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
            prepare: |fixture, bytes| {
                let shape = Shape::new($name, bytes, Destination::$arrives)$(.$place($($argument),*))?;
                Transfer::boxed(fixture, shape, $issue)
            },
        }),*];
    };
}
ops! {
    OPS:
    "put" put: CONTIGUOUS BLOCKING Peer, "back to back; a batch ends with a quiet";
    "get" get: CONTIGUOUS BLOCKING Private, "back to back";
    "put-from" put_from: SYMMETRIC BLOCKING Peer.symmetric(),
        "put from symmetric memory; a batch ends with a quiet";
    "get-into" get_into: SYMMETRIC BLOCKING Source.symmetric(),
        "get into symmetric memory, back to back";
}
ops! {
    STRIDED_OPS:
    "iput" iput: STRIDED BLOCKING Peer.apart(1, STRIDE),
        "words, every second one of the target; a batch ends with a quiet";
    "iget" iget: STRIDED BLOCKING Private.apart(1, STRIDE),
        "words, every second one of the source";
    "ibput" ibput: BLOCKS BLOCKING Peer.apart(BLOCK, STRIDE),
        "blocks of 8 words, every second one of the target; a batch ends with a quiet";
    "ibget" ibget: BLOCKS BLOCKING Private.apart(BLOCK, STRIDE),
        "blocks of 8 words, every second one of the source";
}
ops! {
    NBI_OPS:
    "put-nbi" put_nbi: CONTIGUOUS NONBLOCKING Peer,
        "nonblocking puts, completed in windows; one by one for its latency";
    "get-nbi" get_nbi: CONTIGUOUS NONBLOCKING Private,
        "nonblocking gets, likewise";
    "put-from-nbi" put_from_nbi: SYMMETRIC NONBLOCKING Peer.symmetric(),
        "nonblocking puts from symmetric memory, likewise";
    "get-into-nbi" get_into_nbi: SYMMETRIC NONBLOCKING Source.symmetric(),
        "nonblocking gets into symmetric memory, likewise";
    "put-signal-nbi" put_signal_nbi: CONTIGUOUS NONBLOCKING Peer.counted(),
        "nonblocking puts that each add to a signal, likewise";
}

/// Transfers between this PE's memory and the peer's block.
struct Transfer<T> {
    shape: Shape,
    /// Private memory.
    local: Vec<T>,
    /// The expected data.
    expected: Vec<T>,
    issue: Issue<T>,
}

impl<T: Pod + Send> Transfer<T> {
    /// Fills the data that is read, and clears the memory that is written.
    fn boxed(fixture: &Fixture<'_>, shape: Shape, issue: Issue<T>) -> Result<Box<dyn Work>> {
        let block = fixture.block.range(..shape.spread())?.cast()?;
        let (local, expected) = match shape.arrives {
            Destination::Peer => {
                fixture
                    .world
                    .write(block, &vec![T::zeroed(); block.len()])?;
                let moved = pattern::<T>(shape.op, shape.bytes);
                (moved.clone(), moved)
            }
            Destination::Private | Destination::Source => {
                let remote = pattern::<T>(shape.op, shape.spread());
                fixture.world.write(block, &remote)?;
                let moved = shape.gathered(&remote);
                (vec![T::zeroed(); moved.len()], moved)
            }
        };
        if shape.symmetric {
            fixture.world.write(fixture.source.cast()?, &local)?;
        }
        if shape.counted {
            fixture.world.write(fixture.word, &[0])?;
        }
        Ok(Box::new(Transfer {
            shape,
            local,
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
    issue(slot.local(), &at, times)?;
    rest
}

impl<T: Pod + Send> Work for Transfer<T> {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        self.post(&fixture.target(fixture.world), count)
    }

    fn run_beside(&mut self, fixture: &Fixture<'_>, then: &mut dyn FnMut()) -> Result<()> {
        let times = Times { count: 1, then };
        (self.issue)(&mut self.local, &fixture.target(fixture.world), times)
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        let (target, issue) = (fixture.target(fixture.world), self.issue);
        let mut go = |slots: &mut [Slot<T>]| all_at_once(issue, &target, slots);
        validate::transfers(fixture, role, &self.shape, &mut go)
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()> {
        let right = match self.shape.arrives {
            Destination::Private if role.acts => same(&self.local, &self.expected),
            Destination::Source if role.acts => {
                fixture.holds(fixture.source.cast()?, &self.expected)
            }
            Destination::Peer if role.receives => {
                let mut found = vec![T::zeroed(); self.shape.spread() / size_of::<T>()];
                fixture.world.read(&mut found, fixture.block.cast()?)?;
                same(&self.shape.gathered(&found), &self.expected)
            }
            _ => return Ok(()),
        };
        if self.shape.counted {
            same_word(fixture.world.signal_fetch(fixture.word)?, total)?;
        }
        right
    }
}

impl<T: Pod + Send> OneSided for Transfer<T> {
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()> {
        let then = &mut || ();
        (self.issue)(&mut self.local, target, Times { count, then })
    }
}
