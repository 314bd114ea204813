//! Locks: a holder's updates are visible to the next one, whatever the paths of the data and of the
//! lock's own words.

use std::sync::atomic::{AtomicU64, Ordering};

use oxshmem::{FenceSite, MemoryKind, MemoryModel};

use crate::explore::{Found, Seen, explore};
use crate::path::{Class, NICS, Path, Setup, Slot};

const DATA: [Path; 3] = [Path::Store, Path::Put, Path::Copy];
const WORDS: [Path; 3] = [Path::Store, Path::Atomic, Path::Message];

/// Every PE increments PE 1's word under a lock, by a get and a put. The index `word` of the lock
/// decides which PE has the tail of its queue.
fn count_up(setup: &Setup, [data, by]: [Path; 2], word: usize, runs: u64) -> Found {
    let data = setup.slot(data);
    let by = Slot {
        path: by,
        kind: MemoryKind::Host,
        class: Class::Atomic,
    };
    // The number of holders in each run: known to the test only, outside the simulated memory.
    let turns: Vec<AtomicU64> = (0..=runs).map(|_| AtomicU64::new(0)).collect();
    explore(
        setup,
        runs,
        |world| {
            data.confirm_0_to_1(world);
            by.confirm_0_to_1(world);
        },
        |at| {
            let (x, lock) = (at.word(data.kind, 0)?, at.word(MemoryKind::Host, word)?);
            at.world.set_lock(lock)?;
            let turn = turns[at.run as usize].fetch_add(1, Ordering::SeqCst);
            let before = at.world.g(x, 1)?;
            at.world.p(x, before + 1, 1)?;
            at.world.clear_lock(lock)?;
            Ok(Seen::held(before == turn))
        },
    )
}

#[test]
fn m19_m23_what_a_holder_put_is_there_for_the_next_whatever_the_ways() {
    for model in [MemoryModel::Ordered, MemoryModel::Relaxed] {
        for data in DATA {
            for by in WORDS {
                for (name, nic) in NICS {
                    for (pes, word) in [(2, 2), (2, 3), (3, 2)] {
                        let mut setup = Setup::new(pes, &[data, by]);
                        (setup.nic, setup.model) = (nic, model);
                        let found = count_up(&setup, [data, by], word, 20);
                        let what = format!("{model:?} {data:?}, {by:?}, NIC {name}, {pes} PEs");
                        assert!(found.broken.is_none(), "{what}: {found:?}");
                        assert_eq!(found.held, 20 * pes as u64, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn m19_m23_each_order_that_a_lock_needs_is_needed() {
    for (inserted, data, by) in [
        (FenceSite::QuietLane, Path::Put, Path::Store),
        (FenceSite::QuietLane, Path::Put, Path::Atomic),
        (FenceSite::QuietLane, Path::Put, Path::Message),
        (FenceSite::Wait, Path::Store, Path::Store),
    ] {
        let mut setup = Setup::new(2, &[data, by]);
        setup.omit = Some(inserted);
        let found = count_up(&setup, [data, by], 2, 3000);
        let what = format!("{data:?}, {by:?} without {inserted:?}");
        assert!(found.broken.is_some(), "{what}: {found:?}");
    }
}
