//! M19: quiet towards one PE before an operation towards another, for each pair of paths.

use oxshmem::{Cmp, FenceSite, MemoryKind, Result, World};

use crate::explore::{Found, Seen, explore};
use crate::pairs::comes;
use crate::path::{ALL, NICS, Path, Setup};

type Completes = fn(&World) -> Result<()>;

/// PE 0 issues one operation to PE 1, completes it, and notifies PE 2 by another path. PE 2
/// notifies PE 1, which then reads.
fn told_by_a_third(setup: &Setup, [first, second]: [Path; 2], done: Completes, runs: u64) -> Found {
    let (first, second) = (setup.slot(first), setup.slot(second));
    explore(
        setup,
        runs,
        |world| {
            if world.my_pe() == 0 {
                first.confirm(world, 1);
                second.confirm(world, 2);
            }
        },
        |at| {
            let (x, y) = (at.word(first.kind, 0)?, at.word(second.kind, 1)?);
            let told = at.word(MemoryKind::Host, 2)?;
            match at.me {
                0 => {
                    first.issue(at.world, x, 1)?;
                    done(at.world)?;
                    second.issue(at.world, y, 2)?;
                    Ok(Seen::Nothing)
                }
                2 => {
                    let value = if comes(at, second.kind, 1)? { 2 } else { 1 };
                    at.world.p(told, value, 1)?;
                    Ok(Seen::Nothing)
                }
                _ => {
                    at.world.wait_until(told, Cmp::Ge, 1_u64)?;
                    if at.world.g(told, 1)? != 2 {
                        return Ok(Seen::Nothing);
                    }
                    Ok(Seen::held(at.world.g(x, 1)? == 1))
                }
            }
        },
    )
}

fn each_pair(mut with: impl FnMut([Path; 2], Setup)) {
    for first in ALL {
        for second in ALL {
            let mut setup = Setup::new(3, &[first, second]);
            // If a lane keeps an order, quiet has to know that the order is towards one PE only.
            setup.nic = NICS[1].1;
            with([first, second], setup);
        }
    }
}

#[test]
fn m19_what_quiet_completed_at_one_pe_is_there_when_another_is_told() {
    each_pair(|paths, setup| {
        for (name, done) in [
            ("quiet", (|w| w.quiet()) as Completes),
            ("pe_quiet", |w| w.pe_quiet(&[1])),
        ] {
            let found = told_by_a_third(&setup, paths, done, 80);
            let what = format!("{paths:?}, {name}");
            assert!(found.broken.is_none(), "{what}: {found:?}");
            assert!(found.held > 5, "{what}: {found:?}");
        }
    });
}

/// A lane's operation after a store waits for the store, by the doorbell. No other pair is in order
/// by itself: no lane promises an order between two PEs.
#[test]
fn m19_without_quiet_another_pe_may_be_told_too_early() {
    each_pair(|[first, second], setup| {
        let doorbell = first == Path::Store && second != Path::Store;
        let runs = if doorbell { 80 } else { 6000 };
        let found = told_by_a_third(&setup, [first, second], |_| Ok(()), runs);
        let what = format!("{first:?}, {second:?}: {found:?}");
        assert_eq!(found.broken.is_none(), doorbell, "{what}");
    });
}

/// Not the GPU copy lane: its completions mean placement, and quiet waits for those even if its
/// flush is left out, so that no borrowed buffer is touched afterwards.
#[test]
fn m19_each_order_that_quiet_inserts_is_needed_by_some_pair() {
    for (inserted, first, second) in [
        (FenceSite::QuietStores, Path::Store, Path::Store),
        (FenceSite::QuietLane, Path::Put, Path::Put),
        (FenceSite::QuietLane, Path::Message, Path::Store),
    ] {
        let mut setup = Setup::new(3, &[first, second]);
        setup.omit = Some(inserted);
        let found = told_by_a_third(&setup, [first, second], |w| w.quiet(), 6000);
        let what = format!("{first:?}, quiet without {inserted:?}, {second:?}");
        assert!(found.broken.is_some(), "{what}: {found:?}");
    }
}
