//! GPU memory that no transport carries between two PEs: by way of host memory, over every kind of
//! route to that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem::{Builder, Cmp, Error, MemoryKind, Result, SignalOp, World};
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::{Guarantees, Transport};
use oxshmem_weak::{Settings, Weak};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest::{collection::vec, prelude::*};

use crate::gpu::Growing;
use crate::job::{Process, end_well, this_program};
use crate::order::poll;
use crate::setting::{DEADLINE, on_each, patterns, seed};

pub const CUDA: MemoryKind = MemoryKind::Cuda;
pub const MIB: usize = 1 << 20;

/// How PEs reach each other's host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Over {
    /// By loads and stores.
    Mapped,
    /// By a network that knows nothing of GPUs.
    Network,
    /// By lanes that promise nothing: what is complete is on its way.
    Weak,
    /// By lanes that keep all in order among themselves: what is complete is on its way.
    InOrder,
    /// By loads and stores, which checked mode forgoes.
    Checked,
    /// By loads and stores; a network carries GPU memory, but no atomics on it.
    CopiesByNetwork,
}

const IN_ORDER: Guarantees = Guarantees {
    put_put: true,
    put_atomic: true,
    atomic_put: true,
    atomic_atomic: true,
    put_get: true,
    get_get: true,
    ..Guarantees::NONE
};

const ALL: [Over; 6] = [
    Over::Mapped,
    Over::Network,
    Over::Weak,
    Over::InOrder,
    Over::Checked,
    Over::CopiesByNetwork,
];

fn builders(over: Over, pes: usize) -> Vec<Builder> {
    let loopback = || Arc::new(Loopback::new());
    let transports: Vec<Arc<dyn Transport>> = match over {
        Over::Mapped | Over::Checked => vec![loopback()],
        Over::Network => vec![Arc::new(Tiny::default())],
        Over::Weak => vec![Arc::new(Weak::over(loopback(), Settings::worst(seed())))],
        Over::InOrder => {
            let settings = Settings {
                guarantees: IN_ORDER,
                ..Settings::worst(seed())
            };
            vec![Arc::new(Weak::over(loopback(), settings))]
        }
        Over::CopiesByNetwork => vec![loopback(), Arc::new(Tiny::nic())],
    };
    let builder = World::builder()
        .transports(transports)
        .check(over == Over::Checked)
        .timeout(DEADLINE)
        .heap_limit(8 * MIB)
        .gpu_memory(|_| Ok(Box::new(Growing::new(32 * MIB, 32 * MIB))));
    let host = |pe| match over {
        Over::Network => format!("host-{pe}"),
        _ => "one".into(),
    };
    (0..pes)
        .map(|pe| builder.clone().host_id(host(pe)))
        .collect()
}

pub fn run(over: Over, pes: usize, case: impl Fn(&World) -> Result<()> + Sync) {
    on_each(builders(over, pes), case);
}

pub fn everywhere(pes: usize, case: impl Fn(&World) -> Result<()> + Sync) {
    ALL.into_iter().for_each(|over| run(over, pes, &case));
}

#[test]
fn what_no_transport_carries_is_staged_and_explained() {
    run(Over::Mapped, 2, |world| {
        assert_eq!(world.gpu_heap_limit(), 32 * MIB);
        for pe in 0..2 {
            let told = world.explain(pe)?;
            assert!(!told.host.staged && !told.host_atomics.staged);
            for route in [told.gpu.unwrap(), told.gpu_atomics.unwrap()] {
                assert!(route.staged && !route.mapped, "{route:?}");
                assert_eq!(route.transport, Some("staged"));
                let [loopback, staged] = &route.considered[..] else {
                    panic!("{route:?}");
                };
                assert_eq!(loopback.transport, "loopback");
                assert!(loopback.answer.contains("cuda memory"), "{route:?}");
                let how = match pe == world.my_pe() {
                    true => "by this process on its own GPU",
                    false => "through host memory",
                };
                assert!(staged.answer.contains(how), "{route:?}");
            }
        }
        Ok(())
    });
    run(Over::CopiesByNetwork, 2, |world| {
        let told = world.explain(1 - world.my_pe())?;
        assert_eq!(told.gpu.unwrap().transport, Some("tiny"));
        assert_eq!(told.gpu_atomics.unwrap().transport, Some("staged"));
        Ok(())
    });
}

