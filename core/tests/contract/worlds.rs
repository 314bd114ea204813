//! How worlds begin: several in one process, with settings that differ, without a way to a peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use oxshmem::testing::{spmd, spmd_with};
use oxshmem::{Builder, Error, Fold, MemoryModel, Result, Sym, Visibility, World};
use oxshmem_bootstrap::InProcess;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;

use crate::order::poll;
use crate::setting::{Path, Pe, Setting, patterns};

oxshmem::symmetric! {
    static OWN: u64 = 5;
}

/// Thread PEs whose builders differ.
fn each_with<R: Send>(builders: Vec<Builder>, f: impl Fn(Result<World>) -> R + Sync) -> Vec<R> {
    let group = InProcess::group(builders.len() as u32);
    std::thread::scope(|threads| {
        let spawned: Vec<_> = group
            .into_iter()
            .zip(builders)
            .map(|(bootstrap, builder)| {
                let f = &f;
                threads.spawn(move || f(builder.bootstrap(bootstrap as Arc<_>).join()))
            })
            .collect();
        spawned
            .into_iter()
            .map(|t| t.join().expect("no PE panics"))
            .collect()
    })
}

/// Builders of PEs that share a transport.
fn alike(n: usize) -> Vec<Builder> {
    vec![Setting::new(Path::Mapped).builder(); n]
}

#[test]
fn a_world_has_the_collective_calls_of_the_team_of_all_pes() {
    let done = spmd(3, |world| {
        let (me, pes) = (world.my_pe(), [0_u64, 1, 2]);
        let (each, all) = (world.alloc::<u64>(1)?, world.alloc::<u64>(3)?);
        let (one, from_all) = (world.alloc::<u64>(1)?, world.alloc_zeroed::<u64>(3)?);
        let seen = |of| -> Result<Vec<u64>> {
            let mut seen = vec![0; Sym::len(&of)];
            world.read(&mut seen, of)?;
            Ok(seen)
        };
        world.write(each, &[me as u64 + 1])?;
        world.write(all, &pes.map(|to| 10 * me as u64 + to))?;

        world.broadcast(one, each, 1)?;
        assert_eq!(seen(one)?, [2]);
        world.broadcast_to_others(one, each, 2)?;
        assert_eq!(seen(one)?, [if me == 2 { 2 } else { 3 }]);
        world.fcollect(from_all, each)?;
        assert_eq!(seen(from_all)?, [1, 2, 3]);
        // PE 0 gives nothing, PE 1 one element, PE 2 two.
        assert_eq!(world.collect(from_all, all.range(..me)?)?, 3);
        assert_eq!(seen(from_all)?, [10, 20, 21]);
        world.alltoall(from_all, all)?;
        assert_eq!(seen(from_all)?, pes.map(|from| 10 * from + me as u64));
        world.alltoalls(from_all, all, 1, 1, 1)?;
        assert_eq!(seen(from_all)?, pes.map(|from| 10 * from + me as u64));
        world.reduce(one, each, Fold::Prod)?;
        assert_eq!(seen(one)?, [6]);
        world.sum_reduce(one, each)?;
        assert_eq!(seen(one)?, [6]);
        world.reduce_scatter(one, all, Fold::Max)?;
        assert_eq!(seen(one)?, [20 + me as u64]);
        world.inscan(one, each, Fold::Sum)?;
        assert_eq!(seen(one)?, [[1, 3, 6][me]]);
        world.exscan(one, each, Fold::Sum)?;
        assert_eq!(seen(one)?, [[0, 1, 3][me]]);
        world.barrier_all()
    });
    done.unwrap();
}

