//! The entry points of this test program when another test starts it as a launcher or a PE.

use std::env;

use oxshmem::launch::Launch;
use oxshmem::{Cmp, Result, World};

use crate::job::{PROGRAM, arguments};

/// PEs of a job that is launched.
const LAUNCHED: u32 = 3;

/// Each PE waits for another, in a way of its own.
fn hangs(world: &World) -> Result<()> {
    let word = world.alloc_zeroed::<u64>(1)?;
    world.barrier_all()?;
    match world.my_pe() {
        0 => {
            eprintln!("all are here");
            world.wait_until(word, Cmp::Ne, 0)
        }
        1 => world.signal_wait_until(word, Cmp::Ne, 0).map(drop),
        _ => world.barrier_all(),
    }
}

/// A PE of another test's job.
#[test]
#[ignore = "other tests start it"]
fn pe() {
    let Ok(program) = env::var(PROGRAM) else {
        return;
    };
    if program == "odd" && env::var("OXSHMEM_RANK").as_deref() == Ok("1") {
        // SAFETY: no other thread of this process reads the environment yet.
        unsafe { env::set_var("OXSHMEM_STATS", "1") };
    }
    let run = |world: World| {
        if program == "hangs" {
            hangs(&world)?;
        }
        world.finalize()
    };
    World::init()
        .and_then(run)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// The launcher of another test's job.
#[test]
#[ignore = "other tests start it"]
fn launcher() {
    if env::var(PROGRAM).is_err() {
        return;
    }
    eprintln!(
        "launcher thread {}",
        rustix::thread::gettid().as_raw_nonzero()
    );
    let mut launch = Launch::new(env::current_exe().unwrap(), LAUNCHED);
    launch.args = arguments("programs::pe").map(Into::into).to_vec();
    let outcome = launch.run().unwrap();
    std::process::exit(outcome.status);
}