#[test]
fn gpu_memory_without_access_is_refused_with_every_reason() {
    let bytes = Arc::new(vec![0_u64; 512]);
    let base = std::ptr::NonNull::new(bytes.as_ptr().cast_mut().cast()).unwrap();
    // SAFETY: no transport here carries it, and no process can: it is never accessed.
    let memory = unsafe { oxshmem::Memory::new(base, 4096, CUDA, None, bytes) };
    let builder = World::builder()
        .transports(vec![Arc::new(Loopback::new())])
        .gpu_heap(memory);
    on_each(vec![builder; 2], |world| {
        let x = world.alloc_on::<u64>(CUDA, 4)?;
        let error = world.p(x, 1, 1 - world.my_pe()).unwrap_err();
        let Error::Unreachable { why, .. } = &error else {
            panic!("{error}");
        };
        assert!(
            why.contains("loopback") && why.contains("without a way"),
            "{why}"
        );
        world.free(x)
    });
}

/// One step of a random program, in bytes within this PE's part.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put(usize, usize),
    PutNbi(usize, usize),
    Get(usize, usize),
    /// Host to GPU and back, both symmetric.
    PutFrom(usize, usize),
    GetInto(usize, usize),
    /// Within GPUs.
    GpuToGpu(usize, usize),
    Add(usize),
}

const PART: usize = 2 * MIB;
/// Of the slots, whose size is 128 KiB here, several.
const LONGEST: usize = 600 << 10;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lens = prop_oneof![0..40_usize, 0..5000_usize, 0..LONGEST];
    let place = (0..PART - LONGEST, lens);
    let step = (0..7_usize, place).prop_map(|(kind, (at, len))| match kind {
        0 => Step::Put(at, len),
        1 => Step::PutNbi(at, len),
        2 => Step::Get(at, len),
        3 => Step::PutFrom(at, len),
        4 => Step::GetInto(at, len),
        5 => Step::GpuToGpu(at, len),
        _ => Step::Add(at),
    });
    vec(step, 1..25)
}

