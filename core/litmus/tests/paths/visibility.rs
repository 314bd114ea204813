//! M24 to M26: the PEs to which an update is visible, over mapped routes and over mixed ones.

use oxshmem::{Cmp, MemoryKind, MemoryModel, Result, Visibility, World};

use crate::explore::{At, Found, Seen, explore};
use crate::path::{NICS, Path, Setup};

const MODELS: [MemoryModel; 2] = [MemoryModel::Ordered, MemoryModel::Relaxed];

/// Three PEs, the first two on one host.
fn two_hosts(nic: usize, model: MemoryModel) -> Setup {
    let mut setup = Setup::new(3, &[Path::Store, Path::Atomic]);
    setup.hosts = vec![0, 0, 1];
    setup.nic = NICS[nic].1;
    setup.model = model;
    setup
}

/// Confirms that PEs of one host map each other, and others use the NIC.
fn confirm_hosts(world: &World) {
    for (pe, route) in world.routes().into_iter().enumerate() {
        let same_host = (pe == 2) == (world.my_pe() == 2);
        let transport = if same_host { "simulator" } else { "weak(nic)" };
        assert_eq!(
            (route.transport, route.mapped),
            (Some(transport), same_host)
        );
    }
}

#[test]
fn m26_visibility_is_global_exactly_where_every_route_is_mapped() {
    let all_mapped = Setup::new(3, &[Path::Store]);
    let with_gpus = Setup::new(3, &[Path::Store, Path::Copy]);
    let by_nic = Setup::new(3, &[Path::Put]);
    for (setup, expected) in [
        (all_mapped, Visibility::Global),
        (two_hosts(1, MemoryModel::Ordered), Visibility::Local),
        (with_gpus, Visibility::Local),
        (by_nic, Visibility::Local),
    ] {
        // The same on every PE, also on those that map all PEs they reach.
        let confirm = |world: &World| assert_eq!(world.visibility(), expected);
        explore(&setup, 0, confirm, |_| Ok(Seen::Nothing));
    }
}

/// PE 0 puts to PE 1, completes it, and notifies PE 2, which reads PE 1's memory.
fn seen_by_a_third(setup: &Setup, complete: bool, runs: u64) -> Found {
    let confirm = |world: &World| {
        assert_eq!(world.visibility(), Visibility::Global);
        assert!(world.routes().iter().all(|route| route.mapped));
    };
    explore(setup, runs, confirm, |at| {
        let (x, y) = (at.word(MemoryKind::Host, 0)?, at.word(MemoryKind::Host, 1)?);
        match at.me {
            0 => {
                at.world.p(x, 1, 1)?;
                if complete {
                    at.world.quiet()?;
                }
                at.world.p(y, 1, 2)?;
                Ok(Seen::Nothing)
            }
            2 => {
                at.world.wait_until(y, Cmp::Eq, 1)?;
                Ok(Seen::held(at.world.g(x, 1)? == 1))
            }
            _ => Ok(Seen::Nothing),
        }
    })
}

#[test]
fn m24_where_all_is_mapped_what_was_completed_is_visible_to_every_pe() {
    for model in MODELS {
        let mut setup = Setup::new(3, &[Path::Store]);
        setup.model = model;
        let found = seen_by_a_third(&setup, true, 300);
        assert!(found.broken.is_none() && found.held == 300, "{found:?}");
        let found = seen_by_a_third(&setup, false, 3000);
        assert!(found.broken.is_some(), "{found:?}");
    }
}

type Does = fn(&World) -> Result<()>;
type Learns = fn(&At<'_>) -> Result<bool>;

fn flag(at: &At<'_>) -> Result<oxshmem::Sym<u64>> {
    at.word(MemoryKind::Host, 1)
}

/// A PE puts to PE 1, orders that, and sets a flag there by another path or the same. PE 1 learns
/// of the flag and reads its own memory.
fn seen_by_its_owner(
    setup: &Setup,
    writer: usize,
    orders: Does,
    learns: Learns,
    by_atomic: bool,
    runs: u64,
) -> Found {
    explore(setup, runs, confirm_hosts, |at| {
        let x = at.word(MemoryKind::Host, 0)?;
        if at.me == writer {
            at.world.p(x, 1, 1)?;
            orders(at.world)?;
            if by_atomic {
                at.world.set(flag(at)?, 1, 1)?
            } else {
                at.world.p(flag(at)?, 1, 1)?
            }
        }
        if at.me != 1 || !learns(at)? {
            return Ok(Seen::Nothing);
        }
        Ok(Seen::held(at.world.g(x, 1)? == 1))
    })
}

const ORDERS: [(&str, Does); 2] = [("fence", |w| w.fence()), ("quiet", |w| w.quiet())];
const LEARNS: [(&str, Learns); 2] = [
    ("wait_until", |at| {
        at.world.wait_until(flag(at)?, Cmp::Eq, 1)?;
        Ok(true)
    }),
    ("test", |at| {
        let word = flag(at)?;
        at.in_a_few_polls(|| at.world.test(word, Cmp::Eq, 1))
    }),
];

#[test]
fn m25_over_mixed_routes_a_pe_sees_what_was_ordered_before_its_flag() {
    for model in MODELS {
        for nic in 0..NICS.len() {
            let setup = two_hosts(nic, model);
            for writer in [0, 2] {
                for by_atomic in [false, true] {
                    let try_it = |orders, learns, runs| {
                        seen_by_its_owner(&setup, writer, orders, learns, by_atomic, runs)
                    };
                    let what = format!("{model:?}, {nic}, from PE {writer}, atomic {by_atomic}");
                    for (order, orders) in ORDERS {
                        for (learn, learns) in LEARNS {
                            let found = try_it(orders, learns, 40);
                            let what = format!("{what}, {order}, {learn}");
                            assert!(found.broken.is_none(), "{what}: {found:?}");
                            assert!(found.held > 2, "{what}: {found:?}");
                        }
                    }
                    // From the other host, the ordered NIC keeps it; on this one, the doorbell.
                    let anyway = (writer == 2 && nic == 1) || (writer == 0 && by_atomic);
                    let runs = if anyway { 40 } else { 3000 };
                    let found = try_it(|_| Ok(()), LEARNS[0].1, runs);
                    assert_eq!(found.broken.is_none(), anyway, "{what}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn m25_over_mixed_routes_a_barrier_shows_each_pe_what_was_put_before() {
    for model in MODELS {
        for nic in 0..NICS.len() {
            let setup = two_hosts(nic, model);
            let found = explore(&setup, 100, confirm_hosts, |at| {
                let (x, y) = (at.word(MemoryKind::Host, 0)?, at.word(MemoryKind::Host, 1)?);
                match at.me {
                    0 => at.world.p(x, 1, 1)?,
                    2 => at.world.p(y, 1, 1)?,
                    _ => {}
                }
                at.world.barrier_all()?;
                if at.me != 1 {
                    return Ok(Seen::Nothing);
                }
                let both = [at.world.g(x, 1)?, at.world.g(y, 1)?];
                Ok(Seen::held(both == [1, 1]))
            });
            assert!(found.broken.is_none() && found.held == 100, "{found:?}");
        }
    }
}
