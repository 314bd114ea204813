//! The measurement of links between the members, one PE for each NIC of each host.

use std::time::{Duration, Instant};

use anyhow::Context;
use oxshmem::{Cmp, Result, SignalOp, Sym, World};
use serde::{Deserialize, Serialize};

/// How much is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Effort {
    /// Words of a block.
    #[serde(skip)]
    pub words: usize,
    pub block_bytes: usize,
    /// Round trips of a batch, and their batches.
    pub round_trips: u64,
    pub latency_batches: usize,
    /// Batches of blocks.
    pub batches: usize,
    /// The least duration of a batch of blocks.
    pub batch: Duration,
}

/// The figures of a link, from one member to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    /// Nanoseconds of a small put with its flag: half of a round trip.
    pub latency: f64,
    /// Bytes per second one way.
    pub one_way: f64,
    /// Bytes per second of both directions at once, their sum.
    pub both_ways: f64,
    /// Words with wrong data that `from` got from `to`.
    pub wrong: u64,
}

/// The figures of a member while all were busy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Share {
    pub member: usize,
    /// Bytes per second that it sent.
    pub sent: f64,
    /// Words with wrong data that it got.
    pub wrong: u64,
}

/// Words that partners write: a word each for turns, round trips, their data and the number of blocks.
const TURN: usize = 0;
const PING: usize = 1;
const DATA: usize = 2;
const BLOCKS: usize = 3;
/// Words apart, so that none shares a cache line.
const APART: usize = 16;
/// Steps of one round.
const STEPS: u64 = 1000;
/// A batch beyond this is the last of its kind: the link is slow, and enough is known.
const LONG: Duration = Duration::from_millis(400);

