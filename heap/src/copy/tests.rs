//! Copies of all lengths and alignments, also while other threads access the bytes.

use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const GUARD: u8 = 0xA5;

/// Every way to copy that there is here, the public one first.
fn routines() -> Vec<(&'static str, strategies::Routine)> {
    unsafe extern "C" fn public(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the contract is passed on.
        unsafe { copy(dst, src, len) }
    }
    unsafe extern "C" fn part(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the contract is passed on.
        unsafe { copy_chunk(dst, src, len, usize::MAX) }
    }
    let mut all: Vec<(&'static str, strategies::Routine)> = vec![
        ("copy", public),
        ("copy_chunk", part),
        ("portable", portable::copy),
    ];
    all.extend(strategies::all());
    all
}

/// Bytes aligned to 64, touched by raw pointers only.
struct Bytes(*mut u8, usize);

// SAFETY: the memory is not tied to a thread; tests access it by atomics and by `copy`.
unsafe impl Sync for Bytes {}

impl Bytes {
    fn new(len: usize) -> Self {
        let layout = std::alloc::Layout::from_size_align(len, 4096).unwrap();
        // SAFETY: every test asks for more than 0 bytes.
        Bytes(unsafe { std::alloc::alloc_zeroed(layout) }, len)
    }

    fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.1);
        // SAFETY: just checked.
        unsafe { self.0.add(offset) }
    }

    fn fill(&self, value: u8) {
        // SAFETY: our bytes; called while no other thread writes them.
        unsafe { self.0.write_bytes(value, self.1) }
    }

    /// The bytes, while nobody writes them.
    fn read(&self) -> &[u8] {
        // SAFETY: our bytes, initialised; called while no other thread writes them.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let layout = std::alloc::Layout::from_size_align(self.1, 4096).unwrap();
        // SAFETY: allocated by `new` with this layout.
        unsafe { std::alloc::dealloc(self.0, layout) }
    }
}

/// Distinct neighbours, period 251.
fn pattern(bytes: &Bytes) {
    for i in 0..bytes.1 {
        // SAFETY: in range, and ours alone.
        unsafe { bytes.at(i).write((i % 251) as u8 + 1) }
    }
}

/// Copies into guarded memory and compares every byte with what should be there.
fn check(
    name: &str,
    routine: strategies::Routine,
    src: &Bytes,
    dst: &Bytes,
    s: usize,
    d: usize,
    len: usize,
) {
    let from = d.saturating_sub(80);
    let to = (d + len + 80).min(dst.1);
    // SAFETY: the two buffers are distinct, ours, and long enough for the ranges.
    unsafe {
        dst.at(from).write_bytes(GUARD, to - from);
        routine(dst.at(d), src.at(s), len);
    }
    let got = &dst.read()[from..to];
    let (before, rest) = got.split_at(d - from);
    let (copied, after) = rest.split_at(len);
    assert!(
        before.iter().all(|&b| b == GUARD),
        "{name}: wrote before dst+{d}, src+{s}, {len} bytes"
    );
    assert!(
        after.iter().all(|&b| b == GUARD),
        "{name}: wrote after dst+{d}, src+{s}, {len} bytes"
    );
    assert!(
        copied == &src.read()[s..s + len],
        "{name}: wrong bytes: dst+{d}, src+{s}, {len} bytes"
    );
}

#[test]
fn copy_moves_every_small_size_at_every_alignment() {
    let (src, dst) = (Bytes::new(4096), Bytes::new(4096));
    pattern(&src);
    for (name, routine) in routines() {
        for len in 0..=330 {
            for d in 128..128 + 64 {
                for s in [128, 129, 130, 131, 132, 133, 134, 135, 157] {
                    check(name, routine, &src, &dst, s, d, len);
                }
            }
        }
    }
}

#[test]
fn copy_moves_sizes_around_every_threshold() {
    let (src, dst) = (Bytes::new((34 << 20) + 8192), Bytes::new((34 << 20) + 8192));
    pattern(&src);
    let powers = (9..=17).map(|p| 1usize << p);
    for (name, routine) in routines() {
        for middle in powers.clone() {
            for len in [middle - 9, middle - 1, middle, middle + 1, middle + 65] {
                for d in [128, 129, 136, 160, 191] {
                    for s in [128, 135, 136] {
                        check(name, routine, &src, &dst, s, d, len);
                    }
                }
            }
        }
    }
    for (name, routine) in routines() {
        if name == "copy" || name == "stream" {
            for len in [(32 << 20) - 1, 32 << 20, (32 << 20) + 77] {
                check(name, routine, &src, &dst, 131, 133, len);
                check(name, routine, &src, &dst, 128, 128, len);
            }
        }
    }
}

