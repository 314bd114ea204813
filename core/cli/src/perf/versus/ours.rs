//! oxshmem's side: the same operations as perftest's, timed as perftest times them.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, ensure};
use oxshmem::{Cmp, Hints, Sym, World};

use super::row::{Row, Unit, Work};

/// The largest operation, in words.
const WORDS: usize = (1 << 20) / size_of::<u64>();
/// The target PE; PE 0 measures.
pub const TARGET: usize = 1;

/// Memory of both PEs, and the counters of their operations.
pub struct OxshmemBench<'w> {
    world: &'w World,
    /// The word by which PE 0 announces numbers.
    announced: Sym<u64>,
    block: Sym<u64>,
    /// The source of streams, in the heap.
    source: Sym<u64>,
    /// The word of atomics that the NIC performs.
    word: Sym<u64>,
    /// Round trips made, and additions.
    trips: u64,
    added: u64,
}

impl<'w> OxshmemBench<'w> {
    /// Allocates the memory. Collective, as all calls here.
    pub fn new(world: &'w World) -> anyhow::Result<Self> {
        let source = world.alloc(WORDS)?;
        let pattern: Vec<u64> = (0..WORDS as u64).map(|i| i << 32 | 0x5eed).collect();
        world.write(source, &pattern)?;
        let word = world.alloc_with_hints(1, Hints::ATOMICS_REMOTE)?;
        world.write(word, &[0])?;
        let bench = OxshmemBench {
            world,
            announced: world.alloc_zeroed(1)?,
            block: world.alloc_zeroed(WORDS)?,
            source,
            word,
            trips: 0,
            added: 0,
        };
        world.barrier_all()?;
        Ok(bench)
    }

    pub fn free(self) -> anyhow::Result<()> {
        self.world.free(self.announced)?;
        self.world.free(self.block)?;
        self.world.free(self.word)?;
        Ok(self.world.free(self.source)?)
    }

    pub fn leads(&self) -> bool {
        self.world.my_pe() == 0
    }

    /// Returns PE 0's number on both PEs.
    pub fn agree(&self, number: u64) -> anyhow::Result<u64> {
        self.world.write(self.announced, &[number])?;
        self.world.broadcast(self.announced, self.announced, 0)?;
        Ok(self.world.g(self.announced, self.world.my_pe())?)
    }

    /// Does `count` operations of a row; PE 0 gets the figure, in the row's unit.
    pub fn measure(&mut self, row: &Row, count: u64) -> anyhow::Result<f64> {
        let words = row.bytes / size_of::<u64>();
        let figure = match row.work {
            Work::PingPong => self.ping_pong(words, count)?,
            _ if !self.leads() => f64::NAN,
            Work::Get => self.get(words, count)?,
            Work::FetchAdd => self.fetch_add(count)?,
            Work::Stream => self.stream(words, count)?,
        };
        Ok(match row.unit {
            Unit::Nanoseconds => figure,
            Unit::Rate => 1e9 / figure,
            Unit::Bandwidth => 1e9 / figure * row.bytes as f64,
        })
    }

    fn ping_pong(&mut self, words: usize, count: u64) -> anyhow::Result<f64> {
        let (world, leads) = (self.world, self.leads());
        let last = self.block.at(words - 1)?;
        let to = if leads { TARGET } else { 0 };
        let mut local: Vec<u64> = (0..words as u64).collect();
        let mut times = Vec::with_capacity(count as usize);
        let put = |local: &[u64]| match local {
            [word] => world.p(last, *word, to),
            block => world.put(self.block, black_box(block), to),
        };
        let mut start = Instant::now();
        for trip in self.trips + 1..=self.trips + count {
            if let Some(word) = local.last_mut() {
                *word = trip;
            }
            if leads {
                put(&local)?;
            }
            world.wait_until(last, Cmp::Eq, trip)?;
            if leads {
                let now = Instant::now();
                times.push((now - start).as_nanos() as f64 / 2.0);
                start = now;
            } else {
                put(&local)?;
            }
        }
        self.trips += count;
        world.barrier_all()?;
        let mut arrived = vec![0; words];
        world.read(&mut arrived, self.block.range(..words)?)?;
        // The next row writes the block.
        world.barrier_all()?;
        ensure!(arrived == local, "the data that arrived is wrong");
        Ok(if leads { median(times) } else { f64::NAN })
    }

    fn get(&self, words: usize, count: u64) -> anyhow::Result<f64> {
        let mut local = vec![0_u64; words];
        let from = self.source.range(..words)?;
        let times = each(count, || {
            Ok(self.world.get(black_box(&mut local), from, TARGET)?)
        })?;
        let mut expected = vec![0; words];
        self.world.read(&mut expected, from)?;
        ensure!(local == expected, "the data that arrived is wrong");
        Ok(median(times))
    }

    fn fetch_add(&mut self, count: u64) -> anyhow::Result<f64> {
        let mut old = 0;
        let times = each(count, || {
            old = self.world.fetch_add(self.word, 1, TARGET)?;
            Ok(())
        })?;
        self.added += count;
        ensure!(
            old + 1 == self.added,
            "the word is {old} + 1, not {}",
            self.added
        );
        Ok(median(times))
    }

    /// Nanoseconds of one put.
    fn stream(&self, words: usize, count: u64) -> anyhow::Result<f64> {
        let world = self.world;
        let source = world.ptr(self.source, world.my_pe());
        let source = source
            .context("this PE's own heap cannot be addressed")?
            .as_ptr();
        let start = Instant::now();
        for _ in 0..count {
            // SAFETY: heap memory, which lives as long as the world and is not written meanwhile.
            unsafe { world.put_nbi(self.block, source.cast_const(), words, TARGET)? };
        }
        world.quiet()?;
        let took = start.elapsed().as_nanos() as f64 / count as f64;
        let (mut arrived, mut expected) = (vec![0; words], vec![0; words]);
        world.get(&mut arrived, self.block, TARGET)?;
        world.read(&mut expected, self.source.range(..words)?)?;
        ensure!(arrived == expected, "the data that arrived is wrong");
        Ok(took)
    }
}

/// Times each operation in nanoseconds.
fn each(count: u64, mut operation: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(count as usize);
    let mut start = Instant::now();
    for _ in 0..count {
        operation()?;
        let now = Instant::now();
        times.push((now - start).as_nanos() as f64);
        start = now;
    }
    Ok(times)
}

/// The median of times in any order; NaN if there are none.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::versus::row::ROWS;
    use oxshmem::testing::spmd;

    #[test]
    fn every_row_is_measured_and_its_data_checked() {
        spmd(2, |world| {
            let mut bench = OxshmemBench::new(world).unwrap();
            for row in &ROWS {
                let count = bench.agree(16).unwrap();
                let figure = bench.measure(row, count).unwrap();
                assert_eq!(bench.leads(), figure > 0.0, "{}: {figure}", row.name);
            }
            bench.free().unwrap();
            Ok(())
        })
        .unwrap();
    }
}
