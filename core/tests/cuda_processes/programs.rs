//! The entry point of this test program when another test starts it as a PE.

use std::env;
use std::time::{Duration, Instant};

use oxshmem::{Cmp, Error, MemoryKind, Result, SignalOp, Sym, World};
use oxshmem_cuda::{Context, Device};

use crate::job::{PROGRAM, is_lost, say, stay};
use crate::setting::DEADLINE;

const CUDA: MemoryKind = MemoryKind::Cuda;
const MIB: usize = 1 << 20;

/// A PE of another test's job.
#[test]
#[ignore = "other tests start it"]
fn pe() {
    let Ok(program) = env::var(PROGRAM) else {
        return;
    };
    let result = match program.as_str() {
        "everything" => everything(),
        "join" => World::init().and_then(World::finalize),
        "no-room" => no_room(),
        lose => survive(lose),
    };
    result.unwrap_or_else(|error| {
        say(format_args!("error {error}"));
        panic!("{program}: {error}");
    });
}

/// The file descriptors that a process has open, and its GPU's free bytes.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    descriptors: Vec<String>,
    free: usize,
}

impl Held {
    fn now(context: &Context) -> Held {
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let names = open.map_while(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let mut descriptors: Vec<_> = names.map(|name| name.display().to_string()).collect();
        descriptors.retain(|name| !name.contains("/proc/"));
        descriptors.sort();
        let free = context.memory().unwrap().free;
        Held { descriptors, free }
    }

    /// That it comes back to this: a world that was dropped keeps its connection a little longer.
    fn is_back(&self, context: &Context) {
        let since = Instant::now();
        while *self != Held::now(context) && since.elapsed() < DEADLINE {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(*self, Held::now(context));
    }
}

/// The context of the GPU that this process's PE takes.
fn context() -> Context {
    let gpus = oxshmem_cuda::devices().unwrap().len();
    let rank: usize = env::var("LOCAL_RANK").unwrap().parse().unwrap();
    Context::new(&Device::new(rank % gpus).unwrap()).unwrap()
}

fn pattern(seed: usize, len: usize) -> Vec<u64> {
    (0..len).map(|at| (seed * 1_000_003 + at) as u64).collect()
}

/// Puts, gets, atomics and signals around the ring.
fn ring(world: &World, x: Sym<u64>, words: Sym<u64>, round: u64) -> Result<()> {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    let len = x.len();
    let (counter, signal) = (words.at(0)?, words.at(1)?);
    world.put(words, &[0; 4], me)?;
    world.barrier_all()?;
    world.put_signal(
        x,
        &pattern(me + round as usize, len),
        signal,
        round,
        SignalOp::Set,
        right,
    )?;
    while world.fetch(signal, me)? != round {
        std::thread::yield_now();
    }
    let mut seen = vec![0; len];
    world.get(&mut seen, x, me)?;
    assert_eq!(seen, pattern(left + round as usize, len));
    world.get(&mut seen, x, right)?;
    assert_eq!(seen, pattern(me + round as usize, len));
    for pe in 0..n {
        for _ in 0..10 {
            world.fetch_add(counter, 1, pe)?;
        }
    }
    world.barrier_all()?;
    assert_eq!(world.g(counter, me)?, 10 * n as u64);
    world.barrier_all()
}

fn everything() -> Result<()> {
    let context = context();
    let before = Held::now(&context);
    let world = World::init()?;
    let words = world.alloc_on::<u64>(CUDA, 4)?;
    let mut blocks = Vec::new();
    // The heap grows: its extents end at powers of two.
    for (round, mib) in (1..).zip([1, 3, 9, 30]) {
        let x = world.alloc_on::<u64>(CUDA, mib * MIB / 8)?;
        // About the end, where the new extent is.
        ring(&world, x.range(..1000)?, words, round)?;
        ring(&world, x.range(x.len() - 3000..)?, words, 100 + round)?;
        blocks.push(x);
    }
    let told = world.alloc_zeroed::<u64>(1)?;
    world.p(told, 7, (world.my_pe() + 1) % world.n_pes())?;
    world.wait_until(told, Cmp::Eq, 7)?;
    world.free(told)?;
    for x in blocks.into_iter().rev() {
        world.free(x)?;
    }
    world.free(words)?;
    let within = Held::now(&context);
    world.finalize()?;
    let after = Held::now(&context);
    assert_eq!(before, after, "with a world it was {within:?}");
    assert!(within.free < before.free);
    Ok(())
}

/// M13: PE 1's GPU alone is small.
fn no_room() -> Result<()> {
    let context = context();
    let before = Held::now(&context);
    let world = World::init()?;
    let me = world.my_pe();
    let words = world.alloc_on::<u64>(CUDA, 4)?;
    let x = world.alloc_on::<u64>(CUDA, MIB)?;
    ring(&world, x, words, 1)?;
    let held = Held::now(&context);
    for _ in 0..3 {
        match world.alloc_on::<u64>(CUDA, 5 * MIB) {
            Err(Error::OutOfMemory { why, .. }) => {
                assert!(me == 1 || why.contains("PE 1"), "{why}");
            }
            other => panic!("PE {me}: {other:?}"),
        }
        assert_eq!(held, Held::now(&context), "nothing is kept of what failed");
    }
    ring(&world, x, words, 2)?;
    world.free(x)?;
    world.free(words)?;
    world.finalize()?;
    assert_eq!(before, Held::now(&context));
    Ok(())
}

/// The last PE is killed.
fn survive(program: &str) -> Result<()> {
    let call = program.strip_prefix("lose/").expect("lose/call");
    let context = context();
    let before = Held::now(&context);
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let victim = n - 1;
    let x = world.alloc_on::<u64>(CUDA, 3 * MIB / 8)?;
    let data = pattern(me, 10_000);
    world.put(x.range(..data.len())?, &data, me)?;
    world.barrier_all()?;
    say("ready");
    if me == victim {
        stay();
        return Ok(());
    }
    let lost = match call {
        "put" => loop {
            let put = world.put(x.range(..data.len())?, &data, victim);
            if let Err(error) = put.and_then(|()| world.quiet()) {
                break Err(error);
            }
        },
        "get" => loop {
            let mut seen = vec![0; 10_000];
            if let Err(error) = world.get(&mut seen, x.range(..10_000)?, victim) {
                break Err(error);
            }
            assert!(seen == pattern(victim, 10_000));
        },
        "atomic" => loop {
            if let Err(error) = world.fetch_add(x.at(20_000)?, 1, victim) {
                break Err(error);
            }
        },
        "alloc" => world.alloc_on::<u8>(CUDA, 20 * MIB).map(drop),
        "barrier" => world.barrier_all(),
        other => panic!("no program {other}"),
    };
    is_lost(lost, victim);
    is_lost(world.p(x.at(0)?, 1, victim), victim);
    is_lost(world.g(x.at(0)?, victim).map(drop), victim);
    is_lost(world.fetch_inc(x.at(0)?, victim).map(drop), victim);
    assert_eq!(world.acknowledge_lost(), [victim]);
    // The survivors go on.
    for to in (0..n).filter(|to| *to != victim) {
        world.put(x.range(100_000 + 10 * me..)?.range(..3)?, &data[..3], to)?;
    }
    world.quiet()?;
    let mut seen = [0; 3];
    world.get(&mut seen, x.range(100_000 + 10 * me..)?.range(..3)?, me)?;
    assert_eq!(seen, data[..3]);
    is_lost(world.barrier_all(), victim);
    say("survived");
    // A PE that ends first is lost to the others, so they end together.
    stay();
    drop(world);
    before.is_back(&context);
    Ok(())
}
