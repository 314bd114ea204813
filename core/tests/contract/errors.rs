//! Misuse that the published models leave undefined is an error here: M35, M36, M38, and PEs that don't exist.

use oxshmem::{Cmp, Context, Error, Fold, Result, SignalOp, Sym};

use crate::refusals::broadcast;
use crate::setting::{Pe, patterns};

/// Every call of a context refuses a PE that it does not have.
pub fn refuse_a_pe(context: &Context<'_>, x: Sym<u64>, at: usize) -> Result<()> {
    let refused = |result: Result<()>| {
        let Err(Error::NoSuchPe { pe, size, .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!((pe, size), (at, context.n_pes()));
    };
    let mut buffer = [0; 8];
    refused(context.put(x, &[1; 8], at));
    refused(context.put(x, &[], at));
    refused(context.get(&mut buffer, x, at));
    refused(context.p(x, 1, at));
    refused(context.g(x, at).map(drop));
    refused(context.put_from(x.range(..4)?, x.range(4..)?, at));
    refused(context.get_into(x.range(..4)?, x.range(4..)?, at));
    refused(context.iput(x, &[1; 8], 1, 1, 8, at));
    refused(context.iget(&mut buffer, x, 1, 1, 8, at));
    refused(context.ibput(x, &[1; 8], 2, 2, 2, 4, at));
    refused(context.ibget(&mut buffer, x, 2, 2, 2, 4, at));
    refused(context.fetch(x, at).map(drop));
    refused(context.set(x, 1, at));
    refused(context.add(x, 1, at));
    refused(context.compare_swap(x, 0, 1, at).map(drop));
    refused(context.fetch_xor(x, 1, at).map(drop));
    refused(context.put_signal(x, &[1], x.at(7)?, 1, SignalOp::Set, at));
    refused(context.signal_add(x, 1, at));
    refused(context.pe_quiet(&[0, at]));
    refused(context.scope(|s| s.put_nbi(x, &[1; 8], at)));
    refused(context.scope(|s| s.get_nbi(&mut buffer, x, at)));
    let mut old = 0;
    refused(context.scope(|s| s.fetch_add_nbi(&mut old, x, 1, at)));
    refused(context.put_counted(x, &[1], x.at(7)?, at));
    assert!(context.ptr(x, at).is_none());
    Ok(())
}

pub fn a_pe_outside_the_job_is_refused_by_every_call(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(8)?;
    let n = pe.n_pes();
    for at in [n, n + 1, usize::MAX, u32::MAX as usize + 1] {
        refuse_a_pe(pe, x, at)?;
    }
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?, [0; 8]);
    pe.free(x)
}

pub fn m35_a_range_that_leaves_its_object_is_refused_and_moves_nothing(pe: &Pe<'_>) -> Result<()> {
    let wall = pe.alloc_zeroed::<u64>(8)?;
    let x = pe.alloc_zeroed::<u64>(8)?;
    let after = pe.alloc_zeroed::<u64>(8)?;
    let at = pe.right();
    let refused = |result: Result<()>| {
        assert!(
            matches!(result, Err(Error::OutOfRange { .. })),
            "{result:?}"
        );
        if let Err(error) = result {
            let message = error.to_string();
            assert!(
                message.contains("object of") && message.contains("elements"),
                "{message}"
            );
        }
    };
    let mut buffer = [7; 9];
    let none = x.range(..0)?;
    refused(pe.put(x, &[1; 9], at));
    refused(pe.put(x.range(4..)?, &[1; 5], at));
    refused(pe.get(&mut buffer, x, at));
    refused(pe.get(&mut buffer[..5], x.range(4..)?, at));
    refused(pe.p(none, 1, at));
    refused(pe.g(none, at).map(drop));
    refused(pe.fetch(none, at).map(drop));
    refused(pe.set(none, 1, at));
    refused(pe.fetch_add(none, 1, at).map(drop));
    refused(pe.put_signal(x, &[1; 9], wall, 1, SignalOp::Set, at));
    refused(pe.put_signal(x, &[1; 8], none, 1, SignalOp::Set, at));
    refused(pe.signal_fetch(none).map(drop));
    refused(pe.signal_wait_until(none, Cmp::Eq, 0).map(drop));
    refused(pe.scope(|s| s.put_nbi(x, &[1; 9], at)));
    refused(pe.scope(|s| s.get_nbi(&mut buffer, x, at)));
    let mut old = 0;
    refused(pe.scope(|s| s.fetch_inc_nbi(&mut old, none, at)));
    assert!(
        pe.put_from(x, x.range(..4)?, at).is_err() && pe.get_into(x, x.range(..4)?, at).is_err()
    );
    pe.barrier_all()?;
    assert_eq!(buffer, [7; 9]);
    for object in [wall, x, after] {
        assert_eq!(pe.own(object)?, [0; 8]);
    }
    for object in [wall, x, after] {
        pe.free(object)?;
    }
    Ok(())
}

/// Each PE makes its own call; all get an error that names who called what, and may go on.
pub fn mismatch(pe: &Pe<'_>, call: impl Fn() -> Result<()>, words: &[(usize, &str)]) -> Result<()> {
    match call() {
        Err(Error::CollectiveMismatch { detail, .. }) => {
            for (at, what) in words {
                assert!(detail.contains(what), "no {what:?} in {detail:?}");
                assert!(detail.contains(&at.to_string()), "no PE {at} in {detail:?}");
            }
        }
        other => panic!("PE {} of {}: {other:?}", pe.me(), pe.n_pes()),
    }
    // The world works as before.
    pe.barrier_all()?;
    let x = pe.alloc_zeroed::<u64>(10)?;
    pe.put(x, &patterns(pe.me(), 10), pe.right())?;
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?, patterns(pe.left(), 10));
    pe.free(x)
}

