//! A sort of integers that are spread over all PEs, by an exchange of buckets as in the benchmarks
//! NAS IS and ISx.
//!
//! Keys are those of ISx: uniform below [`KEYS_BELOW`], equally many on each PE. Their range is cut
//! into buckets, a number of adjacent ones for each PE. A bucket's keys fit into a small cache, and
//! so the exchange is the sort's first pass. All PEs tell each other how many keys they have for
//! each bucket, so each key has its place in the inbox of its PE. It is sent there together with
//! its neighbours as soon as a small buffer is full. Each PE then sorts its buckets one by one: PE
//! 0 has the smallest keys in order, PE 1 the next, and so on.

use std::ops::Range;
use std::time::Instant;

use oxshmem::{Result, Sym, World};

use crate::splitmix;

/// The bits of a key, as in ISx.
const KEY_BITS: u32 = 28;
/// Keys are smaller than this.
pub const KEYS_BELOW: u32 = 1 << KEY_BITS;

/// Keys of a bucket on average, at least: they and as much scratch memory fit a near cache, and
/// they are far more than the counters of a pass.
const FEWEST_KEYS: usize = 4096;
/// Buckets of all PEs, unless there are more PEs: their buffers fit the second-level cache.
const MOST_BUCKETS: usize = 512;
/// Keys of a buffer, half a kibibyte: a put of this size is worth its call.
const BUFFER: usize = 128;

/// Bits that one of the two passes over a bucket orders by, at most.
const DIGIT_BITS: u32 = KEY_BITS / 2;
/// The number of a digit's values.
const DIGITS: usize = 1 << DIGIT_BITS;

/// Writes the unsorted keys of a PE; another `round` gives other keys.
pub fn draw(keys: &mut [u32], pe: usize, round: u64) {
    let seed = splitmix::at(round, pe as u64);
    for (place, key) in keys.iter_mut().enumerate() {
        *key = (splitmix::at(seed, place as u64) >> (u64::BITS - KEY_BITS)) as u32;
    }
}

/// Seconds that a PE spent in each phase of a sort.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// Counting keys by bucket.
    pub count: f64,
    /// Agreeing on places, sending the keys there, and waiting for the others'.
    pub exchange: f64,
    /// Sorting the received keys.
    pub sort: f64,
}

impl Phases {
    /// The whole time.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.count + self.exchange + self.sort
    }
}

/// The result of checking all PEs' keys; equal on every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Keys that are on the wrong PE or smaller than the one before.
    pub misplaced: u64,
    /// The number of keys before and now.
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

/// The division of the range of keys into buckets of equal width.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    pes: usize,
    /// The number of a PE's buckets, as a power of two.
    bits: u32,
}

impl Buckets {
    /// The division for so many keys on each PE.
    fn new(pes: usize, keys: usize) -> Self {
        let few = |bits: &u32| keys >> bits >= FEWEST_KEYS && pes << bits <= MOST_BUCKETS;
        let bits = (1..KEY_BITS).take_while(few).last().unwrap_or(0);
        Buckets { pes, bits }
    }

    /// Buckets of one PE.
    fn each(self) -> usize {
        1 << self.bits
    }

    /// Buckets of all PEs.
    fn all(self) -> usize {
        self.pes << self.bits
    }

    fn of(self, key: u32) -> usize {
        ((u64::from(key) * self.all() as u64) >> KEY_BITS) as usize
    }

    fn pe(self, bucket: usize) -> usize {
        bucket >> self.bits
    }

    /// The buckets that a PE receives.
    fn of_pe(self, pe: usize) -> Range<usize> {
        pe << self.bits..(pe + 1) << self.bits
    }

    /// The range of keys of some adjacent buckets.
    fn keys(self, buckets: Range<usize>) -> Range<u32> {
        let bound =
            |bucket: usize| ((bucket as u64) << KEY_BITS).div_ceil(self.all() as u64) as u32;
        bound(buckets.start)..bound(buckets.end)
    }

