//! Nonblocking operations: M18, M19, M37 (which the borrow checker keeps).

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxshmem::{Error, Result};

use crate::setting::{Pe, patterns};

pub fn m19_a_scope_completes_all_that_was_issued_in_it(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let x = pe.alloc_zeroed::<u64>(n * 64)?;
    for round in 0..pe.rounds(200) {
        let mine: Vec<Vec<u64>> = (0..n)
            .map(|to| patterns(round * 64 + pe.me() * 8 + to, 64))
            .collect();
        let part = x.range(pe.me() * 64..(pe.me() + 1) * 64)?;
        pe.scope(|s| {
            // In pieces, to several PEs in turn.
            for piece in (0..64).step_by(16) {
                for (to, data) in mine.iter().enumerate() {
                    let data = data.get(piece..piece + 16).unwrap_or_default();
                    s.put_nbi(part.range(piece..piece + 16)?, data, to)?;
                }
            }
            Ok(())
        })?;
        // Performed: visible to a get at once (M19), and to the owners after a barrier.
        let mut back = vec![vec![0; 64]; n];
        pe.scope(|s| {
            back.iter_mut()
                .enumerate()
                .try_for_each(|(at, back)| s.get_nbi(back, part, at))
        })?;
        assert_eq!(back, mine, "round {round}");
        pe.barrier_all()?;
        for from in 0..n {
            let part = x.range(from * 64..(from + 1) * 64)?;
            assert_eq!(pe.own(part)?, patterns(round * 64 + from * 8 + pe.me(), 64));
        }
        pe.barrier_all()?;
    }
    pe.free(x)
}

pub fn m19_long_nonblocking_transfers_are_complete(pe: &Pe<'_>) -> Result<()> {
    for len in [1, 63, 1000, 30_011] {
        let x = pe.alloc::<u64>(len)?;
        let mine = patterns(pe.me(), len);
        let mut theirs = vec![0; len];
        pe.scope(|s| s.put_nbi(x, &mine, pe.right()))?;
        pe.barrier_all()?;
        pe.scope(|s| s.get_nbi(&mut theirs, x, pe.left()))?;
        assert_eq!(
            theirs,
            patterns((pe.me() + 2 * pe.n_pes() - 2) % pe.n_pes(), len)
        );
        pe.free(x)?;
    }
    Ok(())
}

/// The raw forms, completed by a quiet and by a barrier.
pub fn m19_quiet_and_barrier_complete_raw_nonblocking_operations(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(256)?;
    let mine = patterns(pe.me(), 256);
    let mut back = vec![0_u64; 256];
    // SAFETY: `mine` is unchanged until the quiet below has returned.
    unsafe { pe.put_nbi(x, mine.as_ptr(), 256, pe.right())? };
    pe.quiet()?;
    // SAFETY: `back` is not accessed until the barrier, which quiets, has returned.
    unsafe { pe.get_nbi(back.as_mut_ptr(), x, 256, pe.right())? };
    pe.barrier_all()?;
    assert_eq!(back, mine);
    assert_eq!(pe.own(x)?, patterns(pe.left(), 256));
    pe.free(x)
}

pub fn m19_a_scope_that_fails_still_completes_what_it_issued(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(500)?;
    let mine = patterns(pe.me(), 500);
    let failed = pe.scope(|s| {
        s.put_nbi(x, &mine, pe.right())?;
        s.put_nbi(x.range(..10)?, &mine, pe.right())
    });
    assert!(
        matches!(failed, Err(Error::OutOfRange { .. })),
        "{failed:?}"
    );
    assert_eq!(pe.copy_at(x, pe.right())?, mine);
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m37_a_scope_that_panics_gives_its_buffers_back_complete(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(500)?;
    let mine = patterns(pe.me(), 500);
    let mut back = vec![0_u64; 500];
    let caught = catch_unwind(AssertUnwindSafe(|| {
        pe.scope(|s| -> Result<()> {
            s.put_nbi(x, &mine, pe.right())?;
            std::panic::resume_unwind(Box::new("the user's panic"));
        })
    }));
    let payload = caught.expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the user's panic"));
    pe.barrier_all()?;
    assert_eq!(
        pe.own(x)?,
        patterns(pe.left(), 500),
        "what was issued has been completed"
    );
    let caught = catch_unwind(AssertUnwindSafe(|| {
        pe.scope(|s| -> Result<()> {
            s.get_nbi(&mut back, x, pe.right())?;
            std::panic::resume_unwind(Box::new(()));
        })
    }));
    assert!(caught.is_err());
    assert_eq!(
        back, mine,
        "the buffer is whole once the panic has left the scope"
    );
    pe.barrier_all()?;
    pe.free(x)
}

pub fn a_scope_gives_its_closures_value_and_may_be_empty(pe: &Pe<'_>) -> Result<()> {
    assert_eq!(pe.scope(|_| Ok(42))?, 42);
    pe.scope(|_| Ok(()))?;
    let x = pe.alloc_zeroed::<u64>(1)?;
    // One in another.
    let (one, mut two) = ([1_u64], [0_u64]);
    pe.scope(|outer| {
        outer.put_nbi(x, &one, pe.me())?;
        pe.scope(|inner| inner.get_nbi(&mut two, x, pe.me()))?;
        Ok(())
    })?;
    assert_eq!(pe.g(x, pe.me())?, 1);
    pe.free(x)
}

pub fn m19_raw_operations_are_complete_after_a_quiet(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(8)?;
    let word = pe.alloc_zeroed::<u64>(1)?;
    let source: Vec<u64> = (0..4).map(|i| (pe.me() * 10 + i) as u64).collect();
    let (mut old, mut back) = (99_u64, [0_u64; 4]);
    let (data, count) = (x.range(..4)?, x.at(7)?);
    // SAFETY: what is named lives beyond the quiets.
    unsafe {
        pe.put_raw(data, source.as_ptr(), pe.right())?;
        pe.put_signal_raw(
            data,
            source.as_ptr(),
            word,
            1,
            oxshmem::SignalOp::Add,
            pe.right(),
            true,
        )?;
        pe.atomic_nbi(
            oxshmem::AtomicOp::Add,
            &raw mut old,
            count,
            5,
            0,
            pe.right(),
        )?;
    }
    pe.quiet()?;
    assert_eq!(old, 0);
    // SAFETY: as above.
    unsafe { pe.get_raw(back.as_mut_ptr(), data, pe.right())? };
    assert_eq!(back, *source);
    pe.barrier_all()?;
    assert_eq!((pe.own(count)?, pe.own(word)?), (vec![5], vec![1]));
    assert_eq!(pe.own(data)?[3], (pe.left() * 10 + 3) as u64);
    pe.barrier_all()?;
    pe.free(word)?;
    pe.free(x)
}