/// The word that belongs at a place of a block, so that each sender and round has data of its own.
fn word(seed: u64, at: usize) -> u64 {
    let mixed = (seed ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// A PE's part in the measurement.
pub struct Prober<'w> {
    world: &'w World,
    effort: Effort,
    /// The PE of each member.
    members: Vec<usize>,
    /// This PE's number as a member.
    me: Option<usize>,
    words: Sym<u64>,
    block: Sym<u64>,
    source: Sym<u64>,
    /// Rounds so far.
    round: u64,
}

impl<'w> Prober<'w> {
    /// Collective.
    pub fn new(world: &'w World, effort: Effort, members: Vec<usize>) -> Result<Self> {
        let me = members.iter().position(|pe| *pe == world.my_pe());
        Ok(Prober {
            world,
            effort,
            me,
            words: world.alloc_zeroed(4 * APART)?,
            block: world.alloc_zeroed(effort.words)?,
            source: world.alloc_zeroed(effort.words)?,
            members,
            round: 0,
        })
    }

    /// Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.words)?;
        self.world.free(self.block)?;
        self.world.free(self.source)
    }

    fn word(&self, which: usize) -> Result<Sym<u64>> {
        self.words.at(which * APART)
    }

    fn pe(&self, member: usize) -> usize {
        self.members.get(member).copied().unwrap_or_default()
    }

    /// Measures the pairs of a round, all at once. Returns what this PE has sent. Collective.
    pub fn round(&mut self, pairs: &[(usize, usize)]) -> anyhow::Result<Option<Link>> {
        self.round += 1;
        let mut link = None;
        let mine = self.me.and_then(|me| {
            let pair = pairs.iter().find(|(a, b)| *a == me || *b == me)?;
            Some((me, if pair.0 == me { pair.1 } else { pair.0 }))
        });
        if let Some((me, other)) = mine {
            let measured = self.pair(me, other);
            link = Some(
                measured
                    .with_context(|| format!("PE {} with PE {}", self.pe(me), self.pe(other)))?,
            );
        }
        self.world.barrier_all()?;
        Ok(link)
    }

    fn pair(&self, me: usize, other: usize) -> Result<Link> {
        let (peer, leads) = (self.pe(other), me < other);
        let latency = self.latency(peer, leads)?;
        let (mut one_way, mut wrong) = (0.0, 0);
        for sends in [leads, !leads] {
            let first = if sends == leads { 100 } else { 200 };
            if sends {
                one_way = self.send_one_way(peer, self.seed(me), first)?;
            } else {
                wrong += self.receive(peer, self.seed(other), first)?;
            }
        }
        let (both_ways, more) = self.both_ways(peer, leads, one_way, self.seed(other))?;
        Ok(Link {
            from: me,
            to: other,
            latency,
            one_way,
            both_ways,
            wrong: wrong + more,
        })
    }

    fn seed(&self, member: usize) -> u64 {
        (self.round << 40) ^ ((member as u64 + 1) << 20)
    }

    /// Tells the peer that this PE has come to a step, and waits until the peer has.
    fn meet(&self, peer: usize, step: u64) -> Result<()> {
        self.announce(peer, step)?;
        self.await_peer(step)
    }

    fn announce(&self, peer: usize, step: u64) -> Result<()> {
        let turn = self.round * STEPS + step;
        self.world.signal_set(self.word(TURN)?, turn, peer)
    }

    fn await_peer(&self, step: u64) -> Result<()> {
        let turn = self.round * STEPS + step;
        self.world.wait_until(self.word(TURN)?, Cmp::Ge, turn)
    }

    /// Half of a round trip of a word with its flag: the mean of the best batch, since other work of a host can
    /// only add to it. Each word is looked at.
    fn latency(&self, peer: usize, leads: bool) -> Result<f64> {
        let (data, ping) = (self.word(DATA)?, self.word(PING)?);
        let mut best = f64::INFINITY;
        let mut trip = self.round << 32;
        for batch in 0..self.effort.latency_batches as u64 {
            self.meet(peer, 4 * batch + 1)?;
            let start = Instant::now();
            for _ in 0..self.effort.round_trips {
                trip += 1;
                let send = || {
                    let sent = [word(trip, 0)];
                    self.world
                        .put_signal(data, &sent, ping, trip, SignalOp::Set, peer)
                };
                if leads {
                    send()?;
                }
                self.world.wait_until(ping, Cmp::Ge, trip)?;
                if !leads {
                    send()?;
                }
            }
            let elapsed = start.elapsed();
            best = best.min(elapsed.as_nanos() as f64 / (2 * self.effort.round_trips) as f64);
            if self.is_long(peer, leads, elapsed, 4 * batch + 2)? {
                break;
            }
        }
        Ok(best)
    }

    /// Whether the leader found a batch too long for another one. Both PEs of a pair call it.
    fn is_long(&self, peer: usize, leads: bool, elapsed: Duration, step: u64) -> Result<bool> {
        let blocks = self.word(BLOCKS)?;
        if leads {
            let long = elapsed > LONG;
            self.world.p(blocks, u64::from(long), peer)?;
            self.world.quiet()?;
            self.meet(peer, step)?;
            return Ok(long);
        }
        self.meet(peer, step)?;
        Ok(self.world.g(blocks, self.world.my_pe())? != 0)
    }

    /// Sends blocks, and completes them.
    fn send(&self, peer: usize, blocks: u64) -> Result<()> {
        self.world.scope(|scope| {
            (0..blocks).try_for_each(|_| scope.put_from_nbi(self.block, self.source, peer))
        })?;
        Ok(())
    }

    fn fill(&self, seed: u64) -> Result<()> {
        let data: Vec<u64> = (0..self.effort.words).map(|at| word(seed, at)).collect();
        self.world.write(self.source, &data)
    }

    /// The number of words of the block that are not what a sender with this seed wrote.
    fn wrong(&self, seed: u64) -> Result<u64> {
        let mut data = vec![0; self.effort.words];
        self.world.read(&mut data, self.block)?;
        let wrong = data
            .iter()
            .enumerate()
            .filter(|(at, found)| **found != word(seed, *at));
        Ok(wrong.count() as u64)
    }

    fn clear(&self) -> Result<()> {
        self.world.write(self.block, &vec![0; self.effort.words])
    }

    /// The sender's part of one direction: bytes per second.
    fn send_one_way(&self, peer: usize, seed: u64, step: u64) -> Result<f64> {
        self.fill(seed)?;
        self.meet(peer, step)?;
        let bytes = self.effort.block_bytes as f64;
        let (mut blocks, mut rates) = (1, Vec::new());
        // The first batches find how many blocks take long enough, and warm up.
        loop {
            let start = Instant::now();
            self.send(peer, blocks)?;
            let elapsed = start.elapsed();
            let enough = elapsed >= self.effort.batch;
            if enough {
                rates.push(bytes * blocks as f64 / elapsed.as_secs_f64());
            } else {
                let factor = self.effort.batch.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
                blocks = (blocks as f64 * factor.clamp(1.2, 16.0)).ceil() as u64;
            }
            if rates.len() >= self.effort.batches || elapsed > LONG {
                break;
            }
        }
        self.announce(peer, step + 1)?;
        Ok(median(&mut rates))
    }

    /// The receiver's part: the number of wrong words.
    fn receive(&self, peer: usize, seed: u64, step: u64) -> Result<u64> {
        self.clear()?;
        self.meet(peer, step)?;
        self.await_peer(step + 1)?;
        self.wrong(seed)
    }

    /// Both at once: bytes per second of both directions, and the number of wrong words.
    fn both_ways(&self, peer: usize, leads: bool, one_way: f64, seed: u64) -> Result<(f64, u64)> {
        let bytes = self.effort.block_bytes as f64;
        let number = self.word(BLOCKS)?;
        self.clear()?;
        if leads {
            let blocks = (one_way * self.effort.batch.as_secs_f64() / bytes)
                .ceil()
                .max(1.0) as u64;
            self.world.p(number, blocks, peer)?;
            self.world.p(number, blocks, self.world.my_pe())?;
            self.world.quiet()?;
        }
        self.meet(peer, 300)?;
        let blocks = self.world.g(number, self.world.my_pe())?;
        let mut rates = Vec::new();
        for batch in 0..self.effort.batches as u64 {
            self.meet(peer, 310 + 4 * batch)?;
            let start = Instant::now();
            self.send(peer, blocks)?;
            // The slower direction counts.
            self.meet(peer, 311 + 4 * batch)?;
            let elapsed = start.elapsed();
            rates.push(2.0 * bytes * blocks as f64 / elapsed.as_secs_f64());
            if self.is_long(peer, leads, elapsed, 312 + 4 * batch)? {
                break;
            }
        }
        Ok((median(&mut rates), self.wrong(seed)?))
    }

    /// All members send at once, `bytes` each, to those that `targets` gives: in blocks if it is one, and in
    /// equal parts of a block if there are several. Collective.
    pub fn all_at_once(
        &mut self,
        bytes: f64,
        targets: impl Fn(usize) -> Vec<usize>,
    ) -> anyhow::Result<Option<Share>> {
        self.round += 1;
        let several = self.me.is_some_and(|me| targets(me).len() > 1);
        // A part of a block for each member.
        let part = if several {
            self.effort.words / self.members.len().max(1)
        } else {
            self.effort.words
        };
        self.clear()?;
        if let Some(me) = self.me {
            self.fill(self.seed(me))?;
        }
        self.world.barrier_all()?;
        let mut share = None;
        if let Some(me) = self.me {
            let to = targets(me);
            let start = Instant::now();
            let sent = self
                .send_parts(&to, me, part, bytes)
                .context("while all hosts send at once")?;
            share = Some(Share {
                member: me,
                sent: sent / start.elapsed().as_secs_f64(),
                wrong: 0,
            });
        }
        self.world.barrier_all()?;
        if let (Some(me), Some(share)) = (self.me, &mut share) {
            let sources = (0..self.members.len()).filter(|other| targets(*other).contains(&me));
            let mut data = vec![0; self.effort.words];
            self.world.read(&mut data, self.block)?;
            for source in sources {
                let begin = if several { source * part } else { 0 };
                let got = data.iter().skip(begin).take(part).enumerate();
                let wrong = got.filter(|(at, found)| **found != word(self.seed(source), *at));
                share.wrong += wrong.count() as u64;
            }
        }
        // Nobody sends the next data before all have looked.
        self.world.barrier_all()?;
        Ok(share)
    }

    /// Returns the bytes that were sent.
    fn send_parts(&self, to: &[usize], me: usize, part: usize, bytes: f64) -> Result<f64> {
        if to.is_empty() || part == 0 {
            return Ok(0.0);
        }
        let begin = if to.len() > 1 { me * part } else { 0 };
        let (dst, src) = (
            self.block.range(begin..begin + part)?,
            self.source.range(..part)?,
        );
        let of_part = (8 * part) as f64;
        let turns = (bytes / (of_part * to.len() as f64)).ceil().max(1.0) as u64;
        self.world.scope(|scope| {
            (0..turns).try_for_each(|_| {
                let mut peers = to.iter().map(|member| self.pe(*member));
                peers.try_for_each(|peer| scope.put_from_nbi(dst, src, peer))
            })
        })?;
        Ok(turns as f64 * of_part * to.len() as f64)
    }
}

/// The median; 0 of no values.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
