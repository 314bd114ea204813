//! The programs of this test's jobs: each PE launches kernels that call the device library.

use std::env;
use std::time::{Duration, Instant};

use oxshmem::cuda::{Args, Module};
use oxshmem::{Error, Result, World};
use oxshmem_cuda::Pinned;

use crate::collectives;
use crate::job::{PROGRAM, say};
use crate::kernels::{Kernels, SCOPES, filled, none_wrong};
use crate::on_gpu::{read, zeroed};
use crate::on_streams;
use crate::setting::DEADLINE;

/// A PE of another test's job.
#[test]
#[ignore = "other tests start it"]
fn pe() {
    let Ok(program) = env::var(PROGRAM) else {
        return;
    };
    let result = World::init().and_then(|world| {
        let kernels = Kernels::new(&world)?;
        match program.as_str() {
            "move" => moves(&kernels),
            "values" => values(&kernels),
            "signals" => signals(&kernels),
            "fences" => fences(&kernels),
            "flushes" => flushes(&kernels),
            "left-behind" => left_behind(&kernels),
            "one-quiet" => one_quiet(&kernels),
            "count" => count(&kernels),
            "lanes" => lanes(&kernels).map(|_| ()),
            "lanes-together" => lanes_together(&kernels),
            "every-atomic" => every_atomic(&kernels),
            "several" => several(&kernels),
            "collectives" => collectives::collectives(&kernels),
            "sequence" => collectives::sequence(&kernels),
            "teams" => collectives::teams(&kernels),
            "many-teams" => collectives::many_teams(&kernels),
            "queries" => queries(&kernels),
            "transfers-on-streams" => on_streams::transfers(&kernels),
            "collectives-on-streams" => on_streams::collectives(&kernels),
            "folds-on-streams" => on_streams::folds(&kernels),
            "graph" => on_streams::graph(&kernels),
            "bad" => bad(&kernels),
            "deadline" => deadline(kernels),
            "no-state" => no_state(&kernels),
            "lost" => return lost(&kernels),
            "lost-on-streams" => return on_streams::lost(&kernels),
            other => panic!("no program {other}"),
        }?;
        world.barrier_all()?;
        world.finalize()
    });
    result.unwrap_or_else(|error| {
        say(format_args!("error {error}"));
        panic!("{program}: {error}");
    });
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (seed * 89 + at * 7 + 1) as u8).collect()
}

