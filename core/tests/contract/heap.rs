//! The symmetric heap: M9 to M14.

use oxshmem::{Cmp, Error, Hints, Result, Sym, bindings};

use crate::setting::{HEAP, Pe, pattern, patterns};

/// That every PE has the same number.
fn same_everywhere(pe: &Pe<'_>, mine: u64) -> Result<()> {
    let all = pe.alloc::<u64>(pe.n_pes())?;
    for to in 0..pe.n_pes() {
        pe.p(all.at(pe.me())?, mine, to)?;
    }
    pe.barrier_all()?;
    assert_eq!(pe.own(all)?, vec![mine; pe.n_pes()]);
    pe.free(all)
}

pub fn m10_a_block_is_usable_at_every_pe_on_return(pe: &Pe<'_>) -> Result<()> {
    for round in 0..pe.rounds(60) {
        let x = pe.alloc::<u64>(pe.n_pes() * 16)?;
        let part = x.range(pe.me() * 16..(pe.me() + 1) * 16)?;
        for to in 0..pe.n_pes() {
            pe.put(part, &patterns(round * 100 + pe.me(), 16), to)?;
        }
        pe.barrier_all()?;
        for from in 0..pe.n_pes() {
            let part = x.range(from * 16..(from + 1) * 16)?;
            assert_eq!(pe.own(part)?, patterns(round * 100 + from, 16));
        }
        pe.free(x)?;
    }
    Ok(())
}

pub fn m10_allocation_ends_with_a_barrier_that_quiets(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(pe.n_pes())?;
    for round in 1..=pe.rounds(40) as u64 {
        for to in 0..pe.n_pes() {
            pe.p(x.at(pe.me())?, round, to)?;
        }
        let block = match round % 3 {
            0 => pe.alloc::<u8>(100)?,
            1 => pe.alloc_zeroed::<u8>(100)?,
            _ => pe.alloc_aligned::<u8>(100, 256)?,
        };
        assert!(
            pe.own(x)?.iter().all(|v| *v >= round),
            "put before the allocation"
        );
        pe.free(block)?;
    }
    pe.free(x)
}

pub fn m10_free_begins_with_a_barrier_that_quiets(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(pe.n_pes())?;
    for round in 1..=pe.rounds(40) as u64 {
        let block = pe.alloc::<u8>(100)?;
        for to in 0..pe.n_pes() {
            pe.p(x.at(pe.me())?, round, to)?;
        }
        pe.free(block)?;
        assert!(pe.own(x)?.iter().all(|v| *v >= round), "put before free");
    }
    pe.free(x)
}

pub fn m11_empty_calls_do_nothing_and_wait_for_no_one(pe: &Pe<'_>) -> Result<()> {
    let turn = pe.alloc_zeroed::<u64>(1)?;
    // Were there a barrier in any of them, the first PE would wait in it for the second, which
    // waits for the first's word.
    if pe.me() > 0 {
        pe.wait_until(turn, Cmp::Eq, 1)?;
    }
    let empty = pe.alloc::<u64>(0)?;
    assert_eq!((empty.len(), empty.is_empty()), (0, true));
    assert!(pe.alloc_zeroed::<[u32; 4]>(0)?.is_empty());
    assert!(pe.alloc_aligned::<u8>(0, 4096)?.is_empty());
    assert!(
        pe.alloc_with_hints::<u8>(0, Hints::SIGNAL_REMOTE)?
            .is_empty()
    );
    assert!(pe.realloc(empty, 0)?.is_empty());
    pe.free(empty)?;
    pe.free(empty)?;
    if pe.me() + 1 < pe.n_pes() {
        pe.p(turn, 1, pe.me() + 1)?;
        pe.quiet()?;
    }
    pe.barrier_all()?;
    pe.put(empty, &[], pe.right())?;
    pe.get(&mut [], empty, pe.right())?;
    pe.free(turn)
}

