//! Tests of a world's collective calls.

use std::sync::{Arc, Mutex};

use oxshmem_collectives::algorithm::collect::HEADER;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::Op;

use crate::error::Result;
use crate::sym::Sym;
use crate::team::Team;
use crate::testing::spmd_with;
use crate::tests::lanes::{Fate, LIMIT, watched};
use crate::world::World;

const PES: usize = 4;

/// Checks that PE 0 has all gets of so many bytes in flight, one for each other PE, before it waits for the first.
fn are_in_flight_together(bytes: usize, call: fn(&Team<'_>, Sym<u64>, Sym<u64>) -> Result<()>) {
    let tiny = World::builder().transports(vec![Arc::new(Tiny::default())]);
    let ended = spmd_with(tiny.timeout(LIMIT), PES, |world| {
        let [dst, src] = [world.alloc(3 * PES)?, world.alloc(3 * PES)?];
        let begun = Arc::new(Mutex::new(Vec::new()));
        if world.my_pe() == 0 {
            let (asked, begun) = (watched(world), Arc::clone(&begun));
            let calls = Arc::clone(&asked);
            asked.decide(move |_, op| {
                if matches!(op, Op::Get { into, .. } if into.len == bytes) {
                    begun.lock().unwrap().push(calls.calls());
                }
                Fate::Perform
            });
        }
        call(&world.team(), dst, src)?;
        if let [first, .., last] = begun.lock().unwrap()[..] {
            assert!(last - first < PES, "driven between them: {first} to {last}");
        }
        let count = begun.lock().unwrap().len();
        assert_eq!(count, if world.my_pe() == 0 { PES - 1 } else { 0 });
        Ok(())
    });
    ended.unwrap();
}

#[test]
fn what_members_tell_of_their_parts_comes_together_by_lanes() {
    are_in_flight_together(HEADER, |team, dst, src| {
        let all = team.collect(dst, src.range(..team.my_pe() % 2)?)?;
        assert_eq!(all, PES / 2);
        Ok(())
    });
}

#[test]
fn blocks_that_were_packed_come_together_by_lanes() {
    are_in_flight_together(24, |team, dst, src| team.alltoalls(dst, src, 1, 1, 3));
}