/// Each PE works on its own part of the memory of all, and knows what must be there.
fn follow(world: &World, steps: &[Step]) -> Result<()> {
    let (me, n) = (world.my_pe(), world.n_pes());
    // The first pieces of the GPU heap end at 4 MiB: within the second PE's part.
    let x = world.alloc_on::<u8>(CUDA, PART * (n + 1))?;
    let own = x.range(PART / 2 + me * PART..PART / 2 + (me + 1) * PART)?;
    let host = world.alloc::<u8>(LONGEST)?;
    let mut model = vec![vec![0_u8; PART]; n];
    for (pe, bytes) in model.iter().enumerate() {
        world.put(own, bytes, pe)?;
    }
    world.barrier_all()?;
    for (round, step) in steps.iter().enumerate() {
        let pe = (me + round) % n;
        // Fences order operations over a network; data that they bring into this PE's memory is there after a quiet.
        match step {
            Step::GpuToGpu(..) => world.quiet()?,
            _ => world.fence()?,
        }
        let data = |len| -> Vec<u8> {
            let words = patterns(round * 7 + me, len / 8 + 1);
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            bytes.take(len).collect()
        };
        match *step {
            Step::Put(at, len) | Step::PutNbi(at, len) => {
                let bytes = data(len);
                model[pe][at..at + len].copy_from_slice(&bytes);
                match step {
                    Step::Put(..) => world.put(own.range(at..)?, &bytes, pe)?,
                    _ => world.scope(|s| s.put_nbi(own.range(at..)?, &bytes, pe))?,
                }
            }
            Step::Get(at, len) => {
                let mut seen = vec![0; len];
                world.get(&mut seen, own.range(at..)?, pe)?;
                assert!(seen == model[pe][at..at + len], "{step:?} of PE {pe}");
            }
            Step::PutFrom(at, len) => {
                let bytes = data(len);
                world.write(host, &bytes)?;
                let source = host.range(..len)?;
                world.put_from(own.range(at..at + len)?, source, pe)?;
                model[pe][at..at + len].copy_from_slice(&bytes);
            }
            Step::GetInto(at, len) => {
                world.get_into(host.range(..len)?, own.range(at..at + len)?, pe)?;
                let mut seen = vec![0; len];
                world.read(&mut seen, host)?;
                assert!(seen == model[pe][at..at + len], "{step:?} of PE {pe}");
            }
            Step::GpuToGpu(at, len) => {
                // To the same place at another PE.
                let object = own.range(at..at + len)?;
                world.put_from(object, object, pe)?;
                let bytes = model[me][at..at + len].to_vec();
                model[pe][at..at + len].copy_from_slice(&bytes);
            }
            Step::Add(at) => {
                let at = at / 8 * 8;
                let word = own.range(at..at + 8)?.cast::<u64>()?;
                let place = &mut model[pe][at..at + 8];
                let old = u64::from_le_bytes((*place).try_into().unwrap());
                assert_eq!(world.fetch_add(word, 5, pe)?, old, "{step:?} of PE {pe}");
                place.copy_from_slice(&old.wrapping_add(5).to_le_bytes());
            }
        }
    }
    for (pe, bytes) in model.iter().enumerate() {
        let mut seen = vec![0; PART];
        world.get(&mut seen, own, pe)?;
        assert!(seen == *bytes, "at PE {pe} in the end");
    }
    world.barrier_all()?;
    world.free(host)?;
    world.free(x)
}

#[test]
fn random_transfers_of_any_length_across_pieces_and_slots_equal_a_model() {
    for over in ALL {
        let config = Config {
            cases: 3,
            failure_persistence: None,
            ..Config::default()
        };
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, random);
        let done = runner.run(&steps(), |steps| {
            run(over, 3, |world| follow(world, &steps));
            Ok(())
        });
        done.unwrap_or_else(|error| panic!("{over:?}: {error}"));
    }
}

#[test]
fn more_pes_than_there_are_slots_put_and_get_at_once() {
    for over in [Over::Mapped, Over::Network, Over::Weak] {
        run(over, 7, |world| {
            let (me, n) = (world.my_pe(), world.n_pes());
            const EACH: usize = 50_000;
            let x = world.alloc_on::<u64>(CUDA, n * EACH)?;
            for round in 0..3 {
                for at in [0, (me + round) % n] {
                    let part = x.range(me * EACH..(me + 1) * EACH)?;
                    let data = patterns(me + round, EACH);
                    world.put(part, &data, at)?;
                    let mut seen = vec![0; EACH];
                    world.get(&mut seen, part, at)?;
                    assert!(seen == data);
                }
            }
            world.barrier_all()?;
            world.free(x)
        });
    }
}

