//! Round trips: PE 0 and its partner by turns, each waiting for the other. Signals, too.

use anyhow::Context;
use oxshmem::{Cmp, Result, SignalOp};

use super::transfer::CONTIGUOUS;
use crate::perf::fixture::{Fixture, Role, pattern, same_word};
use crate::perf::metric::Metric;
use crate::perf::op::{Op, Span, Who, Work};
use crate::perf::validate;

const METRICS: &[Metric] = &[Metric::Latency];

pub const OPS: &[Op] = &[
    Op {
        name: "ping-pong",
        about: "p, and wait_until at the other end: half of a round trip",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |fixture, _| {
            let send = |fixture: &Fixture<'_>, _: &[u8], value| {
                fixture.world.p(fixture.word, value, fixture.peer())
            };
            Turns::boxed(fixture, Vec::new(), send, await_word)
        },
    },
    Op {
        name: "signal-set",
        about: "signal_set, and signal_wait_until at the other end: half of a round trip",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |fixture, _| {
            let send = |fixture: &Fixture<'_>, _: &[u8], value| {
                let (world, to) = (fixture.world, fixture.peer());
                world.signal_set(fixture.signal, value, to)
            };
            Turns::boxed(fixture, Vec::new(), send, await_signal)
        },
    },
    Op {
        name: "signal-add",
        about: "likewise",
        span: Span::Values(&[8]),
        metrics: METRICS,
        who: Who::Pair,
        prepare: |fixture, _| {
            let send = |fixture: &Fixture<'_>, _: &[u8], _| {
                let (world, to) = (fixture.world, fixture.peer());
                world.signal_add(fixture.signal, 1, to)
            };
            Turns::boxed(fixture, Vec::new(), send, await_signal)
        },
    },
    Op {
        name: "put-signal",
        about: "put_signal, and signal_wait_until at the other end: half of a round trip",
        span: CONTIGUOUS,
        metrics: METRICS,
        who: Who::Pair,
        prepare: |fixture, bytes| {
            let send = |fixture: &Fixture<'_>, local: &[u8], value| {
                let (world, to) = (fixture.world, fixture.peer());
                let (block, signal) = (fixture.block, fixture.signal);
                world.put_signal(block, local, signal, value, SignalOp::Set, to)
            };
            fixture.world.write(fixture.block, &vec![0; bytes])?;
            Turns::boxed(fixture, pattern("put-signal", bytes), send, await_signal)
        },
    },
    Op {
        name: "put-counted",
        about: "put_counted, and wait_counted at the other end: half of a round trip",
        span: CONTIGUOUS,
        metrics: METRICS,
        who: Who::Pair,
        prepare: |fixture, bytes| {
            let send = |fixture: &Fixture<'_>, local: &[u8], _| {
                let (world, to) = (fixture.world, fixture.peer());
                world.put_counted(fixture.block, local, fixture.signal, to)
            };
            let wait = |fixture: &Fixture<'_>, _| fixture.world.wait_counted(fixture.signal, 1);
            fixture.world.write(fixture.block, &vec![0; bytes])?;
            Turns::taking(fixture, pattern("put-counted", bytes), send, wait)
        },
    },
];

fn await_word(fixture: &Fixture<'_>, value: u64) -> Result<()> {
    fixture.world.wait_until(fixture.word, Cmp::Eq, value)
}

fn await_signal(fixture: &Fixture<'_>, value: u64) -> Result<()> {
    let held = fixture
        .world
        .signal_wait_until(fixture.signal, Cmp::Eq, value);
    held.map(drop)
}

/// One end of the round trips.
pub struct Turns<S, A> {
    /// Round trips so far.
    trips: u64,
    /// Private memory, sent each time.
    local: Vec<u8>,
    send: S,
    await_it: A,
    /// Whether a wait consumes the signal.
    takes: bool,
}