#[test]
fn many_worlds_live_in_one_process() {
    std::thread::scope(|threads| {
        for world_number in 0..6_usize {
            threads.spawn(move || {
                let path = [Path::Mapped, Path::Checked, Path::Tiny][world_number % 3];
                let n = world_number % 4 + 1;
                let done = spmd_with(Setting::new(path).builder(), n, |world| {
                    let own = OWN.get(world)?;
                    for round in 0..20 {
                        world.add(own, 1, (world.my_pe() + round) % n)?;
                        let x = world.alloc::<u64>(100)?;
                        world.put(x, &patterns(world_number, 100), (world.my_pe() + 1) % n)?;
                        world.barrier_all()?;
                        let mut seen = [0; 100];
                        world.read(&mut seen, x)?;
                        assert_eq!(seen, *patterns(world_number, 100));
                        world.free(x)?;
                    }
                    world.barrier_all()?;
                    (0..n).map(|pe| world.g(own, pe)).sum::<Result<u64>>()
                });
                assert_eq!(done.unwrap(), vec![(n * (5 + 20)) as u64; n]);
            });
        }
    });
}

#[test]
fn spmd_gives_results_in_the_order_of_the_pes() {
    let builder = || Setting::new(Path::Mapped).builder();
    let ranks = spmd_with(builder(), 7, |world| Ok((world.my_pe(), world.n_pes()))).unwrap();
    assert_eq!(ranks, (0..7).map(|pe| (pe, 7)).collect::<Vec<_>>());
    assert!(matches!(spmd(0, |_| Ok(())), Err(Error::Argument { .. })));
}

#[test]
fn m14_the_pes_agree_on_the_smallest_heap() {
    for n in [1, 2, 3, 7] {
        let sizes = (0..n).map(|pe| (4 << 20) + (((pe + n / 2) % n) << 20));
        let builders = alike(n)
            .into_iter()
            .zip(sizes)
            .map(|(b, s)| b.heap_limit(s))
            .collect();
        let limits = each_with(builders, |world| {
            let world = world.unwrap();
            let limit = world.heap_limit();
            let full = world.alloc::<u8>(limit + 1);
            assert!(matches!(full, Err(Error::OutOfMemory { .. })), "{full:?}");
            world.finalize().unwrap();
            limit
        });
        assert_eq!(limits, vec![4 << 20; n]);
    }
}

#[test]
fn m14_a_heap_of_one_pe_has_a_page_at_least() {
    for bytes in [0, 1, 4096] {
        let mut builders = alike(2);
        // One PE's smallness is everyone's.
        for builder in builders.iter_mut().skip(1) {
            *builder = builder.clone().heap_limit(bytes);
        }
        for limit in each_with(builders, |world| world.map(|world| world.heap_limit())) {
            assert_eq!(limit.unwrap(), 4096, "{bytes} bytes");
        }
    }
}

#[test]
fn m14_a_heap_that_is_too_large_is_refused_on_all() {
    for bytes in [usize::MAX, 1 << 60] {
        let builders = alike(2).into_iter().map(|b| b.heap_limit(bytes)).collect();
        for refused in each_with(builders, |world| world.map(drop)) {
            let Err(error) = refused else {
                panic!("{bytes} bytes were accepted")
            };
            assert!(error.to_string().contains("heap_limit"), "{error}");
        }
    }
}

#[test]
fn pes_that_differ_where_they_must_agree_refuse_to_go_on() {
    let with: [fn(Builder) -> Builder; 2] = [|b| b.model(MemoryModel::Relaxed), |b| b.check(true)];
    for with in with {
        let builders = alike(3)
            .into_iter()
            .enumerate()
            .map(|(i, b)| if i == 1 { with(b) } else { b });
        for refused in each_with(builders.collect(), |world| world.map(drop)) {
            let Err(Error::Disagreement { a, b, .. }) = refused else {
                panic!("{refused:?}")
            };
            assert!(a == 1 || b == 1, "PEs {a} and {b}");
        }
    }
}