#[test]
fn m28_atomics_by_every_way_are_exclusive_and_give_what_was_there() {
    everywhere(3, |world| {
        const EACH: u64 = 60;
        let words = world.alloc_on::<u64>(CUDA, 8)?;
        let halves = world.alloc_on::<u32>(CUDA, 8)?;
        world.put(words, &[0; 8], world.my_pe())?;
        world.put(halves, &[0; 8], world.my_pe())?;
        world.barrier_all()?;
        let mut last = None;
        for _ in 0..EACH {
            let seen = world.fetch_inc(words.at(0)?, 0)?;
            assert!(last.is_none_or(|last| last < seen), "m20: {last:?}, {seen}");
            last = Some(seen);
            world.add(halves.at(1)?, 1_u32, 1)?;
            world.add(words.at(1)?, 2, 2)?;
            let mut held = 0;
            world.scope(|s| s.fetch_add_nbi(&mut held, words.at(2)?, 1, 2))?;
            assert!(held < 3 * EACH);
        }
        world.barrier_all()?;
        assert_eq!(world.fetch(words.at(0)?, 0)?, 3 * EACH);
        assert_eq!(world.fetch(halves.at(1)?, 1)?, 3 * EACH as u32);
        assert_eq!(world.g(halves.at(0)?, 1)?, 0, "the half beside it");
        assert_eq!(world.fetch(words.at(1)?, 2)?, 6 * EACH);
        assert_eq!(world.fetch(words.at(2)?, 2)?, 3 * EACH);
        world.barrier_all()?;
        let (word, there) = (words.at(3 + world.my_pe())?, (world.my_pe() + 1) % 3);
        assert_eq!(world.compare_swap(word, 0, 5, there)?, 0);
        assert_eq!(world.compare_swap(word, 0, 6, there)?, 5);
        assert_eq!(world.swap(word, 9, there)?, 5);
        assert_eq!(world.fetch_or(word, 6, there)?, 9);
        assert_eq!(world.fetch_and(word, 7, there)?, 15);
        assert_eq!(world.fetch_xor(word, 1, there)?, 7);
        world.set(word, 40, there)?;
        world.quiet()?;
        assert_eq!(world.fetch(word, there)?, 40);
        world.barrier_all()?;
        world.free(halves)?;
        world.free(words)
    });
}

