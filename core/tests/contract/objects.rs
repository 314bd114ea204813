//! Objects and addresses: M1 to M8b.

use std::sync::Arc;

use oxshmem::{Error, Result, Sym, World};
use oxshmem_bootstrap::Single;
use oxshmem_loopback::Loopback;
use proptest::prelude::*;

use crate::setting::{Path, Pe, network, pattern, patterns, runner};

oxshmem::symmetric! {
    static COUNTER: u64 = 41;
    static TABLE: [u16; 5] = [1, 2, 3, 4, 5];
    static LAST: f64 = 0.5;
}

/// A second world of this process, of one PE.
pub fn another_world() -> Result<World> {
    World::builder()
        .bootstrap(Arc::new(Single::new()))
        .transports(vec![Arc::new(Loopback::new())])
        .heap_limit(4 << 20)
        .join()
}

pub fn m2_heap_objects_exist_on_every_pe(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u64>(pe.n_pes() + 1)?;
    for to in 0..pe.n_pes() {
        pe.p(x.at(pe.me())?, pattern(pe.me(), to), to)?;
    }
    pe.barrier_all()?;
    for (from, value) in pe.own(x)?.into_iter().take(pe.n_pes()).enumerate() {
        assert_eq!(value, pattern(from, pe.me()), "from PE {from}");
    }
    pe.free(x)
}

pub fn m2_statics_exist_on_every_pe_with_their_initial_values(pe: &Pe<'_>) -> Result<()> {
    let (counter, table, last) = (COUNTER.get(pe)?, TABLE.get(pe)?, LAST.get(pe)?);
    for at in 0..pe.n_pes() {
        assert_eq!(pe.g(counter, at)?, 41);
        assert_eq!(pe.g(table, at)?, [1, 2, 3, 4, 5]);
        assert_eq!(pe.g(last, at)?, 0.5);
    }
    pe.barrier_all()?;
    pe.fetch_add(counter, 1, pe.right())?;
    pe.p(last, pe.me() as f64, pe.right())?;
    pe.barrier_all()?;
    assert_eq!(pe.g(counter, pe.me())?, 42);
    assert_eq!(pe.g(last, pe.me())?, pe.left() as f64);
    assert_eq!(pe.g(table, pe.me())?, [1, 2, 3, 4, 5]);
    pe.barrier_all()?;
    pe.write(counter, &[41])?;
    pe.write(last, &[0.5])?;
    pe.barrier_all()
}

pub fn m2_each_world_has_its_own_statics(pe: &Pe<'_>) -> Result<()> {
    let other = another_world()?;
    other.write(COUNTER.get(&other)?, &[1_000_000])?;
    pe.barrier_all()?;
    assert_eq!(pe.g(COUNTER.get(pe)?, pe.right())?, 41);
    assert!(matches!(
        other.g(COUNTER.get(pe)?, 0),
        Err(Error::Foreign { .. })
    ));
    other.finalize()
}

pub fn m3_offsets_are_the_same_on_every_pe(pe: &Pe<'_>) -> Result<()> {
    let offsets = pe.alloc::<u64>(pe.n_pes())?;
    let blocks = [
        pe.alloc::<u8>(3)?,
        pe.alloc::<u8>(4097)?,
        pe.alloc::<u8>(64)?,
    ];
    let mine = blocks.iter().fold(0, |hash, b| hash * 31 + b.offset());
    pe.p(offsets.at(pe.me())?, mine, 0)?;
    pe.barrier_all()?;
    assert!(pe.copy_at(offsets, 0)?.iter().all(|theirs| *theirs == mine));
    pe.barrier_all()?;
    for block in blocks {
        pe.free(block)?;
    }
    pe.free(offsets)
}

