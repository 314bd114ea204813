//! A GPU heap on CUDA: the software driver that `ci/test-gpu` gives, or a GPU. Without either nothing is
//! run; with `OXSHMEM_TEST_CUDA=1` that is a failure.
#![cfg(feature = "cuda")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod collectives;
mod descriptors;
mod endings;
mod nic;
#[path = "../on_gpu/mod.rs"]
mod on_gpu;
mod pinned_slices;
mod slices;

use std::process::Command;

use oxshmem::testing::spmd_with;
use oxshmem::{Cmp, Result, SignalOp, Sym, World};

use on_gpu::{CUDA, MIB, context, pattern, run, run_on_all_gpus, shared};

const AGAIN: &str = "OXSHMEM_TEST_CUDA_AGAIN";

/// This program's tests, in a process with this setting; none in such a process.
fn again(name: &str, value: &str) -> Option<Command> {
    if std::env::var_os(AGAIN).is_some() || context().is_none() {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(name, value).env(AGAIN, "1");
    Some(command)
}

/// Runs one test, which is ignored otherwise, in a process with this setting.
fn again_only(test: &str, name: &str, value: &str) {
    let Some(mut command) = again(name, value) else {
        return;
    };
    let output = command.args(["--ignored", "--exact", test, "--nocapture"]);
    let output = output.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}={value}: {told}{why}");
    assert!(told.contains(" 1 passed"), "{told}");
}

/// Runs every test that any routes will do for again.
fn again_with(name: &str, value: &str) {
    let Some(mut command) = again(name, value) else {
        return;
    };
    let skipped = ["again", "where_no_", "without_a_gpu_heap"];
    command.args(skipped.iter().flat_map(|name| ["--skip", name]));
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}={value}: {told}");
    assert!(!told.contains(" 0 passed"), "{told}");
}

#[test]
fn again_where_no_transport_joins_gpus() {
    again_with("OXSHMEM_TRANSPORT", "loopback");
}

#[test]
fn again_where_one_pes_gpu_is_not_joined_with_the_others() {
    again_with("OXSHMEM_ROUTE", "1=^nvlink");
}

#[test]
fn again_where_the_way_by_the_host_keeps_no_order() {
    again_with("OXSHMEM_TRANSPORT", "weak(loopback)");
}

#[test]
fn again_where_accesses_are_checked() {
    again_with("OXSHMEM_CHECK", "1");
}

#[test]
fn what_is_put_into_a_peers_gpu_memory_is_there_and_nowhere_else() {
    run(3, |world| {
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let left = (me + 2) % 3;
        // Over the first pieces, which end at 4, 8 and 16 MiB.
        let x = world.alloc_on::<u64>(CUDA, 20 * MIB / 8)?;
        for (round, end) in [4 * MIB, 8 * MIB, 16 * MIB].into_iter().enumerate() {
            for len in [1, 2, 100, 10_000, 100_000] {
                let middle = (end - x.offset() as usize) / 8;
                let from = middle - len / 2;
                let wide = x.range(from - 1..from + len + 1)?;
                world.put(wide, &vec![7; len + 2], me)?;
                world.barrier_all()?;
                let part = x.range(from..from + len)?;
                world.put(part, &pattern(me + round, len), right)?;
                world.barrier_all()?;
                let mut seen = vec![0; len + 2];
                world.get(&mut seen, wide, me)?;
                assert_eq!(
                    seen[1..=len],
                    pattern(left + round, len),
                    "{len} about {end}"
                );
                assert_eq!((seen[0], seen[len + 1]), (7, 7));
                world.get(&mut seen, wide, right)?;
                assert_eq!(seen[1..=len], pattern(me + round, len));
                world.barrier_all()?;
            }
        }
        world.free(x)
    });
}

