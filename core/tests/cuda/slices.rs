//! Slices of cudarc's as this PE's side of calls without a stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use oxshmem::cuda::cudarc::driver::sys::{CUresult, CUstreamCaptureMode};
use oxshmem::cuda::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DriverError};
use oxshmem::cuda::{devices, interop};
use oxshmem::testing::spmd_with;
use oxshmem::{ContextOptions, Error, RegisteredGpu, Result, Sym, World};

use crate::on_gpu::{
    CUDA, MIB, context, on, pattern, read, run, run_alone, run_on_all_gpus, shared, zeroed,
};

/// A stream of cudarc's on the PE's GPU.
pub fn home(world: &World) -> Arc<CudaStream> {
    let ordinal = world.gpu_context().unwrap().device().ordinal();
    CudaContext::new(ordinal).unwrap().new_stream().unwrap()
}

/// A slice of the program's.
enum Buffer<'w> {
    Plain(CudaSlice<u64>),
    Registered(RegisteredGpu<'w, u64>),
}

impl<'w> Buffer<'w> {
    /// As it is, and registered.
    fn both(world: &'w World, home: &Arc<CudaStream>, len: usize) -> Result<[Buffer<'w>; 2]> {
        let slice = || home.alloc_zeros::<u64>(len).unwrap();
        let registered = world.register_gpu(slice())?;
        Ok([Buffer::Plain(slice()), Buffer::Registered(registered)])
    }

    /// Fills it on its stream.
    fn fill(&mut self, home: &Arc<CudaStream>, data: &[u64]) {
        match self {
            Buffer::Plain(slice) => home.memcpy_htod(data, slice).unwrap(),
            Buffer::Registered(slice) => home.memcpy_htod(data, &mut slice.view_mut()).unwrap(),
        }
    }

    fn seen(&self, home: &Arc<CudaStream>) -> Vec<u64> {
        match self {
            Buffer::Plain(slice) => home.clone_dtoh(slice).unwrap(),
            Buffer::Registered(slice) => home.clone_dtoh(&**slice).unwrap(),
        }
    }

    fn put(&self, world: &World, object: Sym<u64>, pe: usize) -> Result<()> {
        match self {
            Buffer::Plain(slice) => world.put_from(object, slice, pe),
            Buffer::Registered(slice) => world.put_from(object, slice, pe),
        }
    }

    fn get(&mut self, world: &World, object: Sym<u64>, pe: usize) -> Result<()> {
        match self {
            Buffer::Plain(slice) => world.get_into(slice, object, pe),
            Buffer::Registered(slice) => world.get_into(slice, object, pe),
        }
    }