    /// The number of the keys in each bucket.
    fn count(self, keys: &[u32]) -> Vec<u64> {
        let mut counts = vec![0; self.all()];
        for key in keys {
            counts[self.of(*key)] += 1;
        }
        counts
    }
}

/// Keys to be sent to one bucket. The n-th is for a place in the inbox that is n more than a
/// multiple of [`BUFFER`], so that a put writes whole cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Buffer([u32; BUFFER]);

/// A sorter of keys of all PEs, usable any number of times.
#[derive(Debug)]
pub struct Sorter<'w> {
    world: &'w World,
    buckets: Buckets,
    inbox: Sym<u32>,
    /// The source of an all-to-all, a row for each PE.
    told: Sym<u64>,
    /// The number of keys that this PE receives for each of its buckets.
    counts: Sym<u64>,
    /// The destination of the keys that this PE sends: their first place for each of the other's
    /// buckets, and the number of keys that the other receives in all.
    places: Sym<u64>,
    /// A buffer for each bucket.
    buffers: Vec<Buffer>,
    radix: Radix,
    sorted: Vec<u32>,
}

impl<'w> Sorter<'w> {
    /// For up to `keys` keys on each PE. Collective.
    ///
    /// A PE receives `keys` on average, with a standard deviation below its square root; there is
    /// space for eight of these.
    pub fn new(world: &'w World, keys: usize) -> Result<Self> {
        let room = keys + 8 * (keys as f64).sqrt() as usize + 64;
        let buckets = Buckets::new(world.n_pes(), keys);
        let cells = buckets.all() + world.n_pes();
        Ok(Sorter {
            world,
            buckets,
            inbox: world.alloc(room)?,
            told: world.alloc(cells)?,
            counts: world.alloc(buckets.all())?,
            places: world.alloc(cells)?,
            buffers: vec![Buffer([0; BUFFER]); buckets.all()],
            radix: Radix::default(),
            sorted: Vec::with_capacity(room),
        })
    }

    /// Sorts; this PE's part of the result is [`sorted`](Self::sorted). Collective.
    ///
    /// `Error::OutOfRange`, on all PEs, if any would be sent more keys than it has room for.
    pub fn sort(&mut self, keys: &[u32]) -> Result<Phases> {
        self.world.barrier_all()?; // All begin together: the first phase has no wait for the others.
        let start = Instant::now();
        let counts = self.buckets.count(keys);
        let counted = start.elapsed().as_secs_f64();

        let ends = self.tell_counts(&counts)?;
        let places = self.learn_places()?;
        self.send(keys, &places)?;
        self.world.barrier_all()?;
        let exchanged = start.elapsed().as_secs_f64();

        self.sort_what_came(&ends)?;
        let sorted = start.elapsed().as_secs_f64();
        Ok(Phases {
            count: counted,
            exchange: exchanged - counted,
            sort: sorted - exchanged,
        })
    }

    /// Tells each PE how many keys it will receive for each of its buckets. Reserves a range of the
    /// inbox for each of this PE's buckets, and in it one for each sender, and notes these in
    /// `told`. Returns the ends of the buckets.
    fn tell_counts(&self, counts: &[u64]) -> Result<Vec<u64>> {
        let told = self.told.range(..counts.len())?;
        self.world.write(told, counts)?;
        self.world.team().alltoall(self.counts, told)?;
        let mut counts = vec![0; counts.len()];
        self.world.read(&mut counts, self.counts)?;

        let each = self.buckets.each();
        let mut places = vec![0; self.told.len()];
        let mut next = 0;
        let mut ends = Vec::with_capacity(each);
        for bucket in 0..each {
            for pe in 0..self.buckets.pes {
                places[pe * (each + 1) + bucket] = next;
                next += counts[pe * each + bucket];
            }
            ends.push(next);
        }
        for row in places.chunks_exact_mut(each + 1) {
            row[each] = next;
        }
        self.world.write(self.told, &places)?;
        Ok(ends)
    }

