//! M17 for each ordered pair of paths to one PE.

use oxshmem::{Cmp, FenceSite, MemoryKind, MemoryModel, Result};

use crate::explore::{At, Found, Seen, explore};
use crate::path::{ALL, NICS, Path, Setup, Slot};

/// Whether this PE has seen a word become 1: always, if it is in host memory. A PE cannot wait for
/// GPU memory.
pub fn comes(at: &At<'_>, kind: MemoryKind, index: usize) -> Result<bool> {
    let word = at.word(kind, index)?;
    if kind == MemoryKind::Host {
        at.world.wait_until(word, Cmp::Eq, 1)?;
        return Ok(true);
    }
    let came = at.in_a_few_polls(|| Ok(at.world.g(word, at.me)? == 1))?;
    // Blocking reads are ordered by themselves in the ordered model (M20, M21).
    if at.world.model() == MemoryModel::Relaxed {
        at.world.fence()?;
    }
    Ok(came)
}

/// PE 0 issues one operation, a fence (or none), then another; PE 1 reads in the opposite order.
fn pair(setup: &Setup, [first, second]: [Slot; 2], fence: bool, runs: u64) -> Found {
    explore(
        setup,
        runs,
        |world| {
            first.confirm_0_to_1(world);
            second.confirm_0_to_1(world);
        },
        |at| {
            let (x, y) = (at.word(first.kind, 0)?, at.word(second.kind, 1)?);
            if at.me == 0 {
                first.issue(at.world, x, 1)?;
                if fence {
                    at.world.fence()?;
                }
                second.issue(at.world, y, 1)?;
                return Ok(Seen::Nothing);
            }
            if !comes(at, second.kind, 1)? {
                return Ok(Seen::Nothing);
            }
            Ok(Seen::held(at.world.g(x, 1)? == 1))
        },
    )
}

/// The reason why a pair is in order even without a fence, if it is:
///
/// | first | then | why |
/// |---|---|---|
/// | store | anything by a lane | the doorbell: no NIC gets a request before this PE's stores |
/// | put, atomic | put, atomic, by the same NIC in order | the lane's guarantees |
/// | message | message | the lane keeps atomics in order |
///
/// All others are unordered, and some schedule shows it.
fn ordered_anyway(first: Path, second: Path, nic: &str) -> Option<&'static str> {
    let by_nic = |path| matches!(path, Path::Put | Path::Atomic);
    match (first, second) {
        (Path::Store, Path::Store) => None,
        (Path::Store, _) => Some("the doorbell"),
        (Path::Message, Path::Message) => Some("the lane's guarantees"),
        (a, b) if by_nic(a) && by_nic(b) && nic == "in order" => Some("the lane's guarantees"),
        _ => None,
    }
}

fn each_pair(mut with: impl FnMut(Path, Path, &str, Setup)) {
    for first in ALL {
        for second in ALL {
            for (name, nic) in NICS {
                let mut setup = Setup::new(2, &[first, second]);
                setup.nic = nic;
                let by_nic = setup
                    .paths
                    .iter()
                    .any(|w| matches!(w, Path::Put | Path::Atomic));
                if by_nic || name == "worst" {
                    with(first, second, name, setup);
                }
            }
        }
    }
}

#[test]
fn m17_what_a_fence_puts_first_is_seen_first_whatever_the_ways() {
    for model in [MemoryModel::Ordered, MemoryModel::Relaxed] {
        each_pair(|first, second, nic, setup| {
            let setup = Setup { model, ..setup };
            let slots = [setup.slot(first), setup.slot(second)];
            let found = pair(&setup, slots, true, 150);
            let what = format!("{first:?}, fence, {second:?}, NIC {nic}, {model:?}");
            assert!(found.broken.is_none(), "{what}: {found:?}");
            assert!(found.held > 20, "{what}: {found:?}");
        });
    }
}

