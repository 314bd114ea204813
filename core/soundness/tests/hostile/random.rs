//! Random arguments.

/// A sequence of numbers (xorshift), the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| {
            random.next();
        });
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// An index, a length or a stride for an object of `len` elements: valid, almost valid, or far
    /// out of range.
    pub fn odd(&mut self, len: usize) -> usize {
        let near = [
            0,
            1,
            2,
            3,
            7,
            len / 2,
            len.wrapping_sub(1),
            len,
            len.wrapping_add(1),
        ];
        let far = [
            usize::MAX,
            usize::MAX - 1,
            usize::MAX / 2,
            usize::MAX / 8,
            usize::MAX / 8 + 1,
            1 << 32,
            1 << 63,
        ];
        match self.below(3) {
            0 => self.one_of(&far),
            1 => self.one_of(&near),
            _ => self.below(len),
        }
    }

    /// The number of a PE, most often of one that exists.
    pub fn pe(&mut self, n: usize) -> usize {
        match self.below(6) {
            0 => self.odd(n),
            _ => self.below(n),
        }
    }
}
