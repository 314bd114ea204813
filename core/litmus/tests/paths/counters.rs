//! Counted puts: counted data has arrived, whatever the paths of the data and of the count.

use oxshmem::{FenceSite, MemoryKind, Result};

use crate::explore::{Found, Seen, explore};
use crate::path::{Path, Setup};
use crate::signals::{breaks_without, every_setup, slots};

/// PEs 0 and 2 each put to PE 1, which waits for one, then for the other.
fn counted(setup: &Setup, paths: [Path; 2], runs: u64) -> Found {
    let [data, count] = slots(setup, paths);
    explore(
        setup,
        runs,
        |world| {
            data.confirm_0_to_1(world);
            count.confirm_0_to_1(world);
        },
        |at| {
            let counter = at.word(MemoryKind::Host, 3)?;
            if at.me != 1 {
                let mine = at.word(data.kind, at.me)?;
                at.world.put_counted(mine, &[1], counter, 1)?;
                return Ok(Seen::Nothing);
            }
            let there = |pe: usize| at.world.g(at.word(data.kind, pe)?, 1);
            let both = || -> Result<_> { Ok([there(0)?, there(2)?]) };
            at.world.wait_counted(counter, 1)?;
            let first = both()?;
            at.world.wait_counted(counter, 1)?;
            let second = both()?;
            let none_left = !at.world.test_counted(counter, 1)?;
            Ok(Seen::held(first != [0, 0] && second == [1, 1] && none_left))
        },
    )
}

#[test]
fn m22_what_was_counted_is_there_whatever_the_ways() {
    every_setup(3, |setup, paths, what| {
        let found = counted(setup, paths, 25);
        assert!(found.broken.is_none(), "{what}: {found:?}");
        assert_eq!(found.held, 25, "{what}");
    });
}

#[test]
fn m22_each_order_that_a_count_needs_is_needed() {
    for needed in [
        (FenceSite::Signal, Path::Store, Path::Store),
        (FenceSite::Doorbell, Path::Store, Path::Atomic),
        (FenceSite::SignalLane, Path::Put, Path::Atomic),
        (FenceSite::SignalLane, Path::Put, Path::Store),
        (FenceSite::SignalLane, Path::Copy, Path::Message),
    ] {
        breaks_without(3, needed, counted);
    }
}
