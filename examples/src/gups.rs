//! Updates of random words of a table that is spread over all PEs, as in HPC Challenge's
//! RandomAccess: `table[a >> (64 - n)] ^= a` for a stream of numbers `a`, four per word, with `2^n` words.
//!
//! The stream is the powers of x in a field of 2^64 elements, so each PE can begin anywhere in it.

use oxshmem::{Result, Sym, World};

/// Updates that a PE may hold back at most, by HPC Challenge's rules.
const LOOK_AHEAD: usize = 1024;

/// The position in the stream where the first PE begins. In thousands of elements after position 0,
/// which is 1, most bits are zeros, and many updates would hit one word.
const BEGIN: u64 = 0x0123_4567_89ab_cdef;

/// The method to update a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// By an atomic exclusive-or: none is lost (M28).
    Atomic,
    /// By a get and a put, both nonblocking: concurrent updates of one word are lost.
    GetPut,
}

/// HPC Challenge's stream of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Stream(u64);

/// The field is that of polynomials modulo x^64 + x^2 + x + 1.
const REDUCED: u64 = 0b111;

impl Stream {
    /// The stream from the element at `place` on; the one at 0 is 1.
    #[must_use]
    pub fn from(place: u64) -> Self {
        let (mut power, mut square) = (1, 2);
        let mut rest = place;
        while rest > 0 {
            if rest & 1 == 1 {
                power = product(power, square);
            }
            square = product(square, square);
            rest >>= 1;
        }
        Stream(power)
    }
}

impl Iterator for Stream {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let now = self.0;
        self.0 = times_x(now);
        Some(now)
    }
}

#[inline]
fn times_x(number: u64) -> u64 {
    let carry = (number >> 63).wrapping_neg();
    (number << 1) ^ (carry & REDUCED)
}

fn product(a: u64, b: u64) -> u64 {
    let bits = (0..u64::BITS).rev();
    bits.fold(0, |sum, bit| times_x(sum) ^ (a * ((b >> bit) & 1)))
}

/// A table of equally many words on each PE.
#[derive(Debug)]
pub struct Table<'w> {
    world: &'w World,
    words: Sym<u64>,
    /// Words of all PEs.
    total: u64,
    /// The words of one PE are 2 to the power of this.
    shift: u32,
    /// Updates of each PE in a run.
    updates: u64,
}

/// The result of checking a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Whether the exclusive-or of all words matches the updates.
    pub sum_holds: bool,
    /// Words that differ from their initial value after all updates were made a second time.
    pub wrong: u64,
    /// Words in all.
    pub words: u64,
}

impl Check {
    /// Accepts the errors that are allowed: none, and without atomics one word in a hundred.
    /// Otherwise says what is wrong.
    pub fn verdict(&self, update: Update) -> std::result::Result<(), String> {
        let Check {
            sum_holds,
            wrong,
            words,
        } = self;
        match update {
            Update::Atomic if !sum_holds => {
                Err("updates were lost or made twice: the words' sum is not theirs".into())
            }
            Update::Atomic if *wrong > 0 => Err(format!("{wrong} of {words} words are wrong")),
            Update::GetPut if *wrong > words / 100 => Err(format!(
                "{wrong} of {words} words are wrong, {} at most are allowed; \
                 take --update atomic, or a larger --size, where updates meet less often",
                words / 100
            )),
            Update::Atomic | Update::GetPut => Ok(()),
        }
    }
}

impl<'w> Table<'w> {
    /// A table of 2 to the power of `shift` of the words that each PE has in `memory`; each word
    /// holds its number.
    pub fn new(world: &'w World, memory: Sym<u64>, shift: u32) -> Result<Self> {
        let words = memory.range(..1_usize << shift)?;
        let table = Table {
            world,
            words,
            total: (world.n_pes() as u64) << shift,
            shift,
            updates: 4 << shift,
        };
        for (index, number) in (0..words.len()).zip(table.numbers()) {
            world.write(words.at(index)?, &[number])?;
        }
        world.barrier_all()?;
        Ok(table)
    }

    /// Sets the number of updates of each PE in a run.
    #[must_use]
    pub fn with_updates(mut self, each: u64) -> Self {
        self.updates = each;
        self
    }

