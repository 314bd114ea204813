//! Locks: one holder at a time, in the order in which the PEs asked.

use oxshmem::{ContextOptions, Error, Result, Sym};

use crate::atomics::is_refused;
use crate::order::poll;
use crate::setting::Pe;
use crate::threads::{has_threads, on_threads};

/// Locks need 32-bit atomics; where the transport has none they are refused.
fn has_locks(pe: &Pe<'_>, lock: Sym<u64>) -> Result<bool> {
    if (0..pe.n_pes()).all(|other| pe.has_atomics_of_32_bits_at(other)) {
        return Ok(true);
    }
    // PE 0's copy has the end of the queue, for an object at this place.
    let home = (lock.offset() / 8) as usize % pe.n_pes();
    if home != pe.me() {
        is_refused(pe.set_lock(lock));
    }
    Ok(false)
}

pub fn a_lock_is_held_by_one_pe_at_a_time(pe: &Pe<'_>) -> Result<()> {
    // Locks at every home, by turns.
    let locks = pe.alloc_zeroed::<u64>(pe.n_pes())?;
    let counts = pe.alloc_zeroed::<u64>(pe.n_pes())?;
    let rounds = pe.rounds(150);
    if has_locks(pe, locks)? {
        for round in 0..rounds {
            let which = (pe.me() + round) % pe.n_pes();
            let count = counts.at(which)?;
            pe.set_lock(locks.at(which)?)?;
            // No atomics: without the lock updates would be lost.
            let before = pe.g(count, 0)?;
            pe.p(count, before + 1, 0)?;
            pe.clear_lock(locks.at(which)?)?;
        }
        pe.barrier_all()?;
        let counted = pe.copy_at(counts, 0)?;
        assert_eq!(counted.iter().sum::<u64>(), (rounds * pe.n_pes()) as u64);
    }
    pe.free(counts)?;
    pe.free(locks)
}

pub fn a_lock_goes_to_whoever_asked_first(pe: &Pe<'_>) -> Result<()> {
    let lock = pe.alloc_zeroed::<u64>(1)?;
    let order = pe.alloc_zeroed::<u64>(pe.n_pes() + 1)?;
    let (place, took) = (order.at(0)?, order.range(1..)?);
    if has_locks(pe, lock)? {
        for first in 0..pe.n_pes().min(3) {
            // How many stand in the queue behind `first`, which has the lock: as many as have made
            // themselves its end.
            let ends = |pe: &Pe<'_>| -> Result<Vec<u32>> {
                let mut ends = Vec::new();
                for home in 0..pe.n_pes() {
                    ends.push(pe.fetch(lock.cast::<u32>()?.at(0)?, home)?);
                }
                Ok(ends)
            };
            let turn = (pe.me() + pe.n_pes() - first) % pe.n_pes();
            if turn > 0 {
                let before = ((first + turn - 1) % pe.n_pes()) as u32 + 1;
                poll(|| Ok(ends(pe)?.contains(&before)))?;
            }
            pe.set_lock(lock)?;
            if turn == 0 {
                let last = ((first + pe.n_pes() - 1) % pe.n_pes()) as u32 + 1;
                poll(|| Ok(ends(pe)?.contains(&last)))?;
            }
            let at = pe.fetch_inc(place, 0)?;
            pe.p(took.at(at as usize)?, turn as u64, 0)?;
            pe.clear_lock(lock)?;
            pe.barrier_all()?;
            let turns: Vec<u64> = (0..pe.n_pes() as u64).collect();
            assert_eq!(pe.copy_at(took, 0)?, turns, "PE {first} began");
            pe.barrier_all()?;
            if pe.me() == 0 {
                pe.set(place, 0, 0)?;
            }
            pe.barrier_all()?;
        }
    }
    pe.free(order)?;
    pe.free(lock)
}

pub fn a_test_of_a_lock_does_not_wait(pe: &Pe<'_>) -> Result<()> {
    let lock = pe.alloc_zeroed::<u64>(1)?;
    let held = pe.alloc_zeroed::<u64>(1)?;
    if has_locks(pe, lock)? {
        if pe.me() == 0 {
            assert!(pe.test_lock(lock)?);
        }
        pe.barrier_all()?;
        // Neither the holder nor another.
        assert!(!pe.test_lock(lock)?);
        pe.barrier_all()?;
        if pe.me() == 0 {
            pe.clear_lock(lock)?;
        }
        pe.barrier_all()?;
        // One after the other, all come to have it.
        poll(|| pe.test_lock(lock))?;
        pe.inc(held, 0)?;
        pe.clear_lock(lock)?;
        pe.barrier_all()?;
        assert_eq!(pe.g(held, 0)?, pe.n_pes() as u64);
    }
    pe.free(held)?;
    pe.free(lock)
}

