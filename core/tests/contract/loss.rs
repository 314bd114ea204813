//! Thread PEs that end before the others, and waits that take too long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxshmem::testing::spmd_with;
use oxshmem::{Cmp, Error, Result, SignalOp, Sym, Team, World};

use crate::job::is_lost;
use crate::order::poll;
use crate::setting::{Path, Setting};

/// How the last PE ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Error,
    Panic,
}

/// The call that the others are in when the PE ends.
type Call = fn(&World, Sym<u64>, usize) -> Result<()>;

fn the_last_one_ends(path: Path, n: usize, end: End, call: Call) {
    let survivors = AtomicUsize::new(0);
    let allocated = AtomicUsize::new(0);
    let victim = n - 1;
    let run = || {
        spmd_with(Setting::new(path).builder(), n, |world| {
            let me = world.my_pe();
            let x = world.alloc_zeroed::<u64>(n)?;
            allocated.fetch_add(1, Ordering::Relaxed);
            if me == victim {
                // A PE that ends while others are in the allocation's barrier may end that barrier with an error.
                poll(|| Ok(allocated.load(Ordering::Relaxed) == n))?;
                if end == End::Panic {
                    std::panic::resume_unwind(Box::new("the victim's panic"));
                }
                return Err(Error::Argument {
                    call: "test",
                    what: "the victim's error".into(),
                });
            }
            is_lost(call(world, x, victim), victim);
            is_lost(world.p(x, 1, victim), victim);
            is_lost(world.g(x, victim).map(drop), victim);
            is_lost(world.fetch_inc(x, victim).map(drop), victim);
            is_lost(world.wait_until(x.at(me)?, Cmp::Eq, 99), victim);
            assert!(!world.pe_accessible(victim) && world.ptr(x, victim).is_none());
            assert_eq!(world.acknowledge_lost(), [victim]);
            for to in 0..victim {
                world.put_signal(x.range(..0)?, &[], x.at(me)?, 100, SignalOp::Set, to)?;
            }
            world.quiet()?;
            for from in 0..victim {
                world.wait_until(x.at(from)?, Cmp::Eq, 100)?;
            }
            let mut all = vec![0; victim];
            world.get(&mut all, x, (me + 1) % victim)?;
            is_lost(world.barrier_all(), victim);
            // A PE that ends first is lost to the others, so they end together.
            survivors.fetch_add(1, Ordering::Relaxed);
            poll(|| Ok(survivors.load(Ordering::Relaxed) == victim))
        })
    };
    let result = catch_unwind(AssertUnwindSafe(run));
    assert_eq!(
        survivors.load(Ordering::Relaxed),
        victim,
        "every survivor went on"
    );
    match (end, result) {
        (End::Error, Ok(Err(error))) => assert!(error.to_string().contains("the victim's error")),
        (End::Panic, Err(payload)) => {
            assert_eq!(payload.downcast_ref::<&str>(), Some(&"the victim's panic"));
        }
        (_, Ok(result)) => panic!("{result:?}"),
        (_, Err(payload)) => std::panic::resume_unwind(payload),
    }
}

fn everywhere(call: Call) {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        for (n, end) in [(2, End::Error), (3, End::Panic), (7, End::Error)] {
            the_last_one_ends(path, n, end, call);
        }
    }
}

#[test]
fn the_end_of_a_pe_ends_the_others_barrier() {
    everywhere(|world, _, _| world.barrier_all());
}

#[test]
fn the_end_of_a_pe_ends_the_others_wait() {
    everywhere(|world, x, _| world.wait_until(x, Cmp::Eq, 1));
}

#[test]
fn the_end_of_a_pe_ends_the_others_waits_for_many_words() {
    everywhere(|world, x, _| world.wait_until_all(x, None, Cmp::Eq, 1));
    everywhere(|world, x, _| world.wait_until_some(x, None, Cmp::Eq, 1).map(drop));
}

#[test]
fn the_end_of_a_pe_ends_the_others_collectives() {
    everywhere(|world, x, _| world.sum_reduce(x, x));
    everywhere(|world, x, victim| world.broadcast(x, x, victim));
    everywhere(|world, _, _| world.alloc::<u64>(100).map(drop));
    everywhere(|world, x, _| world.free(x));
}

