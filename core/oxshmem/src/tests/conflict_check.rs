//! Checked mode: conflicts that it finds, and those that there are not.

use std::sync::Barrier;

use oxshmem_engine::order::conflict::SLOTS;

use crate::error::Error;
use crate::testing::spmd_with;
use crate::world::World;

fn conflict(
    first: impl Fn(&World, crate::Sym<u64>) -> crate::Result<()> + Sync,
    second: impl Fn(&World, crate::Sym<u64>) -> crate::Result<()> + Sync,
) -> Option<String> {
    let turn = Barrier::new(2);
    let found = spmd_with(World::builder().check(true), 2, |world| {
        let x = world.alloc_zeroed::<u64>(4)?;
        let found = if world.my_pe() == 0 {
            first(world, x)?;
            turn.wait();
            turn.wait();
            None
        } else {
            turn.wait();
            let result = second(world, x);
            turn.wait();
            match result {
                Ok(()) => None,
                Err(Error::Conflict { what, .. }) => Some(what),
                Err(error) => return Err(error),
            }
        };
        world.free(x)?;
        Ok(found)
    });
    found.unwrap().into_iter().flatten().next()
}

#[test]
fn m31_atomics_of_two_types_on_one_word_are_found() {
    let what = conflict(
        |w, x| w.add(x, 1, 1),
        |w, x| w.fetch_add(x.cast::<i64>()?, 1, 1).map(drop),
    )
    .unwrap();
    assert!(
        what.contains("i64") && what.contains("u64") && what.contains("PE 0"),
        "{what}"
    );
    let narrow = conflict(
        |w, x| w.add(x, 1, 1),
        |w, x| w.add(x.cast::<u32>()?.at(1)?, 1, 1),
    );
    assert!(narrow.is_some());
}

#[test]
fn m32_an_atomic_and_a_put_or_get_on_one_word_are_found() {
    assert!(conflict(|w, x| w.add(x, 1, 1), |w, x| w.p(x, 1, 1)).is_some());
    assert!(conflict(|w, x| w.add(x, 1, 1), |w, x| w.g(x, 1).map(drop)).is_some());
    assert!(conflict(|w, x| w.put(x, &[1; 4], 1), |w, x| w.inc(x.at(3)?, 1)).is_some());
}

#[test]
fn m32_what_a_fence_has_ordered_is_refused_to_nobody_though_another_entry_cannot_be_ended() {
    let unended = |w: &World, x: crate::Sym<u64>| {
        w.add(x, 1, 1)?;
        // In no slot of any table.
        w.worker.state.entered.borrow_mut().insert(0, (1, SLOTS, 0));
        assert!(w.fence().is_err());
        Ok(())
    };
    assert_eq!(conflict(unended, |w, x| w.p(x, 1, 1)), None);
}

#[test]
fn what_the_contract_allows_is_not_refused() {
    // One type; other words; ordered by fence or quiet; fetching atomics are complete.
    assert_eq!(conflict(|w, x| w.add(x, 1, 1), |w, x| w.inc(x, 1)), None);
    assert_eq!(
        conflict(|w, x| w.add(x, 1, 1), |w, x| w.p(x.at(1)?, 1, 1)),
        None
    );
    assert_eq!(
        conflict(|w, x| w.p(x, 1, 1), |w, x| w.g(x, 1).map(drop)),
        None
    );
    let fenced = |w: &World, x: crate::Sym<u64>| w.p(x, 1, 1).and_then(|()| w.fence());
    assert_eq!(conflict(fenced, |w, x| w.inc(x, 1)), None);
    let quieted = |w: &World, x: crate::Sym<u64>| w.add(x, 1, 1).and_then(|()| w.quiet());
    assert_eq!(conflict(quieted, |w, x| w.g(x, 1).map(drop)), None);
    assert_eq!(
        conflict(|w, x| w.fetch_inc(x, 1).map(drop), |w, x| w.p(x, 2, 1)),
        None
    );
    // Its own memory a PE stores to without a lane.
    let own = |w: &World, x: crate::Sym<u64>| {
        w.quiet()?;
        w.write(x, &[1])?;
        w.quiet()
    };
    assert_eq!(conflict(own, |w, x| w.inc(x, 0)), None);
}
