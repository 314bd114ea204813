//! The examples' algorithms with PEs as threads, compared with serial versions. The checks of
//! results must find faults.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as tests do")]

use std::collections::VecDeque;

use oxshmem::testing::spmd;
use oxshmem::{Error, World};
use oxshmem_examples::bfs::Search;
use oxshmem_examples::exchange::Exchange;
use oxshmem_examples::gups::{Table, Update};
use oxshmem_examples::heat::Plate;
use oxshmem_examples::heat2d::Part;
use oxshmem_examples::isort::{self, Check, Sorter};
use oxshmem_examples::kronecker::Kronecker;
use oxshmem_examples::tree::{self, NONE};
use proptest::prelude::*;

const PES: [usize; 4] = [1, 2, 4, 7];

#[test]
fn m10_m28_items_of_all_senders_arrive_once() {
    for pes in PES {
        spmd(pes, |world| {
            let me = world.my_pe() as u64;
            let exchange = Exchange::new(world, 10 * pes * pes)?;
            let mut came = Vec::new();
            for round in 0..3 {
                world.barrier_all()?;
                for pe in 0..pes {
                    let items: Vec<_> = (0..10).map(|item| [round, me, item]).collect();
                    exchange.send(&items[..pe], pe)?;
                    exchange.send(&items[pe..], pe)?;
                }
                world.barrier_all()?;
                exchange.receive(&mut came)?;
                came.sort_unstable();
                let senders = 0..pes as u64;
                let wanted: Vec<_> = senders
                    .flat_map(|from| (0..10).map(move |item| [round, from, item]))
                    .collect();
                assert_eq!(came, wanted);
            }
            exchange.free()
        })
        .unwrap();
    }
}

#[test]
fn m35_a_full_inbox_refuses_more() {
    spmd(1, |world| {
        let exchange = Exchange::new(world, 4)?;
        exchange.send(&[1, 2, 3], 0)?;
        let refused = exchange.send(&[4, 5], 0);
        assert!(
            matches!(refused, Err(Error::OutOfRange { .. })),
            "{refused:?}"
        );
        exchange.free()
    })
    .unwrap();
}

/// Keys of each PE, enough for more than one bucket.
const KEYS: usize = 9000;

/// Sorts, spoils this PE's result, and checks.
fn check_of_sorted(pes: usize, spoil: impl Fn(usize, &mut Vec<u32>) + Sync) -> Check {
    let checks = spmd(pes, |world| {
        let mut keys = vec![0; KEYS];
        isort::draw(&mut keys, world.my_pe(), 9);
        let mut sorter = Sorter::new(world, keys.len())?;
        sorter.sort(&keys)?;
        let mut sorted = sorter.sorted().to_vec();
        spoil(world.my_pe(), &mut sorted);
        let check = isort::check(world, &keys, &sorted)?;
        sorter.free()?;
        Ok(check)
    });
    let checks = checks.unwrap();
    assert!(
        checks.iter().all(|check| *check == checks[0]),
        "every PE knows"
    );
    checks[0]
}

#[test]
fn keys_are_sorted_over_all_pes() {
    for pes in PES {
        let check = check_of_sorted(pes, |_, _| {});
        assert_eq!(check.verdict(), Ok(()), "{pes} PEs");
        assert_eq!(check.counts, [(KEYS * pes) as u64; 2]);
    }
}

/// All keys are for PE 0, whose inbox has space for little more than a third of them.
#[test]
fn m35_keys_without_room_are_refused_on_all_pes() {
    spmd(3, |world| {
        let mut sorter = Sorter::new(world, KEYS)?;
        let refused = sorter.sort(&[0; KEYS]);
        assert!(
            matches!(refused, Err(Error::OutOfRange { end, .. }) if end == 3 * KEYS),
            "{refused:?}"
        );
        sorter.sort(&[isort::KEYS_BELOW.div_ceil(3), 0, isort::KEYS_BELOW - 1])?;
        assert_eq!(sorter.sorted().len(), 3, "the next sort is right");
        sorter.free()
    })
    .unwrap();
}

#[test]
fn a_wrong_sort_is_found_out() {
    type Spoil = fn(usize, &mut Vec<u32>);
    let faults: [(Spoil, &str); 4] = [
        (
            |pe, keys| {
                if pe == 1 {
                    keys.swap(5, 6)
                }
            },
            "out of order",
        ),
        (|_, keys| keys.rotate_left(1), "out of order"),
        (
            |pe, keys| {
                if pe == 2 {
                    keys[7] = keys[8]
                }
            },
            "not those",
        ),
        (
            |pe, keys| {
                if pe == 0 {
                    keys.truncate(2000)
                }
            },
            "36000 keys went in and ",
        ),
    ];
    for (spoil, words) in faults {
        let said = check_of_sorted(4, spoil).verdict().unwrap_err();
        assert!(said.contains(words), "{said}");
    }
}

