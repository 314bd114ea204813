//! Random numbers that depend only on their place in the sequence (Steele's SplitMix64), so that
//! PEs make their parts of one sequence without communication.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number at `place` of the sequence of `seed`.
#[inline]
#[must_use]
pub fn at(seed: u64, place: u64) -> u64 {
    mix(seed.wrapping_add(place.wrapping_add(1).wrapping_mul(STEP)))
}

/// A permutation of the 64-bit numbers, in which neighbours have no similarity.
#[inline]
#[must_use]
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sequence_of_a_seed_is_the_published_one() {
        let first: Vec<u64> = (0..3).map(|place| super::at(1_234_567, place)).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }
}
