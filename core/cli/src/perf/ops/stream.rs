//! Operations that GPUs do in stream order, between objects in their memory.

mod word;

use oxshmem::cuda::{Stream, StreamOptions};
use oxshmem::{Cmp, Error, Fold, Result, SignalOp, Sym, World};

use self::word::{At, Own, Turns, word};
use super::collective::{METRICS, both, exchanged, gathered, times};
use crate::perf::ground::{Ground, Room, Seat, VALUE, pattern};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};
use crate::perf::proof::{self, Shape, Side, Slot};

const COPIES: &[Metric] = &[Metric::Latency, Metric::Bandwidth, Metric::Rate];
const WORDS: Span = Span::words(both);

const WAITS: &[Metric] = &[Metric::Latency, Metric::Rate];
const ONE_WORD: Span = Span::Values(&[size_of::<u64>()]);

/// Defines a collective that moves words. From a PE's number and the number of PEs, `$mine` and
/// `$gets` are the factors of the words that it sends and receives.
macro_rules! exchange {
    ($name:literal, $about:literal, $room:expr, $call:expr,
        |$me:ident, $pes:ident| $mine:expr, $gets:expr) => {
        Op {
            name: $name,
            about: $about,
            span: Span::words($room),
            metrics: METRICS,
            who: Who::All,
            prepare: |ground, bytes| {
                let ($me, $pes) = (ground.world.my_pe() as u64, ground.world.n_pes() as u64);
                let words = pattern::<u64>($name, bytes);
                let mine = times(&words, $mine, 1);
                Together::boxed(ground, &mine, times(&words, $gets, 1), $call)
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
        prepare: |ground, bytes| {
            let shape = Shape::new("put-on-stream", bytes, Side::Far).symmetric();
            Copies::boxed(ground, shape, |at, stream| {
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
        prepare: |ground, bytes| {
            let shape = Shape::new("get-on-stream", bytes, Side::Source).symmetric();
            Copies::boxed(ground, shape, |at, stream| {
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
        prepare: |ground, _| {
            Turns::boxed(ground, 0, |at, value, stream| {
                let (world, to) = (at.world, at.pe);
                world.signal_on_stream(at.signal, value, SignalOp::Set, to, stream)
            })
        },
    },
    Op {
        name: "put-signal-on-stream",
        about: "likewise, a put with its signal",
        span: Span::words(|bytes, _| Room {
            // The signal lies behind the data.
            block: bytes.saturating_add(size_of::<u64>()),
            source: bytes,
        }),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |ground, bytes| {
            Turns::boxed(ground, bytes, |at, value, stream| {
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
        prepare: |ground, _| {
            Own::boxed(ground, |ground, stream| {
                let world = ground.world;
                world.wait_until_on_stream(word(ground)?, Cmp::Eq, VALUE, stream)
            })
        },
    },
    Op {
        name: "quiet-on-stream",
        about: "PE 0 queues quiets, then synchronizes",
        span: Span::Nothing,
        metrics: WAITS,
        who: Who::OneCompleting,
        prepare: |ground, _| {
            Own::boxed(ground, |ground, stream| {
                ground.world.quiet_on_stream(stream)
            })
        },
    },
    Op {
        name: "barrier-on-stream",
        about: "barriers of all PEs, queued one after another, then synchronized",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, _| {
            let call: Call = |world, _, _, stream| world.barrier_all_on_stream(stream);
            Together::boxed(ground, &[], Vec::new(), call)
        },
    },
    Op {
        name: "sync-on-stream",
        about: "likewise, syncs",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, _| {
            let call: Call = |world, _, _, stream| world.sync_all_on_stream(stream);
            Together::boxed(ground, &[], Vec::new(), call)
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

/// A new stream of this PE's GPU, for the row.
fn new_stream(ground: &Ground<'_>) -> Result<Stream> {
    let context = ground.world.gpu_context().ok_or_else(|| Error::Argument {
        call: "perf",
        what: "this PE has no GPU".into(),
    })?;
    Ok(Stream::new(context, &StreamOptions::default())?)
}

/// Copies between this PE's source and the peer's block.
struct Copies {
    stream: Stream,
    shape: Shape,
    moved: Vec<u64>,
    copy: fn(&At<'_>, &Stream) -> Result<()>,
}

impl Copies {
    fn boxed(
        ground: &Ground<'_>,
        shape: Shape,
        copy: fn(&At<'_>, &Stream) -> Result<()>,
    ) -> Result<Box<dyn Work>> {
        let moved = pattern::<u64>(shape.op, shape.bytes);
        let zeros = vec![0; moved.len()];
        let (source, block) = match shape.arrives {
            Side::Far => (&moved, &zeros),
            Side::Near | Side::Source => (&zeros, &moved),
        };
        ground.world.write(ground.source.cast()?, source)?;
        ground.world.write(ground.block.cast()?, block)?;
        Ok(Box::new(Copies {
            stream: new_stream(ground)?,
            shape,
            moved,
            copy,
        }))
    }
}

impl Work for Copies {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        let at = At::of(ground, self.moved.len())?;
        (0..count).try_for_each(|_| (self.copy)(&at, &self.stream))?;
        ground.world.synchronize(&self.stream)
    }

    fn prove(&mut self, ground: &Ground<'_>, seat: Seat) -> anyhow::Result<()> {
        let whole = At::of(ground, self.moved.len())?;
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
            ground.world.synchronize(&self.stream)
        };
        proof::transfers(ground, seat, &self.shape, &mut go)
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, _total: u64) -> anyhow::Result<()> {
        let arrived = match self.shape.arrives {
            Side::Far if seat.receives => ground.block,
            Side::Near | Side::Source if seat.acts => ground.source,
            _ => return Ok(()),
        };
        ground.holds(arrived.cast()?, &self.moved)
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
        ground: &Ground<'_>,
        mine: &[u64],
        expected: Vec<u64>,
        call: Call,
    ) -> Result<Box<dyn Work>> {
        let source = ground.source.cast()?.range(..mine.len())?;
        let block = ground.block.cast()?.range(..expected.len())?;
        ground.world.write(source, mine)?;
        ground.world.write(block, &vec![0; expected.len()])?;
        Ok(Box::new(Together {
            stream: new_stream(ground)?,
            block,
            source,
            expected,
            call,
        }))
    }
}

impl Work for Together {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        let (world, stream) = (ground.world, &self.stream);
        (0..count).try_for_each(|_| (self.call)(world, self.block, self.source, stream))?;
        world.synchronize(stream)
    }

    fn check(&self, ground: &Ground<'_>, _: Seat, _total: u64) -> anyhow::Result<()> {
        ground.holds(self.block, &self.expected)
    }
}