/// The verdict if `meddle` changes the table between the updates and their check.
fn verdict_of_updates(
    pes: usize,
    meddle: impl Fn(&World, oxshmem::Sym<u64>) -> oxshmem::Result<()> + Sync,
) -> Result<(), String> {
    let checks = spmd(pes, |world| {
        let memory = world.alloc(64)?;
        let table = Table::new(world, memory, 5)?;
        table.update(Update::Atomic)?;
        meddle(world, memory)?;
        world.barrier_all()?; // Before any PE sums up its words.
        let check = table.check()?;
        world.free(memory)?;
        Ok(check)
    });
    let checks = checks.unwrap();
    assert!(checks[1..].iter().all(Option::is_none));
    checks[0].unwrap().verdict(Update::Atomic)
}

#[test]
fn m28_no_update_is_lost() {
    for pes in PES {
        assert_eq!(verdict_of_updates(pes, |_, _| Ok(())), Ok(()), "{pes} PEs");
    }
}

#[test]
fn a_wrong_table_is_found_out() {
    for pes in [1, 4] {
        let last = pes - 1;
        let once_more = verdict_of_updates(pes, |world, memory| match world.my_pe() {
            0 => world.xor(memory.at(3)?, 1 << 20, last),
            _ => Ok(()),
        });
        assert!(once_more.unwrap_err().contains("lost or made twice"));
        // Two exchanged words: their sum is the same.
        let swapped = verdict_of_updates(pes, |world, memory| {
            let mut words = [0; 2];
            world.read(&mut words, memory)?;
            words.reverse();
            world.write(memory, &words)
        });
        assert!(swapped.unwrap_err().contains("words are wrong"));
        // As if no update had been made at all.
        let undone =
            verdict_of_updates(pes, |world, memory| Table::new(world, memory, 5).map(drop));
        assert!(undone.unwrap_err().contains("lost or made twice"));
    }
}

#[test]
fn m22_heat_is_that_of_a_serial_run_to_the_bit() {
    for (pes, height) in [(1, 3), (1, 20), (2, 4), (4, 6), (4, 21), (7, 10)] {
        let plate = Plate { width: 17, height };
        let heats = spmd(pes, |world| {
            let mut part = Part::new(world, plate)?;
            part.run(30)?;
            part.run(33)?;
            let heat = part.gather()?;
            part.free()?;
            Ok(heat)
        });
        let heat = heats.unwrap().swap_remove(0).unwrap();
        plate.check(&heat, 63).unwrap();
        let other = plate.check(&heat, 62).unwrap_err().to_string();
        assert!(other.contains("wrong: after 62 steps column"), "{other}");
    }
}

/// The parents of each search, on PE 0.
fn search(pes: usize, vertices: u32, edges: &[[u32; 2]], roots: &[u32]) -> Vec<Vec<u32>> {
    let found = spmd(pes, |world| {
        let share = edges.iter().copied().skip(world.my_pe()).step_by(pes);
        let mut search = Search::new(world, vertices, share)?;
        let mut found = Vec::new();
        for root in roots {
            search.run(*root)?;
            found.extend(search.gather()?);
        }
        search.free()?;
        Ok(found)
    });
    found.unwrap().swap_remove(0)
}

/// The number of vertices at each distance, by a search of one PE.
fn serial(vertices: u32, edges: &[[u32; 2]], root: u32) -> Vec<u64> {
    let mut neighbours = vec![Vec::new(); vertices as usize];
    for &[a, b] in edges {
        neighbours[a as usize].push(b);
        neighbours[b as usize].push(a);
    }
    let mut known = vec![false; vertices as usize];
    known[root as usize] = true;
    let (mut queue, mut levels) = (VecDeque::from([(root, 0)]), Vec::new());
    while let Some((vertex, level)) = queue.pop_front() {
        levels.resize(level + 1, 0);
        levels[level] += 1;
        for &next in &neighbours[vertex as usize] {
            if !std::mem::replace(&mut known[next as usize], true) {
                queue.push_back((next, level + 1));
            }
        }
    }
    levels
}

#[test]
fn a_kronecker_graph_is_searched_by_graph500s_rules() {
    let graph = Kronecker { scale: 9, seed: 3 };
    let edges: Vec<_> = (0..graph.edges()).map(|edge| graph.edge(edge)).collect();
    let roots = [edges[0][0], edges[1][1], 17];
    for pes in PES {
        let found = search(pes, 512, &edges, &roots);
        for (root, parents) in roots.into_iter().zip(found) {
            let tree = tree::check(root, &parents, &edges).unwrap();
            assert_eq!(tree.levels, serial(512, &edges, root), "{pes} PEs");
            // A parent that is no neighbour, and a vertex left out.
            let reached = |v: &usize| parents[*v] != NONE && *v != root as usize;
            if let Some(vertex) = (0..512).rev().find(reached) {
                let mut wrong = parents.clone();
                wrong[vertex] = NONE;
                tree::check(root, &wrong, &edges).unwrap_err();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_graph_is_searched_right(
        edges in prop::collection::vec((0_u32..30, 0_u32..30), 0..60),
        root in 0_u32..30,
        pes in 1_usize..6,
    ) {
        let edges: Vec<_> = edges.into_iter().map(|(a, b)| [a, b]).collect();
        let parents = search(pes, 30, &edges, &[root]).swap_remove(0);
        let tree = tree::check(root, &parents, &edges);
        prop_assert_eq!(tree.map(|tree| tree.levels), Ok(serial(30, &edges, root)));
    }
}
