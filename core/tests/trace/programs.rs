//! The calls that are traced, and the entry point of this test program when another test starts it as a PE.

use std::env;
use std::time::Duration;

use oxshmem::launch::Launch;
use oxshmem::{Cmp, Result, World};

use crate::job::{PROGRAM, arguments, say};

/// PEs of a job that is launched.
pub const LAUNCHED: u32 = 4;

/// How often [`calls`] makes each call, and its end.
pub const CALLS: [(&str, usize); 8] = [
    ("alloc_zeroed", 2),
    ("barrier_all", 5),
    ("broadcast", 1),
    ("reduce", 2),
    ("set_lock", 3),
    ("clear_lock", 3),
    ("free", 1),
    ("finalize", 1),
];

/// Longer than any wait that no trace shows.
pub fn be_late() {
    std::thread::sleep(Duration::from_millis(30));
}

/// Calls in known numbers; the last PE is late once.
pub fn calls(world: &World) -> Result<()> {
    let one = world.alloc_zeroed::<u64>(64)?;
    let lock = world.alloc_zeroed::<u64>(1)?;
    for round in 0..5 {
        if round == 2 && world.my_pe() + 1 == world.n_pes() {
            be_late();
        }
        world.barrier_all()?;
    }
    world.broadcast(one, one, 0)?;
    world.sum_reduce(one, one)?;
    world.sum_reduce(one, one)?;
    for _ in 0..3 {
        world.set_lock(lock)?;
        world.clear_lock(lock)?;
    }
    world.free(one)
}

/// Until another PE is gone.
fn until_killed(world: &World) -> Result<()> {
    for round in 0.. {
        world.barrier_all()?;
        if round == 100 {
            say("at work");
        }
    }
    Ok(())
}

/// Waits for what does not come.
fn for_ever(world: &World) -> Result<()> {
    let word = world.alloc_zeroed::<u64>(1)?;
    world.barrier_all()?;
    world.wait_until(word, Cmp::Ne, 0)
}

/// A PE of another test's job.
#[test]
#[ignore = "other tests start it"]
fn pe() {
    let Ok(program) = env::var(PROGRAM) else {
        return;
    };
    let run = |world: World| {
        match program.as_str() {
            "calls" => calls(&world)?,
            "until-killed" => until_killed(&world)?,
            "for-ever" => for_ever(&world)?,
            _ => {}
        }
        world.finalize()
    };
    World::init().and_then(run).unwrap_or_else(|error| {
        say(format_args!("error {error}"));
        panic!("{program}: {error}");
    });
}

/// The launcher of another test's job.
#[test]
#[ignore = "other tests start it"]
fn launcher() {
    if env::var(PROGRAM).is_err() {
        return;
    }
    let mut launch = Launch::new(env::current_exe().unwrap(), LAUNCHED);
    launch.args = arguments("programs::pe").map(Into::into).to_vec();
    let outcome = launch.run().unwrap();
    std::process::exit(outcome.status);
}