#[test]
fn fill_zero_clears_its_range_and_nothing_else() {
    type Fill = unsafe fn(*mut u8, usize);
    let fills: [(&str, Fill); 2] = [("fill_zero", fill_zero), ("portable", portable::fill_zero)];
    let dst = Bytes::new(4096);
    for (name, fill) in fills {
        for len in (0..=80).chain([511, 512, 2000]) {
            for d in 128..=144 {
                dst.fill(GUARD);
                // SAFETY: in range, and ours alone.
                unsafe { fill(dst.at(d), len) };
                for (i, &byte) in dst.read().iter().enumerate() {
                    let expected = if (d..d + len).contains(&i) { 0 } else { GUARD };
                    assert_eq!(byte, expected, "{name}: byte {i} of dst+{d}, {len} bytes");
                }
            }
        }
    }
}

#[test]
fn load_and_store_move_values_of_every_size_at_each_legal_place() {
    fn round_trip<T: Pod + PartialEq + std::fmt::Debug>(memory: &Bytes, value: T) {
        for at in (64..80).step_by(align_of::<T>()) {
            memory.fill(GUARD);
            let place = memory.at(at).cast::<T>();
            // SAFETY: in range, and ours alone.
            unsafe {
                store(place, value);
                assert_eq!(load(place), value);
            }
            let written = at..at + size_of::<T>();
            for (i, &byte) in memory.read().iter().enumerate() {
                assert!(
                    written.contains(&i) || byte == GUARD,
                    "byte {i} changed, stored at {at}"
                );
            }
        }
    }
    let memory = Bytes::new(160);
    round_trip(&memory, 0x11u8);
    round_trip(&memory, 0x1122u16);
    round_trip(&memory, 0x1122_3344_u32);
    round_trip(&memory, 0x1122_3344_5566_7788_u64);
    round_trip(&memory, 1.5f64);
    round_trip(&memory, [1u8, 2, 3]);
    round_trip(&memory, [1u16, 2, 3, 4]);
    round_trip(&memory, 0x1122_3344_5566_7788_99aa_bbcc_ddee_ff00_u128);
    round_trip(&memory, ());
}

/// Readable bytes between pages that fault.
struct Fenced(*mut u8, usize);

impl Fenced {
    const FENCE: usize = 4096;

    fn new(len: usize) -> Self {
        let all = len + 2 * Self::FENCE;
        // SAFETY: a fresh anonymous mapping, no address asked for; then the protection of pages
        // inside it.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(null_mut(), all, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let inner = base.cast::<u8>().add(Self::FENCE);
            assert_eq!(
                libc::mprotect(inner.cast(), len, libc::PROT_READ | libc::PROT_WRITE),
                0
            );
            Fenced(inner, len)
        }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: what `new` mapped.
        unsafe { libc::munmap(self.0.sub(Self::FENCE).cast(), self.1 + 2 * Self::FENCE) };
    }
}

#[test]
fn copy_touches_no_byte_beyond_either_end() {
    let (src, dst) = (Fenced::new(128 << 10), Fenced::new(128 << 10));
    let lengths = (0..=300).chain([511, 4095, 4096, 8191, 8192, 8200, 65_535, 128 << 10]);
    for (_, routine) in routines() {
        for len in lengths.clone() {
            // SAFETY: both ranges lie in their mappings, at its very start or end.
            unsafe {
                routine(dst.0, src.0, len);
                routine(dst.0.add(dst.1 - len), src.0, len);
                routine(dst.0, src.0.add(src.1 - len), len);
                routine(dst.0.add(dst.1 - len), src.0.add(src.1 - len), len);
            }
        }
        // SAFETY: as above.
        unsafe { fill_zero(dst.0, dst.1) };
    }
}

/// The first aligned word in `len` bytes at `at` whose bytes differ from each other, as text.
fn torn_word(at: *const u8, len: usize) -> Option<String> {
    let end = at.addr() + len;
    for size in [8, 4, 2] {
        let mut offset = at.addr().next_multiple_of(size) - at.addr();
        while at.addr() + offset + size <= end {
            // SAFETY: inside the range, aligned to its size, and accessed concurrently by atomics
            // and `copy` only.
            let word = unsafe {
                let word = at.add(offset);
                match size {
                    8 => word64(word).load(Relaxed),
                    4 => u64::from(word32(word).load(Relaxed)) * 0x1_0000_0001,
                    _ => u64::from(word16(word).load(Relaxed)) * 0x1_0001_0001_0001,
                }
            };
            if word != (word & 0xff) * 0x0101_0101_0101_0101 {
                return Some(format!("word of {size} bytes at +{offset}: {word:#x}"));
            }
            offset += size;
        }
    }
    None
}