#[test]
fn m28_atomics_on_gpu_memory_are_exclusive_and_give_what_was_there() {
    run(3, |world| {
        const EACH: u64 = 40;
        let words = world.alloc_on::<u64>(CUDA, 8)?;
        let halves = world.alloc_on::<u32>(CUDA, 8)?;
        world.put(words, &[0; 8], world.my_pe())?;
        world.put(halves, &[0; 8], world.my_pe())?;
        world.barrier_all()?;
        let mut last = None;
        for _ in 0..EACH {
            let seen = world.fetch_add(words.at(0)?, 1_u64, 0)?;
            assert!(last.is_none_or(|last| last < seen), "m20: {last:?}, {seen}");
            last = Some(seen);
            world.fetch_add(halves.at(1)?, 1_u32, 1)?;
            world.add(words.at(1)?, 2_u64, 2)?;
        }
        world.barrier_all()?;
        assert_eq!(world.g(words.at(0)?, 0)?, 3 * EACH);
        assert_eq!(world.g(halves.at(1)?, 1)?, 3 * EACH as u32);
        assert_eq!(world.g(halves.at(0)?, 1)?, 0);
        assert_eq!(world.g(words.at(1)?, 2)?, 6 * EACH);
        world.barrier_all()?;
        if world.my_pe() == 0 {
            let word = words.at(3)?;
            assert_eq!(world.compare_swap(word, 0, 5, 1)?, 0);
            assert_eq!(world.compare_swap(word, 0, 6, 1)?, 5);
            assert_eq!(world.swap(word, 9, 1)?, 5);
            assert_eq!(world.fetch_or(word, 6, 1)?, 9);
            assert_eq!(world.fetch_and(word, 7, 1)?, 15);
            assert_eq!(world.fetch_xor(word, 1, 1)?, 7);
            assert_eq!(world.fetch(word, 1)?, 6);
        }
        world.barrier_all()?;
        world.free(halves)?;
        world.free(words)
    });
}

#[test]
fn m22_a_signal_in_gpu_memory_comes_after_its_data() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let x = world.alloc_on::<u64>(CUDA, 5000)?;
        let signal = world.alloc_on::<u64>(CUDA, 1)?;
        let told = world.alloc_zeroed::<u64>(1)?;
        world.put(signal, &[0], me)?;
        world.barrier_all()?;
        for round in 1..=10 {
            let data = pattern(me + round, 5000);
            world.put_signal(x, &data, signal, 1, SignalOp::Add, there)?;
            // The host looks at its GPU's word by a get.
            while world.fetch(signal, me)? < round as u64 {
                std::thread::yield_now();
            }
            let mut seen = vec![0; 5000];
            world.get(&mut seen, x, me)?;
            assert_eq!(seen, pattern(there + round, 5000));
            // Quiet places it; what is told afterwards by host memory is true.
            world.quiet()?;
            world.p(told, round as u64, there)?;
            world.wait_until(told, Cmp::Ge, round as u64)?;
            world.barrier_all()?;
        }
        world.free(told)?;
        world.free(signal)?;
        world.free(x)
    });
}

