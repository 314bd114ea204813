//! Connections that are interrupted, and made again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oxshmem_engine::am::pending_replies::ReplyReader;
use oxshmem_engine::lane::remote::LanePeer;
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{Error, Pe};

use crate::tests::am;
use crate::tests::lanes::{beside_a_living_pe, beside_living_pes, cut_off, is_lost, watched};
use crate::world::World;

fn interruption() -> Error {
    Error::Interrupted {
        transport: "watched",
        pe: Pe(1),
        why: "the link was down".into(),
    }
}

#[test]
fn an_interrupted_connection_is_made_again_by_the_wait_that_finds_it() {
    beside_a_living_pe(|world, x| {
        world.p(x, 7, 1)?;
        world.quiet()?;
        let asked = watched(world);
        let connects = || asked.connects.load(Ordering::SeqCst);
        for round in 1..=3 {
            asked.fail(interruption());
            assert_eq!((world.g(x, 1)?, connects()), (7, round));
        }
        let mut word = 0;
        world.scope(|scope| {
            scope.get_nbi(std::slice::from_mut(&mut word), x, 1)?;
            asked.fail(interruption());
            Ok(())
        })?;
        assert_eq!((word, connects()), (7, 4));
        cut_off(world);
        Ok(())
    });
}

#[test]
fn an_interruption_towards_a_pe_that_is_lost_is_its_loss() {
    beside_a_living_pe(|world, x| {
        world.p(x, 7, 1)?;
        let asked = watched(world);
        cut_off(world);
        asked.fail(interruption());
        is_lost(world.g(x, 1));
        assert_eq!(asked.connects.load(Ordering::SeqCst), 0);
        Ok(())
    });
}

/// The reply may have been lost with the connection, and nothing would tell.
#[test]
fn a_connection_with_an_unanswered_message_is_not_made_again() {
    let builder = World::builder().transports(vec![Arc::new(Tiny::nic())]);
    beside_living_pes::<u32>(builder, (2, 1), |world, x| {
        world.inc(x, 1)?;
        world.quiet()?;
        let endpoint = am::lane(world, x, 1);
        world
            .worker
            .claim_slot(LanePeer { endpoint, pe: 1 }, ReplyReader::Nobody)?;
        let asked = watched(world);
        asked.fail(interruption());
        is_lost(world.inc(x, 1).and_then(|()| world.quiet()));
        assert_eq!(asked.connects.load(Ordering::SeqCst), 0);
        Ok(())
    });
}
