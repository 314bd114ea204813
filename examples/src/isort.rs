//! A sort of integers that are spread over all PEs, by an exchange of buckets as in the benchmarks NAS IS
//! and ISx.
//!
//! Keys are ISx's, uniform below [`KEYS_BELOW`], equally many per PE. Each PE counts how many of its keys are in
//! each PE's range, puts each key into a small bucket for its PE, which it sends by an [`Exchange`] when it is
//! full, and sorts what it was sent. Then PE 0 has the smallest keys in order, PE 1 the next, and so on.

use std::ops::Range;
use std::time::Instant;

use oxshmem::{Result, Sym, World};

use crate::exchange::Exchange;
use crate::splitmix;

/// The bits of a key, as in ISx.
const KEY_BITS: u32 = 28;
/// Keys are smaller than this.
pub const KEYS_BELOW: u32 = 1 << KEY_BITS;

/// Keys of a bucket, a kibibyte: all PEs' buckets stay in a near cache, and a put of as much is worth its call.
const BUCKET: usize = 256;

/// Bits that one pass of the local sort orders by: its counters fit the nearest cache.
const DIGIT_BITS: u32 = 11;

/// Writes the unsorted keys of a PE; `round` makes others.
pub fn draw(keys: &mut [u32], pe: usize, round: u64) {
    let seed = splitmix::at(round, pe as u64);
    for (place, key) in keys.iter_mut().enumerate() {
        *key = (splitmix::at(seed, place as u64) >> (u64::BITS - KEY_BITS)) as u32;
    }
}

/// Seconds that a PE spent in each phase of a sort.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// Counting keys by the PE that is to have them.
    pub count: f64,
    /// Sending them bucket by bucket, and waiting for the others'.
    pub exchange: f64,
    /// Sorting what came.
    pub sort: f64,
}

impl Phases {
    /// The whole time.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.count + self.exchange + self.sort
    }
}

/// What a check of all PEs' keys found; equal on every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Keys that are on the wrong PE or smaller than the one before.
    pub misplaced: u64,
    /// How many keys there were before and are now.
    pub counts: [u64; 2],
    /// A sum over a scrambled form of each key, before and now.
    pub checksums: [u64; 2],
}

impl Check {
    /// Whether the keys are in order over all PEs and the same as before; if not, what is wrong.
    pub fn verdict(&self) -> std::result::Result<(), String> {
        let Check {
            misplaced,
            counts: [sent, came],
            checksums: [before, now],
        } = self;
        if sent != came {
            Err(format!("{sent} keys went in and {came} came out"))
        } else if before != now {
            Err("the keys that came out are not those that went in".into())
        } else if *misplaced > 0 {
            Err(format!("{misplaced} of {came} keys are out of order"))
        } else {
            Ok(())
        }
    }
}

/// Sorts keys of all PEs, any number of times.
#[derive(Debug)]
pub struct Sorter<'w> {
    world: &'w World,
    exchange: Exchange<'w, u32>,
    /// The other half of the local sort's memory.
    scratch: Vec<u32>,
    sorted: Vec<u32>,
}

/// Keys on their way to one PE.
#[derive(Clone)]
struct Bucket {
    keys: [u32; BUCKET],
    filled: usize,
    /// What is still to be put of this PE's stretch of the inbox.
    rest: Sym<u32>,
}

impl Bucket {
    fn send(&mut self, world: &World, pe: usize) -> Result<()> {
        let filled = std::mem::take(&mut self.filled);
        world.put(self.rest.range(..filled)?, &self.keys[..filled], pe)?;
        self.rest = self.rest.range(filled..)?;
        Ok(())
    }
}

impl<'w> Sorter<'w> {
    /// For up to `keys` keys a PE. Collective.
    ///
    /// A PE is sent `keys` on average, with a deviation below the root of that; there is room for eight
    /// of them.
    pub fn new(world: &'w World, keys: usize) -> Result<Self> {
        let room = keys + 8 * (keys as f64).sqrt() as usize + 64;
        Ok(Sorter {
            world,
            exchange: Exchange::new(world, room)?,
            scratch: Vec::with_capacity(room),
            sorted: Vec::with_capacity(room),
        })
    }

    /// Sorts; this PE's part of the result is [`sorted`](Self::sorted). Collective.
    pub fn sort(&mut self, keys: &[u32]) -> Result<Phases> {
        let (me, pes) = (self.world.my_pe(), self.world.n_pes());
        self.world.barrier_all()?; // All inboxes are empty.
        let start = Instant::now();
        let counts = count(keys, pes);
        let counted = start.elapsed().as_secs_f64();

        self.send(keys, &counts)?;
        self.world.barrier_all()?;
        self.exchange.receive(&mut self.sorted)?;
        let exchanged = start.elapsed().as_secs_f64();

        self.scratch.resize(self.sorted.len(), 0);
        radix_sort(&mut self.sorted, &mut self.scratch, range_of(me, pes));
        let sorted = start.elapsed().as_secs_f64();
        Ok(Phases {
            count: counted,
            exchange: exchanged - counted,
            sort: sorted - exchanged,
        })
    }

