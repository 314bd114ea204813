//! Atomics: M28 to M30.

use std::fmt::Debug;

use oxshmem::{AtomicBits, AtomicInt, AtomicValue, Error, Pod, Result, Sym};

use crate::setting::Pe;

/// Asserts the error of the 32-bit forms where the route has none.
pub fn is_refused<T: Debug>(result: Result<T>) {
    assert!(
        matches!(result, Err(Error::Unsupported { .. })),
        "{result:?}"
    );
}

/// Fetch, set and swap of the values, on every PE in turn; `bits` so that NaNs compare.
fn values<T: AtomicValue + Debug, B: PartialEq + Debug>(
    pe: &Pe<'_>,
    values: &[T],
    bits: fn(T) -> B,
) -> Result<()> {
    let x: Sym<T> = pe.alloc_zeroed(pe.n_pes() + 2)?;
    let mine = x.at(pe.me() + 1)?;
    if size_of::<T>() == 4 && !pe.has_atomics_of_32_bits_at(pe.right()) {
        for value in values {
            is_refused(pe.fetch(mine, pe.right()));
            is_refused(pe.set(mine, *value, pe.right()));
            is_refused(pe.swap(mine, *value, pe.right()));
        }
        return pe.free(x);
    }
    for at in 0..pe.n_pes() {
        let mut before = T::zeroed();
        for value in values {
            assert_eq!(bits(pe.swap(mine, *value, at)?), bits(before));
            assert_eq!(bits(pe.fetch(mine, at)?), bits(*value));
            pe.set(mine, T::zeroed(), at)?;
            // M16 and M19: a fetch after a quiet sees what was set before it.
            pe.quiet()?;
            assert_eq!(bits(pe.fetch(mine, at)?), bits(T::zeroed()));
            pe.set(mine, *value, at)?;
            pe.quiet()?;
            before = *value;
        }
    }
    pe.barrier_all()?;
    let all = pe.own(x)?;
    let last = values.last().copied().unwrap_or(T::zeroed());
    assert!(
        all.iter()
            .skip(1)
            .take(pe.n_pes())
            .all(|v| bits(*v) == bits(last))
    );
    let zero = bits(T::zeroed());
    assert!(
        all.first().is_some_and(|v| bits(*v) == zero),
        "the word before"
    );
    assert!(
        all.last().is_some_and(|v| bits(*v) == zero),
        "the word after"
    );
    pe.free(x)
}

pub fn m30_fetch_set_and_swap_take_all_types(pe: &Pe<'_>) -> Result<()> {
    values::<i32, _>(pe, &[1, -1, i32::MIN, i32::MAX], |v| v)?;
    values::<u32, _>(pe, &[1, u32::MAX, 0x8000_0000], |v| v)?;
    values::<i64, _>(pe, &[1, -1, i64::MIN, i64::MAX], |v| v)?;
    values::<u64, _>(pe, &[1, u64::MAX, 1 << 63], |v| v)?;
    values::<isize, _>(pe, &[1, -1, isize::MIN], |v| v)?;
    values::<usize, _>(pe, &[1, usize::MAX], |v| v)?;
    let f32s = [1.5, -0.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE / 2.0];
    values::<f32, _>(pe, &f32s, f32::to_bits)?;
    let f64s = [
        1.5,
        -0.0,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE / 2.0,
    ];
    values::<f64, _>(pe, &f64s, f64::to_bits)
}

