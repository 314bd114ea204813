//! Contexts whose PEs have other numbers than in the world.

use std::sync::Arc;

use oxshmem_example_tiny_transport::Tiny;

use crate::SignalOp;
use crate::builder::Builder;
use crate::context::options::ContextOptions;
use crate::error::Error;
use crate::testing::spmd_with;
use crate::world::World;

/// Members of a team, by their numbers in the world: neither in order nor all.
const MEMBERS: [u32; 3] = [3, 0, 2];

fn ways() -> [Builder; 4] {
    let tiny = |tiny| World::builder().transports(vec![Arc::new(tiny)]);
    [
        World::builder(),
        World::builder().check(true),
        tiny(Tiny::default()),
        tiny(Tiny::nic()),
    ]
}

#[test]
fn a_contexts_pes_are_numbered_as_its_members_are() {
    for builder in ways() {
        let members: Arc<[u32]> = MEMBERS.into();
        let done = spmd_with(builder, 5, |world| {
            let x = world.alloc_zeroed::<u64>(64)?;
            let me = MEMBERS.iter().position(|&pe| pe as usize == world.my_pe());
            let made = world.context_of(Some(&members), ContextOptions::NONE);
            assert_eq!(made.is_ok(), me.is_some());
            if let (Ok(context), Some(me)) = (made, me) {
                assert_eq!((context.my_pe(), context.n_pes()), (me, 3));
                let to = (me + 1) % 3;
                let tag = 100 * (me as u64 + 1);
                context.p(x.at(0)?, tag, to)?;
                context.put(x.range(1..4)?, &[tag + 1; 3], to)?;
                context.iput(x.range(4..8)?, &[tag + 2; 2], 3, 1, 2, to)?;
                context.add(x.at(8)?, tag, to)?;
                assert_eq!(context.fetch_inc(x.at(9)?, to)?, 0);
                context.put_signal(
                    x.range(10..12)?,
                    &[tag; 2],
                    x.at(12)?,
                    tag,
                    SignalOp::Add,
                    to,
                )?;
                context.write(x.at(13)?, &[tag + 3])?;
                context.quiet()?;
                let (source, mut fetched, mut got) = ([tag + 4; 4], 0, [0; 2]);
                context.scope(|scope| {
                    scope.put_nbi(x.range(16..20)?, &source, to)?;
                    scope.fetch_nbi(&mut fetched, x.at(8)?, to)?;
                    scope.get_nbi(&mut got, x.range(0..2)?, to)
                })?;
                assert_eq!((fetched, got), (tag, [tag, tag + 1]));
                context.put_from(x.at(20)?, x.at(13)?, to)?;
                context.pe_quiet(&[to])?;
                let mut every_third = [0; 2];
                context.iget(&mut every_third, x.range(4..8)?, 1, 3, 2, to)?;
                assert_eq!(every_third, [tag + 2; 2]);
                assert_eq!(context.g(x.at(20)?, to)?, tag + 3);
                let there = context.ptr(x, to).map(|there| there.load(0)).transpose()?;
                assert!(there.is_none_or(|seen| seen == tag));
                assert!(context.pe_accessible(2) && !context.pe_accessible(3));
                for refused in [
                    context.p(x, 1, 3),
                    context.inc(x, 3),
                    context.pe_quiet(&[3]),
                ] {
                    let named = matches!(refused, Err(Error::NoSuchPe { pe: 3, size: 3, .. }));
                    assert!(named, "{refused:?}");
                }
                context.destroy()?;
            }
            world.barrier_all()?;
            let mut own = [0; 64];
            world.read(&mut own, x)?;
            let mut expected = [0; 64];
            if let Some(me) = me {
                let tag = 100 * ((me as u64 + 2) % 3 + 1);
                expected[0] = tag;
                expected[1..4].fill(tag + 1);
                (expected[4], expected[7]) = (tag + 2, tag + 2);
                (expected[8], expected[9]) = (tag, 1);
                expected[10..13].fill(tag);
                expected[13] = 100 * (me as u64 + 1) + 3;
                expected[16..20].fill(tag + 4);
                expected[20] = tag + 3;
            }
            assert_eq!(own, expected, "on PE {}", world.my_pe());
            world.barrier_all()?;
            world.free(x)
        });
        done.unwrap();
    }
}

/// Errors name a lost PE by its number in the world, and the context's own table no longer maps it.
#[test]
fn a_contexts_lost_pe_is_named_as_in_the_world() {
    for builder in ways() {
        let members: Arc<[u32]> = MEMBERS.into();
        let met = std::sync::Barrier::new(5);
        let result = spmd_with(builder, 5, |world| {
            let x = world.alloc_zeroed::<u64>(1)?;
            if world.my_pe() == 3 {
                met.wait();
                return Err(Error::Argument {
                    call: "test",
                    what: "the end".into(),
                });
            }
            if MEMBERS.contains(&(world.my_pe() as u32)) {
                let context = world.context_of(Some(&members), ContextOptions::NONE)?;
                context.p(x, 1, 0)?;
                context.quiet()?;
                met.wait();
                while context.p(x, 1, 0).and_then(|()| context.quiet()).is_ok() {
                    std::thread::yield_now();
                }
                for lost in [
                    context.p(x, 1, 0),
                    context.g(x, 0).map(drop),
                    context.inc(x, 0),
                ] {
                    assert!(
                        matches!(lost, Err(Error::PeerLost { pe: 3, .. })),
                        "{lost:?}"
                    );
                }
                assert!(!context.pe_accessible(0) && context.ptr(x, 0).is_none());
                // The others are as before.
                context.p(x, 2, 1)?;
                assert_eq!(context.g(x, 1)?, 2);
            } else {
                met.wait();
            }
            Ok(())
        });
        // The error is of the loss or of its cause: that of whichever PE reports first.
        assert!(result.is_err());
    }
}
