//! The differences of objects in GPU memory from those in host memory (M2, M4, M8), and both in one world.

use oxshmem::{Cmp, Error, MemoryKind, Result, SignalOp};

use crate::errors::mismatch;
use crate::order::poll;
use crate::refusals::broadcast;
use crate::setting::{Case, HEAP, Path, Setting, patterns, run};

fn on_gpus(case: Case) {
    for n in [1, 2, 3] {
        run(Setting::new(Path::Gpu), n, case);
    }
}

#[test]
fn m4_calls_that_need_the_cpu_at_the_memory_are_refused_and_change_nothing() {
    on_gpus(|pe| {
        let (world, x) = (pe.world, pe.alloc_zeroed::<u64>(8)?);
        pe.write(x, &patterns(pe.me(), 8))?;
        pe.barrier_all()?;
        let refused = |result: Result<()>| {
            let Err(Error::GpuMemory { call, offset }) = &result else {
                panic!("{result:?}");
            };
            assert_eq!(*offset, x.offset(), "{call}");
        };
        let (word, old) = (x.at(0)?, u64::MAX);
        refused(world.wait_until(word, Cmp::Ne, old));
        refused(world.test(word, Cmp::Ne, old).map(drop));
        refused(world.wait_until_all(x, None, Cmp::Ne, old));
        refused(world.wait_until_any(x, None, Cmp::Ne, old).map(drop));
        refused(world.wait_until_some(x, None, Cmp::Ne, old).map(drop));
        refused(world.wait_until_all_vector(x, None, Cmp::Ne, &[old; 8]));
        refused(world.test_all(x, None, Cmp::Ne, old).map(drop));
        refused(world.test_any(x, None, Cmp::Ne, old).map(drop));
        refused(world.test_some(x, None, Cmp::Ne, old).map(drop));
        refused(world.signal_fetch(word).map(drop));
        refused(world.signal_wait_until(word, Cmp::Ne, old).map(drop));
        refused(world.wait_counted(word, 0));
        refused(world.test_counted(word, 0).map(drop));
        refused(world.realloc(x, 100).map(drop));
        assert!((0..pe.n_pes()).all(|at| world.ptr(x, at).is_none()), "m8");
        pe.barrier_all()?;
        assert_eq!(pe.own(x)?, patterns(pe.me(), 8));
        pe.free(x)
    });
}

/// A block of each kind at one offset: two objects, each with its own memory and its own life.
#[test]
fn m2_both_heaps_of_a_world_are_apart() {
    on_gpus(|pe| {
        let host = pe.world.alloc_aligned::<u64>(64, 1 << 20)?;
        let first = pe.alloc::<u8>(64)?;
        let before = pe.alloc::<u8>((host.offset() - first.offset()) as usize - 64)?;
        let gpu = pe.alloc::<u64>(64)?;
        assert_eq!(host.offset(), gpu.offset(), "so that this proves something");
        assert_ne!(host, gpu, "two objects");
        pe.put(host, &patterns(pe.me(), 64), pe.right())?;
        pe.put(gpu, &patterns(pe.me() + 100, 64), pe.right())?;
        pe.barrier_all()?;
        assert_eq!(pe.own(host)?, patterns(pe.left(), 64));
        assert_eq!(pe.own(gpu)?, patterns(pe.left() + 100, 64));
        pe.free(gpu)?;
        assert!(matches!(pe.free(gpu), Err(Error::Stale { .. })));
        assert_eq!(pe.own(host)?, patterns(pe.left(), 64), "the other lives");
        pe.free(before)?;
        pe.free(first)?;
        pe.free(host)
    });
}

