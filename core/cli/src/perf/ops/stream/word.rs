//! Words that streams update and wait for. They lie at the end of the blocks, in GPU memory.

use anyhow::{Context, ensure};
use oxshmem::cuda::Stream;
use oxshmem::{Cmp, Result, Sym, World};

use super::new_stream;
use crate::perf::ground::{Ground, Seat, VALUE, pattern, same_word};
use crate::perf::op::Work;
use crate::perf::proof;

/// The word at the end of the block, on this PE and on each other.
pub fn word(ground: &Ground<'_>) -> Result<Sym<u64>> {
    let words = ground.block.cast::<u64>()?;
    words.at(words.len() - 1)
}

/// The memory and the PE that a row's calls use.
pub struct At<'w> {
    pub world: &'w World,
    pub block: Sym<u64>,
    pub source: Sym<u64>,
    pub signal: Sym<u64>,
    pub pe: usize,
}

impl<'w> At<'w> {
    /// The place for so many words.
    pub fn of(ground: &Ground<'w>, words: usize) -> Result<Self> {
        Ok(At {
            world: ground.world,
            block: ground.block.cast()?.range(..words)?,
            source: ground.source.cast()?.range(..words)?,
            signal: word(ground)?,
            pe: ground.peer(),
        })
    }
}

/// Queues the send of a round trip, by its number, with the data if there is any.
type Send = fn(&At<'_>, u64, &Stream) -> Result<()>;

/// One end of the round trips, in which each stream waits for the other.
pub struct Turns {
    stream: Stream,
    /// Round trips so far.
    trips: u64,
    /// The data sent each time.
    data: Vec<u64>,
    send: Send,
}

impl Turns {
    pub fn boxed(ground: &Ground<'_>, bytes: usize, send: Send) -> Result<Box<dyn Work>> {
        let turns = Turns {
            stream: new_stream(ground)?,
            trips: 0,
            data: pattern("turns", bytes),
            send,
        };
        let at = At::of(ground, turns.data.len())?;
        ground.world.write(at.source, &turns.data)?;
        ground.world.write(at.block, &vec![0; turns.data.len()])?;
        ground.world.write(at.signal, &[0])?;
        Ok(Box::new(turns))
    }

    fn send(&self, at: &At<'_>, trip: u64) -> Result<()> {
        (self.send)(at, trip, &self.stream)
    }

    fn wait(&self, at: &At<'_>, trip: u64) -> Result<()> {
        at.world
            .wait_until_on_stream(at.signal, Cmp::Eq, trip, &self.stream)
    }
}

impl Work for Turns {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        let at = At::of(ground, self.data.len())?;
        for trip in self.trips + 1..=self.trips + count {
            if ground.leads() {
                self.send(&at, trip)?;
                self.wait(&at, trip)?;
            } else {
                self.wait(&at, trip)?;
                self.send(&at, trip)?;
            }
        }
        self.trips += count;
        ground.world.synchronize(&self.stream)
    }

    fn prove(&mut self, ground: &Ground<'_>, seat: Seat) -> anyhow::Result<()> {
        if !seat.acts || self.data.is_empty() {
            return Ok(());
        }
        let at = At::of(ground, self.data.len())?;
        for number in 0..proof::SLOTS {
            self.data = pattern(&format!("trip {number}"), size_of_val(&*self.data));
            ground.world.write(at.source, &self.data)?;
            self.trips += 1;
            if ground.leads() {
                self.send(&at, self.trips)?;
            }
            self.wait(&at, self.trips)?;
            ground.world.synchronize(&self.stream)?;
            // By now all the data has arrived, and nothing follows before this PE has answered.
            ground
                .holds(at.block, &self.data)
                .with_context(|| proof::of(number))?;
            if !ground.leads() {
                self.send(&at, self.trips)?;
                ground.world.synchronize(&self.stream)?;
            }
        }
        Ok(())
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()> {
        if !seat.acts {
            return Ok(());
        }
        let at = At::of(ground, self.data.len())?;
        same_word(ground.world.g(at.signal, ground.world.my_pe())?, total)?;
        ground.holds(at.block, &self.data)
    }
}

/// An operation of a stream on this PE alone, and how often it was queued.
pub struct Own {
    stream: Stream,
    call: fn(&Ground<'_>, &Stream) -> Result<()>,
    called: u64,
}

impl Own {
    /// Sets the word's value by a put from the peer, since waits are for remote data.
    pub fn boxed(
        ground: &Ground<'_>,
        call: fn(&Ground<'_>, &Stream) -> Result<()>,
    ) -> Result<Box<dyn Work>> {
        let word = word(ground)?;
        ground.world.write(word, &[0])?;
        ground.world.barrier_all()?;
        if ground.answers() {
            ground.world.p(word, VALUE, ground.peer())?;
        }
        Ok(Box::new(Own {
            stream: new_stream(ground)?,
            call,
            called: 0,
        }))
    }
}

impl Work for Own {
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| (self.call)(ground, &self.stream))?;
        self.called += count;
        ground.world.synchronize(&self.stream)
    }

    fn check(&self, ground: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()> {
        if !seat.acts {
            return Ok(());
        }
        let called = self.called;
        ensure!(called == total, "it was queued {called} times of {total}");
        same_word(ground.world.g(word(ground)?, ground.world.my_pe())?, VALUE)
    }
}
