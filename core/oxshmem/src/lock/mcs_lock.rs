//! The protocol of an MCS lock, over [`LockWords`]: the library's atomics, or those of the model in
//! `tests/lock_model.rs`, which compiles this same file and searches every order of its steps.
//!
//! PEs are numbered from 1 here; 0 is nobody. A lock has two kinds of words, all zero at first:
//!
//! - `last`, one, at the lock's home: the PE that entered the queue last; 0 while the lock is free.
//! - `own`, one at each PE: [`HOLDS`], once it has the lock; [`NEXT`], the PE after it, once that PE has
//!   said so. Only the PE before it sets the first, only the one after it the second.
//!
//! A PE enters by swapping itself into `last`. If that was 0, the lock is its own. Else the old value is the PE
//! before it, to which it gives its number, and it waits for `HOLDS`. A PE that releases the lock sets `HOLDS` at the PE
//! after it. If it knows of none, it sets `last` from itself back to 0; if it is not `last` any more, a PE is about to give
//! its number, and it waits for that. It clears its own word first, so that each stay in the queue begins at 0.
//!
//! So the lock goes from hand to hand in the order of the swaps, and belongs to one PE at a time: the one that swapped a 0
//! out, or the one to which its holder set `HOLDS`.
//!
//! **Failure.** No PE leaves the queue but by having had the lock. If a step fails for good (the PE on which it
//! depends is lost, its lane has failed, or the wait has timed out), the lock is *broken*: the implementation of
//! [`LockWords`] notes that and notifies all PEs, and no words are repaired. From then on every call of every PE
//! fails, and waits end. Each PE in the queue is in a call, has the lock, or has broken it. A PE that waits watches
//! the PE on which it waits: so of the PEs behind a lost one the first that lives breaks the lock, and all are
//! notified. A PE that waits for the number of the PE after it watches the PE that was `last`: between the two every
//! PE that lives watches the one before it.

/// In a PE's own word: it has the lock.
pub(crate) const HOLDS: u32 = 1 << 31;
/// In a PE's own word: the PE after it.
pub(crate) const NEXT: u32 = HOLDS - 1;

/// The words of one lock, as one PE reaches them. A step that fails has broken the lock, unless its error says that
/// nothing was begun.
pub(crate) trait LockWords {
    type Error;

    /// This PE.
    fn me(&self) -> u32;
    /// Fails if the lock is broken.
    fn check_intact(&self) -> Result<(), Self::Error>;
    /// Changes `last` if it is `from`; gives what it was.
    fn change_last(&self, from: u32, to: u32) -> Result<u32, Self::Error>;
    /// Changes `last`, whatever it is; gives what it was.
    fn swap_last(&self, to: u32) -> Result<u32, Self::Error>;
    /// Fails if a PE that is in the queue is lost.
    fn check_alive(&self, pe: u32) -> Result<(), Self::Error>;
    /// This PE's own word.
    fn own_word(&self) -> Result<u32, Self::Error>;
    /// Clears this PE's own word.
    fn clear_own(&self) -> Result<(), Self::Error>;
    /// Waits until some of these bits are set in the own word; gives it. Fails if `whom` is lost before.
    fn await_own(&self, bits: u32, whom: u32) -> Result<u32, Self::Error>;
    /// Sets bits in the own word of a PE, and wakes it.
    fn set_bits(&self, pe: u32, bits: u32) -> Result<(), Self::Error>;
}

/// Acquires the lock; gives false if this PE has it already.
pub(crate) fn acquire<W: LockWords>(words: &W) -> Result<bool, W::Error> {
    words.check_intact()?;
    if words.own_word()? & HOLDS != 0 {
        return Ok(false);
    }
    let me = words.me();
    match words.swap_last(me)? {
        0 => words.set_bits(me, HOLDS)?,
        before => {
            words.set_bits(before, me)?;
            words.await_own(HOLDS, before)?;
        }
    }
    Ok(true)
}

/// Acquires the lock if it is free; gives whether this call has acquired it.
pub(crate) fn try_acquire<W: LockWords>(words: &W) -> Result<bool, W::Error> {
    words.check_intact()?;
    if words.own_word()? & HOLDS != 0 {
        return Ok(false);
    }
    let me = words.me();
    match words.change_last(0, me)? {
        0 => words.set_bits(me, HOLDS).map(|()| true),
        last => words.check_alive(last).map(|()| false),
    }
}

/// Releases the lock, which this PE has.
pub(crate) fn release<W: LockWords>(words: &W) -> Result<(), W::Error> {
    words.check_intact()?;
    let me = words.me();
    let mut next = words.own_word()? & NEXT;
    if next == 0 {
        let last = words.change_last(me, 0)?;
        if last == me {
            return words.clear_own();
        }
        next = words.await_own(NEXT, last)? & NEXT;
    }
    words.clear_own()?;
    words.set_bits(next, HOLDS)
}