pub fn m5_elements_and_ranges_stay_inside_their_object(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u32>(100)?;
    let mine: Vec<u32> = (0..100).map(|i| pattern(pe.me(), i) as u32).collect();
    pe.write(x, &mine)?;
    pe.barrier_all()?;
    let theirs = |i| pattern(pe.right(), i) as u32;
    let mut runner = runner(256);
    let cut = (0_usize..=100).prop_flat_map(|start| (Just(start), start..=100));
    let cut = cut.prop_flat_map(|(start, end)| (Just(start), Just(end), 0..=end - start));
    let checked = runner.run(&cut, |(start, end, inner)| {
        let part = x.range(start..end).unwrap();
        prop_assert_eq!(part.len(), end - start);
        prop_assert_eq!(part.offset(), x.offset() + 4 * start as u64);
        let nested = part.range(inner..).unwrap();
        let got = pe.copy_at(nested, pe.right()).unwrap();
        let expected: Vec<u32> = (start + inner..end).map(theirs).collect();
        prop_assert_eq!(got, expected);
        prop_assert!(part.at(part.len()).is_err() && part.range(..part.len() + 1).is_err());
        prop_assert!(part.range(part.len() + 1..).is_err());
        prop_assert!(part.range(..=usize::MAX).is_err() && part.at(usize::MAX).is_err());
        if inner < part.len() {
            let element = pe.g(part.at(inner).unwrap(), pe.right()).unwrap();
            prop_assert_eq!(element, theirs(start + inner));
        }
        Ok(())
    });
    checked.unwrap_or_else(|e| panic!("{e}"));
    pe.free(x)
}

pub fn m6_a_handle_means_nothing_to_another_world(pe: &Pe<'_>) -> Result<()> {
    let other = another_world()?;
    let (x, y) = (other.alloc::<u64>(8)?, pe.alloc::<u64>(8)?);
    let foreign = |result: Result<()>| assert!(matches!(result, Err(Error::Foreign { .. })));
    let mut buffer = [0; 8];
    foreign(pe.put(x, &[1; 8], 0));
    foreign(pe.get(&mut buffer, x, 0));
    foreign(pe.p(x, 1, 0));
    foreign(pe.g(x, 0).map(drop));
    foreign(pe.iput(x, &[1; 8], 1, 1, 8, 0));
    foreign(pe.iget(&mut buffer, x, 1, 1, 8, 0));
    foreign(pe.fetch_add(x, 1, 0).map(drop));
    foreign(pe.set(x, 1, 0));
    foreign(pe.compare_swap(x, 0, 1, 0).map(drop));
    foreign(pe.put_signal(y, &[1], x, 1, oxshmem::SignalOp::Set, 0));
    foreign(pe.put_signal(x, &[1], y, 1, oxshmem::SignalOp::Set, 0));
    foreign(pe.signal_fetch(x).map(drop));
    foreign(pe.test(x, oxshmem::Cmp::Eq, 0).map(drop));
    foreign(pe.wait_until(x, oxshmem::Cmp::Eq, 0));
    foreign(pe.wait_until_all(x, None, oxshmem::Cmp::Eq, 0));
    foreign(pe.scope(|s| s.put_nbi(x, &[1; 8], 0)));
    foreign(pe.put_from(x, y, 0));
    foreign(pe.put_from(y, x, 0));
    foreign(pe.get_into(x, y, 0));
    foreign(pe.get_into(y, x, 0));
    foreign(other.put(y, &[1; 8], 0));
    assert!(pe.ptr(x, 0).is_none() && !pe.addr_accessible(x, 0));
    other.free(x)?;
    other.finalize()?;
    pe.free(y)
}

pub fn m7_a_cast_keeps_alignment_and_size(pe: &Pe<'_>) -> Result<()> {
    let bytes = pe.alloc::<u8>(64)?;
    assert_eq!(bytes.cast::<u64>()?.len(), 8);
    assert_eq!(
        bytes.range(8..24)?.cast::<u128>().is_ok(),
        align_of::<u128>() <= 8
    );
    for start in 1..8 {
        let part = bytes.range(start..start + 8)?;
        assert!(matches!(
            part.cast::<u64>(),
            Err(Error::Misaligned { align: 8, .. })
        ));
        assert_eq!(part.cast::<[u8; 8]>()?.len(), 1);
    }
    assert!(matches!(
        bytes.range(..7)?.cast::<u32>(),
        Err(Error::Argument { .. })
    ));
    // Bytes need no alignment: an object may begin anywhere.
    let odd = bytes.range(3..3 + 37)?;
    let source: Vec<u8> = patterns(pe.me(), 37).iter().map(|v| *v as u8).collect();
    pe.put(odd, &source, pe.right())?;
    pe.barrier_all()?;
    let expected: Vec<u8> = patterns(pe.left(), 37).iter().map(|v| *v as u8).collect();
    assert_eq!(pe.own(odd)?, expected);
    pe.free(bytes)
}

