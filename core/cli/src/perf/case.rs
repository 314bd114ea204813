//! What each PE does in a row: PE 0 the operation, its partner the answer, the others nothing; then
//! whoever got data checks it.

use std::hint::black_box;

use anyhow::{Context, ensure};
use oxshmem::{AtomicInt, Cmp, Pod, Result, SignalOp, Sym, World};

use super::op::Op;

/// Where all rows are measured.
pub struct Ground<'w> {
    pub world: &'w World,
    /// Repetitions of the next batch; 0 ends the row.
    order: Sym<u64>,
    /// What p, g, atomics and ping-pong work on.
    word: Sym<u64>,
    signal: Sym<u64>,
    /// What put, get and put-signal work on.
    block: Sym<u8>,
}

impl<'w> Ground<'w> {
    /// Allocates for operations of up to `most` bytes. Collective.
    pub fn new(world: &'w World, most: usize) -> Result<Self> {
        Ok(Ground {
            world,
            order: world.alloc_zeroed(1)?,
            word: world.alloc_zeroed(1)?,
            signal: world.alloc_zeroed(1)?,
            block: world.alloc_zeroed(most.max(1))?,
        })
    }

    /// Gives the memory back. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.block)?;
        self.world.free(self.signal)?;
        self.world.free(self.word)?;
        self.world.free(self.order)
    }

    /// Whether this PE measures.
    pub fn leads(&self) -> bool {
        self.world.my_pe() == 0
    }

    /// Tells all PEs the next batch. Collective, with [`hear`](Self::hear) on the others.
    pub fn tell(&self, repetitions: u64) -> Result<()> {
        self.world.write(self.order, &[repetitions])?;
        self.world.broadcast(self.order, self.order, 0)
    }

    pub fn hear(&self) -> Result<u64> {
        self.world.broadcast(self.order, self.order, 0)?;
        self.world.g(self.order, self.world.my_pe())
    }

    /// The PE at the other end, for PE 0.
    fn target(&self) -> usize {
        usize::from(self.world.n_pes() > 1)
    }

    /// Whether this PE is at the other end.
    fn answers(&self) -> bool {
        self.world.my_pe() == self.target()
    }
}

/// One PE's part of a row.
pub struct Case {
    op: Op,
    /// Private memory for block operations; on the target, what should arrive.
    near: Vec<u8>,
    /// The last value that g got, or how often a ping-pong went there and back.
    seen: u64,
    bytes: usize,
}

/// What p puts and g gets, in as many bytes as it has.
const VALUE: u64 = 0xf00d_cafe_5eed_a5a5;

/// Bytes that no other row of the same size, nor a shifted copy, would leave.
fn pattern(op: Op, bytes: usize) -> Vec<u8> {
    let seed = (op as usize).wrapping_mul(37).wrapping_add(bytes) % 251;
    (0..bytes)
        .map(|i| ((i * 7 + i / 251 + seed) % 255 + 1) as u8)
        .collect()
}

/// Clears this PE's copies, and fills what the row will read. Collective.
pub fn prepare(ground: &Ground<'_>, op: Op, bytes: usize) -> Result<Case> {
    let world = ground.world;
    world.write(ground.word, &[0])?;
    world.write(ground.signal, &[0])?;
    let mut case = Case {
        op,
        near: Vec::new(),
        seen: 0,
        bytes,
    };
    if op.moves_data() {
        let full = op == Op::Get && ground.answers();
        let block = if full {
            pattern(op, bytes)
        } else {
            vec![0; bytes]
        };
        world.write(ground.block, &block)?;
        case.near = if op == Op::Get {
            vec![0; bytes]
        } else {
            pattern(op, bytes)
        };
    }
    if op == Op::G {
        world.write(ground.word, &[VALUE])?;
    }
    world.barrier_all()?;
    Ok(case)
}