    /// Puts and gets, complete when the scope ends.
    fn nonblocking(
        all: &mut [Buffer<'_>; 2],
        world: &World,
        (to, from): (Sym<u64>, Sym<u64>),
        pe: usize,
    ) -> Result<()> {
        world.scope(|s| match all {
            [Buffer::Plain(source), Buffer::Registered(target)] => {
                s.put_from_nbi(to, &*source, pe)?;
                s.get_into_nbi(target, from, pe)
            }
            [Buffer::Registered(source), Buffer::Plain(target)] => {
                s.put_from_nbi(to, &*source, pe)?;
                s.get_into_nbi(target, from, pe)
            }
            _ => unreachable!("one of each"),
        })
    }
}

#[test]
fn m15_m16_a_slice_is_put_to_and_got_from_host_and_gpu_memory_of_any_pe() {
    run_on_all_gpus(3, |world| {
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let left = (me + 2) % 3;
        let home = home(world);
        // The longest is more than is copied at once.
        for len in [1, 3, 1000, 200_001] {
            let objects = [world.alloc::<u64>(len)?, world.alloc_on::<u64>(CUDA, len)?];
            for mut buffer in Buffer::both(world, &home, len)? {
                for (round, object) in objects.into_iter().enumerate() {
                    for (pe, writer) in [(right, left), (me, me)] {
                        world.put(object, &vec![0; len], me)?;
                        world.barrier_all()?;
                        buffer.fill(&home, &pattern(me + round, len));
                        buffer.put(world, object, pe)?;
                        // It may be changed at once (M15).
                        buffer.fill(&home, &pattern(99, len));
                        world.barrier_all()?;
                        let seen = read(world, object)?;
                        assert!(seen == pattern(writer + round, len), "put of {len} to {pe}");
                        buffer.get(world, object, pe)?;
                        let seen = buffer.seen(&home);
                        assert!(seen == pattern(me + round, len), "get of {len} from {pe}");
                        world.barrier_all()?;
                    }
                }
            }
            for object in objects.into_iter().rev() {
                world.free(object)?;
            }
        }
        Ok(())
    });
}

#[test]
fn m19_what_is_copied_without_waiting_is_there_when_the_scope_ends() {
    run_on_all_gpus(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let home = home(world);
        for len in [5, 50_000] {
            let to = [world.alloc::<u64>(len)?, world.alloc_on::<u64>(CUDA, len)?];
            let from = world.alloc_on::<u64>(CUDA, len)?;
            let mut buffers = Buffer::both(world, &home, len)?;
            for (round, to) in to.into_iter().enumerate() {
                buffers[0].fill(&home, &pattern(me + round, len));
                world.put(from, &pattern(me + 50, len), me)?;
                world.barrier_all()?;
                Buffer::nonblocking(&mut buffers, world, (to, from), there)?;
                let seen = buffers[1].seen(&home);
                assert!(
                    seen == pattern(there + 50, len),
                    "get {round} of {len}: {:?}",
                    &seen[..3]
                );
                world.barrier_all()?;
                let seen = read(world, to)?;
                assert!(
                    seen == pattern(there + round, len),
                    "put {round} of {len}: {:?}",
                    &seen[..3]
                );
                world.barrier_all()?;
                buffers.reverse();
            }
            // Objects, too.
            let [_, gpu] = to;
            world.scope(|s| s.put_from_nbi(gpu, from, there))?;
            world.barrier_all()?;
            assert!(read(world, gpu)? == pattern(there + 50, len));
            world.scope(|s| s.get_into_nbi(from, gpu, there))?;
            assert!(read(world, from)? == pattern(me + 50, len));
            world.barrier_all()?;
            world.free(from)?;
            for object in to.into_iter().rev() {
                world.free(object)?;
            }
        }
        Ok(())
    });
}

#[test]
fn threads_with_contexts_of_their_own_copy_slices() {
    run(2, |world| {
        const LEN: usize = 40_000;
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let x = world.alloc_on::<u64>(CUDA, 4 * LEN)?;
        let contexts = (0..4).map(|_| world.create_context(ContextOptions::NONE));
        let contexts: Vec<_> = contexts.collect::<Result<_>>()?;
        let streams: Vec<_> = contexts.iter().map(|_| home(world)).collect();
        std::thread::scope(|threads| -> Result<()> {
            let mut all = Vec::new();
            for (at, (context, home)) in contexts.into_iter().zip(&streams).enumerate() {
                all.push(threads.spawn(move || -> Result<()> {
                    let slice = home.clone_htod(&pattern(me + 10 * at, LEN)).unwrap();
                    let slice = context.register_gpu(slice)?;
                    let part = x.range(at * LEN..(at + 1) * LEN)?;
                    context.scope(|s| s.put_from_nbi(part, &slice, there))
                }));
            }
            all.into_iter().try_for_each(|one| one.join().unwrap())
        })?;
        world.barrier_all()?;
        for (at, seen) in read(world, x)?.chunks(LEN).enumerate() {
            assert!(seen == pattern(there + 10 * at, LEN), "thread {at}");
        }
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn a_part_of_a_slice_is_copied_and_no_more() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let home = home(world);
        let x = world.alloc_on::<u64>(CUDA, 100)?;
        let mut slice = home.clone_htod(&pattern(me, 300)).unwrap();
        world.put_from(x, &slice.slice(100..200), there)?;
        world.barrier_all()?;
        assert_eq!(read(world, x)?, pattern(there, 300)[100..200]);
        world.get_into(&mut slice.slice_mut(0..100), x, me)?;
        let mut expected = pattern(me, 300);
        expected[..100].copy_from_slice(&pattern(there, 300)[100..200]);
        assert_eq!(home.clone_dtoh(&slice).unwrap(), expected);
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn what_was_queued_on_a_slice_comes_before_its_put() {
    run(2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let home = home(world);
        let x = world.alloc_on::<u64>(CUDA, 1000)?;
        for registered in 0..2 {
            let mut buffer = Buffer::both(world, &home, 1000)?;
            buffer.swap(0, registered);
            let [buffer, _] = &mut buffer;
            let (release, held) = mpsc::channel::<()>();
            let stream = interop::stream(&home).unwrap();
            let hold = move || assert!(held.recv().is_err(), "nothing is sent");
            stream.host_func(hold).unwrap();
            buffer.fill(&home, &pattern(me + registered, 1000));
            std::thread::scope(|threads| {
                threads.spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    drop(release);
                });
                buffer.put(world, x, there)
            })?;
            world.barrier_all()?;
            assert_eq!(read(world, x)?, pattern(there + registered, 1000));
            world.barrier_all()?;
        }
        world.free(x)
    });
}