#[test]
fn m4_the_host_is_refused_what_it_cannot_load() {
    run(2, |world| {
        let x = world.alloc_on::<u64>(CUDA, 4)?;
        assert!(world.wait_until(x.at(0)?, Cmp::Eq, 1).is_err());
        assert!(world.ptr(x, 1 - world.my_pe()).is_none(), "m8");
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn m14_a_program_sets_the_gpu_heaps_limit() {
    if context().is_none() {
        return;
    }
    let _shared = shared();
    let builder = World::builder().heap_limit(MIB);
    spmd_with(builder.clone().gpu_limit(8 * MIB), 2, |world| {
        assert_eq!(world.gpu_heap_limit(), 8 * MIB);
        let x = world.alloc_on::<u64>(CUDA, 1)?;
        world.p(x, 7, world.my_pe())?;
        assert_eq!(world.g(x, world.my_pe())?, 7);
        world.free(x)
    })
    .unwrap();
    // With the transports of no GPU heap, no rule can name the one between GPUs.
    if std::env::var_os("OXSHMEM_ROUTE").is_none() {
        let none = spmd_with(builder.gpu_limit(0), 1, |world| Ok(world.gpu_heap_limit()));
        assert_eq!(none.unwrap(), [0]);
    }
}

#[test]
fn m13_a_gpu_without_room_fails_the_allocation_on_all_pes() {
    run(2, |world| {
        assert!(world.alloc_on::<u8>(CUDA, 65 * MIB).is_err());
        let x = world.alloc_on::<u8>(CUDA, 60 * MIB)?;
        assert!(world.alloc_on::<u8>(CUDA, 8 * MIB).is_err());
        world.free(x)?;
        let x = world.alloc_on::<u8>(CUDA, 60 * MIB)?;
        world.free(x)
    });
}

#[test]
fn strided_and_long_transfers_move_what_they_name_and_no_more() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let x = world.alloc_on::<u64>(CUDA, 20 * MIB / 8)?;
        // Longer than the pool of a lane, over several pieces, and off any boundary.
        let long = pattern(me, 10 * MIB / 8 + 77);
        let part = x.range(13..13 + long.len())?;
        world.put(part, &long, there)?;
        world.barrier_all()?;
        let mut seen = vec![0; long.len()];
        world.get(&mut seen, part, me)?;
        assert!(seen == pattern(there, long.len()));
        seen.fill(0);
        world.get(&mut seen, part, there)?;
        assert!(seen == long);
        world.barrier_all()?;

        // Across the end of the first piece, more elements than a lane holds.
        let (count, far, near) = (1500, 3, 2);
        let from = 4 * MIB / 8 - x.offset() as usize / 8 - count;
        let part = x.range(from..from + count * far)?;
        world.put(part, &vec![9; count * far], me)?;
        world.barrier_all()?;
        let source = pattern(me, count * near);
        world.iput(part, &source, far, near, count, there)?;
        world.barrier_all()?;
        let mut seen = vec![0; count * far];
        world.get(&mut seen, part, me)?;
        let sent = pattern(there, count * near);
        for (at, word) in seen.iter().enumerate() {
            let want = match at % far {
                0 => sent[at / far * near],
                _ => 9,
            };
            assert_eq!(*word, want, "at {at}");
        }
        let mut seen = vec![5; count * near];
        world.iget(&mut seen, part, near, far, count, there)?;
        for (at, word) in seen.iter().enumerate() {
            let want = match at % near {
                0 => source[at],
                _ => 5,
            };
            assert_eq!(*word, want, "at {at}");
        }
        // Blocks, back from this PE itself.
        let mut seen = vec![0; 40];
        world.ibget(&mut seen, part, 4, far, 2, 10, me)?;
        for block in 0..10 {
            assert_eq!(seen[4 * block], sent[block * near], "block {block}");
            assert_eq!(seen[4 * block + 1..4 * block + 4], [9, 0, 0]);
        }
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn objects_are_copied_between_host_and_gpu_memory_of_any_pes() {
    run_on_all_gpus(3, |world| {
        const LEN: usize = 150_000;
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let left = (me + 2) % 3;
        let on_gpus = world.alloc_on::<u64>(CUDA, 2 * LEN)?;
        let on_hosts = world.alloc::<u64>(2 * LEN)?;
        type Halves = Result<(Sym<u64>, Sym<u64>)>;
        let halves = |all: Sym<u64>| -> Halves { Ok((all.range(..LEN)?, all.range(LEN..)?)) };
        let ((host, host_too), (gpu, gpu_too)) = (halves(on_hosts)?, halves(on_gpus)?);
        let pairs = [(host, gpu), (gpu, host), (gpu, gpu_too), (host, host_too)];
        for (round, (from, to)) in pairs.into_iter().enumerate() {
            for pe in [right, me] {
                let writer = if pe == me { me } else { left };
                world.put(from, &pattern(me + round, LEN), me)?;
                world.barrier_all()?;
                world.put_from(to, from, pe)?;
                world.barrier_all()?;
                let mut seen = vec![0; LEN];
                world.get(&mut seen, to, me)?;
                assert!(seen == pattern(writer + round, LEN), "put: {round}");
                world.put(to, &vec![0; LEN], me)?;
                world.barrier_all()?;
                world.get_into(to, from, pe)?;
                world.get(&mut seen, to, me)?;
                assert!(seen == pattern(pe + round, LEN), "get: {round}");
                world.barrier_all()?;
            }
        }
        world.free(on_hosts)?;
        world.free(on_gpus)
    });
}

#[test]
fn routes_tell_how_gpus_are_reached() {
    run_on_all_gpus(3, |world| {
        let setting = |name| std::env::var(name).unwrap_or_default();
        let joined = setting("OXSHMEM_TRANSPORT").is_empty();
        let rule = !setting("OXSHMEM_ROUTE").is_empty();
        for pe in 0..3 {
            let route = world.explain(pe)?.gpu.unwrap();
            assert!(route.transport.is_some(), "{route:?}");
            if !joined || (rule && (pe == 1 || world.my_pe() == 1)) {
                assert!(route.staged, "{route:?}");
            }
        }
        Ok(())
    });
}
