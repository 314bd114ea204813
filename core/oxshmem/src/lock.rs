//! Locks among the PEs (OpenSHMEM 1.5, 9.11): a queue in which each PE waits on a word of its own.
//!
//! One copy of the lock, which its offset picks, has the number of the last PE in the queue. A PE that
//! finds another there tells it its own number and sleeps until that one hands over. So PEs come in the
//! order in which they asked, a release wakes one of them, and nobody asks again and again over a
//! network. All words are of 32 bits: their atomics are CPUs', wherever those of 64 are (M29).
//!
//! The steps, and what happens when one of them fails, are in [`queue`]; who cannot go on breaks the lock
//! for all ([`broken`]). Nothing is entered before `last` is swapped, so that a PE to which that is refused (it has
//! no such atomics there) leaves the lock as it was.

mod broken;
mod mcs_lock;

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{AtomicOp, Width};

pub(crate) use self::broken::{Broken, BrokenLocks};
use self::mcs_lock::{HOLDS, LockWords};
use crate::futex::Kernel;
use crate::hang::WaitedFor;
use crate::mapped::HostMemory;
use crate::order::FenceSite;
use crate::park;
use crate::place::placed;
use crate::wait::{WaitReason, WaitsOn};
use crate::{Context, Error, Result, Sym};

impl Context<'_> {
    /// Takes a lock, waiting until the PEs that asked before have let it go.
    ///
    /// `lock` is one word in host memory that was zero on every PE before its first use and that
    /// nothing else touches. What its last holder wrote before [`clear_lock`](Self::clear_lock) is
    /// there. It belongs to the PE, so its threads, each on a context of its own, must not take it at once.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if this PE has it already, or if the context has a team's numbers for the PEs.
    ///
    /// A lock is broken once a PE is lost that had it, waited for it or keeps its queue, and once a call
    /// on it has failed midway, as by [`Error::Timeout`]. Then that call and those that wait fail, and all later ones on every
    /// PE as soon as it has heard, whether the loss is acknowledged or not: with [`Error::PeerLost`], or with
    /// [`Error::FailedElsewhere`], which says where and why. Take another lock; the memory of this one
    /// can be no lock again. The loss of other PEs does not disturb a lock.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let lock = world.alloc_zeroed::<u64>(1)?;
    ///         let count = world.alloc_zeroed::<u64>(1)?;
    ///         world.set_lock(lock)?;
    ///         world.p(count, world.g(count, 0)? + 1, 0)?;
    ///         world.clear_lock(lock)?;
    ///         world.barrier_all()?;
    ///         assert_eq!(world.g(count, 0)?, 4);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias = "shmem_set_lock")]
    #[track_caller]
    pub fn set_lock(&self, lock: Sym<u64>) -> Result<()> {
        placed(|| self.set_lock_inner(lock))
    }

    fn set_lock_inner(&self, lock: Sym<u64>) -> Result<()> {
        const CALL: &str = "set_lock";
        let _traced = self.traced(CALL);
        let lock = self.lock_words(CALL, lock)?;
        if !mcs_lock::take(&lock)? {
            return Err(Error::Argument {
                call: CALL,
                what: "this PE has the lock already, and would wait for itself; clear it first"
                    .into(),
            });
        }
        self.has(&lock)
    }

    /// Takes a lock if it is free; gives whether this call has taken it. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`set_lock`](Self::set_lock) of a broken lock; who has it already gets false.
    #[doc(alias = "shmem_test_lock")]
    #[track_caller]
    pub fn test_lock(&self, lock: Sym<u64>) -> Result<bool> {
        placed(|| {
            let lock = self.lock_words("test_lock", lock)?;
            let taken = mcs_lock::take_if_free(&lock)?;
            if taken {
                self.has(&lock)?;
            }
            Ok(taken)
        })
    }

    /// Completes what was issued on this context ([`quiet`](Self::quiet)), then lets a lock go to the PE that has
    /// waited longest.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if this PE does not have it. [`Error::PeerLost`] of the quiet: the lock is let go,
    /// and what was written on PEs that live is there. After any other error the lock is broken (see
    /// [`set_lock`](Self::set_lock)). So nobody waits for a PE whose `clear_lock` has failed.
    #[doc(alias = "shmem_clear_lock")]
    #[track_caller]
    pub fn clear_lock(&self, lock: Sym<u64>) -> Result<()> {
        placed(|| self.clear_lock_inner(lock))
    }

    fn clear_lock_inner(&self, lock: Sym<u64>) -> Result<()> {
        const CALL: &str = "clear_lock";
        let _traced = self.traced(CALL);
        let lock = self.lock_words(CALL, lock)?;
        if lock.look() & HOLDS == 0 {
            lock.check_intact()?;
            return Err(Error::Argument {
                call: CALL,
                what: "this PE does not have the lock; only the PE that set it may clear it".into(),
            });
        }
        let lost = match self.quiet() {
            Ok(()) => Ok(()),
            // The error does not tell whether all else was completed.
            Err(lost @ Error::PeerLost { .. }) if self.quiet_to_the_living().is_ok() => Err(lost),
            Err(error) => return Err(lock.breaks(error)),
        };
        mcs_lock::release(&lock)?;
        lost
    }

    fn quiet_to_the_living(&self) -> Result<()> {
        let losses = &self.shared.liveness;
        let living = (0..self.n_pes()).filter(|&pe| !losses.is_lost(pe));
        self.pe_quiet(&living.collect::<Vec<_>>())
    }

    fn lock_words(&self, call: &'static str, lock: Sym<u64>) -> Result<Lock<'_>> {
        if !self.counts_as_world() {
            return Err(Error::Argument {
                call,
                what:
                    "this context has a team's numbers for its PEs; use one that the world has made"
                        .into(),
            });
        }
        self.check_own(call, lock, 1)?;
        let halves: Sym<u32> = lock.at(0)?.cast()?;
        Ok(Lock {
            world: self,
            call,
            home: (lock.offset() / size_of::<u64>() as u64 % self.n_pes() as u64) as usize,
            last: halves.at(0)?,
            own: halves.at(1)?,
        })
    }

    /// This PE has taken the lock.
    fn has(&self, lock: &Lock<'_>) -> Result<()> {
        if self.ordered {
            return Ok(());
        }
        // Nothing else keeps later reads behind the one that found the lock free (M21).
        let fenced = self.fence();
        if fenced.is_err() {
            // The caller does not get it.
            mcs_lock::release(lock)?;
        }
        fenced
    }
}

