//! Locks among the PEs (OpenSHMEM 1.5, 9.11): a queue in which each PE waits on a word of its own.
//!
//! One copy of the lock, which its offset picks, has the number of the last PE in the queue. A PE that
//! finds another there tells it its own number and sleeps until that one hands over. So PEs come in the
//! order in which they asked, a release wakes one of them, and nobody asks again and again over a
//! network. All words are of 32 bits: their atomics are CPUs', wherever those of 64 are (M29).

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::Width;

use crate::futex::Kernel;
use crate::mapped::Bytes;
use crate::order::Inserted;
use crate::park;
use crate::wait::{Needs, Reason};
use crate::{Error, Result, Sym, World};

/// In a PE's own word of the queue: it waits.
const WAITS: u32 = 1 << 31;
/// It has the lock.
const HOLDS: u32 = 1 << 30;
/// Who is next, from 1; 0 is nobody.
const NEXT: u32 = HOLDS - 1;

/// The words of one lock.
struct Words {
    /// The PE whose copy has the end of the queue.
    home: usize,
    /// There: the last PE in the queue, from 1; 0 where the lock is free.
    last: Sym<u32>,
    /// At each PE: its own state, and who is next.
    own: Sym<u32>,
}

impl World {
    /// Takes a lock, waiting until the PEs that asked before have let it go.
    ///
    /// `lock` is one word in host memory that was zero on every PE before its first use and that
    /// nothing else touches. What its last holder wrote before [`clear_lock`](Self::clear_lock) is
    /// there. It belongs to the PE, so its threads must not take it at once.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if this PE has it already. [`Error::PeerLost`] if a PE was lost that might
    /// have had it: such a lock cannot be used again.
    ///
    /// ```
    /// # oxshmem::testing::spmd(4, |world| {
    /// let lock = world.alloc_zeroed::<u64>(1)?;
    /// let count = world.alloc_zeroed::<u64>(1)?;
    /// world.set_lock(lock)?;
    /// world.p(count, world.g(count, 0)? + 1, 0)?;
    /// world.clear_lock(lock)?;
    /// world.barrier_all()?;
    /// assert_eq!(world.g(count, 0)?, 4);
    /// # Ok(()) })?;
    /// # Ok::<(), oxshmem::Error>(())
    /// ```
    #[doc(alias = "shmem_set_lock")]
    pub fn set_lock(&self, lock: Sym<u64>) -> Result<()> {
        const CALL: &str = "set_lock";
        let _traced = self.traced(CALL);
        let words = self.lock_words(CALL, lock)?;
        let me = self.my_pe();
        if !self.enters(&words)? {
            return Err(Error::Argument {
                call: CALL,
                what: "this PE has the lock already, and would wait for itself; clear it first"
                    .into(),
            });
        }
        let before = self.swap(words.last, me as u32 + 1, words.home)?;
        let Some(before) = (before as usize).checked_sub(1) else {
            return self.has(&words);
        };
        self.or(words.own, me as u32 + 1, before)?;
        let what = || format!("to have the lock at offset {}", lock.offset());
        self.wait_in_queue(CALL, &words, before, &what, |own| own & WAITS == 0)
            .map(drop)
    }

    /// Takes a lock if it is free; gives whether this PE has it now. Does not wait.
    #[doc(alias = "shmem_test_lock")]
    pub fn test_lock(&self, lock: Sym<u64>) -> Result<bool> {
        let words = self.lock_words("test_lock", lock)?;
        let me = self.my_pe();
        if !self.enters(&words)? {
            return Ok(false);
        }
        let taken = self.compare_swap(words.last, 0, me as u32 + 1, words.home)? == 0;
        match taken {
            true => self.has(&words)?,
            false => self.swap(words.own, 0, me).map(drop)?,
        }
        Ok(taken)
    }

    /// Completes this PE's operations ([`quiet`](crate::Context::quiet) of the default context), then lets a lock
    /// go to the PE that has waited longest.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if this PE does not have it.
    #[doc(alias = "shmem_clear_lock")]
    pub fn clear_lock(&self, lock: Sym<u64>) -> Result<()> {
        const CALL: &str = "clear_lock";
        let _traced = self.traced(CALL);
        let words = self.lock_words(CALL, lock)?;
        let me = self.my_pe();
        let own = self.fetch(words.own, me)?;
        if own & HOLDS == 0 {
            return Err(Error::Argument {
                call: CALL,
                what: "this PE does not have the lock; only the PE that set it may clear it".into(),
            });
        }
        self.quiet()?;
        let mut next = own & NEXT;
        if next == 0 {
            let last = self.compare_swap(words.last, me as u32 + 1, 0, words.home)?;
            if last == me as u32 + 1 {
                return self.swap(words.own, 0, me).map(drop);
            }
            // It has entered the queue and is about to tell this PE.
            let what = || "to say that it is next for the lock".into();
            let pe = (last as usize).saturating_sub(1);
            next = self.wait_in_queue(CALL, &words, pe, &what, |own| own & NEXT != 0)? & NEXT;
        }
        // From here on this PE may enter again.
        self.swap(words.own, 0, me)?;
        self.hand_over(&words, (next as usize).saturating_sub(1))
    }

    fn lock_words(&self, call: &'static str, lock: Sym<u64>) -> Result<Words> {
        self.check_own(call, lock, 1)?;
        let halves: Sym<u32> = lock.at(0)?.cast()?;
        Ok(Words {
            home: (lock.offset() / size_of::<u64>() as u64 % self.n_pes() as u64) as usize,
            last: halves.at(0)?,
            own: halves.at(1)?,
        })
    }

    /// Makes this PE one that waits; gives whether it was none that has the lock.
    fn enters(&self, words: &Words) -> Result<bool> {
        let me = self.my_pe();
        if self.fetch(words.own, me)? & HOLDS != 0 {
            return Ok(false);
        }
        self.swap(words.own, WAITS, me)?;
        Ok(true)
    }

    /// The lock was free, and is this PE's now.
    fn has(&self, words: &Words) -> Result<()> {
        self.xor(words.own, WAITS | HOLDS, self.my_pe())?;
        // In the relaxed model nothing else keeps later reads behind the one that found it free (M21).
        self.fence()
    }

    /// Makes a PE that waits the one that has the lock, and wakes it.
    fn hand_over(&self, words: &Words, to: usize) -> Result<()> {
        self.xor(words.own, WAITS | HOLDS, to)?;
        if let Some(bell) = self.bell(to) {
            // Orders the word before the look at the sleepers (park::ring).
            fence(Ordering::SeqCst);
            park::ring(bell, &Kernel);
        }
        Ok(())
    }

    /// Waits until this PE's own word is as asked; gives it. `whom` is to change it, or whoever comes
    /// before that one.
    fn wait_in_queue(
        &self,
        call: &'static str,
        words: &Words,
        whom: usize,
        what: &dyn Fn() -> String,
        is_so: impl Fn(u32) -> bool,
    ) -> Result<u32> {
        let tell = || (format!("PE {whom}"), what());
        let reason = Reason {
            call,
            needs: Needs::AnyLiving,
            tell: &tell,
        };
        // Who is not mapped here rings no bell.
        let bell = self.bell(whom).and_then(|_| self.bell(self.my_pe()));
        self.wait(&reason, bell, || {
            let own = self.own(words.own).look(Width::W32, Inserted::Wait) as u32;
            is_so(own).then_some(own)
        })
    }
}
