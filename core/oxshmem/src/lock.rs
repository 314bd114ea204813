//! Locks among the PEs (OpenSHMEM 1.5, 9.11): MCS locks, in whose queue each PE waits on a word of its own.
//!
//! The lock's copy at one PE, its home, which the lock's offset chooses, holds the number of the last PE in the
//! queue. A PE that finds another PE there sends it its own number, and sleeps until that one hands the lock over.
//! So PEs get the lock in the order in which they asked, a release wakes one of them, and no PE polls over the
//! network. All words are of 32 bits: CPUs perform their atomics, whoever performs those of 64 bits (M29).
//!
//! The steps, and the consequences when one of them fails, are in [`mcs_lock`]. A PE that cannot go on breaks the lock
//! for all ([`broken`]). The first step swaps `last`, so that a PE to which that is refused (it has
//! no such atomics there) leaves the lock as it was.

pub(crate) mod broken;
pub(crate) mod mcs_lock;

use std::sync::atomic::{Ordering, fence};

use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::progress::futex::Kernel;
use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::park;
use oxshmem_engine::progress::reason::{WaitReason, WaitsOn};
use oxshmem_transport::{AtomicOp, Width};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::lock::broken::Broken;
use crate::lock::mcs_lock::{HOLDS, LockWords};
use crate::place::placed;
use crate::sym::Sym;

