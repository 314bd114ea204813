//! GPU memory in which the data of NICs are visible late (M27), between hosts by verbs: on the software NIC, which asks the
//! software CUDA driver which memory is a GPU's, and whose writes there become visible by that driver's flush alone.
//! `ci/test-softnic` runs these tests, with `OXSHMEM_SOFTNIC=2*cx6:gpu=20000:gpu_read_flushes=off`.
#![cfg(all(feature = "cuda", feature = "verbs"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "on_gpu/mod.rs"]
mod on_gpu;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use oxshmem::cuda::{DevicePtr, Stream};
use oxshmem::{MemoryModel, Result, SignalOp, Sym, World};
use oxshmem_bootstrap::InProcess;

use on_gpu::{context, on, stream, zeroed};

const ROUNDS: u64 = 40;
const LEN: usize = 500;
/// No GPU needs longer to see what one round has written.
const LATEST: Duration = Duration::from_secs(60);

/// The words in a GPU's memory, by a copy that goes past the library.
fn gpu_has(world: &World, x: Sym<u64>, stream: &Stream) -> Vec<u64> {
    let mut words = vec![0; x.len()];
    let into = DevicePtr::from_host(words.as_mut_ptr().cast::<u8>());
    let from = world.gpu_ptr(x, world.my_pe()).unwrap();
    // SAFETY: both have so many bytes; the buffer lives until the wait below is over.
    unsafe { stream.copy(into, from, size_of_val(&words[..])) }.unwrap();
    stream.synchronize_within(LATEST).unwrap();
    words
}

/// The data of a round, and the words that the target's GPU and CPU are told by.
struct Round<'a> {
    world: &'a World,
    x: Sym<u64>,
    signal: Sym<u64>,
    number: u64,
}

/// The rounds in which PE 1's GPU does not have what PE 0 has written there, when PE 1 has learned of it.
fn stale_rounds(
    model: MemoryModel,
    write: fn(&Round<'_>, &[u64]) -> Result<()>,
    learn: fn(&Round<'_>, &Barrier) -> Result<()>,
) -> usize {
    let context = context().expect("the software CUDA driver");
    let stale = AtomicUsize::new(0);
    let outside = Barrier::new(2);
    let route = |world: &World| world.explain(1 - world.my_pe()).unwrap().gpu.unwrap();
    let rounds = |world: &World| -> Result<()> {
        assert_eq!(route(world).transport, Some("verbs"), "{:?}", route(world));
        let x = zeroed::<u64>(world, LEN)?;
        let signal = world.alloc_zeroed::<u64>(1)?;
        let stream = stream(world);
        for number in 1..=ROUNDS {
            let round = Round {
                world,
                x,
                signal,
                number,
            };
            world.barrier_all()?;
            if world.my_pe() == 0 {
                write(&round, &[number; LEN])?;
                outside.wait();
                // Its next call may flush.
                outside.wait();
            } else {
                learn(&round, &outside)?;
                let has = gpu_has(world, x, &stream);
                let late = has.iter().any(|word| *word != number);
                stale.fetch_add(usize::from(late), Ordering::SeqCst);
                outside.wait();
            }
        }
        world.barrier_all()?;
        world.free(signal)?;
        world.free(x)
    };
    std::thread::scope(|threads| {
        for (pe, bootstrap) in InProcess::group(2).into_iter().enumerate() {
            let builder = on(context.clone())
                .model(model)
                .host_id(format!("host-{pe}"));
            let builder = builder.bootstrap(bootstrap as Arc<_>);
            let rounds = &rounds;
            threads.spawn(move || {
                let world = builder.join().unwrap();
                rounds(&world).unwrap();
                world.finalize().unwrap();
            });
        }
    });
    stale.into_inner()
}

/// The tries in which stale data must show once: by chance, all of one try may come in time.
const TRIES: usize = 20;

/// Whether the target's GPU is ever seen without the data, of which it was told.
fn shows_stale(
    model: MemoryModel,
    write: fn(&Round<'_>, &[u64]) -> Result<()>,
    learn: fn(&Round<'_>, &Barrier) -> Result<()>,
) -> bool {
    (0..TRIES).any(|_| stale_rounds(model, write, learn) > 0)
}

fn put_and_quiet(round: &Round<'_>, data: &[u64]) -> Result<()> {
    round.world.put(round.x, data, 1)?;
    round.world.quiet()
}

fn put_signal(round: &Round<'_>, data: &[u64]) -> Result<()> {
    let Round {
        world,
        x,
        signal,
        number,
    } = *round;
    world.put_signal(x, data, signal, number, SignalOp::Set, 1)
}

/// By no call of the library: PE 0 is done when it comes.
fn outside(_: &Round<'_>, outside: &Barrier) -> Result<()> {
    outside.wait();
    Ok(())
}

fn wait_for_signal(round: &Round<'_>, outside: &Barrier) -> Result<()> {
    let Round {
        world,
        signal,
        number,
        ..
    } = *round;
    world.signal_wait_until(signal, oxshmem::Cmp::Eq, number)?;
    outside.wait();
    Ok(())
}

/// As a wait that leaves the flush out.
fn look_for_signal(round: &Round<'_>, outside: &Barrier) -> Result<()> {
    let word = round.world.ptr(round.signal, 1).unwrap();
    // SAFETY: an aligned word of this PE's heap, which others write whole.
    let word = unsafe { AtomicU64::from_ptr(word.as_ptr()) };
    while word.load(Ordering::Acquire) != round.number {
        std::thread::yield_now();
    }
    outside.wait();
    Ok(())
}

#[test]
#[ignore = "needs the software NIC and the software CUDA driver; run by ci/test-softnic"]
fn m27_after_a_quiet_of_the_ordered_model_the_targets_gpu_has_the_data() {
    assert_eq!(
        stale_rounds(MemoryModel::Ordered, put_and_quiet, outside),
        0
    );
    // The relaxed model leaves the flush to the target, which makes no call here.
    assert!(shows_stale(MemoryModel::Relaxed, put_and_quiet, outside));
}

#[test]
#[ignore = "needs the software NIC and the software CUDA driver; run by ci/test-softnic"]
fn m22_m27_after_a_wait_for_a_signal_the_gpu_has_the_data() {
    for model in [MemoryModel::Ordered, MemoryModel::Relaxed] {
        assert_eq!(stale_rounds(model, put_signal, wait_for_signal), 0);
        // Of the ordered model, PE 0's message has PE 1's progress thread flush soon after: a race.
        assert!(shows_stale(model, put_signal, look_for_signal), "{model:?}");
    }
}