    /// Sends each PE its row of `told`. Returns where this PE's keys of each bucket go, in the
    /// inbox of that bucket's PE.
    fn learn_places(&self) -> Result<Vec<usize>> {
        self.world.team().alltoall(self.places, self.told)?;
        let mut rows = vec![0; self.places.len()];
        self.world.read(&mut rows, self.places)?;
        let mut places = Vec::with_capacity(self.buckets.all());
        for row in rows.chunks_exact(self.buckets.each() + 1) {
            let (of_buckets, sent) = row.split_at(self.buckets.each());
            // Every PE learns of every inbox that is too small, so all fail or none.
            self.inbox.range(..sent[0] as usize)?;
            places.extend(of_buckets.iter().map(|place| *place as usize));
        }
        Ok(places)
    }

    /// Sends each key to its bucket. Puts may be in flight until the next barrier.
    fn send(&mut self, keys: &[u32], places: &[usize]) -> Result<()> {
        let buckets = self.buckets;
        let mut next = places.to_vec();
        for key in keys {
            let bucket = buckets.of(*key);
            let place = &mut next[bucket];
            self.buffers[bucket].0[*place % BUFFER] = *key;
            *place += 1;
            if place.is_multiple_of(BUFFER) {
                self.put(bucket, places[bucket].max(*place - BUFFER)..*place)?;
            }
        }
        for (bucket, (first, end)) in places.iter().zip(next).enumerate() {
            self.put(bucket, (end - end % BUFFER).max(*first)..end)?;
        }
        Ok(())
    }

    /// Puts a bucket's keys for some places, which are still in its buffer.
    #[inline(always)]
    fn put(&self, bucket: usize, places: Range<usize>) -> Result<()> {
        let keys = &self.buffers[bucket].0[places.start % BUFFER..][..places.len()];
        let pe = self.buckets.pe(bucket);
        self.world.put(self.inbox.range(places)?, keys, pe)
    }

    /// Sorts each of this PE's buckets, which lie in the inbox one after the other and end at
    /// `ends`.
    fn sort_what_came(&mut self, ends: &[u64]) -> Result<()> {
        let all = ends.last().map_or(0, |end| *end as usize);
        self.sorted.resize(all, 0);
        let mut begin = 0;
        for (bucket, end) in self.buckets.of_pe(self.world.my_pe()).zip(ends) {
            let end = *end as usize;
            let keys = &mut self.sorted[begin..end];
            self.world.read(keys, self.inbox.range(begin..end)?)?;
            self.radix.sort(keys, self.buckets.keys(bucket..bucket + 1));
            begin = end;
        }
        Ok(())
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

    /// Frees the memory. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.places)?;
        self.world.free(self.counts)?;
        self.world.free(self.told)?;
        self.world.free(self.inbox)
    }
}

