//! Teams: the updates that a sync and a barrier of some of the PEs make visible to their members.

use oxshmem::{FenceSite, MemoryKind, MemoryModel, Result, Team};

use crate::explore::{At, Found, Seen, explore};
use crate::path::{NICS, Path, Setup};

/// The members' call between the update of one and the read of the other.
type Meets = fn(&At<'_>, &Team<'_>) -> Result<()>;

const SYNC: Meets = |_, team| team.sync();
const QUIET_AND_SYNC: Meets = |at, team| {
    at.world.quiet()?;
    team.sync()
};
const BARRIER: Meets = |_, team| team.barrier();

/// The team of PEs 1 and 0, in a world of three: PE 0 updates PE 1's word by a path, they meet, and
/// PE 1 reads.
fn meet(setup: &Setup, path: Path, meets: Meets, runs: u64) -> Found {
    let by = setup.slot(path);
    explore(
        setup,
        runs,
        |world| by.confirm_0_to_1(world),
        |at| {
            let Some(team) = at.world.team().split_strided(1, -1, 2)? else {
                return Ok(Seen::Nothing);
            };
            let x = at.word(by.kind, 0)?;
            if at.me == 0 {
                by.issue(at.world, x, 1)?;
            }
            meets(at, &team)?;
            let seen = match at.me {
                1 => Seen::held(at.world.g(x, 1)? == 1),
                _ => Seen::Nothing,
            };
            team.destroy()?;
            Ok(seen)
        },
    )
}

#[test]
fn m19_a_teams_barrier_completes_what_its_members_put_whatever_the_way() {
    for model in [MemoryModel::Ordered, MemoryModel::Relaxed] {
        for path in [Path::Store, Path::Put, Path::Atomic, Path::Message] {
            for (name, nic) in NICS {
                for meets in [BARRIER, QUIET_AND_SYNC] {
                    let mut setup = Setup::new(3, &[path]);
                    (setup.nic, setup.model) = (nic, model);
                    let found = meet(&setup, path, meets, 30);
                    let what = format!("{model:?} {path:?}, NIC {name}");
                    assert!(found.broken.is_none(), "{what}: {found:?}");
                    assert_eq!(found.held, 30, "{what}");
                }
            }
        }
    }
}

#[test]
fn m24_a_teams_sync_shows_its_members_each_others_stores() {
    for model in [MemoryModel::Ordered, MemoryModel::Relaxed] {
        let mut setup = Setup::new(3, &[Path::Store]);
        setup.model = model;
        let found = meet(&setup, Path::Store, SYNC, 200);
        assert!(found.broken.is_none() && found.held == 200, "{found:?}");
    }
}

#[test]
fn m19_m24_each_order_that_a_team_needs_is_needed() {
    for (inserted, path, meets) in [
        (FenceSite::Arrive, Path::Store, SYNC),
        (FenceSite::Arrived, Path::Store, SYNC),
        (FenceSite::QuietLane, Path::Put, BARRIER),
    ] {
        let mut setup = Setup::new(3, &[path]);
        setup.omit = Some(inserted);
        let found = meet(&setup, path, meets, 3000);
        assert!(
            found.broken.is_some(),
            "{path:?} without {inserted:?}: {found:?}"
        );
    }
    // A sync completes no operation of a lane.
    let found = meet(&Setup::new(3, &[Path::Put]), Path::Put, SYNC, 3000);
    assert!(found.broken.is_some(), "{found:?}");
}

/// Two teams with a PE in common: a member of the second sees the updates of the first.
#[test]
fn m24_what_one_team_saw_is_seen_by_the_next() {
    let setup = Setup::new(3, &[Path::Store]);
    let found = explore(
        &setup,
        100,
        |_| {},
        |at| {
            let world = at.world.team();
            let (first, second) = (world.split_strided(0, 1, 2)?, world.split_strided(1, 1, 2)?);
            let x = at.word(MemoryKind::Host, 0)?;
            if at.me == 0 {
                at.world.write(x, &[1])?;
            }
            if let Some(first) = first {
                first.sync()?;
                first.destroy()?;
            }
            if let Some(second) = second {
                second.sync()?;
                second.destroy()?;
            }
            match at.me {
                2 => Ok(Seen::held(at.world.g(x, 0)? == 1)),
                _ => Ok(Seen::Nothing),
            }
        },
    );
    assert!(found.broken.is_none() && found.held == 100, "{found:?}");
}