#[test]
fn m9_m36_allocations_of_other_kinds_or_lengths_are_an_error_on_all() {
    on_gpus(|pe| {
        let (last, odd) = (pe.n_pes() - 1, pe.me() == pe.n_pes() - 1);
        if last == 0 {
            return Ok(());
        }
        let kind = if odd {
            MemoryKind::Cuda
        } else {
            MemoryKind::Host
        };
        mismatch(
            pe,
            || pe.alloc_on::<u64>(kind, 8).map(drop),
            &[(0, "host memory"), (last, "cuda memory")],
        )?;
        mismatch(
            pe,
            || pe.alloc::<u8>(if odd { 200 } else { 100 }).map(drop),
            &[(0, "100 x 1 bytes"), (last, "200 x 1 bytes")],
        )?;
        let (host, gpu) = (pe.world.alloc::<u64>(64)?, pe.alloc::<u64>(64)?);
        mismatch(
            pe,
            || pe.free(if odd { host } else { gpu }),
            &[(0, "free("), (last, "free(")],
        )?;
        mismatch(
            pe,
            || broadcast(&pe.team(), host, if odd { gpu } else { host }, 0),
            &[(0, "broadcast"), (last, "in GPU memory")],
        )?;
        mismatch(
            pe,
            || {
                let given = if odd { gpu } else { host };
                let team = pe.team();
                team.collect(host.range(..0)?, given.range(..0)?).map(drop)
            },
            &[(0, "0 elements)"), (last, "0 elements in GPU memory")],
        )?;
        pe.free(gpu)?;
        pe.free(host)
    });
}

#[test]
fn m22_a_signal_in_host_memory_comes_after_its_data_on_a_gpu() {
    on_gpus(|pe| {
        let (data, flag) = (pe.alloc::<u64>(500)?, pe.world.alloc_zeroed::<u64>(1)?);
        for round in 1..=10 {
            let sent = patterns(pe.me() + round, 500);
            pe.put_signal(data, &sent, flag, round as u64, SignalOp::Set, pe.right())?;
            pe.world.wait_until(flag, Cmp::Ge, round as u64)?;
            assert_eq!(pe.own(data)?, patterns(pe.left() + round, 500));
            pe.barrier_all()?;
        }
        pe.free(flag)?;
        pe.free(data)
    });
}

/// A counter on a GPU is fetched, as no CPU can wait for it.
#[test]
fn m22_the_data_of_every_counted_put_is_there_with_data_or_counter_on_a_gpu() {
    on_gpus(|pe| {
        let (world, n, me) = (pe.world, pe.n_pes(), pe.me());
        const LEN: usize = 500;
        let on = |kind, len| -> Result<_> {
            let object = world.alloc_on::<u64>(kind, len)?;
            world.write(object, &vec![0; len])?;
            Ok(object)
        };
        let (gpu, host) = (MemoryKind::Cuda, MemoryKind::Host);
        for (data, count) in [(gpu, gpu), (gpu, host), (host, gpu)] {
            let (x, counter) = (on(data, n * LEN)?, on(count, 1)?);
            let part = |pe: usize| x.range(pe * LEN..(pe + 1) * LEN);
            pe.barrier_all()?;
            for round in 1..=5 {
                for to in 0..n {
                    pe.put_counted(part(me)?, &patterns(me + round * 10, LEN), counter, to)?;
                }
                match count {
                    MemoryKind::Host => pe.wait_counted(counter, n as u64)?,
                    _ => poll(|| Ok(pe.fetch(counter, me)? >= (n * round) as u64))?,
                }
                for from in 0..n {
                    let sent = patterns(from + round * 10, LEN);
                    assert_eq!(pe.own(part(from)?)?, sent, "{data:?}, {count:?}, PE {from}");
                }
                pe.barrier_all()?;
            }
            let left = match count {
                MemoryKind::Host => 0,
                _ => 5 * n as u64,
            };
            assert_eq!(pe.own(counter)?, [left]);
            pe.free(counter)?;
            pe.free(x)?;
        }
        Ok(())
    });
}

#[test]
fn m14_each_heap_has_its_own_limit() {
    on_gpus(|pe| {
        assert_eq!((pe.world.heap_limit(), pe.gpu_heap_limit()), (HEAP, HEAP));
        let most = pe.alloc::<u8>(HEAP / 4 * 3)?;
        assert!(matches!(
            pe.alloc::<u8>(HEAP / 2),
            Err(Error::OutOfMemory { .. })
        ));
        // The other has as much room as before.
        let host = pe.world.alloc::<u8>(HEAP / 2)?;
        pe.free(host)?;
        pe.free(most)
    });
}