impl Case {
    /// This PE's part of a batch.
    pub fn run(&mut self, ground: &Ground<'_>, repetitions: u64) -> Result<()> {
        let (world, to) = (ground.world, ground.target());
        match self.op {
            Op::Barrier => (0..repetitions).try_for_each(|_| world.barrier_all()),
            Op::PingPong => self.ping_pong(ground, repetitions),
            Op::PutSignal => self.put_signal(ground, repetitions),
            _ if !ground.leads() => Ok(()),
            Op::Put => {
                for _ in 0..repetitions {
                    world.put(ground.block, black_box(&self.near), to)?;
                }
                world.quiet()
            }
            Op::Get => (0..repetitions)
                .try_for_each(|_| world.get(black_box(&mut self.near), ground.block, to)),
            Op::P => match self.bytes {
                1 => p(ground, VALUE as u8, repetitions),
                2 => p(ground, VALUE as u16, repetitions),
                4 => p(ground, VALUE as u32, repetitions),
                _ => p(ground, VALUE, repetitions),
            },
            Op::G => {
                self.seen = match self.bytes {
                    1 => g::<u8>(ground, repetitions)?.into(),
                    2 => g::<u16>(ground, repetitions)?.into(),
                    4 => g::<u32>(ground, repetitions)?.into(),
                    _ => g::<u64>(ground, repetitions)?,
                };
                Ok(())
            }
            Op::FetchAdd => match self.bytes {
                4 => fetch_add::<u32>(ground, 1, repetitions),
                _ => fetch_add::<u64>(ground, 1, repetitions),
            },
            Op::Quiet => {
                world.p(ground.word, VALUE, to)?;
                (0..=repetitions).try_for_each(|_| world.quiet())
            }
            Op::PQuiet => (0..repetitions).try_for_each(|_| {
                world.p(ground.word, black_box(VALUE), to)?;
                world.quiet()
            }),
        }
    }

    fn ping_pong(&mut self, ground: &Ground<'_>, repetitions: u64) -> Result<()> {
        let (world, word, to) = (ground.world, ground.word, ground.target());
        for _ in 0..repetitions {
            self.seen += 1;
            if ground.leads() {
                world.p(word, self.seen, to)?;
                world.wait_until(word, Cmp::Eq, self.seen)?;
            } else if ground.answers() {
                world.wait_until(word, Cmp::Eq, self.seen)?;
                world.p(word, self.seen, 0)?;
            }
        }
        Ok(())
    }

    fn put_signal(&mut self, ground: &Ground<'_>, repetitions: u64) -> Result<()> {
        let (world, block, signal) = (ground.world, ground.block, ground.signal);
        for _ in 0..repetitions {
            self.seen += 1;
            let send =
                |to| world.put_signal(block, &self.near, signal, self.seen, SignalOp::Set, to);
            if ground.leads() {
                send(ground.target())?;
                world.signal_wait_until(signal, Cmp::Eq, self.seen)?;
            } else if ground.answers() {
                world.signal_wait_until(signal, Cmp::Eq, self.seen)?;
                send(0)?;
            }
        }
        Ok(())
    }

    /// Checks what this PE got, after `total` repetitions. Collective.
    pub fn check(&self, ground: &Ground<'_>, total: u64) -> anyhow::Result<()> {
        let (world, me) = (ground.world, ground.world.my_pe());
        let (leads, answers) = (ground.leads(), ground.answers());
        match self.op {
            Op::Put | Op::PutSignal => {
                if answers || (leads && self.op == Op::PutSignal) {
                    let mut block = vec![0; self.bytes];
                    world.read(&mut block, ground.block)?;
                    same(&block, &self.near)?;
                }
            }
            Op::Get if leads => same(&self.near, &pattern(self.op, self.bytes))?,
            Op::G if leads => word(self.seen, low(VALUE, self.bytes))?,
            Op::P | Op::Quiet | Op::PQuiet if answers => {
                let bytes = if self.bytes == 0 {
                    size_of::<u64>()
                } else {
                    self.bytes
                };
                word(world.g(ground.word, me)?, low(VALUE, bytes))?;
            }
            Op::FetchAdd if answers => {
                word(world.g(ground.word, me)?, low(total, self.bytes))?;
            }
            Op::PingPong if leads || answers => word(world.g(ground.word, me)?, total)?,
            Op::Barrier => {
                // Whatever comes before it at one PE has happened after it at the others.
                let next = (me + 1) % world.n_pes();
                world.p(ground.word, me as u64 + 1, next)?;
                world.barrier_all()?;
                word(world.g(ground.word, next)?, me as u64 + 1)?;
                let before = (me + world.n_pes() - 1) % world.n_pes();
                word(world.g(ground.word, me)?, before as u64 + 1)?;
            }
            Op::Get | Op::G | Op::P | Op::Quiet | Op::PQuiet | Op::FetchAdd | Op::PingPong => {}
        }
        Ok(())
    }
}

