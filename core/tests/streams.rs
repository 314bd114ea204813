//! Operations on streams: thread PEs on the software driver that `ci/test-gpu` gives, or on a GPU.
//! Without either nothing is run; with `OXSHMEM_TEST_CUDA=1` that is a failure.
#![cfg(feature = "cuda")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod on_gpu;

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use oxshmem::cuda::cudarc::driver::CudaContext;
use oxshmem::cuda::{Context, Device, Graph, Stream, StreamOptions, devices, interop};
use oxshmem::testing::spmd_with;
use oxshmem::{Cmp, Error, Fold, GpuNumber, Result, SignalOp, World};

use on_gpu::{CUDA, MIB, context, on, pattern, read, run, run_alone, shared, stream, zeroed};

#[test]
fn m15_m16_a_put_and_a_get_on_a_stream_move_the_data_and_no_more() {
    run(3, |world| {
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let left = (me + 2) % 3;
        let stream = stream(world);
        // Over the end of the first pieces, at 4 and 8 MiB.
        let x = world.alloc_on::<u64>(CUDA, 10 * MIB / 8)?;
        let y = world.alloc_on::<u64>(CUDA, 100_002)?;
        for (round, end) in [4 * MIB, 8 * MIB].into_iter().enumerate() {
            for len in [1, 2, 513, 100_000] {
                let from = (end - x.offset() as usize) / 8 - len / 2;
                let (wide, part) = (
                    x.range(from - 1..from + len + 1)?,
                    x.range(from..from + len)?,
                );
                world.put(wide, &vec![7; len + 2], me)?;
                world.put(y, &pattern(me + round, 100_002), me)?;
                world.barrier_all()?;
                world.put_on_stream(part, y.range(..len)?, right, &stream)?;
                world.quiet_on_stream(&stream)?;
                world.synchronize(&stream)?;
                world.barrier_all()?;
                let seen = read(world, wide)?;
                assert_eq!(seen[1..=len], pattern(left + round, len), "{len}");
                assert_eq!((seen[0], seen[len + 1]), (7, 7));
                world.get_on_stream(y.range(1..=len)?, part, right, &stream)?;
                world.synchronize(&stream)?;
                let seen = read(world, y)?;
                assert_eq!(seen[1..=len], pattern(me + round, len), "{len}");
                assert_eq!(seen[0], pattern(me + round, 1)[0]);
                world.barrier_all()?;
            }
        }
        world.free(y)?;
        world.free(x)
    });
}

#[test]
fn nothing_is_done_before_the_stream_comes_to_it() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let (data, gate) = (zeroed::<u64>(world, 2)?, zeroed::<u64>(world, 1)?);
        let stream = stream(world);
        world.wait_until_on_stream(gate, Cmp::Ge, 5, &stream)?;
        world.put_on_stream(data.at(0)?, gate, there, &stream)?;
        assert!(!stream.is_idle().unwrap());
        for value in [1, 4] {
            world.set(gate, value, me)?;
            assert_eq!(world.g(data.at(0)?, there)?, 0);
            assert!(!stream.is_idle().unwrap());
        }
        world.set(gate, 6, me)?;
        world.synchronize(&stream)?;
        world.barrier_all()?;
        assert_eq!(read(world, data)?, [6, 0]);
        world.barrier_all()?;
        world.free(gate)?;
        world.free(data)
    });
}

#[test]
fn waits_compare_as_their_type_does() {
    run(1, |world| {
        let stream = stream(world);
        let (word, half) = (zeroed::<i64>(world, 1)?, zeroed::<u32>(world, 1)?);
        for (value, cmp, with) in [
            (-3, Cmp::Lt, 0),
            (-3, Cmp::Le, -3),
            (5, Cmp::Gt, -1),
            (5, Cmp::Ge, 5),
            (5, Cmp::Ne, 6),
            (5, Cmp::Eq, 5),
        ] {
            world.set(word, value, 0)?;
            world.wait_until_on_stream(word, cmp, with, &stream)?;
            world.synchronize(&stream)?;
        }
        // A condition that does not hold is waited for.
        for (before, cmp, with, after) in [
            (0, Cmp::Lt, 0, -1),
            (1, Cmp::Le, 0, 0),
            (-1, Cmp::Gt, -1, 0),
            (-2, Cmp::Ge, -1, -1),
            (6, Cmp::Ne, 6, 0),
            (6, Cmp::Eq, 5, 5),
        ] {
            world.set(word, before, 0)?;
            world.quiet()?;
            world.wait_until_on_stream(word, cmp, with, &stream)?;
            std::thread::sleep(Duration::from_millis(2));
            assert!(!stream.is_idle().unwrap(), "{before} is not {cmp:?} {with}");
            world.set(word, after, 0)?;
            world.synchronize(&stream)?;
        }
        // Unsigned: the largest is above 1.
        world.set(half, u32::MAX, 0)?;
        world.wait_until_on_stream(half, Cmp::Gt, 1, &stream)?;
        world.synchronize(&stream)?;
        world.free(half)?;
        world.free(word)
    });
}