/// Puts from and gets into memory that is not symmetric, of more than one piece of a copy by the host.
fn beside_the_heap(kernels: &Kernels<'_>) -> Result<()> {
    const LEN: usize = (600 << 10) + 3;
    let world = kernels.world;
    let (me, n) = (world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    let pinned = Pinned::new(world.gpu_context().unwrap(), LEN, &Default::default()).unwrap();
    // SAFETY: as many bytes, which no kernel uses when this does.
    let own = || unsafe { std::slice::from_raw_parts_mut(pinned.as_ptr(), LEN) };
    let (dest, source) = (zeroed::<u8>(world, LEN)?, filled(world, &bytes(me, LEN))?);
    own().copy_from_slice(&bytes(me + 7, LEN));
    let args = |call: u32, dest, source| {
        let args = Args::new().with(call).with(0_u32).with(dest);
        args.with(source).with(LEN as u64).with(right as i32)
    };
    kernels.run(
        c"move",
        1,
        1,
        args(0, kernels.at(dest), pinned.device_ptr()),
    )?;
    world.barrier_all()?;
    assert_eq!(read(world, dest)?, bytes(left + 7, LEN));
    kernels.run(
        c"move",
        1,
        1,
        args(2, pinned.device_ptr(), kernels.at(source)),
    )?;
    assert_eq!(own(), bytes(right, LEN));
    Ok(())
}

/// Every scope, alignment and a few lengths, of put and get; strided calls.
fn moves(kernels: &Kernels<'_>) -> Result<()> {
    const ROOM: usize = 5000;
    let world = kernels.world;
    let (me, n) = (world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
    let source = filled(world, &bytes(me, ROOM))?;
    let dest = zeroed::<u8>(world, ROOM)?;
    for (scope, threads) in SCOPES {
        for (call, is_get) in
            [0_u32, 1, 2, 3, 6, 7, 8, 9].map(|call| (call, matches!(call, 2 | 3 | 8 | 9)))
        {
            for (to, from, len) in [
                (16, 16, 4096),
                (1, 16, 1),
                (3, 8, 77),
                (5, 5, 300),
                (8, 1, 8),
                (24, 40, 8),
                (7, 9, 0),
            ] {
                world.put(dest, &[0_u8; ROOM], me)?;
                world.barrier_all()?;
                let args = Args::new()
                    .with(call)
                    .with(scope)
                    .with(kernels.at(dest.range(to..)?))
                    .with(kernels.at(source.range(from..)?))
                    .with(len as u64)
                    .with(right as i32);
                kernels.run(c"move", 1, threads, args)?;
                world.barrier_all()?;
                let seen = read(world, dest)?;
                let of = if is_get { right } else { left };
                let mut wanted = vec![0; ROOM];
                wanted[to..to + len].copy_from_slice(&bytes(of, ROOM)[from..from + len]);
                assert_eq!(
                    seen, wanted,
                    "call {call}, scope {scope}, {len} bytes from {from} to {to}"
                );
                world.barrier_all()?;
            }
        }
        for call in [4_u32, 5] {
            let (dest, source) = (
                zeroed::<u32>(world, 64)?,
                filled(world, &[me as u32 + 5; 64])?,
            );
            let args = Args::new()
                .with(call)
                .with(scope)
                .with(kernels.at(dest))
                .with(kernels.at(source))
                .with(11_u64)
                .with(right as i32);
            kernels.run(c"move", 1, threads, args)?;
            world.barrier_all()?;
            let of = if call == 5 { right } else { left } as u32 + 5;
            let wanted: Vec<u32> = (0..64)
                .map(|i| if i % 3 == 0 && i < 33 { of } else { 0 })
                .collect();
            assert_eq!(read(world, dest)?, wanted);
            world.barrier_all()?;
        }
    }
    beside_the_heap(kernels)
}

fn values(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (words, seen) = (zeroed::<u64>(world, 4)?, zeroed::<u64>(world, 4)?);
    let value = 0x0102_0304_0506_0708_u64;
    let right = (world.my_pe() + 1) % world.n_pes();
    let args = Args::new()
        .with(kernels.at(words))
        .with(kernels.at(seen))
        .with(value)
        .with(right as i32);
    kernels.run(c"values", 1, 1, args)?;
    world.barrier_all()?;
    let float = value as f32;
    assert_eq!(
        read(world, words)?,
        [8, 0x0708, u64::from(float.to_bits()), value]
    );
    assert_eq!(read(world, seen)?, [8, 0x0708, float as u64, value]);
    Ok(())
}

fn signals(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    for (scope, threads) in SCOPES {
        for how in 0..=4_u32 {
            for len in [1_usize, 3, 600] {
                let (data, out) = (zeroed::<u64>(world, len)?, zeroed::<u64>(world, len)?);
                let (signal, wrong) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 1)?);
                let args = Args::new()
                    .with(scope)
                    .with(how)
                    .with(kernels.at(data))
                    .with(kernels.at(out))
                    .with(kernels.at(signal))
                    .with(len as u64)
                    .with(20_u64)
                    .with(kernels.at(wrong));
                kernels.run(c"signals", 1, threads, args)?;
                none_wrong(world, wrong)?;
                assert_eq!(read(world, signal)?, [20]);
            }
        }
    }
    Ok(())
}

fn fences(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    for len in [1_usize, 40] {
        let (data, source) = (zeroed::<u64>(world, len + 1)?, zeroed::<u64>(world, len)?);
        let (flag, wrong) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 1)?);
        let args = Args::new()
            .with(kernels.at(data))
            .with(kernels.at(flag))
            .with(kernels.at(source))
            .with(len as u64)
            .with(30_u64)
            .with(kernels.at(wrong));
        kernels.run(c"fences", 1, 4, args)?;
        none_wrong(world, wrong)?;
    }
    Ok(())
}

fn flushes(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (me, n) = (world.my_pe(), world.n_pes());
    let left = ((me + n - 1) % n) as u64;
    for len in [1_usize, 40, 5000] {
        let values =
            |pe: u64| -> Vec<u64> { (0..len as u64).map(|at| pe * 100_000 + at).collect() };
        let (data, source) = (
            zeroed::<u64>(world, len)?,
            filled(world, &values(me as u64))?,
        );
        let args = Args::new()
            .with(kernels.at(data))
            .with(kernels.at(source))
            .with(len as u64)
            .with(((me + 1) % n) as i32);
        kernels.run(c"flushes", 1, 4, args)?;
        world.barrier_all()?;
        assert_eq!(read(world, data)?, values(left));
    }
    Ok(())
}

