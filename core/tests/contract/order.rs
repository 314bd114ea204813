//! Order, completion and visibility: M15 to M26.

use std::time::Instant;

use oxshmem::{Cmp, MemoryModel, Result, Sym, Visibility};

use crate::setting::{DEADLINE, Path, Pe, pattern, patterns};

/// Lengths of messages: one word, a line and more, and beyond what is copied at once.
const LENGTHS: [usize; 5] = [1, 7, 64, 1000, 9000];

pub fn m15_a_put_returns_when_its_source_may_be_reused(pe: &Pe<'_>) -> Result<()> {
    for len in LENGTHS {
        let x = pe.alloc::<u64>(len * 4)?;
        let mut source = vec![0; len];
        for part in 0..4 {
            source.copy_from_slice(&patterns(pe.me() * 4 + part, len));
            pe.put(x.range(part * len..(part + 1) * len)?, &source, pe.right())?;
        }
        source.fill(0);
        pe.barrier_all()?;
        for part in 0..4 {
            let got = pe.own(x.range(part * len..(part + 1) * len)?)?;
            assert_eq!(got, patterns(pe.left() * 4 + part, len), "{len} words");
        }
        pe.free(x)?;
    }
    Ok(())
}

pub fn m16_a_get_returns_with_the_data(pe: &Pe<'_>) -> Result<()> {
    for len in LENGTHS {
        let x = pe.alloc::<u64>(len)?;
        for round in 0..pe.rounds(40) {
            pe.put(x, &patterns(pe.me() + 100 * round, len), pe.right())?;
            // M19: a get after a quiet sees what was put before it.
            pe.quiet()?;
            assert_eq!(
                pe.copy_at(x, pe.right())?,
                patterns(pe.me() + 100 * round, len)
            );
            assert_eq!(
                pe.g(x.at(len - 1)?, pe.right())?,
                pattern(pe.me() + 100 * round, len - 1)
            );
        }
        pe.free(x)?;
    }
    Ok(())
}

/// Message passing: data, fence, flag. The reader that sees the flag sees the data.
pub fn m17_fence_puts_data_before_the_flag(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(128)?;
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let (arrived, taken) = (flags.at(0)?, flags.at(1)?);
    for round in 1..=pe.rounds(8000) as u64 {
        let len = (round * 7 % 128) as usize + 1;
        pe.put(x.range(..len)?, &vec![round; len], pe.right())?;
        pe.fence()?;
        match round % 2 {
            0 => pe.set(arrived, round, pe.right())?,
            _ => pe.p(arrived, round, pe.right())?,
        }
        pe.wait_until(arrived, Cmp::Ge, round)?;
        assert!(
            pe.own(x.range(..len)?)?.iter().all(|v| *v == round),
            "round {round}"
        );
        pe.p(taken, round, pe.left())?;
        pe.wait_until(taken, Cmp::Ge, round)?;
    }
    pe.free(flags)?;
    pe.free(x)
}

/// The same with several puts, and an atomic among what comes before the fence.
pub fn m17_fence_orders_puts_and_atomics_to_one_pe(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(8)?;
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let (arrived, taken) = (flags.at(0)?, flags.at(1)?);
    for round in 1..=pe.rounds(3000) as u64 {
        pe.p(x.at(0)?, round, pe.right())?;
        pe.add(x.at(1)?, 1, pe.right())?;
        pe.iput(x.range(2..)?, &[round; 3], 2, 1, 3, pe.right())?;
        pe.fence()?;
        pe.inc(arrived, pe.right())?;
        pe.wait_until(arrived, Cmp::Ge, round)?;
        assert_eq!(pe.own(x)?, [round, round, round, 0, round, 0, round, 0]);
        pe.p(taken, round, pe.left())?;
        pe.wait_until(taken, Cmp::Ge, round)?;
    }
    pe.free(flags)?;
    pe.free(x)
}

/// Plain stores, through `ptr` and to this PE's own memory, count as puts.
pub fn m17_fence_orders_the_callers_stores(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(16)?;
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let (arrived, taken) = (flags.at(0)?, flags.at(1)?);
    for round in 1..=pe.rounds(4000) as u64 {
        if let Some(theirs) = pe.ptr(x, pe.right()) {
            (0..8).try_for_each(|i| theirs.store(i, round))?;
        } else {
            pe.put(x.range(..8)?, &[round; 8], pe.right())?;
        }
        // In this PE's own memory, for the peer to fetch.
        pe.write(x.range(8..)?, &[round; 8])?;
        pe.fence()?;
        if pe.is_mapped() {
            pe.set(arrived, round, pe.right())?;
        } else {
            // Fence orders towards each PE separately: own memory by a lane needs a quiet.
            pe.quiet()?;
            pe.set(arrived, round, pe.right())?;
        }
        pe.wait_until(arrived, Cmp::Ge, round)?;
        assert_eq!(pe.own(x.range(..8)?)?, [round; 8]);
        assert_eq!(pe.copy_at(x.range(8..)?, pe.left())?, [round; 8]);
        pe.p(taken, round, pe.left())?;
        pe.wait_until(taken, Cmp::Ge, round)?;
    }
    pe.free(flags)?;
    pe.free(x)
}

