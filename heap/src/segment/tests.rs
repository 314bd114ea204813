//! Segments of all kinds of pages, their growth, and its roll-back.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;

fn segment(limit: usize) -> Segment {
    Segment::create(limit, &SegmentOptions::default()).unwrap()
}

/// The word at an offset of a mapping.
fn word(mapping: &Mapping, offset: usize) -> &AtomicU64 {
    assert!(offset.is_multiple_of(8) && offset + 8 <= mapping.len());
    // SAFETY: in the mapping, aligned, and accessed by atomics only.
    unsafe { mapping.base().add(offset).cast::<AtomicU64>().as_ref() }
}

/// Bytes of memory that the file really has.
fn backed(segment: &Segment) -> usize {
    rustix::fs::fstat(&**segment.descriptor())
        .unwrap()
        .st_blocks as usize
        * 512
}

/// A file of the program's, with a word at its end.
fn begun(bytes: usize) -> OwnedFd {
    let file = Segment::file(bytes, &SegmentOptions::default()).unwrap();
    ftruncate(&file, bytes as u64).unwrap();
    rustix::io::pwrite(&file, &7_u64.to_ne_bytes(), bytes as u64 - 8).unwrap();
    file
}

#[test]
fn a_segment_begins_with_what_its_file_has() {
    let options = SegmentOptions::default();
    let mut segment = Segment::beginning_with(begun(8192), 8192, 1 << 20, &options).unwrap();
    assert_eq!(segment.limit(), 1 << 20);
    segment.commit(100_000).unwrap();
    segment.uncommit(8192).unwrap();
    assert_eq!(word(segment.mapping(), 8184).load(Relaxed), 7);
    // The committed bytes stay, though no more can be committed.
    assert!(segment.commit(2 << 20).is_err());
    assert_eq!(word(segment.mapping(), 8184).load(Relaxed), 7);
    assert!(Segment::beginning_with(begun(8192), 8192, 4096, &options).is_err());
    let huge_pages = HugePages::Explicit2M;
    let pool = SegmentOptions {
        huge_pages,
        ..options
    };
    assert!(Segment::beginning_with(begun(8192), 8192, 1 << 20, &pool).is_err());
}

#[test]
fn nothing_is_committed_until_asked_for() {
    let mut segment = segment(1 << 30);
    assert_eq!(
        (segment.limit(), segment.committed(), backed(&segment)),
        (1 << 30, 0, 0)
    );
    segment.commit(1).unwrap();
    assert_eq!((segment.committed(), backed(&segment)), (GRANULE, GRANULE));
    segment.commit(GRANULE).unwrap();
    assert_eq!(segment.committed(), GRANULE);
    segment.commit(40 << 20).unwrap();
    assert_eq!(
        (segment.committed(), backed(&segment)),
        (40 << 20, 40 << 20)
    );
    segment.commit(0).unwrap();
    assert_eq!(segment.committed(), 40 << 20);
}

#[test]
fn a_peer_that_maps_the_descriptor_sees_the_same_bytes() {
    let mut segment = segment(GRANULE);
    segment.commit(GRANULE).unwrap();
    let descriptor = Arc::clone(segment.descriptor());
    let peer = Mapping::of_descriptor(descriptor.as_fd(), segment.limit()).unwrap();
    word(segment.mapping(), 4096).store(42, Relaxed);
    assert_eq!(word(&peer, 4096).load(Relaxed), 42);
    drop(segment);
    assert_eq!(
        word(&peer, 4096).load(Relaxed),
        42,
        "a mapping outlives its segment"
    );
}

#[test]
fn m13_an_uncommitted_growth_leaves_the_rest_as_it_was() {
    let mut segment = segment(64 << 20);
    segment.commit(1 << 20).unwrap();
    word(segment.mapping(), (1 << 20) - 8).store(1, Relaxed);
    segment.commit(40 << 20).unwrap();
    word(segment.mapping(), 1 << 20).store(2, Relaxed);
    segment.uncommit(1 << 20).unwrap();
    assert_eq!((segment.committed(), backed(&segment)), (1 << 20, 1 << 20));
    assert_eq!(word(segment.mapping(), (1 << 20) - 8).load(Relaxed), 1);
    segment.commit(2 << 20).unwrap();
    assert_eq!(
        word(segment.mapping(), 1 << 20).load(Relaxed),
        0,
        "memory comes zeroed"
    );
    segment.uncommit(50 << 20).unwrap();
    assert_eq!(segment.committed(), 2 << 20, "uncommit never commits");
}

#[test]
fn m13_lack_of_memory_is_an_error_that_changes_nothing() {
    let mut segment = segment(1 << 44);
    segment.commit(1 << 20).unwrap();
    word(segment.mapping(), 0).store(3, Relaxed);
    let error = segment.commit(1 << 43).unwrap_err();
    assert!(
        matches!(error, Error::NoMemory { wanted, committed, .. }
            if wanted == 1 << 43 && committed == 1 << 20),
        "{error}"
    );
    assert_eq!((segment.committed(), backed(&segment)), (1 << 20, 1 << 20));
    assert_eq!(word(segment.mapping(), 0).load(Relaxed), 3);
    segment.commit(2 << 20).unwrap();
}