/// Kernels end with nonblocking puts under way. A quiet of the host completes them, and so does a barrier (G4).
fn left_behind(kernels: &Kernels<'_>) -> Result<()> {
    const LEN: usize = 3000;
    let world = kernels.world;
    let (me, n) = (world.my_pe(), world.n_pes());
    let (right, left) = ((me + 1) % n, ((me + n - 1) % n) as u64);
    let (data, source) = (zeroed::<u64>(world, LEN)?, zeroed::<u64>(world, LEN)?);
    let told = world.alloc_zeroed::<u64>(1)?;
    for round in 1..=20_u64 {
        let values = |pe: u64| vec![pe * 1000 + round; LEN];
        world.put(source, &values(me as u64), me)?;
        world.quiet()?;
        let args = Args::new()
            .with(kernels.at(data))
            .with(kernels.at(source))
            .with(LEN as u64)
            .with(right as i32);
        kernels.run(c"leaves_behind", 1, 4, args)?;
        if round % 2 == 0 {
            world.quiet()?;
            world.p(told, round, right)?;
            world.wait_until(told, oxshmem::Cmp::Eq, round)?;
        } else {
            world.barrier_all()?;
        }
        assert_eq!(read(world, data)?, values(left), "round {round}");
        world.barrier_all()?;
    }
    Ok(())
}

fn one_quiet(kernels: &Kernels<'_>) -> Result<()> {
    const BLOCKS: usize = 6;
    const EACH: usize = 50;
    let world = kernels.world;
    let (me, n) = (world.my_pe(), world.n_pes());
    let own: Vec<u64> = (0..BLOCKS * EACH)
        .map(|at| (me * 1000 + at) as u64)
        .collect();
    let (data, source) = (zeroed::<u64>(world, own.len())?, filled(world, &own)?);
    let (arrived, flag) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 1)?);
    let args = Args::new()
        .with(kernels.at(data))
        .with(kernels.at(source))
        .with(EACH as u64)
        .with(kernels.at(arrived))
        .with(kernels.at(flag))
        .with(((me + 1) % n) as i32);
    kernels.run(c"one_quiet", BLOCKS as u32, 3, args)?;
    world.barrier_all()?;
    assert_eq!(read(world, flag)?, [1]);
    let left = (me + n - 1) % n;
    let wanted: Vec<u64> = (0..BLOCKS * EACH)
        .map(|at| (left * 1000 + at) as u64)
        .collect();
    assert_eq!(read(world, data)?, wanted);
    Ok(())
}

/// All lanes make calls at once. Gives how often some were at one place together.
fn lanes(kernels: &Kernels<'_>) -> Result<u64> {
    const ROUNDS: u64 = 12;
    const THREADS: u64 = 2 * 40;
    let world = kernels.world;
    let (me, n) = (world.my_pe(), world.n_pes());
    let (words, narrow) = (zeroed::<u64>(world, 512)?, zeroed::<u16>(world, 128)?);
    let (counter, wrong) = (zeroed::<u64>(world, 2)?, zeroed::<u64>(world, 1)?);
    let met = zeroed::<u64>(world, 1)?;
    world.barrier_all()?;
    let args = Args::new()
        .with(kernels.at(words))
        .with(kernels.at(narrow))
        .with(kernels.at(counter))
        .with(ROUNDS)
        .with(((me + 1) % n) as i32)
        .with(kernels.at(wrong))
        .with(kernels.at(met));
    kernels.run(c"lanes", 2, (THREADS / 2) as u32, args)?;
    world.barrier_all()?;
    none_wrong(world, wrong)?;
    let some = (0..THREADS).filter(|thread| thread % 3 == 1);
    assert_eq!(
        read(world, counter)?,
        [ROUNDS * THREADS, ROUNDS * some.sum::<u64>()]
    );
    let last = |thread: u64| ROUNDS * 1000 + thread;
    let all = read(world, words)?;
    for thread in 0..THREADS {
        assert_eq!(all[thread as usize], last(thread));
        assert_eq!(all[128 + 2 * thread as usize], !last(thread));
    }
    let halves: Vec<u16> = (0..THREADS).map(|thread| last(thread) as u16).collect();
    assert_eq!(read(world, narrow.range(3..3 + halves.len())?)?, halves);
    Ok(read(world, met)?[0])
}