#[test]
fn a_fetch_by_the_host_sees_what_its_pe_put_by_a_network() {
    run(Over::CopiesByNetwork, 2, |world| {
        let there = 1 - world.my_pe();
        let x = world.alloc_on::<u64>(CUDA, 1)?;
        for round in 0..50 {
            world.p(x, round, there)?;
            assert_eq!(world.fetch(x, there)?, round);
        }
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn m22_a_signal_on_either_kind_of_memory_comes_after_data_on_either() {
    everywhere(2, |world| {
        const LEN: usize = 40_000;
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let on = |gpu: bool, len| match gpu {
            true => world.alloc_on::<u64>(CUDA, len),
            false => world.alloc::<u64>(len),
        };
        for (data_on_gpu, signal_on_gpu) in [(true, true), (true, false), (false, true)] {
            let (x, signal) = (on(data_on_gpu, LEN)?, on(signal_on_gpu, 1)?);
            world.put(signal, &[0], me)?;
            world.barrier_all()?;
            for round in 1..=6 {
                let data = patterns(me + round, LEN);
                match round % 2 {
                    0 => world.put_signal(x, &data, signal, 1, SignalOp::Add, there)?,
                    _ => world.scope(|s| {
                        s.put_signal_nbi(x, &data, signal, round as u64, SignalOp::Set, there)
                    })?,
                }
                match signal_on_gpu {
                    true => poll(|| Ok(world.fetch(signal, me)? >= round as u64))?,
                    false => {
                        world.signal_wait_until(signal, Cmp::Ge, round as u64)?;
                    }
                }
                let mut seen = vec![0; LEN];
                world.get(&mut seen, x, me)?;
                assert!(seen == patterns(there + round, LEN), "round {round}");
                world.barrier_all()?;
            }
            world.free(signal)?;
            world.free(x)?;
        }
        Ok(())
    });
}

#[test]
fn m17_a_fence_orders_what_goes_to_host_and_to_gpu_memory_both_ways() {
    everywhere(2, |world| {
        const ROUNDS: u64 = 30;
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let host = world.alloc_zeroed::<u64>(1000)?;
        let gpu = world.alloc_on::<u64>(CUDA, 3)?;
        world.put(gpu, &[0; 3], me)?;
        world.barrier_all()?;
        for round in 1..=ROUNDS {
            // Host memory, then a flag on the GPU: by a put and by an atomic in turn.
            world.put(host, &vec![round; 1000], there)?;
            world.fence()?;
            match round % 2 {
                0 => {
                    world.p(gpu.at(0)?, round, there)?;
                    poll(|| Ok(world.g(gpu.at(0)?, me)? == round))?;
                }
                _ => {
                    world.set(gpu.at(2)?, round, there)?;
                    poll(|| Ok(world.fetch(gpu.at(2)?, me)? == round))?;
                }
            }
            let mut seen = vec![0; 1000];
            world.read(&mut seen, host)?;
            assert_eq!(seen, vec![round; 1000]);
            world.barrier_all()?;
            // A word on the GPU, then a flag in host memory.
            world.p(gpu.at(1)?, round, there)?;
            world.fence()?;
            world.p(host.at(0)?, 7 + round, there)?;
            world.wait_until(host.at(0)?, Cmp::Eq, 7 + round)?;
            assert_eq!(world.g(gpu.at(1)?, me)?, round);
            world.barrier_all()?;
        }
        world.free(gpu)?;
        world.free(host)
    });
}

#[test]
fn strided_blocks_and_single_elements_go_to_gpu_memory_and_back() {
    everywhere(2, |world| {
        let there = 1 - world.my_pe();
        let x = world.alloc_on::<u32>(CUDA, 64)?;
        world.put(x, &[9; 64], there)?;
        let values: Vec<u32> = (0..8).collect();
        world.iput(x, &values, 3, 1, 8, there)?;
        let mut seen = [0; 4];
        world.iget(&mut seen, x, 1, 6, 4, there)?;
        assert_eq!(seen, [0, 2, 4, 6]);
        world.p(x.at(1)?, 70, there)?;
        assert_eq!(world.g(x.at(1)?, there)?, 70);
        assert_eq!(world.g(x.at(2)?, there)?, 9);
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn a_target_that_computes_is_reached() {
    let done = AtomicBool::new(false);
    run(Over::Mapped, 2, |world| {
        let x = world.alloc_on::<u64>(CUDA, 100_000)?;
        if world.my_pe() == 0 {
            let data = patterns(1, 100_000);
            world.put(x, &data, 1)?;
            let mut seen = vec![0; 100_000];
            world.get(&mut seen, x, 1)?;
            assert!(seen == data);
            assert_eq!(world.fetch_inc(x.at(0)?, 1)?, data[0]);
            done.store(true, Ordering::Release);
        } else {
            // It makes no call.
            poll(|| Ok(done.load(Ordering::Acquire)))?;
        }
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn m14_slots_are_not_counted_as_blocks_that_were_not_freed_and_take_no_room_of_the_programs() {
    run(Over::Mapped, 2, |world| {
        let x = world.alloc::<u8>(world.heap_limit())?;
        assert!(world.alloc::<u8>(1).is_err());
        world.free(x)
    });
}

#[test]
fn the_same_holds_where_some_pes_gpus_are_joined_by_a_network_and_others_are_not() {
    let command = {
        let mut command = this_program("gpu_staged::mixture", "mixture");
        command.env("OXSHMEM_ROUTE", "2=^tiny");
        command
    };
    end_well(vec![Process::start(command)]);
}

#[test]
#[ignore = "another test starts it, with a rule about routes"]
fn mixture() {
    if std::env::var("OXSHMEM_ROUTE").is_err() {
        return;
    }
    run(Over::CopiesByNetwork, 3, |world| {
        let told = |pe| world.explain(pe).unwrap().gpu.unwrap().staged;
        let all = [told(0), told(1), told(2)];
        match world.my_pe() {
            2 => assert_eq!(all, [true; 3]),
            _ => assert_eq!(all, [false, false, true]),
        }
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        for _ in 0..4 {
            let steps = steps().new_tree(&mut runner).unwrap().current();
            follow(world, &steps)?;
        }
        Ok(())
    });
}