#[test]
fn more_than_the_limit_is_refused() {
    let mut segment = segment(5000);
    assert_eq!(segment.limit(), 8192, "whole pages");
    segment.commit(8192).unwrap();
    assert_eq!((segment.committed(), backed(&segment)), (8192, 8192));
    for wanted in [8193, usize::MAX] {
        let error = segment.commit(wanted).unwrap_err();
        assert!(
            matches!(error, Error::BeyondLimit { limit: 8192, .. }),
            "{error}"
        );
    }
}

#[test]
fn the_file_can_neither_shrink_nor_grow() {
    let segment = segment(1 << 20);
    for size in [0, 4096, 2 << 20] {
        assert_eq!(ftruncate(&**segment.descriptor(), size), Err(Errno::PERM));
    }
}

/// Bytes at an address that this process has mapped by huge pages.
fn mapped_huge(mapping: &Mapping) -> usize {
    let from = format!("{:x}-", mapping.base().addr());
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&from));
    let kib = lines
        .find_map(|line| line.strip_prefix("ShmemPmdMapped:"))
        .unwrap();
    kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn whole_huge_pages_are_given_where_the_kernel_has_any() {
    let mut segment = segment(64 << 20);
    segment.commit(HUGE - GRANULE).unwrap();
    assert_eq!(
        *segment.transparent_huge_pages(),
        AdviceOutcome::Yes,
        "not yet asked"
    );
    word(segment.mapping(), HUGE - GRANULE - 8).store(5, Relaxed);
    segment.commit(4 * HUGE + GRANULE).unwrap();
    assert_eq!(
        backed(&segment),
        4 * HUGE + GRANULE,
        "the rest is of ordinary pages"
    );
    assert_eq!(word(segment.mapping(), HUGE - GRANULE - 8).load(Relaxed), 5);
    let peer = Mapping::of_descriptor(segment.descriptor().as_fd(), 64 << 20).unwrap();
    for at in (0..4 * HUGE + GRANULE).step_by(4096).skip(1) {
        assert_eq!(word(&peer, at).load(Relaxed), 0);
        word(segment.mapping(), at).store(at as u64, Relaxed);
        assert_eq!(word(&peer, at).load(Relaxed), at as u64);
    }
    match segment.transparent_huge_pages() {
        AdviceOutcome::Yes => {
            assert_eq!(mapped_huge(segment.mapping()), 4 * HUGE);
            assert_eq!(mapped_huge(&peer), 4 * HUGE);
        }
        refused => println!("no huge pages here: {refused}"),
    }
}

#[test]
fn ordinary_pages_are_used_where_no_huge_ones_are_asked_for() {
    let options = SegmentOptions {
        huge_pages: HugePages::Off,
        ..SegmentOptions::default()
    };
    let mut segment = Segment::create(64 << 20, &options).unwrap();
    segment.commit(4 * HUGE).unwrap();
    assert_eq!(*segment.transparent_huge_pages(), AdviceOutcome::NotAsked);
    word(segment.mapping(), 0).store(1, Relaxed);
    // Nothing, unless the kernel is set to give shared memory huge pages unasked.
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    if setting.is_ok_and(|setting| setting.contains("[never]")) {
        assert_eq!(mapped_huge(segment.mapping()), 0);
    }
}

#[test]
fn impossible_limits_are_refused() {
    for limit in [0, usize::MAX, 1 << 63] {
        let error = Segment::create(limit, &SegmentOptions::default()).unwrap_err();
        assert!(matches!(error, Error::BadLimit { .. }), "{limit}: {error}");
    }
    let error = Segment::create(1 << 58, &SegmentOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("288230376151711744 bytes"), "{error}");
}

#[test]
fn explicit_huge_pages_are_committed_whole_or_refused_with_the_way_to_mend_it() {
    // Works whether or not the machine has set pages aside; says which it was.
    let options = SegmentOptions {
        huge_pages: HugePages::Explicit2M,
        ..Default::default()
    };
    let mut segment = match Segment::create(64 << 30, &options) {
        Ok(segment) => segment,
        Err(error) => {
            println!("no huge pages here: {error}");
            assert!(matches!(error, Error::BadLimit { .. }), "{error}");
            return;
        }
    };
    if free_in_pool(2 << 20).is_some_and(|free| free > 0) {
        println!("with a pool of huge pages");
        segment.commit(1).unwrap();
        assert_eq!((segment.committed(), backed(&segment)), (2 << 20, 2 << 20));
        word(segment.mapping(), (2 << 20) - 8).store(1, Relaxed);
    } else {
        println!("with an empty pool of huge pages");
    }
    let before = backed(&segment);
    let error = segment.commit(64 << 30).unwrap_err().to_string();
    assert!(error.contains("nr_hugepages"), "{error}");
    assert_eq!(backed(&segment), before, "m13: the heap is unchanged");
}

#[test]
fn a_numa_node_is_preferred_or_the_refusal_reported() {
    let node = |node| SegmentOptions {
        numa_node: Some(node),
        ..Default::default()
    };
    let mut segment = Segment::create(1 << 20, &node(0)).unwrap();
    assert_ne!(*segment.numa(), AdviceOutcome::NotAsked);
    segment.commit(1 << 20).unwrap();
    for absent in [1023, 1024, u32::MAX] {
        let segment = Segment::create(1 << 20, &node(absent)).unwrap();
        assert!(
            matches!(segment.numa(), AdviceOutcome::No(_)),
            "{absent}: {}",
            segment.numa()
        );
    }
    assert_eq!(*self::segment(4096).numa(), AdviceOutcome::NotAsked);
}