/// (offset of the destination, offset of the source, length): for tearing tests.
fn torn_cases() -> Vec<(usize, usize, usize)> {
    let mut cases = Vec::new();
    for len in [
        2, 3, 4, 7, 8, 9, 15, 16, 24, 31, 48, 63, 64, 100, 128, 200, 255, 256, 400, 1000,
    ] {
        for (d, s) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 0),
            (4, 4),
            (6, 0),
            (8, 3),
            (56, 56),
            (60, 1),
            (63, 63),
        ] {
            cases.push((d, s, len));
        }
    }
    for len in [4095, 8191, 8192, 8200, 16_384 + 3, 65_536] {
        for (d, s) in [(0, 0), (1, 1), (8, 16), (4, 1), (60, 60)] {
            cases.push((d, s, len));
        }
    }
    cases
}

/// How long each routine is watched, over all cases together.
const WATCH: Duration = Duration::from_millis(600);

#[test]
fn a_concurrent_reader_never_sees_a_torn_destination_word() {
    let dst = Bytes::new(80 << 10);
    let sources: Vec<Bytes> = [0x00, 0xff, 0x5a, 0xc3]
        .map(|value| {
            let source = Bytes::new(80 << 10);
            source.fill(value);
            source
        })
        .into();
    let cases = torn_cases();
    for (name, routine) in routines() {
        let share = WATCH / cases.len() as u32;
        for &(d, s, len) in &cases {
            dst.fill(0);
            let stop = AtomicBool::new(false);
            let torn = thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Acquire) {
                        for source in &sources {
                            // SAFETY: in range; read concurrently by atomics only.
                            unsafe { routine(dst.at(d), source.at(s), len) };
                        }
                    }
                });
                let end = Instant::now() + share;
                let mut torn = None;
                while torn.is_none() && Instant::now() < end {
                    torn = torn_word(dst.at(d), len);
                }
                stop.store(true, Release);
                torn
            });
            assert_eq!(torn, None, "{name}: dst+{d}, src+{s}, {len} bytes");
        }
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn a_word_is_copied_whole_wherever_the_processor_keeps_one_access_whole() {
    // Intel's manual promises it within a cache line, AMD's within 8 aligned bytes. A Zen 4 tears what crosses 32.
    let unit = if x86_64::is_amd() { 8 } else { 64 };
    let [shared, zeros, ones] = [0, 0, 0xff].map(|value| {
        let bytes = Bytes::new(128);
        bytes.fill(value);
        bytes
    });
    for len in [2, 4, 8] {
        for at in (0..=64 - len).filter(|at| at / unit == (at + len - 1) / unit) {
            shared.fill(0);
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Acquire) {
                        for source in [&zeros, &ones] {
                            // SAFETY: in range; accessed concurrently by `copy` only.
                            unsafe { copy(shared.at(at), source.at(64 - at), len) };
                        }
                    }
                });
                let end = Instant::now() + WATCH / 200;
                let mut torn = None;
                while torn.is_none() && Instant::now() < end {
                    let mut word = 0_u64;
                    // SAFETY: in range; the source is written concurrently by `copy` only.
                    unsafe { copy((&raw mut word).cast(), shared.at(at), len) };
                    let word = word.to_ne_bytes();
                    torn = word[..len]
                        .iter()
                        .any(|&byte| byte != word[0])
                        .then_some(word);
                }
                stop.store(true, Release);
                assert_eq!(torn, None, "{len} bytes at {at}");
            });
        }
    }
}