/// The last of four PEs ends; each other has done `before` when it has a word there, and `then` when it has
/// heard of it, with a team that has that one and with one that has not.
fn a_member_ends(
    path: Path,
    before: impl Fn(&World, Sym<u64>, usize) -> Result<()> + Sync,
    then: impl Fn(&World, Team<'_>, Team<'_>, usize) -> Result<()> + Sync,
) {
    let survivors = AtomicUsize::new(0);
    let made = AtomicUsize::new(0);
    let victim = 3;
    let result = spmd_with(Setting::new(path).builder(), 4, |world| {
        let all = world.team().split_strided(victim, -1, 4)?.unwrap();
        let others = world.team().split_strided(0, 1, victim)?;
        let x = world.alloc_zeroed::<u64>(1)?;
        made.fetch_add(1, Ordering::Relaxed);
        poll(|| Ok(made.load(Ordering::Relaxed) == 4))?;
        let Some(others) = others else {
            return Err(Error::Argument {
                call: "test",
                what: "the victim's error".into(),
            });
        };
        before(world, x, victim)?;
        is_lost(all.sync(), victim);
        then(world, all, others, victim)?;
        // A PE that ends first is lost to the others, so they end together.
        survivors.fetch_add(1, Ordering::Relaxed);
        poll(|| Ok(survivors.load(Ordering::Relaxed) == victim))
    });
    let ended = survivors.load(Ordering::Relaxed);
    assert_eq!(ended, victim, "{path:?} {result:?}");
    assert!(result.is_err_and(|e| e.to_string().contains("the victim's error")));
}

/// A team that has the lost PE hears of it; one that has not goes on, and teams are made of it still.
#[test]
fn the_end_of_a_pe_ends_the_calls_of_its_teams_alone() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        let nothing = |_: &World, _, _| Ok(());
        a_member_ends(path, nothing, |world, all, others, victim| {
            is_lost(all.split_strided(0, 1, 2).map(drop), victim);
            is_lost(world.sync_all(), victim);
            assert_eq!(world.acknowledge_lost(), [victim]);
            for _ in 0..20 {
                others.sync()?;
                let back = others.split_list(&[2, 0, 1])?.unwrap();
                back.barrier()?;
                back.destroy()?;
            }
            is_lost(all.barrier(), victim);
            is_lost(all.destroy(), victim);
            others.destroy()
        });
    }
}

/// Operations in flight to a lost PE never complete: a quiet fails until the loss is acknowledged. Calls that
/// complete nothing go on.
#[test]
fn m19_a_quiet_fails_where_something_was_on_its_way_to_a_lost_pe_until_that_is_acknowledged() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        // Until one is outstanding when the PE is lost.
        let put = |world: &World, x, victim| poll(|| Ok(world.p(x, 1, victim).is_err()));
        a_member_ends(path, put, |world, _, others, victim| {
            for _ in 0..3 {
                match (path, world.quiet()) {
                    (Path::Mapped, quiet) => quiet?,
                    // A put of theirs has been done when it returns.
                    (Path::Checked | Path::Tiny, Ok(())) => {}
                    (_, lost) => is_lost(lost, victim),
                }
                others.sync()?;
            }
            assert_eq!(world.acknowledge_lost(), [victim]);
            for _ in 0..5 {
                world.quiet()?;
                others.barrier()?;
            }
            others.destroy()
        });
    }
}

#[test]
fn the_end_of_a_pe_ends_puts_to_it() {
    everywhere(|world, x, victim| {
        loop {
            world.p(x, 1, victim).and_then(|()| world.quiet())?;
            std::thread::yield_now();
        }
    });
}

/// A word that came before its writer ended is not lost with it.
#[test]
fn what_a_pe_did_before_it_ended_counts() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        let result = spmd_with(Setting::new(path).builder(), 2, |world| {
            let x = world.alloc_zeroed::<u64>(1)?;
            if world.my_pe() == 1 {
                world.p(x, 7, 0)?;
                world.quiet()?;
                return Err(Error::Argument {
                    call: "test",
                    what: "the end".into(),
                });
            }
            poll(|| Ok(!world.pe_accessible(1)))?;
            world.wait_until(x, Cmp::Eq, 7)
        });
        assert!(
            result.is_err_and(|e| e.to_string().contains("the end")),
            "{path:?}"
        );
    }
}