#[test]
fn m22_m23_a_signal_on_a_stream_comes_after_its_data() {
    run(3, |world| {
        const ROUNDS: u64 = 12;
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let stream = stream(world);
        // 8 bytes and 4 KiB go with the signal in one kernel, 64 KiB in a copy before it.
        for len in [1, 512, 8192] {
            let (x, out) = (zeroed::<u64>(world, len)?, zeroed::<u64>(world, len)?);
            let seen = zeroed::<u64>(world, len * ROUNDS as usize)?;
            let (signal, taken) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 1)?);
            let fill = zeroed::<u64>(world, len * ROUNDS as usize)?;
            for round in 0..ROUNDS as usize {
                let part = fill.range(round * len..(round + 1) * len)?;
                world.put(part, &pattern(me + round, len), me)?;
            }
            world.barrier_all()?;
            let left = (me + 2) % 3;
            for round in 0..ROUNDS {
                let at = round as usize * len;
                world.put_on_stream(out, fill.range(at..at + len)?, me, &stream)?;
                // Not before the neighbour has taken the last one.
                world.wait_until_on_stream(taken, Cmp::Ge, round, &stream)?;
                let (op, value) = match round % 2 {
                    0 => (SignalOp::Add, 1),
                    _ => (SignalOp::Set, round + 1),
                };
                world.put_signal_on_stream(x, out, signal, value, op, right, &stream)?;
                world.wait_until_on_stream(signal, Cmp::Ge, round + 1, &stream)?;
                world.put_on_stream(seen.range(at..at + len)?, x, me, &stream)?;
                world.signal_on_stream(taken, 1, SignalOp::Add, left, &stream)?;
            }
            world.synchronize(&stream)?;
            for (round, seen) in read(world, seen)?.chunks(len).enumerate() {
                assert_eq!(seen, pattern(left + round, len), "{len} in round {round}");
            }
            world.barrier_all()?;
            for sym in [fill, taken, signal, seen, out, x] {
                world.free(sym)?;
            }
        }
        Ok(())
    });
}

#[test]
fn m24_a_barrier_on_streams_lets_none_pass_before_all_have_come() {
    run(3, |world| {
        const ROUNDS: usize = 20;
        let (me, pes) = (world.my_pe(), world.n_pes());
        let stream = stream(world);
        let counts = zeroed::<u64>(world, pes)?;
        let numbers = zeroed::<u64>(world, ROUNDS)?;
        world.put(numbers, &(1..=ROUNDS as u64).collect::<Vec<_>>(), me)?;
        let seen = zeroed::<u64>(world, ROUNDS * pes)?;
        world.barrier_all()?;
        for round in 0..ROUNDS {
            for pe in 0..pes {
                world.put_on_stream(counts.at(me)?, numbers.at(round)?, pe, &stream)?;
            }
            world.barrier_all_on_stream(&stream)?;
            let at = round * pes;
            world.put_on_stream(seen.range(at..at + pes)?, counts, me, &stream)?;
            world.sync_all_on_stream(&stream)?;
        }
        world.synchronize(&stream)?;
        for (round, seen) in read(world, seen)?.chunks(pes).enumerate() {
            assert_eq!(seen, vec![round as u64 + 1; pes], "round {round}");
        }
        world.barrier_all()?;
        for sym in [seen, numbers, counts] {
            world.free(sym)?;
        }
        Ok(())
    });
}

