//! Exclusivity (M28, M29): all PEs hit one word at once, its own PE, PEs of its host and PEs of
//! others. Each PE's word takes its turn, in memory for the CPU's atomics and in memory that was
//! allocated for NICs' (`Hints::ATOMICS_REMOTE`).

use std::fmt::{Debug, Display};

use oxshmem::{AtomicBits, Cmp, Hints, Sym, Waitable, World};

use crate::outcome::{Outcome, ensure};

/// Bits of the mixed word that count; above them each PE has [`OWN`] of its own.
const COUNT: u32 = 16;
const OWN: u32 = 2;

/// An unsigned word.
trait Word: AtomicBits + Waitable + Ord + Display + Debug + Into<u64> {
    const BITS: u32;
    fn of(value: u64) -> Self;
}

impl Word for u32 {
    const BITS: u32 = 32;
    fn of(value: u64) -> Self {
        value as u32
    }
}

impl Word for u64 {
    const BITS: u32 = 64;
    fn of(value: u64) -> Self {
        value
    }
}

pub fn main(rounds: u64) -> Outcome {
    let world = World::init()?;
    for hints in [Hints::NONE, Hints::ATOMICS_REMOTE] {
        of_width::<u32>(&world, hints, rounds)?;
        of_width::<u64>(&world, hints, rounds)?;
    }
    let me = world.my_pe();
    world.finalize()?;
    println!("PE {me}: no update was lost");
    Ok(())
}

fn of_width<T: Word>(world: &World, hints: Hints, rounds: u64) -> Outcome {
    let n = world.n_pes();
    // The word has neighbours that nobody touches.
    let words = world.alloc_with_hints::<T>(3, hints)?;
    world.write(words, &[T::zeroed(); 3])?;
    let seen = world.alloc_zeroed::<T>(n * rounds as usize * 2)?;
    let word = words.at(1)?;
    for at in 0..n {
        let run = Run {
            world,
            word,
            seen,
            at,
            rounds,
        };
        let named = |error| format!("{} bits at PE {at}, {hints:?}: {error}", T::BITS);
        run.mixed().map_err(named)?;
        run.swapped().map_err(named)?;
        run.tickets().map_err(named)?;
        run.set_and_fetched().map_err(named)?;
        run.begin(0)?;
        let around = [world.g(words.at(0)?, at)?, world.g(words.at(2)?, at)?];
        let untouched = [T::zeroed(); 2];
        ensure(around == untouched, || {
            format!("PE {at}: its neighbours are {around:?}")
        })?;
    }
    world.free(seen)?;
    world.free(words)?;
    Ok(())
}

/// All PEs against the word of PE `at`.
struct Run<'w, T: Word> {
    world: &'w World,
    word: Sym<T>,
    /// For what PEs tell each other, a part for each.
    seen: Sym<T>,
    at: usize,
    rounds: u64,
}

