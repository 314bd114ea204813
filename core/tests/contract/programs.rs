//! The entry points of this test program when another test starts it as a PE or as a launcher.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use oxshmem::launch::Launch;
use oxshmem::{Cmp, Error, Result, SignalOp, World};

use crate::CASES;
use crate::job::{PROGRAM, arguments, is_lost, say, stay};
use crate::setting::{Case, Path, Pe, Setting, patterns, seed};

/// A PE of another test's job.
#[test]
#[ignore = "other tests start it"]
fn pe() {
    let Ok(program) = env::var(PROGRAM) else {
        return;
    };
    let result = match program.as_str() {
        "cases" => cases(Setting::new(Path::Mapped)),
        "cases-checked" => cases(Setting::new(Path::Checked)),
        "cases-weak" => cases(Setting::new(Path::Named)),
        "cases-hosts" => cases(Setting::new(Path::Hosts)),
        "cases-hosts-relaxed" => cases(Setting::relaxed(Path::Hosts)),
        "crowd" => crate::crowd::in_a_process(),
        "join" => join(),
        "limit" => limit(),
        "join-twice" => join_twice(),
        "cannot-commit" => cannot_commit(),
        "staged-puts" => crate::gpu_staged_losses::put_without_end(),
        "staged-lost" => crate::gpu_staged_losses::put_until_lost(),
        "gpu-collectives" => crate::gpu_collectives::collect_until_lost(),
        other => match other.strip_prefix("leave ") {
            Some(way) => crate::goodbye::leave(way),
            None => survive(other),
        },
    };
    result.unwrap_or_else(|error| {
        say(format_args!("error {error}"));
        panic!("{program}: {error}");
    });
}

/// The launcher of another test's job: `cases:4` runs 4 PEs.
#[test]
#[ignore = "other tests start it"]
fn launcher() {
    let Ok(program) = env::var(PROGRAM) else {
        return;
    };
    let (program, n) = program.split_once(':').expect("program:pes");
    let mut launch = Launch::new(env::current_exe().unwrap(), n.parse().unwrap());
    launch.args = arguments("programs::pe").map(Into::into).to_vec();
    launch.env.push((PROGRAM.into(), program.into()));
    if program == "cases-weak" {
        let named = [
            ("TRANSPORT", "weak(loopback)".into()),
            ("SEED", seed().to_string()),
        ];
        let variables = named.map(|(name, value)| (format!("OXSHMEM_{name}").into(), value.into()));
        launch.env.extend(variables);
    }
    let outcome = launch.run().unwrap();
    assert_eq!(outcome.status, 0, "{outcome:?}");
}

/// Parts of names, separated by commas: runs the cases that have one of them in theirs, not all. Each part
/// is in the name of some case.
pub const ONLY: &str = "CONTRACT_ONLY";

/// The cases that `only` chooses; or which part of it chooses none.
fn chosen(only: &str) -> std::result::Result<Vec<&'static (&'static str, Case)>, &str> {
    let parts = || only.split(',');
    let named = |part: &str| CASES.iter().any(|(name, _)| name.contains(part));
    match parts().find(|part| !named(part)) {
        Some(part) => Err(part),
        None => {
            let has_one = |name: &str| parts().any(|part| name.contains(part));
            Ok(CASES.iter().filter(|(name, _)| has_one(name)).collect())
        }
    }
}

#[test]
fn each_part_of_what_is_chosen_is_a_cases() {
    let (first, _) = CASES[0];
    assert_eq!(chosen("").map(|all| all.len()), Ok(CASES.len()));
    assert_eq!(chosen(first).map(|one| one.len()), Ok(1));
    let absent = format!("{first},no_such_case");
    assert_eq!(chosen(&absent).err(), Some("no_such_case"));
}

