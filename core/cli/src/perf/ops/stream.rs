//! What GPUs do in a stream's order, between objects in their memory.

use oxshmem::cuda::{Stream, StreamOptions};
use oxshmem::{Error, Fold, Result, Sym, World};

use super::collective::{METRICS, both};
use crate::perf::ground::{Ground, Seat, pattern, same_bytes};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};
use crate::perf::proof::{self, Shape, Side, Slot};

const COPIES: &[Metric] = &[Metric::Latency, Metric::Bandwidth, Metric::Rate];
const WORDS: Span = Span::Blocks {
    element: size_of::<u64>(),
    room: both,
};

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
        name: "barrier-on-stream",
        about: "barriers of all PEs, queued one after another, then synchronized",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, _| {
            let call: Call = |world, _, _, stream| world.barrier_all_on_stream(stream);
            Together::boxed(ground, 0, [0, 0], call)
        },
    },
    Op {
        name: "broadcast-on-stream",
        about: "likewise, from PE 0 to all PEs",
        span: WORDS,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, bytes| {
            let call: Call =
                |world, to, from, stream| world.broadcast_on_stream(to, from, 0, stream);
            let mine = u64::from(ground.leads());
            Together::boxed(ground, bytes, [mine, 1], call)
        },
    },
    Op {
        name: "reduce-on-stream",
        about: "likewise, the sum of all PEs' words",
        span: WORDS,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, bytes| {
            let call: Call =
                |world, to, from, stream| world.reduce_on_stream(to, from, Fold::Sum, stream);
            let (me, pes) = (ground.world.my_pe() as u64, ground.world.n_pes() as u64);
            Together::boxed(ground, bytes, [me + 1, (1..=pes).sum()], call)
        },
    },
];

/// A stream of this PE's GPU, for the row.
fn new_stream(ground: &Ground<'_>) -> Result<Stream> {
    let context = ground.world.gpu_context().ok_or_else(|| Error::Argument {
        call: "perf",
        what: "this PE has no GPU".into(),
    })?;
    Ok(Stream::new(context, &StreamOptions::default())?)
}

/// Where a copy goes from and to.
struct At<'w> {
    world: &'w World,
    block: Sym<u8>,
    source: Sym<u8>,
    pe: usize,
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
        let at = At {
            world: ground.world,
            block: ground.block.range(..self.shape.bytes)?,
            source: ground.source.range(..self.shape.bytes)?,
            pe: ground.peer(),
        };
        (0..count).try_for_each(|_| (self.copy)(&at, &self.stream))?;
        ground.world.synchronize(&self.stream)
    }

    fn prove(&mut self, ground: &Ground<'_>, seat: Seat) -> anyhow::Result<()> {
        let mut go = |slots: &mut [Slot<u64>]| {
            let mut slots = slots.iter();
            slots.try_for_each(|slot| {
                let at = At {
                    world: ground.world,
                    block: slot.block,
                    source: slot.source,
                    pe: ground.peer(),
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
        let mut found = vec![0; self.shape.bytes];
        ground
            .world
            .read(&mut found, arrived.range(..self.shape.bytes)?)?;
        same_bytes(&found, bytemuck::cast_slice(&self.moved))
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
    /// Everyone gives words times the first factor, and gets them times the second.
    fn boxed(
        ground: &Ground<'_>,
        bytes: usize,
        [gives, gets]: [u64; 2],
        call: Call,
    ) -> Result<Box<dyn Work>> {
        let words = pattern::<u64>("on-stream", bytes);
        let times = |factor: u64| -> Vec<u64> {
            let product = |word: &u64| word.wrapping_mul(factor);
            words.iter().map(product).collect()
        };
        let source = ground.source.cast()?.range(..words.len())?;
        let block = ground.block.cast()?.range(..words.len())?;
        ground.world.write(source, &times(gives))?;
        ground.world.write(block, &vec![0; words.len()])?;
        Ok(Box::new(Together {
            stream: new_stream(ground)?,
            block,
            source,
            expected: times(gets),
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
        let mut found = vec![0; self.expected.len()];
        ground.world.read(&mut found, self.block)?;
        same_bytes(
            bytemuck::cast_slice(&found),
            bytemuck::cast_slice(&self.expected),
        )
    }
}
