//! Tests of a world's collective calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_heap::{Segment, SegmentOptions};
use oxshmem_transport::{Memory, MemoryKind, Op};

use crate::sym::Sym;
use oxshmem_collectives::error::Error as CollectiveError;
use oxshmem_collectives::transfer::Destination;
use oxshmem_collectives::transfer::Prefetched;
use oxshmem_collectives::transfer::Transfer;
use oxshmem_collectives::transfer::TransferPiece;
use oxshmem_engine::error::Error as EngineError;

use crate::error::{Error, Result};
use crate::testing::spmd_with;
use crate::tests::lanes::{Asked, Fate, LIMIT, beside, is_loss_of, watched};
use crate::world::World;

const PES: usize = 4;
const LEN: usize = 100;

fn to_one(object: Sym<u8>) -> Destination {
    Destination {
        object: object.into(),
        writers: 1,
    }
}

/// PE 0's part. It reaches the others by lanes that do nothing before they are driven.
fn beside_others(first: impl Fn(&World, Sym<u64>, &Arc<Asked>) -> Result<()> + Sync) {
    beside_others_by(Tiny::default(), LIMIT, first);
}

/// The same, where no wait is longer than that.
fn beside_others_by(
    tiny: Tiny,
    limit: Duration,
    first: impl Fn(&World, Sym<u64>, &Arc<Asked>) -> Result<()> + Sync,
) {
    let tiny = World::builder().transports(vec![Arc::new(tiny)]);
    beside(tiny.timeout(limit), (PES, LEN), |world, x: Sym<u64>| {
        for pe in 1..PES {
            world.put(x, &[pe as u64; LEN], pe)?;
        }
        world.quiet()?;
        first(world, x, &watched(world))
    });
}

#[test]
fn values_that_come_by_lanes_are_under_way_together() {
    beside_others(|world, x, asked| {
        let at_all = Arc::new(AtomicUsize::new(0));
        let (seen, calls) = (Arc::clone(&at_all), Arc::clone(asked));
        asked.after(PES - 1, move || seen.store(calls.calls(), Ordering::SeqCst));
        let (mut values, mut prefetched) = ([0; LEN], Prefetched::default());
        for times in 1..3 {
            for pe in 0..PES {
                Transfer::new(&world.worker, "test").get_next(
                    &mut values,
                    x.into(),
                    (pe, pe..PES),
                    &mut prefetched,
                )?;
                assert_eq!(values, [pe as u64; LEN]);
            }
            let operations = asked.operations.load(Ordering::SeqCst);
            assert_eq!(operations, times * (PES - 1));
        }
        let calls = at_all.load(Ordering::SeqCst);
        assert!(calls < PES, "driven between them: {calls} calls");
        (world.worker.engine.report_lost)(1);
        Ok(())
    });
}

/// Host memory that a transport takes for a GPU's.
fn gpu_memory() -> Memory {
    let mut segment = Segment::create(1 << 20, &SegmentOptions::default()).unwrap();
    segment.commit(1 << 20).unwrap();
    let mapping = Arc::clone(segment.mapping());
    // SAFETY: committed, and mapped as long as its owner lives; used by the transport alone.
    unsafe { Memory::new(mapping.base(), 1 << 20, MemoryKind::Cuda, None, mapping) }
}

#[test]
fn pieces_that_come_into_gpu_memory_by_lanes_are_under_way_together() {
    let tiny = World::builder().transports(vec![Arc::new(Tiny::nic())]);
    let tiny = tiny.gpu_memory(|_| Ok(Box::new(gpu_memory())));
    let ended = spmd_with(tiny.timeout(LIMIT), PES, |world| {
        let object = || world.alloc_on::<u64>(MemoryKind::Cuda, PES * LEN);
        let [dst, src] = [object()?, object()?];
        world.write(src, &[world.my_pe() as u64; PES * LEN])?;
        world.write(dst, &[77; PES * LEN])?;
        world.barrier_all()?;
        if world.my_pe() == 0 {
            let asked = watched(world);
            let begun = Arc::new(Mutex::new(Vec::new()));
            let (calls, at) = (Arc::clone(&asked), Arc::clone(&begun));
            asked.decide(move |_, op| {
                if matches!(op, Op::Get { .. }) {
                    at.lock().unwrap().push(calls.calls());
                }
                Fate::Perform
            });
            let (into, from) = (dst.cast::<u8>()?, src.cast()?);
            let pieces = (1..PES).map(|pe| {
                let into = pe * LEN * 8..(pe + 1) * LEN * 8;
                let from = from.range(into.clone())?;
                Ok(TransferPiece {
                    into,
                    from: from.into(),
                    pe,
                })
            });
            Transfer::new(&world.worker, "test").copy_pieces(to_one(into), pieces)?;
            let begun = std::mem::take(&mut *begun.lock().unwrap());
            assert!(begun.len() >= PES - 1, "{begun:?}");
            assert!(
                begun[PES - 2] - begun[0] < PES,
                "driven between them: {begun:?}"
            );
            let mut found = [0; PES * LEN];
            world.read(&mut found, dst)?;
            let (own, others) = found.split_at(LEN);
            assert_eq!(own, [77; LEN]);
            for (pe, part) in (1..).zip(others.chunks(LEN)) {
                assert_eq!(part, [pe; LEN]);
            }
        }
        world.barrier_all()?;
        world.free(src)?;
        world.free(dst)
    });
    ended.unwrap();
}