pub fn m12_a_block_is_aligned_as_asked(pe: &Pe<'_>) -> Result<()> {
    let mut blocks = vec![pe.alloc::<u8>(1)?];
    for shift in 3..=pe.most_alignment().ilog2() as usize {
        let align = 1_usize << shift;
        let block = pe.alloc_aligned::<u8>(shift, align)?;
        assert_eq!(
            block.offset() % align as u64,
            0,
            "offset at alignment {align}"
        );
        if let Some(own) = pe.ptr(block, pe.me()) {
            assert_eq!(
                own.as_ptr().addr() % align,
                0,
                "address at alignment {align}"
            );
        }
        blocks.push(block);
        let plain = pe.alloc::<u8>(shift)?;
        assert!(plain.cast::<[u8; 1]>().is_ok());
        if let Some(own) = pe.ptr(plain, pe.me()) {
            assert_eq!(own.as_ptr().addr() % align_of::<u128>(), 0);
        }
        blocks.push(plain);
    }
    for block in blocks {
        pe.free(block)?;
    }
    Ok(())
}

pub fn m12_an_alignment_that_makes_no_sense_is_refused_everywhere(pe: &Pe<'_>) -> Result<()> {
    let before = pe.alloc::<u8>(10)?;
    pe.free(before)?;
    for align in [0, 1, 2, 4, 24, 63, 4095, usize::MAX] {
        let refused = pe.alloc_aligned::<u8>(10, align);
        let Err(error) = refused else {
            panic!("alignment {align} was accepted")
        };
        let message = error.to_string();
        assert!(message.contains(&align.to_string()), "{message}");
        assert!(message.contains("power of two"), "{message}");
    }
    let after = pe.alloc::<u8>(10)?;
    assert_eq!(after.offset(), before.offset());
    pe.free(after)
}

pub fn m12_zeroed_memory_is_zero_though_it_was_used(pe: &Pe<'_>) -> Result<()> {
    for len in [1, 63, 1000, 100_000] {
        let used = pe.alloc::<u8>(len)?;
        pe.put(used, &vec![0xff; len], pe.right())?;
        pe.free(used)?;
        let zeroed = pe.alloc_zeroed::<u8>(len)?;
        assert_eq!(
            zeroed.offset(),
            used.offset(),
            "the same place, so that this proves something"
        );
        assert!(
            pe.copy_at(zeroed, pe.right())?.iter().all(|b| *b == 0),
            "{len} bytes"
        );
        pe.free(zeroed)?;
    }
    Ok(())
}

pub fn m12_an_overflowing_size_is_a_failed_allocation(pe: &Pe<'_>) -> Result<()> {
    for len in [
        usize::MAX,
        usize::MAX / 2,
        usize::MAX / 8 + 1,
        usize::MAX / 8,
    ] {
        assert!(
            matches!(pe.alloc::<u64>(len), Err(Error::OutOfMemory { .. })),
            "{len}"
        );
        assert!(
            matches!(pe.alloc_zeroed::<u64>(len), Err(Error::OutOfMemory { .. })),
            "{len}"
        );
        assert!(matches!(
            pe.alloc_aligned::<u64>(len, 4096),
            Err(Error::OutOfMemory { .. })
        ));
    }
    Ok(())
}

pub fn m12_an_overflowing_realloc_fails(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(1)?;
    for len in [usize::MAX, usize::MAX / 8 + 1] {
        assert!(
            matches!(pe.realloc(x, len), Err(Error::OutOfMemory { .. })),
            "{len}"
        );
    }
    pe.free(x)
}