fn lanes_together(kernels: &Kernels<'_>) -> Result<()> {
    assert_ne!(lanes(kernels)?, 0, "no lanes came together");
    Ok(())
}

/// Kernels of all PEs and their hosts count on PE 0's words at once: 50 times, or as often as `OXSHMEM_TEST_TIMES` says, on a machine
/// where each request takes a turn of the scheduler. Compare-and-swaps that lose are made again, so that the work grows as its square.
fn count(kernels: &Kernels<'_>) -> Result<()> {
    const THREADS: u64 = 2 * 4;
    let times = std::env::var("OXSHMEM_TEST_TIMES");
    let times: u64 = times.map_or(50, |times| times.parse().expect("a number"));
    let world = kernels.world;
    let n = world.n_pes() as u64;
    let (words, narrow) = (zeroed::<u64>(world, 5)?, zeroed::<u32>(world, 1)?);
    let args = Args::new()
        .with(kernels.at(words))
        .with(kernels.at(narrow))
        .with(times)
        .with(0_i32);
    kernels.launch(c"count", 2, 4, args);
    for _ in 0..times {
        world.add(words.at(0)?, 3, 0)?;
        world.fetch_add(narrow.at(0)?, 1, 0)?;
    }
    kernels.synchronize();
    kernels.library.check()?;
    world.barrier_all()?;
    let all = n * THREADS * times;
    if world.my_pe() == 0 {
        assert_eq!(
            read(world, words)?,
            [3 * (all + n * times), 5 * all, all, 7 * all, 0]
        );
        assert_eq!(read(world, narrow)?, [(all + n * times) as u32]);
    }
    Ok(())
}

fn every_atomic(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (words, seen) = (zeroed::<u64>(world, 3)?, zeroed::<u64>(world, 12)?);
    let right = (world.my_pe() + 1) % world.n_pes();
    let args = Args::new()
        .with(kernels.at(words))
        .with(kernels.at(seen))
        .with(right as i32);
    kernels.run(c"every_atomic", 1, 1, args)?;
    assert_eq!(
        read(world, seen)?,
        [
            0xf0,
            0xf0,
            0xff,
            0x3c,
            0x3f,
            0x7e,
            0x7e,
            1,
            5,
            1,
            8 << 16,
            1
        ]
    );
    Ok(())
}

fn several(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (me, n) = (world.my_pe(), world.n_pes());
    let words = zeroed::<i64>(world, 4)?;
    let status = filled(world, &[0_i32, 1, 0, 0])?;
    let values = filled(world, &[-1_i64, 0, -3, -4])?;
    let (indices, seen) = (zeroed::<u64>(world, 12)?, zeroed::<u64>(world, 9)?);
    let args = Args::new()
        .with(kernels.at(words))
        .with(kernels.at(status))
        .with(kernels.at(values))
        .with(kernels.at(indices))
        .with(kernels.at(seen));
    kernels.launch(c"several", 1, 1, args);
    // The first tests see zeros: the words are set after that.
    let since = Instant::now();
    while read(world, seen)?[1] == 0 && since.elapsed() < DEADLINE {
        std::thread::sleep(Duration::from_millis(1));
    }
    world.barrier_all()?;
    for i in [3_usize, 0, 2] {
        world.set(words.at(i)?, -(i as i64 + 1), (me + 1) % n)?;
    }
    kernels.synchronize();
    kernels.library.check()?;
    assert_eq!(read(world, seen)?, [1, 1, 0, 2, 3, 1, 0, 1, 0b1101]);
    assert_eq!(read(world, indices)?[..7], [2, 3, 0, 0, 0, 2, 3]);
    let seen = zeroed::<u64>(world, 7)?;
    let args = Args::new()
        .with(kernels.at(words))
        .with(kernels.at(status))
        .with(kernels.at(values))
        .with(kernels.at(indices))
        .with(kernels.at(seen));
    kernels.run(c"several_more", 1, 1, args)?;
    assert_eq!(read(world, seen)?, [1, 1, 1, 0, 2, 3, 0b1101]);
    assert_eq!(read(world, indices)?[..5], [2, 3, 0, 2, 3]);
    Ok(())
}