/// Each operation in turn is the last before the loss.
#[test]
fn m37_a_loss_leaves_nothing_that_writes_to_the_memory_of_what_was_to_come() {
    for operations in 1..PES {
        beside_others(|world, x, asked| {
            let (lose, calls) = (
                Arc::clone(&world.worker.engine.report_lost),
                Arc::clone(asked),
            );
            let at_loss = Arc::new(AtomicUsize::new(usize::MAX));
            let seen = Arc::clone(&at_loss);
            asked.after(operations, move || {
                lose(2);
                seen.store(calls.calls(), Ordering::SeqCst);
            });
            let (mut values, mut prefetched) = ([77; LEN], Prefetched::default());
            let pulled = Transfer::new(&world.worker, "test").get_next(
                &mut values,
                x.into(),
                (1, 1..PES),
                &mut prefetched,
            );
            is_loss_of(2, pulled.map_err(Error::from));
            assert_eq!(values, [77; LEN]);
            let driven = asked.calls() > at_loss.load(Ordering::SeqCst);
            assert!(driven, "the lane may still write");
            // The other PEs' values are not in flight either.
            prefetched.memory.fill(55);
            (0..100).for_each(|_| world.progress());
            assert!(prefetched.memory.iter().all(|value| *value == 55));
            let next = Transfer::new(&world.worker, "test").get_next(
                &mut values,
                x.into(),
                (3, 3..PES),
                &mut prefetched,
            );
            next?;
            assert_eq!(values, [3; LEN]);
            Ok(())
        });
    }
}

/// Operations that were put off, to be posted together, wait for credits when time is up.
#[test]
fn m37_a_wait_that_takes_too_long_leaves_nothing_that_writes_either() {
    beside_others_by(Tiny::nic(), Duration::from_secs(2), |world, x, asked| {
        asked.fill_after(Some(0));
        let (mut values, mut prefetched) = ([77; LEN], Prefetched::default());
        let pulled = Transfer::new(&world.worker, "test").get_next(
            &mut values,
            x.into(),
            (1, 1..PES),
            &mut prefetched,
        );
        assert!(
            matches!(
                pulled,
                Err(CollectiveError::Engine(EngineError::Timeout { .. }))
            ),
            "{pulled:?}"
        );
        asked.fill_after(None);
        prefetched.memory.fill(55);
        (0..100).for_each(|_| world.progress());
        assert!(prefetched.memory.iter().all(|value| *value == 55));
        (world.worker.engine.report_lost)(1);
        Ok(())
    });
}

/// The same for data that come into an object.
#[test]
fn m37_pieces_that_take_too_long_are_not_under_way_when_the_call_has_failed() {
    beside_others_by(Tiny::nic(), Duration::from_secs(2), |world, x, asked| {
        asked.fill_after(Some(0));
        let bytes = x.cast::<u8>()?;
        let pieces = [0..8, 8..16].map(|into| {
            Ok(TransferPiece {
                from: bytes.range(into.clone())?.into(),
                into,
                pe: 1,
            })
        });
        let copied =
            Transfer::new(&world.worker, "test").copy_pieces(to_one(bytes), pieces.into_iter());
        assert!(
            matches!(
                copied,
                Err(CollectiveError::Engine(EngineError::Timeout { .. }))
            ),
            "{copied:?}"
        );
        asked.fill_after(None);
        world.write(x, &[55; LEN])?;
        (0..100).for_each(|_| world.progress());
        let mut own = [0; LEN];
        world.read(&mut own, x)?;
        assert_eq!(own, [55; LEN]);
        (world.worker.engine.report_lost)(1);
        Ok(())
    });
}

/// The operation to PE 2 is not the call's.
#[test]
fn m19_what_a_call_drops_with_its_lane_of_the_way_to_others_the_next_quiet_tells() {
    beside_others_by(Tiny::nic(), Duration::from_secs(2), |world, x, asked| {
        asked.decide(|_, _| Fate::Keep);
        let ended = world.scope(|scope| {
            scope.put_nbi(x, &[55], 2)?;
            let bytes = x.cast::<u8>()?;
            let pieces = [(0..8, 1), (8..16, 3)].map(|(into, pe)| {
                Ok(TransferPiece {
                    from: bytes.range(into.clone())?.into(),
                    into,
                    pe,
                })
            });
            let copied =
                Transfer::new(&world.worker, "test").copy_pieces(to_one(bytes), pieces.into_iter());
            assert!(
                matches!(
                    copied,
                    Err(CollectiveError::Engine(EngineError::Timeout { .. }))
                ),
                "{copied:?}"
            );
            Ok(())
        });
        assert!(matches!(ended, Err(Error::LaneFailed { .. })), "{ended:?}");
        (world.worker.engine.report_lost)(1);
        Ok(())
    });
}