    /// Updates of all PEs in a run: four for each word, unless set otherwise.
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.updates * self.world.n_pes() as u64
    }

    /// This PE's part of the updates.
    fn mine(&self) -> impl Iterator<Item = u64> + use<> {
        let before = self.world.my_pe() as u64 * self.updates;
        Stream::from(BEGIN + before).take(self.updates as usize)
    }

    /// The initial values of this PE's words.
    fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        let first = (self.world.my_pe() as u64) << self.shift;
        first..first + (1 << self.shift)
    }

    /// The word that a number updates: by its highest bits, so that updates are spread evenly also
    /// if the number of PEs is no power of two.
    #[inline]
    fn place(&self, number: u64) -> (usize, usize) {
        let word = ((u128::from(number) * u128::from(self.total)) >> u64::BITS) as u64;
        let index = word & ((1 << self.shift) - 1);
        ((word >> self.shift) as usize, index as usize)
    }

    /// Makes this PE's updates; all PEs' are complete on return. Collective.
    pub fn update(&self, update: Update) -> Result<()> {
        match update {
            Update::Atomic => self.xor()?,
            Update::GetPut => self.get_and_put()?,
        }
        self.world.barrier_all()
    }

    /// Waits for no single update: they return nothing.
    fn xor(&self) -> Result<()> {
        for (done, number) in (1..).zip(self.mine()) {
            let (pe, index) = self.place(number);
            self.world.xor(self.words.at(index)?, number, pe)?;
            if done % LOOK_AHEAD == 0 {
                self.world.quiet()?;
            }
        }
        Ok(())
    }

    fn get_and_put(&self) -> Result<()> {
        let mut stream = self.mine();
        let mut ahead = Vec::with_capacity(LOOK_AHEAD);
        let mut values = vec![0; LOOK_AHEAD];
        loop {
            ahead.clear();
            ahead.extend(stream.by_ref().take(LOOK_AHEAD));
            if ahead.is_empty() {
                return Ok(());
            }
            self.get_and_put_some(&ahead, &mut values)?;
        }
    }

    fn get_and_put_some(&self, ahead: &[u64], values: &mut [u64]) -> Result<()> {
        let values = &mut values[..ahead.len()];
        self.world.scope(|scope| {
            for (number, value) in ahead.iter().zip(values.chunks_mut(1)) {
                let (pe, index) = self.place(*number);
                scope.get_nbi(value, self.words.at(index)?, pe)?;
            }
            Ok(())
        })?;
        for (number, value) in ahead.iter().zip(&mut *values) {
            *value ^= number;
        }
        self.world.scope(|scope| {
            for (number, value) in ahead.iter().zip(values.chunks(1)) {
                let (pe, index) = self.place(*number);
                scope.put_nbi(self.words.at(index)?, value, pe)?;
            }
            Ok(())
        })
    }

    /// The exclusive-or of this PE's words.
    fn sum(&self) -> Result<u64> {
        let mut held = vec![0; self.words.len()];
        self.world.read(&mut held, self.words)?;
        Ok(held.into_iter().fold(0, |sum, word| sum ^ word))
    }

    /// Checks a table whose updates were made once, or any odd number of times. Makes them once
    /// more by atomics, after which each word is its number again. Collective; PE 0 has the result.
    pub fn check(&self) -> Result<Option<Check>> {
        let expected = self.numbers().chain(self.mine());
        let difference = expected.fold(self.sum()?, |sum, number| sum ^ number);
        self.world.barrier_all()?;
        self.update(Update::Atomic)?;
        let mut held = vec![0; self.words.len()];
        self.world.read(&mut held, self.words)?;
        let wrong = held
            .into_iter()
            .zip(self.numbers())
            .filter(|(is, was)| is != was);

        let found = self.world.alloc::<[u64; 2]>(self.world.n_pes())?;
        let mine = [difference, wrong.count() as u64];
        self.world.p(found.at(self.world.my_pe())?, mine, 0)?;
        self.world.barrier_all()?;
        let mut all = vec![[0; 2]; found.len()];
        self.world.read(&mut all, found)?;
        self.world.free(found)?;
        Ok((self.world.my_pe() == 0).then(|| Check {
            sum_holds: all.iter().fold(0, |sum, [part, _]| sum ^ part) == 0,
            wrong: all.iter().map(|[_, wrong]| wrong).sum(),
            words: self.total,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_hpc_challenges_from_any_place() {
        // By its definition: shifted, and 7 added where a one fell out.
        let mut number = 1_u64;
        for place in 0..1000 {
            assert_eq!(Stream::from(place).next(), Some(number));
            let fell_out = number >> 63 == 1;
            number = (number << 1) ^ if fell_out { 7 } else { 0 };
        }
        // Its period, as published.
        assert_eq!(Stream::from(1_317_624_576_693_539_401).next(), Some(1));
        let far = 1 << 40;
        assert_eq!(Stream::from(far).nth(5), Stream::from(far + 5).next());
    }
}
