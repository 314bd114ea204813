//! Operations that GPUs do in stream order, between objects in their memory.

mod word;

use oxshmem::cuda::Stream;
use oxshmem::{Cmp, Fold, Result, SignalOp, Sym, World};

use self::word::{At, Own, Turns, word};
use super::collective::{METRICS, both, exchanged, gathered, times};
use crate::perf::fixture::{Fixture, Footprint, Role, VALUE, pattern};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};
use crate::perf::validate::{self, Destination, Shape, Slot};

const COPIES: &[Metric] = &[Metric::Latency, Metric::Bandwidth, Metric::Rate];
const WORDS: Span = Span::words(both);

const WAITS: &[Metric] = &[Metric::Latency, Metric::Rate];
const ONE_WORD: Span = Span::Values(&[size_of::<u64>()]);

/// Defines a collective that moves words. From a PE's number and the number of PEs, `$mine` and
/// `$gets` are the factors of the words that it sends and receives.
macro_rules! exchange {
    ($name:literal, $about:literal, $footprint:expr, $call:expr,
        |$me:ident, $pes:ident| $mine:expr, $gets:expr) => {
        Op {
            name: $name,
            about: $about,
            span: Span::words($footprint),
            metrics: METRICS,
            who: Who::All,
            prepare: |fixture, bytes| {
                let ($me, $pes) = (fixture.world.my_pe() as u64, fixture.world.n_pes() as u64);
                let words = pattern::<u64>($name, bytes);
                let mine = times(&words, $mine, 1);
                Together::boxed(fixture, &mine, times(&words, $gets, 1), $call)
            },
        }
    };
}

pub const OPS: &[Op] = &[
    Op {
        name: "put-on-stream",
        about: "PE 0 queues puts between GPUs' memory, then synchronizes",
        span: WORDS,
        metrics: COPIES,
        who: Who::OneCompleting,
        prepare: |fixture, bytes| {
            let shape = Shape::new("put-on-stream", bytes, Destination::Peer).symmetric();
            Copies::boxed(fixture, shape, |at, stream| {
                at.world.put_on_stream(at.block, at.source, at.pe, stream)
            })
        },
    },
    Op {
        name: "get-on-stream",
        about: "likewise, gets",
        span: WORDS,
        metrics: COPIES,
        who: Who::OneCompleting,
        prepare: |fixture, bytes| {
            let shape = Shape::new("get-on-stream", bytes, Destination::Source).symmetric();
            Copies::boxed(fixture, shape, |at, stream| {
                at.world.get_on_stream(at.source, at.block, at.pe, stream)
            })
        },
    },
    Op {
        name: "signal-on-stream",
        about: "a signal, and a wait for it at the other end, queued by turns: half of a round trip",
        span: ONE_WORD,
        metrics: METRICS,
        who: Who::Pair,
        prepare: |fixture, _| {
            Turns::boxed(fixture, 0, |at, value, stream| {
                let (world, to) = (at.world, at.pe);
                world.signal_on_stream(at.signal, value, SignalOp::Set, to, stream)
            })
        },
    },
    Op {
        name: "put-signal-on-stream",
        about: "likewise, a put with its signal",
        span: Span::words(|bytes, _| Footprint {
            // The signal lies behind the data.
            block: bytes.saturating_add(size_of::<u64>()),
            source: bytes,
        }),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |fixture, bytes| {
            Turns::boxed(fixture, bytes, |at, value, stream| {
                let (to, from, op) = (at.block, at.source, SignalOp::Set);
                (at.world).put_signal_on_stream(to, from, at.signal, value, op, at.pe, stream)
            })
        },
    },
    Op {
        name: "wait-until-on-stream",
        about: "PE 0 queues waits for an own word that has the value, then synchronizes",
        span: ONE_WORD,
        metrics: WAITS,
        who: Who::OneCompleting,
        prepare: |fixture, _| {
            Own::boxed(fixture, |fixture, stream| {
                let world = fixture.world;
                world.wait_until_on_stream(word(fixture)?, Cmp::Eq, VALUE, stream)
            })
        },
    },
    Op {
        name: "quiet-on-stream",
        about: "PE 0 queues quiets, then synchronizes",
        span: Span::Nothing,
        metrics: WAITS,
        who: Who::OneCompleting,
        prepare: |fixture, _| {
            Own::boxed(fixture, |fixture, stream| {
                fixture.world.quiet_on_stream(stream)
            })
        },
    },
    Op {
        name: "barrier-on-stream",
        about: "barriers of all PEs, queued one after another, then synchronized",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |fixture, _| {
            let call: Call = |world, _, _, stream| world.barrier_all_on_stream(stream);
            Together::boxed(fixture, &[], Vec::new(), call)
        },
    },
    Op {
        name: "sync-on-stream",
        about: "likewise, syncs",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |fixture, _| {
            let call: Call = |world, _, _, stream| world.sync_all_on_stream(stream);
            Together::boxed(fixture, &[], Vec::new(), call)
        },
    },
    exchange!(
        "broadcast-on-stream",
        "likewise, from PE 0 to all PEs",
        both,
        |world, to, from, stream| world.broadcast_on_stream(to, from, 0, stream),
        |me, _pes| [u64::from(me == 0)],
        [1]
    ),
    exchange!(
        "fcollect-on-stream",
        "likewise, every PE's words, on all PEs",
        gathered,
        |world, to, from, stream| world.fcollect_on_stream(to, from, stream),
        |me, pes| [me + 1],
        1..=pes
    ),
    exchange!(
        "alltoall-on-stream",
        "likewise, from every PE to every PE, so much each",
        exchanged,
        |world, to, from, stream| world.alltoall_on_stream(to, from, stream),
        |me, pes| (0..pes).map(|to| me * pes + to + 1),
        (0..pes).map(|from| from * pes + me + 1)
    ),
    exchange!(
        "reduce-on-stream",
        "likewise, the sum of all PEs' words",
        both,
        |world, to, from, stream| world.reduce_on_stream(to, from, Fold::Sum, stream),
        |me, pes| [me + 1],
        [(1..=pes).sum()]
    ),
];

