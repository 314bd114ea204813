//! Words that streams update and wait for. They lie at the end of the blocks, in GPU memory.

use anyhow::{Context, ensure};
use oxshmem::cuda::Stream;
use oxshmem::{Cmp, Result, Sym, World};

use crate::perf::fixture::{Fixture, Role, VALUE, pattern, same_word};
use crate::perf::op::Work;
use crate::perf::validate;

/// The word at the end of the block, on this PE and on each other.
pub fn word(fixture: &Fixture<'_>) -> Result<Sym<u64>> {
    let words = fixture.block.cast::<u64>()?;
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
    pub fn of(fixture: &Fixture<'w>, words: usize) -> Result<Self> {
        Ok(At {
            world: fixture.world,
            block: fixture.block.cast()?.range(..words)?,
            source: fixture.source.cast()?.range(..words)?,
            signal: word(fixture)?,
            pe: fixture.peer(),
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
    pub fn boxed(fixture: &Fixture<'_>, bytes: usize, send: Send) -> Result<Box<dyn Work>> {
        let turns = Turns {
            stream: fixture.new_stream()?,
            trips: 0,
            data: pattern("turns", bytes),
            send,
        };
        let at = At::of(fixture, turns.data.len())?;
        fixture.world.write(at.source, &turns.data)?;
        fixture.world.write(at.block, &vec![0; turns.data.len()])?;
        fixture.world.write(at.signal, &[0])?;
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
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        let at = At::of(fixture, self.data.len())?;
        for trip in self.trips + 1..=self.trips + count {
            if fixture.leads() {
                self.send(&at, trip)?;
                self.wait(&at, trip)?;
            } else {
                self.wait(&at, trip)?;
                self.send(&at, trip)?;
            }
        }
        self.trips += count;
        fixture.world.synchronize(&self.stream)
    }

    fn validate(&mut self, fixture: &Fixture<'_>, role: Role) -> anyhow::Result<()> {
        if !role.acts || self.data.is_empty() {
            return Ok(());
        }
        let at = At::of(fixture, self.data.len())?;
        for number in 0..validate::SLOTS {
            self.data = pattern(&format!("trip {number}"), size_of_val(&*self.data));
            fixture.world.write(at.source, &self.data)?;
            self.trips += 1;
            if fixture.leads() {
                self.send(&at, self.trips)?;
            }
            self.wait(&at, self.trips)?;
            fixture.world.synchronize(&self.stream)?;
            // By now all the data has arrived, and nothing follows before this PE has answered.
            fixture
                .holds(at.block, &self.data)
                .with_context(|| validate::of(number))?;
            if !fixture.leads() {
                self.send(&at, self.trips)?;
                fixture.world.synchronize(&self.stream)?;
            }
        }
        Ok(())
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()> {
        if !role.acts {
            return Ok(());
        }
        let at = At::of(fixture, self.data.len())?;
        same_word(fixture.world.g(at.signal, fixture.world.my_pe())?, total)?;
        fixture.holds(at.block, &self.data)
    }
}

/// An operation of a stream on this PE alone, and how often it was queued.
pub struct Own {
    stream: Stream,
    call: fn(&Fixture<'_>, &Stream) -> Result<()>,
    called: u64,
}

impl Own {
    /// Sets the word's value by a put from the peer, since waits are for remote data.
    pub fn boxed(
        fixture: &Fixture<'_>,
        call: fn(&Fixture<'_>, &Stream) -> Result<()>,
    ) -> Result<Box<dyn Work>> {
        let word = word(fixture)?;
        fixture.world.write(word, &[0])?;
        fixture.world.barrier_all()?;
        if fixture.answers() {
            fixture.world.p(word, VALUE, fixture.peer())?;
        }
        Ok(Box::new(Own {
            stream: fixture.new_stream()?,
            call,
            called: 0,
        }))
    }
}

impl Work for Own {
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()> {
        (0..count).try_for_each(|_| (self.call)(fixture, &self.stream))?;
        self.called += count;
        fixture.world.synchronize(&self.stream)
    }

    fn check(&self, fixture: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()> {
        if !role.acts {
            return Ok(());
        }
        let called = self.called;
        ensure!(called == total, "it was queued {called} times of {total}");
        same_word(
            fixture.world.g(word(fixture)?, fixture.world.my_pe())?,
            VALUE,
        )
    }
}