pub fn m8_ptr_gives_a_peers_object_where_it_is_mapped(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(4)?;
    assert!(pe.ptr(x, pe.n_pes()).is_none());
    for at in 0..pe.n_pes() {
        let Some(theirs) = pe.ptr(x, at) else {
            let mapped = pe.has_addresses() || pe.is_a_near_one(at);
            assert!(!mapped, "PE {at} is mapped");
            continue;
        };
        // Its own a PE has whatever the transports.
        assert!(pe.has_address_of(at));
        assert_eq!((theirs.len(), theirs.is_empty()), (4, false));
        if at == pe.right() {
            theirs.store(3, pattern(pe.me(), 3))?;
        }
        assert!(matches!(theirs.load(4), Err(Error::OutOfRange { .. })));
        assert!(matches!(theirs.store(4, 0), Err(Error::OutOfRange { .. })));
    }
    pe.barrier_all()?;
    if pe.has_addresses() || pe.is_a_near_one(pe.left()) {
        assert_eq!(pe.g(x.at(3)?, pe.me())?, pattern(pe.left(), 3));
        let own = pe.ptr(x, pe.me()).expect("this PE's own");
        assert_eq!(own.load(3)?, pattern(pe.left(), 3));
        // SAFETY: the address is valid while the world lives, and no PE writes the word now.
        let direct = unsafe { own.as_ptr().add(3).read_volatile() };
        assert_eq!(direct, pattern(pe.left(), 3));
    }
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m8b_accessible_is_an_answer_and_never_an_error(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc::<u8>(10)?;
    for at in 0..pe.n_pes() {
        assert!(pe.pe_accessible(at) && pe.addr_accessible(x, at));
        assert!(pe.addr_accessible(x.range(3..5)?, at) && pe.addr_accessible(COUNTER.get(pe)?, at));
    }
    for at in [pe.n_pes(), pe.n_pes() + 100, usize::MAX] {
        assert!(!pe.pe_accessible(at) && !pe.addr_accessible(x, at));
    }
    pe.free(x)?;
    assert!(
        !pe.addr_accessible(x, pe.me()),
        "a freed block is no symmetric object"
    );
    Ok(())
}

pub fn m4_the_bytes_of_every_element_type_arrive(pe: &Pe<'_>) -> Result<()> {
    fn check<T: oxshmem::Pod + PartialEq + std::fmt::Debug>(pe: &Pe<'_>) -> Result<()> {
        for len in [1, 2, 7, 64, 1001] {
            let x: Sym<T> = pe.alloc(len)?;
            let make = |from: usize| -> Vec<T> {
                let mut made = vec![T::zeroed(); len];
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut made);
                bytes
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, b)| *b = pattern(from, i) as u8);
                made
            };
            pe.put(x, &make(pe.me()), pe.right())?;
            pe.barrier_all()?;
            let bytes = |v: &[T]| bytemuck::cast_slice::<T, u8>(v).to_vec();
            assert_eq!(bytes(&pe.own(x)?), bytes(&make(pe.left())));
            let theirs = pe.copy_at(x, pe.right())?;
            assert_eq!(bytes(&theirs), bytes(&make(pe.me())));
            let one = pe.g(x.at(len - 1)?, pe.right())?;
            assert_eq!(bytes(&[one]), bytes(&make(pe.me())[len - 1..]));
            pe.barrier_all()?;
            pe.p(x.at(len / 2)?, make(pe.me())[0], pe.right())?;
            pe.barrier_all()?;
            let one = pe.g(x.at(len / 2)?, pe.me())?;
            assert_eq!(bytes(&[one]), bytes(&make(pe.left())[..1]));
            pe.free(x)?;
        }
        Ok(())
    }
    check::<u8>(pe)?;
    check::<i16>(pe)?;
    check::<f32>(pe)?;
    check::<u64>(pe)?;
    check::<u128>(pe)?;
    check::<[u8; 3]>(pe)?;
    check::<[f64; 5]>(pe)
}