#[test]
fn a_slice_whose_stream_is_captured_is_refused_and_the_capture_none_the_worse() {
    run_alone(2, |world| {
        let home = home(world);
        let x = world.alloc_on::<u64>(CUDA, 8)?;
        let slice = home.alloc_zeros::<u64>(8).unwrap();
        world.barrier_all()?;
        if world.my_pe() == 1 {
            return world.barrier_all();
        }
        home.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
            .unwrap();
        let told = world.put_from(x, &slice, 0).unwrap_err().to_string();
        assert!(told.contains("captured into a graph"), "{told}");
        interop::stream(&home).unwrap().capture_status().unwrap();
        world.barrier_all()
    });
}

#[test]
fn slices_that_cannot_be_copied_are_refused_in_words() {
    run(2, |world| {
        let there = 1 - world.my_pe();
        let home = home(world);
        let x = world.alloc_on::<u64>(CUDA, 8)?;
        let (slice, short) = (
            home.alloc_zeros::<u64>(8).unwrap(),
            home.alloc_zeros::<u64>(7).unwrap(),
        );
        let words = |result: Result<()>| result.unwrap_err().to_string();
        let told = words(world.put_from(x, &short, there));
        assert!(told.contains("56 bytes, the object 64"), "{told}");
        let told = words(world.put_from(x, &slice, 2));
        assert!(told.contains("no PE 2"), "{told}");
        if devices().unwrap().len() > 1 {
            let other = CudaContext::new(1).unwrap().default_stream();
            let foreign = other.alloc_zeros::<u64>(8).unwrap();
            let told = words(world.put_from(x, &foreign, there));
            assert!(told.contains("cudarc's GPU 1"), "{told}");
            let told = world.register_gpu(foreign).unwrap_err().to_string();
            assert!(told.contains("cudarc's GPU 1"), "{told}");
        }
        world.barrier_all()?;
        world.free(x)
    });
}

#[test]
fn without_a_gpu_heap_slices_are_refused() {
    if context().is_none() {
        return;
    }
    let _shared = shared();
    let world = World::builder().heap_limit(MIB).join().unwrap();
    let x = world.alloc::<u64>(8).unwrap();
    let stream = CudaContext::new(0).unwrap().default_stream();
    let slice = stream.alloc_zeros::<u64>(8).unwrap();
    let told = world.put_from(x, &slice, 0).unwrap_err().to_string();
    assert!(told.contains("OXSHMEM_CUDA_SYMMETRIC_SIZE"), "{told}");
    world.free(x).unwrap();
    world.finalize().unwrap();
}

