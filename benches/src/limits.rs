//! The machine's own time for the same work, with nothing of oxshmem in between. The loops have the
//! same shape as those that they are compared with.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::sizes::WORDS;

const MASK: usize = WORDS - 1;

/// An index outside of its slice. It never happens; the loops check because programs do.
#[derive(Clone, Copy, Debug)]
pub struct Outside;

/// A store with its index check, `n` times.
pub fn store(words: &[AtomicU64], n: u64) -> Result<(), Outside> {
    let words = black_box(words);
    for i in 0..n {
        words
            .get(i as usize & MASK)
            .ok_or(Outside)?
            .store(i, Ordering::Relaxed);
    }
    Ok(())
}

/// A load with its index check, `n` times.
pub fn load(words: &[AtomicU64], n: u64) -> Result<(), Outside> {
    let words = black_box(words);
    let mut sum = 0_u64;
    for i in 0..n {
        let value = words
            .get(i as usize & MASK)
            .ok_or(Outside)?
            .load(Ordering::Relaxed);
        sum = sum.wrapping_add(value);
    }
    black_box(sum);
    Ok(())
}

/// `lock xadd` with its index check, `n` times.
pub fn fetch_add(words: &[AtomicU64], n: u64) -> Result<(), Outside> {
    let words = black_box(words);
    let mut sum = 0_u64;
    for i in 0..n {
        let value = words
            .get(i as usize & MASK)
            .ok_or(Outside)?
            .fetch_add(1, Ordering::SeqCst);
        sum = sum.wrapping_add(value);
    }
    black_box(sum);
    Ok(())
}

/// A store with its index check and the language's full fence (`mfence` on x86), `n` times.
pub fn store_fence(words: &[AtomicU64], n: u64) -> Result<(), Outside> {
    let words = black_box(words);
    for i in 0..n {
        words
            .get(i as usize & MASK)
            .ok_or(Outside)?
            .store(i, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
    Ok(())
}

/// A store with its index check and a locked instruction on a private word, which on x86 is a full
/// fence too, `n` times.
pub fn store_locked(words: &[AtomicU64], n: u64) -> Result<(), Outside> {
    let words = black_box(words);
    let private = AtomicU64::new(0);
    for i in 0..n {
        words
            .get(i as usize & MASK)
            .ok_or(Outside)?
            .store(i, Ordering::Relaxed);
        black_box(private.fetch_or(0, Ordering::SeqCst));
    }
    Ok(())
}

/// One half of a ping-pong between two cores: `first` begins. Each side waits on `mine` for the
/// other's store to it and stores to `theirs`, `n` times, with the values that follow `after`.
/// `between` is done between two polls of `mine`: the fastest choice varies, so several are
/// measured.
#[inline(always)]
pub fn ping_pong(
    first: bool,
    mine: &AtomicU64,
    theirs: &AtomicU64,
    after: u64,
    n: u64,
    between: impl Fn(),
) {
    for value in after + 1..=after + n {
        if first {
            theirs.store(value, Ordering::Release);
        }
        while mine.load(Ordering::Acquire) != value {
            between();
        }
        if !first {
            theirs.store(value, Ordering::Release);
        }
    }
}

/// Nothing between two polls.
#[inline(always)]
pub fn at_once() {}

/// A few cycles between two polls, less than the processor's pause takes.
#[inline(always)]
pub fn few_steps() {
    for step in 0..4 {
        black_box(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loop_does_its_work_on_every_word() {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let held = || {
            words
                .iter()
                .map(|word| word.load(Ordering::Relaxed))
                .collect::<Vec<u64>>()
        };
        let rounds = 2 * WORDS as u64;
        for storing in [store, store_fence, store_locked] {
            words
                .iter()
                .for_each(|word| word.store(0, Ordering::Relaxed));
            storing(&words, rounds).unwrap();
            assert_eq!(held(), (WORDS as u64..rounds).collect::<Vec<_>>());
        }
        fetch_add(&words, rounds).unwrap();
        assert_eq!(held(), (WORDS as u64 + 2..rounds + 2).collect::<Vec<_>>());
        load(&words, rounds).unwrap();
    }

    #[test]
    fn too_few_words_are_noticed() {
        let words: Vec<AtomicU64> = (0..WORDS - 1).map(|_| AtomicU64::new(0)).collect();
        for loops in [store, store_fence, store_locked, load, fetch_add] {
            assert!(loops(&words, WORDS as u64).is_err());
        }
    }

    #[test]
    fn ping_pong_ends_with_the_last_value_on_both_sides() {
        let (ping, pong) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| ping_pong(false, &ping, &pong, 0, 100, at_once));
            ping_pong(true, &pong, &ping, 0, 100, std::hint::spin_loop);
        });
        let ends = [&ping, &pong].map(|word| word.load(Ordering::Relaxed));
        assert_eq!(ends, [100, 100]);
    }
}
