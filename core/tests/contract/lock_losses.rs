//! Locks of which a PE is lost, or a call has failed: an error for all who use them, and no wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxshmem::testing::spmd_with;
use oxshmem::{Error, Result, Sym, World};

use crate::job::is_lost;
use crate::order::poll;
use crate::setting::{Path, Setting};

/// The ways that have 32-bit atomics.
const PATHS: [Path; 3] = [Path::Mapped, Path::Checked, Path::Weak];

/// A lock whose queue this PE keeps. What is allocated is one lock for each PE.
fn kept_by(locks: Sym<u64>, pe: usize) -> Result<Sym<u64>> {
    let first = (locks.offset() / 8) as usize;
    locks.at((pe + locks.len() - first % locks.len()) % locks.len())
}

/// The PE that entered the queue last, from 1.
fn last_in_queue(world: &World, lock: Sym<u64>, home: usize) -> Result<u32> {
    world.fetch(lock.cast::<u32>()?.at(0)?, home)
}

fn the_end() -> Error {
    Error::Argument {
        call: "test",
        what: "the end".into(),
    }
}

/// Counts PEs that have come to a point, and waits for so many.
#[derive(Default)]
struct Point(AtomicUsize);

impl Point {
    fn reach(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn await_all(&self, n: usize) -> Result<()> {
        poll(|| Ok(self.0.load(Ordering::Relaxed) >= n))
    }

    fn meet(&self, n: usize) -> Result<()> {
        self.reach();
        self.await_all(n)
    }
}

/// Runs PEs of which the last ends by an error, once each has what it needs.
fn without_the_last(path: Path, n: usize, run: impl Fn(&World, Sym<u64>) -> Result<()> + Sync) {
    let (begun, done) = (Point::default(), Point::default());
    let result = spmd_with(Setting::new(path).builder(), n, |world| {
        let locks = world.alloc_zeroed::<u64>(n)?;
        // A PE that ends while others are in the allocation's barrier may end that barrier with an error; and
        // operations of it in flight to the lost PE would fail a later quiet.
        world.quiet()?;
        begun.meet(n)?;
        run(world, locks)?;
        if world.my_pe() == n - 1 {
            return Err(the_end());
        }
        // A PE that ends first is lost to the others, so they end together.
        done.meet(n - 1)
    });
    let error = result.expect_err("the last PE ends by an error");
    assert!(error.to_string().contains("the end"), "{path:?}: {error}");
    assert_eq!(done.0.load(Ordering::Relaxed), n - 1, "{path:?}");
}

/// The holder dies. Who acknowledges that and asks again gets an error again, whoever else has asked.
#[test]
fn a_lock_whose_holder_was_lost_stays_an_error_for_all() {
    for path in PATHS {
        for home in [0, 1, 2] {
            let (held, ended, asked) = (Point::default(), Point::default(), Point::default());
            without_the_last(path, 3, |world, locks| {
                let lock = kept_by(locks, home)?;
                if world.my_pe() == 2 {
                    world.set_lock(lock)?;
                    return held.meet(3);
                }
                held.meet(3)?;
                // One waits, one finds it later.
                if world.my_pe() == 0 {
                    is_lost(world.set_lock(lock), 2);
                    ended.reach();
                }
                ended.await_all(1)?;
                poll(|| Ok(!world.pe_accessible(2)))?;
                world.acknowledge_lost();
                for _ in 0..2 {
                    is_lost(world.set_lock(lock), 2);
                    is_lost(world.test_lock(lock).map(drop), 2);
                }
                asked.meet(2)?;
                is_lost(world.clear_lock(lock), 2);
                // Others are as they were.
                let other = kept_by(locks, (home + 1) % 2)?;
                world.set_lock(other)?;
                world.clear_lock(other)
            });
        }
    }
}

/// One in the middle of the queue dies: the holder's hand-over and all behind it fail.
#[test]
fn a_lock_of_whose_queue_one_was_lost_is_an_error_for_all() {
    for path in PATHS {
        let (queued, lost) = (Point::default(), Point::default());
        let (begun, done) = (Point::default(), Point::default());
        let result = spmd_with(Setting::new(path).builder(), 4, |world| {
            let locks = world.alloc_zeroed::<u64>(4)?;
            begun.meet(4)?;
            let lock = kept_by(locks, 0)?;
            match world.my_pe() {
                0 => {
                    world.set_lock(lock)?;
                    queued.reach();
                    poll(|| Ok(last_in_queue(world, lock, 0)? == 3))?;
                    lost.await_all(2)?;
                    world.acknowledge_lost();
                    is_lost(world.clear_lock(lock), 3);
                    is_lost(world.set_lock(lock), 3);
                }
                3 => {
                    queued.await_all(1)?;
                    let me = lock.cast::<u32>()?.at(0)?;
                    // As far as a PE comes that dies within its call: it has entered the queue.
                    assert_eq!(world.swap(me, 4, 0)?, 1);
                    poll(|| Ok(last_in_queue(world, lock, 0)? == 3))?;
                    return Err(the_end());
                }
                pe => {
                    // PE 1 behind the one that dies, PE 2 behind PE 1.
                    let before = if pe == 1 { 4 } else { 2 };
                    poll(|| Ok(last_in_queue(world, lock, 0)? == before))?;
                    is_lost(world.set_lock(lock), 3);
                    lost.reach();
                    world.acknowledge_lost();
                    is_lost(world.set_lock(lock), 3);
                }
            }
            done.meet(3)
        });
        let error = result.expect_err("one PE ends by an error");
        assert!(error.to_string().contains("the end"), "{path:?}: {error}");
        assert_eq!(done.0.load(Ordering::Relaxed), 3, "{path:?}");
    }
}

/// Neither who has it nor who waits is disturbed by the end of a PE that does not use it.
#[test]
fn the_loss_of_another_pe_does_not_disturb_a_lock() {
    for path in PATHS {
        let held = Point::default();
        without_the_last(path, 3, |world, locks| {
            let lock = kept_by(locks, 0)?;
            match world.my_pe() {
                0 => {
                    world.set_lock(lock)?;
                    held.reach();
                    poll(|| Ok(last_in_queue(world, lock, 0)? == 2))?;
                    held.reach();
                    poll(|| Ok(!world.pe_accessible(2)))?;
                    world.clear_lock(lock)?;
                }
                1 => {
                    held.await_all(1)?;
                    world.set_lock(lock)?;
                    world.clear_lock(lock)?;
                }
                _ => return held.await_all(2),
            }
            for _ in 0..20 {
                world.set_lock(lock)?;
                world.clear_lock(lock)?;
            }
            Ok(())
        });
    }
}

/// `clear_lock` says that a put is lost with its PE, and lets go all the same.
#[test]
fn a_holder_that_wrote_to_a_lost_pe_lets_go() {
    let (held, wrote) = (Point::default(), Point::default());
    without_the_last(Path::Weak, 3, |world, locks| {
        let lock = kept_by(locks, 0)?;
        match world.my_pe() {
            0 => {
                world.set_lock(lock)?;
                let other = kept_by(locks, 2)?;
                held.reach();
                // Until one is outstanding when the PE is lost.
                let put = || world.p(other, 1, 2);
                poll(|| Ok(put().is_err()))?;
                wrote.reach();
                is_lost(world.clear_lock(lock), 2);
            }
            1 => {
                held.await_all(1)?;
                world.set_lock(lock)?;
                world.clear_lock(lock)?;
            }
            _ => return held.await_all(1),
        }
        wrote.await_all(1)
    });
}

/// A wait that takes too long says for whom. From then on the lock is an error for its holder and all
/// others, and nobody waits.
#[test]
fn a_lock_that_one_waited_for_too_long_is_an_error_for_all() {
    const SOON: Duration = Duration::from_secs(2);
    for path in PATHS {
        let (held, given_up, through) = (Point::default(), Point::default(), Point::default());
        let builder = Setting::new(path).builder().timeout(SOON);
        let result = spmd_with(builder, 3, |world| {
            let locks = world.alloc_zeroed::<u64>(3)?;
            let lock = kept_by(locks, 1)?;
            let fails = |result: Result<()>| match result {
                Err(Error::FailedElsewhere { pe, why, .. }) => {
                    assert!(pe > 0 && why.contains("OXSHMEM_TIMEOUT"), "{why}");
                }
                other => panic!("{other:?}"),
            };
            if world.my_pe() == 0 {
                world.set_lock(lock)?;
                held.reach();
                given_up.await_all(2)?;
                poll(|| Ok(world.test_lock(lock).is_err()))?;
                fails(world.clear_lock(lock));
            } else {
                held.await_all(1)?;
                match world.set_lock(lock) {
                    Err(error @ Error::Timeout { .. }) => {
                        let words = error.to_string();
                        let whom = ["PE 0", "PE 1", "PE 2"].map(|pe| words.contains(pe));
                        let two = whom.into_iter().filter(|named| *named).count() == 2;
                        assert!(two && words.contains("the lock at offset"), "{words}");
                    }
                    told => fails(told),
                }
                given_up.meet(2)?;
            }
            fails(world.set_lock(lock));
            fails(world.test_lock(lock).map(drop));
            // Another is as it was.
            let other = kept_by(locks, 2)?;
            world.set_lock(other)?;
            world.clear_lock(other)?;
            through.meet(3)
        });
        assert!(result.is_ok(), "{path:?}: {result:?}");
    }
}