pub fn m13_failed_alloc_leaves_heap_unchanged(pe: &Pe<'_>) -> Result<()> {
    let keep = pe.alloc::<u64>(1000)?;
    pe.write(keep, &patterns(pe.me(), 1000))?;
    let next = pe.alloc::<u8>(5000)?;
    pe.free(next)?;
    for _ in 0..3 {
        let Err(error) = pe.alloc::<u8>(pe.heap_limit() + 1) else {
            panic!("more than the limit")
        };
        let Error::OutOfMemory { limit, bytes, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(
            (*limit, *bytes),
            (pe.heap_limit() as u64, pe.heap_limit() as u64 + 1)
        );
        let remedy = match pe.is_on_gpu() {
            true => "OXSHMEM_CUDA_SYMMETRIC_SIZE",
            false => "raise Builder::heap_limit",
        };
        assert!(
            error.to_string().contains(remedy),
            "says the remedy: {error}"
        );
    }
    let again = pe.alloc::<u8>(5000)?;
    assert_eq!(again.offset(), next.offset());
    pe.free(again)?;
    assert_eq!(pe.own(keep)?, patterns(pe.me(), 1000));
    pe.free(keep)
}

pub fn m13_a_full_heap_fails_on_all_and_can_be_used_again(pe: &Pe<'_>) -> Result<()> {
    let fill = || -> Result<Vec<Sym<u64>>> {
        let mut blocks = Vec::new();
        for len in [400_000, 20_000, 1_000, 30] {
            loop {
                match pe.alloc::<u64>(len) {
                    Ok(block) => blocks.push(block),
                    Err(Error::OutOfMemory { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(blocks)
    };
    let blocks = fill()?;
    let taken: usize = blocks.iter().map(|b| b.len() * 8).sum();
    assert!(
        taken > pe.heap_limit() / 10 * 9,
        "{taken} of {}",
        pe.heap_limit()
    );
    // The ends of every block are memory that every PE has.
    for (i, block) in blocks.iter().enumerate().step_by(blocks.len() / 20 + 1) {
        pe.p(*block, pattern(pe.me(), i), pe.right())?;
        pe.p(block.at(block.len() - 1)?, pattern(pe.me(), i), pe.right())?;
    }
    pe.barrier_all()?;
    for (i, block) in blocks.iter().enumerate().step_by(blocks.len() / 20 + 1) {
        assert_eq!(pe.g(*block, pe.me())?, pattern(pe.left(), i));
        assert_eq!(
            pe.g(block.at(block.len() - 1)?, pe.me())?,
            pattern(pe.left(), i)
        );
    }
    let offsets: Vec<u64> = blocks.iter().map(Sym::offset).collect();
    for block in blocks {
        pe.free(block)?;
    }
    let again = fill()?;
    let offsets_again: Vec<u64> = again.iter().map(Sym::offset).collect();
    assert_eq!(offsets, offsets_again, "the heap is as it was");
    for block in again {
        pe.free(block)?;
    }
    same_everywhere(pe, offsets.len() as u64)
}

pub fn m13_a_failed_realloc_leaves_the_block_as_it_was(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(300)?;
    let wall = pe.alloc::<u8>(64)?;
    pe.write(x, &patterns(pe.me(), 300))?;
    assert!(matches!(
        pe.realloc(x, pe.heap_limit()),
        Err(Error::OutOfMemory { .. })
    ));
    assert_eq!(pe.own(x)?, patterns(pe.me(), 300));
    assert!(pe.addr_accessible(x, pe.me()), "the handle is still good");
    let x = pe.realloc(x, 10)?;
    assert_eq!(pe.own(x)?, patterns(pe.me(), 10));
    pe.free(wall)?;
    pe.free(x)
}

pub fn m10_realloc_keeps_contents_and_makes_old_handles_stale(pe: &Pe<'_>) -> Result<()> {
    let mut x = pe.realloc(pe.alloc::<u64>(0)?, 50)?;
    let mut known = 50;
    pe.write(x, &patterns(pe.me(), 50))?;
    let wall = pe.alloc::<u8>(64)?;
    for len in [60, 5_000, 4_999, 100_000, 1, 7, 20_000] {
        let old = x;
        x = pe.realloc(old, len)?;
        known = known.min(len);
        assert_eq!(x.len(), len);
        let kept = x.range(..known)?;
        assert_eq!(pe.own(kept)?, patterns(pe.me(), known), "{len}");
        assert_eq!(
            pe.copy_at(kept, pe.right())?,
            patterns(pe.right(), known),
            "{len}"
        );
        assert!(!pe.addr_accessible(old, pe.me()), "the old handle is stale");
        pe.barrier_all()?;
        pe.write(x, &patterns(pe.me(), len))?;
        known = len;
        pe.barrier_all()?;
    }
    assert!(pe.realloc(x, 0)?.is_empty());
    assert!(!pe.addr_accessible(x, pe.me()), "freed");
    pe.free(wall)
}

pub fn m35_each_block_is_freed_once_and_whole(pe: &Pe<'_>) -> Result<()> {
    let (a, b) = (pe.alloc::<u64>(10)?, pe.alloc::<u64>(10)?);
    assert!(matches!(
        pe.free(a.range(..5)?),
        Err(Error::NotABlock { .. })
    ));
    assert!(matches!(
        pe.free(a.range(5..)?),
        Err(Error::NotABlock { .. })
    ));
    assert!(matches!(pe.free(a.at(3)?), Err(Error::NotABlock { .. })));
    pe.free(a)?;
    assert!(matches!(pe.free(a), Err(Error::Stale { .. })));
    let c = pe.alloc::<u64>(10)?;
    assert_eq!(c.offset(), a.offset(), "the place is used again");
    assert!(matches!(
        pe.free(a),
        Err(Error::Stale { .. } | Error::NotABlock { .. })
    ));
    let other = super::objects::another_world()?;
    let foreign = other.alloc::<u64>(10)?;
    assert!(matches!(pe.free(foreign), Err(Error::Foreign { .. })));
    other.free(foreign)?;
    other.finalize()?;
    pe.free(b)?;
    pe.free(c)
}

pub fn m35_realloc_takes_a_block_of_its_own_world_and_whole(pe: &Pe<'_>) -> Result<()> {
    let a = pe.alloc::<u64>(10)?;
    assert!(matches!(
        pe.realloc(a.range(..5)?, 20),
        Err(Error::NotABlock { .. })
    ));
    pe.free(a)?;
    assert!(matches!(pe.realloc(a, 20), Err(Error::Stale { .. })));
    let other = super::objects::another_world()?;
    let foreign = other.alloc::<u64>(10)?;
    assert!(matches!(
        pe.realloc(foreign, 20),
        Err(Error::Foreign { .. })
    ));
    other.free(foreign)?;
    other.finalize()
}

pub fn m35_a_bad_handle_on_one_pe_fails_free_on_all(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(10)?;
    let bad = if pe.me() == pe.n_pes() - 1 {
        x.range(..9)?
    } else {
        x
    };
    let Err(error) = pe.free(bad) else {
        panic!("a part was freed")
    };
    match &error {
        Error::NotABlock { .. } => assert_eq!(pe.me(), pe.n_pes() - 1),
        Error::FailedElsewhere { pe: at, .. } => assert_eq!(*at, pe.n_pes() - 1),
        Error::CollectiveMismatch { .. } => assert!(pe.n_pes() > 1),
        _ => panic!("{error}"),
    }
    pe.write(x, &patterns(1, 10))?;
    assert_eq!(pe.own(x)?, patterns(1, 10), "the block is still there");
    pe.free(x)
}

pub fn m9_blocks_lie_alike_and_apart_after_any_sequence(pe: &Pe<'_>) -> Result<()> {
    let mut live: Vec<(Sym<u8>, usize)> = Vec::new();
    let mut hash = 0_u64;
    for step in 0..pe.rounds(400) {
        let dice = pattern(7, step) as usize;
        if live.len() > 30 || (dice.is_multiple_of(3) && !live.is_empty()) {
            let (block, seed) = live.swap_remove(dice / 8 % live.len());
            assert_eq!(
                pe.own(block)?,
                bytes(seed + pe.me(), block.len()),
                "step {step}"
            );
            pe.free(block)?;
            continue;
        }
        let len = 1 + dice / 64 % 9000;
        let block = match dice / 4 % 3 {
            0 => pe.alloc::<u8>(len)?,
            1 => pe.alloc_aligned::<u8>(len, 8 << (dice % 8))?,
            _ => pe.alloc_with_hints::<u8>(len, Hints::ATOMICS_REMOTE | Hints::SIGNAL_REMOTE)?,
        };
        hash = hash.wrapping_mul(31).wrapping_add(block.offset());
        let seed = step * 16;
        pe.write(block, &bytes(seed + pe.me(), len))?;
        live.push((block, seed));
    }
    for (block, seed) in live {
        assert_eq!(pe.own(block)?, bytes(seed + pe.me(), block.len()));
        pe.free(block)?;
    }
    same_everywhere(pe, hash)
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| pattern(seed, i / 8) as u8 ^ i as u8)
        .collect()
}

pub fn m14_the_limit_is_the_one_that_was_set(pe: &Pe<'_>) -> Result<()> {
    assert_eq!(pe.heap_limit(), HEAP);
    same_everywhere(pe, pe.heap_limit() as u64)
}

pub fn m4_an_address_names_the_object_at_it(pe: &Pe<'_>) -> Result<()> {
    let block = pe.alloc::<u64>(100)?;
    let address = bindings::address_of(pe, block).unwrap();
    let part = bindings::object_at(pe, "test", address.wrapping_add(3), 5)?;
    assert_eq!((part.offset(), part.len()), (block.offset() + 24, 5));
    assert_eq!(
        bindings::rest_at(pe, "test", address.wrapping_add(98))?.len(),
        2
    );
    assert_eq!(
        bindings::block_at(pe, "test", address.cast())?,
        block.cast()?
    );
    // By arithmetic alone, where no look at the block is needed.
    if let Some(object) = bindings::addresses(pe).object(address.wrapping_add(3), 5) {
        assert_eq!((object.offset(), object.len()), (part.offset(), 5));
    }
    pe.p(part, pe.me() as u64, pe.right())?;
    pe.barrier_all()?;
    assert_eq!(pe.own(block.at(3)?)?, [pe.left() as u64]);
    pe.barrier_all()?;
    pe.free(block)
}

pub fn m35_an_address_outside_of_blocks_names_none(pe: &Pe<'_>) -> Result<()> {
    let block = pe.alloc::<u64>(100)?;
    let address = bindings::address_of(pe, block).unwrap();
    let private = 0_u64;
    assert!(bindings::object_at(pe, "test", &raw const private, 1).is_err());
    assert!(
        bindings::addresses(pe)
            .object(&raw const private, 1)
            .is_none()
    );
    assert!(bindings::object_at(pe, "test", address, 101).is_err());
    assert!(bindings::object_at(pe, "test", address.wrapping_byte_add(1), 1).is_err());
    assert!(bindings::block_at(pe, "test", address.wrapping_add(1).cast()).is_err());
    assert!(bindings::object_at::<u64>(pe, "test", std::ptr::null(), 0)?.is_empty());
    pe.free(block)?;
    assert!(bindings::object_at(pe, "test", address, 1).is_err());
    pe.barrier_all()
}

pub fn m10_after_a_rest_every_block_is_free_and_the_heap_can_be_used(pe: &Pe<'_>) -> Result<()> {
    let (first, second) = (pe.alloc::<u64>(1000)?, pe.alloc::<u8>(77)?);
    bindings::quiesce(pe)?;
    bindings::unquiesce(pe)?;
    assert!(pe.free(first).is_err() && pe.free(second).is_err());
    let again = pe.alloc::<u64>(1000)?;
    assert_eq!(again.offset(), first.offset());
    pe.p(again, 5, pe.right())?;
    pe.barrier_all()?;
    assert_eq!(pe.own(again.at(0)?)?, [5]);
    pe.barrier_all()?;
    pe.free(again)
}