impl<S, A> Turns<S, A>
where
    S: Fn(&Fixture<'_>, &[u8], u64) -> Result<()> + 'static,
    A: Fn(&Fixture<'_>, u64) -> Result<()> + 'static,
{
    /// `send` sends a number to the peer, and `await_it` waits for one.
    pub fn boxed(
        fixture: &Fixture<'_>,
        local: Vec<u8>,
        send: S,
        await_it: A,
    ) -> Result<Box<dyn Work>> {
        Ok(Box::new(Turns::new(fixture, local, send, await_it)?))
    }

    /// `send` increments a counter at the peer, and `await_it` waits for one count and consumes it.
    fn taking(
        fixture: &Fixture<'_>,
        local: Vec<u8>,
        send: S,
        await_it: A,
    ) -> Result<Box<dyn Work>> {
        let turns = Turns::new(fixture, local, send, await_it)?;
        let takes = true;
        Ok(Box::new(Turns { takes, ..turns }))
    }

    fn new(fixture: &Fixture<'_>, local: Vec<u8>, send: S, await_it: A) -> Result<Self> {
        fixture.world.write(fixture.word, &[0])?;
        fixture.world.write(fixture.signal, &[0])?;
        Ok(Turns {
            trips: 0,
            local,
            send,
            await_it,
            takes: false,
        })
    }
}

impl<S, A> Work for Turns<S, A>
where
    S: Fn(&Fixture<'_>, &[u8], u64) -> Result<()>,
    A: Fn(&Fixture<'_>, u64) -> Result<()>,
{
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        let begins = fixture.leads();
        for trip in self.trips + 1..=self.trips + count {
            if begins {
                (self.send)(fixture, &self.local, trip)?;
                (self.await_it)(fixture, trip)?;
            } else {
                (self.await_it)(fixture, trip)?;
                (self.send)(fixture, &self.local, trip)?;
            }
        }
        self.trips += count;
        Ok(())
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        if !role.acts || self.local.is_empty() {
            return Ok(());
        }
        for number in 0..validate::SLOTS {
            self.local = pattern(&format!("trip {number}"), self.local.len());
            self.trips += 1;
            if fixture.leads() {
                (self.send)(fixture, &self.local, self.trips)?;
            }
            (self.await_it)(fixture, self.trips)?;
            // By now all the data has arrived, and nothing follows before this PE has answered.
            fixture
                .holds(fixture.block, &self.local)
                .with_context(|| validate::of(number))?;
            if !fixture.leads() {
                (self.send)(fixture, &self.local, self.trips)?;
            }
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()> {
        if !role.acts {
            return Ok(());
        }
        let (world, me) = (fixture.world, fixture.world.my_pe());
        // Each kind counts in one of the two words, and leaves the other unchanged.
        same_word(
            world.g(fixture.word, me)? + world.signal_fetch(fixture.signal)?,
            if self.takes { 0 } else { total },
        )?;
        fixture.holds(fixture.block, &self.local)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::fixture::Footprint;
    use oxshmem::testing::spmd;

    #[test]
    fn a_signal_without_its_data_is_found() {
        let footprint = Footprint {
            block: 64,
            source: 0,
        };
        // To itself: each trip sends the first trip's data, or its own.
        for (stale, right) in [(true, false), (false, true)] {
            spmd(1, |world| {
                let fixture = Fixture::new(world, None, footprint, 1)?;
                let local = pattern::<u8>("test", 64);
                let first = local.clone();
                let send = move |fixture: &Fixture<'_>, local: &[u8], value| {
                    let data = if stale { &first } else { local };
                    let (block, signal) = (fixture.block.range(..64)?, fixture.signal);
                    fixture
                        .world
                        .put_signal(block, data, signal, value, SignalOp::Set, 0)
                };
                let mut work = Turns::boxed(&fixture, local, send, await_signal)?;
                assert_eq!(work.validate(&fixture, Role::BOTH).is_ok(), right);
                fixture.free()
            })
            .unwrap();
        }
    }
}