/// Long transfers at every offset within a word, by put, get and the symmetric forms.
pub fn m4_any_length_at_any_offset_arrives_and_nothing_else_changes(pe: &Pe<'_>) -> Result<()> {
    const SIZE: usize = 300_000;
    let (x, staged) = (pe.alloc::<u8>(SIZE)?, pe.alloc::<u8>(SIZE)?);
    let bytes: Vec<u8> = patterns(pe.me(), SIZE / 8)
        .iter()
        .flat_map(|v| v.to_ne_bytes())
        .collect();
    let cases = match pe.setting.path {
        Path::Mapped => 40,
        Path::Simulator => 1,
        _ => 12,
    };
    let mut runner = runner(cases);
    let length = prop_oneof![0_usize..70, 1000_usize..5000, 60_000_usize..140_000];
    let checked = runner.run(
        &(0_usize..100, length, any::<bool>()),
        |(start, len, from)| {
            pe.write(x, &[0xaa; SIZE]).unwrap();
            pe.barrier_all().unwrap();
            let part = x.range(start..start + len).unwrap();
            let source = bytes.get(start + 3..start + 3 + len).unwrap();
            if from {
                let staged = staged.range(start + 5..start + 5 + len).unwrap();
                pe.write(staged, source).unwrap();
                pe.put_from(part, staged, pe.right()).unwrap();
            } else {
                pe.put(part, source, pe.right()).unwrap();
            }
            pe.barrier_all().unwrap();
            let theirs = pe.copy_at(part, pe.right()).unwrap();
            prop_assert!(theirs == source, "get at {} of {}", start, len);
            let back = staged.range(7..7 + len).unwrap();
            pe.get_into(back, part, pe.right()).unwrap();
            prop_assert!(
                pe.own(back).unwrap() == source,
                "get_into at {} of {}",
                start,
                len
            );
            let mine = pe.own(x).unwrap();
            let outside = |b: &u8| *b == 0xaa;
            prop_assert!(
                mine.iter().take(start).all(outside),
                "bytes before {}",
                start
            );
            prop_assert!(mine.iter().skip(start + len).all(outside), "bytes after");
            pe.barrier_all().unwrap();
            Ok(())
        },
    );
    checked.unwrap_or_else(|e| panic!("{e}"));
    pe.free(staged)?;
    pe.free(x)
}

pub fn the_routes_say_how_each_pe_is_reached(pe: &Pe<'_>) -> Result<()> {
    assert_eq!(pe.routes().len(), pe.n_pes());
    for (to, route) in pe.routes().into_iter().enumerate() {
        let (name, by_lanes) = match pe.setting.path {
            Path::Tiny => ("tiny", true),
            // Host memory, beside the GPUs'.
            Path::Mapped | Path::Checked | Path::Gpu => ("loopback", false),
            Path::Weak | Path::Queues | Path::Named => ("weak(loopback)", true),
            Path::Simulator => ("simulator", false),
            Path::Hosts if pe.is_a_near_one(to) => ("loopback", false),
            Path::Hosts => (network(), true),
        };
        // To its own memory a PE takes no lane.
        let own = by_lanes && to == pe.me();
        assert_eq!(route.transport, Some(if own { "self" } else { name }));
        assert_eq!(route.mapped, own || !by_lanes);
        assert!(
            route.considered.iter().any(|c| c.answer.contains("chosen")),
            "{route:?}"
        );
    }
    Ok(())
}