pub fn m36_different_collectives_are_an_error_on_all(pe: &Pe<'_>) -> Result<()> {
    let (last, odd) = (pe.n_pes() - 1, pe.me() == pe.n_pes() - 1);
    if last == 0 {
        return Ok(());
    }
    let (x, y) = (pe.alloc_zeroed::<u64>(64)?, pe.alloc_zeroed::<u64>(64)?);
    let or = |a: &dyn Fn() -> Result<()>, b: &dyn Fn() -> Result<()>| if odd { b() } else { a() };
    mismatch(
        pe,
        || or(&|| pe.barrier_all(), &|| pe.sync_all()),
        &[(0, "barrier_all"), (last, "sync_all")],
    )?;
    mismatch(
        pe,
        || or(&|| pe.alloc::<u64>(8).map(drop), &|| pe.barrier_all()),
        &[(0, "alloc(8 x 8 bytes"), (last, "barrier_all")],
    )?;
    mismatch(
        pe,
        || or(&|| broadcast(&pe.team(), x, y, 0), &|| pe.sum_reduce(x, y)),
        &[(0, "broadcast"), (last, "reduce(")],
    )?;
    mismatch(
        pe,
        || or(&|| pe.free(x), &|| pe.realloc(x, 100).map(drop)),
        &[(0, "free(512 bytes"), (last, "realloc(512 bytes")],
    )?;
    pe.free(y)?;
    pe.free(x)
}

pub fn m36_different_arguments_are_an_error_on_all(pe: &Pe<'_>) -> Result<()> {
    let (last, odd) = (pe.n_pes() - 1, pe.me() == pe.n_pes() - 1);
    if last == 0 {
        return Ok(());
    }
    let (x, y) = (pe.alloc_zeroed::<u64>(64)?, pe.alloc_zeroed::<u64>(64)?);
    let pick = |a: usize, b: usize| if odd { b } else { a };
    mismatch(
        pe,
        || pe.alloc::<u8>(pick(100, 200)).map(drop),
        &[(0, "alloc(100 x 1 bytes"), (last, "alloc(200 x 1 bytes")],
    )?;
    mismatch(
        pe,
        || pe.alloc_aligned::<u8>(100, pick(64, 128)).map(drop),
        &[(0, "align 64"), (last, "align 128")],
    )?;
    // As long, but of other values.
    let floats = (x.cast::<f64>()?, y.cast::<f64>()?);
    mismatch(
        pe,
        || match odd {
            true => pe.team().reduce(floats.0, floats.1, Fold::Sum),
            false => pe.team().reduce(x, y, Fold::Sum),
        },
        &[(0, "sum of u64"), (last, "sum of f64")],
    )?;
    let halves = (x.cast::<u32>()?, y.cast::<u32>()?);
    mismatch(
        pe,
        || match odd {
            true => pe.team().alltoalls(halves.0, halves.1, 1, 1, 1),
            false => pe.team().alltoalls(x, y, 1, 1, 1),
        },
        &[(0, "alltoalls("), (last, "alltoalls(")],
    )?;
    mismatch(
        pe,
        || {
            if odd {
                pe.alloc::<u8>(9).map(drop)
            } else {
                pe.alloc_zeroed::<u8>(9).map(drop)
            }
        },
        &[(0, "alloc_zeroed(9"), (last, "alloc(9")],
    )?;
    mismatch(
        pe,
        || broadcast(&pe.team(), x, y, pick(0, 1)),
        &[(0, "root 0"), (last, "root 1")],
    )?;
    mismatch(
        pe,
        || {
            let len = pick(10, 11);
            broadcast(&pe.team(), x.range(..len)?, y.range(..len)?, 0)
        },
        &[(0, "80 bytes"), (last, "88 bytes")],
    )?;
    mismatch(
        pe,
        || {
            if odd {
                pe.sum_reduce(x, x)
            } else {
                pe.sum_reduce(x, y)
            }
        },
        &[(0, "sum")],
    )?;
    mismatch(
        pe,
        || pe.free(if odd { x } else { y }),
        &[(0, "free("), (last, "free(")],
    )?;
    mismatch(
        pe,
        || pe.realloc(x, pick(100, 200)).map(drop),
        &[(0, "100 elements"), (last, "200 elements")],
    )?;
    pe.free(y)?;
    pe.free(x)
}