#[test]
fn broadcast_fcollect_and_alltoall_on_streams_give_everyone_their_parts() {
    for pes in [1, 3] {
        run(pes, |world| {
            let (me, each) = (world.my_pe(), 1000);
            let stream = stream(world);
            let one = world.alloc_on::<u64>(CUDA, each)?;
            let all = world.alloc_on::<u64>(CUDA, each * pes)?;
            let to = world.alloc_on::<u64>(CUDA, each * pes)?;
            for round in 0..3 {
                world.put(one, &pattern(me + round, each), me)?;
                world.put(all, &pattern(10 * me + round, each * pes), me)?;
                // No barrier between: each call begins with one on the streams.
                world.quiet()?;
                world.fcollect_on_stream(to, one, &stream)?;
                world.synchronize(&stream)?;
                let expected: Vec<u64> =
                    (0..pes).flat_map(|pe| pattern(pe + round, each)).collect();
                assert_eq!(read(world, to)?, expected);
                world.alltoall_on_stream(to, all, &stream)?;
                world.synchronize(&stream)?;
                let part =
                    |pe: usize| pattern(10 * pe + round, each * pes)[me * each..][..each].to_vec();
                assert_eq!(
                    read(world, to)?,
                    (0..pes).flat_map(part).collect::<Vec<_>>()
                );
                let root = round % pes;
                world.broadcast_on_stream(to.range(..each)?, one, root, &stream)?;
                // In place, from the last PE.
                world.broadcast_on_stream(one, one, pes - 1, &stream)?;
                world.synchronize(&stream)?;
                assert_eq!(read(world, to)?[..each], pattern(root + round, each));
                assert_eq!(read(world, one)?, pattern(pes - 1 + round, each));
                world.barrier_all()?;
            }
            for sym in [to, all, one] {
                world.free(sym)?;
            }
            Ok(())
        });
    }
}

/// Calls after `synchronize` see the streams' operations, and later operations of streams see the calls'.
#[test]
fn host_collectives_come_after_synchronized_streams_and_before_what_follows() {
    run(2, |world| {
        let (me, right) = (world.my_pe(), 1 - world.my_pe());
        let stream = stream(world);
        let [x, y] = [0; 2].map(|_| world.alloc_on::<u64>(CUDA, 5000));
        let (x, y) = (x?, y?);
        for round in 0..10 {
            world.write(y, &pattern(10 * me + round, 5000))?;
            world.barrier_all()?;
            world.put_on_stream(x, y, right, &stream)?;
            world.quiet_on_stream(&stream)?;
            world.synchronize(&stream)?;
            world.barrier_all()?;
            world.sum_reduce(x, x)?;
            world.get_on_stream(y, x, right, &stream)?;
            world.synchronize(&stream)?;
            let both = [0, 1].map(|pe| pattern(10 * pe + round, 5000));
            let sum: Vec<u64> = both[0].iter().zip(&both[1]).map(|(a, b)| a + b).collect();
            assert!(read(world, y)? == sum, "round {round}");
            world.barrier_all()?;
        }
        world.free(y)?;
        world.free(x)
    });
}

/// Reduces `values(pe)` of every PE on streams, into another object and in place.
fn reduced<T: GpuNumber + PartialEq + Debug>(
    world: &World,
    stream: &Stream,
    fold: Fold,
    values: &dyn Fn(usize) -> Vec<T>,
    one: fn(T, T) -> T,
) -> Result<()> {
    let me = world.my_pe();
    let expected: Vec<T> = (1..world.n_pes()).fold(values(0), |sums, pe| {
        let next = values(pe);
        sums.into_iter().zip(next).map(|(a, b)| one(a, b)).collect()
    });
    let (dst, src) = (
        world.alloc_on::<T>(CUDA, expected.len())?,
        world.alloc_on::<T>(CUDA, expected.len())?,
    );
    world.put(src, &values(me), me)?;
    world.quiet()?;
    world.reduce_on_stream(dst, src, fold, stream)?;
    world.reduce_on_stream(src, src, fold, stream)?;
    world.synchronize(stream)?;
    assert_eq!(read(world, dst)?, expected, "{fold:?}");
    assert_eq!(read(world, src)?, expected, "{fold:?} in place");
    world.free(src)?;
    world.free(dst)
}

