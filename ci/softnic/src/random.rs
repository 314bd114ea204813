//! Pseudo-random numbers from a seed: the same seed gives the same sequence.

use std::time::Duration;

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed ^ 0x5eed_0f50_f7f1_c000)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    /// A delay of up to `most`: half of them none, most of the others short, one in ten of any length.
    pub(crate) fn delay(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        match self.below(10) {
            0..=4 => Duration::ZERO,
            5..=8 => Duration::from_nanos(self.below(most / 8 + 1)),
            _ => Duration::from_nanos(self.below(most + 1)),
        }
    }

    /// Puts a list into a random order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_sequence() {
        let (mut one, mut same, mut other) = (Random::new(7), Random::new(7), Random::new(8));
        let first: Vec<u64> = (0..8).map(|_| one.next()).collect();
        assert!(first.iter().all(|number| *number == same.next()));
        assert!(first.iter().any(|number| *number != other.next()));
    }

    #[test]
    fn a_shuffled_list_keeps_its_elements() {
        let mut list: Vec<u32> = (0..50).collect();
        Random::new(3).shuffle(&mut list);
        assert!(list.iter().enumerate().any(|(at, one)| at != *one as usize));
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
    }
}