/// Every case of the contract, in one world.
fn cases(setting: Setting) -> Result<()> {
    let only = env::var(ONLY).unwrap_or_default();
    let chosen = chosen(&only).unwrap_or_else(|part| panic!("{ONLY}: no case is called {part}"));
    let world = setting.builder().join()?;
    let pe = Pe {
        world: &world,
        setting,
    };
    let me = world.my_pe();
    let fresh = || -> Result<u64> {
        let block = world.alloc::<u8>(1)?;
        world.free(block)?;
        Ok(block.offset())
    };
    let first = fresh()?;
    let mut held = 0;
    for (name, case) in chosen {
        match catch_unwind(AssertUnwindSafe(|| case(&pe))) {
            Ok(Ok(())) => {
                held += 1;
                say(format_args!("{me} {name}"));
            }
            Ok(Err(error)) => panic!("PE {me}: {name}: {error}"),
            Err(panic) => {
                eprintln!("PE {me}: {name} panicked");
                std::panic::resume_unwind(panic)
            }
        }
        assert_eq!(fresh()?, first, "{name} frees what it allocates");
    }
    world.finalize()?;
    say(format_args!("{me} all {held} cases"));
    Ok(())
}

fn join() -> Result<()> {
    let world = World::init()?;
    say(format_args!(
        "joined as {} of {}",
        world.my_pe(),
        world.n_pes()
    ));
    world.finalize()
}

fn limit() -> Result<()> {
    let world = World::init()?;
    say(world.heap_limit());
    world.finalize()
}

fn join_twice() -> Result<()> {
    let world = World::init()?;
    let again = World::init();
    assert!(matches!(again, Err(Error::AlreadyJoined)), "{again:?}");
    world.barrier_all()?;
    world.finalize()?;
    let again = World::init();
    assert!(matches!(again, Err(Error::AlreadyJoined)), "{again:?}");
    Ok(())
}

/// M13: one PE alone cannot get memory.
fn cannot_commit() -> Result<()> {
    use std::os::fd::{AsRawFd, BorrowedFd};
    const BYTES: usize = 8 << 20;
    let world = World::builder().heap_limit(32 << 20).join()?;
    let me = world.my_pe();
    let keep = world.alloc::<u64>(100)?;
    world.write(keep, &patterns(me, 100))?;
    world.barrier_all()?;
    // Its heap's descriptor is that of another file for a while.
    let mut kept = Vec::new();
    if me == 1 {
        let other = std::fs::File::open("/dev/null").unwrap();
        for entry in std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .map_while(Result::ok)
        {
            let Ok(target) = std::fs::read_link(entry.path()) else {
                continue;
            };
            if target.to_string_lossy().starts_with("/memfd:") {
                let fd: i32 = entry.file_name().to_string_lossy().parse().unwrap();
                // SAFETY: it was open a moment ago, and no other thread closes it.
                let memfd = unsafe { BorrowedFd::borrow_raw(fd) };
                kept.push((fd, memfd.try_clone_to_owned().unwrap()));
                replace(fd, other.as_raw_fd());
            }
        }
        assert!(!kept.is_empty(), "a memfd is this PE's heap");
    }
    for _ in 0..2 {
        match world.alloc::<u8>(BYTES) {
            Err(Error::OutOfMemory { why, .. }) => {
                assert!(me == 1 || why.contains("PE 1"), "{why}");
            }
            other => panic!("PE {me}: {other:?}"),
        }
        // Neither has a block that is in reach of the memory there is.
    }
    for (fd, memfd) in &kept {
        replace(*fd, memfd.as_raw_fd());
    }
    world.barrier_all()?;
    let block = world.alloc::<u8>(BYTES)?;
    let probe = world.alloc::<u64>(1)?;
    world.p(probe, block.offset(), (me + 1) % world.n_pes())?;
    world.p(block.at(BYTES - 1)?, 7, (me + 1) % world.n_pes())?;
    world.barrier_all()?;
    assert_eq!(
        world.g(probe, me)?,
        block.offset(),
        "all PEs' heaps are alike"
    );
    assert_eq!(world.g(block.at(BYTES - 1)?, me)?, 7);
    let mut kept = [0; 100];
    world.read(&mut kept, keep)?;
    assert_eq!(kept, *patterns(me, 100));
    for result in [world.free(block), world.free(probe), world.free(keep)] {
        result?;
    }
    world.finalize()
}

