//! Counted puts: the target waits for so many, whoever sent them.

use oxshmem::Result;

use crate::order::poll;
use crate::setting::{Pe, patterns};

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

/// Who waits for fewer than come leaves the rest for the next wait, with nothing lost or counted twice.
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
