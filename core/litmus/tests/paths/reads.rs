//! M20 and M21: the order of blocking reads by different paths.

use oxshmem::{FenceSite, MemoryKind, MemoryModel, Result, Sym, World};

use crate::explore::{Found, Seen, explore};
use crate::path::{Path, Setup};

/// The operation, and so the path, of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Get,
    Fetch,
}

impl Read {
    fn of(self, world: &World, word: Sym<u64>, pe: usize) -> Result<u64> {
        match self {
            Read::Get => world.g(word, pe),
            Read::Fetch => world.fetch(word, pe),
        }
    }
}

/// Gets from mapped memory, fetches by the NIC; and the reverse.
const WAYS: [([Path; 2], Read); 2] = [
    ([Path::Store, Path::Atomic], Read::Get),
    ([Path::Put, Path::Store], Read::Fetch),
];
const READS: [Read; 2] = [Read::Get, Read::Fetch];
const BOTH: [[Read; 2]; 4] = [
    [READS[0], READS[0]],
    [READS[0], READS[1]],
    [READS[1], READS[0]],
    [READS[1], READS[1]],
];

/// PE 1 sets x, then y, in its own memory; PE 0 reads y, then x.
fn reads(setup: &Setup, [first, then]: [Read; 2], fence: bool, runs: u64) -> Found {
    let slots = [setup.paths[0], setup.paths[1]].map(|path| setup.slot(path));
    let confirm = |world: &World| slots.iter().for_each(|slot| slot.confirm_0_to_1(world));
    explore(setup, runs, confirm, |at| {
        let (x, y) = (at.word(MemoryKind::Host, 0)?, at.word(MemoryKind::Host, 1)?);
        if at.me == 1 {
            at.world.write(x, &[1])?;
            at.world.quiet()?;
            at.world.write(y, &[1])?;
            return Ok(Seen::Nothing);
        }
        for _ in 0..4 {
            let seen = first.of(at.world, y, 1)?;
            if fence {
                at.world.fence()?;
            }
            let before = then.of(at.world, x, 1)?;
            if seen == 1 {
                return Ok(Seen::held(before == 1));
            }
        }
        Ok(Seen::Nothing)
    })
}

fn setup(paths: [Path; 2], model: MemoryModel, omit: Option<FenceSite>) -> Setup {
    let mut setup = Setup::new(2, &paths);
    (setup.model, setup.omit) = (model, omit);
    setup
}

#[test]
fn m20_reads_by_different_ways_are_in_order_in_the_ordered_model() {
    for (paths, _) in WAYS {
        for both in BOTH {
            let found = reads(&setup(paths, MemoryModel::Ordered, None), both, false, 300);
            assert!(found.broken.is_none(), "{paths:?}, {both:?}: {found:?}");
            assert!(found.held > 20, "{paths:?}, {both:?}: {found:?}");
        }
    }
}

#[test]
fn m21_a_fence_between_puts_them_in_order_in_the_relaxed_model() {
    for (paths, _) in WAYS {
        for both in BOTH {
            let found = reads(&setup(paths, MemoryModel::Relaxed, None), both, true, 300);
            assert!(found.broken.is_none(), "{paths:?}, {both:?}: {found:?}");
            assert!(found.held > 20, "{paths:?}, {both:?}: {found:?}");
        }
    }
}

/// Two loads of mapped memory may be reordered. A NIC's answer is waited for, and is of the newest
/// value: loads before or after it cannot be reordered with it.
#[test]
fn m21_without_one_two_mapped_reads_may_change_places() {
    for (paths, mapped) in WAYS {
        for both in BOTH {
            let open = both == [mapped, mapped];
            let runs = if open { 3000 } else { 300 };
            let found = reads(&setup(paths, MemoryModel::Relaxed, None), both, false, runs);
            assert_eq!(
                found.broken.is_some(),
                open,
                "{paths:?}, {both:?}: {found:?}"
            );
        }
    }
}

#[test]
fn m20_m21_each_order_of_mapped_reads_is_needed() {
    use MemoryModel::{Ordered, Relaxed};
    for (omit, model, (paths, mapped)) in [
        (FenceSite::Read, Ordered, WAYS[0]),
        (FenceSite::Fetch, Ordered, WAYS[1]),
        (FenceSite::FenceLoads, Relaxed, WAYS[0]),
        (FenceSite::FenceLoads, Relaxed, WAYS[1]),
    ] {
        let setup = setup(paths, model, Some(omit));
        let found = reads(&setup, [mapped, mapped], model == Relaxed, 3000);
        assert!(
            found.broken.is_some(),
            "{paths:?} without {omit:?}: {found:?}"
        );
    }
}

/// PE 0 puts to PE 1 and gets the word back.
fn own_put(omit: Option<FenceSite>, runs: u64) -> Found {
    let setup = setup([Path::Put, Path::Message], MemoryModel::Ordered, omit);
    let put = setup.slot(Path::Put);
    explore(
        &setup,
        runs,
        |world| put.confirm_0_to_1(world),
        |at| {
            if at.me == 1 {
                return Ok(Seen::Nothing);
            }
            let x = at.word(MemoryKind::Host, 0)?;
            put.issue(at.world, x, 1)?;
            Ok(Seen::held(at.world.g(x, 1)? == 1))
        },
    )
}

#[test]
fn m16_a_get_gives_what_this_pe_has_put_before() {
    let found = own_put(None, 200);
    assert!(found.broken.is_none() && found.held == 200, "{found:?}");
    let found = own_put(Some(FenceSite::ReadLane), 3000);
    assert!(found.broken.is_some(), "{found:?}");
}
