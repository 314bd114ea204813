//! Barrier, sync, broadcast and sum.

use std::fmt::Debug;

use oxshmem::{Cmp, Pod, Result, Summable, Sym};

use crate::setting::{Pe, pattern, patterns};

pub fn no_pe_leaves_a_barrier_before_all_have_entered(pe: &Pe<'_>) -> Result<()> {
    let entered = pe.alloc_zeroed::<u64>(1)?;
    let n = pe.n_pes() as u64;
    for round in 1..=pe.rounds(3000) as u64 {
        pe.inc(entered, round as usize % pe.n_pes())?;
        match round % 2 {
            0 => pe.barrier_all()?,
            _ => {
                pe.quiet()?;
                pe.sync_all()?;
            }
        }
        let all: u64 = (0..pe.n_pes())
            .map(|at| pe.g(entered, at))
            .sum::<Result<u64>>()?;
        assert!(all >= round * n, "{all} in round {round}");
        pe.barrier_all()?;
    }
    pe.free(entered)
}

pub fn sync_makes_own_stores_visible(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(4)?;
    for round in 1..=pe.rounds(1000) as u64 {
        if pe.is_mapped() {
            // Own memory, stored by this PE: no quiet is needed for a peer to see it.
            pe.write(x, &[round; 4])?;
        } else {
            pe.write(x, &[round; 4])?;
            pe.quiet()?;
        }
        pe.sync_all()?;
        assert_eq!(pe.copy_at(x, pe.right())?, [round; 4]);
        pe.sync_all()?;
    }
    pe.free(x)
}

fn lengths(pe: &Pe<'_>) -> [usize; 6] {
    let longest = if pe.has_addresses() { 70_001 } else { 20_001 };
    [0, 1, 3, 17, pe.longest(1000), pe.longest(longest)]
}

fn broadcasts<T: Pod + PartialEq + Debug>(pe: &Pe<'_>, make: fn(u64) -> T) -> Result<()> {
    let most = 70_001;
    let (dst, src): (Sym<T>, Sym<T>) = (pe.alloc(most)?, pe.alloc(most)?);
    for len in lengths(pe) {
        let (dst, src) = (dst.range(..len)?, src.range(..len)?);
        for root in 0..pe.n_pes() {
            let data = |at: usize| -> Vec<T> {
                (0..len).map(|i| make(pattern(at * 8 + root, i))).collect()
            };
            pe.write(src, &data(pe.me()))?;
            pe.broadcast(dst, src, root)?;
            assert!(pe.own(dst)? == data(root), "{len} elements from PE {root}");
            assert!(pe.own(src)? == data(pe.me()), "the source is as it was");
            // In place.
            pe.broadcast(src, src, root)?;
            assert!(
                pe.own(src)? == data(root),
                "{len} elements in place from PE {root}"
            );
        }
    }
    pe.free(dst)?;
    pe.free(src)
}

pub fn broadcast_gives_every_pe_the_roots_data(pe: &Pe<'_>) -> Result<()> {
    broadcasts::<u8>(pe, |v| v as u8)?;
    broadcasts::<u64>(pe, |v| v)?;
    broadcasts::<[u8; 3]>(pe, |v| [v as u8, (v >> 8) as u8, (v >> 16) as u8])
}

/// No user synchronisation between collectives, and sources change right after each.
pub fn collectives_may_follow_each_other_at_once(pe: &Pe<'_>) -> Result<()> {
    let (dst, src) = (pe.alloc::<u64>(40)?, pe.alloc::<u64>(40)?);
    for round in 0..pe.rounds(1000) {
        let root = round % pe.n_pes();
        let len = pattern(3, round) as usize % 41;
        let (dst, src) = (dst.range(..len)?, src.range(..len)?);
        pe.write(src, &patterns(pe.me() + 16 * round, len))?;
        pe.broadcast(dst, src, root)?;
        pe.write(src, &vec![pe.me() as u64 + 1; len])?;
        assert_eq!(
            pe.own(dst)?,
            patterns(root + 16 * round, len),
            "round {round}"
        );
        pe.sum_reduce(dst, src)?;
        pe.write(src, &vec![u64::MAX; len])?;
        let n = pe.n_pes() as u64;
        assert_eq!(pe.own(dst)?, vec![n * (n + 1) / 2; len], "round {round}");
        if round % 3 == 0 {
            pe.barrier_all()?;
        }
    }
    pe.free(src)?;
    pe.free(dst)
}