#[test]
fn a_pe_that_no_transport_reaches_is_an_error_on_all_that_says_why() {
    let builders = alike(3)
        .into_iter()
        .enumerate()
        .map(|(i, b)| b.host_id(if i == 2 { "far" } else { "near" }));
    for refused in each_with(builders.collect(), |world| world.map(drop)) {
        let Err(error) = refused else {
            panic!("it joined")
        };
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("loopback"), "{error}");
    }
}

#[test]
fn many_pes_that_do_nothing_leave_without_losing_each_other() {
    for pes in [9, 17, 70] {
        for spin in [0, 10] {
            for _ in 0..10 {
                spmd_with(World::builder().spin(spin), pes, |_| Ok(())).unwrap();
            }
        }
    }
}

#[test]
fn a_pe_that_gives_a_barrier_up_ends_collective_calls_for_all() {
    let given_up = AtomicUsize::new(0);
    let builder = |pe| {
        let builder = Setting::new(Path::Mapped).builder();
        if pe == 0 {
            builder.timeout(Duration::from_millis(50))
        } else {
            builder
        }
    };
    let builders = (0..3).map(builder).collect();
    each_with(builders, |world| {
        let world = world.unwrap();
        if world.my_pe() == 1 {
            // Comes only after PE 0 has given up.
            poll(|| Ok(given_up.load(Ordering::Relaxed) >= 1)).unwrap();
        }
        let first = world.barrier_all();
        if world.my_pe() == 0 {
            assert!(matches!(first, Err(Error::Timeout { .. })), "{first:?}");
            given_up.store(1, Ordering::Relaxed);
        }
        let ended = world.barrier_all();
        assert!(
            matches!(ended, Err(Error::CollectivesEnded { .. })),
            "{ended:?}"
        );
        given_up.fetch_add(1, Ordering::Relaxed);
        poll(|| Ok(given_up.load(Ordering::Relaxed) == 4)).unwrap();
    });
}

/// Two PEs that map each other, and one that both reach by a lane.
fn two_near_one_far() -> Vec<Builder> {
    let tiny = Arc::new(Tiny::default());
    let loopback = Arc::new(Loopback::new());
    let builder = |pe| {
        Setting::new(Path::Mapped)
            .builder()
            .transports(vec![Arc::clone(&loopback) as _, Arc::clone(&tiny) as _])
            .host_id(if pe == 2 { "far" } else { "near" })
    };
    (0..3).map(builder).collect()
}

/// Hosts of several PEs: what crosses from one to another crosses once, in whichever order the PEs are.
#[test]
fn collectives_of_several_hosts_equal_a_serial_reference() {
    let loopback = Arc::new(Loopback::new());
    for hosts in [
        &["a", "b", "a", "b"][..],
        &["a", "a", "b", "c", "b", "a"],
        &["b", "a", "a", "a", "b"],
    ] {
        let tiny = Arc::new(Tiny::default());
        let setting = Setting::new(Path::Mapped);
        let builder = |host: &&str| {
            setting
                .builder()
                .transports(vec![Arc::clone(&loopback) as _, Arc::clone(&tiny) as _])
                .host_id(*host)
        };
        each_with(hosts.iter().map(builder).collect(), |world| {
            let world = world.unwrap();
            let shared: Vec<usize> = world.shared_team().world_pes().collect();
            let mine = hosts[world.my_pe()];
            let near: Vec<usize> = (0..hosts.len()).filter(|pe| hosts[*pe] == mine).collect();
            assert_eq!(shared, near);
            // Its lanes are what tells how much there is to do.
            let pe = Pe {
                world: &world,
                setting: Setting::new(Path::Tiny),
            };
            crate::collectives::broadcast_gives_every_pe_the_roots_data(&pe).unwrap();
            crate::sequences::sequences_of_calls_equal_a_serial_reference(&pe).unwrap();
            crate::collectives::folds_of_floats_have_the_same_bits_on_every_pe(&pe).unwrap();
            // Beyond what goes by scratch memory.
            let n = world.n_pes();
            let x = world.alloc::<u64>(20_000).unwrap();
            let all = world.alloc::<u64>(20_000 * n).unwrap();
            for round in 0..3 {
                let given = |pe: usize| patterns(pe + 10 * round, 20_000);
                world.write(x, &given(world.my_pe())).unwrap();
                world.team().fcollect(all, x).unwrap();
                let mut seen = vec![0; 20_000 * n];
                world.read(&mut seen, all).unwrap();
                assert!(seen == (0..n).flat_map(given).collect::<Vec<_>>());
            }
            world.free(all).unwrap();
            world.free(x).unwrap();
            world.finalize().unwrap();
        });
    }
}