/// Copies between this PE's source and the peer's block.
struct Copies {
    stream: Stream,
    shape: Shape,
    moved: Vec<u64>,
    copy: fn(&At<'_>, &Stream) -> Result<()>,
}

impl Copies {
    fn boxed(
        fixture: &Fixture<'_>,
        shape: Shape,
        copy: fn(&At<'_>, &Stream) -> Result<()>,
    ) -> Result<Box<dyn Work>> {
        let moved = pattern::<u64>(shape.op, shape.bytes);
        let zeros = vec![0; moved.len()];
        let (source, block) = match shape.arrives {
            Destination::Peer => (&moved, &zeros),
            Destination::Private | Destination::Source => (&zeros, &moved),
        };
        fixture.world.write(fixture.source.cast()?, source)?;
        fixture.world.write(fixture.block.cast()?, block)?;
        Ok(Box::new(Copies {
            stream: fixture.new_stream()?,
            shape,
            moved,
            copy,
        }))
    }
}

impl Work for Copies {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        let at = At::of(fixture, self.moved.len())?;
        (0..count).try_for_each(|_| (self.copy)(&at, &self.stream))?;
        fixture.world.synchronize(&self.stream)
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        let whole = At::of(fixture, self.moved.len())?;
        let mut go = |slots: &mut [Slot<u64>]| {
            let mut slots = slots.iter();
            slots.try_for_each(|slot| {
                let (block, source) = (slot.block.cast()?, slot.source.cast()?);
                let at = At {
                    block,
                    source,
                    ..whole
                };
                (self.copy)(&at, &self.stream)
            })?;
            fixture.world.synchronize(&self.stream)
        };
        validate::transfers(fixture, role, &self.shape, &mut go)
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, _total: u64) -> anyhow::Result<()> {
        let arrived = match self.shape.arrives {
            Destination::Peer if role.receives => fixture.block,
            Destination::Private | Destination::Source if role.acts => fixture.source,
            _ => return Ok(()),
        };
        fixture.holds(arrived.cast()?, &self.moved)
    }
}

/// A call takes the block, then the source.
type Call = fn(&World, Sym<u64>, Sym<u64>, &Stream) -> Result<()>;

/// A call of all PEs.
struct Together {
    stream: Stream,
    block: Sym<u64>,
    source: Sym<u64>,
    expected: Vec<u64>,
    call: Call,
}

impl Together {
    /// Prepares a call in which this PE sends `mine` and receives `expected`.
    fn boxed(
        fixture: &Fixture<'_>,
        mine: &[u64],
        expected: Vec<u64>,
        call: Call,
    ) -> Result<Box<dyn Work>> {
        let source = fixture.source.cast()?.range(..mine.len())?;
        let block = fixture.block.cast()?.range(..expected.len())?;
        fixture.world.write(source, mine)?;
        fixture.world.write(block, &vec![0; expected.len()])?;
        Ok(Box::new(Together {
            stream: fixture.new_stream()?,
            block,
            source,
            expected,
            call,
        }))
    }
}

impl Work for Together {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        let (world, stream) = (fixture.world, &self.stream);
        (0..count).try_for_each(|_| (self.call)(world, self.block, self.source, stream))?;
        world.synchronize(stream)
    }

    fn check(&self, fixture: &Fixture<'_>, _: Role, _total: u64) -> anyhow::Result<()> {
        fixture.holds(self.block, &self.expected)
    }
}