/// A PE that waits for a lock gets an error when its holder ends; so does a PE that asks later.
#[test]
fn the_end_of_a_locks_holder_ends_the_others_waits_for_it() {
    for path in [Path::Mapped, Path::Checked, Path::Weak] {
        let (ready, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let result = spmd_with(Setting::new(path).builder(), 3, |world| {
            let lock = world.alloc_zeroed::<u64>(1)?;
            let victim = world.n_pes() - 1;
            if world.my_pe() == victim {
                world.set_lock(lock)?;
            }
            ready.fetch_add(1, Ordering::Relaxed);
            poll(|| Ok(ready.load(Ordering::Relaxed) == 3))?;
            if world.my_pe() == victim {
                return Err(Error::Argument {
                    call: "test",
                    what: "the end".into(),
                });
            }
            is_lost(world.set_lock(lock), victim);
            ended.fetch_add(1, Ordering::Relaxed);
            poll(|| Ok(ended.load(Ordering::Relaxed) == victim))
        });
        assert!(
            result.is_err_and(|e| e.to_string().contains("the end")),
            "{path:?}"
        );
        assert_eq!(ended.load(Ordering::Relaxed), 2, "{path:?}");
    }
}

const SOON: Duration = Duration::from_millis(300);

#[test]
fn a_wait_that_takes_too_long_is_an_error_that_says_who_waits_for_what() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        let waits = spmd_with(Setting::new(path).builder().timeout(SOON), 2, |world| {
            let x = world.alloc_zeroed::<u64>(4)?;
            let one = world.wait_until(x.at(1)?, Cmp::Ge, 5).unwrap_err();
            let all = world.wait_until_all(x, None, Cmp::Ne, 0).unwrap_err();
            let signal = world.signal_wait_until(x, Cmp::Eq, 1).unwrap_err();
            Ok([one, all, signal].map(|e| (e.to_string(), matches!(e, Error::Timeout { .. }))))
        });
        for (pe, errors) in waits.unwrap().into_iter().enumerate() {
            for (message, is_timeout) in errors {
                assert!(
                    is_timeout && message.contains("OXSHMEM_TIMEOUT"),
                    "{message}"
                );
                assert!(message.contains(&format!("PE {pe}")), "{message}");
            }
        }
    }
}

#[test]
fn a_barrier_that_takes_too_long_names_a_pe_that_is_missing() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        let given_up = AtomicUsize::new(0);
        let result = spmd_with(Setting::new(path).builder().timeout(SOON), 3, |world| {
            world.barrier_all()?;
            let together = || poll(|| Ok(given_up.load(Ordering::Relaxed) == 2));
            if world.my_pe() == 2 {
                return together();
            }
            let error = world.barrier_all().unwrap_err();
            assert!(matches!(error, Error::Timeout { .. }), "{error}");
            assert!(error.to_string().contains("PE 2"), "{error}");
            given_up.fetch_add(1, Ordering::Relaxed);
            together()?;
            Err(error)
        });
        let message = result.unwrap_err().to_string();
        assert!(
            message.contains("PE 2") && message.contains("barrier_all"),
            "{message}"
        );
    }
}

#[test]
fn a_global_exit_ends_the_others_waits() {
    for path in [Path::Mapped, Path::Tiny, Path::Weak] {
        let ended = AtomicUsize::new(0);
        let result = spmd_with(Setting::new(path).builder(), 3, |world| {
            let x = world.alloc_zeroed::<u64>(1)?;
            if world.my_pe() == 0 {
                world.barrier_all()?;
                world.global_exit(3);
                return poll(|| Ok(ended.load(Ordering::Relaxed) == 2));
            }
            // The first barrier may end well or hear of the exit: either way the others end.
            let first = world.barrier_all();
            match world.my_pe() {
                1 => assert!(world.barrier_all().is_err()),
                _ => assert!(world.wait_until(x, Cmp::Eq, 1).is_err()),
            }
            ended.fetch_add(1, Ordering::Relaxed);
            first
        });
        assert!(result.is_err(), "{path:?}");
    }
}