fn sums<T: Summable + PartialEq + Debug>(pe: &Pe<'_>, make: fn(u64) -> T) -> Result<()> {
    let most = pe.longest(20_001);
    let (dst, src): (Sym<T>, Sym<T>) = (pe.alloc(most)?, pe.alloc(most)?);
    let data =
        |at: usize, len: usize| -> Vec<T> { (0..len).map(|i| make(pattern(at, i))).collect() };
    for len in [0, 1, 2, 3, 5, 8, pe.longest(1001), most] {
        let (dst, src) = (dst.range(..len)?, src.range(..len)?);
        let mut expected = data(0, len);
        for at in 1..pe.n_pes() {
            for (sum, value) in expected.iter_mut().zip(data(at, len)) {
                *sum = sum.sum(value);
            }
        }
        let bytes = |v: &[T]| bytemuck::cast_slice::<T, u8>(v).to_vec();
        pe.write(src, &data(pe.me(), len))?;
        pe.sum_reduce(dst, src)?;
        // Bit for bit: the order of the PEs is the order of the additions.
        assert!(bytes(&pe.own(dst)?) == bytes(&expected), "{len} elements");
        assert!(
            bytes(&pe.own(src)?) == bytes(&data(pe.me(), len)),
            "the source is as it was"
        );
        pe.sum_reduce(src, src)?;
        assert!(
            bytes(&pe.own(src)?) == bytes(&expected),
            "{len} elements in place"
        );
    }
    pe.free(dst)?;
    pe.free(src)
}

pub fn sums_of_integers_equal_a_serial_reference_and_wrap(pe: &Pe<'_>) -> Result<()> {
    sums::<i8>(pe, |v| v as i8)?;
    sums::<u16>(pe, |v| v as u16)?;
    sums::<i32>(pe, |v| v as i32)?;
    sums::<u32>(pe, |v| v as u32)?;
    sums::<i64>(pe, |v| v as i64)?;
    sums::<u64>(pe, |v| v)
}

pub fn sums_of_the_other_types_equal_a_serial_reference(pe: &Pe<'_>) -> Result<()> {
    sums::<u8>(pe, |v| v as u8)?;
    sums::<i16>(pe, |v| v as i16)?;
    sums::<isize>(pe, |v| v as isize)?;
    sums::<usize>(pe, |v| v as usize)?;
    sums::<u128>(pe, |v| u128::from(v) << 64 | u128::from(!v))?;
    sums::<i128>(pe, |v| i128::from(v as i64) << 60)
}

pub fn sums_of_floats_have_the_same_bits_on_every_pe(pe: &Pe<'_>) -> Result<()> {
    sums::<f32>(pe, |v| (v as i32 as f32) * 1.0e-3)?;
    sums::<f64>(pe, |v| (v as i64 as f64) * 1.0e-9)
}

/// A collective may read a source that its owner wrote just before, and PEs come at any time.
pub fn late_pes_do_not_disturb_a_collective(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(100)?;
    let turn = pe.alloc_zeroed::<u64>(1)?;
    for round in 0..pe.rounds(100) {
        // One after the other, in an order that changes.
        let place = (pe.me() + round) % pe.n_pes();
        if place > 0 {
            pe.wait_until(turn, Cmp::Ge, round as u64 + 1)?;
        }
        if place + 1 < pe.n_pes() {
            pe.p(turn, round as u64 + 1, pe.right())?;
            pe.quiet()?;
        }
        pe.write(x, &vec![(round + pe.me()) as u64; 100])?;
        pe.sum_reduce(x, x)?;
        let n = pe.n_pes();
        let sum = (0..n).map(|at| round + at).sum::<usize>() as u64;
        assert_eq!(pe.own(x)?, vec![sum; 100], "round {round}");
        pe.barrier_all()?;
    }
    pe.free(turn)?;
    pe.free(x)
}