fn arithmetic<T: AtomicInt + PartialEq + Debug>(
    pe: &Pe<'_>,
    operands: &[T],
    add: fn(T, T) -> T,
    one: T,
) -> Result<()> {
    let x: Sym<T> = pe.alloc_zeroed(pe.n_pes())?;
    let mine = x.at(pe.me())?;
    if size_of::<T>() == 4 && !pe.has_atomics_of_32_bits_at(pe.right()) {
        is_refused(pe.fetch_add(mine, one, pe.right()));
        is_refused(pe.add(mine, one, pe.right()));
        is_refused(pe.fetch_inc(mine, pe.right()));
        is_refused(pe.inc(mine, pe.right()));
        is_refused(pe.compare_swap(mine, one, one, pe.right()));
        return pe.free(x);
    }
    for at in 0..pe.n_pes() {
        let mut model = T::zeroed();
        for (a, b) in operands.iter().zip(operands.iter().rev()) {
            assert_eq!(pe.fetch_add(mine, *a, at)?, model);
            model = add(model, *a);
            pe.add(mine, *b, at)?;
            model = add(model, *b);
            // M17: without it the next may come first.
            pe.fence()?;
            assert_eq!(pe.fetch_inc(mine, at)?, model);
            model = add(model, one);
            pe.inc(mine, at)?;
            model = add(model, one);
            pe.fence()?;
            // It swaps where it finds what is expected, and else it doesn't; both tell what was.
            let wrong = add(model, one);
            assert_eq!(pe.compare_swap(mine, wrong, *a, at)?, model);
            assert_eq!(pe.fetch(mine, at)?, model);
            assert_eq!(pe.compare_swap(mine, model, *b, at)?, model);
            assert_eq!(pe.fetch(mine, at)?, *b);
            model = *b;
        }
    }
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m30_arithmetic_takes_the_standard_types_and_wraps(pe: &Pe<'_>) -> Result<()> {
    arithmetic::<i32>(pe, &[1, -1, i32::MAX, i32::MIN, 7], i32::wrapping_add, 1)?;
    arithmetic::<u32>(pe, &[1, u32::MAX, 1 << 31, 5], u32::wrapping_add, 1)?;
    arithmetic::<i64>(pe, &[1, -1, i64::MAX, i64::MIN, 7], i64::wrapping_add, 1)?;
    arithmetic::<u64>(pe, &[1, u64::MAX, 1 << 63, 5], u64::wrapping_add, 1)?;
    arithmetic::<isize>(pe, &[1, -1, isize::MAX, isize::MIN], isize::wrapping_add, 1)?;
    arithmetic::<usize>(pe, &[1, usize::MAX, 77], usize::wrapping_add, 1)
}

fn bitwise<T: AtomicBits + PartialEq + Debug>(
    pe: &Pe<'_>,
    operands: &[T],
    [and, or, xor]: [fn(T, T) -> T; 3],
) -> Result<()> {
    let x: Sym<T> = pe.alloc_zeroed(pe.n_pes())?;
    let mine = x.at(pe.me())?;
    if size_of::<T>() == 4 && !pe.has_atomics_of_32_bits_at(pe.right()) {
        for value in operands {
            is_refused(pe.fetch_and(mine, *value, pe.right()));
            is_refused(pe.or(mine, *value, pe.right()));
            is_refused(pe.fetch_xor(mine, *value, pe.right()));
        }
        return pe.free(x);
    }
    for at in 0..pe.n_pes() {
        let mut model = T::zeroed();
        for (a, b) in operands.iter().zip(operands.iter().rev()) {
            assert_eq!(pe.fetch_or(mine, *a, at)?, model);
            model = or(model, *a);
            assert_eq!(pe.fetch_xor(mine, *b, at)?, model);
            model = xor(model, *b);
            assert_eq!(pe.fetch_and(mine, *a, at)?, model);
            model = and(model, *a);
            // M17: one after another they come by a fence only.
            pe.or(mine, *b, at)?;
            pe.fence()?;
            model = or(model, *b);
            pe.and(mine, *a, at)?;
            pe.fence()?;
            model = and(model, *a);
            pe.xor(mine, *b, at)?;
            pe.fence()?;
            model = xor(model, *b);
            assert_eq!(pe.fetch(mine, at)?, model);
        }
        pe.set(mine, T::zeroed(), at)?;
        pe.quiet()?;
    }
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m30_bitwise_takes_unsigned_and_fixed_signed(pe: &Pe<'_>) -> Result<()> {
    bitwise::<u32>(
        pe,
        &[0xff00_ff00, 0x1234_5678, u32::MAX],
        [|a, b| a & b, |a, b| a | b, |a, b| a ^ b],
    )?;
    bitwise::<i32>(
        pe,
        &[-1, 0x1234_5678, i32::MIN],
        [|a, b| a & b, |a, b| a | b, |a, b| a ^ b],
    )?;
    bitwise::<u64>(
        pe,
        &[0xff00_ff00 << 32, 0x1234_5678_9abc, u64::MAX],
        [|a, b| a & b, |a, b| a | b, |a, b| a ^ b],
    )?;
    bitwise::<i64>(
        pe,
        &[-1, 0x1234_5678_9abc, i64::MIN],
        [|a, b| a & b, |a, b| a | b, |a, b| a ^ b],
    )?;
    bitwise::<usize>(
        pe,
        &[usize::MAX, 0x1234_5678],
        [|a, b| a & b, |a, b| a | b, |a, b| a ^ b],
    )
}

/// All PEs at once on one word of one PE: no update is lost.
fn contended<T: AtomicInt + PartialEq + Debug + Copy>(
    pe: &Pe<'_>,
    rounds: usize,
    total: fn(usize) -> T,
    one: T,
    two: T,
) -> Result<()> {
    let x: Sym<T> = pe.alloc_zeroed(pe.n_pes() * 3)?;
    if size_of::<T>() == 4 && !pe.has_atomics_of_32_bits_at(pe.right()) {
        return pe.free(x);
    }
    for round in 0..rounds {
        let at = round % pe.n_pes();
        pe.add(x.at(0)?, one, at)?;
        pe.fetch_add(x.at(1)?, two, at)?;
        pe.inc(x.at(1)?, at)?;
        loop {
            let old = pe.fetch(x.at(2)?, at)?;
            let [next] = [old].map(|v| add_one(v, one));
            if pe.compare_swap(x.at(2)?, old, next, at)? == old {
                break;
            }
        }
    }
    pe.barrier_all()?;
    let mine = (0..rounds).filter(|r| r % pe.n_pes() == pe.me()).count() * pe.n_pes();
    assert_eq!(
        pe.own(x.range(..3)?)?,
        [total(mine), total(3 * mine), total(mine)]
    );
    pe.free(x)
}

fn add_one<T: Pod>(value: T, one: T) -> T {
    // Little numbers: the low half is all there is.
    let (mut value, one) = (value, one);
    let (low, add) = (bytemuck::bytes_of_mut(&mut value), bytemuck::bytes_of(&one));
    let mut carry = 0;
    for (v, a) in low.iter_mut().zip(add) {
        let sum = u16::from(*v) + u16::from(*a) + carry;
        *v = sum as u8;
        carry = sum >> 8;
    }
    value
}

pub fn m28_no_contended_update_is_lost(pe: &Pe<'_>) -> Result<()> {
    let rounds = pe.rounds(4000);
    contended::<u64>(pe, rounds, |n| n as u64, 1, 2)?;
    contended::<i64>(pe, rounds, |n| n as i64, 1, 2)?;
    contended::<u32>(pe, rounds, |n| n as u32, 1, 2)?;
    contended::<i32>(pe, rounds, |n| n as i32, 1, 2)
}

/// Each PE has as many updates on their way to one PE as it may have.
pub fn m28_updates_that_nobody_waits_for_all_count(pe: &Pe<'_>) -> Result<()> {
    let rounds = pe.rounds(4000).max(200);
    let x = pe.alloc_zeroed::<u64>(1)?;
    for _ in 0..rounds {
        pe.inc(x, 0)?;
    }
    pe.barrier_all()?;
    assert_eq!(pe.fetch(x, 0)?, (rounds * pe.n_pes()) as u64);
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m28_every_ticket_is_given_once(pe: &Pe<'_>) -> Result<()> {
    let rounds = pe.rounds(2000);
    let counter = pe.alloc_zeroed::<u64>(1)?;
    let taken = pe.alloc_zeroed::<u64>(rounds * pe.n_pes())?;
    for _ in 0..rounds {
        let ticket = pe.fetch_inc(counter, 0)? as usize;
        // Marks it by an atomic of every width of use: swap tells if it was taken.
        assert_eq!(
            pe.swap(taken.at(ticket)?, pe.me() as u64 + 1, 0)?,
            0,
            "ticket {ticket}"
        );
    }
    pe.barrier_all()?;
    let all = pe.copy_at(taken, 0)?;
    for from in 0..pe.n_pes() as u64 {
        assert_eq!(all.iter().filter(|t| **t == from + 1).count(), rounds);
    }
    pe.barrier_all()?;
    pe.free(taken)?;
    pe.free(counter)
}

pub fn m28_contended_bits_do_not_disturb_each_other(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(3)?;
    let bit = 1_u64 << (pe.me() * 9);
    for _ in 0..pe.rounds(2000) {
        for (i, fetching) in [(0, true), (1, false)] {
            let word = x.at(i)?;
            if fetching {
                assert_eq!(pe.fetch_or(word, bit, 0)? & bit, 0);
                assert_eq!(pe.fetch_and(word, !bit, 0)? & bit, bit);
            } else {
                pe.or(word, bit, 0)?;
                pe.fence()?;
                assert_eq!(pe.fetch(word, 0)? & bit, bit);
                pe.and(word, !bit, 0)?;
                pe.fence()?;
                assert_eq!(pe.fetch(word, 0)? & bit, 0);
            }
        }
        pe.xor(x.at(2)?, bit, 0)?;
    }
    pe.barrier_all()?;
    let odd = pe.rounds(2000) % 2 == 1;
    let all: u64 = (0..pe.n_pes()).map(|i| 1 << (i * 9)).sum();
    assert_eq!(pe.copy_at(x, 0)?, [0, 0, if odd { all } else { 0 }]);
    pe.barrier_all()?;
    pe.free(x)
}

/// A lock of compare-swap guards plain puts and gets: exclusivity and order together.
pub fn m28_a_lock_made_of_compare_swap_excludes(pe: &Pe<'_>) -> Result<()> {
    let lock = pe.alloc_zeroed::<u64>(1)?;
    let data = pe.alloc_zeroed::<u64>(8)?;
    let me = pe.me() as u64 + 1;
    for _ in 0..pe.rounds(1000) {
        while pe.compare_swap(lock, 0, me, 0)? != 0 {
            std::thread::yield_now();
        }
        // M21: in the relaxed model a get may come before the compare-swap.
        pe.fence()?;
        let seen = pe.copy_at(data, 0)?;
        assert!(seen.iter().all(|v| *v == seen[0]), "{seen:?}");
        pe.put(data, &[seen[0] + 1; 8], 0)?;
        pe.quiet()?;
        assert_eq!(pe.swap(lock, 0, 0)?, me);
    }
    pe.barrier_all()?;
    assert_eq!(
        pe.copy_at(data, 0)?,
        [(pe.rounds(1000) * pe.n_pes()) as u64; 8]
    );
    pe.barrier_all()?;
    pe.free(data)?;
    pe.free(lock)
}

pub fn m16_nonblocking_fetches_have_arrived_at_the_end_of_their_scope(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(9)?;
    pe.write(x, &[10, 20, 30, 40, 50, 0xff, 0xf0, 0xff, 1])?;
    pe.barrier_all()?;
    let mut old = [0_u64; 9];
    let at = pe.right();
    pe.scope(|s| {
        let [a, b, c, d, e, f, g, h, i] = &mut old;
        s.fetch_nbi(a, x.at(0)?, at)?;
        s.swap_nbi(b, x.at(1)?, 21, at)?;
        s.compare_swap_nbi(c, x.at(2)?, 30, 31, at)?;
        s.compare_swap_nbi(d, x.at(3)?, 30, 31, at)?;
        s.fetch_add_nbi(e, x.at(4)?, 5, at)?;
        s.fetch_and_nbi(f, x.at(5)?, 0x0f, at)?;
        s.fetch_or_nbi(g, x.at(6)?, 0x0f, at)?;
        s.fetch_xor_nbi(h, x.at(7)?, 0x0f, at)?;
        s.fetch_inc_nbi(i, x.at(8)?, at)
    })?;
    assert_eq!(old, [10, 20, 30, 40, 50, 0xff, 0xf0, 0xff, 1]);
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?, [10, 21, 31, 40, 55, 0x0f, 0xff, 0xf0, 2]);
    let y = pe.alloc_zeroed::<i32>(2)?;
    let mut narrow = [7_i32; 2];
    let done = pe.scope(|s| {
        let [a, b] = &mut narrow;
        s.fetch_add_nbi(a, y.at(0)?, -3, at)?;
        s.swap_nbi(b, y.at(1)?, i32::MIN, at)
    });
    if pe.has_atomics_of_32_bits_at(pe.right()) {
        done?;
        assert_eq!(narrow, [0, 0]);
        pe.barrier_all()?;
        assert_eq!(pe.own(y)?, [-3, i32::MIN]);
    } else {
        is_refused(done);
    }
    pe.free(y)?;
    pe.free(x)
}

/// The words beside an atomic one keep their values (M29: no wide atomic in place of a narrow one).
pub fn m29_an_atomic_touches_its_own_word_only(pe: &Pe<'_>) -> Result<()> {
    if !pe.has_atomics_of_32_bits_at(pe.right()) {
        return Ok(());
    }
    // One PE adds to the even words while another puts to the odd ones beside them.
    let x = pe.alloc_zeroed::<u32>(64)?;
    for round in 1..=pe.rounds(300) as u32 {
        for i in 0..32 {
            pe.add(x.at(2 * i)?, 1, 0)?;
            if pe.me() == pe.n_pes() - 1 {
                pe.p(x.at(2 * i + 1)?, round, 0)?;
            }
        }
        // Two puts to one word are not in order without one.
        pe.fence()?;
    }
    pe.barrier_all()?;
    let rounds = pe.rounds(300) as u32;
    let expected = [rounds * pe.n_pes() as u32, rounds];
    assert!(pe.copy_at(x, 0)?.chunks(2).all(|pair| pair == expected));
    pe.barrier_all()?;
    pe.free(x)
}