fn p<T: Pod>(ground: &Ground<'_>, value: T, repetitions: u64) -> Result<()> {
    let (word, to) = (ground.word.cast::<T>()?, ground.target());
    for _ in 0..repetitions {
        ground.world.p(word, black_box(value), to)?;
    }
    ground.world.quiet()
}

fn g<T: Pod>(ground: &Ground<'_>, repetitions: u64) -> Result<T> {
    let (word, from) = (ground.word.cast::<T>()?, ground.target());
    let mut last = T::zeroed();
    for _ in 0..repetitions {
        last = black_box(ground.world.g(word, from)?);
    }
    Ok(last)
}

fn fetch_add<T: AtomicInt>(ground: &Ground<'_>, one: T, repetitions: u64) -> Result<()> {
    let (word, to) = (ground.word.cast::<T>()?, ground.target());
    for _ in 0..repetitions {
        black_box(ground.world.fetch_add(word, one, to)?);
    }
    Ok(())
}

/// The bytes of a word that a smaller type at its start has, the rest zero.
fn low(value: u64, bytes: usize) -> u64 {
    let mut kept = [0; 8];
    let keep = bytes.min(kept.len());
    // PEs have one byte order: a job is of one architecture.
    let all = if cfg!(target_endian = "little") {
        value
    } else {
        value << (64 - 8 * keep as u32)
    };
    for (kept, byte) in kept.iter_mut().zip(all.to_ne_bytes()).take(keep) {
        *kept = byte;
    }
    u64::from_ne_bytes(kept)
}

fn word(found: u64, expected: u64) -> anyhow::Result<()> {
    ensure!(
        found == expected,
        "the word has the value {found:#x}, and should have {expected:#x}"
    );
    Ok(())
}

fn same(found: &[u8], expected: &[u8]) -> anyhow::Result<()> {
    if found == expected {
        return Ok(());
    }
    let at = found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected);
    let at = at.context("the data has another length than it should")?;
    anyhow::bail!("the data is wrong at byte {at} of {}", expected.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::measure::{Effort, measure};
    use crate::perf::sizes::Sizes;
    use oxshmem::testing::spmd;
    use std::time::Duration;

    const BRIEF: Effort = Effort {
        batch: Duration::from_micros(1),
        row: Duration::ZERO,
    };

    #[test]
    fn every_operation_is_measured_and_its_data_checked() {
        for pes in [1, 2, 3] {
            spmd(pes, |world| {
                let ground = Ground::new(world, 1000)?;
                let sizes: Sizes = "1..1000".parse().unwrap();
                for op in Op::ALL.into_iter().filter(|op| pes > 1 || !op.needs_two()) {
                    for bytes in op.sizes(sizes) {
                        let found = measure(&ground, op, bytes, BRIEF).unwrap();
                        assert_eq!(found.is_some(), world.my_pe() == 0);
                    }
                }
                Ok(())
            })
            .unwrap();
        }
    }

    #[test]
    fn wrong_data_is_found() {
        spmd(1, |world| {
            let ground = Ground::new(world, 64)?;
            for (op, bytes) in [(Op::Put, 64), (Op::P, 4), (Op::Quiet, 0), (Op::FetchAdd, 4)] {
                // Nothing was run, so nothing can have arrived.
                let case = prepare(&ground, op, bytes)?;
                assert!(case.check(&ground, 5).is_err(), "{op:?}");
            }
            let case = prepare(&ground, Op::Get, 64)?;
            assert!(case.check(&ground, 1).is_err());
            Ok(())
        })
        .unwrap();
    }
}
