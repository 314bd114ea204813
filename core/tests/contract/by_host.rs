//! Reductions of teams over several hosts. Where some of these have several members, and objects are in host
//! memory, they fold host by host, else in the team's order.

use std::env;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxshmem::{Builder, Error, Fold, Result, Sym, World};
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;

use crate::job::is_lost;
use crate::numbers::Number;
use crate::order::poll;
use crate::setting::{DEADLINE, HEAP, ends, on_each};

/// The host of each PE, hosts in the order of their first PEs: a host's PEs map each other's memory.
pub fn hosts(world: &World) -> Result<Vec<usize>> {
    let first = world.shared_team().world_pes().min();
    let (all, mine) = (world.alloc::<u64>(world.n_pes())?, world.alloc::<u64>(1)?);
    world.write(mine, &[first.unwrap_or(world.my_pe()) as u64])?;
    world.team().fcollect(all, mine)?;
    let mut seen = vec![0; world.n_pes()];
    world.read(&mut seen, all)?;
    world.free(mine)?;
    world.free(all)?;
    Ok(seen.into_iter().map(|first| first as usize).collect())
}

/// The members that are folded together first, by their places in a team of these PEs.
pub fn groups(pes: impl Iterator<Item = usize>, hosts: &[usize]) -> Vec<Vec<usize>> {
    let of: Vec<usize> = pes.map(|pe| hosts[pe]).collect();
    let mut different = of.clone();
    different.sort_unstable();
    different.dedup();
    if different.len() == of.len() {
        return vec![(0..of.len()).collect()];
    }
    let on = |host: usize| (0..of.len()).filter(|place| of[*place] == host).collect();
    different.into_iter().map(on).collect()
}

/// Names the way of collective calls.
const WAY: &str = "OXSHMEM_COLLECTIVES";
/// One on which hosts are of no account.
pub const FLAT: &str = "flat";

/// Whether this process goes that way.
pub fn is_flat() -> bool {
    env::var(WAY).is_ok_and(|way| way == FLAT)
}

/// Fails unless another process, which goes this way, passes a test.
pub fn holds_by(way: &str, test: &str) {
    let ended = Command::new(env::current_exe().expect("this program's path"))
        .args(["--exact", test])
        .env(WAY, way)
        .output()
        .expect("starting this program again");
    let said = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    let well = ended.status.success() && said.contains("1 passed");
    assert!(well, "{way}, {test}: {said}\n{errors}");
}

/// The fold of the members' values, by hosts first.
pub fn folded<T: Number>(fold: Fold, groups: &[Vec<usize>], value: impl Fn(usize) -> T) -> T {
    let group = |group: &Vec<usize>| {
        let mut values = group.iter().map(|place| value(*place));
        T::fold(fold, &mut values).expect("no host is without members")
    };
    let mut of_hosts = groups.iter().map(group);
    T::fold(fold, &mut of_hosts).expect("no team is without members")
}

/// Lengths that go through scratch memory, that do not, and that leave some members without an element.
const LENGTHS: [usize; 3] = [3, 40_001, 9];

/// PEs on these hosts, which others reach by lanes.
fn on(hosts: &[&str]) -> Vec<Builder> {
    let builder = World::builder()
        .transports(vec![Arc::new(Loopback::new()), Arc::new(Tiny::nic())])
        .timeout(DEADLINE)
        .heap_limit(HEAP);
    let on = |host: &&str| builder.clone().host_id(*host);
    hosts.iter().map(on).collect()
}

const HOSTS: [&str; 6] = ["a", "b", "a", "c", "b", "a"];

/// So many hosts that not all hear of each other in one round of an arrival, in a team's memory.
#[test]
fn many_hosts_fold_in_one_order() {
    hosts_fold_in_one_order(25, 23);
}

/// So many that a row of them is read first, some of which are longer.
#[test]
fn hosts_fold_in_rows_and_columns() {
    hosts_fold_in_one_order(41, 38);
}

