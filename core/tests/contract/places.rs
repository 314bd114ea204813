//! Errors name the line where the program made the call.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oxshmem::testing::{spmd, spmd_with};
use oxshmem::{Cmp, ContextOptions, Fold, Result, SignalOp, World};

/// That an error begins with the call's name and its place in this file.
fn is_named<R: Debug>(call: &str, line: u32, made: Result<R>) {
    let told = made.unwrap_err().to_string();
    let named = format!("{call} at {}:{line}: ", file!());
    assert!(
        told.starts_with(&named),
        "{named} is not how it begins: {told}"
    );
}

/// A call on one line that fails.
macro_rules! fails {
    ($call:literal, $made:expr) => {
        is_named($call, line!(), $made)
    };
}

#[test]
#[rustfmt::skip]
fn an_error_names_the_line_of_the_call() {
    let done = spmd(1, |world| {
        let (x, y) = (world.alloc::<u64>(8)?, world.alloc::<u64>(4)?);
        let signal = world.alloc_zeroed::<u64>(1)?;
        fails!("at", x.at(8));
        fails!("range", x.range(3..9));
        fails!("cast", x.cast::<[u64; 3]>());
        fails!("put", world.put(x, &[0; 9], 0));
        fails!("put", world.put(x, &[0; 2], 9));
        fails!("get", world.get(&mut [0; 9], x, 0));
        fails!("p", world.p(x, 1, 9));
        fails!("g", world.g(x, 9));
        fails!("write", world.write(x, &[0; 9]));
        fails!("read", world.read(&mut [0; 9], x));
        fails!("iput", world.iput(x, &[0; 9], 2, 1, 9, 0));
        fails!("iget", world.iget(&mut [0; 9], x, 2, 1, 9, 0));
        fails!("put_from", world.put_from(x, y, 0));
        fails!("get_into", world.get_into(x, y, 0));
        fails!("put_signal", world.put_signal(x, &[1], signal, 1, SignalOp::Set, 9));
        fails!("put_signal", world.put_signal(x, &[0; 9], signal, 1, SignalOp::Set, 0));
        fails!("put_from_nbi", world.scope(|s| s.put_from_nbi(x, y, 0)));
        fails!("signal_set", world.signal_set(signal, 1, 9));
        fails!("fetch_add", world.fetch_add(x, 1, 9));
        fails!("add", world.add(x, 1, 9));
        fails!("put_nbi", world.scope(|s| s.put_nbi(x, &[0; 9], 0)));
        let mut old = 0;
        fails!("fetch_nbi", world.scope(|s| s.fetch_nbi(&mut old, x, 9)));
        fails!("pe_quiet", world.pe_quiet(&[9]));
        fails!("wait_until_any_vector", world.wait_until_any_vector(x, None, Cmp::Eq, &[1]));
        fails!("test_all", world.test_all(x, Some(&[true]), Cmp::Eq, 1));
        Ok(())
    });
    done.unwrap();
}

#[test]
#[rustfmt::skip]
fn an_error_names_the_line_of_the_collective_call() {
    let done = spmd(2, |world| {
        let (x, y) = (world.alloc::<u64>(8)?, world.alloc::<u64>(4)?);
        let team = world.team();
        fails!("alloc", world.alloc::<u64>(usize::MAX / 16));
        fails!("free", world.free(x.at(0)?));
        fails!("realloc", world.realloc(x.at(0)?, 9));
        fails!("broadcast", world.broadcast(x, x, 9));
        fails!("broadcast", team.broadcast(x, x, 9));
        fails!("reduce", world.reduce(x, y, Fold::Sum));
        fails!("reduce", team.reduce(x, y, Fold::Sum));
        fails!("exscan", world.exscan(x, y, Fold::Sum));
        fails!("reduce_scatter", world.reduce_scatter(x, y, Fold::Sum));
        fails!("fcollect", world.fcollect(x, x));
        fails!("collect", world.collect(y, x));
        fails!("alltoall", world.alltoall(x, y));
        fails!("alltoalls", world.alltoalls(x, y, 9, 9, 9));
        fails!("split_2d", team.split_2d(0).map(drop));
        fails!("team destroy", world.team().destroy());
        let context = world.create_context(ContextOptions::NONE)?;
        fails!("p", context.p(x, 1, 9));
        context.destroy()?;
        let lock = world.alloc_zeroed::<u64>(1)?;
        fails!("clear_lock", world.clear_lock(lock));
        world.barrier_all()
    });
    done.unwrap();
}

#[test]
fn a_wait_that_times_out_names_the_line_of_the_call() {
    let impatient = World::builder().timeout(Duration::from_millis(50));
    let named = AtomicU32::new(0);
    let ended = spmd_with(impatient, 2, |world| {
        let word = world.alloc_zeroed::<u64>(1)?;
        match world.my_pe() {
            0 => fails!("wait_until", world.wait_until(word, Cmp::Ne, 0)),
            _ => fails!("barrier_all", world.barrier_all()),
        }
        named.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    // The job itself may end in an error, as its PEs are out of step.
    drop(ended);
    assert_eq!(named.into_inner(), 2, "each PE has looked at its error");
}