#[test]
fn what_cudarc_could_not_do_before_a_copy_is_told_by_it() {
    run(2, |world| {
        let me = world.my_pe();
        let home = home(world);
        let x = zeroed::<u64>(world, 8)?;
        let slice = home.clone_htod(&pattern(1, 8)).unwrap();
        // As cudarc notes a wait that its stream was refused.
        let refused = Err::<(), _>(DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE));
        home.context().record_err(refused);
        let told = world.put_from(x, &slice, me).unwrap_err();
        assert!(matches!(told, Error::Gpu { .. }), "{told}");
        assert!(
            told.to_string().contains("CUDA_ERROR_INVALID_HANDLE"),
            "{told}"
        );
        assert_eq!(read(world, x)?, [0; 8]);
        world.put_from(x, &slice, me)?;
        world.quiet()?;
        assert_eq!(read(world, x)?, pattern(1, 8));
        world.free(x)
    });
}

#[test]
fn a_loss_ends_copies_with_the_lost_pe_alone() {
    let Some(context) = context() else { return };
    let (ready, survivors) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let both = |count: &AtomicUsize| {
        let until = Instant::now() + Duration::from_secs(30);
        while count.load(Ordering::Relaxed) < 2 {
            assert!(Instant::now() < until, "the others have ended");
            std::thread::yield_now();
        }
    };
    let case = |world: &World| {
        let x = zeroed::<u64>(world, 1000)?;
        let (me, home) = (world.my_pe(), home(world));
        let mut slice = home.clone_htod(&pattern(me, 1000)).unwrap();
        let mut kept = world.register_gpu(home.clone_htod(&pattern(me, 1000)).unwrap())?;
        world.barrier_all()?;
        if me == 2 {
            both(&ready);
            let what = "the victim's error".into();
            return Err(Error::Argument { call: "test", what });
        }
        ready.fetch_add(1, Ordering::Relaxed);
        let ended = loop {
            if let Err(error) = world.put_from(x, &slice, 2) {
                break error;
            }
        };
        for ended in [
            ended,
            world.get_into(&mut slice, x, 2).unwrap_err(),
            world.get_into(&mut kept, x, 2).unwrap_err(),
        ] {
            assert!(matches!(ended, Error::PeerLost { pe: 2, .. }), "{ended}");
        }
        // It need not be acknowledged first.
        world.put_from(x, &slice, me).unwrap();
        world.get_into(&mut kept, x, 1 - me).unwrap();
        survivors.fetch_add(1, Ordering::Relaxed);
        both(&survivors);
        Ok(())
    };
    let _shared = shared();
    let told = spmd_with(on(context), 3, case).unwrap_err().to_string();
    assert!(told.contains("the victim's error"), "{told}");
    assert_eq!(survivors.load(Ordering::Relaxed), 2);
}

#[test]
fn m37_an_atomic_on_a_symmetric_source_of_a_copy_under_way_is_found() {
    let Some(context) = context() else { return };
    let turn = Barrier::new(2);
    let _shared = shared();
    spmd_with(on(context).check(true), 2, |world| {
        let (me, there) = (world.my_pe(), 1 - world.my_pe());
        let (hosts, gpus) = (world.alloc_zeroed::<u64>(16)?, zeroed::<u64>(world, 16)?);
        for both in [hosts, gpus] {
            let (near, far) = (both.range(..8)?, both.range(8..)?);
            for put in [true, false] {
                // A get that goes through the host is complete when the call returns.
                if !put && both == gpus {
                    continue;
                }
                if me == 0 {
                    world.scope(|s| {
                        match put {
                            true => s.put_from_nbi(far, near, there)?,
                            false => s.get_into_nbi(near, far, there)?,
                        }
                        turn.wait();
                        turn.wait();
                        Ok(())
                    })?;
                } else {
                    turn.wait();
                    let found = world.fetch_add(near.at(7)?, 1_u64, 0);
                    turn.wait();
                    assert!(
                        matches!(found, Err(Error::Conflict { .. })),
                        "{put} {near:?}: {found:?}"
                    );
                }
                world.barrier_all()?;
                if me == 1 {
                    world.fetch_add(near.at(7)?, 1_u64, 0)?;
                }
                world.barrier_all()?;
            }
        }
        world.free(gpus)?;
        world.free(hosts)
    })
    .unwrap();
}
