//! The round trips of quiets and fences with many PEs, by verbs, on the clock of the software NIC. `ci/test-softnic` runs
//! these tests on devices that keep the order of writes, and on such as need more for a flush.
#![cfg(feature = "verbs")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::ffi::{CStr, c_char};
use std::sync::{Arc, Barrier};

use oxshmem::testing::spmd_with;
use oxshmem::{Result, Sym, World};
use oxshmem_verbs::{Settings, Verbs};

const DIRTY: usize = 64;
const MOST: u64 = 3;

/// A count of ci/softnic/README.md.
fn counter(name: &CStr) -> u64 {
    // SAFETY: C strings. The library is loaded already, and never unloaded.
    let call = unsafe {
        let library = libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null());
        libc::dlsym(library, c"softnic_counter".as_ptr())
    };
    assert!(!call.is_null(), "not the software NIC");
    // SAFETY: the type that the library's README gives it.
    let call: extern "C" fn(*const c_char) -> u64 = unsafe { std::mem::transmute(call) };
    call(name.as_ptr())
}

fn round_trips_of(call: impl FnOnce() -> Result<()>) -> Result<u64> {
    let before = counter(c"round_trips");
    call()?;
    Ok(counter(c"round_trips") - before)
}

/// The round trips of quiets of the other PEs one after the other, of a quiet and of a fence, each after a put to every PE.
fn measured(world: &World, x: Sym<u64>) -> Result<[u64; 3]> {
    let put_to = |pe, value| world.put(x, &vec![value; x.len()], pe);
    let together = |value, call: fn(&World) -> Result<()>| {
        (1..=DIRTY).try_for_each(|pe| put_to(pe, value))?;
        round_trips_of(|| call(world))
    };
    // The clock shows the NICs that have gone furthest, in tests before this one, too: on with this PE's, until they are.
    let shown = counter(c"round_trips");
    while counter(c"round_trips") == shown {
        world.get(&mut [0], x.at(0)?, 1)?;
    }
    let apart = round_trips_of(|| {
        (1..=DIRTY).try_for_each(|pe| put_to(pe, 1).and_then(|()| world.pe_quiet(&[pe])))
    })?;
    let quiet = together(2, |world| world.quiet())?;
    let fence = together(3, |world| world.fence())?;
    world.quiet()?;
    Ok([apart, quiet, fence])
}

/// A quiet and a fence of PE 0 after a put of so many words to each of the others.
fn a_quiet_and_a_fence_take_few(settings: Settings, words: usize) {
    let builder = World::builder()
        .transports(vec![Arc::new(Verbs::with(settings))])
        .heap_limit(1 << 20);
    assert_ne!(counter(c"round_trips"), u64::MAX);
    // The clock is that of the NICs of all PEs: the others wait where they use none.
    let outside = Barrier::new(DIRTY + 1);
    let taken = spmd_with(builder, DIRTY + 1, |world| {
        let x = world.alloc_zeroed::<u64>(words)?;
        world.barrier_all()?;
        outside.wait();
        let taken = (world.my_pe() == 0).then(|| measured(world, x));
        outside.wait();
        world.barrier_all()?;
        let mut came = vec![0; words];
        world.read(&mut came, x)?;
        let expected = if world.my_pe() == 0 { 0 } else { 3 };
        assert_eq!(came, vec![expected; words]);
        taken.transpose()
    });
    let [apart, quiet, fence] = taken.unwrap()[0].unwrap();
    println!("{words} words: apart {apart}, quiet {quiet}, fence {fence}");
    assert!(apart >= DIRTY as u64, "the clock shows {apart} only");
    assert!((1..=MOST).contains(&quiet), "quiet: {quiet} round trips");
    assert!(fence <= MOST, "fence: {fence} round trips");
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m17_m19_with_64_dirty_pes_a_quiet_or_fence_takes_at_most_3_round_trips_of_nics() {
    a_quiet_and_a_fence_take_few(Settings::default(), 1);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m17_m19_after_long_puts_over_several_queue_pairs_to_64_pes_they_take_as_many() {
    let settings = Settings {
        queue_pairs: 3,
        stripe: 64,
        ..Settings::default()
    };
    a_quiet_and_a_fence_take_few(settings, 512);
}
