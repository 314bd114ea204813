//! Tests of a world's collective calls.

use crate::testing::spmd_with;
use crate::tests::lanes::LIMIT;
use crate::world::World;
use oxshmem_collectives::slots::active_set::Agreement;
use oxshmem_collectives::slots::pool::ActiveSet;
use oxshmem_collectives::slots::proposal::SlotProposal;
use oxshmem_engine::group::Group;

#[test]
fn late_words_of_a_call_that_failed_are_not_taken_for_those_of_the_next() {
    let pes = (0, 1, 3);
    let builder = World::builder().active_sets().timeout(LIMIT);
    let slots = spmd_with(builder, 3, |world| {
        let members = Group::all(3, world.my_pe());
        let (start, stride, size) = pes;
        let set = ActiveSet {
            start,
            stride,
            size,
        };
        let (area, mailbox) = (&world.pe.sync_area, world.pe.mailbox.as_ref());
        let mailbox = mailbox.unwrap();
        let failed = Agreement::new(&world.worker, area, mailbox, set, &members, true);
        // By this message the slot would be another.
        let late = SlotProposal {
            free: vec![0, 0, 0, 0, 1 << 5, 0],
            ..SlotProposal::any(0)
        };
        let receivers = match world.my_pe() {
            0 => 1..3,
            _ => 0..1,
        };
        for to in receivers {
            mailbox.send(&world.worker, failed.message(1), to, &late.words())?;
        }
        world.barrier_all()?;
        let team = world.active_set_team(pes)?;
        team.sync()?;
        let slot = team.state().slot();
        team.destroy()?;
        Ok(slot)
    });
    // The first slot behind those of splits.
    assert_eq!(slots.unwrap(), [Some(256); 3]);
}
