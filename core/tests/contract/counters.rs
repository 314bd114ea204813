//! Counted puts: the target waits for so many, whoever sent them.

use oxshmem::{ContextOptions, Error, Result, SharedContext};

use crate::order::poll;
use crate::setting::{Pe, patterns};
use crate::threads::{has_threads, on_threads};

/// The part of an array that a PE writes.
fn part(pe: usize, len: usize) -> std::ops::Range<usize> {
    pe * len..(pe + 1) * len
}

pub fn m22_the_data_of_every_counted_put_is_there(pe: &Pe<'_>) -> Result<()> {
    for len in [0, 7, 9000].map(|len| pe.longest(len)) {
        let x = pe.alloc_zeroed::<u64>(pe.n_pes() * len.max(1))?;
        let counter = pe.alloc_zeroed::<u64>(1)?;
        for round in 0..pe.rounds(24) {
            for to in 0..pe.n_pes() {
                let data = patterns(pe.me() + round * 10, len);
                pe.put_counted(x.range(part(pe.me(), len))?, &data, counter, to)?;
            }
            pe.wait_counted(counter, pe.n_pes() as u64)?;
            for from in 0..pe.n_pes() {
                let found = pe.own(x.range(part(from, len))?)?;
                assert_eq!(found, patterns(from + round * 10, len), "from PE {from}");
            }
            pe.sync_all()?;
        }
        pe.free(counter)?;
        pe.free(x)?;
    }
    Ok(())
}

/// A wait for fewer than have arrived leaves the rest for the next wait, with nothing lost or counted twice.
pub fn a_wait_takes_what_it_waited_for_and_no_more(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let counter = pe.alloc_zeroed::<u64>(1)?;
    let each = pe.rounds(300) as u64;
    for _ in 0..each {
        // The last with data, the others without.
        pe.put_counted(x.range(..0)?, &[], counter, pe.right())?;
    }
    pe.put_counted(x, &[each], counter, pe.right())?;
    let mut left = each + 1;
    for some in [0, 1, 2, 5, 1, each / 3].into_iter().cycle().take(12) {
        let some = some.min(left);
        pe.wait_counted(counter, some)?;
        left -= some;
    }
    pe.wait_counted(counter, left)?;
    assert_eq!(pe.own(x)?, [each]);
    assert!(!pe.test_counted(counter, 1)?);
    assert!(pe.test_counted(counter, 0)?);
    assert_eq!(pe.signal_fetch(counter)?, 0);
    pe.barrier_all()?;
    pe.put_counted(x, &[7], counter, pe.left())?;
    poll(|| pe.test_counted(counter, 1))?;
    assert_eq!(pe.own(x)?, [7]);
    pe.free(counter)?;
    pe.free(x)
}

/// Each PE's second thread counts in the next PE's word what its first thread waits for there.
pub fn m22_a_thread_waits_for_counted_puts_while_another_sends_on_its_context(
    pe: &Pe<'_>,
) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let rounds = pe.rounds(300);
    let x = pe.alloc_zeroed::<u64>(rounds)?;
    let counter = pe.alloc_zeroed::<u64>(1)?;
    let context = pe.world.create_context(ContextOptions::NONE)?.share();
    let (me, right) = (pe.me(), pe.right());
    let run = |thread, context: &SharedContext<'_>| {
        for round in 0..rounds {
            let word = x.at(round)?;
            if thread == 1 {
                let locked = context.lock();
                locked.put_counted(word, &[round as u64 + 1], counter, right)?;
                locked.quiet()?;
                continue;
            }
            match round % 2 {
                0 => context.wait_counted(counter, 1)?,
                _ => poll(|| context.test_counted(counter, 1))?,
            }
            let mut all = vec![0; rounds];
            context.lock().get(&mut all, x, me)?;
            let arrived = all.iter().filter(|word| **word != 0).count();
            assert!(arrived > round, "{arrived} in round {round}");
        }
        Ok(())
    };
    on_threads(vec![&context; 2], run)?;
    let expected: Vec<u64> = (1..=rounds as u64).collect();
    assert_eq!(pe.own(x)?, expected);
    assert!(!context.test_counted(counter, 1)?);
    context.destroy()?;
    pe.barrier_all()?;
    pe.free(counter)?;
    pe.free(x)
}

pub fn counters_that_make_no_sense_are_refused(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(8)?;
    let other = crate::objects::another_world()?;
    let foreign = other.alloc_zeroed::<u64>(8)?;
    let to = pe.right();
    let outside = |result: Result<()>| match result {
        Err(Error::OutOfRange { .. }) => {}
        result => panic!("{result:?}"),
    };
    let none = x.range(..0)?;
    outside(pe.put_counted(x, &[1; 9], x.at(7)?, to));
    outside(pe.put_counted(x, &[1], none, to));
    outside(pe.wait_counted(none, 0));
    outside(pe.test_counted(none, 0).map(drop));
    let is_foreign = |result: Result<()>| match result {
        Err(Error::Foreign { .. }) => {}
        result => panic!("{result:?}"),
    };
    is_foreign(pe.put_counted(foreign, &[1], x, to));
    is_foreign(pe.put_counted(x.at(1)?, &[1], foreign, to));
    is_foreign(pe.wait_counted(foreign, 1));
    is_foreign(pe.test_counted(foreign, 1).map(drop));
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?, [0; 8]);
    other.free(foreign)?;
    other.finalize()?;
    pe.free(x)
}