#[test]
fn reductions_on_streams_fold_in_the_order_of_the_pes() {
    use half::{bf16, f16};
    run(3, |world| {
        let stream = stream(world);
        let s = &stream;
        // Fewer elements than PEs, a number that they do not divide, and many.
        for len in [2, 7, 5000] {
            let ints = move |pe: usize| (0..len).map(|i| (i * 7 + pe * 13) as i32 - 40).collect();
            reduced(world, s, Fold::Sum, &ints, i32::wrapping_add)?;
            reduced(world, s, Fold::Min, &ints, Ord::min)?;
            let words = move |pe: usize| (0..len).map(|i| (i as u64) << (pe * 9)).collect();
            reduced(world, s, Fold::Xor, &words, |a: u64, b| a ^ b)?;
            reduced(world, s, Fold::Or, &words, |a: u64, b| a | b)?;
            reduced(world, s, Fold::And, &words, |a: u64, b| a & b)?;
            reduced(world, s, Fold::Prod, &words, u64::wrapping_mul)?;
            let bytes = move |pe: usize| (0..len).map(|i| (i + pe) as u8).collect();
            reduced(world, s, Fold::Max, &bytes, Ord::max)?;
            // The same bits on all PEs, though floats do not add up alike in every order.
            let floats = move |pe: usize| (0..len).map(|i| 0.1 * (i + pe * 3) as f64).collect();
            reduced(world, s, Fold::Sum, &floats, |a: f64, b| a + b)?;
            let halves = move |pe: usize| {
                (0..len)
                    .map(|i| f16::from_f32((i % 16 + pe) as f32))
                    .collect()
            };
            reduced(world, s, Fold::Sum, &halves, |a: f16, b| a + b)?;
            let brains = move |pe: usize| {
                (0..len)
                    .map(|i| bf16::from_f32((i % 8 * pe) as f32))
                    .collect()
            };
            reduced(world, s, Fold::Max, &brains, bf16::max)?;
        }
        Ok(())
    });
}

#[test]
fn a_captured_step_is_replayed_by_all() {
    run_alone(3, |world| {
        const STEPS: usize = 10;
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let stream = stream(world);
        let (token, next) = (zeroed::<u64>(world, 64)?, zeroed::<u64>(world, 64)?);
        let (signal, sum) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 1)?);
        world.put(token, &pattern(me, 64), me)?;
        world.barrier_all()?;
        let mut graph = Graph::capture(&stream, |stream| -> Result<()> {
            world.put_signal_on_stream(next, token, signal, 1, SignalOp::Set, right, stream)?;
            world.wait_until_on_stream(signal, Cmp::Eq, 1, stream)?;
            world.put_on_stream(token, next, me, stream)?;
            // The signal is taken back before anybody goes on.
            world.put_on_stream(signal, sum, me, stream)?;
            world.barrier_all_on_stream(stream)?;
            world.quiet_on_stream(stream)
        })?;
        assert_eq!(read(world, token)?, pattern(me, 64), "recorded, not done");
        world.barrier_all()?;
        for _ in 0..STEPS {
            // SAFETY: the world and its memory live until the stream is synchronized.
            unsafe { graph.launch(&stream) }.unwrap();
        }
        world.synchronize(&stream)?;
        assert_eq!(
            read(world, token)?,
            pattern((me + 3 * STEPS - STEPS) % 3, 64)
        );
        world.barrier_all()?;
        for sym in [sum, signal, next, token] {
            world.free(sym)?;
        }
        Ok(())
    });
}