pub fn m9_an_empty_call_that_one_pe_left_out_is_found_by_the_next_barrier(
    pe: &Pe<'_>,
) -> Result<()> {
    let (last, odd) = (pe.n_pes() - 1, pe.me() == pe.n_pes() - 1);
    if last == 0 {
        return Ok(());
    }
    if !odd {
        pe.alloc::<u64>(0)?;
    }
    mismatch(
        pe,
        || pe.barrier_all(),
        &[(0, "alloc(0 x 8 bytes"), (last, "barrier_all")],
    )?;
    // In another order.
    let empty = pe.alloc::<u8>(0)?;
    if odd {
        pe.alloc_zeroed::<u8>(0)?;
        pe.free(empty)?;
    } else {
        pe.free(empty)?;
        pe.alloc_zeroed::<u8>(0)?;
    }
    mismatch(
        pe,
        || pe.alloc::<u8>(8).map(drop),
        &[(0, "alloc_zeroed(0"), (last, "free(0 bytes")],
    )
}

/// Whether the PE that does without is the root or another.
pub fn m36_a_broadcast_that_one_pe_left_out_is_found_when_they_meet(pe: &Pe<'_>) -> Result<()> {
    let last = pe.n_pes() - 1;
    if last == 0 {
        return Ok(());
    }
    let (x, y) = (pe.alloc_zeroed::<u64>(64)?, pe.alloc_zeroed::<u64>(64)?);
    for root in [0, last] {
        for before in [0, 3, 31] {
            for _ in 0..before {
                pe.broadcast(x, y, root)?;
            }
            let left_out = pe.me() == last;
            mismatch(
                pe,
                || match left_out {
                    true => pe.sync_all(),
                    false => {
                        pe.broadcast(x, y, root)?;
                        pe.sync_all()
                    }
                },
                &[(0, "broadcast"), (last, "sync_all()")],
            )?;
        }
    }
    pe.free(y)?;
    pe.free(x)
}

pub fn arguments_that_no_pe_may_give_are_refused_on_all(pe: &Pe<'_>) -> Result<()> {
    let (x, y) = (pe.alloc_zeroed::<u64>(64)?, pe.alloc_zeroed::<u64>(64)?);
    let n = pe.n_pes();
    assert!(matches!(pe.broadcast(x, y, n), Err(Error::NoSuchPe { .. })));
    assert!(matches!(
        pe.broadcast(x, y.range(..63)?, 0),
        Err(Error::Argument { .. })
    ));
    assert!(matches!(
        pe.sum_reduce(x, y.range(..63)?),
        Err(Error::Argument { .. })
    ));
    let (a, b) = (x.range(..40)?, x.range(20..60)?);
    assert!(matches!(pe.broadcast(a, b, 0), Err(Error::Argument { .. })));
    assert!(matches!(pe.sum_reduce(a, b), Err(Error::Argument { .. })));
    pe.free(y)?;
    assert!(matches!(pe.broadcast(x, y, 0), Err(Error::Stale { .. })));
    assert!(matches!(pe.sum_reduce(y, x), Err(Error::Stale { .. })));
    pe.sum_reduce(x, x)?;
    pe.free(x)
}

/// A call that fails on one PE fails on all, with the PE and the reason.
pub fn m36_a_failure_of_one_pe_is_told_to_all(pe: &Pe<'_>) -> Result<()> {
    let (x, y) = (pe.alloc_zeroed::<u64>(64)?, pe.alloc_zeroed::<u64>(64)?);
    let other = super::objects::another_world()?;
    // The same place and age in another world.
    let foreign = other.alloc_zeroed::<u64>(64)?;
    let last = pe.n_pes() - 1;
    let odd = pe.me() == last;
    let result = pe.sum_reduce(x, if odd { foreign } else { y });
    match result {
        Err(Error::Foreign { .. }) if odd => {}
        Err(Error::FailedElsewhere {
            pe: at, ref why, ..
        }) if !odd => {
            assert_eq!(at, last);
            assert!(why.contains("another world"), "{why}");
        }
        Err(Error::CollectiveMismatch { .. }) if last > 0 => {}
        other => panic!("{other:?}"),
    }
    other.free(foreign)?;
    other.finalize()?;
    pe.barrier_all()?;
    pe.sum_reduce(x, y)?;
    pe.free(y)?;
    pe.free(x)
}

/// Checked mode finds the use of a block that was freed.
pub fn m35_checked_mode_refuses_freed_blocks(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(4)?;
    pe.free(x)?;
    let used = pe.put(x, &[1; 4], pe.right());
    if pe.setting.path == crate::setting::Path::Checked {
        assert!(matches!(used, Err(Error::Stale { .. })), "{used:?}");
        assert!(matches!(pe.g(x, pe.right()), Err(Error::Stale { .. })));
        assert!(matches!(
            pe.fetch_add(x, 1, pe.right()),
            Err(Error::Stale { .. })
        ));
        assert!(matches!(pe.test(x, Cmp::Eq, 0), Err(Error::Stale { .. })));
    } else {
        // Memory-safe, and no more: it stays inside the heap.
        used?;
    }
    pe.barrier_all()
}
