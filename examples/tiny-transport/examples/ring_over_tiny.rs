//! An oxshmem program over a transport of one's own: `cargo run --example ring_over_tiny`.
//!
//! Four PEs, as threads, pass a token round a ring. Their memory is mapped by nobody, so every call
//! takes the tiny transport's lanes; the program does not know.

use std::sync::Arc;

use oxshmem::testing::spmd_with;
use oxshmem::{Cmp, Error, SignalOp, World};
use oxshmem_example_tiny_transport::Tiny;

fn main() -> Result<(), Error> {
    let builder = World::builder().transports(vec![Arc::new(Tiny::default())]);
    let tokens = spmd_with(builder, 4, |world| {
        let (me, n) = (world.my_pe(), world.n_pes());
        let token = world.alloc_zeroed::<u64>(1)?;
        let arrived = world.alloc_zeroed::<u64>(1)?;
        let next = (me + 1) % n;
        if me != 0 {
            world.signal_wait_until(arrived, Cmp::Eq, 1)?;
        }
        let passed = world.g(token, me)? + 1;
        world.put_signal(token, &[passed], arrived, 1, SignalOp::Set, next)?;
        if me == 0 {
            world.signal_wait_until(arrived, Cmp::Eq, 1)?;
        }
        world.barrier_all()?;
        world.g(token, me)
    })?;
    println!("each PE's token, by the transport \"tiny\": {tokens:?}");
    // PE 0 had its token last, from PE 3, the fourth to pass it on.
    if tokens != [4, 1, 2, 3] {
        return Err(Error::Argument {
            call: "ring",
            what: format!("wrong tokens: {tokens:?}"),
        });
    }
    Ok(())
}