fn replace(fd: i32, with: i32) {
    // SAFETY: both are open; nothing of this test depends on which file `fd` is meanwhile but the
    // heap's commit, which is what fails.
    assert_eq!(unsafe { libc::dup2(with, fd) }, fd);
}

/// The last PE (or the first, for names that end so) is killed while the others are in a call.
fn survive(program: &str) -> Result<()> {
    let (call, victim) = program.split_once('/').expect("call/victim");
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let victim = if victim == "first" { 0 } else { n - 1 };
    let x = world.alloc_zeroed::<u64>(n)?;
    // Words apart from `x`: a broadcast that the root published before it saw the loss may still change `x`.
    let flags = world.alloc_zeroed::<u64>(n)?;
    world.barrier_all()?;
    say("ready");
    if me == victim {
        stay();
        return Ok(());
    }
    let lost = match call {
        "barrier" => world.barrier_all(),
        "sync" => world.sync_all(),
        "alloc" => world.alloc::<u8>(1000).map(drop),
        "broadcast" => world.broadcast(x, x, victim),
        // A root need not wait in each broadcast.
        "broadcasts" => loop {
            if let Err(error) = world.broadcast(x, x, 0) {
                break Err(error);
            }
        },
        "sum" => world.sum_reduce(x, x),
        "wait" => world.wait_until(x, Cmp::Eq, 1),
        "wait-any" => world.wait_until_any(x, None, Cmp::Eq, 1).map(drop),
        "wait-all" => world.wait_until_all(x, None, Cmp::Ne, 0),
        "signal" => world.signal_wait_until(x, Cmp::Eq, 1).map(drop),
        "put" => loop {
            if let Err(error) = world.p(x.at(me)?, 1, victim).and_then(|()| world.quiet()) {
                break Err(error);
            }
            std::thread::yield_now();
        },
        "fetch" => loop {
            if let Err(error) = world.fetch_add(x.at(me)?, 1, victim) {
                break Err(error);
            }
            std::thread::yield_now();
        },
        other => panic!("no program {other}"),
    };
    let Err(Error::PeerLost { pe, .. }) = lost else {
        panic!("PE {me} in {call}: {lost:?}")
    };
    if victim == 0 {
        // With it went the rendezvous, so every peer counts as lost.
        say("survived");
        stay();
        return Ok(());
    }
    assert_eq!(pe, victim);
    assert!(!world.pe_accessible(victim) && world.ptr(x, victim).is_none());
    is_lost(world.p(x, 1, victim), victim);
    is_lost(world.g(x, victim).map(drop), victim);
    is_lost(world.fetch_inc(x, victim).map(drop), victim);
    is_lost(
        world.put_signal(x, &[1], x.at(1)?, 1, SignalOp::Set, victim),
        victim,
    );
    is_lost(world.scope(|s| s.put_nbi(x, &[1], victim)), victim);
    is_lost(world.wait_until(x.at(me)?, Cmp::Eq, 99), victim);
    assert_eq!(world.acknowledge_lost(), [victim]);
    // The survivors go on: each tells each, and waits for each.
    for to in (0..n).filter(|to| *to != victim) {
        world.put_signal(x.range(..0)?, &[], flags.at(me)?, 100, SignalOp::Set, to)?;
    }
    for from in (0..n).filter(|from| *from != victim) {
        world.wait_until(flags.at(from)?, Cmp::Eq, 100)?;
    }
    world.quiet()?;
    is_lost(world.barrier_all(), victim);
    is_lost(world.p(x, 1, victim), victim);
    say("survived");
    stay();
    Ok(())
}