#[test]
fn a_copy_never_tears_a_source_word_that_is_being_written() {
    let (src, dst) = (Bytes::new(80 << 10), Bytes::new(80 << 10));
    // Where source and destination agree modulo 8, every aligned word is as aligned in both.
    let mut cases = torn_cases();
    cases.retain(|(d, s, _)| d % 8 == s % 8);
    for (name, routine) in routines() {
        let share = WATCH / cases.len() as u32;
        for &(d, s, len) in &cases {
            src.fill(0);
            dst.fill(0);
            let stop = AtomicBool::new(false);
            let torn = thread::scope(|scope| {
                scope.spawn(|| {
                    let (start, end) = (s / 8 * 8, (s + len).next_multiple_of(8));
                    let mut value = 0u64;
                    while !stop.load(Acquire) {
                        value = (value + 0x0101_0101_0101_0101) & 0x7f7f_7f7f_7f7f_7f7f;
                        for at in (start..end).step_by(8) {
                            // SAFETY: in range and aligned; read concurrently by `copy` only.
                            unsafe { word64(src.at(at)).store(value, Relaxed) };
                        }
                    }
                });
                let end = Instant::now() + share;
                let mut torn = None;
                while torn.is_none() && Instant::now() < end {
                    for _ in 0..8 {
                        // SAFETY: in range; the source is written concurrently by atomics only.
                        unsafe { routine(dst.at(d), src.at(s), len) };
                        torn = torn.or(torn_word(dst.at(d), len));
                    }
                }
                stop.store(true, Release);
                torn
            });
            assert_eq!(torn, None, "{name}: dst+{d}, src+{s}, {len} bytes");
        }
    }
}

#[test]
fn a_word_answered_by_its_reader_is_not_written_again() {
    const NEW: u64 = 0x1111_1111_1111_1111;
    const ANSWER: u64 = 0xeeee_eeee_eeee_eeee;
    let (src, dst) = (Bytes::new(16 << 10), Bytes::new(16 << 10));
    src.fill(0x11);
    let cases = [
        (0, 24),
        (8, 40),
        (8, 72),
        (40, 120),
        (1, 300),
        (3, 700),
        (9, 1000),
        (61, 9000),
    ];
    for (name, routine) in routines() {
        for (d, len) in cases {
            // The first and the last whole word: where a careless copy overlaps its pieces.
            let d: usize = d;
            let words = [d.next_multiple_of(8), (d + len) / 8 * 8 - 8];
            let armed = [AtomicBool::new(false), AtomicBool::new(false)];
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Acquire) {
                        for (at, armed) in words.into_iter().zip(&armed) {
                            // SAFETY: in range and aligned; accessed concurrently by `copy` and
                            // atomics only.
                            let word = unsafe { word64(dst.at(at)) };
                            if armed.load(Acquire) && word.load(Relaxed) == NEW {
                                word.store(ANSWER, Relaxed);
                                armed.store(false, Release);
                            }
                        }
                    }
                });
                let mut wrong = None;
                let end = Instant::now() + WATCH / 40;
                while wrong.is_none() && Instant::now() < end {
                    for (at, armed) in words.into_iter().zip(&armed) {
                        // SAFETY: in range and aligned; concurrent accesses are atomics.
                        unsafe { word64(dst.at(at)).store(0, Relaxed) };
                        armed.store(true, Release);
                    }
                    // SAFETY: in range; concurrent accesses are atomics.
                    unsafe { routine(dst.at(d), src.at(0), len) };
                    let deadline = Instant::now() + Duration::from_secs(20);
                    while armed.iter().any(|armed| armed.load(Acquire)) {
                        thread::yield_now();
                        if Instant::now() > deadline {
                            wrong = Some("no answer within 20 s".to_owned());
                            break;
                        }
                    }
                    for at in words {
                        // SAFETY: as above.
                        let word = unsafe { word64(dst.at(at)).load(Relaxed) };
                        if word != ANSWER {
                            wrong = Some(format!("word at +{at} is {word:#x} after its answer"));
                        }
                    }
                }
                stop.store(true, Release);
                assert_eq!(wrong, None, "{name}: dst+{d}, {len} bytes");
            });
        }
    }
}

#[test]
fn copies_that_go_on_where_the_last_one_ended_move_the_same_bytes() {
    let len = 3 << 20;
    let (src, dst) = (Bytes::new(len), Bytes::new(len));
    pattern(&src);
    for (part, skew) in [
        (16 << 10, 0),
        (40_000, 8),
        ((130 << 10) + 24, 56),
        (len - 4096, 16),
    ] {
        dst.fill(GUARD);
        let ends: Vec<usize> = (skew..len).step_by(part).chain([len]).collect();
        for ends in ends.windows(2) {
            // SAFETY: the two buffers are distinct, ours, and long enough for the ranges.
            unsafe { copy(dst.at(ends[0]), src.at(ends[0]), ends[1] - ends[0]) };
        }
        assert_eq!(dst.read()[..skew], vec![GUARD; skew]);
        assert!(
            dst.read()[skew..] == src.read()[skew..],
            "parts of {part} bytes"
        );
    }
}