#[test]
fn m19_a_note_taken_after_strided_puts_on_a_lane_still_counts() {
    each_with(two_near_one_far(), |world| {
        let world = world.unwrap();
        let x = world.alloc_zeroed::<u64>(8).unwrap();
        for _ in 0..10 {
            world.iput(x, &[1; 4], 2, 1, 4, 2).unwrap();
        }
        world.p(x, 7, 1).unwrap();
        world.quiet().unwrap();
        world.p(x, 8, 1).unwrap();
        world.barrier_all().unwrap();
        if world.my_pe() == 1 {
            assert_eq!(world.g(x, 1).unwrap(), 8);
        }
        world.finalize().unwrap();
    });
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(256))]
struct Wide([u8; 256]);

#[test]
fn m12_a_block_is_aligned_for_its_type_however_wide() {
    spmd_with(World::builder(), 2, |world| {
        let gap = world.alloc::<u8>(1)?;
        let wide = world.alloc::<Wide>(3)?;
        assert_eq!(wide.offset() % 256, 0);
        world.p(wide.at(2)?, Wide([9; 256]), 1 - world.my_pe())?;
        world.barrier_all()?;
        assert_eq!(world.g(wide.at(2)?, world.my_pe())?.0, [9; 256]);
        let wide = world.realloc(wide, 5)?;
        assert_eq!(wide.offset() % 256, 0);
        world.free(wide)?;
        world.free(gap)
    })
    .unwrap();
}

#[test]
fn m11_objects_of_no_bytes_are_freed_by_doing_nothing() {
    spmd_with(World::builder(), 2, |world| {
        let none = world.alloc::<()>(5)?;
        world.free(none)?;
        world.free(world.alloc::<u64>(0)?)
    })
    .unwrap();
}

/// Two transports: the first that reaches a peer is taken, lanes carry what it can't map.
#[test]
fn m26_one_unmapped_route_makes_visibility_local_for_all() {
    each_with(two_near_one_far(), |world| {
        let world = world.unwrap();
        let me = world.my_pe();
        let mapped: Vec<bool> = world.routes().iter().map(|r| r.mapped).collect();
        assert_eq!(
            mapped,
            if me == 2 {
                [false, false, true]
            } else {
                [true, true, false]
            }
        );
        assert_eq!(world.visibility(), Visibility::Local);
        // All of the library's own words cross both kinds of route.
        let x = world.alloc_zeroed::<u64>(300).unwrap();
        for round in 0..200 {
            let sum = world.alloc::<u64>(300).unwrap();
            world.write(x, &vec![round + me as u64; 300]).unwrap();
            world.sum_reduce(sum, x).unwrap();
            let mut seen = vec![0; 300];
            world.read(&mut seen, sum).unwrap();
            assert_eq!(seen, vec![3 * round + 3; 300]);
            world.broadcast(x, sum, round as usize % 3).unwrap();
            // Others may still be at theirs.
            world.sync_all().unwrap();
            world.put(x, &patterns(me, 300), (me + 1) % 3).unwrap();
            world.barrier_all().unwrap();
            world.read(&mut seen, x).unwrap();
            assert_eq!(seen, patterns((me + 2) % 3, 300));
            world.free(sum).unwrap();
        }
        world.finalize().unwrap();
    });
}
