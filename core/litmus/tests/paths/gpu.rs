//! M27: the moment at which a GPU sees data that NICs have placed in its memory.

use std::sync::atomic::{AtomicU64, Ordering};

use oxshmem::{Cmp, FenceSite, MemoryKind, MemoryModel, Result, World};

use crate::explore::{At, Found, Seen, explore};
use crate::path::{Path, Setup};

/// The call by which PE 1 learns of the flag; false if it does not.
type Learns = fn(&At<'_>) -> Result<bool>;

fn flag(at: &At<'_>) -> Result<oxshmem::Sym<u64>> {
    at.word(MemoryKind::Host, 1)
}

const LEARNS: [(&str, Learns); 5] = [
    ("wait_until", |at| {
        at.world.wait_until(flag(at)?, Cmp::Eq, 1)?;
        Ok(true)
    }),
    ("wait_until_all", |at| {
        at.world.wait_until_all(flag(at)?, None, Cmp::Eq, 1)?;
        Ok(true)
    }),
    ("test", |at| {
        let word = flag(at)?;
        at.in_a_few_polls(|| at.world.test(word, Cmp::Eq, 1))
    }),
    ("signal_wait_until", |at| {
        at.world.signal_wait_until(flag(at)?, Cmp::Eq, 1)?;
        Ok(true)
    }),
    ("signal_fetch", |at| {
        let word = flag(at)?;
        at.in_a_few_polls(|| Ok(at.world.signal_fetch(word)? == 1))
    }),
];

/// PE 0 copies to PE 1's GPU, then sets a flag in PE 1's host memory. PE 1 learns of the flag, and
/// its GPU reads the data.
fn flagged(setup: &Setup, path: Path, learns: Learns, runs: u64) -> Found {
    let (copy, flagging) = (setup.slot(Path::Copy), setup.slot(path));
    explore(
        setup,
        runs,
        |world| {
            copy.confirm_0_to_1(world);
            flagging.confirm_0_to_1(world);
        },
        |at| {
            let x = at.word(MemoryKind::Cuda, 0)?;
            if at.me == 0 {
                copy.issue(at.world, x, 1)?;
                at.world.fence()?;
                flagging.issue(at.world, flag(at)?, 1)?;
                return Ok(Seen::Nothing);
            }
            if !learns(at)? {
                return Ok(Seen::Nothing);
            }
            Ok(Seen::held(at.gpu_reads(x) == 1))
        },
    )
}

const MODELS: [MemoryModel; 2] = [MemoryModel::Ordered, MemoryModel::Relaxed];
const FLAGS: [Path; 4] = [Path::Store, Path::Put, Path::Atomic, Path::Message];

#[test]
fn m27_after_a_wait_or_test_of_a_flag_the_targets_gpu_sees_the_data() {
    for model in MODELS {
        for path in FLAGS {
            for (name, learns) in LEARNS {
                let mut setup = Setup::new(2, &[Path::Copy, path]);
                setup.model = model;
                let found = flagged(&setup, path, learns, 50);
                let what = format!("flag by {path:?}, {name}, {model:?}");
                assert!(found.broken.is_none(), "{what}: {found:?}");
                assert!(found.held > 3, "{what}: {found:?}");
                setup.omit = Some(FenceSite::WaitGpu);
                let found = flagged(&setup, path, learns, 3000);
                assert!(found.broken.is_some(), "{what} without WaitGpu: {found:?}");
            }
        }
    }
}

fn across_a_barrier(model: MemoryModel, omit: Option<FenceSite>, runs: u64) -> Found {
    let mut setup = Setup::new(2, &[Path::Copy, Path::Put]);
    (setup.model, setup.omit) = (model, omit);
    let copy = setup.slot(Path::Copy);
    explore(
        &setup,
        runs,
        |world| copy.confirm_0_to_1(world),
        |at| {
            let x = at.word(MemoryKind::Cuda, 0)?;
            if at.me == 0 {
                copy.issue(at.world, x, 1)?;
            }
            at.world.barrier_all()?;
            Ok(match at.me {
                1 => Seen::held(at.gpu_reads(x) == 1),
                _ => Seen::Nothing,
            })
        },
    )
}

#[test]
fn m27_after_a_barrier_the_targets_gpu_sees_the_data() {
    for model in MODELS {
        let found = across_a_barrier(model, None, 100);
        assert!(found.broken.is_none() && found.held == 100, "{found:?}");
    }
    // In the ordered model the barrier's quiet has already requested the flush.
    let found = across_a_barrier(MemoryModel::Relaxed, Some(FenceSite::WaitGpu), 3000);
    assert!(found.broken.is_some(), "{found:?}");
}

/// PE 0 copies to PE 1's GPU and completes the copy. PE 1 makes no call; its GPU reads when PE 0 is
/// done.
fn completed(setup: &Setup, done: fn(&World) -> Result<()>, runs: u64) -> Found {
    let copy = setup.slot(Path::Copy);
    let completed_in = AtomicU64::new(0);
    explore(
        setup,
        runs,
        |world| copy.confirm_0_to_1(world),
        |at| {
            let x = at.word(MemoryKind::Cuda, 0)?;
            if at.me == 0 {
                copy.issue(at.world, x, 1)?;
                done(at.world)?;
                // Between the PEs' threads, outside the simulated memory.
                completed_in.store(at.run, Ordering::SeqCst);
                return Ok(Seen::Nothing);
            }
            (0..4).for_each(|_| at.pause());
            if completed_in.load(Ordering::SeqCst) != at.run {
                return Ok(Seen::Nothing);
            }
            Ok(Seen::held(at.gpu_reads(x) == 1))
        },
    )
}

#[test]
fn m27_in_the_ordered_model_quiet_alone_makes_the_targets_gpu_see_the_data() {
    let both: [fn(&World) -> _; 2] = [|w| w.quiet(), |w| w.pe_quiet(&[1])];
    for done in both {
        let mut setup = Setup::new(2, &[Path::Copy, Path::Put]);
        let found = completed(&setup, done, 200);
        assert!(found.broken.is_none() && found.held > 20, "{found:?}");
        setup.omit = Some(FenceSite::QuietGpu);
        let found = completed(&setup, done, 3000);
        assert!(found.broken.is_some(), "{found:?}");
        // The relaxed model leaves this to the target.
        setup.omit = None;
        setup.model = MemoryModel::Relaxed;
        let found = completed(&setup, done, 3000);
        assert!(found.broken.is_some(), "{found:?}");
    }
}