fn hosts_fold_in_one_order(pes: usize, hosts: usize) {
    let names: Vec<String> = (0..pes).map(|pe| format!("host-{}", pe % hosts)).collect();
    let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    on_each(on(&hosts), |world| {
        let (n, me) = (world.n_pes(), world.my_pe());
        let choices = world.collective_choices();
        let by_host = choices.iter().filter(|choice| choice.by_host);
        let calls = ["broadcast", "fcollect", "reduce"];
        let expected: &[&str] = if is_flat() { &[] } else { &calls };
        assert!(by_host.map(|choice| &choice.call).eq(expected));
        let [dst, src] = [world.alloc::<f32>(3000)?, world.alloc::<f32>(3000)?];
        let hosts = self::hosts(world)?;
        let list: Vec<usize> = (0..n).map(|i| i * 7 % n).collect();
        let part = world.team().split_list(&list)?.expect("all are in it");
        for team in [&world.team(), &part] {
            let pes: Vec<usize> = team.world_pes().collect();
            let groups = match is_flat() {
                true => vec![(0..n).collect()],
                false => groups(pes.iter().copied(), &hosts),
            };
            for len in [1, 14, 3000] {
                let value = |pe: usize, i: usize| (pe * 31 + i) as f32 / 7.0;
                let mine: Vec<f32> = (0..len).map(|i| value(me, i)).collect();
                let (dst, src) = (dst.range(..len)?, src.range(..len)?);
                for round in 0..3 {
                    world.write(src, &mine)?;
                    team.reduce(dst, src, Fold::Sum)?;
                    let mut seen = vec![0.0; len];
                    world.read(&mut seen, dst)?;
                    // Of few elements many hosts fold in rows first.
                    let (count, rows) = match groups.len() {
                        many @ 32.. if len < 3000 => (many, many.isqrt()),
                        all => (all, 1),
                    };
                    let rows = (0..rows).map(|row| row * count / rows..(row + 1) * count / rows);
                    let rows: Vec<_> = rows.map(|row| &groups[row]).collect();
                    let sum = |i| {
                        let row = |row: &&[_]| folded(Fold::Sum, row, |at| value(pes[at], i));
                        f32::fold(Fold::Sum, &mut rows.iter().map(row)).expect("a row")
                    };
                    let expected: Vec<f32> = (0..len).map(sum).collect();
                    assert!(seen == expected, "{len} elements in round {round}");
                }
            }
        }
        part.destroy()?;
        world.free(src)?;
        world.free(dst)
    });
}

#[test]
fn many_hosts_fold_in_the_teams_order_where_they_are_of_no_account() {
    holds_by(FLAT, "by_host::many_hosts_fold_in_one_order");
}

/// Whoever it is that calls something else: one of its host may be the first to find that out, or another's.
#[test]
fn m36_what_differs_on_one_host_is_refused_on_all() {
    on_each(on(&HOSTS), |world| {
        let (n, me, team) = (world.n_pes(), world.my_pe(), world.team());
        for len in LENGTHS {
            let [dst, src] = [world.alloc::<u64>(len)?, world.alloc::<u64>(len)?];
            let mine = vec![me as u64; len];
            for odd in 0..n {
                for how in 0..4 {
                    world.write(dst, &mine)?;
                    world.write(src, &mine)?;
                    let refused = match how {
                        _ if me != odd => team.reduce(dst, src, Fold::Sum),
                        0 => team.reduce(dst, src, Fold::Max),
                        1 => team.sync(),
                        2 => team.reduce(src, src, Fold::Sum),
                        _ => team.inscan(dst, src, Fold::Sum),
                    };
                    let differ = matches!(refused, Err(Error::CollectiveMismatch { .. }));
                    assert!(differ, "{len} elements, PE {odd}: {refused:?}");
                    let mut seen = vec![0; len];
                    for object in [dst, src] {
                        world.read(&mut seen, object)?;
                        assert!(seen == mine, "a refused call has changed something");
                    }
                }
            }
            world.sum_reduce(dst, src)?;
            let mut seen = vec![0; len];
            world.read(&mut seen, dst)?;
            assert!(seen == vec![(n * (n - 1) / 2) as u64; len]);
            world.free(src)?;
            world.free(dst)?;
        }
        Ok(())
    });
}

/// One PE ends while others reduce, each in turn: all of these hear so, and go on with a team of theirs.
#[test]
fn a_loss_midway_ends_reductions_on_all_hosts() {
    let n = HOSTS.len();
    for len in LENGTHS {
        for victim in 0..n {
            let (begun, survivors) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let errors = ends(on(&HOSTS), |world| {
                let (me, team) = (world.my_pe(), world.team());
                let list: Vec<usize> = (0..n).filter(|pe| *pe != victim).collect();
                let others = team.split_list(&list)?;
                let [dst, src]: [Sym<u64>; 2] = [world.alloc(len)?, world.alloc(len)?];
                world.write(src, &vec![me as u64; len])?;
                for _ in 0..5 {
                    team.reduce(dst, src, Fold::Sum)?;
                }
                begun.fetch_add(1, Ordering::SeqCst);
                let Some(others) = others else {
                    // A PE that ends while others are in one of those calls may end it with an error.
                    poll(|| Ok(begun.load(Ordering::SeqCst) == n))?;
                    return Err(Error::Argument {
                        call: "test",
                        what: "the victim's error".into(),
                    });
                };
                let lost = loop {
                    if let Err(error) = team.reduce(dst, src, Fold::Sum) {
                        break error;
                    }
                };
                is_lost(Err(lost), victim);
                assert_eq!(world.acknowledge_lost(), [victim]);
                others.reduce(dst, src, Fold::Sum)?;
                let mut seen = vec![0; len];
                world.read(&mut seen, dst)?;
                assert!(seen == vec![(n * (n - 1) / 2 - victim) as u64; len]);
                // A PE that ends first is lost to the others, so they end together.
                survivors.fetch_add(1, Ordering::SeqCst);
                poll(|| Ok(survivors.load(Ordering::SeqCst) == n - 1))
            });
            let went_on = survivors.load(Ordering::SeqCst);
            assert_eq!(went_on, n - 1, "without PE {victim}: {errors:?}");
        }
    }
}