/// One location: values put with fences between are seen in that order, and whole.
pub fn m17_one_word_is_seen_in_the_order_it_was_written(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let rounds = pe.rounds(20_000) as u64;
    for round in 1..=rounds {
        let value = round << 32 | !round & 0xffff_ffff;
        pe.p(x, value, pe.right())?;
        pe.fence()?;
        if round % 64 == 0 {
            pe.quiet()?;
        }
    }
    let last = rounds << 32 | !rounds & 0xffff_ffff;
    pe.quiet()?;
    pe.wait_until(x, Cmp::Eq, last)?;
    pe.barrier_all()?;
    // And watched: PE 0 writes, all others look.
    let mut seen = 0;
    if pe.me() == 0 {
        pe.write(x, &[0])?;
    }
    pe.barrier_all()?;
    let since = Instant::now();
    for round in 1..=rounds {
        if pe.me() == 0 {
            pe.p(x, round << 32 | round, 0)?;
            pe.fence()?;
        } else {
            let value = pe.g(x, 0)?;
            assert_eq!(value >> 32, value & 0xffff_ffff, "torn");
            assert!(value >= seen, "went back from {seen:x} to {value:x}");
            seen = value;
        }
        assert!(since.elapsed() < DEADLINE);
    }
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m19_quiet_completes_towards_every_pe(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(pe.n_pes() * 8)?;
    let mine = x.range(pe.me() * 8..(pe.me() + 1) * 8)?;
    for round in 1..=pe.rounds(500) as u64 {
        for to in 0..pe.n_pes() {
            pe.put(mine, &[round; 8], to)?;
        }
        match round % 3 {
            0 => pe.pe_quiet(&(0..pe.n_pes()).collect::<Vec<_>>())?,
            1 => (0..pe.n_pes()).try_for_each(|to| pe.pe_quiet(&[to]))?,
            _ => pe.quiet()?,
        }
        for at in 0..pe.n_pes() {
            assert_eq!(
                pe.copy_at(mine, at)?,
                [round; 8],
                "round {round} at PE {at}"
            );
        }
    }
    pe.quiet()?;
    pe.pe_quiet(&[])?;
    assert!(pe.pe_quiet(&[0, pe.n_pes()]).is_err());
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m19_a_barrier_completes_what_came_before(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(pe.n_pes())?;
    for round in 1..=pe.rounds(1000) as u64 {
        for to in 0..pe.n_pes() {
            pe.p(x.at(pe.me())?, round, to)?;
        }
        pe.barrier_all()?;
        assert_eq!(pe.own(x)?, vec![round; pe.n_pes()]);
        pe.barrier_all()?;
    }
    pe.free(x)
}

pub fn m20_fetched_values_come_in_order(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(2)?;
    let mut before = None;
    for _ in 0..pe.rounds(4000) {
        let a = pe.fetch_add(x, 1, 0)?;
        let b = pe.fetch_add(x, 1, 0)?;
        assert!(b > a && before.is_none_or(|c| a > c), "{before:?} {a} {b}");
        before = Some(b);
    }
    pe.barrier_all()?;
    let all = 2 * pe.rounds(4000) as u64 * pe.n_pes() as u64;
    assert_eq!(pe.g(x, 0)?, all);
    pe.barrier_all()?;
    pe.free(x)
}

/// Set x, quiet, set y: who fetches y, then x, does not see the new y and the old x. Atomics on both
/// sides, or puts and gets: the two do not mix (M32).
fn set_quiet_set(
    pe: &Pe<'_>,
    set: impl Fn(Sym<u64>, u64) -> Result<()>,
    fetch: impl Fn(Sym<u64>) -> Result<u64>,
) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(32)?;
    let (x, y, done) = (words.at(0)?, words.at(16)?, words.at(8)?);
    let rounds = pe.rounds(6000) as u64;
    // x lies on the first PE; the writer is the last.
    if pe.me() == pe.n_pes() - 1 {
        for round in 1..=rounds {
            set(x, round)?;
            pe.quiet()?;
            set(y, round)?;
            if pe.n_pes() == 1 {
                break;
            }
        }
        pe.quiet()?;
        set(done, 1)?;
        pe.quiet()?;
    } else {
        // M21: in the relaxed model nothing orders two reads but a fence.
        let then_fetch = |word| {
            if pe.model() == MemoryModel::Relaxed {
                pe.fence()?;
            }
            fetch(word)
        };
        let mut seen = 0;
        while seen < rounds {
            let is_over = fetch(done)? == 1;
            let new = then_fetch(y)?;
            let old = then_fetch(x)?;
            assert!(old >= new, "y = {new}, then x = {old}");
            // An earlier value that came after it would stay, and this loop would not end.
            assert!(
                !is_over || new == rounds,
                "y = {new} after the last, {rounds}"
            );
            assert!(new >= seen);
            if new == seen {
                std::thread::yield_now();
            }
            seen = new;
        }
    }
    pe.barrier_all()?;
    pe.free(words)
}

pub fn m20_m21_set_quiet_set_is_seen_in_order_by_fetches(pe: &Pe<'_>) -> Result<()> {
    set_quiet_set(pe, |word, v| pe.set(word, v, 0), |word| pe.fetch(word, 0))
}

pub fn m20_m21_put_quiet_put_is_seen_in_order_by_gets(pe: &Pe<'_>) -> Result<()> {
    set_quiet_set(pe, |word, v| pe.p(word, v, 0), |word| pe.g(word, 0))
}

/// A waits for nothing but B's word: what B saw completed, A sees.
pub fn m24_what_is_completed_is_visible_to_a_third_pe(pe: &Pe<'_>) -> Result<()> {
    if pe.visibility() != Visibility::Global {
        return m25_own_objects_are_visible_after_a_wait(pe);
    }
    let x = pe.alloc_zeroed::<u64>(64)?;
    let flag = pe.alloc_zeroed::<u64>(2)?;
    let (told, done) = (flag.at(0)?, flag.at(1)?);
    let (writer, target, reader) = (0, 1 % pe.n_pes(), pe.n_pes() - 1);
    for round in 1..=pe.rounds(2000) as u64 {
        if pe.me() == writer {
            pe.put(x, &[round; 64], target)?;
            pe.quiet()?;
            pe.p(told, round, reader)?;
        }
        if pe.me() == reader {
            pe.wait_until(told, Cmp::Ge, round)?;
            assert_eq!(pe.copy_at(x, target)?, [round; 64]);
            pe.p(done, round, writer)?;
        }
        if pe.me() == writer {
            pe.wait_until(done, Cmp::Ge, round)?;
        }
    }
    pe.barrier_all()?;
    pe.free(flag)?;
    pe.free(x)
}

fn m25_own_objects_are_visible_after_a_wait(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(64)?;
    let flag = pe.alloc_zeroed::<u64>(2)?;
    let (told, done) = (flag.at(0)?, flag.at(1)?);
    for round in 1..=pe.rounds(2000) as u64 {
        pe.put(x, &[round; 64], pe.right())?;
        pe.quiet()?;
        pe.p(told, round, pe.right())?;
        pe.wait_until(told, Cmp::Ge, round)?;
        assert_eq!(pe.own(x)?, [round; 64]);
        pe.p(done, round, pe.left())?;
        pe.wait_until(done, Cmp::Ge, round)?;
    }
    pe.barrier_all()?;
    pe.free(flag)?;
    pe.free(x)
}

pub fn m26_visibility_is_a_value_computed_from_the_routes(pe: &Pe<'_>) -> Result<()> {
    // Visibility follows from the routes, not from the loads and stores that checked mode forgoes.
    let expected = match pe.setting.path {
        Path::Mapped | Path::Checked | Path::Simulator => Visibility::Global,
        // Alone a PE reaches all memory there is by its CPU.
        Path::Tiny | Path::Weak | Path::Queues | Path::Named if pe.n_pes() == 1 => {
            Visibility::Global
        }
        Path::Tiny | Path::Weak | Path::Queues | Path::Named => Visibility::Local,
        // The host reaches GPUs' memory by operations, its own GPU's too.
        Path::Gpu => Visibility::Local,
        Path::Hosts if (0..pe.n_pes()).all(|at| pe.has_address_of(at)) => Visibility::Global,
        Path::Hosts => Visibility::Local,
    };
    assert_eq!(pe.visibility(), expected);
    assert_eq!(pe.model(), pe.setting.model);
    Ok(())
}

pub fn m23_waits_and_tests_acquire_what_the_flag_announces(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(32)?;
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let (arrived, taken) = (flags.at(0)?, flags.at(1)?);
    for round in 1..=pe.rounds(3000) as u64 {
        pe.put(x, &[round; 32], pe.right())?;
        pe.fence()?;
        pe.p(arrived, round, pe.right())?;
        match round % 4 {
            0 => poll(|| pe.test(arrived, Cmp::Eq, round))?,
            1 => poll(|| pe.test_all(arrived, None, Cmp::Eq, round))?,
            2 => poll(|| Ok(pe.test_any(arrived, None, Cmp::Eq, round)?.is_some()))?,
            _ => poll(|| Ok(!pe.test_some(arrived, None, Cmp::Eq, round)?.is_empty()))?,
        }
        assert_eq!(pe.own(x)?, [round; 32]);
        pe.p(taken, round, pe.left())?;
        pe.wait_until_all(taken, None, Cmp::Ge, round)?;
    }
    pe.free(flags)?;
    pe.free(x)
}

/// Calls `ready` until it says so.
pub fn poll(ready: impl Fn() -> Result<bool>) -> Result<()> {
    let since = Instant::now();
    while !ready()? {
        assert!(since.elapsed() < DEADLINE, "not within {DEADLINE:?}");
        std::thread::yield_now();
    }
    Ok(())
}