#[test]
fn m17_without_a_fence_the_ways_are_unordered_where_nothing_else_orders_them() {
    each_pair(|first, second, nic, setup| {
        let slots = [setup.slot(first), setup.slot(second)];
        let why = ordered_anyway(first, second, nic);
        let runs = if why.is_some() { 150 } else { 3000 };
        let found = pair(&setup, slots, false, runs);
        let what = format!("{first:?}, {second:?}, NIC {nic}");
        match why {
            Some(why) => assert!(found.broken.is_none(), "{what}, {why}: {found:?}"),
            None => assert!(found.broken.is_some(), "{what}: {found:?}"),
        }
    });
}

#[test]
fn m17_each_order_that_a_fence_inserts_is_needed_by_some_pair() {
    let needed = [
        (FenceSite::FenceStores, Path::Store, Path::Store, 0),
        // The lane itself does not keep this order.
        (FenceSite::FenceLane, Path::Put, Path::Put, 0),
        (FenceSite::FenceLane, Path::Atomic, Path::Put, 0),
        (FenceSite::FenceLane, Path::Copy, Path::Store, 0),
        (FenceSite::FenceLane, Path::Message, Path::Copy, 0),
        // The lane keeps the order, but the CPU overtakes it.
        (FenceSite::FenceOtherPath, Path::Put, Path::Store, 1),
        // The lane keeps the order, but another lane overtakes it.
        (FenceSite::FenceOtherPath, Path::Put, Path::Message, 1),
        (FenceSite::FenceOtherPath, Path::Put, Path::Copy, 1),
    ];
    for (inserted, first, second, nic) in needed {
        let mut setup = Setup::new(2, &[first, second]);
        setup.nic = NICS[nic].1;
        setup.omit = Some(inserted);
        let slots = [setup.slot(first), setup.slot(second)];
        let found = pair(&setup, slots, true, 3000);
        let what = format!("{first:?}, fence without {inserted:?}, {second:?}");
        assert!(found.broken.is_some(), "{what}: {found:?}");
    }
}

/// Puts by one lane, atomics by another, copies to the GPU by a third, nothing mapped: a fence
/// marks the operations of the first, and the next post to another lane flushes them.
fn three_lanes(omit: Option<FenceSite>, runs: u64) -> Found {
    let mut setup = Setup::new(2, &[Path::Put, Path::Message, Path::Copy]);
    setup.nic = NICS[1].1;
    setup.omit = omit;
    let [put, message, copy] = [Path::Put, Path::Message, Path::Copy].map(|path| setup.slot(path));
    explore(
        &setup,
        runs,
        |world| {
            for slot in [put, message, copy] {
                slot.confirm_0_to_1(world);
            }
        },
        |at| {
            let (x, y) = (at.word(put.kind, 0)?, at.word(message.kind, 1)?);
            let (w, z) = (at.word(put.kind, 2)?, at.word(copy.kind, 3)?);
            if at.me == 0 {
                put.issue(at.world, x, 1)?;
                at.world.fence()?;
                // The same lane keeps the order, and the mark stays.
                put.issue(at.world, w, 1)?;
                copy.issue(at.world, z, 1)?;
                message.issue(at.world, y, 1)?;
                return Ok(Seen::Nothing);
            }
            if at.world.g(z, 1)? == 1 && at.world.g(x, 1)? == 0 {
                return Ok(Seen::Broken);
            }
            at.world.wait_until(y, Cmp::Eq, 1)?;
            Ok(Seen::held(at.world.g(x, 1)? == 1))
        },
    )
}

#[test]
fn m17_a_fence_orders_a_lane_before_each_of_the_others() {
    let found = three_lanes(None, 400);
    assert!(found.broken.is_none() && found.held > 300, "{found:?}");
    let found = three_lanes(Some(FenceSite::FenceOtherPath), 3000);
    assert!(found.broken.is_some(), "{found:?}");
}
