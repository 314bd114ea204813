//! What all PEs do together.

use oxshmem::{Result, Sym, World};

use crate::perf::ground::{Ground, Room, Seat, pattern, same_bytes, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};

const METRICS: &[Metric] = &[Metric::Latency];

pub const OPS: &[Op] = &[
    Op {
        name: "barrier",
        about: "barrier_all of all PEs",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, _| Meeting::boxed(ground, World::barrier_all),
    },
    Op {
        name: "sync",
        about: "sync_all of all PEs",
        span: Span::Nothing,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, _| Meeting::boxed(ground, World::sync_all),
    },
    Op {
        name: "broadcast",
        about: "from PE 0 to all PEs",
        span: BLOCKS,
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, bytes| {
            let expected = pattern::<u8>("broadcast", bytes);
            let call = |world: &World, to, from| world.broadcast(to, from, 0);
            match ground.leads() {
                true => Exchange::boxed(ground, &expected.clone(), expected, call),
                false => Exchange::boxed(ground, &vec![0; bytes], expected, call),
            }
        },
    },
    Op {
        name: "sum-reduce",
        about: "the sum of all PEs' words, on all PEs",
        span: Span::Blocks {
            element: size_of::<u64>(),
            room: both,
        },
        metrics: METRICS,
        who: Who::All,
        prepare: |ground, bytes| {
            let words = pattern::<u64>("sum-reduce", bytes);
            let times = |factor: u64| -> Vec<u64> {
                let times = |word: &u64| word.wrapping_mul(factor);
                words.iter().map(times).collect()
            };
            let (me, pes) = (ground.world.my_pe() as u64, ground.world.n_pes() as u64);
            // PE i has the words i + 1 times.
            let sum = times(pes * (pes + 1) / 2);
            Exchange::boxed(ground, &times(me + 1), sum, World::sum_reduce)
        },
    },
];

const BLOCKS: Span = Span::Blocks {
    element: 1,
    room: both,
};

fn both(bytes: usize, _pes: usize) -> Room {
    Room {
        block: bytes,
        source: bytes,
    }
}

/// A call that moves nothing.
struct Meeting<F>(F);

impl<F: Fn(&World) -> Result<()> + 'static> Meeting<F> {
    fn boxed(ground: &Ground<'_>, call: F) -> Result<Box<dyn Work>> {
        ground.world.write(ground.word, &[0])?;
        Ok(Box::new(Meeting(call)))
    }
}

impl<F: Fn(&World) -> Result<()>> Work for Meeting<F> {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| (self.0)(ground.world))
    }

    fn check(&self, ground: &Ground<'_>, _: Seat, _total: u64) -> anyhow::Result<()> {
        // Whatever comes before it at one PE has happened after it at the others.
        let (world, me, pes) = (ground.world, ground.world.my_pe(), ground.world.n_pes());
        let (next, before) = ((me + 1) % pes, (me + pes - 1) % pes);
        world.p(ground.word, me as u64 + 1, next)?;
        world.quiet()?;
        (self.0)(world)?;
        same_word(world.g(ground.word, me)?, before as u64 + 1)
    }
}

/// A call that brings every PE something, from all PEs' sources to their blocks.
struct Exchange<T, F> {
    source: Sym<T>,
    block: Sym<T>,
    /// What the block should hold afterwards.
    expected: Vec<T>,
    call: F,
}

impl<T, F> Exchange<T, F>
where
    T: oxshmem::Pod,
    F: Fn(&World, Sym<T>, Sym<T>) -> Result<()> + 'static,
{
    /// `call` takes the block, then the source.
    fn boxed(ground: &Ground<'_>, mine: &[T], expected: Vec<T>, call: F) -> Result<Box<dyn Work>> {
        let source = ground.source.cast::<T>()?.range(..mine.len())?;
        let block = ground.block.cast::<T>()?.range(..expected.len())?;
        ground.world.write(source, mine)?;
        ground
            .world
            .write(block, &vec![T::zeroed(); expected.len()])?;
        Ok(Box::new(Exchange {
            source,
            block,
            expected,
            call,
        }))
    }
}

impl<T, F> Work for Exchange<T, F>
where
    T: oxshmem::Pod,
    F: Fn(&World, Sym<T>, Sym<T>) -> Result<()>,
{
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| (self.call)(ground.world, self.block, self.source))
    }

    fn check(&self, ground: &Ground<'_>, _: Seat, _total: u64) -> anyhow::Result<()> {
        let mut block = vec![T::zeroed(); self.expected.len()];
        ground.world.read(&mut block, self.block)?;
        same_bytes(
            bytemuck::cast_slice(&block),
            bytemuck::cast_slice(&self.expected),
        )
    }
}
