//! Round trips: PE 0 and its partner by turns, each waiting for the other. Signals, too.

use anyhow::Context;
use oxshmem::{Cmp, Result, SignalOp};

use super::transfer::CONTIGUOUS;
use crate::perf::ground::{Ground, Seat, pattern, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};
use crate::perf::proof;

const METRICS: &[Metric] = &[Metric::Latency];

pub const OPS: &[Op] = &[
    Op {
        name: "ping-pong",
        about: "p, and wait_until at the other end: half of a round trip",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |ground, _| {
            let send = |ground: &Ground<'_>, _: &[u8], value| {
                ground.world.p(ground.word, value, ground.peer())
            };
            Turns::boxed(ground, Vec::new(), send, await_word)
        },
    },
    Op {
        name: "signal-set",
        about: "signal_set, and signal_wait_until at the other end: half of a round trip",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |ground, _| {
            let send = |ground: &Ground<'_>, _: &[u8], value| {
                let (world, to) = (ground.world, ground.peer());
                world.signal_set(ground.signal, value, to)
            };
            Turns::boxed(ground, Vec::new(), send, await_signal)
        },
    },
    Op {
        name: "signal-add",
        about: "likewise",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |ground, _| {
            let send = |ground: &Ground<'_>, _: &[u8], _| {
                let (world, to) = (ground.world, ground.peer());
                world.signal_add(ground.signal, 1, to)
            };
            Turns::boxed(ground, Vec::new(), send, await_signal)
        },
    },
    Op {
        name: "put-signal",
        about: "put_signal, and signal_wait_until at the other end: half of a round trip",
        span: CONTIGUOUS,
        metrics: METRICS,
        who: Who::Pair,
        prepare: |ground, bytes| {
            let send = |ground: &Ground<'_>, near: &[u8], value| {
                let (world, to) = (ground.world, ground.peer());
                let (block, signal) = (ground.block, ground.signal);
                world.put_signal(block, near, signal, value, SignalOp::Set, to)
            };
            ground.world.write(ground.block, &vec![0; bytes])?;
            Turns::boxed(ground, pattern("put-signal", bytes), send, await_signal)
        },
    },
    Op {
        name: "put-counted",
        about: "put_counted, and wait_counted at the other end: half of a round trip",
        span: CONTIGUOUS,
        metrics: METRICS,
        who: Who::Pair,
        prepare: |ground, bytes| {
            let send = |ground: &Ground<'_>, near: &[u8], _| {
                let (world, to) = (ground.world, ground.peer());
                world.put_counted(ground.block, near, ground.signal, to)
            };
            let wait = |ground: &Ground<'_>, _| ground.world.wait_counted(ground.signal, 1);
            ground.world.write(ground.block, &vec![0; bytes])?;
            Turns::taking(ground, pattern("put-counted", bytes), send, wait)
        },
    },
];

fn await_word(ground: &Ground<'_>, value: u64) -> Result<()> {
    ground.world.wait_until(ground.word, Cmp::Eq, value)
}

fn await_signal(ground: &Ground<'_>, value: u64) -> Result<()> {
    let held = ground
        .world
        .signal_wait_until(ground.signal, Cmp::Eq, value);
    held.map(drop)
}

/// One end of the round trips.
pub struct Turns<S, A> {
    /// Round trips so far.
    trips: u64,
    /// Private memory, sent each time.
    near: Vec<u8>,
    send: S,
    await_it: A,
    /// Whether a wait consumes the signal.
    takes: bool,
}

impl<S, A> Turns<S, A>
where
    S: Fn(&Ground<'_>, &[u8], u64) -> Result<()> + 'static,
    A: Fn(&Ground<'_>, u64) -> Result<()> + 'static,
{
    /// `send` sends a number to the peer, and `await_it` waits for one.
    pub fn boxed(
        ground: &Ground<'_>,
        near: Vec<u8>,
        send: S,
        await_it: A,
    ) -> Result<Box<dyn Work>> {
        Ok(Box::new(Turns::new(ground, near, send, await_it)?))
    }

    /// `send` increments a counter at the peer, and `await_it` waits for one count and consumes it.
    fn taking(ground: &Ground<'_>, near: Vec<u8>, send: S, await_it: A) -> Result<Box<dyn Work>> {
        let turns = Turns::new(ground, near, send, await_it)?;
        let takes = true;
        Ok(Box::new(Turns { takes, ..turns }))
    }

    fn new(ground: &Ground<'_>, near: Vec<u8>, send: S, await_it: A) -> Result<Self> {
        ground.world.write(ground.word, &[0])?;
        ground.world.write(ground.signal, &[0])?;
        Ok(Turns {
            trips: 0,
            near,
            send,
            await_it,
            takes: false,
        })
    }
}

impl<S, A> Work for Turns<S, A>
where
    S: Fn(&Ground<'_>, &[u8], u64) -> Result<()>,
    A: Fn(&Ground<'_>, u64) -> Result<()>,
{
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        let begins = ground.leads();
        for trip in self.trips + 1..=self.trips + count {
            if begins {
                (self.send)(ground, &self.near, trip)?;
                (self.await_it)(ground, trip)?;
            } else {
                (self.await_it)(ground, trip)?;
                (self.send)(ground, &self.near, trip)?;
            }
        }
        self.trips += count;
        Ok(())
    }

    fn prove(&mut self, ground: &Ground<'_>, seat: Seat) -> anyhow::Result<()> {
        if !seat.acts || self.near.is_empty() {
            return Ok(());
        }
        for number in 0..proof::SLOTS {
            self.near = pattern(&format!("trip {number}"), self.near.len());
            self.trips += 1;
            if ground.leads() {
                (self.send)(ground, &self.near, self.trips)?;
            }
            (self.await_it)(ground, self.trips)?;
            // By now all the data has arrived, and nothing follows before this PE has answered.
            ground
                .holds(ground.block, &self.near)
                .with_context(|| proof::of(number))?;
            if !ground.leads() {
                (self.send)(ground, &self.near, self.trips)?;
            }
        }
        Ok(())
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()> {
        if !seat.acts {
            return Ok(());
        }
        let (world, me) = (ground.world, ground.world.my_pe());
        // Each kind counts in one of the two words, and leaves the other unchanged.
        same_word(
            world.g(ground.word, me)? + world.signal_fetch(ground.signal)?,
            if self.takes { 0 } else { total },
        )?;
        ground.holds(ground.block, &self.near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::ground::Room;
    use oxshmem::testing::spmd;

    #[test]
    fn a_signal_without_its_data_is_found() {
        let room = Room {
            block: 64,
            source: 0,
        };
        // To itself: each trip sends the first trip's data, or its own.
        for (stale, right) in [(true, false), (false, true)] {
            spmd(1, |world| {
                let ground = Ground::new(world, None, room, 1)?;
                let near = pattern::<u8>("test", 64);
                let first = near.clone();
                let send = move |ground: &Ground<'_>, near: &[u8], value| {
                    let data = if stale { &first } else { near };
                    let (block, signal) = (ground.block.range(..64)?, ground.signal);
                    ground
                        .world
                        .put_signal(block, data, signal, value, SignalOp::Set, 0)
                };
                let mut work = Turns::boxed(&ground, near, send, await_signal)?;
                assert_eq!(work.prove(&ground, Seat::BOTH).is_ok(), right);
                ground.free()
            })
            .unwrap();
        }
    }
}