/// `clear_lock` quiets: whoever takes the lock next finds whole what its last holder wrote, on every PE.
pub fn what_a_holder_wrote_is_there_for_the_next(pe: &Pe<'_>) -> Result<()> {
    let lock = pe.alloc_zeroed::<u64>(1)?;
    let len = pe.longest(600);
    let page = pe.alloc_zeroed::<u64>(len)?;
    if has_locks(pe, lock)? {
        for round in 0..pe.rounds(24) {
            pe.set_lock(lock)?;
            for on in 0..pe.n_pes() {
                let found = pe.copy_at(page, on)?;
                let first = found[0];
                assert!(
                    found.iter().all(|word| *word == first),
                    "round {round}: {found:?}"
                );
                pe.put(page, &vec![first + 1; len], on)?;
            }
            pe.clear_lock(lock)?;
        }
        pe.barrier_all()?;
        let all = (pe.rounds(24) * pe.n_pes()) as u64;
        assert_eq!(pe.own(page)?, vec![all; len]);
    }
    pe.free(page)?;
    pe.free(lock)
}

/// Threads have different locks at once, each on a context of its own; the world's thread waits for another one's.
pub fn threads_have_locks_on_contexts(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let locks = pe.alloc_zeroed::<u64>(2)?;
    let counts = pe.alloc_zeroed::<u64>(2)?;
    let rounds = pe.rounds(60);
    if has_locks(pe, locks)? {
        let contexts = [(); 2].map(|()| pe.world.create_context(ContextOptions::NONE));
        let contexts: Result<Vec<_>> = contexts.into_iter().collect();
        on_threads(contexts?, |thread, context| {
            let (lock, count) = (locks.at(thread)?, counts.at(thread)?);
            for _ in 0..rounds {
                context.set_lock(lock)?;
                let before = context.g(count, 0)?;
                context.p(count, before + 1, 0)?;
                // It completes this context, on which that was put.
                context.clear_lock(lock)?;
            }
            context.destroy()
        })?;
        pe.barrier_all()?;
        let counted = pe.copy_at(counts, 0)?;
        assert_eq!(counted, [(rounds * pe.n_pes()) as u64; 2]);
        // Not on one that numbers the PEs in its own way.
        if let Some(team) = pe.team().split_strided(0, 1, 1)? {
            let context = team.create_context(ContextOptions::NONE)?;
            let refused = context.set_lock(locks.at(0)?);
            assert!(
                matches!(refused, Err(Error::Argument { .. })),
                "{refused:?}"
            );
            context.destroy()?;
            team.destroy()?;
        }
    }
    pe.free(counts)?;
    pe.free(locks)
}

pub fn locks_that_a_pe_cannot_set_or_clear_are_refused(pe: &Pe<'_>) -> Result<()> {
    let lock = pe.alloc_zeroed::<u64>(pe.n_pes())?;
    if has_locks(pe, lock)? {
        let mine = lock.at(pe.me())?;
        let refused = |result: Result<()>, part: &str| match result {
            Err(Error::Argument { what, .. }) => assert!(what.contains(part), "{what}"),
            other => panic!("{other:?}"),
        };
        refused(pe.clear_lock(mine), "does not have the lock");
        pe.set_lock(mine)?;
        refused(pe.set_lock(mine), "has the lock already");
        pe.clear_lock(mine)?;
        refused(pe.clear_lock(mine), "does not have the lock");
        let nothing = lock.range(..0)?;
        assert!(matches!(
            pe.set_lock(nothing),
            Err(Error::OutOfRange { .. })
        ));
        let other = crate::objects::another_world()?;
        let foreign = other.alloc_zeroed::<u64>(1)?;
        for call in [
            pe.set_lock(foreign),
            pe.clear_lock(foreign),
            pe.test_lock(foreign).map(drop),
        ] {
            assert!(matches!(call, Err(Error::Foreign { .. })), "{call:?}");
        }
        other.free(foreign)?;
        other.finalize()?;
        pe.barrier_all()?;
        // It is as if nothing had been tried.
        pe.set_lock(mine)?;
        pe.clear_lock(mine)?;
    }
    pe.free(lock)
}