#[test]
fn a_lost_pe_ends_the_waits_of_the_others_streams() {
    let Some(context) = context() else { return };
    // The two that are left end together, so that neither is lost to the other before.
    let (left, told) = (Barrier::new(2), AtomicU32::new(0));
    let _shared = shared();
    let ended = spmd_with(on(context), 3, |world| {
        let (word, queued) = (zeroed::<u64>(world, 1)?, world.alloc_zeroed::<u64>(1)?);
        if world.my_pe() == 2 {
            world.wait_until(queued, Cmp::Eq, 2)?;
            return Err(Error::Argument {
                call: "test",
                what: "this PE gives up".into(),
            });
        }
        let stream = stream(world);
        match world.my_pe() {
            0 => world.wait_until_on_stream(word, Cmp::Eq, 1, &stream)?,
            _ => world.barrier_all_on_stream(&stream)?,
        }
        world.add(queued, 1_u64, 2)?;
        let lost = |found: Result<()>| {
            assert!(
                matches!(found, Err(Error::PeerLost { pe: 2, .. })),
                "{found:?}"
            );
        };
        lost(world.synchronize(&stream));
        lost(world.barrier_all_on_stream(&stream));
        // Those that are left go on with what needs none of the lost.
        assert_eq!(world.acknowledge_lost(), [2]);
        world.set(word, 3, world.my_pe())?;
        world.wait_until_on_stream(word, Cmp::Eq, 3, &stream)?;
        world.synchronize(&stream)?;
        lost(world.put_on_stream(word, word, 2, &stream));
        // A collective call would wait for the lost one for ever.
        lost(world.barrier_all_on_stream(&stream));
        lost(world.reduce_on_stream(word, word, Fold::Sum, &stream));
        world.synchronize(&stream)?;
        told.fetch_add(1, Ordering::Relaxed);
        left.wait();
        Ok(())
    });
    assert!(ended.is_err());
    assert_eq!(told.load(Ordering::Relaxed), 2);
}

#[test]
fn what_is_queued_at_the_end_is_done() {
    use oxshmem::cuda::{DevicePtr, Pinned, PinnedOptions};
    let Some(context) = context() else { return };
    let seen = Pinned::new(&context, 8, &PinnedOptions::default()).unwrap();
    run(2, |world| {
        let (data, signal) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 1)?);
        let (seven, gate) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 1)?);
        world.put(seven, &[7], world.my_pe())?;
        world.quiet()?;
        let stream = stream(world);
        if world.my_pe() == 0 {
            // Many small steps, so that the other PE is at the end long before.
            for _ in 0..200 {
                world.put_on_stream(gate, seven, 0, &stream)?;
            }
            world.put_signal_on_stream(data, seven, signal, 1, SignalOp::Set, 1, &stream)?;
        } else {
            world.wait_until_on_stream(signal, Cmp::Eq, 1, &stream)?;
            let from: DevicePtr = world.gpu_ptr(data, 1).unwrap();
            // SAFETY: the word is this PE's; the page-locked one outlives the world.
            unsafe { stream.copy(seen.device_ptr(), from, 8) }.unwrap();
        }
        Ok(())
    });
    // SAFETY: a word of page-locked memory, which nobody writes any more.
    assert_eq!(unsafe { seen.as_ptr().cast::<u64>().read_volatile() }, 7);
}

#[test]
fn what_a_stream_cannot_do_is_refused_in_words() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let stream = stream(world);
        let (x, y) = (zeroed::<u64>(world, 8)?, zeroed::<u64>(world, 9)?);
        let floats = zeroed::<f32>(world, 8)?;
        let host = world.alloc_zeroed::<u64>(8)?;
        let words = |result: Result<()>| result.unwrap_err().to_string();
        let told = words(world.put_on_stream(host, x, there, &stream));
        assert!(told.contains("host memory"), "{told}");
        let told = words(world.put_on_stream(x, host, there, &stream));
        assert!(told.contains("host memory"), "{told}");
        let told = words(world.put_on_stream(x, y, there, &stream));
        assert!(told.contains("8 elements, source 9"), "{told}");
        let told = words(world.put_on_stream(x, x, 2, &stream));
        assert!(told.contains("no PE 2"), "{told}");
        let told = words(world.signal_on_stream(x, 1, SignalOp::Set, there, &stream));
        assert!(told.contains("8 elements"), "{told}");
        let told = words(world.wait_until_on_stream(x, Cmp::Eq, 1, &stream));
        assert!(told.contains("Sym::at"), "{told}");
        let told = words(world.reduce_on_stream(floats, floats, Fold::And, &stream));
        assert!(told.contains("f32"), "{told}");
        let told = words(world.fcollect_on_stream(y, x, &stream));
        assert!(told.contains("9 elements"), "{told}");
        let told = words(world.alltoall_on_stream(x, x, &stream));
        assert!(told.contains("overlap"), "{told}");
        let told = words(world.broadcast_on_stream(x, x, 2, &stream));
        assert!(told.contains("no PE 2"), "{told}");
        if devices().unwrap().len() > 1 {
            let other = Context::new(&Device::new(1).unwrap()).unwrap();
            let foreign = Stream::new(&other, &StreamOptions::default()).unwrap();
            let told = words(world.put_on_stream(x, x, me, &foreign));
            assert!(told.contains("GPU 1's"), "{told}");
        }
        assert!(world.gpu_ptr(x, there).is_some(), "m8: a device address");
        assert!(
            world.gpu_ptr(host, there).is_none(),
            "m8: not of host memory"
        );
        world.barrier_all()?;
        world.free(host)?;
        world.free(floats)?;
        world.free(y)?;
        world.free(x)
    });
}