/// Compares the sorted keys of all PEs with those before the sort. Collective.
pub fn check(world: &World, before: &[u32], sorted: &[u32]) -> Result<Check> {
    let me = world.my_pe();
    let range = Buckets::new(world.n_pes(), 0).keys(me..me + 1);
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

/// Sorts keys of a narrow range by two digits, the lower one first.
#[derive(Debug)]
struct Radix {
    /// The number of keys with each lower and each upper digit; then, the place of the next one.
    counters: Box<[[u32; DIGITS]; 2]>,
    scratch: Vec<u32>,
}

impl Default for Radix {
    fn default() -> Self {
        Radix {
            counters: Box::new([[0; DIGITS]; 2]),
            scratch: Vec::new(),
        }
    }
}

impl Radix {
    fn sort(&mut self, keys: &mut [u32], range: Range<u32>) {
        let bits = u32::BITS - (range.end - range.start).saturating_sub(1).leading_zeros();
        let width = bits.div_ceil(2);
        // The mask is visibly within `DIGITS`, so that the compiler drops the bounds checks.
        let mask = ((1 << width) - 1) & (DIGITS - 1);
        let lower = |key: u32| (key - range.start) as usize & mask;
        let upper = |key: u32| ((key - range.start) >> width) as usize & mask;

        let [lowers, uppers] = &mut *self.counters;
        lowers[..=mask].fill(0);
        uppers[..=mask].fill(0);
        for key in keys.iter() {
            lowers[lower(*key)] += 1;
            uppers[upper(*key)] += 1;
        }
        if self.scratch.len() < keys.len() {
            self.scratch.resize(keys.len(), 0);
        }
        let scratch = &mut self.scratch[..keys.len()];
        scatter(keys, scratch, lowers, mask, lower);
        scatter(scratch, keys, uppers, mask, upper);
    }
}

/// Copies keys in the order of a digit, which is `last` at most; `counters` holds the number of
/// keys for each digit.
#[inline(always)]
fn scatter(
    from: &[u32],
    to: &mut [u32],
    counters: &mut [u32; DIGITS],
    last: usize,
    digit: impl Fn(u32) -> usize,
) {
    let mut next = 0;
    for counter in &mut counters[..=last] {
        next += std::mem::replace(counter, next);
    }
    for key in from {
        let place = &mut counters[digit(*key)];
        to[*place as usize] = *key;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_key_has_one_bucket_and_its_range_says_so() {
        for (pes, keys) in [
            (1, 0),
            (1, 1 << 28),
            (2, 1 << 15),
            (3, 40_000),
            (7, 9000),
            (5000, 1 << 20),
        ] {
            let buckets = Buckets::new(pes, keys);
            assert_eq!(buckets.keys(0..buckets.all()), 0..KEYS_BELOW);
            assert_eq!(buckets.of_pe(pes - 1).end, buckets.all());
            for bucket in 0..buckets.all() {
                let range = buckets.keys(bucket..bucket + 1);
                assert_eq!(buckets.of(range.start), bucket, "{buckets:?}");
                assert_eq!(buckets.of(range.end - 1), bucket, "{buckets:?}");
                assert!(buckets.of_pe(buckets.pe(bucket)).contains(&bucket));
            }
        }
    }

    #[test]
    fn buckets_have_many_keys_and_their_buffers_fit_a_cache() {
        let each = |pes, keys| Buckets::new(pes, keys).each();
        assert_eq!(each(4, 0), 1);
        assert_eq!(each(4, 2 * FEWEST_KEYS - 1), 1);
        assert_eq!(each(4, 2 * FEWEST_KEYS), 2);
        assert_eq!(each(4, 1 << 28), MOST_BUCKETS / 4);
        assert_eq!(each(3, 1 << 28), MOST_BUCKETS / 4);
        assert_eq!(each(MOST_BUCKETS + 1, 1 << 28), 1);
    }

    proptest! {
        #[test]
        fn radix_sorts_of_each_bucket_agree_with_the_standard_sort(
            keys in prop::collection::vec(0..KEYS_BELOW, 0..500),
            pes in 1_usize..9,
            bits in 0_u32..6,
        ) {
            let buckets = Buckets { pes, bits };
            let mut radix = Radix::default();
            let mut together = Vec::new();
            for (bucket, count) in buckets.count(&keys).into_iter().enumerate() {
                let of_bucket = keys.iter().filter(|key| buckets.of(**key) == bucket);
                let mut of_bucket: Vec<u32> = of_bucket.copied().collect();
                prop_assert_eq!(of_bucket.len() as u64, count);
                radix.sort(&mut of_bucket, buckets.keys(bucket..bucket + 1));
                together.extend(of_bucket);
            }
            let mut wanted = keys;
            wanted.sort_unstable();
            prop_assert_eq!(together, wanted);
        }
    }
}