fn queries(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let (own, seen) = (zeroed::<u64>(world, 1)?, zeroed::<u64>(world, 8)?);
    let args = Args::new()
        .with(kernels.at(own))
        .with(kernels.at(seen))
        .with(-1_i32);
    kernels.run(c"queries", 1, 1, args)?;
    world.barrier_all()?;
    let (me, n) = (world.my_pe() as u64, world.n_pes() as u64);
    assert_eq!(read(world, seen)?, [me, n, 1, 1, 1, 0, 0, 0]);
    assert_eq!(read(world, own)?, [77 + (me + n - 1) % n]);
    Ok(())
}

/// Each kind of bad call is told with its thread; waits of the same kernels end, and the next kernels work.
fn bad(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let word = zeroed::<u64>(world, 2)?;
    let beside = Pinned::new(world.gpu_context().unwrap(), 64, &Default::default()).unwrap();
    for (what, words) in [
        (0_u32, "p in a kernel: there is no PE 2"),
        (1, "put in a kernel: there is no PE -1"),
        (2, "an atomic in a kernel: 8 bytes at"),
        (3, "a wait in a kernel: the address"),
        (4, "put_signal in a kernel: 8 bytes at"),
        (5, "barrier or sync in a kernel: there is no team -1"),
        (6, "iput in a kernel: the stride 0 is less than 1"),
        (
            7,
            "broadcast in a kernel: member 2, the root, does not exist",
        ),
    ] {
        let args = Args::new()
            .with(what)
            .with(kernels.at(word))
            .with(beside.device_ptr())
            .with(kernels.at(word));
        let told = kernels.run(c"bad", 2, 3, args).unwrap_err().to_string();
        assert!(told.contains(words), "{what}: {told}");
        assert!(told.contains("(block 1,0,0, thread 2,0,0)"), "{told}");
        // A wait that comes after it ends at once.
        let never = Args::new()
            .with(kernels.at(word))
            .with(kernels.at(word.at(1)?));
        kernels.launch(c"wait_for_ever", 1, 1, never);
        kernels.synchronize();
        kernels.library.resume();
        kernels.library.check()?;
    }
    Ok(())
}

fn deadline(mut kernels: Kernels<'_>) -> Result<()> {
    let word = zeroed::<u64>(kernels.world, 2)?;
    kernels
        .library
        .set_deadline(Some(Duration::from_millis(50)));
    kernels.prepare()?;
    let args = Args::new()
        .with(kernels.at(word))
        .with(kernels.at(word.at(1)?));
    let told = kernels.run(c"wait_for_ever", 1, 1, args).unwrap_err();
    assert!(told.to_string().contains("longer than it may"), "{told}");
    assert_eq!(read(kernels.world, word)?, [0, 1]);
    kernels.library.resume();
    kernels.library.check()
}

fn no_state(kernels: &Kernels<'_>) -> Result<()> {
    let head = ".version 8.0\n.target sm_70\n.address_size 64\n";
    let context = kernels.world.gpu_context().unwrap();
    let without = Module::from_ptx(context, head).unwrap();
    let told = kernels.library.prepare(&without).unwrap_err().to_string();
    assert!(
        told.contains("oxshmem_state") && told.contains("oxshmem.cuh"),
        "{told}"
    );
    // Another length, and the same one; no version, and another one.
    for bytes in [64, kernels.state_bytes()] {
        let other = format!("{head}.visible .const .align 8 .b8 oxshmem_state[{bytes}];\n");
        let other = Module::from_ptx(context, &other).unwrap();
        for (byte, version) in [(0, "version 0,"), (7, "version 1799,")] {
            kernels.fill_state(&other, byte);
            let told = kernels.library.prepare(&other).unwrap_err().to_string();
            let is_named = told.contains("another version") && told.contains(version);
            assert!(is_named, "{told}");
        }
    }
    Ok(())
}

/// A kernel waits for what the lost PE would have sent.
fn lost(kernels: &Kernels<'_>) -> Result<()> {
    let world = kernels.world;
    let word = zeroed::<u64>(world, 2)?;
    let args = Args::new()
        .with(kernels.at(word))
        .with(kernels.at(word.at(1)?));
    kernels.launch(c"wait_for_ever", 2, 3, args);
    say("ready");
    if world.my_pe() == 2 {
        crate::job::stay();
        return Ok(());
    }
    kernels.synchronize();
    match kernels.library.check() {
        Err(Error::PeerLost { pe: 2, .. }) => {}
        other => panic!("{other:?} though PE 2 is lost"),
    }
    assert_eq!(world.acknowledge_lost(), [2]);
    // The other PE is still to see that PE 2 is the one that was lost.
    say("told");
    crate::job::stay();
    Ok(())
}