impl Context<'_> {
    /// Acquires a lock, waiting until the PEs that asked before have released it.
    ///
    /// `lock` is one word in host memory that was zero on every PE before its first use and that
    /// nothing else touches. The last holder's writes before its [`clear_lock`](Self::clear_lock) are
    /// visible. The lock belongs to the PE, so its threads, each on a context of its own, must not acquire it at once.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if this PE has it already, or if the context has a team's numbers for the PEs.
    ///
    /// A lock is broken once a PE is lost that had it, waited for it or keeps its queue, and once a call
    /// on it has failed midway, as by [`Error::Timeout`]. Then that call and those that wait fail, and so do all later
    /// ones on every PE as soon as that PE is notified, whether the loss is acknowledged or not: with
    /// [`Error::PeerLost`], or with [`Error::FailedElsewhere`], which says where and why. Take another lock; the memory
    /// of this one can be no lock again. The loss of other PEs does not disturb a lock.
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
        let _span = self.worker.traced(CALL);
        let lock = self.lock_words(CALL, lock)?;
        if !mcs_lock::acquire(&lock)? {
            return Err(Error::Argument {
                call: CALL,
                what: "this PE has the lock already, and would wait for itself; clear it first"
                    .into(),
            });
        }
        self.acquired(&lock)
    }

    /// Acquires a lock if it is free; gives whether this call has acquired it. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`set_lock`](Self::set_lock) of a broken lock. A PE that has it already gets false.
    #[doc(alias = "shmem_test_lock")]
    #[track_caller]
    pub fn test_lock(&self, lock: Sym<u64>) -> Result<bool> {
        placed(|| {
            let lock = self.lock_words("test_lock", lock)?;
            let acquired = mcs_lock::try_acquire(&lock)?;
            if acquired {
                self.acquired(&lock)?;
            }
            Ok(acquired)
        })
    }

    /// Completes what was issued on this context ([`quiet`](Self::quiet)), then releases a lock to the PE that has
    /// waited longest.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if this PE does not have it. [`Error::PeerLost`] of the quiet: the lock is released,
    /// and writes to PEs that live are complete. After any other error the lock is broken (see
    /// [`set_lock`](Self::set_lock)). So nobody waits for a PE whose `clear_lock` has failed.
    #[doc(alias = "shmem_clear_lock")]
    #[track_caller]
    pub fn clear_lock(&self, lock: Sym<u64>) -> Result<()> {
        placed(|| self.clear_lock_inner(lock))
    }

    fn clear_lock_inner(&self, lock: Sym<u64>) -> Result<()> {
        const CALL: &str = "clear_lock";
        let _span = self.worker.traced(CALL);
        let lock = self.lock_words(CALL, lock)?;
        if lock.load_own() & HOLDS == 0 {
            lock.check_intact()?;
            return Err(Error::Argument {
                call: CALL,
                what: "this PE does not have the lock; only the PE that set it may clear it".into(),
            });
        }
        let lost = match self.quiet() {
            Ok(()) => Ok(()),
            // The error does not say whether all else was completed.
            Err(lost @ Error::PeerLost { .. }) if self.quiet_to_living().is_ok() => Err(lost),
            Err(error) => return Err(lock.breaks(error)),
        };
        mcs_lock::release(&lock)?;
        lost
    }

    fn quiet_to_living(&self) -> Result<()> {
        let liveness = &self.worker.engine.liveness;
        let living = (0..self.n_pes()).filter(|&pe| !liveness.is_lost(pe));
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
        self.in_call(call).check_own(lock, 1)?;
        let halves: Sym<u32> = lock.at(0)?.cast()?;
        Ok(Lock {
            context: self,
            call,
            home: (lock.offset() / size_of::<u64>() as u64 % self.n_pes() as u64) as usize,
            last: halves.at(0)?,
            own: halves.at(1)?,
        })
    }

    /// Orders later reads behind the acquisition.
    fn acquired(&self, lock: &Lock<'_>) -> Result<()> {
        if self.worker.ordered {
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
    context: &'w Context<'w>,
    call: &'static str,
    /// The PE whose copy has the tail of the queue.
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
    /// This PE's own word. The writes of its setter before are visible.
    fn load_own(&self) -> u32 {
        let own = self.context.own(self.own);
        own.load_word(Width::W32, FenceSite::Wait) as u32
    }

    fn update(&self, op: AtomicOp, on: Sym<u32>, to: u32, from: u32, pe: usize) -> Result<u32> {
        let (to, from) = (to.into(), from.into());
        let old = self.context.rmw(self.call, op, on, to, from, pe)?;
        Ok(old as u32)
    }

    /// Breaks the lock if a step at the home failed, where the step may have been performed.
    fn at_home(&self, done: Result<u32>) -> Result<u32> {
        done.map_err(|error| match error {
            Error::Unsupported { .. } | Error::Unreachable { .. } => error,
            error => self.breaks(error),
        })
    }

    /// Breaks the lock for all, because of this error; gives it.
    #[cold]
    fn breaks(&self, error: Error) -> Error {
        let broken = Broken::of(self.context.my_pe(), &error);
        let locks = &self.context.pe.broken_locks;
        locks.note(self.last.offset(), broken);
        error
    }
}

impl LockWords for Lock<'_> {
    type Error = Error;

    fn me(&self) -> u32 {
        number(self.context.my_pe())
    }

    fn check_intact(&self) -> Result<()> {
        let offset = self.last.offset();
        match self.context.pe.broken_locks.find(offset) {
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

    fn check_alive(&self, pe: u32) -> Result<()> {
        let pe = numbered(pe);
        if self.context.worker.engine.liveness.is_lost(pe) {
            let call = self.call;
            return Err(self.breaks(Error::PeerLost { call, pe }));
        }
        Ok(())
    }

    fn own_word(&self) -> Result<u32> {
        Ok(self.load_own())
    }

    fn clear_own(&self) -> Result<()> {
        let cleared = self.update(AtomicOp::Swap, self.own, 0, 0, self.context.my_pe());
        cleared.map(drop).map_err(|error| self.breaks(error))
    }

    fn await_own(&self, bits: u32, whom: u32) -> Result<u32> {
        let (context, pe, offset) = (self.context, numbered(whom), self.last.offset());
        let describe = || match bits {
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
            describe: &describe,
        };
        // A PE that hands the lock over wakes this one, if it maps it. The number of the next PE arrives within
        // moments.
        let area = &context.pe.sync_area;
        let parker = match bits {
            HOLDS => area
                .parker(&context.worker, pe)
                .and_then(|_| area.parker(&context.worker, context.my_pe())),
            _ => None,
        };
        let waited = context
            .worker
            .wait(&reason, parker, || match self.load_own() {
                own if own & bits != 0 => Some(Ok(own)),
                _ => self.check_intact().err().map(Err),
            });
        waited.unwrap_or_else(|error| Err(self.breaks(error.into())))
    }

    fn set_bits(&self, pe: u32, bits: u32) -> Result<()> {
        let pe = numbered(pe);
        // A fetching atomic has been performed when it returns, so its error is this call's.
        let set = self.update(AtomicOp::Or, self.own, bits, 0, pe);
        set.map_err(|error| self.breaks(error))?;
        if bits == HOLDS
            && pe != self.context.my_pe()
            && let Some(parker) = self.context.pe.sync_area.parker(&self.context.worker, pe)
        {
            // Orders the word before the load of the waiters (park::unpark_all).
            fence(Ordering::SeqCst);
            park::unpark_all(parker, &Kernel);
        }
        Ok(())
    }
}