    /// Sends each key to its PE. Puts may be on their way until the next barrier.
    fn send(&self, keys: &[u32], counts: &[usize]) -> Result<()> {
        let pes = counts.len();
        let bucket = |(pe, count): (usize, &usize)| {
            Ok(Bucket {
                keys: [0; BUCKET],
                filled: 0,
                rest: self.exchange.reserve(*count, pe)?,
            })
        };
        let mut buckets: Vec<Bucket> = counts
            .iter()
            .enumerate()
            .map(bucket)
            .collect::<Result<_>>()?;
        for key in keys {
            let pe = pe_of(*key, pes);
            let bucket = &mut buckets[pe];
            bucket.keys[bucket.filled] = *key;
            bucket.filled += 1;
            if bucket.filled == BUCKET {
                bucket.send(self.world, pe)?;
            }
        }
        let rest = buckets.iter_mut().enumerate();
        rest.into_iter()
            .try_for_each(|(pe, bucket)| bucket.send(self.world, pe))
    }

    /// This PE's part of the sorted keys.
    #[must_use]
    pub fn sorted(&self) -> &[u32] {
        &self.sorted
    }

    /// Compares the sorted keys of all PEs with those that this PE gave to [`sort`](Self::sort).
    /// Collective.
    pub fn check(&self, keys: &[u32]) -> Result<Check> {
        check(self.world, keys, &self.sorted)
    }

    /// Gives the memory back. Collective.
    pub fn free(self) -> Result<()> {
        self.exchange.free()
    }
}

/// Compares the sorted keys of all PEs with what they were before. Collective.
pub fn check(world: &World, before: &[u32], sorted: &[u32]) -> Result<Check> {
    let range = range_of(world.my_pe(), world.n_pes());
    let outside = sorted.iter().filter(|key| !range.contains(key)).count();
    let falling = sorted.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let checksum = |keys: &[u32]| {
        let scrambled = keys.iter().map(|key| splitmix::mix(u64::from(*key) + 1));
        scrambled.fold(0, u64::wrapping_add)
    };
    let mine = [
        (outside + falling) as u64,
        before.len() as u64,
        sorted.len() as u64,
        checksum(before),
        checksum(sorted),
    ];
    let sums = world.alloc::<u64>(mine.len())?;
    world.write(sums, &mine)?;
    world.sum_reduce(sums, sums)?;
    let mut all = [0; 5];
    world.read(&mut all, sums)?;
    world.free(sums)?;
    let [misplaced, sent, came, before, now] = all;
    Ok(Check {
        misplaced,
        counts: [sent, came],
        checksums: [before, now],
    })
}

/// The keys that a PE ends up with.
fn range_of(pe: usize, pes: usize) -> Range<u32> {
    let bound = |pe: usize| ((pe as u64) << KEY_BITS).div_ceil(pes as u64) as u32;
    bound(pe)..bound(pe + 1)
}

fn pe_of(key: u32, pes: usize) -> usize {
    ((u64::from(key) * pes as u64) >> KEY_BITS) as usize
}

/// How many keys each PE is to have.
fn count(keys: &[u32], pes: usize) -> Vec<usize> {
    let mut counts = vec![0; pes];
    for key in keys {
        counts[pe_of(*key, pes)] += 1;
    }
    counts
}

/// Sorts keys of a range; `scratch` is as long.
fn radix_sort(keys: &mut Vec<u32>, scratch: &mut Vec<u32>, range: Range<u32>) {
    const DIGITS: usize = 1 << DIGIT_BITS;
    let bits = u32::BITS - (range.end - range.start).saturating_sub(1).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS).max(1);
    let width = bits.div_ceil(passes);
    // A mask within `DIGITS` by sight, so that no place is looked up with a check.
    let mask = ((1 << width) - 1) & (DIGITS as u32 - 1);
    for pass in 0..passes {
        let digit = |key: u32| (((key - range.start) >> (pass * width)) & mask) as usize;
        let mut places = [0_u32; DIGITS];
        for key in keys.iter() {
            places[digit(*key)] += 1;
        }
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for key in keys.iter() {
            let place = &mut places[digit(*key)];
            scratch[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(keys, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_key_has_one_pe_and_its_range_says_so() {
        for pes in [1, 2, 3, 7, 64] {
            assert_eq!(range_of(0, pes).start, 0);
            assert_eq!(range_of(pes - 1, pes).end, KEYS_BELOW);
            for pe in 0..pes {
                let range = range_of(pe, pes);
                assert_eq!(pe_of(range.start, pes), pe, "{pes} PEs");
                assert_eq!(pe_of(range.end - 1, pes), pe, "{pes} PEs");
            }
        }
    }

    proptest! {
        #[test]
        fn radix_sorts_of_each_range_agree_with_the_standard_sort(
            keys in prop::collection::vec(0..KEYS_BELOW, 0..500),
            pes in 1_usize..9,
        ) {
            let mut together = Vec::new();
            for (pe, count) in count(&keys, pes).into_iter().enumerate() {
                let of_pe = keys.iter().filter(|key| pe_of(**key, pes) == pe);
                let mut of_pe: Vec<u32> = of_pe.copied().collect();
                prop_assert_eq!(of_pe.len(), count);
                let mut scratch = vec![0; count];
                radix_sort(&mut of_pe, &mut scratch, range_of(pe, pes));
                together.extend(of_pe);
            }
            let mut wanted = keys;
            wanted.sort_unstable();
            prop_assert_eq!(together, wanted);
        }
    }
}
