//! A token that goes round all PEs until a file is there. PE 0 says how many laps it has made, at most every 50 ms, so
//! that a script sees whether the ring still goes.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use oxshmem::{Cmp, SignalOp, World};

use crate::outcome::{Outcome, ensure};

/// The time between two lines of PE 0, at least.
const TOLD: Duration = Duration::from_millis(50);

pub fn main(until: &str) -> Outcome {
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let next = (me + 1) % n;
    // The number of hops that the token has made, and whether this lap is the last.
    let token = world.alloc_zeroed::<u64>(2)?;
    let signal = world.alloc_zeroed::<u64>(1)?;
    let mut laps = 0;
    let mut told = Instant::now();
    let mut is_last = false;
    loop {
        // PE 0 makes the token; after that it arrives there once a lap, as at every PE.
        let arrivals = if me == 0 { laps } else { laps + 1 };
        world.signal_wait_until(signal, Cmp::Ge, arrivals)?;
        let mut had = [0; 2];
        world.read(&mut had, token)?;
        let hops = laps * n as u64 + me as u64;
        ensure(had[0] == hops, || {
            format!("PE {me}, lap {laps}: {} hops, not {hops}", had[0])
        })?;
        if me == 0 && is_last {
            break;
        }
        if me == 0 && told.elapsed() >= TOLD {
            told = Instant::now();
            println!("lap {laps}");
            std::io::stdout().flush()?;
            is_last = Path::new(until).exists();
        }
        is_last = is_last || had[1] == 1;
        let after = [had[0] + 1, is_last.into()];
        world.put_signal(token, &after, signal, 1, SignalOp::Add, next)?;
        laps += 1;
        if me != 0 && is_last {
            break;
        }
    }
    world.free(signal)?;
    world.free(token)?;
    world.finalize()?;
    if me == 0 {
        println!("{laps} laps, and every hop was there");
    }
    Ok(())
}