/// One lock, in one call.
struct Lock<'w> {
    world: &'w Context<'w>,
    call: &'static str,
    /// The PE whose copy has the end of the queue.
    home: usize,
    last: Sym<u32>,
    own: Sym<u32>,
}

/// The number of a PE as it stands in the words.
fn number(pe: usize) -> u32 {
    pe as u32 + 1
}

/// The PE with such a number.
fn numbered(number: u32) -> usize {
    number.saturating_sub(1) as usize
}

impl Lock<'_> {
    /// This PE's own word; what its setter did before is seen.
    fn look(&self) -> u32 {
        let own = self.world.own(self.own);
        own.load_word(Width::W32, FenceSite::Wait) as u32
    }

    fn update(&self, op: AtomicOp, on: Sym<u32>, to: u32, from: u32, pe: usize) -> Result<u32> {
        let (to, from) = (to.into(), from.into());
        let old = self.world.rmw(self.call, op, on, to, from, pe)?;
        Ok(old as u32)
    }

    /// A step at the home failed, if it did: broken is the lock where the step may have been performed.
    fn at_home(&self, done: Result<u32>) -> Result<u32> {
        done.map_err(|error| match error {
            Error::Unsupported { .. } | Error::Unreachable { .. } => error,
            error => self.breaks(error),
        })
    }

    /// The lock is broken for all, because of this error; gives it.
    #[cold]
    fn breaks(&self, error: Error) -> Error {
        let broken = Broken::of(self.world.my_pe(), &error);
        let locks = &self.world.shared.broken_locks;
        locks.note(self.last.offset(), broken);
        error
    }
}

impl LockWords for Lock<'_> {
    type Error = Error;

    fn me(&self) -> u32 {
        number(self.world.my_pe())
    }

    fn check_intact(&self) -> Result<()> {
        let offset = self.last.offset();
        match self.world.shared.broken_locks.find(offset) {
            None => Ok(()),
            Some(broken) => Err(broken.error(self.call, offset)),
        }
    }

    fn change_last(&self, from: u32, to: u32) -> Result<u32> {
        let swap = AtomicOp::CompareSwap;
        self.at_home(self.update(swap, self.last, to, from, self.home))
    }

    fn swap_last(&self, to: u32) -> Result<u32> {
        self.at_home(self.update(AtomicOp::Swap, self.last, to, 0, self.home))
    }

    fn lives(&self, pe: u32) -> Result<()> {
        let pe = numbered(pe);
        if self.world.shared.liveness.is_lost(pe) {
            let call = self.call;
            return Err(self.breaks(Error::PeerLost { call, pe }));
        }
        Ok(())
    }

    fn own_word(&self) -> Result<u32> {
        Ok(self.look())
    }

    fn clear_own(&self) -> Result<()> {
        let cleared = self.update(AtomicOp::Swap, self.own, 0, 0, self.world.my_pe());
        cleared.map(drop).map_err(|error| self.breaks(error))
    }

    fn await_own(&self, bits: u32, whom: u32) -> Result<u32> {
        let (world, pe, offset) = (self.world, numbered(whom), self.last.offset());
        let tell = || match bits {
            HOLDS => {
                let what = "which it or a PE before it in the queue has";
                let what = format!("the lock at offset {offset}, {what}");
                (WaitedFor::Pe(pe), what)
            }
            _ => {
                let what = format!("to say that it is next for the lock at offset {offset}");
                (WaitedFor::Pe(pe), what)
            }
        };
        let reason = WaitReason {
            call: self.call,
            needs: WaitsOn::Predecessor(pe),
            describe: &tell,
        };
        // Who hands over rings, if it maps this PE; who says that it is next does so within moments.
        let bell = match bits {
            HOLDS => world.parker(pe).and_then(|_| world.parker(world.my_pe())),
            _ => None,
        };
        let waited = world.wait(&reason, bell, || match self.look() {
            own if own & bits != 0 => Some(Ok(own)),
            _ => self.check_intact().err().map(Err),
        });
        waited.unwrap_or_else(|error| Err(self.breaks(error)))
    }

    fn tell(&self, pe: u32, bits: u32) -> Result<()> {
        let pe = numbered(pe);
        // One that fetches has been performed when it returns; an error is this call's.
        let told = self.update(AtomicOp::Or, self.own, bits, 0, pe);
        told.map_err(|error| self.breaks(error))?;
        if bits == HOLDS
            && pe != self.world.my_pe()
            && let Some(bell) = self.world.parker(pe)
        {
            // Orders the word before the look at the sleepers (park::ring).
            fence(Ordering::SeqCst);
            park::unpark_all(bell, &Kernel);
        }
        Ok(())
    }
}