impl<T: Word> Run<'_, T> {
    /// Gives the word a value, and lets all PEs begin at once.
    fn begin(&self, value: u64) -> Outcome {
        self.world.barrier_all()?;
        if self.world.my_pe() == self.at {
            self.world.set(self.word, T::of(value), self.at)?;
        }
        self.world.barrier_all()?;
        Ok(())
    }

    /// The word, when all PEs have ended.
    fn end(&self) -> Outcome<u64> {
        self.world.barrier_all()?;
        Ok(self.world.fetch(self.word, self.at)?.into())
    }

    /// Sums and bits in one word: each operation but swap and set. The low bits count, by adds and
    /// by compare-swap; of the others each PE changes its own.
    fn mixed(&self) -> Outcome {
        let (world, word, at) = (self.world, self.word, self.at);
        let own = COUNT + OWN * world.my_pe() as u32;
        ensure(own + OWN <= T::BITS, || {
            format!("{} PEs are too many", world.n_pes())
        })?;
        let [one, two] = [T::of(1 << own), T::of(2 << own)];
        let both: u64 = 3 << own;
        let one_off = T::of(!(1 << own));
        let check = |fetched: T, expected: u64, after: &str| {
            let fetched: u64 = fetched.into();
            ensure(fetched & both == expected << own, || {
                format!(
                    "{after}: own bits are {:#b}, not {expected:#b}",
                    (fetched & both) >> own
                )
            })
        };
        self.begin(0)?;
        for round in 0..self.rounds {
            check(world.fetch_or(word, one, at)?, 0, "fetch_or")?;
            world.add(word, T::of(1), at)?;
            check(world.fetch_xor(word, two, at)?, 1, "fetch_xor")?;
            check(world.fetch_inc(word, at)?, 3, "fetch_inc")?;
            world.and(word, one_off, at)?;
            check(
                world.fetch_add(word, T::of(1), at)?,
                2,
                "fetch_add after and",
            )?;
            world.or(word, one, at)?;
            world.inc(word, at)?;
            check(world.fetch(word, at)?, 3, "fetch after or")?;
            let mut expected = world.fetch(word, at)?;
            loop {
                let next = T::of(expected.into() + 1);
                let found = world.compare_swap(word, expected, next, at)?;
                check(found, 3, "compare_swap")?;
                if found == expected {
                    break;
                }
                expected = found;
            }
            check(world.fetch_and(word, one_off, at)?, 3, "fetch_and")?;
            world.xor(word, two, at)?;
            check(world.fetch(word, at)?, 0, "fetch after xor")?;
            // The owner's tests see it as the others do (M28).
            if at == world.my_pe() && round % 16 == 0 {
                ensure(world.test(word, Cmp::Ge, T::of(5 * round))?, || {
                    format!("a test in round {round} misses own updates")
                })?;
            }
        }
        let all = self.end()?;
        let expected = 5 * self.rounds * world.n_pes() as u64;
        ensure(expected >> COUNT == 0, || {
            format!("{} rounds are too many", self.rounds)
        })?;
        ensure(all == expected, || {
            format!("the word is {all:#x}, not {expected:#x}")
        })
    }

    /// Each PE swaps values of its own in: what was swapped out, with the last, is what was put in.
    fn swapped(&self) -> Outcome {
        let (world, n) = (self.world, self.world.n_pes() as u64);
        self.begin(0)?;
        let first = world.my_pe() as u64 * self.rounds + 1;
        let mut out = Vec::new();
        for value in first..first + self.rounds {
            out.push(world.swap(self.word, T::of(value), self.at)?);
        }
        let last = self.end()?;
        let mut all = self.gather(&out)?;
        all.push(T::of(last));
        self.are_all(all, 0..=n * self.rounds, "swapped out")
    }

    /// Every number is given once, whichever of two ways takes it.
    fn tickets(&self) -> Outcome {
        let (world, n) = (self.world, self.world.n_pes() as u64);
        self.begin(0)?;
        let mut tickets = Vec::new();
        for _ in 0..self.rounds {
            tickets.push(world.fetch_inc(self.word, self.at)?);
            tickets.push(world.fetch_add(self.word, T::of(1), self.at)?);
        }
        self.end()?;
        let all = self.gather(&tickets)?;
        self.are_all(all, 0..=2 * n * self.rounds - 1, "tickets")
    }

    /// A word whose halves belong together is never fetched with halves of two values.
    fn set_and_fetched(&self) -> Outcome {
        let half = T::BITS / 2;
        let whole = |value: u64| value << half | (!value & ((1 << half) - 1));
        self.begin(whole(0))?;
        for round in 0..self.rounds {
            let mine = round * 8 + self.world.my_pe() as u64;
            self.world.set(self.word, T::of(whole(mine)), self.at)?;
            let found: u64 = self.world.fetch(self.word, self.at)?.into();
            ensure(found == whole(found >> half), || {
                format!("torn: {found:#x}")
            })?;
        }
        self.end().map(drop)
    }

    /// The contributions of all PEs, on each; by puts and barriers alone.
    fn gather(&self, mine: &[T]) -> Outcome<Vec<T>> {
        let (world, len) = (self.world, mine.len());
        let me = world.my_pe();
        for pe in 0..world.n_pes() {
            world.put(self.seen.range(me * len..(me + 1) * len)?, mine, pe)?;
        }
        world.barrier_all()?;
        let mut all = vec![T::zeroed(); world.n_pes() * len];
        world.read(&mut all, self.seen.range(..world.n_pes() * len)?)?;
        world.barrier_all()?;
        Ok(all)
    }

    fn are_all(
        &self,
        mut all: Vec<T>,
        wanted: std::ops::RangeInclusive<u64>,
        what: &str,
    ) -> Outcome {
        all.sort_unstable();
        let odd = all
            .iter()
            .zip(wanted.clone())
            .find(|(a, b)| Into::<u64>::into(**a) != *b);
        let len = all.len() as u64;
        ensure(odd.is_none() && len == wanted.end() + 1, || {
            format!("{what}: {len} values; first out of line (found, wanted): {odd:?}")
        })
    }
}