/// cudarc's own view of the GPU, from the driver that oxshmem has loaded.
fn cudarc_context() -> Arc<CudaContext> {
    CudaContext::new(0).unwrap()
}

#[test]
fn a_slice_of_cudarcs_is_put_got_and_freed_in_order() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let home = cudarc_context().new_stream().unwrap();
        let other = home.context().new_stream().unwrap();
        let stream = stream(world);
        let x = zeroed::<u64>(world, 4096)?;
        for round in 0..10 {
            let data = pattern(me + round, 4096);
            let slice = home.clone_htod(&data).unwrap();
            // Comes after the copy on the slice's stream, and before the slice is freed.
            world.put_on_stream(x, &slice, there, &stream)?;
            drop(slice);
            world.barrier_all_on_stream(&stream)?;
            let mut got = home.alloc_zeros::<u64>(4096).unwrap();
            world.get_on_stream(&mut got, x, there, &stream)?;
            // Ordered behind the get, though on another stream of cudarc's than the slice's.
            assert_eq!(other.clone_dtoh(&got).unwrap(), data);
            world.barrier_all_on_stream(&stream)?;
            world.synchronize(&stream)?;
            assert_eq!(read(world, x)?, pattern(there + round, 4096));
            world.barrier_all()?;
        }
        let (signal, part) = (zeroed::<u64>(world, 1)?, x.range(..100)?);
        let data = home.clone_htod(&pattern(me + 50, 300)).unwrap();
        let view = data.slice(100..200);
        world.put_signal_on_stream(part, &view, signal, 1, SignalOp::Set, there, &stream)?;
        world.wait_until_on_stream(signal, Cmp::Eq, 1, &stream)?;
        world.synchronize(&stream)?;
        assert_eq!(read(world, part)?, pattern(there + 50, 300)[100..200]);
        let told = world.put_on_stream(x, &view, there, &stream);
        let told = told.unwrap_err().to_string();
        assert!(told.contains("800 bytes, the object 32768"), "{told}");
        world.barrier_all()?;
        world.free(signal)?;
        world.free(x)
    });
}

#[test]
fn m4_cudarc_copies_to_and_from_symmetric_gpu_memory() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let home = cudarc_context().new_stream().unwrap();
        let x = zeroed::<u64>(world, 1000)?;
        let mut view = world.gpu_view(x, &home)?;
        home.memcpy_htod(&pattern(me, 1000), &mut view).unwrap();
        let stream = interop::stream(&home).unwrap();
        world.barrier_all_on_stream(&stream)?;
        let y = world.alloc_on::<u64>(CUDA, 1000)?;
        world.get_on_stream(y, x, there, &stream)?;
        let seen = home.clone_dtoh(&world.gpu_view(y, &home)?).unwrap();
        assert_eq!(seen, pattern(there, 1000));
        let host = world.alloc_zeroed::<u64>(1)?;
        assert!(world.gpu_view(host, &home).is_err());
        world.barrier_all()?;
        world.free(host)?;
        world.free(y)?;
        world.free(x)
    });
}

#[test]
fn without_a_gpu_heap_streams_are_refused() {
    let Some(context) = context() else { return };
    let stream = Stream::new(&context, &StreamOptions::default()).unwrap();
    let world = World::builder().heap_limit(MIB).join().unwrap();
    let told = world
        .barrier_all_on_stream(&stream)
        .unwrap_err()
        .to_string();
    assert!(told.contains("OXSHMEM_CUDA_SYMMETRIC_SIZE"), "{told}");
    assert!(world.gpu_context().is_none());
    world.finalize().unwrap();
}
