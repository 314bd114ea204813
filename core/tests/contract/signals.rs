//! Signals: M22.

use oxshmem::{Cmp, Result, SignalOp};

use crate::setting::{Pe, patterns};

const LENGTHS: [usize; 7] = [0, 1, 3, 8, 65, 1025, 20_000];

pub fn m22_the_signal_comes_after_its_data(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(20_000)?;
    let signal = pe.alloc_zeroed::<u64>(2)?;
    let (arrived, taken) = (signal.at(0)?, signal.at(1)?);
    for round in 1..=pe.rounds(300) as u64 {
        for (step, len) in (1..).zip(LENGTHS.map(|len| pe.longest(len))) {
            let number = (round - 1) * LENGTHS.len() as u64 + step;
            let data = vec![number; len];
            match round % 2 {
                0 => pe.put_signal(x, &data, arrived, number, SignalOp::Set, pe.right())?,
                _ => pe.put_signal(x, &data, arrived, 1, SignalOp::Add, pe.right())?,
            }
            let seen = pe.signal_wait_until(arrived, Cmp::Ge, number)?;
            assert_eq!(seen, number);
            assert_eq!(pe.signal_fetch(arrived)?, number);
            assert!(
                pe.own(x.range(..len)?)?.iter().all(|v| *v == number),
                "{len} words"
            );
            pe.signal_set(taken, number, pe.left())?;
            pe.signal_wait_until(taken, Cmp::Ge, number)?;
        }
    }
    pe.free(signal)?;
    pe.free(x)
}

/// Small messages, thousands of times: the window in which a signal could overtake is small.
pub fn m22_no_small_message_is_overtaken_by_its_signal(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(8)?;
    let signal = pe.alloc_zeroed::<u64>(2)?;
    let (arrived, taken) = (signal.at(0)?, signal.at(1)?);
    for round in 1..=pe.rounds(6000) as u64 {
        pe.put_signal(x, &[round; 8], arrived, round, SignalOp::Set, pe.right())?;
        pe.signal_wait_until(arrived, Cmp::Eq, round)?;
        assert_eq!(pe.own(x)?, [round; 8]);
        pe.put_signal(x.range(..0)?, &[], taken, 1, SignalOp::Add, pe.left())?;
        pe.signal_wait_until(taken, Cmp::Eq, round)?;
    }
    pe.free(signal)?;
    pe.free(x)
}

pub fn m22_signals_of_all_pes_add_up(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(pe.n_pes() * 4)?;
    let signal = pe.alloc_zeroed::<u64>(1)?;
    let mine = x.range(pe.me() * 4..(pe.me() + 1) * 4)?;
    let mut expected = 0;
    for round in 0..pe.rounds(200) {
        for to in 0..pe.n_pes() {
            let data = patterns(pe.me() + round * 10, 4);
            pe.put_signal(mine, &data, signal, 1 << 20 | 1, SignalOp::Add, to)?;
            pe.signal_add(signal, 2, to)?;
        }
        expected += pe.n_pes() as u64 * (1 << 20 | 3);
        let seen = pe.signal_wait_until(signal, Cmp::Ge, expected)?;
        assert_eq!(seen, expected);
        for from in 0..pe.n_pes() {
            let part = x.range(from * 4..(from + 1) * 4)?;
            assert_eq!(
                pe.own(part)?,
                patterns(from + round * 10, 4),
                "from PE {from}"
            );
        }
        pe.barrier_all()?;
    }
    pe.free(signal)?;
    pe.free(x)
}

pub fn m22_a_signal_wait_gives_the_value_that_satisfied_it(pe: &Pe<'_>) -> Result<()> {
    let signal = pe.alloc_zeroed::<u64>(1)?;
    let expect = |cmp, value, seen| -> Result<()> {
        assert_eq!(pe.signal_wait_until(signal, cmp, value)?, seen);
        Ok(())
    };
    expect(Cmp::Eq, 0, 0)?;
    expect(Cmp::Le, 5, 0)?;
    expect(Cmp::Lt, 1, 0)?;
    pe.barrier_all()?;
    pe.signal_set(signal, u64::MAX, pe.right())?;
    expect(Cmp::Ne, 0, u64::MAX)?;
    expect(Cmp::Gt, 7, u64::MAX)?;
    expect(Cmp::Ge, u64::MAX, u64::MAX)?;
    pe.barrier_all()?;
    // Adding wraps.
    pe.signal_add(signal, 6, pe.right())?;
    expect(Cmp::Lt, 100, 5)?;
    pe.barrier_all()?;
    pe.free(signal)
}

pub fn m22_nonblocking_put_signals_are_complete_after_their_scope(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(1000)?;
    let signal = pe.alloc_zeroed::<u64>(1)?;
    let data = patterns(pe.me(), 1000);
    for round in 1..=pe.rounds(40) as u64 {
        pe.scope(|s| {
            for part in 0..10 {
                let to = x.range(part * 100..(part + 1) * 100)?;
                let from = data.get(part * 100..(part + 1) * 100).unwrap_or_default();
                s.put_signal_nbi(to, from, signal, 1, SignalOp::Add, pe.right())?;
            }
            Ok(())
        })?;
        assert!(pe.g(signal, pe.right())? >= round * 10);
        pe.signal_wait_until(signal, Cmp::Eq, round * 10)?;
        assert_eq!(pe.own(x)?, patterns(pe.left(), 1000));
        pe.barrier_all()?;
    }
    pe.free(signal)?;
    pe.free(x)
}

pub fn m19_long_put_signals_from_registered_memory_are_complete_after_their_scope(
    pe: &Pe<'_>,
) -> Result<()> {
    const LEN: usize = 8192;
    let x = pe.alloc::<u64>(2 * LEN)?;
    let signal = pe.alloc_zeroed::<u64>(1)?;
    for round in 1..=pe.rounds(4) as u64 {
        let data = patterns(pe.me() + round as usize, LEN);
        let data = pe.register(data)?;
        // Nothing but these is outstanding: a quiet that misses one has nothing else to wait for.
        pe.quiet()?;
        pe.scope(|s| {
            let to = x.range(LEN..)?;
            s.put_signal_nbi(to, &data, signal, 2 * round - 1, SignalOp::Set, pe.right())
        })?;
        let mut arrived = vec![0; LEN];
        pe.get(&mut arrived, x.range(LEN..)?, pe.right())?;
        assert_eq!(arrived, *data, "alone");
        // The second is behind a put that is still under way.
        pe.scope(|s| {
            s.put_nbi(x.range(..LEN)?, &data, pe.right())?;
            let to = x.range(LEN..)?;
            s.put_signal_nbi(to, &data, signal, 2 * round, SignalOp::Set, pe.right())
        })?;
        pe.signal_wait_until(signal, Cmp::Ge, 2 * round)?;
        pe.barrier_all()?;
        let expected = patterns(pe.left() + round as usize, LEN);
        assert_eq!(pe.own(x)?, [&expected[..], &expected[..]].concat());
        pe.barrier_all()?;
    }
    pe.free(signal)?;
    pe.free(x)
}
